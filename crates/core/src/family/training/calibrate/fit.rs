//! Least squares on the logarithm of the time, with priors, by Gauss-Newton.
//!
//! Three factors are fitted: on the rate of computing (products, attention, elementwise kernels), on that of links, and
//! on the exposed part of data-parallel transfers. The priors of their logarithms have mean 0 and widths 0.2, 0.4 and
//! 0.6. A measured time has an error of 4 %. One run fits the first factor; two or three runs the first two; the third
//! needs four runs that vary it. A factor whose posterior is about as wide as its prior is not identified and stays 1.

use super::{
    MeasuredRun, RunError,
    calibration::{self, Calibration},
    next::{self, NextRun},
};
use crate::{
    family::training::{check, iteration::IterationCosts, memory, program, split::StageSplit},
    workload::training::{constants::Constants, hardware::Accelerator, model::Model, run::TrainingRun},
};

/// Widths of the priors, in logarithms.
pub(super) const PRIOR: [f64; 3] = [0.2, 0.4, 0.6];
/// Random error of a measured time, in logarithms.
pub(super) const NOISE: f64 = 0.04;
/// Maximum ratio of posterior to prior width for an identified factor.
const IDENTIFIED: f64 = 0.9;
/// Names of the factors.
const NAMES: [&str; 3] = ["compute rate", "link rate", "exposed data-parallel share"];

/// Logarithms of the factors.
pub(super) type Theta = [f64; 3];

/// Fitted factor.
#[derive(Debug, Clone, Copy, PartialEq)]
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
#[derive(Debug, Clone, PartialEq)]
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

/// Time of a run as a function of the factors.
#[derive(Debug)]
pub(super) struct RunTimeModel<'a> {
    pub(super) model: &'a Model,
    pub(super) run: &'a TrainingRun,
    pub(super) accelerator: &'a Accelerator,
    split: StageSplit,
}

impl<'a> RunTimeModel<'a> {
    pub(super) fn new(
        model: &'a Model,
        run: &'a TrainingRun,
        accelerator: &'a Accelerator,
        devices: u64,
    ) -> Result<Self, check::Refusal> {
        Ok(RunTimeModel { model, run, accelerator, split: check::check(model, run, accelerator, devices)? })
    }

    /// Logarithm of the seconds.
    pub(super) fn log_time(&self, theta: &Theta) -> f64 {
        let constants = applied(theta).apply(&Constants::shipped(self.accelerator.generation, self.run.stack));
        let costs = IterationCosts::of(self.model, self.run, self.accelerator, &constants, &self.split);
        let even = StageSplit::is_even(self.model.layers.len(), &self.run.layout);
        if self.run.layers.is_empty() && even {
            return costs.terms().iteration.ln();
        }
        program::iteration(self.model, self.run, &costs, &memory::stages(self.model, self.run, &self.split)).ln()
    }

    /// Derivatives of the logarithm, by finite differences.
    pub(super) fn gradient(&self, theta: &Theta) -> Theta {
        const STEP: f64 = 1e-4;
        let mut gradient = [0.0; 3];
        for (index, slope) in gradient.iter_mut().enumerate() {
            let shifted = |by: f64| {
                let mut theta = *theta;
                theta[index] += by;
                self.log_time(&theta)
            };
            *slope = (shifted(STEP) - shifted(-STEP)) / (2.0 * STEP);
        }
        gradient
    }

    /// Bytes on the fullest rank.
    pub(super) fn bytes(&self) -> f64 {
        memory::fullest(&memory::stages(self.model, self.run, &self.split))
    }

    /// True if the run fits in memory with its reserve.
    pub(super) fn fits(&self) -> bool {
        memory::fill(&memory::stages(self.model, self.run, &self.split), self.run, self.accelerator) <= 1.0
    }
}

/// Calibration with these factors, without their source.
fn applied(theta: &Theta) -> Calibration {
    let [compute, links, data_exposed] = theta.map(f64::exp);
    Calibration {
        schema: calibration::SCHEMA.into(),
        model: String::new(),
        hardware: String::new(),
        stack: String::new(),
        runs: 0,
        compute,
        links,
        data_exposed,
        memory: 1.0,
        left_out_error: 0.0,
    }
}

