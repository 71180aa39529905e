//! PaSE: chooses how many ways to split every dimension of every operator, at the least cost of a training step.
//!
//! Source: Elango, *PaSE: Parallelization Strategies for Efficient DNN Training*, IPDPS 2021. All devices work on all
//! operators, one operator after the other. A configuration splits an operator's iteration space over the devices.
//! Compute, all-reduces inside an operator and transfers between operators have one unit of cost (`cost`). The sum is
//! minimised over all configurations ([`space`]).
//!
//! The sum is a `pairwise` model with a few hundred variables and small treewidth. The paper eliminates its variables
//! in min-degree order. Here message passing first computes [`bounds`] and deletes configurations, then `eliminate`
//! solves the rest ([`solve`]): the same exact minimum in milliseconds.

pub mod bounds;
pub(crate) mod cost;
pub mod data_parallel;
pub(crate) mod eliminate;
pub mod memory;
pub mod model;
pub mod order;
pub(crate) mod pairwise;
mod pareto;
pub(crate) mod planners;
pub mod solve;
pub mod space;

use plantui_core::workload::operators::{CostRules, WORD_BYTES};

/// Parameters of the cost model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaseSettings {
    /// Number of devices, p.
    pub devices: u32,
    /// Smallest extent of a dimension that a split may leave, in elements.
    pub cutoff: u32,
    /// Operations per second of a device; a multiply-add is one operation.
    pub flops_per_s: f64,
    /// Bandwidth between devices, bytes per second.
    pub bandwidth_bytes_per_s: f64,
    /// Rules of the cost model.
    pub rules: CostRules,
}

impl PaseSettings {
    /// Operations that a device can execute while it sends a word of 8 bytes (`r` in the cost model).
    pub fn ratio(&self) -> f64 {
        self.flops_per_s / (self.bandwidth_bytes_per_s / WORD_BYTES)
    }
}
