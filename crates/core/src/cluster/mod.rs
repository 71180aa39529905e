//! Cluster to plan for: number of devices, memory per device, links.

mod given;
pub mod goodput;
pub mod hardware;
mod limit_kind;
mod limits;
mod links;
mod machines;
mod steps;
pub mod topology;

pub use given::GivenLimits;
pub use limit_kind::{LimitKind, MOST_BATCH, MOST_DEVICES, MOST_LISTED_DEVICES, MOST_MICROBATCHES};
pub use limits::{LimitError, Limits, NEUTRAL_MICROBATCHES};
pub use links::{Links, PUBLISHED_LINKS};
pub use machines::{MOST_MACHINES, Machines};
