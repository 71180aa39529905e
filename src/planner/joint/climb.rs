//! Improving a split: runs of cuts are moved by one as long as that helps.
//!
//! Moving a run of neighbouring cuts together passes one unit from each of its stages to the next, which no single move could do
//! without a stage that grows on the way. What a split is worth is the searcher's to say; what looking at it took counts
//! against a budget, so that the end is the same on every machine. `O(S²)` looks for each round.

use super::search::{Hunt, Split};

/// What became of looking at a split: the split with its time, unless it does not fit or cannot be better, and the work that
/// this took.
pub(super) type Look = (Option<Split>, usize);

impl Hunt<'_, '_> {
    /// Climbs from a split until no move helps, or the looks took more than `most`. `look` is given the cuts and the time to
    /// beat.
    pub(super) fn climb(&mut self, mut own: Split, most: usize, look: &dyn Fn(&mut Self, Vec<usize>, f64) -> Look) {
        let count = own.begins.len();
        let n = self.tables[own.table].costs.len();
        let mut work = 0;
        let mut helped = true;
        while helped {
            helped = false;
            for length in 1..count {
                for (first, up) in (1..=count - length).flat_map(|first| [(first, false), (first, true)]) {
                    let mut begins = own.begins.clone();
                    let run = &mut begins[first..first + length];
                    run.iter_mut().for_each(|begin| if up { *begin += 1 } else { *begin -= 1 });
                    let end = begins.get(first + length).copied().unwrap_or(n);
                    if begins[first] <= begins[first - 1] || begins[first + length - 1] >= end {
                        continue;
                    }
                    let (split, took) = look(self, begins, own.seconds);
                    work += took;
                    if let Some(split) = split.filter(|split| split.seconds < own.seconds * (1.0 - 1e-9)) {
                        own = split;
                        self.publish(&own);
                        helped = true;
                    }
                    if work > most || self.search.cancelled() {
                        return;
                    }
                }
            }
        }
    }
}
