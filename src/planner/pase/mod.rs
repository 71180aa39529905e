//! PaSE: how many ways to split every dimension of every operator, so that a training step costs least.
//!
//! Elango, *PaSE: Parallelization Strategies for Efficient DNN Training*, IPDPS 2021. All devices work on all operators,
//! one operator after the other; a configuration says how an operator's iteration space is split over them. Compute,
//! all-reduces inside an operator and transfers between two are priced in one unit (`cost`), and the sum is minimised
//! over all configurations ([`space`]).
//!
//! The sum is a `pairwise` model with few hundred variables and small treewidth. The paper eliminates its variables in
//! min-degree order; here message passing first finds [`bounds`] and deletes configurations, and `eliminate` finishes
//! what is left ([`solve`]): the same exact minimum in milliseconds.

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

use crate::workload::operators::{CostRules, WORD_BYTES};

/// What the costs depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaseSettings {
    /// Devices, p.
    pub devices: u32,
    /// The fewest elements a split may leave of a dimension.
    pub cutoff: u32,
    /// Operations per second of a device; a multiplication with addition is one.
    pub flops_per_s: f64,
    /// Bytes per second between devices.
    pub bandwidth_bytes_per_s: f64,
    /// How costs are counted.
    pub rules: CostRules,
}

impl PaseSettings {
    /// Operations that a device could do while it sends a word of 8 bytes.
    pub fn ratio(&self) -> f64 {
        self.flops_per_s / (self.bandwidth_bytes_per_s / WORD_BYTES)
    }
}
