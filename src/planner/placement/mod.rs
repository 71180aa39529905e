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
pub mod multilevel;
mod need;
mod packing;
pub(crate) mod partitioners;
pub mod pipedream;
pub(crate) mod planners;
pub(crate) mod scotch;
pub mod smallest_memory;
pub(crate) mod split;

use std::borrow::Cow;

use crate::{
    cluster::Limits,
    family::placement::room::Room,
    planner::{Problem, Status},
    workload::PlacementProfile,
};

pub use split::{Device, DeviceKind, Split};

/// What a split must keep, in the words of the paper: its algorithms know of no other limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacementLimits {
    /// Most accelerators.
    pub accelerators: u32,
    /// Most CPUs.
    pub cpus: u32,
    /// What the sizes on one accelerator may sum to, bytes; infinite where nothing limits it.
    pub memory_bytes: f64,
}

/// What the algorithms are asked: sizes and memory as they count ([`Room`]), so that whatever order an algorithm sums
/// them in, it holds a split to the memory as the check does.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// The profile.
    pub(crate) profile: Cow<'a, PlacementProfile>,
    /// The limits.
    pub(crate) limits: PlacementLimits,
}

impl<'a> Asked<'a> {
    /// Of a problem; none if its workload is no device placement.
    pub(crate) fn of(problem: &'a Problem) -> Option<Self> {
        problem.workload.placement().map(|profile| Asked::with(profile, &problem.limits))
    }

    /// Of a profile, within limits.
    pub(crate) fn with(profile: &'a PlacementProfile, limits: &Limits) -> Self {
        let room = Room::new(profile, limits.memory_limit());
        let (accelerators, cpus) = (limits.devices, limits.cpus);
        let limits = PlacementLimits { accelerators, cpus, memory_bytes: room.limit_bytes() };
        Asked { profile: room.profile(profile), limits }
    }

    /// What the sizes on one accelerator may sum to, to compute with: the largest number where nothing limits it.
    pub(crate) fn memory(&self) -> f64 {
        self.limits.memory_bytes.min(f64::MAX)
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
    /// Of which of those it and the status speak, if not of all: `with ..`.
    pub among: Option<&'static str>,
    /// What the result rests on, a sentence each.
    pub notes: Vec<String>,
    /// Named counts, such as `sets`.
    pub counts: Vec<(&'static str, f64)>,
}

impl Placed {
    /// A result without a split.
    pub fn without(status: Status) -> Self {
        let (notes, counts) = (vec![], vec![]);
        Placed { status, split: None, max_load: None, lower_bound: None, among: None, notes, counts }
    }
}
