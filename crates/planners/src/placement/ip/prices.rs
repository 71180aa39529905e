//! Pattern bound: dual values of the classes such that the devices together cannot collect the value of all classes.
//!
//! Every class gets a dual value (`price`). A device that keeps a threshold holds a set whose value is at most that of
//! the best such set, its *pattern*. If the patterns of all devices together have less value than all classes, the
//! threshold is refuted. With the best dual values this is the bound of Gilmore and Gomory (1961) for packing problems,
//! here with transfers in the packing. Patterns of accelerators are exact ([`super::frontier`]); those of CPUs are a
//! knapsack. Unlike the linear relaxation of the program, it does not allow half of a class on each of two devices.
//!
//! Dual values are improved by subgradient steps on a coarse grid. Only those that promise a refutation are tried on
//! the fine grid, with loads rounded down. They are scaled to sum to 1 and kept in single precision, which doubles the
//! speed and costs a tolerance of `SLOP`.

use super::{
    frontier::ClassFrontier,
    knapsack::CellKnapsack,
    model::{IpModel, whole},
};
use plantui_core::search::Search;

/// Error bound of single precision: a few thousand additions of parts of 1.
const SLOP: f64 = 1e-4;
/// Cells of a CPU's knapsack.
const CPU_CELLS: usize = 4000;

/// Effort of the search for dual values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceEffort {
    /// Subgradient steps.
    pub steps: usize,
    /// Steps without gain before the step length is halved.
    pub patience: usize,
    /// Maximum number of combinations of a frontier.
    pub combinations: usize,
    /// Cells of a coarse filling, over all combinations.
    pub coarse: usize,
    /// Cells of a fine filling, over all combinations.
    pub fine: usize,
}

/// A model at a threshold, prepared for the search.
struct Patterns<'m> {
    model: &'m IpModel,
    threshold: f64,
    frontier: ClassFrontier,
    /// Cells of every class on a CPU; `None` if it is too slow.
    cpu: Vec<Option<usize>>,
    knapsack: CellKnapsack,
}

/// Improves the dual values to refute a threshold. Returns the largest refuted threshold, at most the given one, 0 if
/// none; `None` if the model is too wide for its patterns. `price` is by class of the model.
pub fn refute(
    model: &IpModel,
    threshold: f64,
    price: &mut Vec<f64>,
    effort: &PriceEffort,
    search: &Search,
) -> Option<f64> {
    let frontier = ClassFrontier::new(model, threshold, threshold * 2e-4, effort.combinations)?;
    let cell = threshold / CPU_CELLS as f64;
    let cells = |class: usize| {
        let time = whole(model.cpu_time[class]);
        let may = model.cpus > 0 && time <= threshold * (1.0 + 1e-9);
        may.then(|| (time / cell * (1.0 - 1e-10)).floor() as usize)
    };
    let cpu = (0..model.len()).map(cells).collect();
    let knapsack = CellKnapsack::new(model.len(), CPU_CELLS);
    Some(Patterns { model, threshold, frontier, cpu, knapsack }.search(price, effort, search))
}

impl Patterns<'_> {
    fn search(&mut self, price: &mut Vec<f64>, effort: &PriceEffort, search: &Search) -> f64 {
        let cells = (effort.coarse / self.frontier.len().max(1)).clamp(100, 2000);
        let (accelerators, cpus) = (self.model.accelerators as f64, self.model.cpus as f64);
        let mut rows = vec![];
        let mut best = (f64::INFINITY, price.clone());
        let mut proven = 0.0;
        // Value at which the fine grid was last tried.
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
                proven = self.proven(price, effort, search).max(before);
                if proven >= self.threshold * (1.0 - 1e-9) {
                    return proven;
                }
            }
            if last {
                break;
            }
            if stale == effort.patience {
                reach *= 0.5;
                stale = 0;
                price.clone_from(&best.1);
                continue;
            }
            let norm: f64 = excess.iter().map(|e| e * e).sum();
            if norm == 0.0 {
                break;
            }
            // Polyak's step towards a value that refutes with a small reserve.
            let length = reach * (worth - best.0.min(1.0) + 0.01) / norm;
            for (price, excess) in price.iter_mut().zip(&excess) {
                *price = (*price - length * excess).max(0.0);
            }
        }
        *price = best.1;
        proven
    }

    /// Largest threshold that the dual values refute, on the fine grid.
    fn proven(&mut self, price: &[f64], effort: &PriceEffort, search: &Search) -> f64 {
        let sum: f64 = price.iter().sum();
        let price: Vec<f64> = price.iter().map(|price| price / sum).collect();
        let single: Vec<f32> = price.iter().map(|&price| price as f32).collect();
        let cells = (effort.fine / self.frontier.len().max(1)).clamp(1000, 20_000);
        let cell = self.threshold / cells as f64;
        let accelerator = if self.model.accelerators > 0 {
            let Some(worths) = self.frontier.worths(&single, cell, cells, search) else { return 0.0 };
            worths
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
            // First cell of the CPU's grid that is not below.
            let cpu_fill = (fill * CPU_CELLS).div_ceil(cells).min(CPU_CELLS);
            accelerators * f64::from(accelerator[fill]) + cpus * cpu[cpu_fill] < 1.0 - SLOP
        };
        // Both grow with the threshold.
        let fills = (0..=cells).collect::<Vec<_>>().partition_point(|&fill| refutes(fill));
        fills.saturating_sub(1) as f64 * cell
    }
}

/// Dual values of classes from those of groups: each class keeps its fraction of the group.
pub fn shared_out(group: &[u32], own: &[f64], before: &[f64], after: &[f64]) -> Vec<f64> {
    let share = |(&g, own): (&u32, &f64)| {
        let (before, after) = (before[g as usize], after[g as usize]);
        if before > 0.0 { own * after / before } else { after }
    };
    group.iter().zip(own).map(share).collect()
}
