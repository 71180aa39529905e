//! The throughput integer program over *all* splits, solved without an integer-programming solver.
//!
//! Tarnawski et al., *Efficient Algorithms for Device Placement of DNN Graph Operators*, NeurIPS 2020: assign every
//! colour class to a device so that the busiest device has the least load. Splits need not be contiguous, or every
//! device's forward nodes must be convex. The objective may also be the largest forward load plus the largest backward
//! load.
//!
//! [`search`] is anytime: it starts from the contiguous optimum of [`dp`](super::dp), anneals from there in rounds
//! (`anneal`), and at the same time refutes thresholds from below ([`bounds`]); `exact` solves small cases. The linear
//! relaxation of this program gives no useful bound, because a fraction `1/K` of every class on each of `K`
//! accelerators cuts no net. So no bound here is of that kind.
//!
//! Everything works on colour classes ([`model`]). The result depends only on the seed and the settings, unless the
//! search is cancelled.

pub(crate) mod anneal;
pub mod bounds;
pub mod convex;
mod driver;
pub(crate) mod exact;
pub mod flow;
pub mod frontier;
pub(crate) mod knapsack;
pub mod model;
pub mod prices;
pub mod slack;
pub mod state;

pub use driver::{Contiguity, IpSettings, ThroughputProblem, ThroughputResult, along_the_graph, search};
pub use model::Objective;
