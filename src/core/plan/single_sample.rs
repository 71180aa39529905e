//! The run of one sample through a placement, as data: what runs as a whole, when, and what it waits for.

use crate::workload::NodeIndex;

/// What one node costs within its part, in the profile's unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PartCost {
    /// Tensors from outside that no earlier node of the part has received.
    pub receive: f64,
    /// Its computation.
    pub compute: f64,
    /// Its tensor, if it is read outside.
    pub send: f64,
}

/// What runs as a whole. Times are in the profile's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Index of its stage.
    pub stage: usize,
    /// Its nodes, ascending.
    pub nodes: Vec<NodeIndex>,
    /// What each of `nodes` costs.
    pub costs: Vec<PartCost>,
    /// When the last of what it waits for is finished.
    pub start: f64,
    /// Index of the part that finishes at `start`, if it waits for any.
    pub waits_for: Option<usize>,
}

impl Part {
    /// What its nodes cost together; they receive, compute and send in this order.
    pub fn cost(&self) -> PartCost {
        self.costs.iter().fold(PartCost::default(), |sum, cost| PartCost {
            receive: sum.receive + cost.receive,
            compute: sum.compute + cost.compute,
            send: sum.send + cost.send,
        })
    }

    /// How long it takes.
    pub fn duration(&self) -> f64 {
        let PartCost { receive, compute, send } = self.cost();
        receive + compute + send
    }

    /// When its nodes are finished.
    pub fn finish(&self) -> f64 {
        self.start + self.duration()
    }
}

/// The run of one sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SingleSample {
    /// By stage, then in the order in which data flows through the stage.
    pub parts: Vec<Part>,
    /// When the last part finishes, in the profile's unit of time.
    pub latency: f64,
}
