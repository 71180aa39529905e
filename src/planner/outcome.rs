//! How a planner's run ended.

use crate::{
    cluster::LimitKind,
    plan::{Plan, configuration::ConfigurationPart, document::MappingPart},
};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The plan is proven to be the best under the planner's options.
    Optimal,
    /// There is a plan, but no proof that it is the best.
    Feasible,
    /// It is proven that no plan keeps the limits.
    Infeasible,
    /// Stopped by the user or the deadline.
    Cancelled,
}

/// Which limit cannot be kept, and what would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Infeasible {
    /// The limits that stand in the way, most telling first.
    pub limits: Vec<LimitKind>,
    /// With everything else unchanged: the smallest memory per device (bytes) that allows a plan, if any does.
    pub smallest_memory_bytes: Option<f64>,
    /// With everything else unchanged: the fewest devices that allow a plan, if any number does.
    pub fewest_devices: Option<u32>,
    /// The whole story in a sentence or two.
    pub explanation: String,
}

/// What the run cost and saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statistics {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Named counts, such as `closed sets`.
    pub counts: Vec<(&'static str, f64)>,
}

/// A plan that was found beside the best.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The plan.
    pub plan: Plan,
    /// Its objective.
    pub value: f64,
    /// The most memory of a device, bytes.
    pub memory_bytes: f64,
}

impl Alternative {
    /// As the plan document lists it, where it is a configuration.
    pub fn part(&self) -> Option<ConfigurationPart> {
        let part = ConfigurationPart::from(self.plan.configuration()?);
        Some(ConfigurationPart { iteration_s: Some(self.value), memory_bytes: Some(self.memory_bytes), ..part })
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The best plan found.
    pub plan: Option<Plan>,
    /// Its objective as the planner computed it.
    pub objective: Option<f64>,
    /// A proven lower bound on the objective of any plan.
    pub lower_bound: Option<f64>,
    /// Whether the bound holds for every mapping onto the topology of the limits.
    pub bound_holds_on_routes: bool,
    /// The plans that proof and bound speak of, where those are not all: `contiguous splits in a row`. What options leave out is
    /// added where planners are run.
    pub proven_among: Option<String>,
    /// The best plans, this one first, then those that no other is both better and smaller than.
    pub alternatives: Vec<Alternative>,
    /// Where its parts sit on a topology, for planners that know one.
    pub mapping: Option<MappingPart>,
    /// Why there is no plan.
    pub infeasible: Option<Infeasible>,
    /// What the result rests on, a sentence each.
    pub notes: Vec<String>,
    /// What the run cost.
    pub statistics: Statistics,
}

impl Outcome {
    /// Takes back what was proven: the plan is worth something else than the planner counted on.
    pub(crate) fn not_proven(&mut self) {
        if self.status == Status::Optimal {
            self.status = Status::Feasible;
        }
        (self.lower_bound, self.proven_among) = (None, None);
    }

    /// Whether there is no plan because nothing fits into memory.
    pub fn lacks_memory(&self) -> bool {
        self.infeasible.as_ref().is_some_and(|story| story.limits.contains(&LimitKind::Memory))
    }

    /// An outcome with nothing but a status.
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

    /// No plan, for a reason that no limit explains.
    pub fn refused(explanation: impl Into<String>) -> Self {
        let story = Infeasible { explanation: explanation.into(), ..Infeasible::default() };
        Outcome { infeasible: Some(story), ..Outcome::new(Status::Infeasible) }
    }

    /// Relative gap between objective and bound: 0 when proven, `None` when either is missing.
    pub fn gap(&self) -> Option<f64> {
        let (value, bound) = (self.objective?, self.lower_bound?);
        let larger_is_better = self.plan.as_ref().is_some_and(|plan| plan.measure.larger_is_better());
        let short = if larger_is_better { bound - value } else { value - bound };
        Some(if value > 0.0 { (short / value).max(0.0) } else { 0.0 })
    }
}
