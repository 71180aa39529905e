//! Listed schedules: compiled for a run, and the built-in ones as lists.
//!
//! A chunk is a virtual stage on a rank. Its time is that of its rank's stage over the number of chunks there; where a
//! virtual stage is on several ranks (DualPipe), each of them holds a copy, and the time is that of the stage itself. Slices
//! of a sequence take equal shares of a microbatch's time. `O(actions)`.

use std::{collections::HashMap, sync::Arc};

use super::{
    order::{self, Computation, ComputationOrder, PassKind},
    pipeline::{Pipeline, PipelineStage, sound},
    program::{Chunk, Program, Send, TickScale},
};
use crate::{
    plan::Schedule,
    schedule::{
        Action, ActionKind, ExplicitSchedule, Step,
        generate::{self, ScheduleShape},
        has_copies, next_chunk,
    },
};

impl Pipeline {
    /// Schedule of a pipeline as a list: of the first replica of every stage. `None` if the pipeline cannot run it.
    pub fn explicit(&self, schedule: Schedule) -> Option<Arc<ExplicitSchedule>> {
        if self.runs_once() || self.stages.is_empty() || self.refusal(schedule).is_some() {
            return None;
        }
        if let Some(listed) = self.listed(schedule) {
            return Some(listed);
        }
        let program = Program::new(self, schedule, &TickScale::of(self));
        let split = schedule.splits_backward();
        let ranks = program.groups.iter().map(|group| steps(program.order(group.first_worker), split));
        Some(Arc::new(ExplicitSchedule { ranks: ranks.collect() }))
    }

    /// List of a schedule that has no short period, for one replica.
    pub(super) fn listed(&self, schedule: Schedule) -> Option<Arc<ExplicitSchedule>> {
        let replicas = self.stages.first()?.replicas.max(1);
        let shape = ScheduleShape {
            ranks: self.stages.len() as u32,
            parts: self.virtual_stages(schedule),
            microbatches: self.microbatches / replicas,
            slices: self.settings.sequence_slices.max(1),
        };
        Some(match schedule {
            Schedule::Combined => {
                let ranks = (0..shape.ranks).map(|rank| match shape.ranks {
                    1 => order::alternating(rank, shape.microbatches, 0, true),
                    ranks => order::interleaved(rank, ranks, shape.parts, shape.microbatches, true),
                });
                Arc::new(ExplicitSchedule { ranks: ranks.map(|order| steps(&order, false)).collect() })
            }
            Schedule::LoopedBfs => Arc::new(generate::looped_bfs(shape)),
            Schedule::DualPipe => Arc::new(generate::dual_pipe(shape)),
            Schedule::DualPipeV => Arc::new(generate::dual_pipe_v(shape)),
            Schedule::Seq1F1B => Arc::new(generate::seq_1f1b(shape)),
            Schedule::Given(given) => given.schedule(),
            _ => return None,
        })
    }
}

/// Steps of an order with a short period.
fn steps(order: &ComputationOrder, split: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![];
    let mut pair: Option<Action> = None;
    for Computation { work, chunk, own, paired } in (0..order.len).map(|index| order.at(index)) {
        let kind = match work {
            PassKind::Forward => ActionKind::Forward,
            PassKind::InputGradient => ActionKind::InputGradient,
            PassKind::Backward if split => ActionKind::InputGradient,
            PassKind::Backward => ActionKind::Backward,
            PassKind::WeightGradient => ActionKind::WeightGradient,
        };
        let action = Action { kind, stage: chunk, microbatch: own, slice: 0 };
        match (paired, pair.take()) {
            (true, None) => pair = Some(action),
            (_, Some(first)) => steps.push(Step::Overlap(first, action)),
            (false, None) => steps.push(Step::One(action)),
        }
    }
    steps.extend(pair.map(Step::One));
    steps
}

