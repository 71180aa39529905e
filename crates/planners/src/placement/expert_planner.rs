//! A given split as a registered planner: the paper's human expert.
//!
//! The file may name only nodes of the forward pass, or one node of each colour class; the others follow their class
//! ([`baselines::expert`]). Linear time.

use std::path::PathBuf;

use super::{
    PlacementProblem, PlacementResult, Split, baselines,
    latency_planners::{accelerators, scored},
    planners::{PAPER, alike_profile, outcome},
};
use crate::{
    Bearing, Declaration, OptionError, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Proves, Status,
};
use plantui_core::{
    cluster::LimitKind,
    search::Search,
    source::{LoadError, error::printable},
    workload::formats::{self, detect},
};

static OPTIONS: [OptionSpec; 2] = [
    OptionSpec {
        name: "split",
        label: "split",
        help: "file with the nodes of each accelerator and CPU, in the format of the published programs",
        kind: OptionKind::File { example: "split.json" },
    },
    OptionSpec {
        name: "objective",
        label: "objective",
        help: "objective of the split",
        kind: OptionKind::Choice {
            choices: &[("max-load", "the load of the busiest device"), ("latency", "the time of one sample")],
            default: "max-load",
        },
    },
];

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "placement-expert",
        name: "Placement: expert",
        paper: PAPER,
        summary: "a split from your file, extended to the whole graph and scored",
        objective: "max_load",
        unit: "ms",
    },
    options: &OPTIONS,
    proves: Proves::Among(&[("split", Bearing::Question), ("objective", Bearing::Question)]),
    limits: &LimitKind::PLACEMENT,
    can_plan: |workload| alike_profile(workload).map(drop),
    check_options: |problem| extended(problem).map(drop),
    ..Declaration::NEW
};

/// The expert planner.
#[derive(Debug)]
pub(crate) struct Expert;

/// Split of the file, extended to the whole graph.
fn extended(problem: &Problem) -> Result<PlacementResult, OptionError> {
    let Some(path): Option<PathBuf> = problem.options.file("split") else {
        return Err(OptionError::Missing {
            planner: DECLARATION.info.id.into(),
            name: "split".into(),
            example: "split.json".into(),
        });
    };
    let source = printable(&path.display().to_string());
    let workload = &problem.workload;
    let profile = alike_profile(workload).map_err(|reason| LoadError::file(&source, reason.to_string(), ""))?;
    let bytes = formats::read_file(&path)?;
    let named = Split::read(detect::text(&bytes, &source, &detect::PLAN)?, &source, &workload.nodes)?;
    let PlacementProblem { profile, limits, .. } = PlacementProblem::with(profile, &problem.limits);
    baselines::expert(&workload.dag, &profile, &limits, &named, &workload.nodes)
        .map_err(|reason| LoadError::file(&source, reason.to_string(), "").into())
}

impl Planner for Expert {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(asked) = PlacementProblem::of(problem) else { return Outcome::new(Status::Infeasible) };
        let placed = match extended(problem) {
            Ok(placed) => placed,
            Err(refused) => return Outcome::refused(refused.to_string()),
        };
        let mut found = match problem.options.choice("objective") {
            "latency" => scored(problem, &asked, &placed.split.as_ref().map(accelerators).unwrap_or_default()),
            _ => outcome(problem, &asked, placed, search),
        };
        if let (Some(plan), Some(value)) = (&found.plan, found.objective) {
            search.improve(value, plan);
        }
        found.statistics.seconds = search.elapsed().as_secs_f64();
        found
    }
}
