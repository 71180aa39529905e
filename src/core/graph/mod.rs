//! Directed acyclic graphs, their orders and their closed sets. Knows nothing of neural networks.
//!
//! Vertices are dense indices `0..n`. [`Dag`] keeps the edges in the order they were given, because cost sums in the
//! planners are defined over that order; [`SuccessorSets`] enumerates the sets a pipeline may be cut at.

mod components;
mod dag;
mod successor_sets;

pub use components::strong_components;
pub use dag::{Dag, GraphError};
pub use successor_sets::lies_within;
pub use successor_sets::{Enumeration, SuccessorSets};
