//! Planners with bugs, to test how callers react.

use super::{
    Declaration, ManyRuns, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Search, converted::EQUAL_PARTITION,
};
use plantui_core::cluster::LimitKind;

/// Kind of bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liar {
    /// States half of the plan's value.
    Claims,
    /// Drops the last stage.
    Breaks,
    /// Panics.
    Panics,
    /// Plans for the first of many numbers of devices, then panics.
    Tires,
}

impl Planner for Liar {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = Declaration {
            info: PlannerInfo {
                id: "liar",
                name: "Liar",
                paper: "none",
                summary: "has a bug",
                objective: "time_per_sample",
                unit: "s",
            },
            can_plan: |workload| EQUAL_PARTITION.can_plan(workload),
            ..Declaration::NEW
        };
        &DECLARATION
    }

    fn options(&self) -> &'static [OptionSpec] {
        EQUAL_PARTITION.options()
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let mut outcome = EQUAL_PARTITION.plan(problem, search);
        match self {
            Liar::Claims => outcome.objective = outcome.objective.map(|value| value / 2.0),
            Liar::Breaks => drop(outcome.plan.as_mut().and_then(|plan| plan.stages.pop())),
            Liar::Panics => panic!("no such table"),
            Liar::Tires => {}
        }
        outcome
    }

    fn answers_many(&self, _: &Problem) -> bool {
        *self == Liar::Tires
    }

    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        let search = run.begin(devices[0]);
        let limits = problem.limits.with(LimitKind::Devices, f64::from(devices[0]));
        run.end(devices[0], self.plan(&Problem { limits, ..problem.clone() }, &search));
        panic!("out of breath");
    }
}
