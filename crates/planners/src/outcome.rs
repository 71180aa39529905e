//! Result of a planner's run.

use plantui_core::{
    cluster::{LimitKind, Limits},
    plan::{Plan, configuration::ConfigurationPart, document::MappingPart},
    units,
};

/// Status of a finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The plan is proven to be the best under the planner's options.
    Optimal,
    /// There is a plan without a proof of optimality.
    Feasible,
    /// It is proven that no plan satisfies the limits.
    Infeasible,
    /// Stopped by the user or the deadline.
    Cancelled,
}

/// Sentence on the least memory with these devices, and the fewest devices with this memory, with which a plan exists:
/// ` Feasible with 8 x 4.59 GiB, or with 144 x 1 GiB.`; empty if neither is known.
pub(crate) fn feasible_with(limits: &Limits, memory_bytes: Option<f64>, devices: Option<u32>) -> String {
    let memory = memory_bytes.map(|bytes| (limits.devices, units::bytes_enough(bytes, limits.memory_limit())));
    let devices = devices.map(|devices| (devices, units::bytes_exact(limits.memory_limit())));
    feasible(memory.into_iter().chain(devices))
}

/// The same for numbers of devices and their memory, in the order of the sentence.
pub(crate) fn feasible(enough: impl Iterator<Item = (u32, String)>) -> String {
    let ways: Vec<String> = enough.map(|(devices, each)| format!("with {devices} x {each}")).collect();
    if ways.is_empty() { String::new() } else { format!(" Feasible {}.", ways.join(", or ")) }
}

/// Limits that no plan satisfies, and values that would suffice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Infeasible {
    /// Limits that exclude all plans, the most informative first.
    pub limits: Vec<LimitKind>,
    /// Smallest memory per device (bytes) that allows a plan, with everything else unchanged; `None` if no memory does.
    pub smallest_memory_bytes: Option<f64>,
    /// Fewest devices that allow a plan, with everything else unchanged; `None` if no number does.
    pub fewest_devices: Option<u32>,
    /// Explanation in one or two sentences.
    pub explanation: String,
}

/// Cost and counts of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statistics {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Named counts, such as `closed sets`.
    pub counts: Vec<(&'static str, f64)>,
}

/// Another plan found beside the best one.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The plan.
    pub plan: Plan,
    /// Objective of the plan.
    pub value: f64,
    /// Largest memory of a device, bytes.
    pub memory_bytes: f64,
}

impl Alternative {
    /// Entry of the plan document, if the plan is a configuration.
    pub fn part(&self) -> Option<ConfigurationPart> {
        let part = ConfigurationPart::from(self.plan.configuration()?);
        Some(ConfigurationPart { iteration_s: Some(self.value), memory_bytes: Some(self.memory_bytes), ..part })
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Status.
    pub status: Status,
    /// The best plan found.
    pub plan: Option<Plan>,
    /// Objective of the plan as the planner computed it.
    pub objective: Option<f64>,
    /// Proven lower bound on the objective of any plan.
    pub lower_bound: Option<f64>,
    /// True if the bound holds for every mapping onto the topology of the limits.
    pub bound_holds_on_routes: bool,
    /// Plans that the proof and the bound cover, if not all: `contiguous splits in a row`. The effects of options are
    /// added where planners are run.
    pub proven_among: Option<String>,
    /// Best plans: this one first, then the plans that no other one dominates in both value and memory.
    pub alternatives: Vec<Alternative>,
    /// Placement on a topology, for planners that model one.
    pub mapping: Option<MappingPart>,
    /// Reason why there is no plan.
    pub infeasible: Option<Infeasible>,
    /// Assumptions behind the result, one sentence each.
    pub notes: Vec<String>,
    /// Cost of the run.
    pub statistics: Statistics,
}

impl Outcome {
    /// Withdraws the proof, because the plan has another value than the planner computed.
    pub fn not_proven(&mut self) {
        if self.status == Status::Optimal {
            self.status = Status::Feasible;
        }
        (self.lower_bound, self.proven_among) = (None, None);
    }

    /// True if there is no plan because of the memory limit.
    pub fn lacks_memory(&self) -> bool {
        self.infeasible.as_ref().is_some_and(|story| story.limits.contains(&LimitKind::Memory))
    }

    /// Returns an outcome with only a status.
    pub fn new(status: Status) -> Self {
        Outcome {
            status,
            plan: None,
            objective: None,
            lower_bound: None,
            bound_holds_on_routes: false,
            proven_among: None,
            alternatives: vec![],
            mapping: None,
            infeasible: None,
            notes: vec![],
            statistics: Statistics::default(),
        }
    }

    /// Returns an outcome without a plan, for a reason other than a limit.
    pub fn refused(explanation: impl Into<String>) -> Self {
        let story = Infeasible { explanation: explanation.into(), ..Infeasible::default() };
        Outcome { infeasible: Some(story), ..Outcome::new(Status::Infeasible) }
    }

    /// Relative gap between objective and bound: 0 if proven, `None` if either is missing.
    pub fn gap(&self) -> Option<f64> {
        let (value, bound) = (self.objective?, self.lower_bound?);
        let larger_is_better = self.plan.as_ref().is_some_and(|plan| plan.measure.larger_is_better());
        let short = if larger_is_better { bound - value } else { value - bound };
        Some(if value > 0.0 { (short / value).max(0.0) } else { 0.0 })
    }
}
