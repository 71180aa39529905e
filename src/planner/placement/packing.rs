//! Lower bound on the accelerators of a prefix or suffix of the pipeline, without transfers and memory.
//!
//! Without transfers, the load of a device is a sum, and cutting a sequence of classes into devices of at most the
//! bound is packing in order. The best state is the fewest devices, then the least filled last one. So one label per
//! closed set and number of CPUs replaces all pairs of closed sets: `O(steps · CPUs)` time. Averages miss that four
//! indivisible classes of 60 need four devices of 100, not three; this bound finds it. On networks of few large layers
//! it prunes almost all closed sets.
//!
//! A CPU may take cheap classes while the order of the others is open. Then the fewest accelerators and the least
//! filled CPU may belong to different splits. Both are minimised separately, so the result is still a lower bound.

use std::ops::Range;

use super::{lattice::Lattice, load::ClassCosts};

/// Maximum number of labels, sets times CPU counts (16 MiB); above it no bound is computed.
const MOST_LABELS: usize = 1 << 22;
/// Tolerance, because sums in another order differ by rounding: an exact fit must not be ruled out.
const SLACK: f64 = 1.0 + 1e-9;

/// Fewest accelerators, by closed set and number of CPUs.
#[derive(Debug)]
pub(super) struct Packing {
    cpus: usize,
    /// `fewest[set · (cpus + 1) + c]`; empty without a bound.
    fewest: Vec<u32>,
}

/// State of the last device.
#[derive(Debug, Clone, Copy)]
struct Label {
    accelerators: u32,
    filled: f64,
}

/// Unreachable.
const NONE: Label = Label { accelerators: u32::MAX, filled: f64::INFINITY };
const UNHELD: Ways = Ways { accelerator: NONE, cpu: NONE };

/// Best states of a set with some number of CPUs, if the last device is an accelerator, or a CPU.
#[derive(Debug, Clone, Copy)]
struct Ways {
    accelerator: Label,
    cpu: Label,
}

impl Packing {
    /// Bound for the classes of every closed set.
    pub(super) fn of_prefixes(lattice: &Lattice, costs: &ClassCosts, cpus: usize, bound: f64) -> Self {
        let Some(mut labels) = Labels::new(lattice, costs, cpus, bound) else { return Packing::unknown(cpus) };
        for (from, to) in lattice.levels().iter().zip(&lattice.levels()[1..]) {
            labels.next(from, to);
            for set in to.clone() {
                for &(below, class) in lattice.below(set) {
                    labels.add(below as usize - from.start, class as usize, set - to.start);
                }
            }
        }
        labels.packing(&lattice.levels()[lattice.levels().len() - 1])
    }

    /// Bound for all classes outside of every closed set.
    pub(super) fn of_suffixes(lattice: &Lattice, costs: &ClassCosts, cpus: usize, bound: f64) -> Self {
        let Some(mut labels) = Labels::new(lattice, costs, cpus, bound) else { return Packing::unknown(cpus) };
        for (to, from) in lattice.levels().iter().zip(&lattice.levels()[1..]).rev() {
            labels.next(from, to);
            for set in from.clone() {
                for &(below, class) in lattice.below(set) {
                    labels.add(set - from.start, class as usize, below as usize - to.start);
                }
            }
        }
        labels.packing(&lattice.levels()[0])
    }

    fn unknown(cpus: usize) -> Self {
        Packing { cpus, fewest: vec![] }
    }

    /// Fewest accelerators beside at most `c` CPUs; `u32::MAX` if no number suffices.
    #[inline]
    pub(super) fn fewest(&self, set: usize, c: usize) -> u32 {
        self.fewest.get(set * (self.cpus + 1) + c).copied().unwrap_or(0)
    }
}

/// Labels of two consecutive sizes of closed sets; no others are needed.
struct Labels<'a> {
    costs: &'a ClassCosts,
    cpus: usize,
    bound: f64,
    known: Vec<Ways>,
    ways: Vec<Ways>,
    /// Result for all sets whose labels are complete.
    fewest: Vec<u32>,
}

impl<'a> Labels<'a> {
    /// Starts at the first set with nothing placed. `None` if there are too many labels, or the bound is infinite.
    fn new(lattice: &Lattice, costs: &'a ClassCosts, cpus: usize, bound: f64) -> Option<Self> {
        let count = (cpus + 1).checked_mul(lattice.len()).filter(|&count| count <= MOST_LABELS)?;
        if !bound.is_finite() {
            return None;
        }
        // No device is open, so the first class opens one.
        let mut ways = vec![UNHELD; cpus + 1];
        ways[0].accelerator.accelerators = 0;
        Some(Labels { costs, cpus, bound: bound * SLACK, known: vec![], ways, fewest: vec![0; count] })
    }

    /// Starts the labels of the sets `to`; those of `from` are complete.
    fn next(&mut self, from: &Range<usize>, to: &Range<usize>) {
        std::mem::swap(&mut self.known, &mut self.ways);
        self.note(from);
        self.ways.clear();
        self.ways.resize((self.cpus + 1) * to.len(), UNHELD);
    }

