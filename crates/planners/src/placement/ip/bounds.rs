//! Lower bounds: refutes thresholds.
//!
//! A proof refutes a threshold `T`: no assignment keeps all loads within it. The largest forward plus the largest
//! backward load is at least the largest sum of both, so a refutation for the max-load also holds for separate maxima.
//! Contiguity only forbids assignments, so it also holds for the contiguous variant. In order of cost:
//! 1. The slack of the threshold is negative ([`super::slack`]).
//! 2. A class is too slow for a CPU, and its cheapest set (a minimum cut, [`super::flow`]) too much for an accelerator.
//! 3. With some dual values, the devices together cannot collect the value of all classes ([`super::prices`]).
//!
//! Bounds are lowered by [`SAFETY`], so that rounding cannot lift them above an optimum. Sums of a few thousand terms
//! are exact to some 10^-13.

use super::{
    flow::{CutNetwork, CutSide},
    model::{IpModel, whole},
    prices::{self, PriceEffort},
    slack,
};
use plantui_core::search::Search;

/// Relative amount by which proven bounds are lowered.
pub const SAFETY: f64 = 1e-10;

/// Effort levels of the search for dual values, used one after the other. With the last alone, bert_l-3 training takes
/// 2.3 times the CPU time.
const EFFORTS: [PriceEffort; 3] = [
    PriceEffort { steps: 800, patience: 25, combinations: COMBINATIONS, coarse: 8_000_000, fine: 100_000_000 },
    PriceEffort { steps: 1200, patience: 40, combinations: COMBINATIONS, coarse: 8_000_000, fine: 200_000_000 },
    PriceEffort { steps: 3000, patience: 100, combinations: COMBINATIONS, coarse: 16_000_000, fine: 400_000_000 },
];
/// Positions of the next thresholds between the proven bound and the incumbent, until one resists. Dual values that are
/// good for one threshold are nearly so for its neighbours. They may still prove a smaller bound, so ambitious
/// thresholds cost only time.
const AMBITIOUS: [f64; 2] = [0.5, 0.9];
/// Positions between the proven bound and the least threshold that resisted.
const THIRDS: [f64; 2] = [1.0 / 3.0, 2.0 / 3.0];
/// Maximum number of network vertices over all minimum cuts.
const MOST_CUT_WORK: usize = 20_000_000;
/// Maximum number of combinations of a model; wider models are skipped.
const COMBINATIONS: usize = 400_000;
/// Least distance of thresholds, relative to the incumbent, for the search of dual values.
const RESOLUTION: f64 = 1e-4;

/// Best bound so far, and the state for the next one.
#[derive(Debug)]
pub struct IpBounds<'m> {
    model: &'m IpModel,
    /// Proven lower bound on the value.
    pub proven: f64,
    /// Least threshold that resisted the present effort; no larger one is tried.
    resisted: f64,
    effort: usize,
    price: Vec<f64>,
}

impl<'m> IpBounds<'m> {
    /// Bounds without an incumbent: averages and cheapest sets. Infinite if no assignment is admissible.
    pub fn new(model: &'m IpModel, search: &Search) -> Self {
        let mut proven = slack::average_bound(model);
        if proven.is_finite() {
            let mut network = CutNetwork::new(model);
            for class in heaviest(model) {
                if search.cancelled() {
                    break;
                }
                let own = if model.cpus > 0 { whole(model.cpu_time[class]) } else { f64::INFINITY };
                // A class that a CPU can run within the proven bound cannot raise it.
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
        IpBounds {
            model,
            proven: proven * (1.0 - SAFETY),
            resisted: f64::INFINITY,
            effort: 0,
            price: model.accelerator_time.iter().map(|&t| whole(t)).collect(),
        }
    }

    /// Tries two thresholds between the proven bound and the incumbent, in parallel, until no effort level is left.
    pub fn tighten(&mut self, incumbent: f64, search: &Search) {
        let Some(effort) = EFFORTS.get(self.effort) else { return };
        let shares = if self.resisted.is_infinite() { AMBITIOUS } else { THIRDS };
        let Some(thresholds) = self.thresholds(incumbent, &shares) else { return };
        let asked: Vec<ThresholdResult> = search.map(&thresholds, |&threshold| self.ask(threshold, effort, search));
        for asked in &asked {
            self.proven = self.proven.max(asked.proven * (1.0 - SAFETY));
        }
        // The search for dual values may find less at a lower threshold.
        let open = |&(&threshold, asked): &(&f64, &ThresholdResult)| !asked.refuted && threshold > self.proven;
        let resisted = thresholds.iter().zip(&asked).find(open);
        // The least threshold that resisted was examined longest.
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

    /// Thresholds at the given fractions of the open interval, ascending; `None` if it is empty.
    fn thresholds(&self, incumbent: f64, shares: &[f64]) -> Option<Vec<f64>> {
        let high = self.resisted.min(incumbent * (1.0 - SAFETY));
        let open = high - self.proven;
        if open <= 0.0 {
            return None;
        }
        let close = open < RESOLUTION * incumbent;
        Some(if close { vec![high] } else { shares.iter().map(|share| self.proven + open * share).collect() })
    }

    /// Moves to the next effort level if nothing is left to try with this one.
    fn look_harder(&mut self, incumbent: f64) {
        if self.resisted - self.proven < RESOLUTION * incumbent {
            self.resisted = f64::INFINITY;
            self.effort += 1;
        }
    }

    /// Tries to refute a threshold.
    fn ask(&self, threshold: f64, effort: &PriceEffort, search: &Search) -> ThresholdResult {
        let refuted = ThresholdResult { refuted: true, proven: threshold, price: None };
        let Some((reduced, group)) = slack::contract(self.model, threshold) else { return refuted };
        let mut price = vec![0.0; reduced.len()];
        for (&g, own) in group.iter().zip(&self.price) {
            price[g as usize] += own;
        }
        let before = price.clone();
        let proven = prices::refute(&reduced, threshold, &mut price, effort, search).unwrap_or(0.0);
        let price = prices::shared_out(&group, &self.price, &before, &price);
        if proven >= threshold * (1.0 - SAFETY) {
            return ThresholdResult { price: Some(price), ..refuted };
        }
        ThresholdResult { refuted: false, proven, price: Some(price) }
    }
}

/// Result for a threshold.
struct ThresholdResult {
    refuted: bool,
    /// Largest threshold that is refuted.
    proven: f64,
    /// Improved dual values of the classes, if they were computed.
    price: Option<Vec<f64>>,
}

/// Side of `class` if the class `held` must be in the set.
fn side(model: &IpModel, class: usize, held: usize) -> CutSide {
    if class == held {
        CutSide::In
    } else if model.fits[class] {
        CutSide::Free
    } else {
        CutSide::Out
    }
}

/// Classes whose cheapest sets are computed: all, or the slowest if the network is large.
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
