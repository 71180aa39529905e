//! Plans how a neural network is split over many devices: pipeline stages, replicas, tensor parallelism,
//! recomputation, and the device of each part.
//!
//! Start with the planner [`joint`](planner::joint): it finds the fastest simulated iteration of a model that is to be
//! trained, with a lower bound.
//!
//! ```
//! use std::{path::Path, sync::Arc};
//! use plantui::{cluster::{GivenLimits, LimitKind}, family, planner, run::Run, simulate::Schedule, workload};
//!
//! // A model by its published name, a Hugging Face config.json, or a profile.
//! let workload = Arc::new(workload::load(Path::new("llama-3.1-8b"))?);
//! let given = GivenLimits::default().with(LimitKind::Devices, 16).with(LimitKind::Batch, 128);
//! let limits = family::resolve(&workload, &given)?;
//!
//! let joint = planner::find("joint").ok_or("no such planner")?;
//! let options = planner::Options::defaults(joint.options());
//! let search = planner::Search::default();
//! let mut run = Run::new(joint, planner::Problem { workload, limits, options }, &search)?;
//!
//! // The simulator plays one iteration, event by event.
//! run.simulate(Schedule::OneForwardOneBackward, &search);
//! let timeline = &run.simulation.as_ref().ok_or("not simulated")?.timeline;
//!
//! // The plan was checked independently of the planner, and its objective is the simulated time.
//! let (plan, score) = run.outcome.plan.as_ref().zip(run.score.as_ref()).ok_or("no plan")?;
//! assert!(score.is_valid());
//! assert!((timeline.iteration_s - score.value).abs() <= 1e-9 * score.value);
//! let layout = plan.configuration().ok_or("a layout")?;
//! assert_eq!((plan.devices_used(), layout.layout.pipeline as usize), (16, plan.stages.len()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same [`Run`](run::Run) leaves as JSON ([`export::plan_json`]), as a trace, or as the configuration of a training
//! engine ([`export::engine`]). [`study`] compares planners, sweeps limits and explains plans. The published planners
//! are [`piper`](planner::piper), [`placement`](planner::placement), [`dapple`](planner::dapple),
//! [`pase`](planner::pase) and [`parmesan`](planner::parmesan).
//!
//! The modules form one path; each uses only those above it. Crates hold the order: this package adds the screen and
//! the command line to the library, which it re-exports.
//!
//! | module | step |
//! |---|---|
//! | [`text`] | safe text for a terminal |
//! | [`units`] | bytes, seconds and bandwidths in user syntax |
//! | [`terms`] | terms of the field, with a picture each |
//! | [`source`] | errors in files, with their place |
//! | [`graph`] | DAGs, orders, closed sets |
//! | [`cluster`] | limits, hardware presets, topologies |
//! | [`workload`] | profiles, models, formats, lint |
//! | [`plan`] | plans and their JSON |
//! | [`schedule`] | schedules as lists of actions: files, generators, what breaks one |
//! | [`simulate`] | the event simulator |
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

#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod config;
#[cfg(feature = "cli")]
mod folders;
#[cfg(feature = "cli")]
mod notice;
#[cfg(feature = "cli")]
mod streams;
#[cfg(feature = "screen")]
pub mod tui;

#[cfg(feature = "cli")]
#[doc(inline)]
pub use plantui_core::schemas;
#[doc(inline)]
pub use plantui_core::{
    cluster, family, graph, mapping, plan, random, schedule, search, simulate, source, terms, text, units, workload,
};
#[doc(inline)]
pub use plantui_export as export;
#[doc(inline)]
pub use plantui_jobs as jobs;
#[doc(inline)]
pub use plantui_planners as planner;
#[doc(inline)]
pub use plantui_study::{self as study, generate, run};
