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
//! Of most positions and places there is no suffix that counts: only those that have one are looked at. Places are shared among
//! threads. Time `O(positions² · places · labels)`, memory `O(positions · places · labels)`, both at worst.

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
const MUCH: u64 = 4_000;
/// So many places that nothing is tried at take as long as one try.
const PLACES_A_TRY: usize = 2;
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

/// Those of the places that have any, by place.
type Fronts = Vec<(usize, Front)>;

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
    /// The best plan below the bound, if there is one, and how many ends of stages and labels were tried.
    Done(Option<ExactPlan>, u64),
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
    // By position: suffixes that begin with a stage there.
    let mut begins: Vec<Fronts> = vec![vec![]; end];
    // By place: where a stage there may end, least compute first, with the suffixes behind it and the link to them.
    let nothing = Front { labels: vec![NOTHING] };
    let mut ends: Vec<Vec<(usize, Front)>> = vec![vec![(end, nothing)]; places.all.len()];
    // Ends of stages and labels tried at the position before.
    let (mut tried, mut all) = (0, 0);
    for from in (0..end).rev() {
        // What begins at a place rests on later positions alone: places know nothing of one another.
        let one = |at: usize| {
            let (place, mut front) = (&places.all[at], Front::default());
            if search.cancelled() {
                return None;
            }
            if (place.occupied_before == 0) != (from == 0) {
                return Some((front, 0));
            }
            // What comes before runs on the devices before, and no stage of it on more than all of them.
            let before = f64::from(place.occupied_before.max(1));
            if costs.compute_s(0, from) / before >= below {
                return Some((front, 0));
            }
            let filled = costs.forward_up_to(from) / (before * m);
            let filled_and_drained = costs.compute_s(0, from) / (before * m);
            let left = devices - place.occupied_after;
            let mut tried = 0;
            let later = costs.later(from);
            for (to, behind) in ends[at].iter().filter(|(to, _)| later.contains(*to)) {
                let to = *to;
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
                for rest in &behind.labels {
                    tried += 1;
                    if !effort.allows(rest.stages + 1, from == 0) {
                        continue;
                    }
                    let Some(time) = costs.stage(from, to, place.count, rest.stages as usize, effort.recompute) else {
                        continue;
                    };
                    let label = rest.behind(m, time.forward_s, time.backward_s, all_reduce);
                    let bound = (label.z + filled).max(label.x + filled_and_drained);
                    if bound < below {
                        let label = Label { stages: rest.stages + 1, end: to as u32, ..label };
                        front.add(label, stages, effort.labels);
                    }
                }
            }
            Some((front, tried))
        };
        let fronts = on_places(places, tried, one);
        let Some((fronts, now)) = fronts else { return Ended::Cancelled };
        tried = now;
        all += now;
        if from > 0 {
            let next = linked(costs, places, &fronts, from, stages, effort.labels, (below, tried), search);
            let Some(next) = next else { return Ended::Cancelled };
            for (at, front) in next {
                let before = |to: usize| costs.rank(to) < costs.rank(from);
                let rank = ends[at].partition_point(|&(to, _)| before(to));
                ends[at].insert(rank, (from, front));
            }
        }
        begins[from] = fronts;
        search.report_fraction(1.0 - from as f64 / end as f64);
    }
    Ended::Done(traced(&begins, places, end), all)
}

/// The suffixes from a position on as the places before see them: with the link that leads there; `None` if cancelled.
#[allow(clippy::too_many_arguments, reason = "what one step of the search rests on")]
fn linked(
    costs: &Costs,
    places: &Places,
    fronts: &Fronts,
    from: usize,
    stages: StageCount,
    most: usize,
    (below, tried): (f64, u64),
    search: &Search,
) -> Option<Fronts> {
    let m = f64::from(costs.microbatches);
    if fronts.is_empty() {
        return Some(vec![]);
    }
    // By place: how many of those before it have a front.
    let mut before = vec![0; places.all.len() + 1];
    fronts.iter().for_each(|&(at, _)| before[at + 1] = 1);
    (0..places.all.len()).for_each(|at| before[at + 1] += before[at]);
    let one = |at: usize| {
        let (next, mut front) = (&places.all[at].next, Front::default());
        if search.cancelled() {
            return None;
        }
        for (place, known) in &fronts[before[next.first]..before[next.first + next.per_byte.len()]] {
            let seconds = costs.cut_bytes[from] * next.per_byte[place - next.first];
            for (i, label) in known.labels.iter().enumerate() {
                let linked = label.behind(m, seconds, seconds, 0.0);
                if linked.z < below {
                    let pointer = Label { next_place: *place as u32, next_label: i as u32, ..linked };
                    front.add(pointer, stages, most);
                }
            }
        }
        Some((front, 0))
    };
    Some(on_places(places, tried, one)?.0)
}

/// The fronts that are not empty, by place, and the sum of what `find` gives beside; `None` if it gives none for any of them. Threads
/// share the places where so much was tried before that it pays; who finds a front makes no difference to it.
fn on_places(
    places: &Places,
    before: u64,
    find: impl Fn(usize) -> Option<(Front, u64)> + Sync,
) -> Option<(Fronts, u64)> {
    let count = places.all.len();
    let (mut fronts, mut sum) = (vec![], 0);
    let find = |at: usize| {
        let (mut front, tried) = find(at)?;
        front.labels.shrink_to_fit();
        Some((front, tried))
    };
    let mut keep = |at: usize, (front, tried): (Front, u64)| {
        sum += tried;
        if !front.labels.is_empty() {
            fronts.push((at, front));
        }
    };
    if before + (count / PLACES_A_TRY) as u64 > MUCH {
        let each = (count / (8 * rayon::current_num_threads())).max(1);
        let all: Option<Vec<(Front, u64)>> = (0..count).into_par_iter().with_max_len(each).map(&find).collect();
        all?.into_iter().enumerate().for_each(|(at, found)| keep(at, found));
    } else {
        for at in 0..count {
            keep(at, find(at)?);
        }
    }
    Some((fronts, sum))
}

/// The shortest whole pipeline.
fn traced(begins: &[Fronts], places: &Places, end: usize) -> Option<ExactPlan> {
    let mut best: Option<(usize, Label)> = None;
    for (at, front) in begins.first()? {
        for label in &front.labels {
            if best.is_none_or(|(_, known)| label.z < known.z) {
                best = Some((*at, *label));
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
        let known = begins[to].binary_search_by_key(&next, |&(at, _)| at).ok()?;
        label = begins[to][known].1.labels[label.next_label as usize];
        (place, from) = (next, to);
    }
}
