//! Fitting the constants to measured runs of a user's own stack.
//!
//! [`read`] takes runs from a table or an engine's log; [`Fit::of`] finds the factors on rates and exposure under which
//! predictions meet the measurements best, says how sure that is, how far off each run is when it is left out, what the
//! runs cannot tell, and which run would tell most. `O(runs · rounds)` predictions for the fit and as many for each run
//! left out; the search for the next run predicts some hundred layouts.

mod calibration;
mod fit;
mod log;
mod next;
mod table;

use thiserror::Error;

use super::{
    Model,
    check::Refusal,
    request::{Request, Resolved},
};

pub use calibration::Calibration;
pub use fit::{Factor, Fit, Row};
pub use next::NextRun;

/// A run that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    /// Where it was read: file and line, or the file alone.
    pub place: String,
    /// What was run.
    pub resolved: Resolved,
    /// Time of an iteration, seconds.
    pub measured_s: f64,
    /// Peak of the fullest rank, bytes.
    pub measured_bytes: Option<f64>,
}

/// Why runs cannot be read. Displays as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct RunError {
    /// File and line.
    pub place: String,
    /// What is wrong.
    pub problem: String,
    /// What would mend it.
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

/// Reads the runs of a file's text: a table with the column `measured_s`, a log of Megatron-LM or one of torchtitan. What
/// the file does not tell is taken from `defaults`. `source` is how messages call the file.
///
/// # Errors
/// [`RunError`] with the line and the column, setting or missing thing.
pub fn read(text: &str, source: &str, model: &Model, defaults: &Request) -> Result<Vec<MeasuredRun>, RunError> {
    let plain = log::without_escapes(text);
    if log::is_megatron(&plain) {
        return Ok(vec![log::megatron(&plain, source, model, defaults)?]);
    }
    if log::is_torchtitan(&plain) {
        return Ok(vec![log::torchtitan(&plain, source, model, defaults)?]);
    }
    table::read(text, source, model, defaults)
}
