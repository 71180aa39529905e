//! The one score that makes plans comparable: a plan's schedule, played event by event.
//!
//! [`Pipeline::from_plan`] turns a plan into stages with forward and backward times, transfers between stages, a gradient
//! all-reduce and memory; [`simulate`] plays a [`Schedule`] on it and returns a [`Timeline`] with every event, the
//! iteration time, the bubble and the memory in use over time. A plan for latency has no schedule: its one sample runs as
//! [`SampleRun`] says.

mod engine;
mod fast_forward;
mod pipeline;
mod run;
mod sequence;
mod single_sample;
mod timeline;

pub use engine::{MOST_EVENTS, simulate};
pub use pipeline::{Pipeline, PipelineStage, Settings, Step, Transfer};
pub use single_sample::SampleRun;
pub use timeline::{Event, EventKind, Timeline};

/// The order in which a stage works through its microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// One forward, one backward, with synchronous flush (PipeDream-Flush, Megatron-LM's default).
    OneForwardOneBackward,
    /// All forwards, then all backwards (Huang et al., NeurIPS 2019).
    GPipe,
    /// One sample alone, as a plan for latency runs it. It follows from the plan and cannot be asked for.
    SingleSample,
}

impl Schedule {
    /// All schedules that can be asked for, in the order they are shown.
    pub const ALL: [Schedule; 2] = [Schedule::OneForwardOneBackward, Schedule::GPipe];

    /// What scripts call it.
    pub fn id(self) -> &'static str {
        match self {
            Schedule::OneForwardOneBackward => "1f1b",
            Schedule::GPipe => "gpipe",
            Schedule::SingleSample => "single-sample",
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::OneForwardOneBackward => "1F1B",
            Schedule::GPipe => "GPipe",
            Schedule::SingleSample => "single sample",
        }
    }

    /// The schedule of this id, if it can be asked for.
    pub fn find(id: &str) -> Option<Schedule> {
        Schedule::ALL.into_iter().find(|schedule| schedule.id() == id)
    }
}
