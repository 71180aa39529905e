//! Analyses of a workload and its plans that go beyond a single planner.

#![forbid(unsafe_code)]

pub mod columns;
pub mod compare;
pub mod explain;
pub mod failure;
pub mod generate;
pub mod improve;
pub mod links;
pub mod losses;
pub mod nearest;
pub mod pace;
pub mod prediction_gap;
pub mod remedies;
pub mod rivals;
pub mod run;
pub mod schedules;
pub mod seek;
pub mod side_by_side;
pub mod steady;
pub mod sweep;
pub mod why;