    /// Stores the result for sets whose labels are complete.
    fn note(&mut self, level: &Range<usize>) {
        let row = self.cpus + 1;
        let fewest = &mut self.fewest[level.start * row..level.end * row];
        for (fewest, ways) in fewest.chunks_exact_mut(row).zip(self.known.chunks_exact(row)) {
            // More CPUs never need more accelerators.
            let mut least = u32::MAX;
            for (fewest, ways) in fewest.iter_mut().zip(ways) {
                least = least.min(ways.accelerator.accelerators.min(ways.cpu.accelerators));
                *fewest = least;
            }
        }
    }

    /// Adds one class to the set `from`, which gives the set `to`; both are numbered within their sizes.
    fn add(&mut self, from: usize, class: usize, to: usize) {
        let row = self.cpus + 1;
        let (time, cpu_time) = (self.costs.accelerator[class], self.costs.cpu[class]);
        let on_accelerator = self.costs.supported[class] && time <= self.bound;
        let on_cpu = cpu_time <= self.bound;
        for c in 0..row {
            let Ways { accelerator, cpu } = self.known[from * row + c];
            let open = accelerator.accelerators.min(cpu.accelerators);
            if open == u32::MAX {
                continue;
            }
            if on_accelerator {
                // Filling the current accelerator is better than opening another one, if its count is the fewest.
                let filled = accelerator.filled + time;
                let further = accelerator.accelerators == open && filled <= self.bound;
                let other = Label { accelerators: open + 1, filled: time };
                let label = if further { Label { filled, ..accelerator } } else { other };
                take(&mut self.ways[to * row + c].accelerator, label);
            }
            if on_cpu && cpu.filled + cpu_time <= self.bound {
                let target = &mut self.ways[to * row + c].cpu;
                take_apart(target, Label { filled: cpu.filled + cpu_time, ..cpu });
            }
            if on_cpu && c < self.cpus {
                take_apart(&mut self.ways[to * row + c + 1].cpu, Label { accelerators: open, filled: cpu_time });
            }
        }
    }

    /// Result, after the labels of the last sets are complete.
    fn packing(mut self, last: &Range<usize>) -> Packing {
        std::mem::swap(&mut self.known, &mut self.ways);
        self.note(last);
        Packing { cpus: self.cpus, fewest: self.fewest }
    }
}

/// Keeps the label with fewer accelerators, then the less filled. Compared as one number, to avoid a branch that is
/// hard to predict.
#[inline]
fn take(best: &mut Label, other: Label) {
    // Times are non-negative, so their bits are ordered.
    let number = |label: Label| u128::from(label.accelerators) << 64 | u128::from(label.filled.to_bits());
    let least = number(*best).min(number(other));
    *best = Label { accelerators: (least >> 64) as u32, filled: f64::from_bits(least as u64) };
}

/// Minimises both parts separately, even if they belong to different splits.
fn take_apart(best: &mut Label, other: Label) {
    best.accelerators = best.accelerators.min(other.accelerators);
    best.filled = best.filled.min(other.filled);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::Dag, planner::Search};

    /// Chain of classes from pairs of time on an accelerator and time on a CPU.
    fn costs(times: &[(f64, f64)]) -> (Dag, ClassCosts) {
        let edges = (1..times.len() as u32).map(|v| (v - 1, v)).collect();
        (Dag::new(times.len(), edges).unwrap(), ClassCosts::of_times(times))
    }

    #[test]
    fn large_classes_do_not_share_a_device() {
        let (order, costs) = costs(&[(60.0, 900.0); 4]);
        let lattice = Lattice::new(&order, 100, &Search::default()).unwrap();
        let prefixes = Packing::of_prefixes(&lattice, &costs, 0, 100.0);
        let suffixes = Packing::of_suffixes(&lattice, &costs, 0, 100.0);
        // 240 on devices of 100 would be three by the average.
        assert_eq!((0..5).map(|i| prefixes.fewest(i, 0)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!((0..5).map(|i| suffixes.fewest(i, 0)).collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
        assert_eq!(Packing::of_prefixes(&lattice, &costs, 0, 120.0).fewest(4, 0), 2);
        assert_eq!(Packing::of_prefixes(&lattice, &costs, 0, 50.0).fewest(1, 0), u32::MAX, "none can hold it");
    }

    #[test]
    fn cpus_take_what_is_cheap_there() {
        let (order, costs) = costs(&[(60.0, 900.0), (60.0, 10.0), (60.0, 10.0), (60.0, 900.0)]);
        let lattice = Lattice::new(&order, 100, &Search::default()).unwrap();
        let prefixes = Packing::of_prefixes(&lattice, &costs, 2, 100.0);
        assert_eq!((0..3).map(|c| prefixes.fewest(4, c)).collect::<Vec<_>>(), [4, 2, 2]);
    }
}
