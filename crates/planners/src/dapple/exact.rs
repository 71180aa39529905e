//! Pipeline with the least synchronous length, over all cuts, replica counts and placements.
//!
//! Stages are added from the network's end to its start. A stage lies between two positions (see [`Costs`]), of which
//! the later one contains the earlier one. Links count as stages. With pivot stage `Q`, a suffix of the pipeline is
//! summarised by
//!
//! ```text
//! X = max over Q of    sum of F up to Q + (M − 1)(F_Q + B_Q) + sum of B up to Q        its length without all-reduces
//! Z = max over Q, s of the same with the all-reduce of s in place of the drain         its length (see `family::layers::check`)
//! V = max over s of    AR_s − sum of B up to s
//! ```
//!
//! A stage `p` in front changes them to
//!
//! ```text
//! X' = max(X + F_p + B_p, M (F_p + B_p))
//! Z' = max(Z + F_p, X' + AR_p, F_p + (M − 1)(F_p + B_p) + V − B_p)
//! V' = max(AR_p, V) − B_p
//! ```
//!
//! All three grow with X, Z and V. So for each position and place only Pareto-optimal suffixes (labels) are kept. The
//! number of stages is a fourth criterion if memory is tight, because it determines what is in flight in earlier
//! stages. Only labels with the same number of stages are compared if the user prescribes that number, or if it decides
//! which stages recompute (V' falls as B_p grows). This multiplies the number of labels.
//!
//! Pruning:
//!
//! * A suffix is dropped if its length is not below the incumbent.
//! * A stage is dropped if it, the stages before it or the stages behind it compute too long for the incumbent on their
//!   devices. Stage ends are sorted by compute, so the first one that is too far ends the loop.
//! * Most positions and places have no useful suffix; only the others are visited.
//!
//! Time `O(positions · places · (positions + next places) · labels²)`, memory `O(positions · places · labels)`, both in
//! the worst case.

use std::ops::Range;

use super::{
    costs::{Costs, Recompute},
    places::{Place, Places},
};
use plantui_core::search::Search;

/// Summary of a suffix.
#[derive(Debug, Clone, Copy)]
struct Label {
    x: f64,
    z: f64,
    v: f64,
    /// Number of stages in the suffix.
    stages: u32,
    /// Place of its first stage, and position where that stage ends.
    place: u32,
    end: u32,
    /// Suffix behind the first stage (or behind the link, if the suffix begins with a link): its index among the
    /// suffixes that start at that place and position. Unused after the last stage.
    next: u32,
}

/// The empty suffix.
const NOTHING: Label =
    Label { x: f64::NEG_INFINITY, z: f64::NEG_INFINITY, v: f64::NEG_INFINITY, stages: 0, place: 0, end: 0, next: 0 };

impl Label {
    /// Returns the suffix that starts with this stage or link and continues with `self`.
    fn behind(&self, microbatches: f64, forward: f64, backward: f64, all_reduce: f64) -> Label {
        let both = forward + backward;
        let x = (self.x + both).max(microbatches * both);
        let pivot = forward + (microbatches - 1.0) * both;
        let z = (self.z + forward).max(x + all_reduce).max(pivot + self.v - backward);
        let v = self.v.max(all_reduce) - backward;
        Label { x, z, v, ..*self }
    }

    /// True if this label is as good as `other` in every criterion. Numbers of stages from `distinct_stages` on count
    /// as equal.
    fn beats(&self, other: &Label, distinct_stages: u32) -> bool {
        self.stages.min(distinct_stages) == other.stages.min(distinct_stages)
            && self.x <= other.x
            && self.z <= other.z
            && self.v <= other.v
    }
}

/// Pareto front: labels that do not dominate each other.
#[derive(Debug, Clone, Default)]
struct Front {
    labels: Vec<Label>,
}

