//! What is known of a table while it is filled, to one of those who fill it.
//!
//! Others may know more already; to look at that would make what is found depend on who was faster.

use super::{probe::Probe, sources::Sources};

/// What is known of the sets before some one.
pub(super) struct View<'v, 'p, 'm, 'a> {
    pub(super) probe: &'v Probe<'p, 'm, 'a>,
    /// The sets that a stage is put in front of.
    pub(super) sources: &'v Sources,
    /// The sets before this one are known.
    pub(super) known: usize,
}

impl View<'_, '_, '_, '_> {
    /// The pairs of a set that a stage may have to be put in front of.
    #[inline]
    pub(super) fn useful_pairs(&self, set: usize) -> &[(u32, u32)] {
        if set >= self.known && self.probe.behind == self.probe.filled {
            return &[];
        }
        self.sources.useful(set).map_or_else(|| self.probe.pairs(set), Vec::as_slice)
    }

    /// Sets that come next after a first stage of one of the sets with a node less, or else of the next smaller one that is
    /// known, and those that did for a larger load.
    pub(super) fn behind_smaller(&self, outer: usize) -> Vec<u32> {
        let within = &self.probe.model.smaller.within;
        let mut next = [within[outer]];
        while next[0] as usize >= self.known {
            next = [within[next[0] as usize]];
        }
        let smaller = self.below(outer).unwrap_or(&next);
        let earlier = self.probe.earlier.iter().flat_map(|earlier| &earlier.behind_first[outer]);
        let smaller = smaller.iter().flat_map(|&set| self.probe.behind_first(set as usize));
        let mut behind: Vec<u32> = smaller.chain(earlier).copied().collect();
        behind.sort_unstable();
        behind.dedup();
        behind
    }

    /// The sets with a node less, if there is a list of them and they are known.
    fn below(&self, outer: usize) -> Option<&[u32]> {
        let below = self.probe.model.sets.below(outer);
        below.filter(|below| below.iter().all(|&set| (set as usize) < self.known))
    }

    /// The sets within `outer` that are known and of which it is not known yet whether they are useless.
    pub(super) fn unsettled(&self, outer: usize) -> Vec<u32> {
        if !self.sources.are_pruned() {
            return vec![];
        }
        if let Some(below) = self.below(outer) {
            return below.to_vec();
        }
        let sets = &self.probe.model.sets;
        let last = self.known - 1;
        let level = (1..=last).rev().take_while(|&set| sets.size(set) == sets.size(last));
        level.filter(|&set| sets.is_subset(set, outer)).map(|set| set as u32).collect()
    }
}
