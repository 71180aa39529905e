//! Least squares on the logarithm of iteration times, with priors, by Gauss-Newton.
//!
//! A factor multiplies some of the constants of `estimate`. The prior of its logarithm has mean 0 and a width; a measured
//! time has an error of 4 %, and a residual beyond 12 % counts linearly (Huber). A factor whose posterior is about as wide
//! as its prior is not identified and stays 1. `O(runs · factors · rounds)` predictions.

use super::{check, iteration::IterationCosts, memory, program, split::StageSplit};
use crate::workload::training::{constants::Constants, hardware::Accelerator, model::Model, run::TrainingRun};

/// Random error of a measured time, in logarithms.
pub const NOISE: f64 = 0.04;
/// Maximum ratio of posterior to prior width for an identified factor.
const IDENTIFIED: f64 = 0.9;
/// Residual from which a run's weight falls, in logarithms.
const FAR: f64 = 0.12;
/// Rounds of Gauss-Newton at most.
const ROUNDS: usize = 30;

/// Factor on some constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// Name of the factor.
    pub name: &'static str,
    /// Names of the constants that it multiplies.
    pub constants: &'static [&'static str],
    /// Width of the prior of its logarithm.
    pub prior: f64,
}

impl Factor {
    /// Constants with each factor applied. `logs` has the logarithm of each factor. Shares of transfers stay below 1.
    pub fn apply(factors: &[Factor], logs: &[f64], constants: &Constants) -> Constants {
        let mut applied = *constants;
        for (factor, log) in factors.iter().zip(logs) {
            for name in factor.constants {
                if let Some(value) = applied.by_name(name) {
                    *value *= log.exp();
                    if Constants::is_share(name) {
                        *value = value.min(1.0);
                    }
                }
            }
        }
        applied
    }
}

/// Measured run whose time is a function of the constants.
#[derive(Debug)]
pub struct TimedRun<'a> {
    /// Model of the run.
    pub model: &'a Model,
    /// Configuration of the run.
    pub run: &'a TrainingRun,
    /// Hardware of the run.
    pub accelerator: &'a Accelerator,
    /// Constants before the fit.
    pub constants: Constants,
    split: StageSplit,
}

impl<'a> TimedRun<'a> {
    /// Run on this many devices.
    ///
    /// # Errors
    /// [`check::Refusal`] if the engine cannot run it.
    pub fn new(
        model: &'a Model,
        run: &'a TrainingRun,
        accelerator: &'a Accelerator,
        devices: u64,
        constants: Constants,
    ) -> Result<Self, check::Refusal> {
        let split = check::check(model, run, accelerator, devices)?;
        Ok(TimedRun { model, run, accelerator, constants, split })
    }

    /// Logarithm of the seconds with these factors.
    pub fn log_time(&self, factors: &[Factor], logs: &[f64]) -> f64 {
        let constants = Factor::apply(factors, logs, &self.constants);
        let costs = IterationCosts::of(self.model, self.run, self.accelerator, &constants, &self.split);
        let even = StageSplit::is_even(self.model.layers.len(), &self.run.layout);
        if self.run.layers.is_empty() && even && self.run.zero_bubble.is_none() {
            return costs.terms().iteration.ln();
        }
        program::iteration(self.model, self.run, &costs, &memory::stages(self.model, self.run, &self.split)).ln()
    }

    /// Derivatives of the logarithm, by finite differences.
    pub fn gradient(&self, factors: &[Factor], logs: &[f64]) -> Vec<f64> {
        const STEP: f64 = 1e-4;
        let slope = |index: usize| {
            let shifted = |by: f64| {
                let mut logs = logs.to_vec();
                logs[index] += by;
                self.log_time(factors, &logs)
            };
            (shifted(STEP) - shifted(-STEP)) / (2.0 * STEP)
        };
        (0..factors.len()).map(slope).collect()
    }

    /// Bytes on the fullest rank.
    pub fn bytes(&self) -> f64 {
        memory::fullest(&memory::stages(self.model, self.run, &self.split))
    }

    /// True if the run fits in memory with its reserve.
    pub fn fits(&self) -> bool {
        memory::fill(&memory::stages(self.model, self.run, &self.split), self.run, self.accelerator) <= 1.0
    }
}

