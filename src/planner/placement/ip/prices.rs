//! The pattern bound: prices of classes that no device can collect enough of.
//!
//! Give every class a price. A device that keeps a threshold holds a set that is worth no more than the best such set, its
//! *pattern*; if the patterns of all devices together are worth less than all classes, the threshold cannot be kept. With
//! the best prices this is the bound of Gilmore and Gomory (1961) for packing problems, here with transfers in the
//! packing: patterns of accelerators are exact ([`super::frontier`]), those of CPUs a knapsack. Unlike the linear relaxation of
//! the program it knows that half of a class on each of two devices is of no use.
//!
//! Prices are improved by subgradient steps on a coarse grid; only prices that promise a refutation are tried on the fine
//! grid, with loads rounded down. Prices are scaled to sum to 1 and kept in single precision, which is worth twice the
//! speed and costs [`SLOP`].

use super::{
    frontier::{Frontier, Rounding},
    knapsack::Knapsack,
    model::{Model, whole},
};
use crate::planner::Search;

/// What rounding in single precision may hide: a few thousand additions of parts of 1.
const SLOP: f64 = 1e-4;
/// Cells of a CPU's knapsack.
const CPU_CELLS: usize = 4000;

/// How hard the search for prices tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Subgradient steps.
    pub steps: usize,
    /// Most combinations of a frontier.
    pub combinations: usize,
    /// Cells, all combinations together, of a coarse filling.
    pub coarse: usize,
    /// Cells, all combinations together, of a fine filling.
    pub fine: usize,
}

/// A model at a threshold, ready to be priced.
struct Patterns<'m> {
    model: &'m Model,
    threshold: f64,
    frontier: Frontier,
    /// Cells of every class on a CPU, none where it is too slow.
    cpu: Vec<Option<usize>>,
    knapsack: Knapsack,
}

/// Improves the prices of classes and gives the largest threshold, up to the one given, that they refute; 0 if none.
/// `None` if the model is too wide for its patterns to be found. Prices are by class of the model.
pub fn refuted(model: &Model, threshold: f64, price: &mut Vec<f64>, effort: &Effort, search: &Search) -> Option<f64> {
    let frontier = Frontier::new(model, threshold, threshold * 2e-4, effort.combinations)?;
    let cell = threshold / CPU_CELLS as f64;
    let cells = |class: usize| {
        let time = whole(model.cpu_time[class]);
        let may = model.cpus > 0 && time <= threshold * (1.0 + 1e-9);
        may.then(|| (time / cell * (1.0 - 1e-10)).floor() as usize)
    };
    let cpu = (0..model.len()).map(cells).collect();
    let knapsack = Knapsack::new(model.len(), CPU_CELLS);
    Patterns { model, threshold, frontier, cpu, knapsack }.search(price, effort, search)
}

impl Patterns<'_> {
    fn search(&mut self, price: &mut Vec<f64>, effort: &Effort, search: &Search) -> Option<f64> {
        let cells = (effort.coarse / self.frontier.len().max(1)).clamp(100, 2000);
        let (accelerators, cpus) = (self.model.accelerators as f64, self.model.cpus as f64);
        let mut rows = vec![];
        let mut best = (f64::INFINITY, price.clone());
        let mut proven = 0.0;
        // Worth at which the fine grid was tried last.
        let mut tried = f64::INFINITY;
        let (mut reach, mut stale) = (1.0, 0);
        for step in 0..effort.steps {
            if search.cancelled() {
                break;
            }
            let sum: f64 = price.iter().sum();
            if sum <= 0.0 {
                break;
            }
            price.iter_mut().for_each(|price| *price /= sum);
            let single: Vec<f32> = price.iter().map(|&price| price as f32).collect();
            let mut excess = vec![-1.0; price.len()];
            let cell = self.threshold / cells as f64;
            let mut worth = 0.0;
            if accelerators > 0.0 {
                let count = |class: u32| excess[class as usize] += accelerators;
                worth += accelerators * f64::from(self.frontier.best_set(&single, cell, cells, &mut rows, count));
            }
            if cpus > 0.0 {
                worth += cpus * self.knapsack.fill(&self.cpu, price, |class| excess[class] += cpus);
            }
            if worth < best.0 - 1e-5 {
                best = (worth, price.clone());
                stale = 0;
            } else {
                stale += 1;
            }
            let last = step + 1 == effort.steps || reach < 0.02;
            if (worth < 1.0 && worth < tried - 0.004) || (last && best.0 < tried) {
                let before = proven;
                if last {
                    price.clone_from(&best.1);
                }
                tried = worth.min(best.0);
                proven = self.proven(price, effort).max(before);
                if proven >= self.threshold * (1.0 - 1e-9) {
                    return Some(proven);
                }
            }
            if last {
                break;
            }
            if stale == 8 {
                reach *= 0.5;
                stale = 0;
                price.clone_from(&best.1);
                continue;
            }
            let norm: f64 = excess.iter().map(|e| e * e).sum();
            if norm == 0.0 {
                break;
            }
            // Polyak's step towards a worth that refutes with something to spare.
            let length = reach * (worth - best.0.min(1.0) + 0.01) / norm;
            for (price, excess) in price.iter_mut().zip(&excess) {
                *price = (*price - length * excess).max(0.0);
            }
        }
        *price = best.1;
        Some(proven)
    }

    /// The largest threshold that prices refute, on the fine grid.
    fn proven(&mut self, price: &[f64], effort: &Effort) -> f64 {
        let sum: f64 = price.iter().sum();
        let price: Vec<f64> = price.iter().map(|price| price / sum).collect();
        let single: Vec<f32> = price.iter().map(|&price| price as f32).collect();
        let cells = (effort.fine / self.frontier.len().max(1)).clamp(1000, 20_000);
        let cell = self.threshold / cells as f64;
        let accelerator = if self.model.accelerators > 0 {
            self.frontier.worths(&single, cell, cells, Rounding::Down)
        } else {
            vec![0.0; cells + 1]
        };
        let cpu = if self.model.cpus > 0 {
            self.knapsack.fill(&self.cpu, &price, |_| {});
            self.knapsack.values().to_vec()
        } else {
            vec![0.0; CPU_CELLS + 1]
        };
        let (accelerators, cpus) = (self.model.accelerators as f64, self.model.cpus as f64);
        let refutes = |fill: usize| {
            // The first cell of the CPU's grid that is not below.
            let cpu_fill = (fill * CPU_CELLS).div_ceil(cells).min(CPU_CELLS);
            accelerators * f64::from(accelerator[fill]) + cpus * cpu[cpu_fill] < 1.0 - SLOP
        };
        // Both only grow with the threshold.
        let fills = (0..=cells).collect::<Vec<_>>().partition_point(|&fill| refutes(fill));
        fills.saturating_sub(1) as f64 * cell
    }
}
