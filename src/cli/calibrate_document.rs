//! Calibration as JSON, schema `plantui.calibrate/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::family::training::{
    Model,
    calibrate::{
        Calibration, CalibrationFit, FittedFactor, FittedIteration, FittedRun, KernelFactor, KernelFit,
        MeasuredKernels, NextRun,
    },
};
use crate::schemas::DocumentSchema;

/// Schema of this version.
const SCHEMA: &str = "plantui.calibrate/1";

/// Constants fitted to measured runs, to measured kernels, or to both.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CalibrateDocument<'a> {
    /// Always `plantui.calibrate/1`.
    schema: &'static str,
    /// Fit to runs.
    #[serde(flatten)]
    fit: Option<FitPart<'a>>,
    /// Fit to kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<KernelsPart<'a>>,
    /// File that `--write` writes.
    calibration: Option<&'a Calibration>,
}

/// Fit to runs.
#[derive(Debug, Serialize, JsonSchema)]
struct FitPart<'a> {
    /// Name of the model.
    model: &'a str,
    /// Factors with their uncertainties.
    factors: &'a [FittedFactor],
    /// Runs with their predictions.
    runs: &'a [FittedRun],
    /// Mean error on a run that was left out of the fit, relative.
    left_out_error: f64,
    /// Most informative next run; `null` if none is left.
    next_run: Option<NextRunPart>,
}

/// Run that would tell most about the order of layouts.
#[derive(Debug, Serialize, JsonSchema)]
struct NextRunPart {
    /// Its degrees, in the notation of `--parallel`.
    layout: String,
    /// Expected seconds of an iteration.
    expected_s: f64,
    /// Share of the uncertainty that remains after it, from 0 to 1.
    remains: f64,
}

/// Fit to kernels.
#[derive(Debug, Serialize, JsonSchema)]
struct KernelsPart<'a> {
    /// Device that was measured.
    device: &'a str,
    /// Version of torch.
    torch: &'a str,
    /// Factors from kernels.
    factors: &'a [KernelFactor],
    /// Measured iterations with their predictions.
    iterations: &'a [FittedIteration],
}

impl<'a> CalibrateDocument<'a> {
    /// Document of the fits that were made.
    pub(super) fn new(
        fit: Option<(&'a Model, &'a CalibrationFit)>,
        kernels: Option<(&'a MeasuredKernels, &'a KernelFit)>,
        calibration: Option<&'a Calibration>,
    ) -> Self {
        CalibrateDocument {
            schema: SCHEMA,
            fit: fit.map(|(model, fit)| FitPart {
                model: &model.name,
                factors: &fit.factors,
                runs: &fit.rows,
                left_out_error: fit.calibration.left_out_error,
                next_run: fit.next.as_ref().map(next_run),
            }),
            kernels: kernels.map(|(file, fit)| KernelsPart {
                device: &file.device,
                torch: &file.torch,
                factors: &fit.factors,
                iterations: &fit.iterations,
            }),
            calibration,
        }
    }
}

fn next_run(run: &NextRun) -> NextRunPart {
    NextRunPart { layout: run.layout.to_string(), expected_s: run.expected_s, remains: run.remains }
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<CalibrateDocument<'_>>(SCHEMA)
}
