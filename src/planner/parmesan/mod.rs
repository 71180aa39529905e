//! Parmesan: partition a network, then map the parts onto devices joined by any topology (Liu, Liu, Jiang and Young, TCAD
//! 2024, doi 10.1109/TCAD.2024.3368970).
//!
//! Source and paper could not be had. Its two phases, its goal (training throughput on an arbitrary topology of links of
//! different bandwidths) and the names of its options are published; how they work inside is our own design, and no
//! figure of the paper is claimed.
//!
//! * [`Parmesan`]: both phases, and the search over their parameters by simulated time
//! * [`Ensemble`]: any planners' plans, mapped and simulated, the fastest kept
//! * [`mapping`]: phase 2, which device each part sits on, for the plan of any planner

use super::Options;
use crate::workload::{LoadError, formats::Wired};

mod acyclic;
mod candidates;
mod coarsen;
mod contract;
mod ensemble;
pub mod mapping;
mod model;
mod options;
mod placed;
mod planner;
mod refine;
mod rounded;
mod stages;
#[cfg(test)]
mod tests;

pub use ensemble::Ensemble;
pub use planner::Parmesan;

/// The topology that the option `topology` names, if it names one.
///
/// # Errors
/// [`LoadError`] if there is none of that name, or its file cannot be read.
pub(super) fn wiring(options: &Options) -> Result<Option<Wired>, LoadError> {
    options.file("topology").map(|path| Wired::read(&path.display().to_string())).transpose()
}
