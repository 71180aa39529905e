//! What plantui plans: workloads, clusters, plans, their costs, checks and simulation.
//!
//! The package `plantui` hands all of it on under its own name, and adds planners, studies, exports, the command line and the
//! screen. This is a package of its own so that both cores build all the time, and that a change of a planner or of the screen
//! leaves it alone.
//! The modules form one path; each uses only those above it:
//!
//! | module | step |
//! |---|---|
//! | [`text`] | what of a stranger's text a terminal may be shown |
//! | [`units`] | bytes, seconds and bandwidths as people write them |
//! | [`terms`] | the words of the field, with a picture each |
//! | [`source`] | what is wrong with a file, and where |
//! | [`graph`] | DAGs, orders, closed sets |
//! | [`cluster`] | onto what: limits, hardware presets |
//! | [`workload`] | what is planned: profiles, formats, lint |
//! | [`plan`] | the answer and its JSON |
//! | [`simulate`] | schedules and the event simulator |
//! | [`family`] | what each kind of workload does: its check, its program, its edits |

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
