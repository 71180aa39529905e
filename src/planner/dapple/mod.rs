//! Pipelines with replicated stages over machines with fast and slow links.
//!
//! Fan et al.: *DAPPLE: A Pipelined Data Parallel Approach for Training Large Models*, PPoPP 2021. [`hpgo`] computes what the
//! published planner computes.

pub mod hpgo;
mod settings;
