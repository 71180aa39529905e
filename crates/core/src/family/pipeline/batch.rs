//! Iteration time, computed from the workload alone: the check of plans measured by `iteration_time`.
//!
//! Every replica of a stage computes whole microbatches, microbatch `m` on replica `m mod d`. It runs its operations in
//! the order of the schedule, each as soon as its inputs have arrived. A replica sends activations one after another
//! and gradients one after another, to the nearest stage first, at the full bandwidth, while it computes. After its
//! last backward, a stage's replicas all-reduce `4 (d − 1) / d` times their parameters. If a profile has no forward
//! time, it is a third of the node's plain time; extra time of a mode is backward. These are the simulator's defaults,
//! but the code is independent of the simulator and the planners. This file handles 1F1B; other schedules are in
//! `any_schedule.rs`.
//!
//! A plan on a topology uses its routes (`routed.rs`), operation by operation, each pair of replicas its own.
//!
//! Times are whole ticks, so that a recurring state is detected exactly and the rounds in between are skipped exactly.
//! `O(operations)` time until then, `O(stages² + edges)` memory.

use std::collections::BTreeMap;

use super::{
    any_schedule::{self, StageSeconds},
    orders::Orders,
    routed::{RouteTimes, StagePlacement},
};
use crate::{
    cluster::Limits,
    plan::{Plan, Schedule, WarmUp},
    workload::{Mode, PiperProfile, Workload, piper::VANILLA},
};

/// Maximum number of ticks for all operations in sequence.
const MOST_TICKS: f64 = (1u64 << 60) as f64;

/// Stage: ticks of a microbatch on a replica, and of the all-reduce.
#[derive(Debug, Clone, Copy, Default)]
struct StageTicks {
    forward: i64,
    backward: i64,
    reduce: i64,
}

/// Costs of a plan in seconds.
struct PlanCosts {
    /// Forward, backward, all-reduce, and the recomputation in the backward.
    stages: Vec<[f64; 4]>,
    /// Bytes of parameters on each device of a stage.
    parameters: Vec<f64>,
    /// Bytes between stages.
    bytes: BTreeMap<(usize, usize), f64>,
    between: BTreeMap<(usize, usize), f64>,
}

/// Seconds per iteration under the plan's schedule; 1F1B if it has none.
pub(super) fn seconds(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
) -> f64 {
    let mut costs = costs(workload, profile, limits, plan, stage_of);
    let mut replicas: Vec<usize> = plan.stages.iter().map(|stage| stage.data_parallel.max(1) as usize).collect();
    let mut microbatches = limits.microbatches as usize;
    if let Some(placed) = StagePlacement::of(plan) {
        for (index, stage) in costs.stages.iter_mut().enumerate() {
            // A ring moves 2 (d−1)/d of the bytes: Piper's model counts each parameter twice.
            stage[2] = placed.reduce(index, 2.0 * costs.parameters[index]);
        }
        let orders = Orders::new(plan.execution.unwrap_or_default(), &degrees(&replicas));
        let ways = |(&(from, to), &bytes): (&(usize, usize), &f64)| (from, to, placed.ways(from, to, bytes));
        let between: Vec<(usize, usize, RouteTimes)> = costs.bytes.iter().map(ways).collect();
        // Transfers that close the ring of interleaved parts are as large as on the largest boundary.
        let (last, dearest) = (costs.stages.len() - 1, costs.bytes.values().copied().fold(0.0, f64::max));
        let closing = (last > 1).then(|| placed.ways(last, 0, dearest));
        return any_schedule::seconds(&orders, &costs.stage_seconds(&replicas), (&between, closing), microbatches);
    }
    if replicas.iter().all(|count| *count == replicas[0]) {
        // Each replica communicates only with those of its number, so all do the same.
        microbatches = microbatches.div_ceil(replicas[0]);
        replicas.fill(1);
    }
    let execution = plan.execution.unwrap_or_default();
    let plain = execution.schedule == Schedule::OneForwardOneBackward;
    // The code below rounds warm-ups as published. With equal replicas nothing is rounded.
    if !plain || (execution.warm_up != WarmUp::Published && replicas.iter().any(|count| *count != 1)) {
        return costs.by_operation(&Orders::new(execution, &degrees(&replicas)), &replicas, microbatches);
    }
    let m = microbatches as f64;
    let sum = costs.stages.iter().map(|[f, b, a, _]| m * (f + b) + a).sum::<f64>()
        + costs.between.values().map(|seconds| 2.0 * m * seconds).sum::<f64>();
    if !(sum > 0.0 && sum.is_finite()) {
        return 0.0;
    }
    let per_second = 2f64.powi((MOST_TICKS / sum).log2().floor().clamp(-1000.0, 1000.0) as i32);
    let ticks = |seconds: f64| (seconds * per_second).round() as i64;
    let works =
        costs.stages.iter().map(|&[f, b, a, _]| StageTicks { forward: ticks(f), backward: ticks(b), reduce: ticks(a) });
    let mut line = ReplicaStates::new(works.collect(), &replicas, microbatches);
    for (&(from, to), &seconds) in &costs.between {
        line.out[from].push((to, ticks(seconds)));
        line.back[to].insert(0, (from, ticks(seconds)));
    }
    line.ends() as f64 / per_second
}

