//! Piper against the published program: every objective value of `tests/figures/piper.tsv`.

mod common;

use common::{figures::piper_cases, reference};
use plantui::planner::{self, Options, Problem, Search, Status};
use std::sync::Arc;

/// Settings of our planners that ask for what a variant of the published experiments does.
fn settings(variant: &str) -> (&'static str, Vec<&'static str>) {
    match variant {
        "Piper" => ("piper", vec![]),
        "noDP" => ("piper", vec!["data_parallel=false"]),
        "noTP" => ("piper", vec!["tensor_parallel=false"]),
        "noAR" => ("piper", vec!["recompute=never"]),
        "AR" => ("piper", vec!["recompute=always"]),
        "AON" => ("piper", vec!["recompute=all-or-none"]),
        other => panic!("unknown variant {other}"),
    }
}

fn compare(knapsack: &str) {
    let Some(root) = reference::root("piper_golden") else { return };
    let mut wrong = vec![];
    let (mut count, mut lower) = (0, 0);
    for case in piper_cases().filter(|case| !case.variant.starts_with("equi")) {
        let workload = Arc::new(plantui::workload::load(&root.join(&case.input)).unwrap());
        let (id, set) = settings(&case.variant);
        let planner = planner::find(id).unwrap();
        let set = set.into_iter().chain([knapsack]);
        let options = Options::parse(id, planner.options(), set).unwrap();
        let problem = Problem { workload, limits: case.limits, options };
        let (outcome, score) = planner::run(planner, &problem, &Search::default());
        count += 1;
        let ours = score.map(|score| score.time_per_sample_s);
        let equal = match (ours, case.time_per_sample) {
            (None, None) => outcome.status == Status::Infeasible,
            (Some(ours), Some(theirs)) => ours <= theirs * (1.0 + 1e-9),
            _ => false,
        };
        if let (Some(ours), Some(theirs)) = (ours, case.time_per_sample)
            && ours < theirs * (1.0 - 1e-9)
        {
            lower += 1;
            println!("{knapsack} lower than published by {:.2e}: {case:?}", (theirs - ours) / theirs);
        }
        if !equal {
            wrong.push(format!("{case:?}: ours {ours:?}, {:?}", outcome.status));
        }
    }
    println!("{knapsack}: {} of {count} cases as published, {lower} lower", count - wrong.len() - lower);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn exact_knapsack_meets_every_published_value() {
    compare("knapsack=exact");
}

#[test]
fn greedy_knapsack_meets_every_published_value() {
    compare("knapsack=greedy");
}
