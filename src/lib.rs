//! Planner of how a neural network is split over many devices.
//!
//! plantui loads a profiled workload, plans its split with published algorithms, checks and simulates every plan, and
//! shows or exports it. The modules form one path; each uses only those above it. Crates hold the order: this package
//! adds the screen and the command line to the library, which it re-exports.
//!
//! | module | step |
//! |---|---|
//! | [`text`] | safe text for a terminal |
//! | [`units`] | bytes, seconds and bandwidths in user syntax |
//! | [`terms`] | terms of the field, with a picture each |
//! | [`source`] | errors in files, with their place |
//! | [`graph`] | DAGs, orders, closed sets |
//! | [`cluster`] | limits, hardware presets |
//! | [`workload`] | profiles, formats, lint |
//! | [`plan`] | plans and their JSON |
//! | [`simulate`] | schedules and the event simulator |
//! | [`family`] | kinds of workloads: check, program, edits |
//! | [`search`] | handle on a running search |
//! | [`mapping`] | a plan's parts on the devices of a topology |
//! | [`planner`] | trait, registry, algorithms |
//! | [`run`] | checked and simulated plan for a problem and a planner |
//! | [`study`] | analyses of many plans |
//! | [`generate`] | workloads from a model and hardware |
//! | [`jobs`] | readers of an engine's jobs |
//! | [`export`] | plan JSON, engines, traces, pictures |
//! | [`tui`] | screen |
//! | [`config`] | user's configuration of the screen |
//! | [`cli`] | one file per subcommand |
//!
//! Load, plan, check, simulate, write JSON:
//!
//! ```
//! use std::sync::Arc;
//! use plantui::{cluster::{GivenLimits, LimitKind}, export::plan_json, family, planner, run::Run, simulate::Schedule, workload};
//!
//! let workload = Arc::new(workload::builtin());
//! let limits = family::resolve(&workload, &GivenLimits::default().with(LimitKind::Devices, 16))?;
//! let piper = planner::find("piper").ok_or("no such planner")?;
//! let options = planner::Options::defaults(piper.options());
//! let search = planner::Search::default();
//! let mut run = Run::new(piper, planner::Problem { workload, limits, options }, &search)?;
//! run.simulate(Schedule::OneForwardOneBackward, &search);
//! assert!(run.score.as_ref().is_some_and(|score| score.is_valid()), "every plan was checked independently");
//! assert!(plan_json::to_json(&plan_json::of_run(&run)).contains("\"schema\": \"plantui.plan/1\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "screen")]
pub mod cli;
#[cfg(feature = "screen")]
pub mod config;
#[cfg(feature = "screen")]
mod notice;
#[cfg(feature = "screen")]
pub mod tui;

#[doc(inline)]
pub use plantui_core::{
    cluster, family, graph, mapping, plan, random, search, simulate, source, terms, text, units, workload,
};
#[doc(inline)]
pub use plantui_export as export;
#[doc(inline)]
pub use plantui_jobs as jobs;
#[doc(inline)]
pub use plantui_planners as planner;
#[doc(inline)]
pub use plantui_study::{self as study, generate, run};
