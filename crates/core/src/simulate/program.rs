//! Compiles a pipeline and a schedule for a run: virtual stages with times in ticks, workers with orders.
//!
//! A virtual stage (chunk) is a part of the model on one stage's devices. Without interleaving each stage has one. A
//! tick is a power of two of a second, chosen so that the whole batch, run sequentially, takes less than 2⁶¹ ticks.
//! Sums are therefore exact: rounding causes no overlap, and equal durations stay equal. A duration is off by at most
//! half a tick. `O(stages + transfers)` time. Orders take memory for their period only.

use std::num::NonZeroU32;

use super::{
    explicit,
    order::{self, ComputationOrder, PassKind},
    pipeline::{Pipeline, PipelineStage, Transfer, sound},
    settings::SimulatorSettings,
    wires::ReplicaRoute,
};
use crate::{
    plan::{Schedule, WarmUp},
    schedule::Step,
};

/// Transfer from its sender's side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Send {
    /// Receiving chunk, and the stage it is on.
    pub(super) to: u32,
    pub(super) stage: u32,
    /// Duration for every microbatch, if `ways` is `None`.
    pub(super) ticks: i64,
    /// Part of the receiving stage.
    pub(super) part: u32,
    /// True between two chunks of one device: nothing is sent.
    pub(super) local: bool,
    /// Row of [`Program::ways`], counted from one, if durations differ between microbatches.
    pub(super) ways: Option<NonZeroU32>,
}

/// Virtual stage of the model.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    pub(super) stage: u32,
    /// Index among the chunks of its stage.
    pub(super) part: u32,
    /// Bytes that a microbatch keeps here.
    pub(super) bytes: f64,
    pub(super) forward: i64,
    /// Includes recomputation, and the weights' part unless it is delayed.
    pub(super) backward: i64,
    /// Forward and backward beside each other, of two microbatches.
    pub(super) paired: [i64; 2],
    /// The weights' part, if it is delayed.
    pub(super) weights: i64,
    /// Part at the beginning of the backward that recomputes activations.
    pub(super) recompute: i64,
    /// Sorted with the nearest chunk first, because it can continue soonest.
    pub(super) activations: Vec<Send>,
    pub(super) gradients: Vec<Send>,
}

/// Devices of a stage.
#[derive(Debug, Clone)]
pub(super) struct WorkerRange {
    pub(super) replicas: u32,
    /// Index of the first replica among all replicas of all stages.
    pub(super) first_worker: usize,
}

/// Replica of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageReplica {
    pub(super) stage: u32,
    pub(super) replica: u32,
    /// Index of the worker's order.
    order: usize,
}

/// Constant data of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub(super) chunks: Vec<Chunk>,
    pub(super) groups: Vec<WorkerRange>,
    pub(super) microbatches: u32,
    pub(super) workers: Vec<StageReplica>,
    /// True if transfers between different replicas of two stages take different times.
    pub(super) by_replica: bool,
    /// Durations of transfers, by microbatch modulo their number.
    ways: Vec<Vec<i64>>,
    orders: Vec<ComputationOrder>,
    /// True if the passes of a pair begin and end together.
    pub(super) joint: bool,
    /// True if a stage of the model is on several ranks, each with a copy.
    pub(super) copies: bool,
}

/// Conversion between seconds and ticks.
pub(super) struct TickScale {
    ticks_per_s: f64,
}

