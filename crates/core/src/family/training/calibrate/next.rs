//! Most informative next run: among the fast layouts that fit, the one whose time determines their order best.
//!
//! The uncertainty of two layouts' ratio follows from the factors' covariance. A run at a layout reduces it as in
//! Kalman's update. The layout is chosen that leaves the least uncertainty, summed over all pairs of the fastest
//! layouts.

use std::collections::BTreeSet;

use super::{
    MeasuredRun,
    calibration::{Calibration, FACTORS},
    fit::on_kernels,
};
use crate::{
    family::training::fit::{NOISE, TimedRun},
    workload::training::{
        model::Model,
        run::{Layout, TrainingRun},
    },
};

/// Number of fastest layouts whose order matters.
const FASTEST: usize = 8;
/// Number of fastest layouts that are candidates for the next run.
const CANDIDATES: usize = 24;

/// Suggested run.
#[derive(Debug, Clone, PartialEq)]
pub struct NextRun {
    /// Degrees of the run.
    pub layout: Layout,
    /// Expected time, seconds.
    pub expected_s: f64,
    /// Fraction of the uncertainty about the fastest layouts' order that remains after it, from 0 to 1.
    pub remains: f64,
}

/// Layout with its time and the derivatives by the factors.
struct CandidateLayout {
    layout: Layout,
    log: f64,
    slope: Vec<f64>,
}

/// Best next run with the same model, batch and devices as `first`.
pub(super) fn run(
    model: &Model,
    first: &MeasuredRun,
    runs: &[MeasuredRun],
    logs: &[f64],
    covariance: &[Vec<f64>],
    kernels: Option<&Calibration>,
) -> Option<NextRun> {
    let resolved = &first.resolved;
    let made: BTreeSet<String> = runs.iter().map(|run| run.resolved.run.layout.to_string()).collect();
    let constants = on_kernels(&resolved.accelerator, resolved.run.stack, kernels);
    let mut found = vec![];
    for layout in layouts(&resolved.run.layout, resolved.devices, model) {
        let run = TrainingRun { layout, layers: vec![], ..resolved.run.clone() };
        let Ok(timed) = TimedRun::new(model, &run, &resolved.accelerator, resolved.devices, constants) else {
            continue;
        };
        if timed.fits() {
            found.push(CandidateLayout {
                layout,
                log: timed.log_time(&FACTORS, logs),
                slope: timed.gradient(&FACTORS, logs),
            });
        }
    }
    found.sort_by(|a, b| a.log.total_cmp(&b.log).then_with(|| a.layout.to_string().cmp(&b.layout.to_string())));
    found.truncate(CANDIDATES);
    let best = &found[..found.len().min(FASTEST)];
    let before = unknown(best, covariance);
    if before <= 0.0 {
        return None;
    }
    let fresh = found.iter().filter(|candidate| !made.contains(&candidate.layout.to_string()));
    let told = |candidate: &CandidateLayout| unknown(best, &after(covariance, &candidate.slope));
    fresh.map(|c| (c, told(c))).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(candidate, left)| NextRun {
        layout: candidate.layout,
        expected_s: candidate.log.exp(),
        remains: left / before,
    })
}

/// Layouts of these devices: all powers of two, and the degrees of the run.
fn layouts(base: &Layout, devices: u64, model: &Model) -> Vec<Layout> {
    let powers = |most: u64, also: u32| {
        let mut list: BTreeSet<u32> = (0..16).map(|k| 1u32 << k).filter(|&k| u64::from(k) <= most).collect();
        list.insert(also);
        list
    };
    let mut found = vec![];
    for tensor in powers(devices.min(8), base.tensor) {
        for pipeline in powers(devices.min(model.layers.len() as u64), base.pipeline) {
            let contexts: BTreeSet<u32> = [1, base.context].into();
            for context in contexts {
                let others = u64::from(tensor) * u64::from(pipeline) * u64::from(context);
                if !devices.is_multiple_of(others) {
                    continue;
                }
                let data = (devices / others) as u32;
                for virtual_stages in [1, 2, 4, base.virtual_stages] {
                    for micro_batch in [1, 2, 4, base.micro_batch] {
                        found.push(Layout { tensor, pipeline, virtual_stages, context, data, micro_batch, ..*base });
                    }
                }
            }
        }
    }
    found.sort_by_key(ToString::to_string);
    found.dedup();
    found
}

/// Variance of the logarithm of two layouts' ratio, summed over all pairs.
fn unknown(layouts: &[CandidateLayout], covariance: &[Vec<f64>]) -> f64 {
    let mut sum = 0.0;
    for (index, a) in layouts.iter().enumerate() {
        for b in &layouts[..index] {
            let difference: Vec<f64> = a.slope.iter().zip(&b.slope).map(|(x, y)| x - y).collect();
            for (x, row) in difference.iter().zip(covariance) {
                sum += x * row.iter().zip(&difference).map(|(c, y)| c * y).sum::<f64>();
            }
        }
    }
    sum
}

/// Covariance after a run whose time has these derivatives.
fn after(covariance: &[Vec<f64>], slope: &[f64]) -> Vec<Vec<f64>> {
    let seen: Vec<f64> = covariance.iter().map(|row| row.iter().zip(slope).map(|(c, s)| c * s).sum()).collect();
    let spread = NOISE.powi(2) + seen.iter().zip(slope).map(|(a, b)| a * b).sum::<f64>();
    let narrowed = |(row, own): (&Vec<f64>, &f64)| row.iter().zip(&seen).map(|(c, s)| c - own * s / spread).collect();
    covariance.iter().zip(&seen).map(narrowed).collect()
}
