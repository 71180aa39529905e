//! Planner of how a neural network is split over many devices.
//!
//! plantui loads a profiled workload, plans its split with published algorithms, checks and simulates every plan, and
//! shows or exports it. The modules form one path; each uses only those above it:
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
//! | [`generate`] | workloads from a model and hardware |
//! | [`planner`] | trait, search handle, algorithms |
//! | [`run`] | checked and simulated plan for a problem and a planner |
//! | [`study`] | analyses of many plans |
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
pub mod export;
pub mod generate;
#[cfg(feature = "screen")]
mod notice;
pub mod planner;
pub mod run;
pub mod study;
#[cfg(feature = "screen")]
pub mod tui;

#[doc(inline)]
pub use plantui_core::{cluster, family, graph, plan, simulate, source, terms, text, units, workload};