impl TickScale {
    /// Finest clock on which the pipeline's work, run sequentially, takes less than 2⁶¹ ticks.
    pub(super) fn of(pipeline: &Pipeline) -> Self {
        let m = f64::from(pipeline.microbatches);
        let compute: f64 = pipeline.stages.iter().map(|s| m * (sound(s.forward_s) + sound(s.backward_s))).sum();
        let reduce: f64 = pipeline.stages.iter().map(|s| sound(s.all_reduce_s)).sum();
        let transfers: f64 = pipeline.transfers.iter().map(|t| 2.0 * m * sound(t.seconds)).sum();
        let longest = |ways: &Vec<ReplicaRoute>| m * ways.iter().map(|way| sound(way.seconds)).fold(0.0, f64::max);
        let transfers = transfers.max(pipeline.wires.ways.values().map(longest).sum());
        // The transfer from the last stage back to the first exists once per virtual stage.
        let parts = f64::from(pipeline.settings.virtual_stages.max(2));
        let total = compute + reduce + parts * transfers + sound(pipeline.settings.optimizer_step_s);
        let exponent = if total > 0.0 { 60.0 - total.log2().ceil() } else { 0.0 };
        TickScale { ticks_per_s: 2f64.powi(exponent.clamp(-1000.0, 1000.0) as i32) }
    }

    pub(super) fn ticks(&self, seconds: f64) -> i64 {
        (sound(seconds) * self.ticks_per_s).round() as i64
    }

    pub(super) fn tick_s(&self) -> f64 {
        1.0 / self.ticks_per_s
    }

    pub(super) fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.ticks_per_s
    }
}

impl Chunk {
    /// Duration of a pass, side by side with another if `paired`.
    pub(super) fn pass(&self, work: PassKind, paired: bool) -> i64 {
        match work {
            PassKind::Forward if paired => self.paired[0],
            PassKind::Backward if paired => self.paired[1],
            PassKind::Forward => self.forward,
            PassKind::Backward => self.backward,
            PassKind::InputGradient => self.backward - self.weights,
            PassKind::WeightGradient => self.weights,
        }
    }
}

impl Program {
    /// Compiles a pipeline that can run the schedule.
    pub(super) fn new(pipeline: &Pipeline, schedule: Schedule, clock: &TickScale) -> Self {
        if let Some(listed) = pipeline.listed(schedule) {
            return explicit::program(pipeline, &listed, clock);
        }
        let mut program = Program { microbatches: pipeline.microbatches, ..Program::default() };
        program.chunks = chunks(pipeline, schedule, clock);
        program.wire(pipeline, clock);
        for (index, stage) in pipeline.stages.iter().enumerate() {
            let replicas = stage.replicas.max(1);
            program.groups.push(WorkerRange { replicas, first_worker: program.workers.len() });
            let mut last = None;
            for replica in 0..replicas {
                let own = pipeline.microbatches / replicas + u32::from(pipeline.microbatches % replicas > replica);
                if last != Some(own) {
                    program.orders.push(order_of(pipeline, schedule, index, own));
                    last = Some(own);
                }
                program.workers.push(StageReplica { stage: index as u32, replica, order: program.orders.len() - 1 });
            }
        }
        program
    }

    /// Sets the durations of transfers on the ways between replicas.
    fn wire(&mut self, pipeline: &Pipeline, clock: &TickScale) {
        for chunk in &mut self.chunks {
            let stage = chunk.stage;
            for send in chunk.activations.iter_mut().chain(&mut chunk.gradients).filter(|send| !send.local) {
                let ways = pipeline.wires.between(stage, send.stage);
                let ticks: Vec<i64> = ways.iter().map(|way| clock.ticks(way.seconds)).collect();
                let Some(&first) = ticks.first() else { continue };
                send.ticks = first;
                if ticks.iter().any(|&other| other != first) {
                    self.ways.push(ticks);
                    send.ways = NonZeroU32::new(self.ways.len() as u32);
                    self.by_replica = true;
                }
            }
        }
    }

    /// Duration of a microbatch's transfer.
    #[inline]
    pub(super) fn ticks(&self, send: Send, microbatch: u32) -> i64 {
        send.ways.map_or(send.ticks, |row| {
            let ways = &self.ways[row.get() as usize - 1];
            ways[microbatch as usize % ways.len()]
        })
    }

