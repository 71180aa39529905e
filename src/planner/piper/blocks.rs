//! Sets that take about as long, side by side: what rules all of them out at once.
//!
//! The inner sets of a stage are looked for among thousands that differ by little in the time that they leave to the stage, and
//! almost all leave too much. So they are kept in blocks by device-seconds, small ones in large ones ([`SIZES`]), and what the
//! nodes of a set pay at a price (see `prices`) is known by block at the most: a stage in front of any of them pays what is
//! left at the least. Where that is too much at every degree and number of replicas that would help, none of the block is
//! looked at.
//!
//! `O(sets)` memory and time for each degree.

use super::{lean, lean::Lean, model::PiperModel};
use crate::graph::lies_within;

/// Sets in a block, large and small ones.
pub(super) const SIZES: [usize; 2] = [128, 16];

/// A block: which of the sizes, and which of its blocks.
pub(super) type Block = (usize, usize);

/// What the sets of each block of one size have in common.
pub(super) struct Blocks {
    words: usize,
    degrees: usize,
    /// By block: the nodes that all of its sets have, and those that any has.
    all: Vec<u64>,
    any: Vec<u64>,
    /// By block and degree: bytes over the edges into one of its sets at the least, and seconds of its nodes at the most.
    edge_bytes: Vec<f64>,
    time_s: Vec<f64>,
}

impl Blocks {
    pub(super) fn new(model: &PiperModel<'_>, lean: Option<&Lean>, size: usize) -> Self {
        let sets = &model.sets;
        let (words, degrees) = (sets.words(), model.degrees.len());
        let mut blocks = Blocks { words, degrees, all: vec![], any: vec![], edge_bytes: vec![], time_s: vec![] };
        for block in model.by_device_seconds.chunks(size) {
            let word = |word: usize, join: fn(u64, u64) -> u64| {
                block.iter().map(|&set| sets.row(set as usize)[word]).reduce(join).unwrap_or_default()
            };
            blocks.all.extend((0..words).map(|at| word(at, |a, b| a & b)));
            blocks.any.extend((0..words).map(|at| word(at, |a, b| a | b)));
            let least = |degree: usize| {
                let bytes = |&set: &u32| lean.map_or(0.0, |lean| lean.bytes_into(set as usize, degree));
                block.iter().map(bytes).fold(f64::INFINITY, f64::min)
            };
            blocks.edge_bytes.extend((0..degrees).map(least));
            let most = |degree: usize| {
                block.iter().map(|&set| model.degrees[degree].sums[set as usize].time_s).fold(0.0, f64::max)
            };
            blocks.time_s.extend((0..degrees).map(most));
        }
        blocks
    }

    /// Whether some set of a block may lie within a set with these bits.
    #[inline]
    pub(super) fn may_be_within(&self, block: usize, outer: &[u64]) -> bool {
        let all = &self.all[block * self.words..(block + 1) * self.words];
        lies_within(all, outer)
    }

    /// What a stage of `outer` in front of any set of a block takes at the least at a degree: seconds of its nodes in their
    /// fastest modes on one replica, and bytes over its edges.
    #[inline]
    pub(super) fn least(&self, outer: &lean::Outer, block: usize, degree: usize) -> (f64, f64) {
        let any = &self.any[block * self.words..(block + 1) * self.words];
        let has = |head: u32| any[head as usize / 64] >> (head % 64) & 1 == 1;
        let at = block * self.degrees + degree;
        (outer.time_s(degree) - self.time_s[at], (self.edge_bytes[at] + outer.edge_bytes(degree, has)).max(0.0))
    }
}
