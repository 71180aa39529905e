//! Library of plantui without planners: workloads, clusters, plans, their costs, checks and simulation.
//!
//! The package `plantui` re-exports it and adds planners, studies, exports, the command line and the screen. The crate
//! is separate for build speed: both cores stay busy, and a change of a planner or of the screen does not rebuild it.
//! The modules form one path. Each uses only those above it:
//!
//! | module | step |
//! |---|---|
//! | [`text`] | outside text, made safe for a terminal |
//! | [`units`] | bytes, seconds and bandwidths as people write them |
//! | [`terms`] | glossary of the field, with a picture for each term |
//! | [`source`] | errors in a file, with their position |
//! | [`graph`] | DAGs, orders, closed sets |
//! | [`cluster`] | where a plan runs: limits, hardware presets |
//! | [`workload`] | inputs to plan: profiles, formats, lint |
//! | [`plan`] | plans and their JSON |
//! | [`simulate`] | schedules and the event simulator |
//! | [`family`] | per kind of workload: its check, its program, its edits |

#![forbid(unsafe_code)]

pub mod cluster;
pub mod family;
pub mod graph;
pub mod plan;
pub mod simulate;
pub mod source;
pub mod terms;
pub mod text;
pub mod units;
pub mod workload;
