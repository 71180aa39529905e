//! The pipeline with the least synchronous length, over all cuts, replica counts and places.
//!
//! Stages are added from the network's end to its beginning, between any two positions (see [`Costs`]) of which one lies
//! within the other. Let a suffix of the pipeline, links counted as stages, be
//! summed up by
//!
//! ```text
//! X = max over Q of    sum of F up to Q + (M − 1)(F_Q + B_Q) + sum of B up to Q        its length without all-reduces
//! Z = max over Q, s of the same with the all-reduce of s in place of the drain         its length (see plan::check_dapple)
//! V = max over s of    AR_s − sum of B up to s
//! ```
//!
//! A stage `p` in front turns them into
//!
//! ```text
//! X' = max(X + F_p + B_p, M (F_p + B_p))
//! Z' = max(Z + F_p, X' + AR_p, F_p + (M − 1)(F_p + B_p) + V − B_p)
//! V' = max(AR_p, V) − B_p
//! ```
//!
//! all of which grow with X, Z and V: so of the suffixes from a position on a place only those count that no other beats
//! in all three, and in the number of stages where memory is tight (it decides what is in flight before them). Where so many
//! stages are asked for, only suffixes with as many stages are compared: then there are as many more labels. What
//! cannot beat the best plan known, by its own length and a bound on what comes before, is dropped.
//! Places are shared among threads. Time `O(positions² · places · labels)`, memory `O(positions · places · labels)`.

use rayon::prelude::*;

use super::{
    costs::{Costs, Recompute},
    places::Places,
};
use crate::planner::Search;

/// What is kept of a suffix.
#[derive(Debug, Clone, Copy)]
struct Label {
    x: f64,
    z: f64,
    v: f64,
    /// Stages in it.
    stages: u32,
    /// Where its first stage ends, and there: the next place and its label. Unused after the last stage.
    end: u32,
    next_place: u32,
    next_label: u32,
}

/// So many ends of stages and labels tried at one position take longer than sharing them out among threads.
const MUCH: u64 = 30_000;
/// The empty suffix.
const NOTHING: Label = Label {
    x: f64::NEG_INFINITY,
    z: f64::NEG_INFINITY,
    v: f64::NEG_INFINITY,
    stages: 0,
    end: 0,
    next_place: 0,
    next_label: 0,
};

impl Label {
    /// The suffix with a step in front of it.
    fn behind(&self, microbatches: f64, forward: f64, backward: f64, all_reduce: f64) -> Label {
        let both = forward + backward;
        let x = (self.x + both).max(microbatches * both);
        let pivot = forward + (microbatches - 1.0) * both;
        let z = (self.z + forward).max(x + all_reduce).max(pivot + self.v - backward);
        let v = self.v.max(all_reduce) - backward;
        Label { x, z, v, ..*self }
    }

    fn beats(&self, other: &Label, stages: StageCount) -> bool {
        let comparable = match stages {
            StageCount::Any => true,
            StageCount::FewerIsBetter => self.stages <= other.stages,
            StageCount::Fixed => self.stages == other.stages,
        };
        comparable && self.x <= other.x && self.z <= other.z && self.v <= other.v
    }
}

/// What the number of stages in a suffix means for what may come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StageCount {
    /// Nothing.
    Any,
    /// With more behind it a stage has more in flight.
    FewerIsBetter,
    /// It decides how many there may be.
    Fixed,
}

/// Labels none of which beats another.
#[derive(Debug, Clone, Default)]
struct Front {
    labels: Vec<Label>,
}

impl Front {
    /// Adds a label unless it is beaten; keeps at most `most`, the shortest.
    fn add(&mut self, label: Label, stages: StageCount, most: usize) {
        if self.labels.iter().any(|known| known.beats(&label, stages)) {
            return;
        }
        self.labels.retain(|known| !label.beats(known, stages));
        self.labels.push(label);
        if self.labels.len() > most
            && let Some(worst) =
                (0..self.labels.len()).reduce(|a, b| if self.labels[b].z > self.labels[a].z { b } else { a })
        {
            self.labels.swap_remove(worst);
        }
    }
}

