//! Iteration time under any schedule, computed operation by operation: the check of plans that carry one.
//!
//! Rules as in `batch.rs`, which is faster for 1F1B. With several parts of the model on a stage (interleaved, ZB-V) a
//! stage's work is divided into equal parts. Neighbours in the model send what the plan sends between their stages.
//! Transfers from the last stage back to the first are as large as on the largest boundary. Zero-bubble schedules delay
//! half of the backward without recomputation, as the gradient of the weights; gradients are sent after the other half.
//! Replicas advance in turn, each as far as it can, until all are done.
//!
//! `O(operations)` time; memory for data in transfer. Shares no code with the simulator or a planner.

use std::collections::VecDeque;

use super::{
    orders::{Operation, OperationKind, Orders},
    routed::RouteTimes,
};

/// Delayed fraction of the backward without recomputation.
const WEIGHTS: f64 = 0.5;

/// Seconds of a stage: per microbatch on a replica, and for its all-reduce.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StageSeconds {
    pub(super) forward: f64,
    /// Includes recomputation.
    pub(super) backward: f64,
    pub(super) recompute: f64,
    pub(super) reduce: f64,
    pub(super) replicas: usize,
}

/// Arrivals at a part on a replica: the latest time and the number of senders, by microbatch from `next` on.
#[derive(Clone, Default)]
struct Arrivals {
    next: usize,
    queue: VecDeque<(i64, u32)>,
}

impl Arrivals {
    fn deliver(&mut self, microbatch: usize, at: i64) {
        while self.next + self.queue.len() <= microbatch {
            self.queue.push_back((0, 0));
        }
        let arrival = &mut self.queue[microbatch - self.next];
        *arrival = (arrival.0.max(at), arrival.1 + 1);
    }

    /// Starts the next microbatch if all `senders` have delivered, and returns its arrival.
    fn take(&mut self, senders: u32) -> Option<i64> {
        let at = self.queue.front().filter(|arrival| arrival.1 == senders)?.0;
        self.queue.pop_front();
        self.next += 1;
        Some(at)
    }
}

/// Part of the model.
#[derive(Debug, Clone, Default)]
struct ModelPart {
    stage: usize,
    ticks: [i64; 3],
    /// Destinations of activations and gradients, nearest first, with durations by microbatch modulo the length. Empty
    /// if both parts are on one device.
    out: [Vec<(usize, Vec<i64>)>; 2],
    /// Number of activations and gradients that it waits for.
    waits: [u32; 2],
}

/// Replica of a stage.
struct Replica {
    stage: usize,
    number: usize,
    own: u64,
    done: u64,
    /// Times at which compute and the two outgoing directions become free.
    free: [i64; 3],
}

/// Seconds per iteration; infinite if the orders wait for each other.
pub(super) fn seconds(
    orders: &Orders,
    stages: &[StageSeconds],
    (between, closing): (&[(usize, usize, RouteTimes)], Option<RouteTimes>),
    microbatches: usize,
) -> f64 {
    let m = microbatches as f64;
    let parts = orders.parts() as f64;
    let sum = stages.iter().map(|s| m * (s.forward + s.backward) + s.reduce).sum::<f64>()
        + between
            .iter()
            .map(|send| &send.2)
            .chain(&closing)
            .map(|ways| 2.0 * m * (parts + 1.0) * longest(ways))
            .sum::<f64>();
    if !(sum > 0.0 && sum.is_finite()) {
        return 0.0;
    }
    let per_second = 2f64.powi((60.0 - sum.log2().ceil()).clamp(-1000.0, 1000.0) as i32);
    let ticks = |seconds: f64| (seconds * per_second).round() as i64;
    let parts = model(orders, stages, (between, closing.as_ref()), &ticks);
    let mut replicas: Vec<Replica> = vec![];
    let mut first = vec![];
    for (stage, cost) in stages.iter().enumerate() {
        first.push(replicas.len());
        for number in 0..cost.replicas {
            let own = (microbatches / cost.replicas + usize::from(microbatches % cost.replicas > number)) as u64;
            replicas.push(Replica { stage, number, own, done: 0, free: [0; 3] });
        }
    }
    // By part, direction and replica of its stage.
    let mut arrivals: Vec<[Vec<Arrivals>; 2]> = vec![];
    for part in &parts {
        let none = vec![Arrivals::default(); stages[part.stage].replicas];
        arrivals.push([none.clone(), none]);
    }
    let mut left: u64 = replicas.iter().map(|replica| orders.len(replica.own)).sum();
    while left > 0 {
        let before = left;
        for replica in &mut replicas {
            while replica.done < orders.len(replica.own) {
                let operation = orders.operation(replica.stage, replica.own, replica.done);
                let Some(ready) = ready(&parts, &mut arrivals, replica, operation) else { break };
                perform(&parts, &mut arrivals, stages, replica, operation, ready);
                replica.done += 1;
                left -= 1;
            }
        }
        if left == before {
            return f64::INFINITY;
        }
    }
    let end = |stage: usize| {
        let own = &replicas[first[stage]..first[stage] + stages[stage].replicas];
        own.iter().map(|replica| replica.free[0]).max().unwrap_or(0) + ticks(stages[stage].reduce)
    };
    (0..stages.len()).map(end).max().unwrap_or(0) as f64 / per_second
}

