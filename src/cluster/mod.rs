//! Onto what a network is cut: how many devices, how much memory, how fast the links.

pub mod hardware;
mod limit_kind;
mod limits;
mod links;
mod machines;
mod steps;
pub mod topology;

pub use limit_kind::{LimitKind, MOST_BATCH, MOST_DEVICES, MOST_MICROBATCHES};
pub use limits::{FileLimits, Limits, MissingLimit, NEUTRAL_BANDWIDTH, NEUTRAL_MICROBATCHES, Overrides};
pub use links::{Links, PUBLISHED_LINKS};
pub use machines::{MOST_MACHINES, Machines};
