//! Which sets a stage is put in front of: those that no larger set makes useless.
//!
//! Let `x` be a node that may be run next before the tail `D`, so that all its successors are in `D`. If the tail `D + x`
//! can be run with as few devices and replicas as `D`, and whatever stage `x` was in is no slower without it, then no plan
//! needs `D` as a tail: every stage before it that holds `x` gives it up. Such a stage saves the time of `x`, and what `x`
//! pays for the edges to its successors, which are in other stages in any case; what its tails now pay for the edges into
//! `x` is added. Memory only falls. So each of those nodes is *heavy* for which the first is more than the second, at every
//! degree and whatever the modes.
//!
//! Of the sets that can be run with so many devices and replicas mostly the largest remain. A step by one node is
//! enough: what a useless set is beaten by may itself be useless, but there is an end to it. Not so where the number of
//! stages is given, since a stage may vanish. `O(steps between sets · undominated pairs)` for each question.

use std::ops::Range;

use super::{
    model::{Degree, PiperModel},
    prices::rounding,
    probe::Frontier,
};
use crate::graph::SuccessorSets;

/// By set: the sets that have one heavy node less.
pub(super) struct Heavier {
    lighter: Vec<Vec<u32>>,
}

impl Heavier {
    /// Nothing where steps between sets are not known, or figures are too far apart for sums to be compared.
    pub(super) fn new(model: &PiperModel<'_>) -> Self {
        let full = model.full();
        if model.far_apart || full == 0 || model.sets.below(full).is_none() {
            return Heavier { lighter: vec![] };
        }
        let heavy: Vec<bool> = (0..model.dag.len()).map(|v| is_heavy(model, v)).collect();
        let steps = |set: usize| {
            let below = model.sets.below(set).unwrap_or_default().iter().copied();
            below.filter(|&below| model.sets.difference(set, below as usize).iter().all(|&v| heavy[v])).collect()
        };
        Heavier { lighter: (0..=full).map(steps).collect() }
    }

    /// Whether there is any.
    pub(super) fn any(&self) -> bool {
        self.lighter.iter().any(|lighter| !lighter.is_empty())
    }
}

/// Whether no stage is slower without the node, if all its successors are in other stages.
fn is_heavy(model: &PiperModel<'_>, v: usize) -> bool {
    let no_slower = |(at, degree): (usize, &Degree)| {
        let Some(time_s) = degree.choices[v].iter().map(|choice| choice.time_s).reduce(f64::min) else { return true };
        let tail = |edge: u32| {
            let pays = degree.edge_out[edge as usize];
            degree.ranges.as_ref().map_or((pays, pays), |ranges| {
                let span = ranges.tails_pay[edge as usize];
                (span.least, span.most)
            })
        };
        let saved: f64 = model.dag.out_edges(v).iter().map(|&edge| tail(edge).0).sum();
        let added: f64 = model.dag.in_edges(v).iter().map(|&edge| tail(edge).1).sum();
        let seconds = time_s + (saved - added) / model.limits.bandwidth_bytes_per_s;
        // More than sums may be off by.
        seconds >= 2.0 * rounding(model) * model.most_seconds(at, 1)
    };
    model.degrees.iter().enumerate().all(no_slower)
}

/// A set that a stage is put in front of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) set: u32,
    /// The fewest devices that run it; 0 if that is not known yet.
    devices: u32,
    pub(super) device_seconds: f64,
}

impl Source {
    /// Whether the set and a stage in front of it, of so many device-seconds together, may do with `most` devices at a load.
    #[inline]
    pub(super) fn leaves_enough(&self, device_seconds: f64, target: f64, most: f64) -> bool {
        let stage = (device_seconds - self.device_seconds) / target;
        // Not a number where there is neither work nor time for it.
        stage.is_nan() || f64::from(self.devices) + stage <= most
    }
}

/// The sets that a stage is put in front of.
pub(super) struct Sources {
    /// By device-seconds.
    pub(super) settled: Vec<Source>,
    /// Their bits, in the same order side by side: most sets are tried in vain, which takes a look at these.
    rows: Vec<u64>,
    words: usize,
    /// By set, whether it is useless; empty where none is looked for.
    useless: Vec<bool>,
}

impl Sources {
    /// All sets, or if useless ones are to be found (`pruned`) just the empty one.
    pub(super) fn new(model: &PiperModel<'_>, pruned: bool) -> Self {
        let source = |set: u32| Source { set, devices: 0, device_seconds: model.device_seconds[set as usize] };
        let (settled, useless) = if pruned {
            (vec![source(0)], vec![false; model.sets.len()])
        } else {
            (model.by_device_seconds.iter().map(|&set| source(set)).collect(), vec![])
        };
        let rows = settled.iter().flat_map(|source| model.sets.row(source.set as usize)).copied().collect();
        Sources { settled, rows, words: model.sets.words(), useless }
    }

    /// Whether the set at a position among the settled ones lies within a set with these bits.
    #[inline]
    pub(super) fn is_within(&self, position: usize, outer: &[u64]) -> bool {
        if let &[outer] = outer {
            return self.rows[position] & !outer == 0;
        }
        let row = &self.rows[position * self.words..(position + 1) * self.words];
        row.iter().zip(outer).all(|(row, outer)| row & !outer == 0)
    }

    /// The sets within `outer` of which it is not known yet whether they are useless: those with one node less.
    pub(super) fn unsettled<'s>(&self, sets: &'s SuccessorSets, outer: usize) -> &'s [u32] {
        if self.useless.is_empty() { &[] } else { sets.below(outer).unwrap_or_default() }
    }

    /// Whether a stage may have to be put in front of the set.
    pub(super) fn useful(&self, set: usize) -> bool {
        self.useless.get(set) != Some(&true)
    }

    /// Goes on once the pairs of a level's sets are known: that settles the sets with one node less.
    pub(super) fn advance(
        &mut self,
        model: &PiperModel<'_>,
        heavier: &Heavier,
        pairs: &[Frontier],
        level: Range<usize>,
    ) {
        let size = model.sets.size(level.start);
        for set in level.clone().filter(|&set| !pairs[set].is_empty()) {
            for &lighter in &heavier.lighter[set] {
                if covers(&pairs[set], &pairs[lighter as usize]) {
                    self.useless[lighter as usize] = true;
                }
            }
        }
        let before = (0..level.start).rev().take_while(|&set| set > 0 && model.sets.size(set) + 1 == size);
        for set in before.filter(|&set| !self.useless[set]) {
            let Some(&(_, devices)) = pairs[set].last() else { continue };
            let device_seconds = model.device_seconds[set];
            // Its place is among the last.
            let after = self.settled.iter().rev().take_while(|known| known.device_seconds > device_seconds).count();
            let source = Source { set: set as u32, devices, device_seconds };
            let position = self.settled.len() - after;
            self.settled.insert(position, source);
            let at = position * self.words;
            self.rows.splice(at..at, model.sets.row(set).iter().copied());
        }
    }
}

/// Whether for each of the `others` there is a pair with no more replicas and no more devices.
fn covers(pairs: &Frontier, others: &Frontier) -> bool {
    others.iter().all(|&(s, j)| {
        // Of the pairs with as few replicas the last has the fewest devices.
        let within = pairs.partition_point(|&(replicas, _)| replicas <= s);
        within > 0 && pairs[within - 1].1 <= j
    })
}
