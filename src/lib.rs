//! Planning how a neural network is cut over many devices.
//!
//! plantui loads a profiled workload, plans its cut with published algorithms, checks and simulates every plan, and shows
//! or exports it. The modules form one path; each uses only those above it:
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
//! | [`generate`] | workloads from a model and hardware |
//! | [`planner`] | how: the trait, the search handle, the algorithms |
//! | [`run`] | problem and planner in, checked and simulated plan out |
//! | [`study`] | questions asked of many plans |
//! | [`export`] | plan JSON, engines, traces, pictures |
//! | [`tui`] | the screen |
//! | [`config`] | what a user's own file sets on the screen |
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

// With `milp` one file calls HiGHS: `planner::placement::milp::callback` says why.
#![cfg_attr(not(feature = "milp"), forbid(unsafe_code))]

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
