//! All plans that the published planner considers, in its order.

use super::{
    length::{self, Stage},
    model::HpgoModel,
    placement::{self, Devices},
    straight::{self, NoTable},
};
use plantui_core::search::Search;

/// Family of plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The whole network on every device, with this many devices per pipeline.
    PseudoDataParallel(u32),
    /// This many stages of one device each.
    Straight(u32),
    /// Two stages.
    Bipartition,
}

/// A plan and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Family of the plan.
    pub kind: Kind,
    /// Stages in pipeline order.
    pub stages: Vec<Stage>,
    /// Number of parallel pipelines.
    pub pipelines: u32,
    /// True if cuts count in both directions.
    pub two_way: bool,
    /// Analytic speed-up.
    pub speedup: f64,
}

/// All plans of a problem, and reasons for missing ones.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// Plans in the published order.
    pub plans: Vec<Candidate>,
    /// Cases in which the published program crashes, in words.
    pub missing: Vec<String>,
}

impl Candidates {
    /// Returns the best plan; among equal ones the last.
    pub fn best(&self) -> Option<&Candidate> {
        self.plans.iter().reduce(|best, plan| if plan.speedup >= best.speedup { plan } else { best })
    }

    /// Returns the best plan with more than one stage.
    pub fn best_of_many_stages(&self) -> Option<&Candidate> {
        let many = self.plans.iter().filter(|plan| plan.stages.len() > 1);
        many.reduce(|best, plan| if plan.speedup >= best.speedup { plan } else { best })
    }
}

/// Bottleneck below which the published program stops, seconds.
const LEAST_BLOCK: f64 = 1e-3;

/// Computes all plans.
pub fn candidates(model: &HpgoModel<'_>, search: &Search) -> Candidates {
    let n = model.devices;
    let mut all = Candidates::default();
    let add = |all: &mut Candidates, candidate: Candidate| {
        if fits(model, &candidate) {
            all.plans.push(candidate);
        }
    };
    for groups in 2..=n {
        add(&mut all, pseudo_data_parallel(model, groups));
    }
    let counts = if n.is_multiple_of(2) && n > 2 { vec![2, n] } else { vec![n] };
    for count in counts {
        if (count as usize) > model.states() {
            all.missing.push(format!(
                "no straight pipeline of {count} stages: the network has only {} states (the published program \
                crashes)",
                model.states()
            ));
            continue;
        }
        let straight = match straight::plan(model, count, search) {
            Ok(straight) => straight,
            Err(NoTable::Cancelled) => None,
            Err(NoTable::TooLarge) => {
                all.missing.push(format!(
                    "no straight pipeline of {count} stages: its table exceeds the memory limit of the search"
                ));
                None
            }
        };
        if let Some(straight) = straight {
            if straight.block_s < LEAST_BLOCK && model.faults.memory_unchecked {
                all.missing.push(format!(
                    "no straight pipeline of {count} stages: its slowest stage takes under a millisecond (the \
                    published program crashes)"
                ));
                continue;
            }
            let straight::Straight { stages, pipelines, block_s } = straight;
            let speedup = length::speedup(model, &stages, pipelines, block_s);
            add(&mut all, Candidate { kind: Kind::Straight(count), stages, pipelines, two_way: true, speedup });
        }
    }
    if let Some(best) = bipartition(model, search) {
        all.plans.push(best);
    }
    all
}

/// Returns the whole network on groups of devices, with as many groups as the devices allow.
fn pseudo_data_parallel(model: &HpgoModel<'_>, groups: u32) -> Candidate {
    let pipelines = model.devices / groups;
    let used = groups * pipelines;
    let stages = vec![model.stage(0, model.states() - 1, groups, Devices::range(0..used))];
    let block_s = model.total_s() / f64::from(groups) / f64::from(pipelines);
    let speedup = length::speedup(model, &stages, pipelines, block_s);
    Candidate { kind: Kind::PseudoDataParallel(groups), stages, pipelines, two_way: true, speedup }
}

/// Returns the best plan of two stages over all devices; among equal ones the last.
fn bipartition(model: &HpgoModel<'_>, search: &Search) -> Option<Candidate> {
    let (last, n) = (model.states() - 1, model.devices);
    let two_way = !model.faults.one_way_cut;
    let directions = if two_way { 2.0 } else { 1.0 };
    // Placements do not depend on the cut.
    let mut pairs = vec![];
    for groups in 1..n {
        for first in placement::next(&model.machines, Devices::default(), groups) {
            for second in placement::next(&model.machines, first, n - groups) {
                let stages = [model.stage(0, 0, groups, first), model.stage(0, last, n - groups, second)];
                pairs.push((stages, model.per_byte(first, second)));
            }
        }
    }
    let best_of = |l: usize| {
        let mut best: Option<Candidate> = None;
        if search.cancelled() || !(model.faults.any_cut || model.can_cut_after(l)) {
            return best;
        }
        let (head, tail) = (model.compute_s(0, l), model.compute_s(l + 1, last));
        let bytes = directions * model.output_bytes(l);
        for ([first, second], per_byte) in &pairs {
            let stages = [Stage { to: l, ..*first }, Stage { from: l + 1, ..*second }];
            let (computing, computed) = (head / f64::from(first.groups), tail / f64::from(second.groups));
            let block_s = computing.max(computed).max(bytes * per_byte);
            let speedup = length::speedup_over(model, &stages, &[*per_byte], 1, block_s);
            if best.as_ref().is_some_and(|best| speedup < best.speedup) {
                continue;
            }
            let stages = stages.to_vec();
            let candidate = Candidate { kind: Kind::Bipartition, stages, pipelines: 1, two_way, speedup };
            if fits(model, &candidate) {
                best = Some(candidate);
            }
        }
        best
    };
    let later = |best: Option<Candidate>, other: Option<Candidate>| match (best, other) {
        (Some(best), Some(other)) if other.speedup < best.speedup => Some(best),
        (best, other) => other.or(best),
    };
    let best = (0..last).map(best_of).fold(None, later);
    best.filter(|_| !search.cancelled())
}

/// True if every stage fits into its devices' memory, or if memory is not checked.
fn fits(model: &HpgoModel<'_>, candidate: &Candidate) -> bool {
    model.faults.memory_unchecked || candidate.memory_bytes(model).iter().all(|&bytes| bytes <= model.memory_bytes)
}

impl Candidate {
    /// Number of microbatches of each pipeline.
    pub fn microbatches(&self, model: &HpgoModel<'_>) -> u32 {
        model.speedup.microbatches(model.batch, self.pipelines)
    }

    /// Bytes on each device of every stage: weights with optimizer state, plus its part of the activations of every
    /// microbatch in flight.
    pub fn memory_bytes(&self, model: &HpgoModel<'_>) -> Vec<f64> {
        let microbatches = self.microbatches(model).max(1);
        let samples = f64::from(model.batch) / f64::from(self.pipelines) / f64::from(microbatches);
        let stage = |(i, stage): (usize, &Stage)| {
            let in_flight = (2 * (self.stages.len() - i) as u32 - 1).min(microbatches);
            let weights = model.speedup.optimizer_memory_scaling * model.parameter_bytes(stage.from, stage.to);
            let share = model.activation_share(stage.from, stage.to).max(0.0) * model.activation_per_sample();
            weights + share * samples / f64::from(stage.groups) * f64::from(in_flight)
        };
        self.stages.iter().enumerate().map(stage).collect()
    }
}