impl CalibrationFit {
    /// Fits the factors to runs of a model.
    ///
    /// # Errors
    /// [`RunError`] if an engine refuses one of the runs, or if there are no runs.
    pub fn of(model: &Model, runs: &[MeasuredRun]) -> Result<Self, RunError> {
        let Some(first) = runs.first() else {
            return Err(RunError::new("the runs", "are none", "give at least one measured run"));
        };
        let mut all = vec![];
        for run in runs {
            let resolved = &run.resolved;
            let one = RunTimeModel::new(model, &resolved.run, &resolved.accelerator, resolved.devices)
                .map_err(|refusal| RunError::of(&run.place, refusal))?;
            all.push((one, run.measured_s.ln()));
        }
        let observed: Vec<Observation<'_>> = all.iter().map(|(timed, log)| Observation { timed, log: *log }).collect();
        let solution = solve(&observed);
        let rows = rows(runs, &observed, &solution.theta);
        let told = |names: Vec<String>| {
            let mut names: Vec<String> = names;
            names.dedup();
            names.join(", ")
        };
        let mean = |values: Vec<f64>| values.iter().map(|v| v.abs()).sum::<f64>() / values.len() as f64;
        let left_out_error = mean(rows.iter().map(|row| row.left_out_error.unwrap_or(row.shipped_error)).collect());
        let ratios: Vec<f64> =
            rows.iter().filter_map(|row| row.memory_error.map(|error| -(1.0 + error).ln())).collect();
        let memory = if ratios.is_empty() { 1.0 } else { (ratios.iter().sum::<f64>() / ratios.len() as f64).exp() };
        let calibration = Calibration {
            model: model.name.clone(),
            hardware: told(runs.iter().map(|run| run.resolved.accelerator.id.to_string()).collect()),
            stack: told(runs.iter().map(|run| run.resolved.stack.id().to_string()).collect()),
            runs: runs.len() as u32,
            memory,
            left_out_error,
            ..applied(&solution.theta)
        };
        let factors = (0..3)
            .map(|index| FittedFactor {
                name: NAMES[index],
                value: solution.theta[index].exp(),
                sigma: solution.covariance[index][index].sqrt(),
                prior_sigma: PRIOR[index],
                identified: solution.free[index],
            })
            .collect();
        let next = next::run(model, first, runs, &solution.theta, &solution.covariance);
        Ok(CalibrationFit { calibration, factors, rows, next })
    }
}

fn rows(runs: &[MeasuredRun], observed: &[Observation<'_>], theta: &Theta) -> Vec<FittedRun> {
    let error = |one: &Observation<'_>, theta: &Theta| (one.timed.log_time(theta) - one.log).exp() - 1.0;
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
                fitted_error: error(one, theta),
                left_out_error: (!others.is_empty()).then(|| error(one, &solve(&others).theta)),
                memory_error: run.measured_bytes.map(|bytes| one.timed.bytes() / bytes - 1.0),
            }
        })
        .collect()
}

/// Run with the logarithm of its time.
#[derive(Debug, Clone, Copy)]
struct Observation<'a> {
    timed: &'a RunTimeModel<'a>,
    log: f64,
}

/// Best-fitting factors.
struct FittedFactors {
    theta: Theta,
    /// Covariance of all three factors; fixed ones have their priors'.
    covariance: [[f64; 3]; 3],
    free: [bool; 3],
}

/// Fits as many factors as the runs identify.
fn solve(runs: &[Observation<'_>]) -> FittedFactors {
    let mut free = [true, runs.len() >= 2, runs.len() >= 4 && varies(runs)];
    loop {
        let solution = descend(runs, free);
        let vague = (1..3).find(|&k| free[k] && solution.covariance[k][k].sqrt() > IDENTIFIED * PRIOR[k]);
        match vague {
            Some(index) => free[index] = false,
            None => return solution,
        }
    }
}

/// True if the exposed part of data-parallel transfers differs between runs.
fn varies(runs: &[Observation<'_>]) -> bool {
    let slopes: Vec<f64> = runs.iter().map(|run| run.timed.gradient(&[0.0; 3])[2]).collect();
    let most = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - slopes.iter().copied().fold(f64::INFINITY, f64::min) >= 0.01
}

fn descend(runs: &[Observation<'_>], free: [bool; 3]) -> FittedFactors {
    let mut theta = [0.0; 3];
    let mut covariance = [[0.0; 3]; 3];
    for _ in 0..30 {
        // Normal equations with the priors. Fixed factors have slope 0, so they stay.
        let mut matrix = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for k in 0..3 {
            let weight = 1.0 / PRIOR[k].powi(2);
            matrix[k][k] = weight;
            right[k] = -weight * theta[k];
        }
        for run in runs {
            let mut slope = run.timed.gradient(&theta);
            (0..3).filter(|&k| !free[k]).for_each(|k| slope[k] = 0.0);
            let residual = run.log - run.timed.log_time(&theta);
            for i in 0..3 {
                right[i] += slope[i] * residual / NOISE.powi(2);
                for j in 0..3 {
                    matrix[i][j] += slope[i] * slope[j] / NOISE.powi(2);
                }
            }
        }
        covariance = inverse(&matrix);
        let step: Vec<f64> = covariance.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect();
        for k in (0..3).filter(|&k| free[k]) {
            // Limits a step to a factor of e.
            theta[k] = (theta[k] + step[k].clamp(-1.0, 1.0)).clamp(-4.0, 4.0);
        }
        if step.iter().all(|s| s.abs() < 1e-10) {
            break;
        }
    }
    FittedFactors { theta, covariance, free }
}

/// Inverse of a symmetric positive 3 × 3 matrix, by cofactors.
fn inverse(m: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let minor = |i: usize, j: usize| {
        let (a, b) = ((i + 1) % 3, (i + 2) % 3);
        let (c, d) = ((j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    let mut inverse = [[0.0; 3]; 3];
    for (i, row) in inverse.iter_mut().enumerate() {
        for (j, cell) in row.iter_mut().enumerate() {
            *cell = minor(j, i) / determinant;
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_is_one() {
        let m = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]];
        let n = inverse(&m);
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let product: f64 = (0..3).map(|k| m[i][k] * n[k][j]).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
        }
    }
}
