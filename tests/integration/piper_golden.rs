//! Piper against the published program: every objective value of `tests/figures/piper.tsv`.

use crate::common::{figures::piper_cases, reference};
use plantui::{
    planner::{self, Options, Problem, Search, Status},
    run,
    workload::Workload,
};
use std::{collections::BTreeMap, sync::Arc};

/// Settings of our planners that ask for what a variant of the published experiments does.
fn settings(variant: &str) -> (&'static str, Vec<&'static str>) {
    match variant {
        "Piper" => ("piper", vec![]),
        "noDP" => ("piper", vec!["data_parallel=false"]),
        "noTP" => ("piper", vec!["tensor_parallel=false"]),
        "noAR" => ("piper", vec!["recompute=never"]),
        "AR" => ("piper", vec!["recompute=always"]),
        "AON" => ("piper", vec!["recompute=all-or-none"]),
        "equi-sep" => ("equal-partition", vec!["variant=transformer"]),
        "equi-nosep" => ("equal-partition", vec!["variant=transformer", "separate_ends=never"]),
        "equi-noTP-sep" => ("equal-partition", vec!["variant=transformer", "tensor_parallel=false"]),
        "equi-noTP-nosep" => {
            ("equal-partition", vec!["variant=transformer", "separate_ends=never", "tensor_parallel=false"])
        }
        "equi-noTP" => ("equal-partition", vec!["variant=general", "tensor_parallel=false"]),
        other => panic!("unknown variant {other}"),
    }
}

/// Plans every case that `wanted` picks, with one more setting, and tells how the values compare.
fn compare(name: &str, extra: Option<&str>, wanted: impl Fn(&str) -> bool, may_be_lower: bool) {
    let root = reference::root();
    let mut wrong = vec![];
    let (mut count, mut lower) = (0, 0);
    let mut loaded: BTreeMap<String, Arc<Workload>> = BTreeMap::new();
    for case in piper_cases().filter(|case| wanted(&case.variant)) {
        let load = || Arc::new(plantui::workload::load(&root.join(&case.input)).unwrap());
        let workload = Arc::clone(loaded.entry(case.input.clone()).or_insert_with(load));
        let (id, set) = settings(&case.variant);
        let planner = planner::find(id).unwrap();
        let options = Options::parse(id, planner.options(), set.into_iter().chain(extra)).unwrap();
        let problem = Problem { workload, limits: case.limits.clone(), options };
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        count += 1;
        let ours = score.map(|score| score.value);
        let right = match (ours, case.time_per_sample) {
            (None, None) => outcome.status == Status::Infeasible,
            (Some(ours), Some(theirs)) if may_be_lower && ours < theirs * (1.0 - 1e-9) => {
                lower += 1;
                println!("{name}: {:.2e} lower than published: {case:?}", (theirs - ours) / theirs);
                true
            }
            (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-9 * theirs,
            _ => false,
        };
        if !right || (ours.is_some() && outcome.status != Status::Optimal) {
            wrong.push(format!("{case:?}: ours {ours:?}, {:?}", outcome.status));
        }
    }
    println!("{name}: {} of {count} cases equal to the published value, {lower} lower", count - wrong.len() - lower);
    assert!(count > 0 && wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn piper(variant: &str) -> bool {
    !variant.starts_with("equi")
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn exact_knapsack_meets_every_published_value_or_is_lower() {
    compare("piper, exact knapsack", Some("knapsack=exact"), piper, true);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn greedy_knapsack_meets_every_published_value() {
    compare("piper, greedy knapsack", Some("knapsack=greedy"), piper, false);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn equal_partitions_meet_every_published_value() {
    compare("equal-partition", None, |variant| !piper(variant), false);
}
