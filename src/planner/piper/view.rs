//! What is known of a table while it is filled, to one of those who fill it.
//!
//! Others may know more already; to look at that would make what is found depend on who was faster.

use smallvec::SmallVec;

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
        self.sources.useful(set).map_or_else(|| self.probe.pairs(set), SmallVec::as_slice)
    }

    /// Notes the sets that come next after a first stage of one of the sets with a node less, or else of the next smaller one that is
    /// known, and those that did for a larger load. Behind a set that is smaller by some nodes, a stage of the same size in front is
    /// of use as well.
    pub(super) fn behind_smaller(&self, outer: usize, behind: &mut Vec<u32>) {
        behind.clear();
        if let Some(below) = self.below(outer) {
            below.iter().for_each(|&set| behind.extend_from_slice(self.probe.behind_first(set as usize)));
        } else {
            let within = &self.probe.model.smaller.within;
            let mut smaller = within[outer] as usize;
            while smaller >= self.known {
                smaller = within[smaller] as usize;
            }
            let first = self.probe.behind_first(smaller);
            behind.extend_from_slice(first);
            first.iter().for_each(|&set| behind.extend(self.as_far_behind(outer, (smaller, set as usize))));
        }
        behind.extend(self.probe.earlier.iter().flat_map(|earlier| earlier.behind_first.of(outer)));
        behind.sort_unstable();
        behind.dedup();
    }

    /// The settled sets within `outer` that leave it about as many device-seconds for a stage as an inner set leaves another one.
    fn as_far_behind(&self, outer: usize, (other, inner): (usize, usize)) -> impl Iterator<Item = u32> {
        let (model, settled) = (self.probe.model, &self.sources.settled);
        let seconds = &model.device_seconds;
        let most = seconds[inner] + seconds[outer] - seconds[other];
        let next = settled.partition_point(|source| source.device_seconds <= most);
        let row = model.sets.row(outer);
        let near = next.saturating_sub(1)..settled.len().min(next + 1);
        let within = near.filter(move |&position| self.sources.is_within(position, row));
        within.map(|position| settled[position].set).filter(move |&set| (set as usize) < outer)
    }

    /// The sets with a node less, if there is a list of them and they are known.
    fn below(&self, outer: usize) -> Option<&[u32]> {
        let below = self.probe.model.sets.below(outer);
        below.filter(|below| below.iter().all(|&set| (set as usize) < self.known))
    }

    /// Notes the sets within `outer` that are known and of which it is not known yet whether they are useless.
    pub(super) fn unsettled(&self, outer: usize, unsettled: &mut Vec<u32>) {
        unsettled.clear();
        if !self.sources.are_pruned() {
            return;
        }
        if let Some(below) = self.below(outer) {
            unsettled.extend_from_slice(below);
            return;
        }
        let sets = &self.probe.model.sets;
        let last = self.known - 1;
        let level = (1..=last).rev().take_while(|&set| sets.size(set) == sets.size(last));
        unsettled.extend(level.filter(|&set| sets.is_subset(set, outer)).map(|set| set as u32));
    }
}
