//! Planners on workloads of another family: convert, plan, carry the plan back, score it on the original.
//!
//! [`Converted`] wraps a planner and passes native workloads through unchanged. It converts other workloads
//! ([`workload::convert`](plantui_core::workload::convert)) and takes only the split from the planner's answer. The stages get
//! the original's nodes and choices and one device each. Their value is what [`family::check()`] finds by the
//! original's own measure. So nothing is proven, and the notes list the assumptions.
//!
//! Memory: in Piper's pipelines a stage holds the activations of as many microbatches as there are stages from it to
//! the end. A device placement cannot express that. So sizes first count one microbatch in flight. While the plan does
//! not fit, they count as many as it has stages. If no plan fits, the same is tried with every node in its smallest
//! mode.

use std::sync::Arc;

use super::{
    CannotPlan, Declaration, Infeasible, ManyRuns, OptionError, Outcome, Planner, Problem, Search, Status,
    equal_partition, even, one_by_one, piper, placement,
};
use plantui_core::{
    cluster::{LimitKind, Limits},
    family,
    plan::Violation,
    workload::{
        Workload,
        convert::{self, Conversion, ConversionDirection, ConversionError, ModeRule},
    },
};

/// Bytes per second that convert transfer times of a placement to bytes. Stages are charged the time, so any value is
/// valid.
pub(super) const NOMINAL_BANDWIDTH: f64 = 16e9;
/// Number of microbatches if every stage must be one device: only 1 replica divides it. (A prime above all device
/// counts.)
pub(super) const INDIVISIBLE: u32 = 999_983;

/// A planner that also plans workloads of another family.
pub(crate) struct Converted {
    planner: &'static dyn Planner,
}

/// Piper on device placements.
pub(crate) static PIPER: Converted = Converted { planner: &piper::Piper };
/// Equal partition on device placements.
pub(crate) static EQUAL_PARTITION: Converted = Converted { planner: &equal_partition::EqualPartition };
/// The placement DP on Piper's profile.
pub(crate) static PLACEMENT_DP: Converted = Converted { planner: &placement::planners::DP };
/// The linearised placement DP on Piper's profile.
pub(crate) static PLACEMENT_LINEARISED: Converted = Converted { planner: &placement::planners::LINEARISED };
/// PipeDream on Piper's profile.
pub(crate) static PLACEMENT_PIPEDREAM: Converted = Converted { planner: &placement::planners::PIPEDREAM };
/// One accelerator on Piper's profile.
pub(crate) static PLACEMENT_ONE: Converted = Converted { planner: &placement::planners::ONE };

impl Planner for Converted {
    fn declaration(&self) -> &'static Declaration {
        self.planner.declaration()
    }

    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan> {
        let Err(reason) = self.planner.can_plan(workload) else { return Ok(()) };
        let Some(way) = ConversionDirection::of(workload) else { return Err(reason) };
        let converted = convert(workload, way, ModeRule::Keeping, 1, NOMINAL_BANDWIDTH)
            .map_err(|why| format!("{reason}; {why}"))?;
        self.planner.can_plan(&converted.workload)
    }

    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        // Files that an option names belong to the original workload only.
        if self.is_native(&problem.workload) { self.planner.check_options(problem) } else { Ok(()) }
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        if self.is_native(&problem.workload) {
            return self.planner.plan(problem, search);
        }
        let Some(way) = ConversionDirection::of(&problem.workload) else {
            return refused(ConversionError::NoPlacement.to_string(), vec![]);
        };
        let outcome = self.plan_in(way, ModeRule::Keeping, problem, search);
        // Nodes of a placement have no other modes.
        if outcome.status != Status::Infeasible || way == ConversionDirection::ToPipeline {
            return outcome;
        }
        self.plan_in(way, ModeRule::Smallest, problem, search)
    }

    fn answers_many(&self, problem: &Problem) -> bool {
        self.is_native(&problem.workload) && self.planner.answers_many(problem)
    }

    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        if self.is_native(&problem.workload) {
            return self.planner.plan_many(problem, devices, run);
        }
        one_by_one(self, problem, devices, run);
    }
}

/// Result of planning with a given number of microbatches in flight.
enum Attempt {
    Ended(Box<Outcome>),
    /// The plan does not fit, and its stages outnumber the microbatches assumed in flight. Holds the number of stages.
    TooManyInFlight(u32),
}

impl Converted {
    /// Plans with every node in the given mode.
    fn plan_in(&self, way: ConversionDirection, mode: ModeRule, problem: &Problem, search: &Search) -> Outcome {
        let mut in_flight = 1;
        loop {
            match self.attempt((way, mode), problem, in_flight, search) {
                Attempt::Ended(outcome) => return *outcome,
                Attempt::TooManyInFlight(stages) => in_flight = stages,
            }
        }
    }

