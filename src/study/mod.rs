//! Questions asked of a workload and its plans that no single planner answers.

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