    /// Total duration of a transfer over all microbatches.
    pub(super) fn all_ticks(&self, send: Send) -> f64 {
        let count = f64::from(self.microbatches);
        send.ways.map_or(count * send.ticks as f64, |row| {
            let ways = &self.ways[row.get() as usize - 1];
            let (rounds, rest) = (self.microbatches as usize / ways.len(), self.microbatches as usize % ways.len());
            let sum = |ways: &[i64]| ways.iter().map(|&ticks| ticks as f64).sum::<f64>();
            rounds as f64 * sum(ways) + sum(&ways[..rest])
        })
    }

    /// Order of a worker's computations.
    pub(super) fn order(&self, worker: usize) -> &ComputationOrder {
        &self.orders[self.workers[worker].order]
    }

    /// Worker that runs a microbatch of a chunk.
    pub(super) fn worker(&self, chunk: u32, microbatch: u32) -> usize {
        let group = &self.groups[self.chunks[chunk as usize].stage as usize];
        group.first_worker + (microbatch % group.replicas) as usize
    }

    /// Largest number of chunks on one stage.
    pub(super) fn parts(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.part as usize + 1).max().unwrap_or(1)
    }

    /// Part number `part` of a stage.
    pub(super) fn part_of(&self, stage: usize, part: usize) -> Option<&Chunk> {
        self.chunks.iter().find(|chunk| (chunk.stage as usize, chunk.part as usize) == (stage, part))
    }

    /// Number in the batch of a worker's own microbatch.
    pub(super) fn microbatch(&self, worker: usize, own: u32) -> u32 {
        let place = self.workers[worker];
        own * self.groups[place.stage as usize].replicas + place.replica
    }

    /// Orders of the workers, one for those that have the same.
    pub(super) fn add_stage(&mut self, replicas: u32, order: ComputationOrder) {
        let stage = self.groups.len() as u32;
        self.groups.push(WorkerRange { replicas, first_worker: self.workers.len() });
        self.orders.push(order);
        let order = self.orders.len() - 1;
        self.workers.extend((0..replicas).map(|replica| StageReplica { stage, replica, order }));
    }

    /// For each chunk, the number of transfers that a forward and a backward wait for.
    pub(super) fn senders(&self) -> Vec<[u32; 2]> {
        let mut senders = vec![[0; 2]; self.chunks.len()];
        for chunk in &self.chunks {
            chunk.activations.iter().for_each(|send| senders[send.to as usize][0] += 1);
            chunk.gradients.iter().for_each(|send| senders[send.to as usize][1] += 1);
        }
        senders
    }
}

impl Pipeline {
    /// Valid transfers: from a stage to a later one.
    pub(super) fn sends(&self) -> impl Iterator<Item = &Transfer> {
        self.transfers.iter().filter(|t| t.from < t.to && t.to < self.stages.len())
    }

    /// True if stages have different numbers of replicas.
    pub(super) fn is_uneven(&self) -> bool {
        self.stages.windows(2).any(|pair| pair[0].replicas.max(1) != pair[1].replicas.max(1))
    }

    /// Reduces a pipeline whose stages have equally many replicas to one replica with its part of the batch. Each
    /// replica feeds only the replica of the same number, so the iteration time is unchanged.
    pub fn of_one_replica(mut self) -> Pipeline {
        if !self.is_uneven() && !self.stages.is_empty() && self.wires.is_empty() {
            self.microbatches /= self.stages[0].replicas.max(1);
            self.stages.iter_mut().for_each(|stage| stage.replicas = 1);
        }
        self
    }

    /// Microbatches that all replicas of the later stages work on at a time. With the cumulative rule, microbatches
    /// that they hold.
    fn later(&self, stage: usize) -> u64 {
        let replicas = self.stages[stage + 1..].iter().map(|s| u64::from(s.replicas.max(1)));
        match self.settings.warm_up {
            WarmUp::Published => replicas.sum(),
            WarmUp::Cumulative => replicas.rev().fold(0, |behind, d| (behind.div_ceil(d) + 1) * d),
        }
    }