/// By stage of a plan on a topology: seconds of a microbatch's transfers to and from it, and of the all-reduce. `None`
/// if the plan has no topology.
pub(super) fn on_routes(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
) -> Option<Vec<[f64; 2]>> {
    let placed = StagePlacement::of(plan)?;
    let costs = costs(workload, profile, limits, plan, stage_of);
    let reduce = |(stage, parameters): (usize, &f64)| [0.0, placed.reduce(stage, 2.0 * parameters)];
    let mut stages: Vec<[f64; 2]> = costs.parameters.iter().enumerate().map(reduce).collect();
    for (&(from, to), &bytes) in &costs.bytes {
        let ways = placed.ways(from, to, bytes);
        let mean = |seconds: &[f64]| seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let both = mean(&ways.there) + mean(&ways.back);
        stages[from][0] += both;
        stages[to][0] += both;
    }
    Some(stages)
}

fn degrees(replicas: &[usize]) -> Vec<u32> {
    replicas.iter().map(|&count| u32::try_from(count).unwrap_or(u32::MAX)).collect()
}

impl PlanCosts {
    fn stage_seconds(&self, replicas: &[usize]) -> Vec<StageSeconds> {
        let stage = |(&[forward, backward, reduce, recompute], &replicas): (&[f64; 4], &usize)| StageSeconds {
            forward,
            backward,
            recompute,
            reduce,
            replicas,
        };
        self.stages.iter().zip(replicas).map(stage).collect()
    }

    fn by_operation(&self, orders: &Orders, replicas: &[usize], microbatches: usize) -> f64 {
        let ways = |(&(from, to), &seconds): (&(usize, usize), &f64)| (from, to, RouteTimes::uniform(seconds));
        let between: Vec<(usize, usize, RouteTimes)> = self.between.iter().map(ways).collect();
        any_schedule::seconds(orders, &self.stage_seconds(replicas), (&between, None), microbatches)
    }
}

fn costs(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
) -> PlanCosts {
    let bandwidth = limits.bandwidth();
    let mut chosen: Vec<Option<&Mode>> = vec![None; workload.nodes.len()];
    let (mut stages, mut all_parameters) = (vec![], vec![]);
    for stage in &plan.stages {
        let (mut forward, mut both, mut parameters, mut recompute) = (0.0, 0.0, 0.0, 0.0);
        for (&node, choice) in stage.nodes.iter().zip(&stage.choices) {
            let modes =
                profile.nodes.get(node.index()).and_then(|n| n.modes(stage.tensor_parallel)).unwrap_or_default();
            let Some(mode) = modes.iter().find(|mode| choice.is_mode(&mode.id)) else { continue };
            let forward_s = forward_s(mode, modes);
            forward += forward_s;
            recompute += (mode.time_s - plain(mode, modes).time_s).clamp(0.0, mode.time_s - forward_s);
            both += mode.time_s;
            parameters += mode.parameters;
            chosen[node.index()] = Some(mode);
        }
        let d = f64::from(stage.data_parallel.max(1));
        all_parameters.push(parameters);
        stages.push([forward, both - forward, 4.0 * (d - 1.0) / d * parameters / bandwidth, recompute]);
    }
    let (leaving, arriving) = (workload.dag.places_of_departure(), workload.dag.places_of_arrival());
    let mut bytes = BTreeMap::new();
    for (edge, &(u, v)) in workload.dag.edges().iter().enumerate() {
        let (u, v) = (u as usize, v as usize);
        let (Some(from), Some(to), Some(producer), Some(consumer)) = (stage_of[u], stage_of[v], chosen[u], chosen[v])
        else {
            continue;
        };
        if from < to {
            let (out, into) = (producer.sync_out[leaving[edge]], consumer.sync_in[arriving[edge]]);
            *bytes.entry((from, to)).or_insert(0.0) += profile.edge_bytes[edge] + out.max(into);
        }
    }
    let between = bytes.iter().map(|(&pair, bytes)| (pair, bytes / bandwidth)).collect();
    PlanCosts { stages, parameters: all_parameters, bytes, between }
}

/// Mode of a node without recomputation.
fn plain<'a>(mode: &'a Mode, modes: &'a [Mode]) -> &'a Mode {
    let named = modes.iter().find(|mode| mode.id == VANILLA);
    named.or_else(|| modes.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s))).unwrap_or(mode)
}

/// Forward part of a mode.
fn forward_s(mode: &Mode, modes: &[Mode]) -> f64 {
    let plain = plain(mode, modes);
    let told = mode.forward_s.or(plain.forward_s).map(|forward_s| forward_s.max(0.0));
    told.unwrap_or(plain.time_s / 3.0).min(mode.time_s)
}

