//! Local search from a split: moves runs of neighbouring cuts by one unit while that helps.
//!
//! Moving a run passes one unit from each of its stages to the next. Single moves would enlarge a stage on the way. The
//! caller evaluates each split and returns the work it took. That work counts against a budget, so the result is the
//! same on every machine. `O(S²)` evaluations for each round.

use super::search::{ClassSearch, LineSplit};

/// Result of an evaluation: the split with its time, unless it does not fit or cannot be better, and the work it took.
pub(super) type SplitEvaluation = (Option<LineSplit>, usize);

impl ClassSearch<'_, '_> {
    /// Climbs from a split until no move helps or the work exceeds `most`. `evaluate` gets the cuts and the incumbent's
    /// time.
    pub(super) fn climb(
        &mut self,
        mut own: LineSplit,
        most: usize,
        evaluate: &dyn Fn(&mut Self, Vec<usize>, f64) -> SplitEvaluation,
    ) {
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
                    let (split, took) = evaluate(self, begins, own.seconds);
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
