//! Fits the constants to measured runs of a user's own stack.
//!
//! [`read`] takes runs from a table or an engine's log. [`CalibrationFit::of`] finds the factors on rates and exposure
//! that fit the measurements best, with their uncertainties. It also reports the leave-one-out error of each run, the
//! factors that the runs do not identify, and the most informative next run. `O(runs · rounds)` predictions for the
//! fit, and as many for each run left out. [`MeasuredKernels`] has the kernels and iterations of one device. The search for the next run predicts some hundred layouts.

mod calibration;
mod fit;
mod kernels;
pub mod log;
mod next;
mod table;

use thiserror::Error;

use super::{
    check::Refusal,
    request::{Request, ResolvedRequest},
};
use crate::workload::training::model::Model;

pub use calibration::Calibration;
pub use fit::{CalibrationFit, FittedFactor, FittedRun};
pub use kernels::{FittedIteration, KernelFactor, KernelFit, MeasuredKernels};
pub use next::NextRun;
#[cfg(feature = "schema")]
pub(crate) use {calibration::SCHEMA as CALIBRATION_SCHEMA, kernels::SCHEMA as KERNELS_SCHEMA};

/// Measured run.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    /// File and line of the run, or the file alone.
    pub place: String,
    /// Configuration of the run.
    pub resolved: ResolvedRequest,
    /// Iteration time, seconds.
    pub measured_s: f64,
    /// Peak memory of the fullest rank, bytes.
    pub measured_bytes: Option<f64>,
}

/// Reason why runs cannot be read. Displays as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct RunError {
    /// File and line.
    pub place: String,
    /// Problem.
    pub problem: String,
    /// Repair.
    pub repair: String,
}

impl RunError {
    fn new(place: impl Into<String>, problem: impl Into<String>, repair: impl Into<String>) -> Self {
        RunError { place: place.into(), problem: problem.into(), repair: repair.into() }
    }

    fn of(place: &str, refusal: Refusal) -> Self {
        RunError::new(place, refusal.problem, refusal.repair)
    }
}

/// Reads the runs of a file's text: a table with the column `measured_s`, or a log of torchtitan. Facts
/// missing in the file come from `defaults`. `source` is the file's name in messages.
///
/// # Errors
/// [`RunError`] with the line and the column, setting or missing item.
pub fn read(text: &str, source: &str, model: &Model, defaults: &Request) -> Result<Vec<MeasuredRun>, RunError> {
    let plain = crate::text::without_escapes(text);
    if log::is_torchtitan(&plain) {
        return Ok(vec![log::torchtitan(&plain, source, model, defaults)?]);
    }
    table::read(text, source, model, defaults)
}
