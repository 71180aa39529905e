//! Lower bounds: which thresholds no assignment can keep.
//!
//! Every proof refutes a threshold `T`: no assignment has all devices within it. Because the largest forward plus the
//! largest backward load is no less than the largest sum of the two, what refutes `T` for the max-load refutes it for
//! separate maxima; and because contiguity only forbids assignments, a refutation holds for the contiguous variant, too.
//! In order of cost:
//! 1. the slack of the threshold is negative ([`super::slack`]);
//! 2. a class, together with what the slack keeps with it, is too much: too slow for a CPU, and the cheapest set that has
//!    it, a minimum cut ([`super::flow`]), too much for an accelerator;
//! 3. at some prices no device can collect its share of the classes ([`super::prices`]).
//!
//! Bounds are lowered by [`SAFETY`], so that rounding cannot lift them above an optimum: sums of a few thousand terms are
//! exact to some 10^-13, and the comparisons here leave [`MARGIN`].

use super::{
    branching,
    flow::{CutNetwork, Side},
    model::{IpModel, whole},
    prices::{self, Effort},
    slack::{self, MARGIN},
};
use crate::planner::Search;

/// Proven bounds are lowered by this much, relative.
pub const SAFETY: f64 = 1e-10;

/// How hard prices are looked for, one after the other.
const EFFORTS: [Effort; 3] = [
    Effort { steps: 800, patience: 25, combinations: COMBINATIONS, coarse: 8_000_000, fine: 100_000_000 },
    Effort { steps: 1200, patience: 40, combinations: COMBINATIONS, coarse: 8_000_000, fine: 200_000_000 },
    Effort { steps: 3000, patience: 100, combinations: COMBINATIONS, coarse: 16_000_000, fine: 400_000_000 },
];
/// How far up from what is proven to the incumbent the next thresholds lie, as long as none resisted. Prices that are good for
/// one threshold are nearly so for those near it, and what they prove counts even where it is less: low ones cost time only.
const AMBITIOUS: [f64; 2] = [0.5, 0.9];
/// The same up to the least that resisted, of two thresholds and of one.
const THIRDS: [f64; 2] = [1.0 / 3.0, 2.0 / 3.0];
const HALF: [f64; 1] = [0.5];
/// How hard in pieces of a threshold.
const IN_PIECES: Effort =
    Effort { steps: 400, patience: 20, combinations: COMBINATIONS, coarse: 8_000_000, fine: 100_000_000 };
/// Vertices of networks in which minimum cuts are found, all together.
const MOST_CUT_WORK: usize = 20_000_000;
/// Wider models are not priced.
const COMBINATIONS: usize = 400_000;
/// Thresholds closer together than this, relative to the incumbent, are not told apart by prices.
const RESOLUTION: f64 = 1e-4;

/// The best bound so far and what the next one builds on.
#[derive(Debug)]
pub struct Bounds<'m> {
    model: &'m IpModel,
    /// What is proven: no value is below.
    pub proven: f64,
    /// The least threshold that resisted the present effort; none above is tried.
    resisted: f64,
    effort: usize,
    /// Pieces that the next branching may look at.
    pieces: usize,
    price: Vec<f64>,
}

impl<'m> Bounds<'m> {
    /// The bounds that need no incumbent: averages and cheapest sets. Infinite where nothing is admissible.
    pub fn new(model: &'m IpModel, search: &Search) -> Self {
        let mut proven = slack::average_bound(model);
        if proven.is_finite() {
            let mut network = CutNetwork::new(model);
            for class in heaviest(model) {
                if search.cancelled() {
                    break;
                }
                let own = if model.cpus > 0 { whole(model.cpu_time[class]) } else { f64::INFINITY };
                // A class that a CPU can do within what is proven cannot lift the bound.
                if own > proven {
                    let accelerator = if model.fits[class] && model.accelerators > 0 {
                        network.least_load(|c| side(model, c, class), own)
                    } else {
                        f64::INFINITY
                    };
                    proven = proven.max(own.min(accelerator));
                }
            }
        }
        Bounds {
            model,
            proven: proven * (1.0 - SAFETY),
            resisted: f64::INFINITY,
            effort: 0,
            pieces: 32,
            price: model.accelerator_time.iter().map(|&t| whole(t)).collect(),
        }
    }

