//! Latency planners on the published inputs: values, bound and time beside the published greedy and the best published.
//!
//! `PLANTUI_REFERENCE=.. cargo bench --bench placement_latency [FILTER]`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Instant};

use plantui::{
    cluster::{GivenLimits, Limits},
    family,
    planner::{self, Options, Outcome, Problem, Search},
    run,
    workload::{Workload, load},
};

/// Runs a planner with its defaults; its plan is checked.
fn plan(id: &str, workload: &Arc<Workload>, limits: &Limits) -> Outcome {
    let planner = planner::find(id).expect("a registered planner");
    let options = Options::defaults(planner.options());
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    run::plan(planner, &problem, &Search::default()).unwrap().0
}

fn main() {
    let filter: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE is not set: the published inputs are not measured");
        return;
    };
    let table = include_str!("../tests/figures/placement-latency.tsv");
    let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split('\t').collect());
    let published: BTreeMap<&str, f64> = rows
        .filter(|row: &Vec<&str>| row[1] == "best")
        .map(|row| (row[0], row[3].parse().expect("a number")))
        .collect();
    let head = ["best published", "greedy", "max-load DP", "search", "bound", "gap %", "s"];
    println!("{:44} {}", "input", head.map(|name| format!("{name:>14}")).concat());
    for (input, best) in published {
        if !filter.iter().all(|word| input.contains(word.as_str())) {
            continue;
        }
        let workload = Arc::new(load(&root.join(input)).expect("a published input"));
        let limits = family::resolve(&workload, &GivenLimits::default()).expect("the file has its limits");
        let value = |id| plan(id, &workload, &limits).objective.unwrap_or(f64::NAN);
        let (greedy, max_load) = (value("placement-latency-greedy"), value("placement-latency-dp"));
        let started = Instant::now();
        let found = plan("placement-latency-ip", &workload, &limits);
        let seconds = started.elapsed().as_secs_f64();
        let (ours, bound) = (found.objective.unwrap_or(f64::NAN), found.lower_bound.unwrap_or(0.0));
        let figures = [best, greedy, max_load, ours, bound, 100.0 * (ours - bound) / ours, seconds];
        let verdict = if ours > best * (1.0 + 1e-9) { " WORSE" } else { "" };
        let name = input.trim_start_matches("dnn-partitioning/latency-inputs/");
        println!("{name:44} {}{verdict}", figures.map(|figure| format!("{figure:>14.3}")).concat());
    }
}
