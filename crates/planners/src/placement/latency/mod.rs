//! Latency of a single sample: the time of one inference on a graph split over accelerators and CPUs.
//!
//! There are two definitions, because the publication uses both:
//!
//! * `mod@evaluate` scores a split that assigns nodes to accelerators. It divides every accelerator's nodes into
//!   contiguous pieces. A piece waits only for its inputs, not for other pieces on the same accelerator.
//! * `slots` is the model of the latency integer program. An accelerator runs up to `q` subgraphs, its slots, in a
//!   fixed order, and must keep memory, capability and colour classes.
//!
//! For `q = 1`, every admissible assignment to slots has the same latency under both. The contraction of a slot leaves
//! the graph acyclic, so its set is contiguous and the first definition keeps it whole. For `q > 1`, either can be
//! larger: slots wait for one another, but two slots that the first definition joins into one piece save the transfers
//! between them. `mod@search` minimises the second and reports both.
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

pub use evaluate::{CpuRun, LatencyError, LatencyUnit, MemoryExcess, Piece, PieceSchedule, evaluate};
pub use greedy::greedy;
pub use search::{LatencyProblem, LatencyResult, LatencySettings, search};
pub use slots::{Instance, SlotRun, SlotSchedule};