impl Front {
    /// Adds a label unless it is dominated. Keeps at most `most` labels, the shortest ones.
    fn add(&mut self, label: Label, distinct_stages: u32, most: usize) {
        if self.labels.iter().any(|known| known.beats(&label, distinct_stages)) {
            return;
        }
        self.labels.retain(|known| !label.beats(known, distinct_stages));
        self.labels.push(label);
        if self.labels.len() > most
            && let Some(worst) =
                (0..self.labels.len()).reduce(|a, b| if self.labels[b].z > self.labels[a].z { b } else { a })
        {
            self.labels.swap_remove(worst);
        }
    }
}

/// Several fronts, each with a number: a place, counted within its part, or the position where a stage ends.
#[derive(Debug, Clone, Default)]
struct Fronts {
    /// Number of each front and range of its labels.
    of: Vec<(usize, Range<usize>)>,
    labels: Vec<Label>,
}

impl Fronts {
    /// Inserts a front at index `at` unless it is empty.
    fn insert(&mut self, at: usize, of: usize, front: &mut Front) {
        if !front.labels.is_empty() {
            let start = self.labels.len();
            self.labels.append(&mut front.labels);
            self.of.insert(at, (of, start..self.labels.len()));
        }
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &[Label])> {
        self.of.iter().map(|(of, own)| (*of, &self.labels[own.clone()]))
    }
}

/// A stage of the resulting plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundStage {
    /// Position where it begins.
    pub(super) from: usize,
    /// Position where it ends.
    pub(super) to: usize,
    /// Index of its place.
    pub(super) place: usize,
}

/// Resulting plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExactPlan {
    /// Iteration time, seconds.
    pub(super) length_s: f64,
    /// Stages in pipeline order.
    pub(super) stages: Vec<FoundStage>,
}

/// Search parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Labels kept per suffix; `usize::MAX` proves the optimum.
    pub(super) labels: usize,
    /// Only plans shorter than this are searched, seconds.
    pub(super) below_s: f64,
    /// Recomputation policy.
    pub(super) recompute: Recompute,
    /// Required number of stages.
    pub(super) stages: Option<u32>,
}

impl Effort {
    /// True if a suffix with this many stages may belong to a plan. `whole`: the suffix is the whole plan.
    fn allows(&self, stages: u32, whole: bool) -> bool {
        self.stages.is_none_or(|asked| if whole { stages == asked } else { stages < asked })
    }
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    /// Best plan below the bound, if any, and the number of stage ends and labels tried.
    Done(Option<ExactPlan>, u64),
    /// Cancelled.
    Cancelled,
}

/// Runs the search.
pub(super) fn search(costs: &Costs, places: &Places, devices: u32, effort: &Effort, search: &Search) -> Ended {
    let end = costs.end();
    let distinct_stages = match (effort.stages, effort.recompute) {
        // With this many stages behind it, a stage has all microbatches in flight.
        (None, Recompute::Auto) if effort.labels == usize::MAX => costs.microbatches / 2,
        _ => u32::MAX,
    };
    // Rounding must not admit a plan that equals the incumbent in length.
    let below = effort.below_s * (1.0 - 1e-12);
    let look = |from: usize| {
        let any = effort.stages.is_none() && effort.recompute != Recompute::Always;
        let distinct_stages = if any && costs.memory_is_plenty(from, devices) { 0 } else { distinct_stages };
        Look { costs, places, devices, effort, distinct_stages, below, search }
    };
    // For each position and beginning: suffixes that start there with a stage, by its place. Empty ones are left out.
    let mut begins: Vec<Vec<(usize, Fronts)>> = vec![vec![]; end + 1];
    let mut parts: Vec<Part> = places.beginnings.iter().map(|own| Part::new(places, own.clone(), end)).collect();
    let mut behind = Begun { at: end, fronts: vec![], numbers: vec![None; parts.len()] };
    let (mut scratch, mut all) = (Front::default(), 0);
    for from in (0..end).rev() {
        let (here, later) = (look(from), (from + 1 < end).then(|| look(from + 1)));
        let mut begun = vec![];
        for (at, part) in parts.iter_mut().enumerate() {
            let Some((fronts, tried)) = part.go_on(from, &here, later.as_ref(), &behind, &mut scratch) else {
                return Ended::Cancelled;
            };
            all += tried;
            if !fronts.of.is_empty() {
                begun.push((at, fronts));
            }
        }
        begins[from + 1] = behind.replace(from, begun);
        search.report_fraction(1.0 - from as f64 / end as f64);
    }
    begins[0] = behind.fronts;
    Ended::Done(traced(&begins, places, end), all)
}

