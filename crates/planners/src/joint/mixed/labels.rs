//! Best stages for one data degree and micro-batch, by dynamic programming from the last stage to the first.
//!
//! A state is the first layer placed so far, the devices used of each kind, and the type of the first stage placed. Its
//! labels are Pareto-optimal in four costs: slowest stage, sum over the stages, slowest reduction, and the first stage
//! itself, whose gradients go to a type that is not known yet. A label whose completion cannot be faster than the best plan
//! known is dropped. `O(states · labels · types · layers)`.

use rustc_hash::FxHashMap;

use plantui_core::family::mixed::iteration::{KindPipeline, KindStage};

use super::case::{Case, Rest};

pub(super) use plantui_core::workload::mixed::MOST_KINDS;

/// Labels of each number of stages in the pass that finds a first plan.
const BEAM: usize = 100;

/// No label: the end of the pipeline.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Label {
    /// Slowest stage but the first one placed, seconds.
    slowest_s: f64,
    /// Compute and transfers of all stages, seconds.
    through_s: f64,
    /// Slowest reduction, seconds.
    reduction_s: f64,
    /// Compute and transfers of the first stage, seconds; its gradients go to the nearest type.
    open_s: f64,
    /// Lower bound on the iterations that it leads to, seconds.
    bound_s: f64,
    /// First layer, and type of the first stage.
    first: u32,
    own: u32,
    /// Label of the stages after it.
    later: u32,
}

impl Label {
    fn dominates(&self, other: &Label) -> bool {
        self.slowest_s <= other.slowest_s
            && self.through_s <= other.through_s
            && self.reduction_s <= other.reduction_s
            && self.open_s <= other.open_s
    }
}

/// Units (tensor degrees of stages) used of each kind.
type Used = [u32; MOST_KINDS];

/// First layer, units used, and type of the first stage.
type State = (u32, Used, u32);

/// Result of a case.
#[derive(Debug, Default)]
pub(super) struct CaseResult {
    /// Fastest plan, with its iteration time in seconds, if it is faster than the one known.
    pub(super) best: Option<(f64, KindPipeline)>,
    /// Lower bound on the plans of the case that were not costed exactly, seconds; infinite if there are none below the
    /// best.
    pub(super) bound_s: f64,
    /// True if the search was stopped.
    pub(super) stopped: bool,
}

/// Search in one case.
pub(super) struct Labels<'a> {
    case: &'a Case<'a>,
    batch: u32,
    /// Number of stages, if it is given.
    stages: Option<usize>,
    /// All labels, for the way back.
    arena: Vec<Label>,
    /// Fastest iteration known, of any case, seconds.
    best_s: f64,
}

impl<'a> Labels<'a> {
    /// Search for plans faster than `best_s`.
    pub(super) fn new(case: &'a Case<'a>, batch: u32, stages: Option<usize>, best_s: f64) -> Self {
        Labels { case, batch, stages, arena: vec![], best_s }
    }

    /// Searches with the best labels of each number of stages alone: a first plan, and no bound.
    pub(super) fn first(self, stopped: &dyn Fn() -> bool) -> CaseResult {
        self.pass(Some(BEAM), stopped)
    }

    /// Searches. `stopped` is asked now and then.
    pub(super) fn search(self, stopped: &dyn Fn() -> bool) -> CaseResult {
        self.pass(None, stopped)
    }

    fn pass(mut self, beam: Option<usize>, stopped: &dyn Fn() -> bool) -> CaseResult {
        let layers = self.case.layers();
        let mut result = CaseResult { bound_s: f64::INFINITY, ..CaseResult::default() };
        let start = Label {
            slowest_s: 0.0,
            through_s: 0.0,
            reduction_s: 0.0,
            open_s: 0.0,
            bound_s: 0.0,
            first: layers as u32,
            own: 0,
            later: NONE,
        };
        let mut now: Vec<(State, Vec<Label>)> = vec![((layers as u32, [0; MOST_KINDS], NONE), vec![start])];
        for placed in 0..self.stages.unwrap_or(layers).min(layers) {
            if stopped() {
                result.stopped = true;
                break;
            }
            let mut next: FxHashMap<State, Vec<Label>> = FxHashMap::default();
            let mut complete: Vec<(f64, u32)> = vec![];
            for (state, labels) in now {
                let from = self.arena.len() as u32;
                self.arena.extend(&labels);
                self.extend(placed, state, from, &labels, &mut next, &mut complete);
            }
            complete.sort_by(|a, b| a.0.total_cmp(&b.0));
            for &(bound_s, label) in &complete {
                if bound_s >= self.best_s {
                    break;
                }
                result.bound_s = result.bound_s.min(bound_s);
                let pipeline = self.pipeline(label);
                let Some(costs) = pipeline.costs(self.case.profile) else { continue };
                let seconds = pipeline.iteration_s(self.case.profile, &costs);
                if seconds < self.best_s {
                    self.best_s = seconds;
                    result.best = Some((seconds, pipeline));
                }
            }
            if next.is_empty() {
                break;
            }
            // In an order of their own, so that equal costs give the same plan everywhere.
            now = next.into_iter().collect();
            now.sort_unstable_by_key(|(state, _)| *state);
            if let Some(most) = beam {
                keep_best(&mut now, most);
            }
        }
        result
    }

