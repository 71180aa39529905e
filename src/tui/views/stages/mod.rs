//! Stages: which nodes form a stage, on how many devices, and what would help.

mod draw;
pub(in crate::tui) mod tree;
mod would_help;

pub(in crate::tui) use draw::draw;