/// State of all replicas of all stages.
struct ReplicaStates {
    works: Vec<StageTicks>,
    microbatches: usize,
    /// By stage: number of replicas of it and all later ones.
    replicas_from: Vec<usize>,
    /// By stage: destinations of activations, nearest first, and of gradients.
    out: Vec<Vec<(usize, i64)>>,
    back: Vec<Vec<(usize, i64)>>,
    /// By stage and replica: times at which its compute and its two outgoing directions become free.
    free: Vec<Vec<[i64; 3]>>,
    /// By stage: arrival of the next microbatch's activations; and of gradients, by microbatch modulo the number of all
    /// replicas.
    activation_arrivals: Vec<i64>,
    gradient_arrivals: Vec<Vec<i64>>,
}

impl ReplicaStates {
    fn new(works: Vec<StageTicks>, replicas: &[usize], microbatches: usize) -> Self {
        let count = works.len();
        let mut replicas_from = replicas.to_vec();
        (0..count - 1).rev().for_each(|s| replicas_from[s] += replicas_from[s + 1]);
        ReplicaStates {
            microbatches,
            out: vec![vec![]; count],
            back: vec![vec![]; count],
            free: replicas.iter().map(|&d| vec![[0; 3]; d]).collect(),
            activation_arrivals: vec![0; count],
            gradient_arrivals: vec![vec![0; replicas_from[0]]; count],
            replicas_from,
            works,
        }
    }

    /// End of all operations. In round `k` a stage runs backward `k − K`, with `K` its replicas and all later ones, and
    /// forward `k`, if these microbatches exist. For each replica this is its order under 1F1B, with a warm-up of the
    /// later replicas divided by its own, rounded up. All inputs of a round come from an earlier round or an earlier
    /// stage.
    fn ends(&mut self) -> i64 {
        let m = self.microbatches;
        // The state is small enough to compare only if no stage has several replicas.
        let mut look = if self.free.iter().all(|free| free.len() == 1) { 2 * self.works.len() + 2 } else { usize::MAX };
        let mut seen: Option<(usize, Vec<i64>)> = None;
        let mut k = 0;
        while k < m + self.replicas_from[0] {
            self.round(k);
            k += 1;
            if k < look || k >= m {
                continue;
            }
            let state = self.state(k);
            match &seen {
                Some((before, old)) if state[1..] == old[1..] => {
                    let (rounds, ticks) = (k - before, state[0] - old[0]);
                    let times = (m - k) / rounds;
                    self.leap(k, times * rounds, times as i64 * ticks);
                    k += times * rounds;
                    look = usize::MAX;
                }
                // A state with a period of this many rounds recurs within twice as many.
                Some((before, _)) if k < 2 * before => {}
                _ => seen = Some((k, state)),
            }
        }
        let done = |free: &Vec<[i64; 3]>| free.iter().map(|clocks| clocks[0]).max().unwrap_or(0);
        self.works.iter().zip(&self.free).map(|(work, free)| done(free) + work.reduce).max().unwrap_or(0)
    }

    fn round(&mut self, k: usize) {
        let (count, m) = (self.works.len(), self.microbatches);
        let slots = self.replicas_from[0];
        for s in 0..count {
            let replicas = self.free[s].len();
            if let Some(own) = k.checked_sub(self.replicas_from[s]).filter(|&own| own < m) {
                let came = std::mem::take(&mut self.gradient_arrivals[s][own % slots]);
                let free = &mut self.free[s][own % replicas];
                free[0] = free[0].max(came) + self.works[s].backward;
                let end = free[0];
                for &(to, ticks) in &self.back[s] {
                    free[2] = free[2].max(end) + ticks;
                    let slot = &mut self.gradient_arrivals[to][own % slots];
                    *slot = (*slot).max(free[2]);
                }
            }
            if k < m {
                let came = std::mem::take(&mut self.activation_arrivals[s]);
                let free = &mut self.free[s][k % replicas];
                free[0] = free[0].max(came) + self.works[s].forward;
                let end = free[0];
                for &(to, ticks) in &self.out[s] {
                    free[1] = free[1].max(end) + ticks;
                    self.activation_arrivals[to] = self.activation_arrivals[to].max(free[1]);
                }
            }
        }
    }

    /// Time at which the first stage is free, then all other times relative to it. Unused clocks get a fixed value.
    fn state(&self, k: usize) -> Vec<i64> {
        let slots = self.replicas_from[0];
        let now = self.free[0][0][0];
        let seen = |clock: i64| if clock == 0 { i64::MIN } else { clock - now };
        let mut state = vec![now];
        for s in 0..self.works.len() {
            state.extend(self.free[s][0].map(seen));
            state.extend((0..slots).map(|i| seen(self.gradient_arrivals[s][(k + i) % slots])));
        }
        state
    }

    fn leap(&mut self, k: usize, rounds: usize, ticks: i64) {
        let slots = self.replicas_from[0];
        let later = |clock: i64| if clock == 0 { 0 } else { clock + ticks };
        for s in 0..self.works.len() {
            self.free[s][0] = self.free[s][0].map(later);
            let old = self.gradient_arrivals[s].clone();
            for i in 0..slots {
                self.gradient_arrivals[s][(k + rounds + i) % slots] = later(old[(k + i) % slots]);
            }
        }
    }
}
