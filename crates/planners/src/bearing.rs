//! Set of plans that a planner's proof covers, as narrowed by its options.
//!
//! "No plan is better" is false as soon as an option forbids a better plan. So a planner that proves anything declares
//! the role of each of its options in the proof. `plantui_study::run` composes a phrase from the options that exclude plans:
//! `plans that engines run, 1F1B, with exactly 7 stages`.

use super::{Options, Outcome, Planner, Problem, Status};
use plantui_core::workload::Workload;

/// Role of an option in a planner's proof.
#[derive(Debug, Clone, Copy)]
pub enum Bearing {
    /// Controls the search only: the proof covers the same plans for every value.
    Search,
    /// Defines what plans run on or what measures them: its value is part of the problem.
    Question,
    /// Restricts the plans. The planner's outcome states how, in [`Outcome::proven_among`].
    Told,
    /// Restricts the plans. The function returns the common property of the remaining plans, worded to follow `plans`;
    /// `None` if the value excludes nothing. It receives all options, because some take effect only together with
    /// others.
    Narrows(fn(&Options) -> Option<String>),
}

/// Kind of proof that a planner gives.
#[derive(Debug, Clone, Copy)]
pub enum Proves {
    /// No claim of optimality. A bound that the planner gives holds for every plan.
    Nothing,
    /// Proofs and bounds hold for the plans that the options allow: name and role of each option.
    Among(&'static [(&'static str, Bearing)]),
}

/// Describes the plans that a proof covers under these options, or returns `None` if it covers all. `own` is the
/// planner's own description. Every narrowing option that applies to the workload is added. `O(options)`.
pub fn among(planner: &dyn Planner, workload: &Workload, options: &Options, own: Option<String>) -> Option<String> {
    let Proves::Among(bearings) = planner.declaration().proves else { return own };
    let ignored = planner.ignores(workload);
    let narrowed =
        bearings.iter().filter(|(name, _)| !ignored.contains(name)).filter_map(|(_, bearing)| match bearing {
            Bearing::Narrows(left) => left(options),
            Bearing::Search | Bearing::Question | Bearing::Told => None,
        });
    let narrowed: Vec<String> = narrowed.collect();
    if narrowed.is_empty() {
        return own;
    }
    let plans = own.unwrap_or_else(|| "plans".into());
    let separated = if plans.contains(", ") { ", " } else { " " };
    Some(format!("{plans}{separated}{}", narrowed.join(", ")))
}

/// Completes the description of an outcome's proof. Withdraws the status optimal if the planner declares no proof.
pub fn tell(planner: &dyn Planner, problem: &Problem, outcome: &mut Outcome) {
    if matches!(planner.declaration().proves, Proves::Nothing) && outcome.status == Status::Optimal {
        outcome.status = Status::Feasible;
    }
    let own = outcome.proven_among.take();
    if outcome.plan.is_some() && (outcome.status == Status::Optimal || outcome.lower_bound.is_some()) {
        outcome.proven_among = among(planner, &problem.workload, &problem.options, own);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::collections::BTreeSet;

    use super::*;
    use crate::{self as planner, OptionKind};
    use plantui_core::workload;

    /// Planners that claim nothing. Their options need no declaration.
    const PROVE_NOTHING: [&str; 3] = ["dapple-hpgo", "parmesan", "ensemble"];

    #[test]
    fn every_option_of_every_planner_says_what_it_means_for_a_proof() {
        for planner in planner::all() {
            let id = planner.info().id;
            let own: BTreeSet<&str> = planner.options().iter().map(|spec| spec.name).collect();
            match planner.declaration().proves {
                Proves::Nothing => assert!(own.is_empty() || PROVE_NOTHING.contains(&id), "{id} declares nothing"),
                Proves::Among(bearings) => {
                    let declared: BTreeSet<&str> = bearings.iter().map(|(name, _)| *name).collect();
                    assert_eq!((&declared, bearings.len()), (&own, own.len()), "{id}");
                }
            }
        }
    }

    #[test]
    fn an_option_that_narrows_says_so_at_some_value_and_nothing_of_other_options() {
        let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../inputs/two-kinds.json");
        let workloads =
            [workload::builtin(), workload::load(Path::new("gpt2")).unwrap(), workload::load(&kinds).unwrap()];
        for planner in planner::all() {
            let Proves::Among(bearings) = planner.declaration().proves else { continue };
            let specs = planner.options();
            for spec in specs {
                let ignores = planner.declaration().ignores;
                let workload = workloads.iter().find(|own| !ignores(own).contains(&spec.name)).unwrap();
                let said = |options: &Options| among(*planner, workload, options, None);
                let (_, bearing) = bearings.iter().find(|(name, _)| *name == spec.name).unwrap();
                let values: Vec<String> = match spec.kind {
                    OptionKind::Flag { .. } => vec!["true".into(), "false".into()],
                    OptionKind::Choice { choices, .. } => choices.iter().map(|choice| choice.0.to_string()).collect(),
                    OptionKind::Number { least, most, .. } => vec![least.to_string(), most.to_string()],
                    OptionKind::Quantity { .. } => vec!["3e9".into()],
                    OptionKind::File { example } | OptionKind::Text { example } => vec![example.into()],
                };
                // Some options take effect only together with another one.
                let beside = specs.iter().any(|spec| spec.name == "schedule").then_some("schedule=interleaved");
                let given = |own: Option<String>| {
                    let settings: Vec<String> = own.into_iter().chain(beside.map(String::from)).collect();
                    let own_last = settings.iter().rev().map(String::as_str);
                    said(&Options::parse(planner.info().id, specs, own_last).unwrap())
                };
                let by_default = given(None);
                let changes = values.iter().any(|value| given(Some(format!("{}={value}", spec.name))) != by_default);
                let narrows = matches!(bearing, Bearing::Narrows(_));
                // The planner describes the effect of a schedule's own options together with the schedule.
                let schedule = matches!(bearing, Bearing::Told) && spec.name == "schedule";
                assert!(changes == narrows || schedule, "{}: {}", planner.info().id, spec.name);
            }
        }
    }

    #[test]
    fn what_is_left_reads_as_one_phrase() {
        let joint = planner::find("joint").unwrap();
        let given = |settings: &[&str], own: Option<&str>| {
            let options = Options::parse("joint", joint.options(), settings.iter().copied()).unwrap();
            among(joint, &workload::builtin(), &options, own.map(String::from))
        };
        assert_eq!(given(&[], Some("plans that engines run, 1F1B")).unwrap(), "plans that engines run, 1F1B");
        assert_eq!(given(&[], None), None);
        assert_eq!(given(&["stages=1"], None).unwrap(), "plans with exactly 1 stage");
        assert_eq!(
            given(&["stages=7", "recompute=never", "headroom=10"], Some("plans that engines run, 1F1B")).unwrap(),
            "plans that engines run, 1F1B, without recomputation, with exactly 7 stages, with 10% of memory kept free"
        );
    }
}
