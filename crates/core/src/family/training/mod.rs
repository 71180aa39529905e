//! Prediction of a transformer's training iteration on real machines, from the model's sizes and the machines' data
//! sheets.
//!
//! A [`Model`] (from a Hugging Face `config.json`, a preset or a [published] name) runs as a [`TrainingRun`] (devices,
//! degrees, batch, precision, software settings) on an [`Accelerator`]. [`iteration`] has the time in closed form with
//! its terms, [`memory`] the memory of every pipeline stage, and [`program`] the same run for the simulator.
//! [`Estimate`] has all of it, with the error of such predictions on published runs ([`truth`]).
//!
//! The formulas follow the units of Megatron-LM's execution: matrix products by a roofline with a penalty for small
//! sides, fused attention, bytes of elementwise kernels, collectives with an exposed fraction. Their constants were
//! fitted on published measurements, not derived; `docs/src/background/truth.md` has their range of validity. Complexity: `O(layers)`
//! time and memory for a stage's costs, `O(stages)` for an iteration.
//!
//! One surprise: power, not the data sheet's peak, sets the rate of matrix products within a generation.

pub mod calibrate;
pub mod check;
pub mod configured;
mod describe;
mod dials;
mod estimate;
mod experts;
pub mod fabric;
mod facts;
pub mod fit;
pub mod iteration;
mod kind;
pub mod kinds;
pub mod layer;
pub mod memory;
mod offers;
mod platform;
pub mod program;
pub mod ranks;
pub mod remedy;
pub mod repeated;
pub mod request;
mod run_links;
mod score;
pub mod split;
pub mod truth;
mod wiring;

pub use kind::USUAL_BATCH;
pub use wiring::links;

pub use crate::workload::training::{
    Accelerator, Adapter, Attention, AttentionKernel, Constants, ContextStyle, Dispatcher, Ends, ExpertOverlap,
    Experts, FeedForward, Imbalance, LayerKind, Layout, Mixer, Model, Modules, Projection, Recompute, Release, Span,
    Stack, TrainingPrecision, TrainingRun, TrainingSettings, ZeroBubble, expert_settings, from_hugging_face, hardware,
    published, read_like, run,
};
pub use calibrate::Calibration;
pub use estimate::{Estimate, Fits, StageEstimate};
pub use facts::{PlanEvidence, evidence};