/// A stage of the plan found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundStage {
    /// Position where it begins.
    pub(super) from: usize,
    /// Position where it ends.
    pub(super) to: usize,
    /// Its place.
    pub(super) place: usize,
}

/// The plan found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExactPlan {
    /// Seconds of a batch.
    pub(super) length_s: f64,
    /// Its stages.
    pub(super) stages: Vec<FoundStage>,
}

/// How to search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Labels kept for a suffix; `usize::MAX` proves the optimum.
    pub(super) labels: usize,
    /// Only plans shorter than this count, seconds.
    pub(super) below_s: f64,
    /// When stages recompute.
    pub(super) recompute: Recompute,
    /// Exactly so many stages.
    pub(super) stages: Option<u32>,
}

impl Effort {
    /// Whether a suffix with so many stages may belong to a plan; `whole`: it is the plan.
    fn allows(&self, stages: u32, whole: bool) -> bool {
        self.stages.is_none_or(|asked| if whole { stages == asked } else { stages < asked })
    }
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    /// The best plan below the bound, if there is one.
    Done(Option<ExactPlan>),
    /// Asked to stop.
    Cancelled,
}

/// Searches.
pub(super) fn search(costs: &Costs, places: &Places, devices: u32, effort: &Effort, search: &Search) -> Ended {
    let end = costs.end();
    let m = f64::from(costs.microbatches);
    let stages = match effort.stages {
        Some(_) => StageCount::Fixed,
        None if effort.recompute == Recompute::Always || !costs.memory_is_plenty(devices) => StageCount::FewerIsBetter,
        None => StageCount::Any,
    };
    // Rounding must not keep a plan that is as long as the one known.
    let below = effort.below_s * (1.0 - 1e-12);
    // By position and place: suffixes that begin with a stage there; the same with the link to it, by the place before.
    let mut begins: Vec<Vec<Front>> = vec![vec![]; end];
    let mut behind: Vec<Vec<Front>> = vec![vec![]; end];
    // Ends of stages and labels tried at the position before.
    let mut tried = 0;
    for from in (0..end).rev() {
        // What begins at a place rests on later positions alone: places know nothing of one another.
        let one = |at: usize, front: &mut Front| {
            let place = &places.all[at];
            if search.cancelled() {
                return None;
            }
            if (place.occupied_before == 0) != (from == 0) {
                return Some(0);
            }
            // What comes before runs on the devices before, and no stage of it on more than all of them.
            let before = f64::from(place.occupied_before.max(1));
            if costs.compute_s(0, from) / before >= below {
                return Some(0);
            }
            let filled = costs.forward_up_to(from) / (before * m);
            let filled_and_drained = costs.compute_s(0, from) / (before * m);
            let left = devices - place.occupied_after;
            let mut tried = 0;
            for &to in costs.later(from) {
                let to = to as usize;
                tried += 1;
                if costs.compute_s(from, to) / f64::from(place.count) >= below {
                    break;
                }
                let all_reduce = place.all_reduce * costs.parameters(from, to);
                if to < end && (left == 0 || costs.compute_s(to, end) / f64::from(left) >= below) {
                    continue;
                }
                if search.cancelled() {
                    return None;
                }
                let mut add = |rest: &Label, pointer: (u32, u32)| {
                    tried += 1;
                    if !effort.allows(rest.stages + 1, from == 0) {
                        return;
                    }
                    let Some(time) = costs.stage(from, to, place.count, rest.stages as usize, effort.recompute) else {
                        return;
                    };
                    let label = rest.behind(m, time.forward_s, time.backward_s, all_reduce);
                    let bound = (label.z + filled).max(label.x + filled_and_drained);
                    if bound < below {
                        let (next_place, next_label) = pointer;
                        let label = Label { stages: rest.stages + 1, end: to as u32, next_place, next_label, ..label };
                        front.add(label, stages, effort.labels);
                    }
                };
                if to == end {
                    add(&NOTHING, (0, 0));
                } else {
                    for rest in &behind[to][at].labels {
                        add(rest, (rest.next_place, rest.next_label));
                    }
                }
            }
            Some(tried)
        };
        let fronts = on_places(places, tried, one);
        let Some((fronts, now)) = fronts else { return Ended::Cancelled };
        tried = now;
        if from > 0 {
            let next = linked(costs, places, &fronts, from, stages, effort.labels, (below, tried), search);
            let Some(next) = next else { return Ended::Cancelled };
            behind[from] = next;
        }
        begins[from] = fronts;
        search.report_fraction(1.0 - from as f64 / end as f64);
    }
    Ended::Done(traced(&begins, places, end))
}

