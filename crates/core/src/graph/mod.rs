//! Directed acyclic graphs, their orders and their closed sets, independent of neural networks.
//!
//! Vertices are dense indices `0..n`. [`Dag`] keeps the edges in the given order, because the planners' cost sums are
//! defined over that order. [`SuccessorSets`] enumerates the sets at which a pipeline may be cut.

mod components;
mod dag;
mod successor_sets;

pub use components::strong_components;
pub use dag::{Dag, GraphError};
pub use successor_sets::lies_within;
pub use successor_sets::{Enumeration, SuccessorSets};
