//! The search over all splits ([`ip`](super::ip)) as a registered planner.

use super::{
    PlacementProblem, Split,
    ip::{Contiguity, IpSettings, Objective, ThroughputProblem, search},
    planners::{PAPER, alike_profile},
    smallest_memory,
};
use crate::{
    Bearing, Declaration, Infeasible, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Proves, Status,
    Tunable,
};
use plantui_core::{
    cluster::LimitKind,
    plan::{Measure, Plan},
    search::Search,
    units,
};

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "placement-ip",
        name: "Placement: IP",
        paper: PAPER,
        summary: "splits that need not be contiguous, improved and bounded until proven or a limit of rounds is \
            reached",
        objective: "max_load",
        unit: "ms",
    },
    options: &OPTIONS,
    proves: Proves::Among(&BEARINGS),
    tunables: &[Tunable::Freedom("contiguity")],
    limits: &LimitKind::PLACEMENT,
    can_plan: |workload| alike_profile(workload).map(drop),
    ..Declaration::NEW
};

/// Planner over all splits, or over those that are contiguous on every device, with a lower bound.
#[derive(Debug)]
pub(crate) struct IntegerProgram;

const CONTIGUITY: OptionSpec = OptionSpec {
    name: "contiguity",
    label: "contiguity",
    help: "splits that are searched",
    kind: OptionKind::Choice {
        choices: &[
            ("free", "all"),
            ("contiguous", "on every device the forward nodes are convex: no path leaves it and comes back"),
        ],
        default: "free",
    },
};

const OBJECTIVE: OptionSpec = OptionSpec {
    name: "objective",
    label: "objective",
    help: "what is minimised",
    kind: OptionKind::Choice {
        choices: &[
            ("max-load", "the load of the busiest device"),
            ("separate-maxima", "the largest forward load plus the largest backward load"),
        ],
        default: "max-load",
    },
};

/// Effect of each option on the set of plans that a proof covers.
static BEARINGS: [(&str, Bearing); OPTIONS.len()] = [
    (
        CONTIGUITY.name,
        Bearing::Narrows(|options| {
            let contiguous = options.choice(CONTIGUITY.name) == "contiguous";
            contiguous.then(|| "with the forward nodes of every device convex".into())
        }),
    ),
    (OBJECTIVE.name, Bearing::Question),
];

static OPTIONS: [OptionSpec; 2] = [CONTIGUITY, OBJECTIVE];

impl Planner for IntegerProgram {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, handle: &Search) -> Outcome {
        let Some(asked) = PlacementProblem::of(problem) else { return Outcome::new(Status::Infeasible) };
        let limits = asked.limits;
        let contiguous = problem.options.choice("contiguity") == "contiguous";
        let separate = problem.options.choice("objective") == "separate-maxima";
        let question = ThroughputProblem {
            dag: &problem.workload.dag,
            profile: &asked.profile,
            limits,
            contiguity: if contiguous { Contiguity::Contiguous } else { Contiguity::Free },
            objective: if separate { Objective::SeparateMaxima } else { Objective::MaxLoad },
        };
        let measure = if separate { Measure::SeparateMaxima } else { Measure::MaxLoad };
        let as_plan = |split: &Split| Plan { measure, ..split.plan(&limits) };
        let improved = |value: f64, split: &Split| handle.improve(value, &as_plan(split));
        let best = search(&question, &IpSettings::default(), handle, &improved);
        let mut outcome = Outcome::new(best.status);
        outcome.statistics.seconds = handle.elapsed().as_secs_f64();
        outcome.statistics.counts.push(("rounds", best.rounds as f64));
        outcome.lower_bound = Some(best.lower_bound).filter(|bound| bound.is_finite());
        match best.split {
            Some((value, split)) => {
                outcome.plan = Some(as_plan(&split));
                outcome.objective = Some(value);
            }
            None if best.status == Status::Infeasible => {
                outcome.infeasible = Some(infeasible(problem, &question, handle));
            }
            None => {
                // Neither found nor refuted; only more time could decide.
                outcome.status = Status::Cancelled;
                outcome.notes.push("no split within the memory was found, and none was ruled out".into());
            }
        }
        outcome
    }
}

/// Reason why there is no split. With a CPU there is one, unless a class has no device that can run it.
fn infeasible(problem: &Problem, question: &ThroughputProblem<'_>, handle: &Search) -> Infeasible {
    let (accelerators, limit) = (question.limits.accelerators, units::bytes_exact(problem.limits.memory_limit()));
    if question.profile.nodes.iter().any(|node| !node.supported) {
        let explanation = "Some nodes cannot run on an accelerator, and there is no CPU: allow one.".to_string();
        return Infeasible { limits: vec![LimitKind::Cpus], explanation, ..Infeasible::default() };
    }
    let mut explanation =
        format!("The colour classes cannot be packed into {accelerators} accelerators with {limit} each: allow a CPU.");
    let mut enough = None;
    // The least memory is computed from the given sizes, because counted sizes depend on the memory.
    let given = problem.workload.placement().unwrap_or(question.profile);
    if let Some(mut needed) = smallest_memory::any_split(given, accelerators, handle) {
        if question.contiguity == Contiguity::Contiguous {
            // A contiguous split of the DP is convex on every device; another convex split may need less.
            let quiet = handle.quiet();
            let least = smallest_memory::contiguous(question.dag, given, false, accelerators, &quiet);
            needed.enough = least.map_or(f64::INFINITY, |least| least.enough).max(needed.at_least);
        }
        explanation += &needed.sentence(given, problem.limits.memory_limit());
        enough = needed.exact();
    }
    let limits = vec![LimitKind::Memory, LimitKind::Devices];
    Infeasible { limits, smallest_memory_bytes: enough, fewest_devices: None, explanation }
}
