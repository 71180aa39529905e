//! Table of a device placement's plan: a row per device, or per subgraph of an accelerator.
//!
//! ```text
//! limited by stage 4 (CPUs): everything waits for it during 49.2% of the latency
//!
//!   stage  device     start    finish  waited for  compute  transfers   memory  of 600 MiB  nodes
//!       1  accelerator 1     0 ns    24.11 ms        3.0%  ..
//! ```
//!
//! For a max-load, the columns are the load, its parts, and the backward pass's share of both.

use std::collections::HashMap;

use super::report::{line, names, on_cpus, table};
use crate::{
    cluster::Limits,
    family,
    plan::{Plan, SampleTimes, Score, Stage, StageScore},
    units,
    workload::Workload,
};

/// Line about the bottleneck, and the table.
pub(super) fn stages(text: &mut String, workload: &Workload, limits: &Limits, plan: &Plan, score: &Score) {
    let bottleneck = score.bottleneck();
    let timed = score.stages.iter().any(|stage| stage.sample.is_some());
    let family = family::of(workload);
    let kinds =
        plan.stages.iter().map(|stage| family.stage_kind(stage).map_or(String::new(), |kind| format!(", {kind}")));
    let devices: Vec<String> =
        devices(plan, timed).into_iter().zip(kinds).map(|(device, kind)| device + &kind).collect();
    let latency_s = latency_s(score);
    if let Some(limiting) = bottleneck {
        let what = format!("limited by stage {} ({})", limiting + 1, devices[limiting]);
        line(text, format_args!("{what}: {}", limited(&score.stages[limiting], latency_s)));
    }
    line(text, format_args!(""));
    let limit_of = |stage: &Stage| family.memory_limit(limits, stage);
    let on_accelerators = || plan.stages.iter().filter(|stage| !on_cpus(stage));
    let differ = on_accelerators().any(|stage| limit_of(stage) != limits.memory_limit());
    let of = |limit: f64| format!("of {}", units::bytes_exact(limit));
    let of_limit = if differ { "of its device".into() } else { of(limits.memory_limit()) };
    let columns: &[&str] = match timed {
        true => &["start", "finish", "waited for", "compute", "transfers"],
        false => &["load", "compute", "transfers", "in backward"],
    };
    let head = [&["  stage", "device"], columns, &["memory", &of_limit, "nodes"]].concat();
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(String::from).collect()];
    for (i, ((stage, scored), device)) in plan.stages.iter().zip(&score.stages).zip(devices).enumerate() {
        let mark = if bottleneck == Some(i) { "*" } else { "" };
        let mut row = vec![format!("{mark} {:>5}", i + 1), device];
        row.extend(match timed {
            true => times(scored, latency_s),
            false => [scored.load_s, scored.compute_s, scored.communication_s, scored.backward_s]
                .map(units::seconds)
                .to_vec(),
        });
        let memory = if on_cpus(stage) {
            ["host".to_string(), String::new()]
        } else {
            let limit = limit_of(stage);
            let share = units::percent(scored.memory_bytes / limit);
            let share = if differ { format!("{share} {}", of(limit)) } else { share };
            [units::bytes_beside(scored.memory_bytes, limit), share]
        };
        row.extend(memory);
        row.push(names(workload, stage));
        rows.push(row);
    }
    table(text, &rows);
}

/// Device of each stage. Accelerators are counted from 1 in the order of their first stages, as on the screen. For a
/// single sample the CPUs are one stage.
fn devices(plan: &Plan, all_cpus: bool) -> Vec<String> {
    let (mut known, mut count) = (HashMap::new(), 0);
    let mut number = |stage: &Stage| {
        let mut next = || {
            count += 1;
            count
        };
        match stage.devices.first() {
            Some(&device) => *known.entry(device).or_insert_with(next),
            // A stage without a device counts separately.
            None => next(),
        }
    };
    let device = |stage: &Stage| match on_cpus(stage) {
        true if all_cpus => "CPUs".into(),
        true => "CPU".into(),
        false => format!("accelerator {}", number(stage)),
    };
    plan.stages.iter().map(device).collect()
}

/// Parts of the limiting stage's time.
fn limited(scored: &StageScore, latency_s: f64) -> String {
    if let Some(times) = scored.sample {
        let share = units::percent(critical_share(times, latency_s));
        return format!("the critical path runs through it for {share} of the latency");
    }
    let share = |part: f64| units::percent(if scored.load_s > 0.0 { part / scored.load_s } else { 0.0 });
    format!("compute {}, transfers {}", share(scored.compute_s), share(scored.communication_s))
}

/// Latency of a single sample: the sum of all critical times.
fn latency_s(score: &Score) -> f64 {
    score.stages.iter().filter_map(|stage| stage.sample).map(|times| times.critical_s).sum()
}

/// Share of the latency in which everything waits for a stage.
fn critical_share(times: SampleTimes, latency_s: f64) -> f64 {
    if latency_s > 0.0 { times.critical_s / latency_s } else { 0.0 }
}

fn times(scored: &StageScore, latency_s: f64) -> Vec<String> {
    let Some(times) = scored.sample else { return vec![String::new(); 5] };
    vec![
        units::seconds(times.start_s),
        units::seconds(times.finish_s),
        units::percent(critical_share(times, latency_s)),
        units::seconds(scored.compute_s),
        units::seconds(scored.communication_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Choice, NodeIndex};

    fn on(devices: Vec<u32>, choice: Choice) -> Stage {
        let nodes = vec![NodeIndex::new(0)];
        Stage { nodes, choices: vec![choice], data_parallel: 1, tensor_parallel: 1, devices }
    }

    #[test]
    fn accelerators_are_counted_by_their_first_stages() {
        let keep = |devices| on(devices, Choice::Keep);
        let stages =
            vec![keep(vec![7]), on(vec![9], Choice::Cpu), keep(vec![3]), keep(vec![]), keep(vec![7]), keep(vec![])];
        let plan = Plan { stages, ..Plan::default() };
        let told = |all_cpus| devices(&plan, all_cpus).join(", ").replace("accelerator ", "");
        assert_eq!(told(false), "1, CPU, 2, 3, 1, 4");
        assert_eq!(told(true), "1, CPUs, 2, 3, 1, 4");
    }

    #[test]
    fn tens_of_thousands_of_devices_are_told_in_one_pass() {
        // An implementation that scans all stages for every row would not finish here.
        let stages = (0..60_000).rev().map(|device| on(vec![device], Choice::Keep)).collect();
        let told = devices(&Plan { stages, ..Plan::default() }, false);
        assert_eq!((told[0].as_str(), told[59_999].as_str()), ("accelerator 1", "accelerator 60000"));
    }
}
