//! Analyses of a workload and its plans that go beyond a single planner.

pub mod columns;
pub mod compare;
pub mod explain;
pub mod links;
pub mod losses;
pub mod promise;
pub mod rivals;
pub mod seek;
pub mod side_by_side;
pub mod sweep;
pub mod why;