/// Compiles a list for a pipeline that can run it.
pub(super) fn program(pipeline: &Pipeline, listed: &ExplicitSchedule, clock: &TickScale) -> Program {
    let slices = listed.slices();
    let replicas = pipeline.stages[0].replicas.max(1);
    let mut program = Program::default();
    program.microbatches = pipeline.microbatches * slices;
    let chunks = listed.chunks();
    let copies = has_copies(&chunks);
    program.copies = copies;
    program.joint = true;
    let mut of_rank = vec![0; listed.ranks.len()];
    chunks.iter().for_each(|chunk| of_rank[chunk.rank] += 1);
    let mut parts = vec![0; listed.ranks.len()];
    for own in &chunks {
        let (stage, share) = if copies { (own.stage as usize, 1) } else { (own.rank, of_rank[own.rank]) };
        let source = &pipeline.stages[stage];
        let part = |seconds: f64| sound(seconds) / f64::from(share * slices);
        let (backward, recompute) = (part(source.backward_s), part(source.recompute_s.min(source.backward_s)));
        let weights = match source.weight_gradient_s {
            Some(seconds) => part(seconds).min(backward - recompute),
            None => sound(pipeline.settings.weight_gradient_share).min(1.0) * (backward - recompute),
        };
        let whole = part(source.forward_s) + backward;
        let kept = if whole > 0.0 {
            1.0 - (part(source.paired_saving_s.max(source.listed_saving_s)) / whole).min(1.0)
        } else {
            1.0
        };
        program.chunks.push(Chunk {
            stage: own.rank as u32,
            part: parts[own.rank],
            bytes: sound(source.activation_bytes) / f64::from(share * slices),
            forward: clock.ticks(part(source.forward_s)),
            backward: clock.ticks(backward),
            paired: [part(source.forward_s), backward].map(|seconds| clock.ticks(seconds * kept)),
            weights: clock.ticks(weights),
            recompute: clock.ticks(recompute),
            ..Chunk::default()
        });
        parts[own.rank] += 1;
    }
    let dearest = pipeline.sends().map(|transfer| transfer.seconds).fold(0.0, f64::max);
    let between = |a: usize, b: usize| -> f64 {
        let known = pipeline.sends().find(|transfer| (transfer.from, transfer.to) == (a.min(b), a.max(b)));
        match known {
            _ if a == b => 0.0,
            Some(transfer) => transfer.seconds,
            None => dearest,
        }
    };
    let trains = listed.actions().any(|(.., action)| action.kind != ActionKind::Forward);
    for (from, own) in chunks.iter().enumerate() {
        let Some(to) = next_chunk(&chunks, own) else { continue };
        let (a, b) = (own.rank, chunks[to].rank);
        let ticks = clock.ticks(between(a, b) / f64::from(slices));
        let send = |to: usize, Chunk { stage, part, .. }: &Chunk| {
            let (stage, part) = (*stage, *part);
            Send { to: to as u32, stage, part, ticks, local: a == b, ways: None }
        };
        let (ahead, back) = (send(to, &program.chunks[to]), send(from, &program.chunks[from]));
        program.chunks[from].activations.push(ahead);
        if trains {
            program.chunks[to].gradients.push(back);
        }
    }
    let number: HashMap<(u32, usize), u32> =
        chunks.iter().zip(0..).map(|(chunk, number)| ((chunk.stage, chunk.rank), number)).collect();
    for (rank, steps) in listed.ranks.iter().enumerate() {
        let one = |action: Action, paired: bool| {
            let work = match action.kind {
                ActionKind::Forward => PassKind::Forward,
                ActionKind::Backward => PassKind::Backward,
                ActionKind::InputGradient => PassKind::InputGradient,
                ActionKind::WeightGradient => PassKind::WeightGradient,
            };
            let own = action.microbatch * slices + action.slice;
            Computation { work, chunk: number[&(action.stage, rank)], own, paired }
        };
        let operations = steps.iter().flat_map(|step| match *step {
            Step::One(action) => vec![one(action, false)],
            Step::Overlap(forward, backward) => vec![one(forward, true), one(backward, true)],
        });
        program.add_stage(replicas, ComputationOrder::listed(operations.collect()));
    }
    program
}

/// Stage of a rank with the bytes that a device holds whatever is in flight: its own, and those of the other stage of
/// which it has a copy.
pub(super) fn held_stage(pipeline: &Pipeline, program: &Program, rank: usize) -> PipelineStage {
    let own = pipeline.stages[rank].clone();
    if !program.copies || program.part_of(rank, 1).is_none() {
        return own;
    }
    // The second copy goes the other way.
    let other = &pipeline.stages[pipeline.stages.len() - 1 - rank];
    // Buffers serve one pass at a time, so a device needs them once.
    let shared = own.parts.buffers.min(other.parts.buffers);
    let mut parts = own.parts.plus(&other.parts);
    parts.buffers -= shared;
    PipelineStage { fixed_bytes: own.fixed_bytes + other.fixed_bytes - shared, parts, ..own }
}
