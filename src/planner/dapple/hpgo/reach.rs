//! With which states the stages of a straight pipeline may end for the stages behind them to be within a bound, as far as compute
//! goes.
//!
//! Where states branch there may be hundreds of which no two dozen follow one another: then no pipeline has more stages. Time
//! `O(L² + s · L² / 64)`, memory `O(L² + s · L)` bits, for `s` stages and `L` states.

use fixedbitset::FixedBitSet;

use super::model::HpgoModel;
use crate::planner::Search;

/// By number of stages the states that the last of them may end with; `None` where all may.
pub(super) struct Reach(Option<Vec<FixedBitSet>>);

impl Reach {
    /// Of pipelines with so many stages, so many side by side, none of whose stages computes for longer; `None` if cancelled.
    /// In a chain all may: sums say nearly as much.
    pub(super) fn of(
        model: &HpgoModel<'_>,
        (count, pipelines): (u32, u32),
        bound_s: f64,
        search: &Search,
    ) -> Option<Self> {
        if model.is_chain() {
            return Some(Reach(None));
        }
        let (states, count) = (model.states(), count as usize);
        let none = FixedBitSet::with_capacity(states);
        let mut reach = vec![none.clone(); count + 1];
        reach[count].insert(states - 1);
        // By state, once it is asked for: where the stage before may end.
        let mut before: Vec<Option<FixedBitSet>> = vec![None; states];
        for stages in (2..=count).rev() {
            if search.cancelled() {
                return None;
            }
            let mut ends = none.clone();
            for j in reach[stages].ones() {
                let within = |&k: &usize| model.compute_s(k + 1, j) / f64::from(pipelines) <= bound_s;
                let before = before[j].get_or_insert_with(|| {
                    let mut before = none.clone();
                    before.extend(model.before_backwards(j).filter(within));
                    before
                });
                ends.union_with(before);
            }
            reach[stages - 1] = ends;
        }
        Some(Reach(Some(reach)))
    }

    /// Whether so many stages may end with a state.
    #[inline]
    pub(super) fn may_end(&self, j: usize, stages: u32) -> bool {
        self.0.as_ref().is_none_or(|reach| reach[stages as usize].contains(j))
    }
}
