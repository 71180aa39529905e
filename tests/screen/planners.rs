//! Planners that do as a test needs: refuse, fail, find nothing.

use plantui::{
    cluster::LimitKind,
    family,
    plan::{Plan, Stage},
    planner::{
        Declaration, Infeasible, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Search, Status,
    },
    workload::{Choice, NodeIndex},
};

/// Declaration of a planner of the tests.
const fn declared(id: &'static str, name: &'static str, objective: &'static str) -> Declaration {
    let info = PlannerInfo { id, name, paper: "none", summary: "a planner of the tests", objective, unit: "s" };
    Declaration { info, ..Declaration::NEW }
}

/// Everything in one stage on one device; needs at least two devices, so that there is an infeasible side.
pub(crate) struct OneStage;
/// Cannot plan anything.
pub(crate) struct Refusing;
/// Panics.
pub(crate) struct Panicking;
/// Publishes a plan, then waits until it is stopped; without a plan where there is only one device.
pub(crate) struct Endless;

pub(crate) static ALL: [&dyn Planner; 4] = [&OneStage, &Refusing, &Panicking, &Endless];
/// Like the first, but for another objective.
pub(crate) struct Quick;

/// Planners of two objectives.
pub(crate) static OBJECTIVES: [&dyn Planner; 4] = [&OneStage, &Quick, &Refusing, &Panicking];
/// More than a small screen has lines for.
pub(crate) static MANY: [&dyn Planner; 26] = [
    &OneStage, &Endless, &Endless, &Endless, &Endless, &Endless, &Endless, &Endless, &Endless, &Endless, &Endless,
    &Endless, &Endless, &Endless, &Endless, &Endless, &Endless, &Refusing, &Refusing, &Refusing, &Refusing, &Refusing,
    &Refusing, &Refusing, &Refusing, &Refusing,
];

static OPTIONS: [OptionSpec; 4] = [
    OptionSpec { name: "fast", label: "go fast", help: "does nothing", kind: OptionKind::Flag { default: true } },
    OptionSpec {
        name: "mode",
        label: "mode",
        help: "which mode of the nodes",
        kind: OptionKind::Choice {
            choices: &[("first", "the first of the file"), ("last", "the last of the file")],
            default: "first",
        },
    },
    OptionSpec {
        name: "restarts",
        label: "restarts",
        help: "does nothing",
        kind: OptionKind::Number { default: 10.0, least: 1.0, most: 1000.0, whole: true, zero: None },
    },
    OptionSpec {
        name: "split",
        label: "split",
        help: "does nothing",
        kind: OptionKind::File { example: "split.json" },
    },
];

fn one_stage(problem: &Problem, last: bool) -> (Plan, f64) {
    let profile = problem.workload.piper().expect("tests plan Piper workloads");
    let nodes: Vec<NodeIndex> = problem.workload.indices().collect();
    let mode = |v: NodeIndex| {
        let modes = profile.nodes[v].modes(1).expect("degree 1 is there");
        Choice::Mode(modes[if last { modes.len() - 1 } else { 0 }].id.clone())
    };
    let choices = nodes.iter().map(|&v| mode(v)).collect();
    let stage = Stage { nodes, choices, data_parallel: 1, tensor_parallel: 1, devices: vec![] };
    let plan = Plan { stages: vec![stage], ..Plan::default() }.with_consecutive_devices();
    let value = family::check(&problem.workload, &problem.limits, &plan).value;
    (plan, value)
}

impl Planner for OneStage {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration =
            Declaration { options: &OPTIONS, ..declared("one", "The one one", "time_per_sample") };
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, _: &Search) -> Outcome {
        if problem.limits.devices < 2 {
            let mut outcome = Outcome::new(Status::Infeasible);
            outcome.infeasible = Some(Infeasible {
                limits: vec![LimitKind::Devices],
                smallest_memory_bytes: Some(3.3e9),
                fewest_devices: Some(2),
                explanation: "One device is not enough for the planner of the tests.".into(),
            });
            return outcome;
        }
        let (plan, value) = one_stage(problem, problem.options.choice("mode") == "last");
        let mut outcome = Outcome::new(Status::Feasible);
        outcome.plan = Some(plan);
        outcome.objective = Some(value);
        outcome.lower_bound = Some(value / 2.0);
        outcome
    }
}

impl Planner for Quick {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration =
            Declaration { options: &OPTIONS, ..declared("quick", "The quick one", "latency") };
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        OneStage.plan(problem, search)
    }
}

impl Planner for Refusing {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = Declaration {
            can_plan: |_| Err("it has no moon in it; load one that has".into()),
            ..declared("refusing", "The refusing one", "time_per_sample")
        };
        &DECLARATION
    }

    fn plan(&self, _: &Problem, _: &Search) -> Outcome {
        unreachable!("what cannot plan is not asked to")
    }
}

impl Planner for Panicking {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = declared("panicking", "The panicking one", "time_per_sample");
        &DECLARATION
    }

    fn plan(&self, _: &Problem, _: &Search) -> Outcome {
        panic!("the planner of the tests fell over")
    }
}

impl Planner for Endless {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = declared("endless", "The endless one", "time_per_sample");
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        if problem.limits.devices > 1 {
            let (plan, value) = one_stage(problem, false);
            search.improve(value, &plan);
            search.report_bound(value / 4.0);
            search.report_fraction(0.5);
        }
        while !search.cancelled() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Outcome::new(Status::Cancelled)
    }
}
