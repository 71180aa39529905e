//! Table of Joint beside the figures of `tests/figures/joint.tsv`: simulated seconds, proven gap, planning time.
//!
//! `PLANTUI_REFERENCE=.. cargo run --release --example joint_table [FILTER] [NAME=VALUE ..]`; a filter is part of a
//! cell's name.

use std::{path::PathBuf, sync::Arc, time::Instant};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family,
    planner::{self, Options, Problem, Search},
    run, units, workload,
};

const FIGURES: &str = include_str!("../tests/figures/joint.tsv");

fn main() {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE names no folder");
        return;
    };
    let (settings, filters): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|arg| arg.contains('='));
    let planner = planner::find("joint").expect("the planner");
    let (mut gaps, mut times) = (vec![], vec![]);
    println!("{:<44}{:>12}{:>12}{:>9}{:>8}{:>9}", "cell", "figure s", "joint s", "", "gap %", "ms");
    for line in FIGURES.lines().skip(2) {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| fields.get(i).and_then(|field| field.parse::<f64>().ok());
        let cell = format!("{} K{} N{} {}GiB", fields[0], fields[1], fields[2], fields[3]);
        if !filters.iter().all(|filter| cell.contains(filter.as_str())) {
            continue;
        }
        let workload = Arc::new(workload::load(&root.join("joint").join(fields[0])).expect("a profile"));
        let overrides = GivenLimits::default()
            .maybe(LimitKind::Devices, number(1).map(|count| count as u32))
            .maybe(LimitKind::Microbatches, number(2).map(|count| count as u32))
            .maybe(LimitKind::Memory, number(3).map(|gib| gib * units::GIB));
        let limits = family::resolve(&workload, &overrides).expect("limits");
        let options = Options::parse("joint", planner.options(), settings.iter().map(String::as_str)).expect("options");
        let (start, cpu) = (Instant::now(), cpu_ms());
        let (outcome, _) =
            run::plan(planner, &Problem { workload, limits, options }, &Search::default()).expect("a sound plan");
        // CPU time is more reliable on a shared machine.
        let ms = cpu_ms().zip(cpu).map_or(start.elapsed().as_secs_f64() * 1e3, |(now, then)| now - then);
        times.push(ms);
        // If any schedule is allowed, the fastest of all columns that engines run.
        let columns =
            if settings.iter().any(|set| set == "schedule=auto") { &[4, 7, 8, 9, 10, 11, 12][..] } else { &[4] };
        let known = columns.iter().filter_map(|&i| number(i)).reduce(f64::min);
        let Some(value) = outcome.objective else {
            println!("{cell:<44}{:>12}{:>12}{:>26.1}", known.map_or("none".into(), |s| format!("{s:.4}")), "none", ms);
            continue;
        };
        let gap = outcome.gap().unwrap_or(f64::NAN) * 100.0;
        gaps.push(gap);
        let against = known.map_or(String::new(), |known| format!("{:+.2}%", 100.0 * (value / known - 1.0)));
        let plan = outcome.plan.expect("a plan");
        println!(
            "{cell:<44}{:>12.4}{value:>12.4}{against:>9}{gap:>8.2}{ms:>9.1}  t={} d={} S={} {} {:?}",
            known.unwrap_or(f64::NAN),
            plan.stages[0].tensor_parallel,
            plan.stages[0].data_parallel,
            plan.stages.len(),
            plan.execution.unwrap_or_default().name(),
            outcome.statistics.counts.iter().map(|count| count.1).collect::<Vec<_>>(),
        );
    }
    for (name, list) in [("gap %", &mut gaps), ("ms", &mut times)] {
        list.sort_by(f64::total_cmp);
        if let (Some(median), Some(most)) = (list.get(list.len() / 2), list.last()) {
            println!("{name}: median {median:.2}, nine in ten {:.2}, most {most:.2}", list[list.len() * 9 / 10]);
        }
    }
}

/// Milliseconds of CPU time of this thread, if the system reports it.
fn cpu_ms() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e6)
}