/// Parts of the model with the transfers between them.
fn model(
    orders: &Orders,
    stages: &[StageSeconds],
    (between, closing): (&[(usize, usize, RouteTimes)], Option<&RouteTimes>),
    ticks: &dyn Fn(f64) -> i64,
) -> Vec<ModelPart> {
    let each = orders.parts() as f64;
    let splits = orders.splits_backward();
    let count = stages.len() * orders.parts() as usize;
    let part = |number: usize| {
        let stage = orders.stage_of(number);
        let cost = &stages[stage];
        let (backward, recompute) = (cost.backward / each, cost.recompute.min(cost.backward) / each);
        let weights = if splits { ticks(WEIGHTS * (backward - recompute)) } else { 0 };
        let inputs = (ticks(backward) - weights).max(0);
        ModelPart { stage, ticks: [ticks(cost.forward / each), inputs, weights], ..ModelPart::default() }
    };
    let mut parts: Vec<ModelPart> = (0..count).map(part).collect();
    let mut link = |from: usize, to: usize, there: Vec<i64>, back: Vec<i64>| {
        parts[from].out[0].push((to, there));
        parts[to].waits[0] += 1;
        parts[to].out[1].insert(0, (from, back));
        parts[from].waits[1] += 1;
    };
    let all = |seconds: &[f64]| seconds.iter().map(|&seconds| ticks(seconds)).collect::<Vec<i64>>();
    if orders.parts() == 1 {
        between.iter().for_each(|(from, to, ways)| link(*from, *to, all(&ways.there), all(&ways.back)));
        return parts;
    }
    let dearest = between.iter().map(|send| longest(&send.2)).fold(0.0, f64::max);
    for from in 0..count - 1 {
        let (a, b) = (orders.stage_of(from), orders.stage_of(from + 1));
        let pair = between.iter().find(|send| (send.0, send.1) == (a.min(b), a.max(b)));
        let uniform = RouteTimes::uniform(dearest);
        // The second half of ZB-V runs against the order of the stages.
        let ways = match pair {
            _ if a == b => &RouteTimes::default(),
            Some(send) if a.abs_diff(b) == 1 => &send.2,
            _ if a.abs_diff(b) > 1 => closing.unwrap_or(&uniform),
            _ => &RouteTimes::uniform(0.0),
        };
        let (there, back) = if a > b && a - b == 1 { (&ways.back, &ways.there) } else { (&ways.there, &ways.back) };
        link(from, from + 1, all(there), all(back));
    }
    parts
}

/// Longest of some ways, seconds.
fn longest(ways: &RouteTimes) -> f64 {
    ways.there.iter().chain(&ways.back).copied().fold(0.0, f64::max)
}

/// Time at which an operation's inputs are there, if they are. They are then consumed.
fn ready(
    parts: &[ModelPart],
    arrivals: &mut [[Vec<Arrivals>; 2]],
    replica: &Replica,
    (kind, part, _): Operation,
) -> Option<i64> {
    let direction = match kind {
        OperationKind::Forward => 0,
        OperationKind::Backward => 1,
        OperationKind::Weights => return Some(0),
    };
    match parts[part].waits[direction] {
        0 => Some(0),
        senders => arrivals[part][direction][replica.number].take(senders),
    }
}

/// Runs an operation and its transfers.
fn perform(
    parts: &[ModelPart],
    arrivals: &mut [[Vec<Arrivals>; 2]],
    stages: &[StageSeconds],
    replica: &mut Replica,
    (kind, part, own): Operation,
    ready: i64,
) {
    let direction = match kind {
        OperationKind::Forward => 0,
        OperationKind::Backward => 1,
        OperationKind::Weights => 2,
    };
    let end = replica.free[0].max(ready) + parts[part].ticks[direction];
    replica.free[0] = end;
    if kind == OperationKind::Weights {
        return;
    }
    let microbatch = own as usize * stages[replica.stage].replicas + replica.number;
    for (to, ticks) in &parts[part].out[direction] {
        let to = *to;
        let at = match ticks[..] {
            [] => end,
            _ => {
                let way = &mut replica.free[1 + direction];
                *way = (*way).max(end) + ticks[microbatch % ticks.len()];
                *way
            }
        };
        let target = &parts[to];
        let (number, of) = (microbatch % stages[target.stage].replicas, microbatch / stages[target.stage].replicas);
        arrivals[to][direction][number].deliver(of, at);
    }
}