    fn attempt(
        &self,
        (way, mode): (ConversionDirection, ModeRule),
        problem: &Problem,
        in_flight: u32,
        search: &Search,
    ) -> Attempt {
        let ended = |outcome: Outcome| Attempt::Ended(Box::new(outcome));
        let (original, limits) = (&problem.workload, &problem.limits);
        let pipeline = way == ConversionDirection::ToPlacement;
        let bandwidth = if pipeline { limits.bandwidth() } else { NOMINAL_BANDWIDTH };
        let conversion = match convert(original, way, mode, in_flight, bandwidth) {
            Ok(conversion) => conversion,
            Err(reason) => return ended(refused(reason.to_string(), vec![])),
        };
        if search.incumbent().is_none() {
            even::best(problem, &conversion, search);
        }
        let Conversion { workload, members, choices, assumptions } = conversion;
        let microbatches = if pipeline { limits.microbatches } else { INDIVISIBLE };
        // Every stage has at least one replica, and there are at most as many replicas as microbatches.
        let devices = limits.devices.min(microbatches);
        if devices == 0 {
            return ended(refused("There is no accelerator, and stages run on accelerators only.".into(), assumptions));
        }
        let asked = Problem {
            workload: Arc::new(workload),
            limits: Limits { devices, cpus: 0, microbatches, bandwidth_bytes_per_s: Some(bandwidth), ..limits.clone() },
            options: problem.options.clone(),
        };
        // Values and plans of the converted workload are not published.
        let mut outcome = self.planner.plan(&asked, &search.quiet());
        let mut notes = assumptions;
        notes.push("No proof: the planner saw the converted workload. The value is that of the original.".into());
        outcome.notes = notes;
        (outcome.objective, outcome.lower_bound, outcome.proven_among) = (None, None, None);
        if let Some(infeasible) = &mut outcome.infeasible {
            // Limits that suffice for the converted workload may not suffice for the original.
            (infeasible.smallest_memory_bytes, infeasible.fewest_devices) = (None, None);
        }
        let Some(found) = outcome.plan.take() else { return ended(outcome) };
        let stages = found.stages.iter().map(|stage| &*stage.nodes).filter(|nodes| !nodes.is_empty());
        let plan = even::carried_back(original, (&members, &choices), stages);
        let score = family::check(original, limits, &plan);
        let stages = plan.stages.len() as u32;
        if let Some(violation) = score.violations.first() {
            if search.cancelled() {
                // The plan that was published before remains.
                return ended(Outcome { notes: outcome.notes, ..Outcome::new(Status::Cancelled) });
            }
            let memory = matches!(violation, Violation::OutOfMemory { .. });
            if pipeline && memory && stages > in_flight {
                return Attempt::TooManyInFlight(stages);
            }
            let explanation = format!("The plan of the converted workload is not valid for the original: {violation}.");
            return ended(refused(explanation, outcome.notes));
        }
        search.improve(score.value, &plan);
        if outcome.status == Status::Optimal {
            outcome.status = Status::Feasible;
        }
        outcome.objective = Some(score.value);
        outcome.plan = Some(plan);
        ended(outcome)
    }
}

/// Converts the workload to the other family.
fn convert(
    workload: &Workload,
    way: ConversionDirection,
    mode: ModeRule,
    in_flight: u32,
    bandwidth: f64,
) -> Result<Conversion, ConversionError> {
    match way {
        ConversionDirection::ToPlacement => convert::to_placement(workload, mode, in_flight, bandwidth),
        ConversionDirection::ToPipeline => convert::to_piper(workload, INDIVISIBLE, bandwidth),
    }
}

fn refused(explanation: String, notes: Vec<String>) -> Outcome {
    let infeasible =
        Infeasible { limits: vec![LimitKind::Memory, LimitKind::Devices], explanation, ..Infeasible::default() };
    Outcome { infeasible: Some(infeasible), notes, ..Outcome::new(Status::Infeasible) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use plantui_core::workload;

    #[test]
    fn a_workload_without_a_counterpart_is_refused_with_a_sentence() {
        let text =
            "node1 -- A -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=8\n";
        let workload = workload::load_bytes(text.as_bytes(), "graph.txt", "graph").unwrap();
        assert!(PIPER.can_plan(&workload).is_err());
        let problem = Problem { workload: Arc::new(workload), limits: Limits::NEUTRAL, options: Options::default() };
        let outcome = PIPER.plan(&problem, &Search::default());
        assert_eq!(outcome.status, Status::Infeasible);
        let told = outcome.infeasible.expect("why").explanation;
        assert_eq!(told, "it has no transfers and sizes of a device placement to convert");
    }
}
