//! Event simulation of a plan's schedule: the one score that makes plans comparable.
//!
//! [`crate::family::pipeline()`] turns a plan into stages with forward and backward times, transfers between stages, a
//! gradient all-reduce and memory. [`simulate`] runs a [`Schedule`] on it and returns a [`Timeline`] with every event,
//! the iteration time, the bubble and the memory in use over time. A plan for latency has no schedule: its one sample
//! runs as in its [`SampleRun`].

mod assemble;
mod contention;
mod critical_path;
mod demands;
mod engine;
mod explicit;
mod fast_forward;
mod memory;
mod memory_parts;
mod order;
mod patience;
mod period;
mod phase;
mod pipeline;
mod program;
mod recurrence;
mod routes;
mod run;
mod sample_run;
mod schedule;
mod sequence;
mod setting;
mod settings;
mod setup;
mod sharing;
mod single_sample;
mod stage_times;
mod timeline;
mod wired;
mod wires;

pub use crate::plan::{Execution, Schedule, WarmUp};
pub use critical_path::{CriticalPath, PathKind, critical_path};
pub use demands::{Demands, Flow, ModelShard, ReductionGroup};
pub use engine::{LEAST_TIME, MOST_EVENTS, length_unless, simulate, simulate_unless};
pub use memory_parts::MemoryParts;
pub use pipeline::{OperatorTimes, Pipeline, PipelineStage, Transfer};
pub use sample_run::{SampleRun, by_time};
pub use setting::SimulatorSetting;
pub use settings::{LinkModel, SimulatorSettings};
pub use setup::{ExplicitSettings, Setup};
pub use timeline::{Event, EventKind, LinkUse, Timeline};
pub use wires::{ChannelLoad, ReplicaRoute, ReplicaRoutes};
