//! Best stages for one data degree and micro-batch, by dynamic programming from the last stage to the first.
//!
//! A state is the first layer placed so far, the devices used of each kind, and the type of the first stage placed. Its
//! labels are Pareto-optimal in five costs: slowest stage, sum over the stages, slowest reduction, price of the traffic,
//! and the first stage itself, whose gradients go to a type that is not known yet. A label whose completion cannot be
//! better than the best plan known is dropped. `O(states · labels · types · layers)`.

use rustc_hash::FxHashMap;

use plantui_core::family::mixed::iteration::{KindPipeline, KindStage};

use super::{
    MixedSpace, SLACK,
    case::{Case, Left, Rest},
};

pub(super) use plantui_core::workload::mixed::MOST_KINDS;

/// Labels of each number of stages in the pass that finds a first plan. Without the pass, llama-3-70b on 64 + 128 devices
/// takes 2.5 times the CPU time, and Sailor's 32 + 96 devices 9 times.
const BEAM: usize = 100;

/// No label: the end of the pipeline.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Label {
    /// Slowest stage but the first one placed, and slowest link, seconds.
    slowest_s: f64,
    /// Compute and transfers of all stages, seconds.
    through_s: f64,
    /// Slowest reduction, seconds.
    reduction_s: f64,
    /// Compute and transfers of the first stage, seconds; its gradients go to the nearest type.
    open_s: f64,
    /// Price of the traffic between the stages.
    traffic: f64,
    /// Lower bound on the plans that it leads to.
    bound: f64,
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
            && self.traffic <= other.traffic
    }
}

/// Units (tensor degrees of stages) used of each kind.
type Used = [u32; MOST_KINDS];

/// First layer, units used, and type of the first stage.
type State = (u32, Used, u32);

/// Result of a case.
#[derive(Debug, Default)]
pub(super) struct CaseResult {
    /// Best plan, with its value, if it is better than the one known.
    pub(super) best: Option<(f64, KindPipeline)>,
    /// Lower bound on the plans of the case that were not costed exactly; infinite if there are none below the best.
    pub(super) bound: f64,
    /// True if the search was stopped.
    pub(super) stopped: bool,
}

/// Search in one case.
pub(super) struct Labels<'a> {
    case: &'a Case<'a>,
    batch: u32,
    space: &'a MixedSpace,
    /// All labels, for the way back.
    arena: Vec<Label>,
    /// Best value known, of any case.
    best: f64,
}