    /// Microbatches that each replica of a stage starts before its first backward: under 1F1B enough to keep all later
    /// replicas busy. At most one more is in flight; that sum is `y` in Piper's memory model.
    fn warm_up(&self, schedule: Schedule, index: usize) -> u32 {
        let stage = &self.stages[index];
        let replicas = u64::from(stage.replicas.max(1));
        let early = match (schedule, self.settings.extra_warm_up) {
            (Schedule::OneForwardOneBackward | Schedule::ZeroBubbleH1, _) => |early: u64, _: u64| early,
            (Schedule::EagerOneForwardOneBackward, None) => |early: u64, _: u64| 2 * early,
            (Schedule::EagerOneForwardOneBackward, Some(_)) => |early: u64, extra: u64| early + extra,
            _ => return u32::MAX,
        };
        let extra = self.settings.extra_warm_up.map_or(0, u64::from);
        let warm_up = match stage.warm_up {
            Some(warm_up) => early(warm_up.into(), extra),
            None => early(self.later(index), extra).div_ceil(replicas),
        };
        u32::try_from(warm_up).unwrap_or(u32::MAX)
    }
}

impl Pipeline {
    /// Seconds that a replica of a stage saves in an iteration because forward and backward passes run side by side.
    pub fn saved_s(&self, schedule: Schedule, stage: usize) -> f64 {
        let saving = self.stages[stage].paired_saving_s;
        if saving <= 0.0 {
            return 0.0;
        }
        let own = self.microbatches.div_ceil(self.stages[stage].replicas.max(1));
        let parts = f64::from(self.virtual_stages(schedule));
        let pairs = match self.listed(schedule) {
            Some(listed) => {
                let steps = listed.ranks.get(stage).map_or(&[][..], Vec::as_slice);
                steps.iter().filter(|step| matches!(step, Step::Overlap(..))).count() as f64
                    / f64::from(listed.slices())
            }
            None => order_of(self, schedule, stage, own).paired() as f64,
        };
        saving * pairs / parts
    }

    /// True if forward and backward passes of different microbatches run side by side.
    fn pairs(&self) -> bool {
        self.stages.iter().any(|stage| stage.paired_saving_s > 0.0)
    }
}

fn order_of(pipeline: &Pipeline, schedule: Schedule, stage: usize, own: u32) -> ComputationOrder {
    let (chunk, stages) = (stage as u32, pipeline.stages.len() as u32);
    match schedule {
        Schedule::OneForwardOneBackward
        | Schedule::GPipe
        | Schedule::EagerOneForwardOneBackward
        | Schedule::SingleSample => {
            let paired = schedule == Schedule::OneForwardOneBackward && pipeline.pairs();
            order::alternating(chunk, own, pipeline.warm_up(schedule, stage), paired)
        }
        Schedule::Inference => order::inference(chunk, own),
        Schedule::ZeroBubbleH1 => {
            // Keeps no more microbatches in flight here than 1F1B keeps on the first stage.
            let earlier: u64 = pipeline.stages[..stage].iter().map(|s| u64::from(s.replicas.max(1))).sum();
            let delay = earlier.div_ceil(u64::from(pipeline.stages[stage].replicas.max(1)));
            let delay = u32::try_from(delay).unwrap_or(u32::MAX);
            order::zero_bubble_h1(chunk, own, pipeline.warm_up(schedule, stage), delay)
        }
        Schedule::ZeroBubble2p => order::zero_bubble_h1(chunk, own, 2 * (stages - 1 - chunk), 2 * chunk),
        Schedule::Interleaved => {
            order::interleaved(chunk, stages, pipeline.virtual_stages(schedule), own, pipeline.pairs())
        }
        Schedule::InterleavedZeroBubble => {
            order::interleaved_zero_bubble(chunk, stages, pipeline.virtual_stages(schedule), own)
        }
        Schedule::ZeroBubbleV => order::zero_bubble_v(chunk, stages, own),
        // Those that are played from a list have no order of this kind.
        _ => ComputationOrder::default(),
    }
}

