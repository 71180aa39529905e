//! The table of a device placement's plan: a row is a device, or a subgraph that an accelerator runs.
//!
//! ```text
//! limited by stage 4 (CPUs): everything waits for it during 49.2% of the latency
//!
//!   stage  device     start    finish  waited for  compute  transfers   memory  of 600 MiB  nodes
//!       1  accelerator 1     0 ns    24.11 ms        3.0%  ..
//! ```
//!
//! For a max-load the columns are the load and what it is made of, and how much of it (both) the backward pass has.

use super::report::{line, names, on_cpus, table};
use crate::{
    cluster::Limits,
    plan::{Plan, SampleTimes, Score, StageScore},
    units,
    workload::Workload,
};

/// The line about the bottleneck and the table.
pub(super) fn stages(text: &mut String, workload: &Workload, limits: &Limits, plan: &Plan, score: &Score) {
    let bottleneck = score.bottleneck();
    if let Some(limiting) = bottleneck {
        line(text, format_args!("{}", limited(plan, limiting, &score.stages[limiting], score)));
    }
    line(text, format_args!(""));
    let of_limit = format!("of {}", units::bytes_exact(limits.memory_limit()));
    let timed = score.stages.iter().any(|stage| stage.sample.is_some());
    let columns: &[&str] = match timed {
        true => &["start", "finish", "waited for", "compute", "transfers"],
        false => &["load", "compute", "transfers", "in backward"],
    };
    let head = [&["  stage", "device"], columns, &["memory", &of_limit, "nodes"]].concat();
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(String::from).collect()];
    for (i, (stage, scored)) in plan.stages.iter().zip(&score.stages).enumerate() {
        let mark = if bottleneck == Some(i) { "*" } else { "" };
        let mut row = vec![format!("{mark} {:>5}", i + 1), device(plan, i, timed)];
        row.extend(match timed {
            true => times(scored, score),
            false => [scored.load_s, scored.compute_s, scored.communication_s, scored.backward_s]
                .map(units::seconds)
                .to_vec(),
        });
        let memory = if on_cpus(stage) {
            ["host".to_string(), String::new()]
        } else {
            [
                units::bytes_beside(scored.memory_bytes, limits.memory_limit()),
                units::percent(scored.memory_bytes / limits.memory_limit()),
            ]
        };
        row.extend(memory);
        row.push(names(workload, stage));
        rows.push(row);
    }
    table(text, &rows);
}

/// What a stage runs on: accelerators are counted from 1 in the order of their first stages, as on the screen. For a single
/// sample the CPUs are one stage.
fn device(plan: &Plan, index: usize, all_cpus: bool) -> String {
    let stage = &plan.stages[index];
    match on_cpus(stage) {
        true if all_cpus => return "CPUs".into(),
        true => return "CPU".into(),
        false => {}
    }
    let mut known: Vec<Option<u32>> = vec![];
    for stage in plan.stages[..=index].iter().filter(|stage| !on_cpus(stage)) {
        let device = stage.devices.first().copied();
        if device.is_none() || !known.contains(&device) {
            known.push(device);
        }
    }
    let own = stage.devices.first().copied();
    let number = known.iter().position(|device| own.is_some() && *device == own).map_or(known.len(), |at| at + 1);
    format!("accelerator {number}")
}

fn limited(plan: &Plan, index: usize, scored: &StageScore, score: &Score) -> String {
    let what = format!("limited by stage {} ({})", index + 1, device(plan, index, scored.sample.is_some()));
    if let Some(times) = scored.sample {
        let share = units::percent(critical_share(times, score));
        return format!("{what}: everything waits for it during {share} of the latency");
    }
    let share = |part: f64| units::percent(if scored.load_s > 0.0 { part / scored.load_s } else { 0.0 });
    format!("{what}: compute {}, transfers {}", share(scored.compute_s), share(scored.communication_s))
}

/// The share of the latency during which everything waits for a stage.
fn critical_share(times: SampleTimes, score: &Score) -> f64 {
    let latency_s: f64 = score.stages.iter().filter_map(|stage| stage.sample).map(|times| times.critical_s).sum();
    if latency_s > 0.0 { times.critical_s / latency_s } else { 0.0 }
}

fn times(scored: &StageScore, score: &Score) -> Vec<String> {
    let Some(times) = scored.sample else { return vec![String::new(); 5] };
    vec![
        units::seconds(times.start_s),
        units::seconds(times.finish_s),
        units::percent(critical_share(times, score)),
        units::seconds(scored.compute_s),
        units::seconds(scored.communication_s),
    ]
}
