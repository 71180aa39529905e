//! Device placement for throughput: a graph cut over accelerators and CPUs so that the busiest device is least busy.
//!
//! Tarnawski, Phanishayee, Devanur, Mahajan, Nina Paravecino: *Efficient Algorithms for Device Placement of DNN Graph
//! Operators*, NeurIPS 2020, with the choices its published program makes where the paper leaves them open.
//!
//! [`classes`] finds what must stay together, `load` prices a device, [`dp`] finds the best contiguous split and
//! [`linearise`] a nearly as good one fast, `first_plan` one at once; [`pipedream`], [`local_search`] and [`baselines`] are what the paper compares with;
//! `split` scores any split and reads and writes the published file. All are plain functions over a graph, a profile
//! and [`PlacementLimits`].
//!
//! Only the forward pass has to be contiguous. A node of the backward
//! pass is wherever the forward node of its colour class is.

pub mod baselines;
pub mod classes;
pub mod dp;
pub(crate) mod expert_planner;
pub(crate) mod first_plan;
pub mod ip;
pub(crate) mod ip_planner;
pub mod latency;
pub(crate) mod latency_planners;
pub(crate) mod lattice;
pub mod linearise;
pub(crate) mod load;
pub mod local_search;
#[cfg(feature = "milp")]
pub mod milp;
pub mod multilevel;
mod need;
mod packing;
pub(crate) mod partitioners;
pub mod pipedream;
pub(crate) mod planners;
pub(crate) mod scotch;
pub mod smallest_memory;
pub(crate) mod split;

use crate::{cluster::Limits, planner::Status};

pub use split::{Device, DeviceKind, Split};

/// What a split must keep, in the words of the paper: its algorithms know of no other limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacementLimits {
    /// Most accelerators.
    pub accelerators: u32,
    /// Most CPUs.
    pub cpus: u32,
    /// Memory of one accelerator, bytes; infinite where nothing limits it.
    pub memory_bytes: f64,
}

impl From<&Limits> for PlacementLimits {
    fn from(limits: &Limits) -> Self {
        PlacementLimits { accelerators: limits.devices, cpus: limits.cpus, memory_bytes: limits.memory_limit() }
    }
}

/// The result of one of the algorithms.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// [`Status::Optimal`] means: among the splits that the algorithm looks at.
    pub status: Status,
    /// The split, if there is one.
    pub split: Option<Split>,
    /// Load of its busiest device, in the unit of the profile.
    pub max_load: Option<f64>,
    /// Proven lower bound on the max-load of contiguous splits.
    pub lower_bound: Option<f64>,
    /// What the result rests on, a sentence each.
    pub notes: Vec<String>,
    /// Named counts, such as `sets`.
    pub counts: Vec<(&'static str, f64)>,
}

impl Placed {
    /// A result without a split.
    pub fn without(status: Status) -> Self {
        Placed { status, split: None, max_load: None, lower_bound: None, notes: vec![], counts: vec![] }
    }
}
