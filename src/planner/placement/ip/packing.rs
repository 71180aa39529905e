//! The packing bound: classes are items, devices are bins, transfers are left out.
//!
//! Give every class a price. A device that keeps a threshold holds no more than a knapsack's worth of prices, so if the
//! knapsacks of all devices together are worth less than all classes, the threshold cannot be kept. With the best prices
//! this is the bound of Gilmore and Gomory (1961), which is nearly tight for packing problems; it is what proves graphs
//! with a few heavy classes and cheap transfers, where averages know nothing of how badly the heavy ones go together.
//!
//! Prices are improved by subgradient steps. Knapsacks are solved by dynamic programming over weights rounded *down* to a
//! grid of [`GRID`] cells to a threshold, so that nothing that fits is left out. `O(steps · classes · GRID)`.

use super::{
    model::{Model, whole},
    slack::MARGIN,
};
use crate::planner::Search;

/// Cells of a knapsack.
const GRID: usize = 4000;

/// An item: its weight on the two kinds of devices in cells, none where it is too heavy.
#[derive(Debug, Clone, Copy)]
struct Item {
    accelerator: Option<usize>,
    cpu: Option<usize>,
}

/// Prices of classes that are kept from one threshold to the next.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    price: Vec<f64>,
}

impl Prices {
    /// Prices to start with: the time on an accelerator.
    pub fn new(model: &Model) -> Self {
        let largest = model.accelerator_time.iter().map(|&t| whole(t)).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        Prices { price: model.accelerator_time.iter().map(|&t| whole(t) / largest).collect() }
    }

    /// Whether it is proven that no assignment has all devices within the threshold. Takes at most so many steps.
    pub fn refute(&mut self, model: &Model, threshold: f64, steps: usize, search: &Search) -> bool {
        let cell = threshold / GRID as f64;
        let cells = |time: f64, may: bool| {
            // A little less, so that rounding never makes heavier what weighs a whole number of cells.
            let weight = (time / cell * (1.0 - MARGIN)).floor();
            (may && time <= threshold * (1.0 + MARGIN)).then_some(weight as usize)
        };
        let items: Vec<Item> = (0..model.len())
            .map(|class| Item {
                accelerator: cells(whole(model.accelerator_time[class]), model.fits[class] && model.accelerators > 0),
                cpu: cells(whole(model.cpu_time[class]), model.cpus > 0),
            })
            .collect();
        if items.iter().any(|item| item.accelerator.is_none() && item.cpu.is_none()) {
            return true;
        }
        let accelerator: Vec<Option<usize>> = items.iter().map(|item| item.accelerator).collect();
        let cpu: Vec<Option<usize>> = items.iter().map(|item| item.cpu).collect();
        let mut knapsack = Knapsack::new(items.len());
        let mut price = self.price.clone();
        let mut best = (f64::INFINITY, price.clone());
        let mut reach = 1.0;
        let mut stale = 0;
        for _ in 0..steps {
            if search.cancelled() {
                break;
            }
            let all: f64 = price.iter().sum();
            if all <= 0.0 {
                break;
            }
            let mut excess = vec![-1.0; items.len()];
            let mut worth = 0.0;
            for (weights, devices) in [(&accelerator, model.accelerators), (&cpu, model.cpus)] {
                if devices > 0 {
                    let devices = devices as f64;
                    worth += devices * knapsack.fill(weights, &price, |item| excess[item] += devices);
                }
            }
            if worth < all * (1.0 - 1e-9) {
                self.price = price;
                return true;
            }
            let ratio = worth / all;
            if ratio < best.0 - 1e-6 {
                best = (ratio, price.clone());
                stale = 0;
            } else {
                stale += 1;
                if stale == 10 {
                    reach *= 0.6;
                    stale = 0;
                    price.clone_from(&best.1);
                    if reach < 1e-3 {
                        break;
                    }
                }
            }
            // Polyak's step towards a worth just below what refutes.
            let norm: f64 = excess.iter().map(|e| e * e).sum();
            if norm == 0.0 {
                break;
            }
            let step = reach * (worth - all * 0.999) / norm;
            for (price, excess) in price.iter_mut().zip(&excess) {
                *price = (*price - step * excess).max(0.0);
            }
        }
        self.price = best.1;
        false
    }
}

/// A knapsack of [`GRID`] cells.
#[derive(Debug)]
struct Knapsack {
    value: Vec<f64>,
    /// Whether an item is taken at a fill: `taken[item · (GRID + 1) + fill]`.
    taken: Vec<bool>,
}

impl Knapsack {
    fn new(items: usize) -> Self {
        Knapsack { value: vec![], taken: vec![false; items * (GRID + 1)] }
    }

    /// The most that fits is worth; `chosen` is called with the items.
    fn fill(&mut self, weights: &[Option<usize>], price: &[f64], mut chosen: impl FnMut(usize)) -> f64 {
        self.value.clear();
        self.value.resize(GRID + 1, 0.0);
        for (item, weight) in weights.iter().enumerate() {
            let taken = &mut self.taken[item * (GRID + 1)..(item + 1) * (GRID + 1)];
            taken.fill(false);
            let Some(weight) = weight.filter(|&weight| weight <= GRID) else { continue };
            let price = price[item];
            if price <= 0.0 {
                continue;
            }
            if weight == 0 {
                for (value, taken) in self.value.iter_mut().zip(taken) {
                    *value += price;
                    *taken = true;
                }
                continue;
            }
            for fill in (weight..=GRID).rev() {
                let with = self.value[fill - weight] + price;
                if with > self.value[fill] {
                    self.value[fill] = with;
                    taken[fill] = true;
                }
            }
        }
        let mut fill = GRID;
        for item in (0..weights.len()).rev() {
            if self.taken[item * (GRID + 1) + fill] {
                chosen(item);
                fill -= weights[item].unwrap_or(0);
            }
        }
        self.value[GRID]
    }
}