/// Run with the logarithm of its measured seconds.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// Run.
    pub timed: &'a TimedRun<'a>,
    /// Logarithm of the measured seconds.
    pub log: f64,
}

/// Factors that fit measured times best.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedFactors {
    /// Logarithm of each factor; 0 if it is not identified.
    pub logs: Vec<f64>,
    /// Covariance of all logarithms; fixed ones have their priors'.
    pub covariance: Vec<Vec<f64>>,
    /// True for each factor that the runs identify.
    pub identified: Vec<bool>,
}

impl FittedFactors {
    /// Fits as many of the factors marked `free` as the runs identify. The vaguest one is fixed first. The first factor
    /// marked `free` is never fixed.
    pub fn of(runs: &[Observation<'_>], factors: &[Factor], free: &[bool]) -> Self {
        let mut free = free.to_vec();
        let first = free.iter().position(|&f| f);
        loop {
            let fit = descend(runs, factors, &free);
            let width = |k: usize| fit.covariance[k][k].sqrt() / factors[k].prior;
            let vague = (0..factors.len()).filter(|&k| free[k] && Some(k) != first && width(k) > IDENTIFIED);
            match vague.max_by(|&a, &b| width(a).total_cmp(&width(b))) {
                Some(index) => free[index] = false,
                None => return fit,
            }
        }
    }
}

fn descend(runs: &[Observation<'_>], factors: &[Factor], free: &[bool]) -> FittedFactors {
    let count = factors.len();
    let mut logs = vec![0.0; count];
    let mut covariance = vec![];
    for _ in 0..ROUNDS {
        // Normal equations with the priors. Fixed factors have slope 0, so they stay.
        let mut matrix = vec![vec![0.0; count]; count];
        let mut right = vec![0.0; count];
        for k in 0..count {
            let weight = 1.0 / factors[k].prior.powi(2);
            matrix[k][k] = weight;
            right[k] = -weight * logs[k];
        }
        for run in runs {
            let mut slope = run.timed.gradient(factors, &logs);
            (0..count).filter(|&k| !free[k]).for_each(|k| slope[k] = 0.0);
            let residual = run.log - run.timed.log_time(factors, &logs);
            let weight = (FAR / residual.abs()).min(1.0) / NOISE.powi(2);
            for i in 0..count {
                right[i] += slope[i] * residual * weight;
                for j in 0..count {
                    matrix[i][j] += slope[i] * slope[j] * weight;
                }
            }
        }
        covariance = inverse(matrix);
        let step: Vec<f64> = covariance.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect();
        for k in (0..count).filter(|&k| free[k]) {
            // Limits a step to a factor of e.
            logs[k] = (logs[k] + step[k].clamp(-1.0, 1.0)).clamp(-4.0, 4.0);
        }
        if step.iter().all(|s| s.abs() < 1e-8) {
            break;
        }
    }
    FittedFactors { logs, covariance, identified: free.to_vec() }
}

/// Inverse of a symmetric positive matrix, by Gauss-Jordan elimination, which needs no pivots there.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let count = matrix.len();
    let mut inverse: Vec<Vec<f64>> =
        (0..count).map(|i| (0..count).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for pivot in 0..count {
        let scale = matrix[pivot][pivot].recip();
        for cell in matrix[pivot].iter_mut().chain(&mut inverse[pivot]) {
            *cell *= scale;
        }
        let (row, own) = (matrix[pivot].clone(), inverse[pivot].clone());
        for other in (0..count).filter(|&other| other != pivot) {
            let by = matrix[other][pivot];
            for (cell, subtracted) in matrix[other].iter_mut().zip(&row) {
                *cell -= by * subtracted;
            }
            for (cell, subtracted) in inverse[other].iter_mut().zip(&own) {
                *cell -= by * subtracted;
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_is_one() {
        let m = vec![
            vec![4.0, 1.0, 0.5, 0.1],
            vec![1.0, 3.0, 0.2, 0.3],
            vec![0.5, 0.2, 2.0, 0.4],
            vec![0.1, 0.3, 0.4, 5.0],
        ];
        let n = inverse(m.clone());
        for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let product: f64 = (0..4).map(|k| m[i][k] * n[k][j]).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
        }
    }
}
