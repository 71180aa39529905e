//! What the published planner computes (HPGO, the program behind the planning results of DAPPLE).
//!
//! Three families of plans: the whole network on every device (`mod@candidates`, pseudo data parallel), pipelines of single
//! devices side by side (`straight`), and two stages of any sizes (bipartitions). Each is worth what [`length`] says, and
//! beside them stand the speed-ups of plain data parallelism ([`data_parallel`]) and of an event-driven estimate
//! ([`length::event_speedup`]). Nothing in between three and `n - 1` stages ever comes out, since the published recurrence
//! starts from plans without any communication, which no longer pipeline can beat.
//!
//! Ties are broken in a fixed order, where the published program breaks them by the addresses of objects: placements as
//! fresh, append, scatter; earlier states first; of equal plans the last in the list.

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
