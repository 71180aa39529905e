//! Graph partitioners as registered planners: Scotch if it is installed, and our own.
//!
//! Their splits need not be contiguous and prove nothing. Either is scored by max-load or by single-sample latency.

use super::{
    PlacementProblem, PlacementResult, Split,
    latency_planners::{accelerators, scored},
    multilevel,
    planners::{PAPER, alike_profile, outcome},
    scotch,
};
use crate::{
    Bearing, CannotPlan, Declaration, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Proves, Status,
};
use plantui_core::{cluster::LimitKind, search::Search};

const OBJECTIVE: OptionSpec = OptionSpec {
    name: "objective",
    label: "objective",
    help: "objective of the split",
    kind: OptionKind::Choice {
        choices: &[("max-load", "the load of the busiest device"), ("latency", "the time of one sample")],
        default: "max-load",
    },
};

static SCOTCH_OPTIONS: [OptionSpec; 1] = [OBJECTIVE];
static MULTILEVEL_OPTIONS: [OptionSpec; 2] = [
    OBJECTIVE,
    OptionSpec {
        name: "restarts",
        label: "restarts",
        help: "runs with different random matchings; the best is kept",
        kind: OptionKind::Number { default: 16.0, least: 1.0, most: 10_000.0, whole: true, zero: None },
    },
];

/// Declaration of the planner.
static SCOTCH: Declaration = Declaration {
    info: PlannerInfo {
        id: "placement-scotch",
        name: "Placement: Scotch",
        paper: PAPER,
        summary: "the partition of Scotch's gpart: balanced times, few transfers; ignores memory",
        objective: "max_load",
        unit: "ms",
    },
    options: &SCOTCH_OPTIONS,
    proves: Proves::Among(&[("objective", Bearing::Question)]),
    limits: &LimitKind::PLACEMENT,
    can_plan: |workload| alike_profile(workload).and_then(|_| installed().map(drop)),
    ..Declaration::NEW
};

/// Scotch's `gpart`.
#[derive(Debug)]
pub(crate) struct Scotch;

/// Declaration of the planner.
static MULTILEVEL: Declaration = Declaration {
    info: PlannerInfo {
        id: "placement-multilevel",
        name: "Placement: multilevel",
        paper: "Karypis and Kumar: A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs, SIAM J. Sci. \
                Comput. 1998",
        summary: "coarsens, splits and refines by the load of the busiest device; splits need not be contiguous",
        objective: "max_load",
        unit: "ms",
    },
    options: &MULTILEVEL_OPTIONS,
    proves: Proves::Among(&[("objective", Bearing::Question), ("restarts", Bearing::Search)]),
    limits: &LimitKind::PLACEMENT,
    can_plan: |workload| alike_profile(workload).map(drop),
    ..Declaration::NEW
};

/// Our own multilevel partitioner.
#[derive(Debug)]
pub(crate) struct Multilevel;

/// Path of the program, or the reason why Scotch cannot plan.
fn installed() -> Result<std::path::PathBuf, CannotPlan> {
    let missing = "Scotch's gpart is not on the PATH: install it (Debian: apt-get install scotch)";
    scotch::program().ok_or_else(|| missing.into())
}

/// Outcome of a split, by the chosen objective.
fn finished(problem: &Problem, asked: &PlacementProblem<'_>, placed: PlacementResult, search: &Search) -> Outcome {
    let counts = placed.counts.clone();
    let mut found = match (problem.options.choice("objective"), &placed.split) {
        ("latency", Some(split)) => {
            let notes = placed.notes.clone();
            let mut found = scored(problem, asked, &accelerators(split));
            found.notes.extend(notes);
            if let (Some(plan), Some(value)) = (&found.plan, found.objective) {
                search.improve(value, plan);
            }
            found
        }
        _ => outcome(problem, asked, placed, search),
    };
    found.statistics.counts = counts;
    found.statistics.seconds = search.elapsed().as_secs_f64();
    found
}

impl Planner for Scotch {
    fn declaration(&self) -> &'static Declaration {
        &SCOTCH
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(asked) = PlacementProblem::of(problem) else { return Outcome::new(Status::Infeasible) };
        let (dag, profile, limits) = (&problem.workload.dag, &asked.profile, &asked.limits);
        let placed = installed()
            .map_err(|reason| format!("No split: {reason}."))
            .and_then(|program| scotch::plan(&program, dag, profile, limits, search));
        match placed {
            Ok(placed) => finished(problem, &asked, placed, search),
            Err(explanation) => Outcome::refused(explanation),
        }
    }
}

impl Planner for Multilevel {
    fn declaration(&self) -> &'static Declaration {
        &MULTILEVEL
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(asked) = PlacementProblem::of(problem) else { return Outcome::new(Status::Infeasible) };
        let (dag, profile, limits) = (&problem.workload.dag, &asked.profile, &asked.limits);
        let runs = problem.options.number("restarts") as u32;
        let by_load = problem.options.choice("objective") == "max-load";
        let improved = |value: f64, split: &Split| {
            if by_load {
                search.improve(value, &split.plan(limits));
            }
        };
        let handle = if by_load { search.clone() } else { search.quiet() };
        let placed = multilevel::plan(dag, profile, limits, runs, &handle, &improved);
        finished(problem, &asked, placed, search)
    }
}
