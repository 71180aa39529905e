//! Workload: the network itself.

mod draw;
mod nodes;

pub(in crate::tui) use draw::{Section, draw};
