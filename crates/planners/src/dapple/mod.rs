//! DAPPLE: pipelines with replicated stages over machines with fast and slow links.
//!
//! Source: Fan et al., *DAPPLE: A Pipelined Data Parallel Approach for Training Large Models*, PPoPP 2021. [`hpgo`]
//! computes what the published planner computes. [`Dapple`] searches the space that the paper describes: any number of
//! stages, each with its own replicas, on devices from three placement policies. Memory is checked on every device.

mod costs;
mod exact;
mod greedy;
pub mod hpgo;
mod places;
mod planner;
mod settings;

pub use planner::Dapple;