/// Times of one of `parts` equal parts of a stage.
fn chunk(
    stage: &PipelineStage,
    index: usize,
    parts: u32,
    schedule: Schedule,
    settings: &SimulatorSettings,
    clock: &TickScale,
) -> Chunk {
    let part = |seconds: f64| sound(seconds) / f64::from(parts);
    let (backward, recompute) = (part(stage.backward_s), part(stage.recompute_s.min(stage.backward_s)));
    let put_off = if schedule.splits_backward() {
        match stage.weight_gradient_s {
            Some(seconds) => part(seconds).min(backward - recompute),
            None => sound(settings.weight_gradient_share).min(1.0) * (backward - recompute),
        }
    } else {
        0.0
    };
    let weights = clock.ticks(put_off);
    let backward = clock.ticks(backward) - weights;
    // Both passes of a pair take the same share of their own time.
    let whole = part(stage.forward_s) + part(stage.backward_s);
    let kept = if whole > 0.0 { 1.0 - (part(stage.paired_saving_s) / whole).min(1.0) } else { 1.0 };
    Chunk {
        stage: index as u32,
        bytes: sound(stage.activation_bytes) / f64::from(parts),
        forward: clock.ticks(part(stage.forward_s)),
        paired: [stage.forward_s, stage.backward_s].map(|seconds| clock.ticks(part(seconds) * kept)),
        backward: backward.max(0),
        weights,
        recompute: clock.ticks(recompute).clamp(0, backward.max(0)),
        ..Chunk::default()
    }
}

/// Chunks in the order in which a microbatch passes them.
fn chunks(pipeline: &Pipeline, schedule: Schedule, clock: &TickScale) -> Vec<Chunk> {
    let count = pipeline.stages.len();
    let parts = pipeline.virtual_stages(schedule);
    let stage_of = |chunk: usize| match schedule {
        Schedule::ZeroBubbleV if chunk >= count => 2 * count - 1 - chunk,
        _ => chunk % count,
    };
    let mut chunks: Vec<Chunk> = (0..count * parts as usize)
        .map(|index| {
            let stage = stage_of(index);
            let one = chunk(&pipeline.stages[stage], stage, parts, schedule, &pipeline.settings, clock);
            Chunk { part: (index / count) as u32, ..one }
        })
        .collect();
    let mut join = |from: usize, to: usize, ticks: i64| {
        let (a, b) = (chunks[from].stage, chunks[to].stage);
        let part = chunks[to].part;
        chunks[from].activations.push(Send { to: to as u32, stage: b, part, ticks, local: a == b, ways: None });
        if schedule.has_backward() {
            let part = chunks[from].part;
            chunks[to].gradients.push(Send { to: from as u32, stage: a, part, ticks, local: a == b, ways: None });
        }
    };
    if parts == 1 {
        pipeline.sends().for_each(|t| join(t.from, t.to, clock.ticks(t.seconds)));
    } else {
        // In a chain, every part of a stage sends what the plan sends between the two stages. The transfer from the
        // last stage back to the first is assumed equal to the largest one.
        let dearest = pipeline.sends().map(|t| clock.ticks(t.seconds)).max().unwrap_or(0);
        for from in 0..chunks_of(count, parts) - 1 {
            let (a, b) = (stage_of(from), stage_of(from + 1));
            let sent = pipeline.sends().find(|t| (t.from, t.to) == (a.min(b), a.max(b)));
            match sent {
                _ if a == b => join(from, from + 1, 0),
                Some(transfer) if a.abs_diff(b) == 1 => join(from, from + 1, clock.ticks(transfer.seconds)),
                // With two stages the transfer back is the boundary's own.
                _ if a > b + 1 => join(from, from + 1, dearest),
                _ => join(from, from + 1, 0),
            }
        }
    }
    for chunk in &mut chunks {
        chunk.activations.sort_by_key(|send| send.to);
        chunk.gradients.sort_by_key(|send| std::cmp::Reverse(send.to));
    }
    chunks
}

fn chunks_of(stages: usize, parts: u32) -> usize {
    stages * parts as usize
}
