//! Parmesan: partitions a network, then maps the parts onto devices joined by any topology. It is our reading of a
//! published description (Liu, Liu, Jiang and Young, TCAD 2024, doi 10.1109/TCAD.2024.3368970).
//!
//! The source code and the full paper were not available. Public are the two phases, the goal (training throughput on
//! an arbitrary topology with links of different bandwidths) and the names of the options. The algorithms inside are
//! our own design, and no figure of the paper is claimed.
//!
//! * [`Parmesan`]: both phases, and the search over their parameters by simulated time
//! * [`Ensemble`]: runs several planners, maps and simulates their plans, keeps the fastest
//! * [`plantui_core::mapping`]: phase 2, the assignment of parts to devices, for the plan of any planner

use super::Options;
use plantui_core::workload::{LoadError, formats::PlanTopology};

mod acyclic;
mod candidates;
mod coarsen;
mod contract;
mod conversion;
mod ensemble;
mod model;
mod options;
mod placed;
mod planner;
mod refine;
mod stages;
#[cfg(test)]
mod tests;

pub(crate) use conversion::OverLayers;
pub use ensemble::Ensemble;
pub use planner::Parmesan;

/// Topology named by the option `topology`; `None` if the option is empty.
///
/// # Errors
/// [`LoadError`] if no topology has that name, or its file cannot be read.
fn wiring(options: &Options) -> Result<Option<PlanTopology>, LoadError> {
    options.file("topology").map(|path| PlanTopology::read(&path.display().to_string())).transpose()
}
