//! Device placement for throughput: splits a graph over accelerators and CPUs so that the busiest device has the least
//! load.
//!
//! Tarnawski, Phanishayee, Devanur, Mahajan, Nina Paravecino: *Efficient Algorithms for Device Placement of DNN Graph
//! Operators*, NeurIPS 2020, with the choices of its published program where the paper leaves them open.
//!
//! * [`classes`]: nodes that must share a device
//! * `load`: load of a device
//! * [`dp`]: best contiguous split; [`linearise`]: nearly as good and fast; `first_plan`: immediate
//! * [`unequal`]: best contiguous split over accelerators of several kinds
//! * [`pipedream`], [`local_search`], [`baselines`]: the paper's baselines
//! * `split`: scores any split, reads and writes the published file
//!
//! All are plain functions over a graph, a profile and [`PlacementLimits`].
//!
//! Only the forward pass has to be contiguous. A backward node is on the device of the forward node of its colour
//! class.

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
pub(crate) mod partitioners;
pub mod pipedream;
pub(crate) mod planners;
pub(crate) mod scotch;
pub mod smallest_memory;
pub(crate) mod split;
pub mod unequal;
mod unequal_planner;

use std::borrow::Cow;

use crate::{Problem, Status};
use plantui_core::{
    cluster::Limits,
    workload::{PlacementProfile, placement::AcceleratorKind},
};

pub use split::{Device, DeviceKind, Split};

/// Limits of a split, as in the paper: its algorithms have no others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacementLimits {
    /// Maximum number of accelerators.
    pub accelerators: u32,
    /// Maximum number of CPUs.
    pub cpus: u32,
    /// Maximum sum of sizes on one accelerator, bytes; infinite without a limit.
    pub memory_bytes: f64,
}

/// Input of the algorithms. Sizes and memory are counted as in
/// [`AcceleratorMemory`](plantui_core::family::placement::accelerator_memory::AcceleratorMemory), so that the order of summation
/// never matters: an algorithm accepts the same splits as the check.
#[derive(Debug)]
pub(crate) struct PlacementProblem<'a> {
    /// Profile with counted sizes.
    pub(crate) profile: Cow<'a, PlacementProfile>,
    /// Limits with counted memory. Where accelerators are of several kinds, the memory is the largest.
    pub(crate) limits: PlacementLimits,
    /// Kinds of accelerators with counted memory; empty if all are alike.
    pub(crate) kinds: Vec<unequal::KindLimits>,
}

impl<'a> PlacementProblem<'a> {
    /// Input for a problem; `None` if its workload is no device placement.
    pub(crate) fn of(problem: &'a Problem) -> Option<Self> {
        problem.workload.placement().map(|profile| PlacementProblem::with(profile, &problem.limits))
    }

    /// Input for a profile within limits.
    pub(crate) fn with(profile: &'a PlacementProfile, limits: &Limits) -> Self {
        let room = profile.accelerator_memory(limits);
        let kind = |(index, own): (usize, &AcceleratorKind)| unequal::KindLimits {
            first: profile.first_of(index),
            count: own.count,
            speed: own.speed,
            memory_bytes: room.limit_of(own.memory_bytes),
        };
        let kinds = profile.kinds.iter().enumerate().map(kind).collect();
        let (accelerators, cpus) = (limits.devices, limits.cpus);
        let limits = PlacementLimits { accelerators, cpus, memory_bytes: room.limit_bytes() };
        PlacementProblem { profile: room.profile(profile), limits, kinds }
    }

    /// Maximum sum of sizes on one accelerator, always finite: the largest number without a limit.
    pub(crate) fn memory(&self) -> f64 {
        self.limits.memory_bytes.min(f64::MAX)
    }
}

/// Result of one of the algorithms.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementResult {
    /// [`Status::Optimal`] means: among the splits that the algorithm considers.
    pub status: Status,
    /// Split, if there is one.
    pub split: Option<Split>,
    /// Load of the busiest device, in the unit of the profile.
    pub max_load: Option<f64>,
    /// Proven lower bound on the max-load of contiguous splits.
    pub lower_bound: Option<f64>,
    /// Restriction that status and lower bound refer to, if any: `with ..`.
    pub among: Option<&'static str>,
    /// Assumptions behind the result, a sentence each.
    pub notes: Vec<String>,
    /// Named counts, such as `sets`.
    pub counts: Vec<(&'static str, f64)>,
}

impl PlacementResult {
    /// A result without a split.
    pub fn without(status: Status) -> Self {
        let (notes, counts) = (vec![], vec![]);
        PlacementResult { status, split: None, max_load: None, lower_bound: None, among: None, notes, counts }
    }
}
