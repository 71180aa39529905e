//! The throughput integer program over *all* splits, solved without an integer-programming system.
//!
//! Tarnawski et al., *Efficient Algorithms for Device Placement of DNN Graph Operators*, NeurIPS 2020: place every colour
//! class on a device so that the busiest device is least busy, with no regard to contiguity, or with every device's forward
//! nodes convex. The objective may also be the largest forward load plus the largest backward load.
//!
//! [`search`] is anytime: it begins with the contiguous optimum of [`dp`](super::dp), anneals from there in rounds
//! (`anneal`), and at the same time refutes thresholds from below ([`bounds`]); `exact` closes what is small. The
//! The linear relaxation of this program is worth nothing, because a `1/K` share of every class on
//! each of `K` accelerators cuts no net at all, so no bound here is of that kind.
//!
//! Everything works on colour classes ([`model`]); the result depends on the seed and the settings only, unless the
//! search is stopped.

pub(crate) mod anneal;
pub mod bounds;
pub mod branching;
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

pub use driver::{Best, Contiguity, IpSettings, Question, along_the_graph, search};
pub use model::Objective;