impl<'a> Labels<'a> {
    /// Search for plans of a space with a lower value than `best`.
    pub(super) fn new(case: &'a Case<'a>, batch: u32, space: &'a MixedSpace, best: f64) -> Self {
        Labels { case, batch, space, arena: vec![], best }
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
        let mut result = CaseResult { bound: f64::INFINITY, ..CaseResult::default() };
        let start = Label {
            slowest_s: 0.0,
            through_s: 0.0,
            reduction_s: 0.0,
            open_s: 0.0,
            traffic: 0.0,
            bound: 0.0,
            first: layers as u32,
            own: 0,
            later: NONE,
        };
        let mut now: Vec<(State, Vec<Label>)> = vec![((layers as u32, [0; MOST_KINDS], NONE), vec![start])];
        for placed in 0..self.space.stages.unwrap_or(layers).min(layers) {
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
            for &(bound, label) in &complete {
                if bound >= self.enough() {
                    break;
                }
                result.bound = result.bound.min(bound);
                let pipeline = self.pipeline(label);
                if let Some(value) = self.value(&pipeline).filter(|value| *value < self.best) {
                    self.best = value;
                    result.best = Some((value, pipeline));
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
            let per_hour = self.per_hour(&used);
            let devices = u64::from(case.data) * used.iter().map(|&units| u64::from(units)).sum::<u64>();
            let Some(left) = self.left(&used, per_hour) else { continue };
            for first in (0..end).rev().take_while(|&first| stage.fits(first, end, placed + 1)) {
                let rest = case.rest(placed + 1, first);
                if rest == Rest::NEVER || !case.suits(own, first, end, placed + 1) {
                    continue;
                }
                let sends = case.sends_s(own, first, end, placed, later);
                let open_s = stage.compute_s(first, end) + sends.iter().sum::<f64>();
                // Links between this stage and the one after it.
                let link_s = later.map_or(0.0, |later| {
                    let [_, gradients] = case.factors(end, placed - 1);
                    let back = gradients * case.types[later].send_s(case.profile.rule.sends_back(end), Some(own));
                    sends[0].max(back) / case.profile.exposed
                });
                let reduction_s = stage.reduction_s(first, end);
                let compute_left_s = case.compute_left_s(first, &left);
                let crossing = later.map_or(0.0, |later| case.traffic_cost(own, later, end));
                for (number, label) in labels.iter().enumerate() {
                    // The stage after this one now knows where its gradients go.
                    let more_s = later.map_or(0.0, |later| {
                        let [_, gradients] = case.factors(end, placed - 1);
                        let (known, back) = (&case.types[later], case.profile.rule.sends_back(end));
                        gradients * (known.send_s(back, Some(own)) - known.send_s(back, None))
                    });
                    let longer = Label {
                        slowest_s: label.slowest_s.max(label.open_s + more_s).max(link_s),
                        through_s: label.through_s + more_s + open_s,
                        reduction_s: label.reduction_s.max(reduction_s),
                        open_s,
                        traffic: label.traffic + crossing,
                        bound: 0.0,
                        first: first as u32,
                        own: own as u32,
                        later: from + number as u32,
                    };
                    let (through_s, reduction_s) =
                        (longer.through_s + rest.through_s, longer.reduction_s.max(rest.reduction_s));
                    let slowest_s = longer.slowest_s.max(open_s).max(rest.slowest_s);
                    let priced_s = case.priced_s(compute_left_s, longer.through_s, reduction_s, devices);
                    let bound_s = case.iteration_s(slowest_s, through_s, reduction_s, devices).max(priced_s);
                    let cost = case.cost(bound_s, per_hour, longer.traffic, first);
                    let bound = self.space.goal.of(bound_s, cost);
                    if bound >= self.enough() || !self.space.allows(bound_s, cost) {
                        continue;
                    }
                    if first == 0 && self.space.stages.is_some_and(|stages| stages != placed + 1) {
                        continue;
                    }
                    if first == 0 {
                        self.arena.push(longer);
                        complete.push((bound, self.arena.len() as u32 - 1));
                        continue;
                    }
                    let longer = Label { bound, ..longer };
                    insert(next.entry((first as u32, used, own as u32)).or_default(), longer);
                }
            }
        }
    }

    /// Devices and money left after these units, which cost `per_hour`; `None` if they are more than there are, or than a
    /// plan may use or cost.
    fn left(&self, used: &Used, per_hour: f64) -> Option<Left> {
        let most_per_hour = self.space.most_per_hour * (1.0 + SLACK);
        if per_hour > most_per_hour {
            return None;
        }
        let taken = used.map(|units| units.saturating_mul(self.case.data));
        let all = taken.iter().fold(0u32, |sum, &devices| sum.saturating_add(devices));
        let kinds = self.case.profile.kinds.iter().zip(taken);
        Some(Left {
            devices: kinds.map(|(kind, taken)| kind.count.checked_sub(taken)).collect::<Option<_>>()?,
            together: self.case.devices.checked_sub(all)?,
            per_hour: most_per_hour - per_hour,
        })
    }

    /// Value from which plans are not worth finding.
    fn enough(&self) -> f64 {
        self.best * (1.0 - self.space.gap)
    }

    /// Price of the devices used, for an hour; kinds without a price cost nothing.
    fn per_hour(&self, used: &Used) -> f64 {
        let kinds = self.case.profile.kinds.iter().zip(used);
        let priced = kinds.map(|(kind, &units)| kind.price_per_hour.unwrap_or(0.0) * f64::from(units));
        f64::from(self.case.data) * priced.sum::<f64>()
    }

    /// Value of a plan, if it keeps the limits on time and cost.
    fn value(&self, pipeline: &KindPipeline) -> Option<f64> {
        let (seconds, cost) = pipeline.time_and_cost(self.case.profile)?;
        // Kinds without a price have no limit on the cost.
        let cost = cost.unwrap_or(0.0);
        self.space.allows(seconds, cost).then(|| self.space.goal.of(seconds, cost))
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
    let mut bounds: Vec<f64> = states.iter().flat_map(|(_, labels)| labels).map(|label| label.bound).collect();
    if bounds.len() <= most {
        return;
    }
    let (_, &mut last, _) = bounds.select_nth_unstable_by(most, f64::total_cmp);
    states.iter_mut().for_each(|(_, labels)| labels.retain(|label| label.bound < last));
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
