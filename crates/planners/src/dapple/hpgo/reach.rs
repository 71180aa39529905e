//! States with which stages of a straight pipeline may end such that enough stages can follow.
//!
//! If states branch, there may be hundreds of them without two dozen in one sequence. Then no pipeline has more stages.
//! Time `O(L² + s · L² / 64)`, memory `O(L² + s · L)` bits, for `s` stages and `L` states.

use fixedbitset::FixedBitSet;

use super::model::HpgoModel;
use plantui_core::search::Search;

/// For each number of stages, the states with which the last of them may end; `None` if all states are allowed.
pub(super) struct Reach(Option<Vec<FixedBitSet>>);

impl Reach {
    /// Computes the states for pipelines of `count` stages; `None` if cancelled. In a chain all states are allowed: only
    /// the last few are followed by too few stages.
    pub(super) fn of(model: &HpgoModel<'_>, count: u32, search: &Search) -> Option<Self> {
        if model.is_chain() {
            return Some(Reach(None));
        }
        let (states, count) = (model.states(), count as usize);
        let none = FixedBitSet::with_capacity(states);
        let mut reach = vec![none.clone(); count + 1];
        reach[count].insert(states - 1);
        // For each state, the possible ends of the stage before; computed on first use.
        let mut before: Vec<Option<FixedBitSet>> = vec![None; states];
        for stages in (2..=count).rev() {
            if search.cancelled() {
                return None;
            }
            let mut ends = none.clone();
            for j in reach[stages].ones() {
                let before = before[j].get_or_insert_with(|| {
                    let mut before = none.clone();
                    before.extend(model.before_backwards(j));
                    before
                });
                ends.union_with(before);
            }
            reach[stages - 1] = ends;
        }
        Some(Reach(Some(reach)))
    }

    /// True if `stages` stages may end with state `j`.
    #[inline]
    pub(super) fn may_end(&self, j: usize, stages: u32) -> bool {
        self.0.as_ref().is_none_or(|reach| reach[stages as usize].contains(j))
    }
}
