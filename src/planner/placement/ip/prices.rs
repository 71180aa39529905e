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
//! speed and costs `SLOP`.

use super::{
    frontier::Frontier,
    knapsack::Knapsack,
    model::{IpModel, whole},
};
use crate::planner::Search;

/// What rounding in single precision may hide: a few thousand additions of parts of 1.
const SLOP: f64 = 1e-4;
/// Cells of a CPU's knapsack.
const CPU_CELLS: usize = 4000;
/// Classes of which every pair may be branched on.
const HEAVIEST: usize = 16;
/// How much of what was seen counts a step later.
const MEMORY: f64 = 0.95;

/// How hard the search for prices tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Subgradient steps.
    pub steps: usize,
    /// Steps without gain before they are made half as long.
    pub patience: usize,
    /// Most combinations of a frontier.
    pub combinations: usize,
    /// Cells, all combinations together, of a coarse filling.
    pub coarse: usize,
    /// Cells, all combinations together, of a fine filling.
    pub fine: usize,
}

/// A model at a threshold, ready to be priced.
struct Patterns<'m> {
    model: &'m IpModel,
    threshold: f64,
    frontier: Frontier,
    /// Cells of every class on a CPU, none where it is too slow.
    cpu: Vec<Option<usize>>,
    knapsack: Knapsack,
}

/// What prices prove, and what they leave open.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    /// The largest threshold, up to the one given, that is refuted; 0 if none.
    pub refuted: f64,
    /// Two classes that the patterns hold together about as often as not: what to branch on.
    pub undecided: Option<(u32, u32)>,
}

/// Improves the prices of classes to refute a threshold, for assignments that have no pair together that is `apart`.
/// `None` if the model is too wide for its patterns to be found. Prices are by class of the model.
pub fn refute(
    model: &IpModel,
    apart: &[(u32, u32)],
    threshold: f64,
    price: &mut Vec<f64>,
    effort: &Effort,
    search: &Search,
) -> Option<Priced> {
    let frontier = Frontier::new(model, apart, threshold, threshold * 2e-4, effort.combinations)?;
    let cell = threshold / CPU_CELLS as f64;
    let cells = |class: usize| {
        let time = whole(model.cpu_time[class]);
        let may = model.cpus > 0 && time <= threshold * (1.0 + 1e-9);
        may.then(|| (time / cell * (1.0 - 1e-10)).floor() as usize)
    };
    let cpu = (0..model.len()).map(cells).collect();
    let knapsack = Knapsack::new(model.len(), CPU_CELLS);
    let mut company = Company::new(model, apart);
    let mut patterns = Patterns { model, threshold, frontier, cpu, knapsack };
    let refuted = patterns.search(price, effort, &mut company, search);
    Some(Priced { refuted, undecided: company.undecided(model, threshold) })
}

impl Patterns<'_> {
    fn search(&mut self, price: &mut Vec<f64>, effort: &Effort, company: &mut Company, search: &Search) -> f64 {
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
                let count = |class: u32| {
                    excess[class as usize] += accelerators;
                    company.take(class as usize);
                };
                worth += accelerators * f64::from(self.frontier.best_set(&single, cell, cells, &mut rows, count));
                company.seen(accelerators);
            }
            if cpus > 0.0 {
                let count = |class: usize| {
                    excess[class] += cpus;
                    company.take(class);
                };
                worth += cpus * self.knapsack.fill(&self.cpu, price, count);
                company.seen(cpus);
            }
            company.fade();
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
            // Polyak's step towards a worth that refutes with something to spare.
            let length = reach * (worth - best.0.min(1.0) + 0.01) / norm;
            for (price, excess) in price.iter_mut().zip(&excess) {
                *price = (*price - length * excess).max(0.0);
            }
        }
        *price = best.1;
        proven
    }

    /// The largest threshold that prices refute, on the fine grid.
    fn proven(&mut self, price: &[f64], effort: &Effort, search: &Search) -> f64 {
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
            // The first cell of the CPU's grid that is not below.
            let cpu_fill = (fill * CPU_CELLS).div_ceil(cells).min(CPU_CELLS);
            accelerators * f64::from(accelerator[fill]) + cpus * cpu[cpu_fill] < 1.0 - SLOP
        };
        // Both only grow with the threshold.
        let fills = (0..=cells).collect::<Vec<_>>().partition_point(|&fill| refutes(fill));
        fills.saturating_sub(1) as f64 * cell
    }
}

/// Prices of classes from those of groups: each class keeps its share of its group.
pub fn shared_out(group: &[u32], own: &[f64], before: &[f64], after: &[f64]) -> Vec<f64> {
    let share = |(&g, own): (&u32, &f64)| {
        let (before, after) = (before[g as usize], after[g as usize]);
        if before > 0.0 { own * after / before } else { after }
    };
    group.iter().zip(own).map(share).collect()
}

/// How often patterns hold pairs of classes together, of late more than before. Averaged over subgradient steps, patterns
/// tend to the fractional solution of the set-partitioning program.
struct Company {
    pairs: Vec<(u32, u32)>,
    together: Vec<f64>,
    inside: Vec<bool>,
    total: f64,
}

impl Company {
    /// The pairs worth asking about: in a net together, or both among the heaviest classes.
    fn new(model: &IpModel, apart: &[(u32, u32)]) -> Self {
        let mut pairs: Vec<(u32, u32)> = vec![];
        for net in 0..model.net_count() {
            let pins = model.pins(net);
            let near = &pins[..pins.len().min(8)];
            pairs.extend(near.iter().enumerate().flat_map(|(i, &a)| near[i + 1..].iter().map(move |&b| (a, b))));
        }
        let mut heavy: Vec<u32> = (0..model.len() as u32).collect();
        heavy.sort_by(|&a, &b| {
            let time = |class: u32| whole(model.accelerator_time[class as usize]);
            time(b).total_cmp(&time(a)).then(a.cmp(&b))
        });
        heavy.truncate(HEAVIEST);
        heavy.sort_unstable();
        pairs.extend(heavy.iter().enumerate().flat_map(|(i, &a)| heavy[i + 1..].iter().map(move |&b| (a, b))));
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|pair| !apart.contains(pair));
        Company { together: vec![0.0; pairs.len()], pairs, inside: vec![false; model.len()], total: 0.0 }
    }

    fn take(&mut self, class: usize) {
        self.inside[class] = true;
    }

    /// Counts the set that was taken for so many devices.
    fn seen(&mut self, devices: f64) {
        for (&(a, b), together) in self.pairs.iter().zip(&mut self.together) {
            *together += if self.inside[a as usize] && self.inside[b as usize] { devices } else { 0.0 };
        }
        self.inside.fill(false);
    }

    fn fade(&mut self) {
        self.total = self.total * MEMORY + 1.0;
        self.together.iter_mut().for_each(|together| *together *= MEMORY);
    }

    /// The pair whose answer says most: undecided, and a burden both together and apart.
    fn undecided(&self, model: &IpModel, threshold: f64) -> Option<(u32, u32)> {
        let time = |class: u32| whole(model.accelerator_time[class as usize]);
        let score = |at: usize| {
            let share = self.together[at] / (self.total * MEMORY).max(f64::MIN_POSITIVE);
            let (a, b) = self.pairs[at];
            share.min(1.0 - share).max(0.0) * (time(a).min(time(b)) / threshold + 0.02)
        };
        let best =
            (0..self.pairs.len()).map(|at| (score(at), at)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        best.filter(|best| best.0 > 1e-4).map(|(_, at)| self.pairs[at])
    }
}
