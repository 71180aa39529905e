//! What the answer to one question tells about the next, which asks for a smaller load.
//!
//! A tail that keeps to the smaller load keeps to the larger one as well. So the pairs found for the larger one bound those of
//! the smaller one from below, and where they are reached again nothing better can be found: most sets come out as before, and
//! the stages that made their pairs are the first to be tried. Closing a gap of 2 % takes a fraction of the first question's time.
//!
//! Where useless tails were left out, a set's pairs may be worse than they could be, but then some larger set that is made
//! by heavy steps (see `sources`) has pairs that are as good; the bound is the best of all of these.
//!
//! The other way round, a tail that keeps to a smaller load keeps to a larger one: what a question found that no plan answered is
//! there from the start of the next. Between the two bounds little is left to be tried for loads that are close together.
//!
//! `O(steps between sets · undominated pairs)` time, memory as for the pairs.

use super::{
    lists::Lists,
    probe::{Allowed, FoundPair, Frontier, Question},
    sources::Heavier,
};

/// Pairs found for a load.
pub(super) struct Earlier {
    target: f64,
    devices: u32,
    most_replicas: u32,
    allowed: Vec<Allowed>,
    /// By set: no tail of a whole plan is better than one of these.
    pub(super) least: Lists<(u32, u32)>,
    /// By set: the sets behind the first stages of its pairs.
    pub(super) behind_first: Lists<u32>,
}

impl Earlier {
    /// From the pairs of a question without a number of stages.
    pub(super) fn new(
        question: &Question<'_>,
        heavier: Option<&Heavier>,
        mut least: Lists<(u32, u32)>,
        behind_first: Lists<u32>,
    ) -> Self {
        for set in (0..least.sets()).rev() {
            for &lighter in heavier.map(|heavier| heavier.lighter(set)).unwrap_or_default() {
                let Some((pairs, larger)) = least.with_larger(lighter as usize, set) else { continue };
                if !larger.iter().all(|&pair| covers(pairs, pair)) {
                    pairs.extend_from_slice(larger);
                    *pairs = undominated(std::mem::take(pairs));
                }
            }
        }
        let Question { target, devices, most_replicas, allowed, .. } = *question;
        Earlier { target, devices, most_replicas, allowed: allowed.to_vec(), least, behind_first }
    }

    /// Whether every plan that answers a question would have answered this one.
    pub(super) fn bounds(&self, question: &Question<'_>) -> bool {
        question.stages.is_none()
            && question.target <= self.target
            && question.devices <= self.devices
            && question.most_replicas <= self.most_replicas
            && question.allowed == self.allowed
    }
}

/// Pairs that tails were found to do with for a load that is too small for the whole.
pub(super) struct Reached {
    target: f64,
    devices: u32,
    allowed: Vec<Allowed>,
    /// By set.
    pub(super) pairs: Lists<(u32, u32)>,
    /// By set and pair, the set behind its first stage.
    pub(super) by: Lists<u32>,
}

impl Reached {
    /// From the pairs of a question without a number of stages.
    pub(super) fn new(question: &Question<'_>, pairs: Lists<(u32, u32)>, by: Lists<u32>) -> Self {
        let Question { target, devices, allowed, .. } = *question;
        Reached { target, devices, allowed: allowed.to_vec(), pairs, by }
    }

    /// Whether the tails do with these pairs for a question as well.
    pub(super) fn holds_for(&self, question: &Question<'_>) -> bool {
        question.stages.is_none()
            && self.target <= question.target
            && self.devices <= question.devices
            && self.allowed == question.allowed
    }

    /// The pairs of a set.
    pub(super) fn of(&self, set: usize) -> impl Iterator<Item = FoundPair> + '_ {
        self.pairs.of(set).iter().zip(self.by.of(set)).map(|(&(replicas, devices), &by)| (replicas, devices, by))
    }
}

/// Whether one of the pairs has no more replicas and no more devices than another set's.
pub(super) fn covers(pairs: &[(u32, u32)], (replicas, devices): (u32, u32)) -> bool {
    // Of the pairs with as few replicas the last has the fewest devices.
    let within = pairs.partition_point(|&(s, _)| s <= replicas);
    within > 0 && pairs[within - 1].1 <= devices
}

/// The pairs of which no other is as good, replicas ascending.
fn undominated(mut pairs: Frontier) -> Frontier {
    pairs.sort_unstable();
    let mut fewest = u32::MAX;
    pairs.retain(|&mut (_, devices)| {
        let undominated = devices < fewest;
        fewest = fewest.min(devices);
        undominated
    });
    pairs
}
