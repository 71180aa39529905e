//! Library of plantui without planners: workloads, clusters, plans, their costs, checks and simulation.
//!
//! The package `plantui` re-exports it and adds planners, studies, exports, the command line and the screen.
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
//! | [`schedule`] | schedules as lists of actions: files, generators, what breaks one |
//! | [`simulate`] | the event simulator |
//! | [`family`] | per kind of workload: its check, its program, its edits |
//! | [`search`] | handle on a running search: cancellation, deadline, progress |
//! | [`random`] | seeded random numbers |
//! | [`mapping`] | assignment of a plan's parts to the devices of a topology |

#![forbid(unsafe_code)]

pub mod cluster;
pub mod family;
pub mod graph;
pub mod mapping;
pub mod plan;
pub mod random;
pub mod schedule;
#[cfg(feature = "schema")]
pub mod schemas;
pub mod search;
pub mod simulate;
pub mod source;
pub mod terms;
pub mod text;
pub mod units;
pub mod workload;
