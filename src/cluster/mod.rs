//! Onto what a network is cut: how many devices, how much memory, how fast the links.

pub mod hardware;
mod limits;

pub use limits::{LimitKind, Limits, MOST_DEVICES, MOST_MICROBATCHES, MissingLimit, Overrides};
