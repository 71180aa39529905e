//! Scores of the independent check: by node, by stage, and for the whole plan.

use super::{measure::Measure, violation::Violation};

/// Costs of one node within its stage; seconds per sample and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NodeScore {
    /// Compute, divided by the stage's replicas.
    pub compute_s: f64,
    /// Transfer of tensors that cross the stage's border at this node.
    pub communication_s: f64,
    /// This node's part of the gradient all-reduce.
    pub sync_s: f64,
    /// `a · y + b`.
    pub memory_bytes: f64,
}

/// Costs of one stage; seconds per sample and bytes per device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageScore {
    /// Compute.
    pub compute_s: f64,
    /// Transfer of tensors across the stage's borders, both ways.
    pub communication_s: f64,
    /// Gradient all-reduce over its replicas, spread over the batch.
    pub sync_s: f64,
    /// Sum of the three, as the planner's objective counts it.
    pub load_s: f64,
    /// Part of `load_s` in the backward pass, if the profile separates the passes; else 0.
    pub backward_s: f64,
    /// Part of `compute_s` in the backward pass, if the profile separates the passes; else 0.
    pub backward_compute_s: f64,
    /// Incoming part of `communication_s`, if the profile separates the directions; else 0.
    pub received_s: f64,
    /// Memory on each device of the stage.
    pub memory_bytes: f64,
    /// Part of `memory_bytes` that grows with microbatches in flight.
    pub activation_bytes: f64,
    /// Microbatches in flight, y.
    pub in_flight: u32,
    /// Times of its run, if the plan is measured by latency.
    pub sample: Option<SampleTimes>,
    /// Scores by position in the stage's node list.
    pub nodes: Vec<NodeScore>,
}

/// Times of a stage for a single sample, seconds after the sample's arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleTimes {
    /// First start.
    pub start_s: f64,
    /// Finish.
    pub finish_s: f64,
    /// Part of the latency during which everything waits for this stage. Over all stages these sum to the latency.
    pub critical_s: f64,
}

/// Result of a plan's check.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    /// Scores by stage. A stage's load omits its nodes with unknown modes.
    pub stages: Vec<StageScore>,
    /// Measure of the value: the plan's own measure.
    pub measure: Measure,
    /// Objective in the measure's unit; valid only if `violations` is empty.
    pub value: f64,
    /// Largest load of a stage, seconds per sample; valid only if `violations` is empty.
    pub slowest_s: f64,
    /// All violations of the plan.
    pub violations: Vec<Violation>,
}

impl Score {
    /// True if the plan has no violations.
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// Index of the bottleneck stage: the one with the largest load. In a plan measured by latency, the one for which
    /// everything waits longest.
    pub fn bottleneck(&self) -> Option<usize> {
        let weight = |i: usize| {
            let stage: &StageScore = &self.stages[i];
            stage.sample.map_or(stage.load_s, |times| times.critical_s)
        };
        (0..self.stages.len()).reduce(|best, i| if weight(i) > weight(best) { i } else { best })
    }

    /// Peak memory over all devices, bytes.
    pub fn peak_memory_bytes(&self) -> f64 {
        self.stages.iter().map(|s| s.memory_bytes).fold(0.0, f64::max)
    }
}
