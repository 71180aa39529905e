//! Onto what a network is cut: how many devices, how much memory, how fast the links.

pub mod hardware;
mod limits;

pub use limits::{LimitKind, Limits, MissingLimit, Overrides};