/// Places with the same devices occupied before them.
struct Part {
    places: Range<usize>,
    /// For each place, the beginning of the next stage.
    next: Vec<usize>,
    /// For each place, the positions where a stage may end, sorted by compute, with the suffixes behind it and the link
    /// to them.
    ends: Vec<Fronts>,
}

impl Part {
    fn new(all: &Places, places: Range<usize>, end: usize) -> Self {
        let nothing = Fronts { of: vec![(end, 0..1)], labels: vec![NOTHING] };
        let next = all.all[places.clone()].iter().map(|place| place.next).collect();
        Part { next, ends: vec![nothing; places.len()], places }
    }

    /// Adds the position behind `from` as an end of stages, unless it is the end of the network. Returns the suffixes
    /// that begin at `from`, and the number of ends and labels tried; `None` if cancelled. `scratch` is an empty buffer.
    fn go_on(
        &mut self,
        from: usize,
        here: &Look<'_>,
        later: Option<&Look<'_>>,
        behind: &Begun,
        scratch: &mut Front,
    ) -> Option<(Fronts, u64)> {
        if let Some(later) = later {
            for (at, &next) in self.next.iter().enumerate() {
                let Some(number) = behind.numbers[next] else { continue };
                let (place, ends) = (&here.places.all[self.places.start + at], &mut self.ends[at]);
                later.arrive(behind.at, &behind.fronts[number as usize].1, place, ends, scratch)?;
            }
        }
        here.begin(from, self, scratch)
    }
}

/// Suffixes that begin at one position.
struct Begun {
    at: usize,
    /// Suffixes by beginning, ascending; empty ones are left out.
    fronts: Vec<(usize, Fronts)>,
    /// Index in `fronts` for each beginning.
    numbers: Vec<Option<u32>>,
}

impl Begun {
    /// Replaces the suffixes with those of another position. Returns the old ones.
    fn replace(&mut self, at: usize, fronts: Vec<(usize, Fronts)>) -> Vec<(usize, Fronts)> {
        self.at = at;
        self.fronts.iter().for_each(|(beginning, _)| self.numbers[*beginning] = None);
        (0..).zip(&fronts).for_each(|(number, (beginning, _))| self.numbers[*beginning] = Some(number));
        std::mem::replace(&mut self.fronts, fronts)
    }
}

/// Inputs of the search at one position.
struct Look<'a> {
    costs: &'a Costs,
    places: &'a Places,
    devices: u32,
    effort: &'a Effort,
    /// Suffixes with fewer stages than this are compared only with suffixes of the same number of stages; 0 if the
    /// number has no effect on earlier stages. More stages after a stage mean more microbatches in flight: the stage
    /// may exceed its memory, or recompute. Recomputation may shorten the iteration, since a longer backward pass
    /// overlaps more of the later all-reduces.
    distinct_stages: u32,
    /// Length of the incumbent, seconds: plans of this length or longer are dropped.
    below: f64,
    search: &'a Search,
}

