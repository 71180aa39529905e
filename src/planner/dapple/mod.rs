//! Pipelines with replicated stages over machines with fast and slow links.
//!
//! Fan et al.: *DAPPLE: A Pipelined Data Parallel Approach for Training Large Models*, PPoPP 2021. [`hpgo`] computes what the
//! published planner computes; [`Dapple`] searches what the paper describes: any number of stages, each with replicas of its
//! own, on devices that one of three policies picks, with memory checked on every device.

mod costs;
mod exact;
mod greedy;
pub mod hpgo;
mod places;
mod planner;
mod settings;

pub use planner::Dapple;
