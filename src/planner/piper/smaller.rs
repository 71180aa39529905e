//! Sums over the nodes of all sets, each made from that of a smaller one.
//!
//! Time `O(nodes that sets have beyond the smaller ones)`, memory that of the sets.

use crate::graph::SuccessorSets;

/// By set: a smaller one within it, that lacks few of its nodes.
pub(super) struct Smaller {
    pub(super) within: Vec<u32>,
    pub(super) added: Added,
}

/// The nodes that sets have beyond their smaller ones, where they are few: sums are taken over them again and again.
pub(super) struct Added {
    nodes: Vec<u32>,
    /// By set: where its nodes end, those of the set before being where they begin.
    ends: Vec<u32>,
}

impl Added {
    pub(super) fn new(sets: &SuccessorSets, within: &[u32]) -> Self {
        let (mut nodes, mut ends) = (vec![], vec![0; sets.len()]);
        for (set, &inner) in within.iter().enumerate().skip(1) {
            let inner = inner as usize;
            // No more memory than the sets take.
            if sets.size(set) - sets.size(inner) <= 2 * sets.words() {
                nodes.extend(sets.beyond(set, inner).map(|v| v as u32));
            }
            ends[set] = nodes.len() as u32;
        }
        Added { nodes, ends }
    }

    /// The nodes that a set which is not empty has beyond the smaller one; `None` where they are not few.
    #[inline]
    fn few(&self, set: usize) -> Option<&[u32]> {
        let nodes = &self.nodes[self.ends[set - 1] as usize..self.ends[set] as usize];
        (!nodes.is_empty()).then_some(nodes)
    }
}

impl Smaller {
    /// By set, what its nodes come to if adding one of them to a sum is this.
    pub(super) fn summed<S: Copy + Default>(&self, sets: &SuccessorSets, add: impl Fn(&mut S, usize)) -> Vec<S> {
        let mut sums = vec![];
        self.sum_up(sets, &mut sums, add);
        sums
    }

    /// The same in place of what `sums` were before.
    pub(super) fn sum_up<S>(&self, sets: &SuccessorSets, sums: &mut Vec<S>, add: impl Fn(&mut S, usize))
    where
        S: Copy + Default,
    {
        sums.clear();
        sums.reserve_exact(sets.len());
        sums.push(S::default());
        for set in 1..sets.len() {
            let within = self.within[set] as usize;
            let mut sum = sums[within];
            match self.added.few(set) {
                Some(nodes) => nodes.iter().for_each(|&v| add(&mut sum, v as usize)),
                None => sets.beyond(set, within).for_each(|v| add(&mut sum, v)),
            }
            sums.push(sum);
        }
    }
}

/// By set: a smaller one within it, the largest of some hundred before it.
pub(super) fn within(sets: &SuccessorSets) -> Vec<u32> {
    const LOOKED_AT: usize = 512;
    let mut within: Vec<u32> = vec![0];
    let mut smaller = 0;
    for set in 1..sets.len() {
        if sets.size(set) > sets.size(set - 1) {
            smaller = set;
        }
        let near = || (smaller.saturating_sub(LOOKED_AT)..smaller).rev().find(|&inner| sets.is_subset(inner, set));
        // Else one that served the set before; the empty set serves every set.
        let far = || {
            let mut inner = within[set - 1] as usize;
            while !sets.is_subset(inner, set) {
                inner = within[inner] as usize;
            }
            inner
        };
        let below = sets.below(set).and_then(<[u32]>::first).map(|&below| below as usize);
        within.push(below.or_else(near).unwrap_or_else(far) as u32);
    }
    within
}
