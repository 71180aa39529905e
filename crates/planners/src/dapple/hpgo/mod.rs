//! The published planner: HPGO, the program behind the planning results of DAPPLE.
//!
//! It has three families of plans. Pseudo data parallelism puts the whole network on every device (`mod@candidates`).
//! Straight pipelines have stages of one device each, several in parallel (`straight`). Bipartitions have two stages of
//! any sizes. [`length`] values each plan. Results also include the speed-ups of plain data parallelism
//! ([`data_parallel`]) and of an event-driven estimate ([`length::event_speedup`]).
//!
//! No plan with 3 to `n - 1` stages results. The published recurrence starts from plans without communication cost, and
//! no longer pipeline is better than these.
//!
//! Ties are broken in a fixed order, in the published program by memory addresses. The order of placements is fresh,
//! append, scatter. Earlier states come first, and the last of equal plans wins.

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