/// The suffixes from a position on as the places before see them: with the link that leads there; `None` if cancelled.
#[allow(clippy::too_many_arguments, reason = "what one step of the search rests on")]
fn linked(
    costs: &Costs,
    places: &Places,
    fronts: &[Front],
    from: usize,
    stages: StageCount,
    most: usize,
    (below, tried): (f64, u64),
    search: &Search,
) -> Option<Vec<Front>> {
    let m = f64::from(costs.microbatches);
    let one = |at: usize, front: &mut Front| {
        let place = &places.all[at];
        if search.cancelled() {
            return None;
        }
        for &(next, per_byte) in &place.next {
            let seconds = costs.cut_bytes[from] * per_byte;
            for (i, label) in fronts[next].labels.iter().enumerate() {
                let linked = label.behind(m, seconds, seconds, 0.0);
                if linked.z < below {
                    let pointer = Label { next_place: next as u32, next_label: i as u32, ..linked };
                    front.add(pointer, stages, most);
                }
            }
        }
        Some(0)
    };
    Some(on_places(places, tried, one)?.0)
}

/// The front of each place, and the sum of what `find` gives; `None` if it gives none for any of them. Threads share the places
/// where so much was tried before that it pays; who finds a front makes no difference to it.
fn on_places(
    places: &Places,
    before: u64,
    find: impl Fn(usize, &mut Front) -> Option<u64> + Sync,
) -> Option<(Vec<Front>, u64)> {
    let mut fronts = vec![Front::default(); places.all.len()];
    let sum = if before > MUCH {
        let each = (fronts.len() / (8 * rayon::current_num_threads())).max(1);
        let all = fronts.par_iter_mut().enumerate().with_max_len(each);
        all.map(|(at, front)| find(at, front)).try_reduce(|| 0, |a, b| Some(a + b))
    } else {
        fronts.iter_mut().enumerate().try_fold(0, |sum, (at, front)| Some(sum + find(at, front)?))
    };
    Some((fronts, sum?))
}

/// The shortest whole pipeline.
fn traced(begins: &[Vec<Front>], places: &Places, end: usize) -> Option<ExactPlan> {
    let mut best: Option<(usize, Label)> = None;
    for (at, front) in begins.first()?.iter().enumerate() {
        for label in &front.labels {
            if best.is_none_or(|(_, known)| label.z < known.z) {
                best = Some((at, *label));
            }
        }
    }
    let (mut place, mut label) = best?;
    let length_s = label.z;
    let mut stages = vec![];
    let mut from = 0;
    loop {
        let to = label.end as usize;
        stages.push(FoundStage { from, to, place });
        if to == end {
            debug_assert!(places.all[place].count > 0);
            return Some(ExactPlan { length_s, stages });
        }
        let next = label.next_place as usize;
        label = begins[to][next].labels[label.next_label as usize];
        (place, from) = (next, to);
    }
}
