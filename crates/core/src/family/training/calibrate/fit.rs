//! Fit of three factors to a user's runs, with the errors of each run.
//!
//! The factors are on the rate of computing (products, attention, elementwise kernels), on that of links, and on the
//! exposed part of data-parallel transfers. One run fits the first factor; two or three runs the first two; the third
//! needs four runs that vary it.

use serde::Serialize;

use super::{
    MeasuredRun, RunError,
    calibration::{Calibration, FACTORS},
    next::{self, NextRun},
};
use crate::{
    family::training::fit::{FittedFactors, Observation, TimedRun},
    workload::training::{constants::Constants, hardware::Accelerator, model::Model, run::Stack},
};

/// Fitted factor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FittedFactor {
    /// Name of the factor.
    pub name: &'static str,
    /// Value of the factor; 1 if it is not identified.
    pub value: f64,
    /// Half the width of its posterior, relative.
    pub sigma: f64,
    /// Half the width of its prior, relative.
    pub prior_sigma: f64,
    /// True if the runs identify it.
    pub identified: bool,
}

/// One run with its predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FittedRun {
    /// File and line of the run.
    pub place: String,
    /// Degrees of the run.
    pub layout: String,
    /// Measured seconds.
    pub measured_s: f64,
    /// Relative error with the shipped constants.
    pub shipped_error: f64,
    /// Relative error with the fitted constants.
    pub fitted_error: f64,
    /// Relative error with constants fitted to the other runs; `None` for a single run.
    pub left_out_error: Option<f64>,
    /// Relative error of the memory with shipped constants, if measured.
    pub memory_error: Option<f64>,
}

/// Result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationFit {
    /// Factors, ready to be applied.
    pub calibration: Calibration,
    /// Factors with their uncertainties.
    pub factors: Vec<FittedFactor>,
    /// Runs with their predictions.
    pub rows: Vec<FittedRun>,
    /// Most informative next run about the order of layouts; `None` if none is left.
    pub next: Option<NextRun>,
}

impl CalibrationFit {
    /// Fits the factors to runs of a model, on top of factors on single constants (`kernels`).
    ///
    /// # Errors
    /// [`RunError`] if an engine refuses one of the runs, or if there are no runs.
    pub fn of(model: &Model, runs: &[MeasuredRun], kernels: Option<&Calibration>) -> Result<Self, RunError> {
        let Some(first) = runs.first() else {
            return Err(RunError::new("the runs", "are none", "give at least one measured run"));
        };
        let mut all = vec![];
        for run in runs {
            let resolved = &run.resolved;
            let constants = on_kernels(&resolved.accelerator, resolved.run.stack, kernels);
            let one = TimedRun::new(model, &resolved.run, &resolved.accelerator, resolved.devices, constants)
                .map_err(|refusal| RunError::of(&run.place, refusal))?;
            all.push((one, run.measured_s.ln()));
        }
        let observed: Vec<Observation<'_>> = all.iter().map(|(timed, log)| Observation { timed, log: *log }).collect();
        let solution = solve(&observed);
        let rows = rows(runs, &observed, &solution.logs);
        let told = |names: Vec<String>| {
            let mut names: Vec<String> = names;
            names.dedup();
            names.join(", ")
        };
        let mean = |values: Vec<f64>| values.iter().map(|v| v.abs()).sum::<f64>() / values.len() as f64;
        let left_out_error = mean(rows.iter().map(|row| row.left_out_error.unwrap_or(row.shipped_error)).collect());
        let memory = memory_factor(rows.iter().filter_map(|row| row.memory_error));
        let calibration = Calibration {
            model: model.name.clone(),
            hardware: told(runs.iter().map(|run| run.resolved.accelerator.id.to_string()).collect()),
            stack: told(runs.iter().map(|run| run.resolved.stack.id().to_string()).collect()),
            runs: runs.len() as u32,
            memory,
            kernels: kernels.map(|kernels| kernels.kernels.clone()).unwrap_or_default(),
            left_out_error,
            ..Calibration::of_logs(&solution.logs)
        };
        let factors = FACTORS
            .iter()
            .enumerate()
            .map(|(index, factor)| FittedFactor {
                name: factor.name,
                value: solution.logs[index].exp(),
                sigma: solution.covariance[index][index].sqrt(),
                prior_sigma: factor.prior,
                identified: solution.identified[index],
            })
            .collect();
        let next = next::run(model, first, runs, &solution.logs, &solution.covariance, kernels);
        Ok(CalibrationFit { calibration, factors, rows, next })
    }
}

/// Shipped constants with the factors of measured kernels.
pub(super) fn on_kernels(accelerator: &Accelerator, stack: Stack, kernels: Option<&Calibration>) -> Constants {
    let shipped = Constants::shipped(accelerator.generation, stack);
    let kernels = kernels.map(|kernels| kernels.kernels.clone()).unwrap_or_default();
    Calibration { kernels, ..Calibration::of_logs(&[]) }.apply(&shipped)
}

/// Factor on predicted memory that takes these relative errors away; 1 if there are none.
fn memory_factor(errors: impl Iterator<Item = f64>) -> f64 {
    let ratios: Vec<f64> = errors.map(|error| -(1.0 + error).ln()).collect();
    if ratios.is_empty() { 1.0 } else { (ratios.iter().sum::<f64>() / ratios.len() as f64).exp() }
}

fn rows(runs: &[MeasuredRun], observed: &[Observation<'_>], logs: &[f64]) -> Vec<FittedRun> {
    let error = |one: &Observation<'_>, logs: &[f64]| (one.timed.log_time(&FACTORS, logs) - one.log).exp() - 1.0;
    runs.iter()
        .zip(observed)
        .enumerate()
        .map(|(index, (run, one))| {
            let others: Vec<Observation<'_>> =
                observed.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, o)| *o).collect();
            FittedRun {
                place: run.place.clone(),
                layout: run.resolved.run.layout.to_string(),
                measured_s: run.measured_s,
                shipped_error: error(one, &[0.0; 3]),
                fitted_error: error(one, logs),
                left_out_error: (!others.is_empty()).then(|| error(one, &solve(&others).logs)),
                memory_error: run.measured_bytes.map(|bytes| one.timed.bytes() / bytes - 1.0),
            }
        })
        .collect()
}

/// Fits as many factors as the runs identify.
fn solve(runs: &[Observation<'_>]) -> FittedFactors {
    FittedFactors::of(runs, &FACTORS, &[true, runs.len() >= 2, runs.len() >= 4 && varies(runs)])
}

/// True if the exposed part of data-parallel transfers differs between runs.
fn varies(runs: &[Observation<'_>]) -> bool {
    let slopes: Vec<f64> = runs.iter().map(|run| run.timed.gradient(&FACTORS, &[0.0; 3])[2]).collect();
    let most = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - slopes.iter().copied().fold(f64::INFINITY, f64::min) >= 0.01
}
