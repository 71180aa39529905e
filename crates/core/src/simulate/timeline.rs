//! Result of a simulation.

use std::ops::Range;

use super::memory_parts::MemoryParts;
use crate::units;

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// Forward pass of one microbatch on one replica of a stage.
    Forward,
    /// Recomputation of one microbatch's activations, at the beginning of its backward pass.
    Recompute,
    /// Backward pass of one microbatch; under a zero-bubble schedule only of the inputs.
    Backward,
    /// Backward pass of the weights of one microbatch, if the schedule delays it.
    WeightGradient,
    /// Optimizer step of one replica; `microbatch` is 0.
    OptimizerStep,
    /// Transfer of activations to a later stage.
    SendActivation {
        /// Receiving stage.
        to: u32,
        /// Part of the model on the receiving stage that waits for it.
        part: u32,
    },
    /// Transfer of gradients to an earlier stage.
    SendGradient {
        /// Receiving stage.
        to: u32,
        /// Part of the model on the receiving stage that waits for it.
        part: u32,
    },
    /// Transfer from a part of a single sample to the host, for other parts.
    ToHost,
    /// Transfer from the host to a part of a single sample, before it computes.
    FromHost,
    /// Gradient all-reduce over all replicas of the stage; `replica` is 0, `microbatch` is the bucket's number.
    AllReduce,
}

impl EventKind {
    /// Resource of its replica: 0 compute, 1 sending forward, 2 sending back, 3 all-reduce. Events of one lane of one
    /// replica never overlap.
    pub fn lane(self) -> u8 {
        match self {
            EventKind::Forward
            | EventKind::Recompute
            | EventKind::Backward
            | EventKind::WeightGradient
            | EventKind::OptimizerStep => 0,
            EventKind::SendActivation { .. } | EventKind::ToHost => 1,
            EventKind::SendGradient { .. } | EventKind::FromHost => 2,
            EventKind::AllReduce => 3,
        }
    }
}

impl Event {
    /// Receiving stage of a transfer, and the stage's part of the model that waits for it.
    pub fn receiver(&self) -> Option<(u32, u32)> {
        match self.kind {
            EventKind::SendActivation { to, part } | EventKind::SendGradient { to, part } => Some((to, part)),
            _ => None,
        }
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Start, seconds.
    pub start_s: f64,
    /// End, seconds.
    pub end_s: f64,
    /// Stage of the event (the sender, for a transfer).
    pub stage: u32,
    /// Index of the replica of the stage.
    pub replica: u32,
    /// Index of the microbatch, from 0; for a single sample, the index of its part.
    pub microbatch: u32,
    /// Index of the stage's part of the model, from 0, if a schedule has several on a device.
    pub part: u32,
    /// Kind of the event.
    pub kind: EventKind,
}

/// Traffic over the link between two stages in one direction, over the whole batch and all replicas.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkUse {
    /// Sending stage.
    pub from: usize,
    /// Receiving stage.
    pub to: usize,
    /// Total time of its transfers, each at full bandwidth, seconds.
    pub busy_s: f64,
    /// Bytes.
    pub bytes: f64,
}

/// Complete run of one batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// All events, by stage, then replica, then resource (compute and optimizer step, activations sent or transfers to
    /// the host, gradients sent or transfers from the host, all-reduce), then start. A row of the screen is one
    /// contiguous slice.
    pub events: Vec<Event>,
    /// Microbatches whose events are omitted because the batch is too long: those in the middle, where the pipeline
    /// repeats itself. All other figures remain exact. `memory` keeps its last step through the gap.
    pub left_out: Option<Range<u32>>,
    /// Replicas of every stage.
    pub replicas: Vec<u32>,
    /// Iteration time, seconds: the end of the last event.
    pub iteration_s: f64,
    /// Samples per second; microbatches per second if the number of samples is not known.
    pub samples_per_s: f64,
    /// Fraction of the devices' time without compute, 0 to 1, over the devices that the plan uses.
    pub idle: f64,
    /// Seconds of compute of the busiest replica of every stage.
    pub busy_s: Vec<f64>,
    /// By stage: memory in use on one device of its fullest replica, as steps `(time, bytes)` in time order. The first
    /// step is at 0. Bytes hold until the next step.
    pub memory: Vec<Vec<(f64, f64)>>,
    /// By stage: peak memory, bytes.
    pub peak_memory_bytes: Vec<f64>,
    /// By stage: components of the peak memory.
    pub peak_parts: Vec<MemoryParts>,
    /// Traffic over the links, by sending and then receiving stage.
    pub links: Vec<LinkUse>,
}

impl Timeline {
    /// Peak memory over all devices, bytes.
    pub fn peak_memory(&self) -> f64 {
        self.peak_memory_bytes.iter().copied().fold(0.0, f64::max)
    }

    /// Figures in one line: iteration time, throughput, idle share, peak memory.
    pub fn summary(&self) -> String {
        format!(
            "{} an iteration, {} samples/s, idle {}, peak memory {}",
            units::seconds(self.iteration_s),
            units::number(self.samples_per_s),
            units::percent(self.idle),
            units::bytes(self.peak_memory())
        )
    }

    /// Events of one replica of a stage, as a contiguous slice.
    pub fn row(&self, stage: usize, replica: u32) -> &[Event] {
        let key = (stage as u32, replica);
        let from = self.events.partition_point(|e| (e.stage, e.replica) < key);
        let to = self.events.partition_point(|e| (e.stage, e.replica) <= key);
        &self.events[from..to]
    }
}

#[cfg(test)]
mod tests {
    use crate::simulate::{EventKind, Pipeline, PipelineStage, Schedule, simulate};

    #[test]
    fn rows_and_summary_of_a_small_batch() {
        let stage = PipelineStage {
            forward_s: 1.0,
            backward_s: 2.0,
            replicas: 2,
            all_reduce_s: 0.5,
            fixed_bytes: 1024.0,
            activation_bytes: 512.0,
            ..PipelineStage::default()
        };
        let pipeline = Pipeline { stages: vec![stage], microbatches: 3, ..Pipeline::default() };
        let timeline = simulate(&pipeline, Schedule::GPipe);
        let row = |replica| -> Vec<_> { timeline.row(0, replica).iter().map(|e| (e.kind, e.microbatch)).collect() };
        use EventKind::{AllReduce, Backward, Forward};
        assert_eq!(row(0), [(Forward, 0), (Forward, 2), (Backward, 0), (Backward, 2), (AllReduce, 0)]);
        assert_eq!(row(1), [(Forward, 1), (Backward, 1)]);
        assert_eq!(row(2), []);
        assert_eq!(timeline.memory[0], [(0.0, 1536.0), (1.0, 2048.0), (4.0, 1536.0), (6.0, 1024.0)]);
        // Nine of thirteen seconds of two devices are compute.
        assert_eq!(timeline.summary(), "6.500 s an iteration, 0.4615 samples/s, idle 30.8%, peak memory 2.00 KiB");
    }
}
