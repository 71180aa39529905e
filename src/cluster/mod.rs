//! Onto what a network is cut: how many devices, how much memory, how fast the links.

pub mod hardware;
mod limits;
mod links;
mod machines;
pub mod topology;

pub use limits::{LimitKind, Limits, MOST_BATCH, MOST_DEVICES, MOST_MICROBATCHES, MissingLimit, Overrides};
pub use links::{Links, PUBLISHED_LINKS};
pub use machines::{MOST_MACHINES, Machines};
