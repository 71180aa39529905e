//! What the independent check says of a plan: by node, by stage, as a whole.

use super::{Measure, violation::Violation};

/// What one node costs within its stage; seconds per sample and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NodeScore {
    /// Compute, divided by the stage's replicas.
    pub compute_s: f64,
    /// Tensors that cross the stage's border at this node.
    pub communication_s: f64,
    /// This node's share of the gradient all-reduce.
    pub sync_s: f64,
    /// `a · y + b`.
    pub memory_bytes: f64,
}

/// What one stage costs; seconds per sample and bytes per device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageScore {
    /// Compute.
    pub compute_s: f64,
    /// Tensors across its borders, both ways.
    pub communication_s: f64,
    /// Gradient all-reduce over its replicas, spread over the batch.
    pub sync_s: f64,
    /// The sum of the three, as the planner's objective counts it.
    pub load_s: f64,
    /// The part of it that is of the backward pass, where the profile tells the passes apart; else 0.
    pub backward_s: f64,
    /// The part of the compute that is of the backward pass, where the profile tells the passes apart; else 0.
    pub backward_compute_s: f64,
    /// The part of the communication that comes in, where the profile tells both directions apart; else 0.
    pub received_s: f64,
    /// Memory on each of its devices.
    pub memory_bytes: f64,
    /// The part of it that grows with microbatches in flight.
    pub activation_bytes: f64,
    /// Microbatches in flight, y.
    pub in_flight: u32,
    /// When it runs, if the plan is measured by latency.
    pub sample: Option<SampleTimes>,
    /// By position in the stage's node list.
    pub nodes: Vec<NodeScore>,
}

/// When a stage runs for a single sample, seconds after the sample's arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleTimes {
    /// When it first starts.
    pub start_s: f64,
    /// When it is finished.
    pub finish_s: f64,
    /// The part of the latency during which everything waits for it; over all stages these add up to the latency.
    pub critical_s: f64,
}

/// What the check of a plan found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    /// By stage; loads of stages with unknown modes leave those nodes out.
    pub stages: Vec<StageScore>,
    /// What the value measures: the plan's own measure.
    pub measure: Measure,
    /// The objective in the measure's unit; meaningful only if `violations` is empty.
    pub value: f64,
    /// The largest load of a stage, seconds per sample; meaningful only if `violations` is empty.
    pub slowest_s: f64,
    /// Everything that is wrong with the plan.
    pub violations: Vec<Violation>,
}

impl Score {
    /// Whether the plan keeps every rule.
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// Index of the stage that limits the rest: the one with the largest load, or, where the plan is measured by latency,
    /// the one for which everything waits longest.
    pub fn bottleneck(&self) -> Option<usize> {
        let weight = |i: usize| {
            let stage: &StageScore = &self.stages[i];
            stage.sample.map_or(stage.load_s, |times| times.critical_s)
        };
        (0..self.stages.len()).reduce(|best, i| if weight(i) > weight(best) { i } else { best })
    }

    /// The most memory any device needs, bytes.
    pub fn peak_memory_bytes(&self) -> f64 {
        self.stages.iter().map(|s| s.memory_bytes).fold(0.0, f64::max)
    }
}