    /// Tries two thresholds between what is proven and the incumbent: by prices alone as long as they help, both at once, then
    /// in pieces, one after the other.
    pub fn tighten(&mut self, incumbent: f64, search: &Search) {
        let Some(effort) = EFFORTS.get(self.effort) else {
            for _ in 0..2 {
                self.tighten_in_pieces(incumbent, search);
            }
            return;
        };
        let shares = if self.resisted.is_infinite() { AMBITIOUS } else { THIRDS };
        let Some(thresholds) = self.thresholds(incumbent, &shares) else { return };
        let asked: Vec<Asked> = search.map(&thresholds, |&threshold| self.ask(threshold, effort, search));
        for asked in &asked {
            self.proven = self.proven.max(asked.proven * (1.0 - SAFETY));
        }
        // Prices may find less at a lower threshold.
        let open = |&(&threshold, asked): &(&f64, &Asked)| !asked.refuted && threshold > self.proven;
        let resisted = thresholds.iter().zip(&asked).find(open);
        // The least that resisted was looked at for the longest.
        let last = match resisted {
            Some((&threshold, asked)) => {
                self.resisted = threshold;
                Some(asked)
            }
            None => asked.last(),
        };
        if let Some(price) = last.and_then(|asked| asked.price.clone()) {
            self.price = price;
        }
        self.look_harder(incumbent);
    }

    /// Tries a threshold in pieces.
    fn tighten_in_pieces(&mut self, incumbent: f64, search: &Search) {
        let shares = if self.resisted.is_infinite() { &AMBITIOUS[1..] } else { &HALF[..] };
        let Some(thresholds) = self.thresholds(incumbent, shares) else { return };
        let threshold = thresholds[0];
        if branching::refute(self.model, threshold, &self.price, &IN_PIECES, self.pieces, search) {
            self.proven = self.proven.max(threshold * (1.0 - SAFETY));
        } else {
            self.resisted = threshold;
        }
        self.look_harder(incumbent);
    }

    /// The thresholds at these shares of what is open, ascending; `None` where nothing is.
    fn thresholds(&self, incumbent: f64, shares: &[f64]) -> Option<Vec<f64>> {
        let high = self.resisted.min(incumbent * (1.0 - SAFETY));
        let open = high - self.proven;
        if open <= 0.0 {
            return None;
        }
        let close = open < RESOLUTION * incumbent;
        Some(if close { vec![high] } else { shares.iter().map(|share| self.proven + open * share).collect() })
    }

    /// Goes on to the next effort where nothing is left to be tried with this one.
    fn look_harder(&mut self, incumbent: f64) {
        if self.resisted - self.proven < RESOLUTION * incumbent {
            self.resisted = f64::INFINITY;
            self.pieces *= if self.effort < EFFORTS.len() { 1 } else { 2 };
            self.effort += 1;
        }
    }

    /// Whether it is proven that no assignment keeps the threshold.
    fn ask(&self, threshold: f64, effort: &Effort, search: &Search) -> Asked {
        let refuted = Asked { refuted: true, proven: threshold, price: None };
        let Some((reduced, group)) = slack::contract(self.model, threshold) else { return refuted };
        if reduced.len() < self.model.len() && too_much(&reduced, threshold, search) {
            return refuted;
        }
        let mut price = vec![0.0; reduced.len()];
        for (&g, own) in group.iter().zip(&self.price) {
            price[g as usize] += own;
        }
        let before = price.clone();
        let priced = prices::refute(&reduced, &[], threshold, &mut price, effort, search);
        let proven = priced.map_or(0.0, |priced| priced.refuted);
        let price = prices::shared_out(&group, &self.price, &before, &price);
        if proven >= threshold * (1.0 - SAFETY) {
            return Asked { price: Some(price), ..refuted };
        }
        Asked { refuted: false, proven, price: Some(price) }
    }
}

/// What became of a threshold.
struct Asked {
    refuted: bool,
    /// The largest threshold that is refuted.
    proven: f64,
    /// Better prices of the classes, if any were looked for.
    price: Option<Vec<f64>>,
}

/// The side of a class when another one must be in.
fn side(model: &IpModel, class: usize, held: usize) -> Side {
    if class == held {
        Side::In
    } else if model.fits[class] {
        Side::Free
    } else {
        Side::Out
    }
}

/// The classes whose cheapest sets are worth finding: all, or where the network is large, the slowest.
fn heaviest(model: &IpModel) -> Vec<usize> {
    let mut classes: Vec<usize> = (0..model.len()).collect();
    let most = MOST_CUT_WORK / (model.len() + model.net_count()).max(1);
    if classes.len() > most {
        let time = |class: usize| whole(model.accelerator_time[class]).min(whole(model.cpu_time[class]));
        classes.sort_by(|&a, &b| time(b).total_cmp(&time(a)));
        classes.truncate(most.max(1));
    }
    classes
}

/// Whether some class is too much for every device.
fn too_much(model: &IpModel, threshold: f64, search: &Search) -> bool {
    let limit = threshold * (1.0 + MARGIN);
    let mut network = CutNetwork::new(model);
    heaviest(model).into_iter().any(|class| {
        !search.cancelled()
            && (model.cpus == 0 || whole(model.cpu_time[class]) > limit)
            && (!model.fits[class] || network.least_load(|c| side(model, c, class), 2.0 * limit) > limit)
    })
}
