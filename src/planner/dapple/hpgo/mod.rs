//! The published planner: HPGO, the program behind the planning results of DAPPLE.
//!
//! It has three families of plans: the whole network on every device (`mod@candidates`, pseudo data parallel), parallel
//! pipelines of single devices (`straight`), and two stages of any sizes (bipartitions). [`length`] values each plan.
//! Results also include the speed-ups of plain data parallelism ([`data_parallel`]) and of an event-driven estimate
//! ([`length::event_speedup`]). No plan with 3 to `n - 1` stages results: the published recurrence starts from plans
//! without communication cost, and no longer pipeline is better than these.
//!
//! Ties are broken in a fixed order, while the published program breaks them by memory addresses: placements in the
//! order fresh, append, scatter; earlier states first; the last of equal plans in the list.

pub(crate) mod candidates;
mod column;
pub mod data_parallel;
pub mod length;
pub(crate) mod model;
pub mod placement;
pub(crate) mod planner;
mod reach;
mod row;
pub(crate) mod straight;

pub use candidates::{Candidate, Kind, candidates};
pub use model::{Faults, HpgoModel};
pub use planner::Hpgo;