    /// Extends the labels of a state by a stage before them.
    fn extend(
        &mut self,
        placed: usize,
        (end, used, later): State,
        from: u32,
        labels: &[Label],
        next: &mut FxHashMap<State, Vec<Label>>,
        complete: &mut Vec<(f64, u32)>,
    ) {
        let case = self.case;
        let later = (placed > 0).then_some(later as usize);
        let end = end as usize;
        for (own, stage) in case.types.iter().enumerate() {
            let mut used = used;
            used[stage.kind] += stage.tensor;
            let Some(left) = self.left(&used) else { continue };
            for first in (0..end).rev().take_while(|&first| stage.fits(first, end, placed + 1)) {
                let rest = case.rest(placed + 1, first);
                if rest == Rest::NEVER || !case.suits(own, first, end, placed + 1) {
                    continue;
                }
                let open_s =
                    stage.compute_s(first, end) + case.sends_s(own, first, end, placed, later).iter().sum::<f64>();
                let reduction_s = stage.reduction_s(first, end);
                let compute_left_s = case.compute_left_s(first, &left);
                for (number, label) in labels.iter().enumerate() {
                    // The stage after this one now knows where its gradients go.
                    let more_s = later.map_or(0.0, |later| {
                        let [_, gradients] = case.factors(end, placed - 1);
                        let known = &case.types[later];
                        gradients * (known.send_s(end, Some(own)) - known.send_s(end, None))
                    });
                    let longer = Label {
                        slowest_s: label.slowest_s.max(label.open_s + more_s),
                        through_s: label.through_s + more_s + open_s,
                        reduction_s: label.reduction_s.max(reduction_s),
                        open_s,
                        bound_s: 0.0,
                        first: first as u32,
                        own: own as u32,
                        later: from + number as u32,
                    };
                    let (through_s, reduction_s) =
                        (longer.through_s + rest.through_s, longer.reduction_s.max(rest.reduction_s));
                    let slowest_s = longer.slowest_s.max(open_s).max(rest.slowest_s);
                    let priced_s = case.priced_s(compute_left_s, longer.through_s, reduction_s);
                    let bound_s = case.iteration_s(slowest_s, through_s, reduction_s).max(priced_s);
                    if bound_s >= self.best_s {
                        continue;
                    }
                    if first == 0 && self.stages.is_some_and(|stages| stages != placed + 1) {
                        continue;
                    }
                    if first == 0 {
                        self.arena.push(longer);
                        complete.push((bound_s, self.arena.len() as u32 - 1));
                        continue;
                    }
                    let longer = Label { bound_s, ..longer };
                    insert(next.entry((first as u32, used, own as u32)).or_default(), longer);
                }
            }
        }
    }

    /// Devices left of each kind; `None` if more are used than there are, or than a plan may use.
    fn left(&self, used: &Used) -> Option<Vec<u32>> {
        let all = used.iter().fold(0u32, |sum, &units| sum.saturating_add(units.saturating_mul(self.case.data)));
        if all > self.case.devices {
            return None;
        }
        let kinds = self.case.profile.kinds.iter().zip(used);
        kinds.map(|(kind, &units)| kind.count.checked_sub(units.saturating_mul(self.case.data))).collect()
    }

    /// Pipeline that begins with a label.
    fn pipeline(&self, label: u32) -> KindPipeline {
        let mut stages = vec![];
        let mut at = label;
        loop {
            let Label { first, own, later, .. } = self.arena[at as usize];
            if later == NONE {
                break;
            }
            let (stage, end) = (&self.case.types[own as usize], self.arena[later as usize].first);
            stages.push(KindStage {
                layers: first as usize..end as usize,
                kind: stage.kind,
                tensor: stage.tensor,
                recompute: stage.recompute,
            });
            at = later;
        }
        KindPipeline { stages, data: self.case.data, micro_batch: self.case.micro_batch, batch: self.batch }
    }
}

/// Keeps the labels with the least bounds.
fn keep_best(states: &mut Vec<(State, Vec<Label>)>, most: usize) {
    let mut bounds: Vec<f64> = states.iter().flat_map(|(_, labels)| labels).map(|label| label.bound_s).collect();
    if bounds.len() <= most {
        return;
    }
    let (_, &mut last, _) = bounds.select_nth_unstable_by(most, f64::total_cmp);
    states.iter_mut().for_each(|(_, labels)| labels.retain(|label| label.bound_s < last));
    states.retain(|(_, labels)| !labels.is_empty());
}

/// Adds a label to those of a state unless one dominates it, and removes those that it dominates.
fn insert(labels: &mut Vec<Label>, label: Label) {
    if labels.iter().any(|known| known.dominates(&label)) {
        return;
    }
    labels.retain(|known| !label.dominates(known));
    labels.push(label);
}