impl Look<'_> {
    /// Returns the suffixes that begin at `from` with a stage on one of the part's places, by place, the shortest first.
    /// Also returns the number of ends and labels tried. `None` if cancelled.
    fn begin(&self, from: usize, part: &Part, front: &mut Front) -> Option<(Fronts, u64)> {
        let (mut fronts, mut tried) = (Fronts::default(), 0);
        if self.search.cancelled() {
            return None;
        }
        let Some(occupied) = self.places.all[part.places.clone()].first().map(|place| place.occupied_before) else {
            return Some((fronts, tried));
        };
        if (occupied == 0) != (from == 0) || !self.may_come_before(from, occupied) {
            return Some((fronts, tried));
        }
        for (at, ends) in part.ends.iter().enumerate() {
            tried += self.begin_at(from, part.places.start + at, ends, front)?;
            front.labels.sort_by(|a, b| a.z.total_cmp(&b.z));
            fronts.insert(fronts.of.len(), at, front);
        }
        fronts.labels.shrink_to_fit();
        Some((fronts, tried))
    }

    /// True if the stages before a position can be short enough on `devices` devices in total.
    fn may_come_before(&self, from: usize, devices: u32) -> bool {
        self.costs.compute_s(0, from) / f64::from(devices.max(1)) < self.below
    }

    /// Collects the suffixes that begin at `from` with a stage on one place. Returns the number of ends and labels
    /// tried; `None` if cancelled.
    fn begin_at(&self, from: usize, at: usize, ends: &Fronts, front: &mut Front) -> Option<u64> {
        let Look { costs, devices, effort, below, .. } = *self;
        let (place, end, m) = (&self.places.all[at], costs.end(), f64::from(costs.microbatches));
        let (left, later) = (devices - place.occupied_after, costs.later(from));
        let mut tried = 0;
        for (to, behind) in ends.iter().filter(|&(to, _)| later.contains(to)) {
            tried += 1;
            if costs.compute_s(from, to) / f64::from(place.count) >= below {
                break;
            }
            let all_reduce = place.all_reduce * costs.parameters(from, to);
            if to < end && (left == 0 || costs.compute_s(to, end) / f64::from(left) >= below) {
                continue;
            }
            if self.search.cancelled() {
                return None;
            }
            for rest in behind {
                tried += 1;
                if !effort.allows(rest.stages + 1, from == 0) {
                    continue;
                }
                let Some(time) = costs.stage(from, to, place.count, rest.stages as usize, effort.recompute) else {
                    continue;
                };
                let label = rest.behind(m, time.forward_s, time.backward_s, all_reduce);
                if label.z < below {
                    let label = Label { stages: rest.stages + 1, place: at as u32, end: to as u32, ..label };
                    front.add(label, self.distinct_stages, effort.labels);
                }
            }
        }
        Some(tried)
    }

    /// Adds position `from`, with the suffixes that begin there, to the ends of stages on a place; `None` if cancelled.
    /// `front` is empty before and after.
    fn arrive(&self, from: usize, begun: &Fronts, place: &Place, ends: &mut Fronts, front: &mut Front) -> Option<()> {
        let Look { costs, effort, below, .. } = *self;
        if self.search.cancelled() {
            return None;
        }
        for (at, own) in &begun.of {
            let seconds = costs.cut_bytes[from] * place.per_byte[*at];
            for next in own.clone() {
                let label = &begun.labels[next];
                // Labels are sorted by length.
                if label.z + seconds >= below {
                    break;
                }
                let label = label.behind(f64::from(costs.microbatches), seconds, seconds, 0.0);
                if label.z < below {
                    front.add(Label { next: next as u32, ..label }, self.distinct_stages, effort.labels);
                }
            }
        }
        let rank = ends.of.partition_point(|&(to, _)| costs.rank(to) < costs.rank(from));
        ends.insert(rank, from, front);
        Some(())
    }
}

/// Traces back the shortest whole pipeline.
fn traced(begins: &[Vec<(usize, Fronts)>], places: &Places, end: usize) -> Option<ExactPlan> {
    let whole = begins.first()?.iter().flat_map(|(_, begun)| &begun.labels);
    let mut label = whole.reduce(|best, other| if other.z < best.z { other } else { best })?;
    let length_s = label.z;
    let mut stages = vec![];
    let mut from = 0;
    loop {
        let (place, to) = (label.place as usize, label.end as usize);
        stages.push(FoundStage { from, to, place });
        if to == end {
            return Some(ExactPlan { length_s, stages });
        }
        let begun = begins[to].binary_search_by_key(&places.all[place].next, |&(beginning, _)| beginning).ok()?;
        label = &begins[to][begun].1.labels[label.next as usize];
        from = to;
    }
}
