//! Run of one sample through a placement, as data: its parts, their times, and their dependencies.

use crate::workload::NodeIndex;

/// Costs of one node within its part, in the profile's unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PartCost {
    /// Receiving of tensors from outside that no earlier node of the part has received.
    pub receive: f64,
    /// Computation.
    pub compute: f64,
    /// Sending of its tensor, if it is read outside.
    pub send: f64,
}

/// Nodes that run as a whole. Times are in the profile's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePart {
    /// Index of the part's stage.
    pub stage: usize,
    /// Nodes of the part, ascending.
    pub nodes: Vec<NodeIndex>,
    /// Costs of each of `nodes`.
    pub costs: Vec<PartCost>,
    /// Finish of the last dependency.
    pub start: f64,
    /// Index of the part that finishes at `start`, if there is a dependency.
    pub waits_for: Option<usize>,
}

impl SamplePart {
    /// Sum of the nodes' costs. All receive first, then compute, then send.
    pub fn cost(&self) -> PartCost {
        self.costs.iter().fold(PartCost::default(), |sum, cost| PartCost {
            receive: sum.receive + cost.receive,
            compute: sum.compute + cost.compute,
            send: sum.send + cost.send,
        })
    }

    /// Duration of the part.
    pub fn duration(&self) -> f64 {
        let PartCost { receive, compute, send } = self.cost();
        receive + compute + send
    }

    /// Time at which the nodes are finished.
    pub fn finish(&self) -> f64 {
        self.start + self.duration()
    }
}

/// Run of one sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SingleSample {
    /// Parts by stage, then in the order of data flow through the stage.
    pub parts: Vec<SamplePart>,
    /// Finish of the last part, in the profile's unit of time.
    pub latency: f64,
}
