//! Latency of a single sample: how long one inference takes when a graph is split over accelerators and CPUs.
//!
//! Two definitions of the same quantity stand side by side, because the publication uses both:
//!
//! * `mod@evaluate` scores a split that says only which accelerator each node is on. It cuts every accelerator's nodes into
//!   contiguous pieces itself, and pieces wait for nothing but their inputs, not even for one another on one accelerator.
//! * `slots` is what the latency integer program means: an accelerator runs up to `q` subgraphs, its slots, one after the
//!   other in a fixed order, and must keep memory, capability and colour classes.
//!
//! For `q = 1` every admissible assignment to slots has the same latency under both: a set whose contraction leaves the
//! graph acyclic is contiguous, so the first definition keeps it whole. For `q > 1` they can differ in either direction:
//! slots wait for one another, and two slots that the first definition joins to one piece save the transfers in between.
//! `mod@search` minimises the second and reports both.
//!
//! `mod@greedy` is the published heuristic; `segment`, `anneal`, `exact` and `bound` are the parts of the search.

pub(crate) mod anneal;
pub(crate) mod blocks;
pub(crate) mod bound;
pub(crate) mod evaluate;
pub(crate) mod exact;
pub(crate) mod greedy;
pub(crate) mod search;
pub(crate) mod segment;
pub(crate) mod slots;

pub use evaluate::{CpuRun, LatencyError, MemoryExcess, Piece, Schedule, Unit, evaluate};
pub use greedy::greedy;
pub use search::{Best, LatencySettings, Question, search};
pub use slots::{Instance, SlotRun, SlotSchedule};
