//! State of a run and its one rule: an operation starts when its replica is free and all its inputs have arrived.
//!
//! Every resource serves in an order fixed by the schedule: a replica's computations by its program, a send engine in
//! the order of the computations that feed it. A run is therefore a longest-path computation over a graph that unfolds
//! as it goes, without a queue ordered by time. A worklist of replicas that may continue visits every operation once,
//! in any order of visits. `O(1)` per operation and transfer. Memory only for data in transfer.
//!
//! No run deadlocks. For 1F1B and its eager form, let `R(s)` be the number of replicas of stage `s` and all later ones.
//! Take numbers `K(s)` that decrease from stage to stage: `R(s)` for 1F1B, `R(s) + e` with `e` extra microbatches,
//! `2 R(s + 1) + r(s)` if the warm-up is doubled. Give forward `(s, m)` the rank `m`, backward `(s, m)` the rank
//! `m + K(s)`. Let the warm-up `w` satisfy `K(s) - r <= w r < K(s)`. Then each dependency of an operation has a smaller
//! rank; or it has the same rank and is a forward of an earlier stage, or a backward whose own dependencies all have
//! smaller ranks. Hence there is no cycle. In GPipe no forward waits for a backward, so there is no such loop. ZB-H1
//! adds no dependency: nothing waits for the weights' part. For the two schedules with several parts on a device, tests
//! show for all small sizes that the orders complete.

use std::collections::VecDeque;

use super::{
    order::{Computation, PassKind},
    patience::Patience,
    program::{self, Program},
    timeline::EventKind,
};

/// Moment of a run. A normal run uses plain ticks. The fast-forward uses moments that also carry their rate of change.
pub(super) trait Moment: Copy + Default {
    /// Moment `ticks` later.
    fn after(self, ticks: i64) -> Self;

    /// Later of two moments. Lowers `horizon` to the number of repetitions for which it stays the later one.
    fn later(self, other: Self, horizon: &mut i64) -> Self;
}

impl Moment for i64 {
    fn after(self, ticks: i64) -> i64 {
        self + ticks
    }

    fn later(self, other: i64, _: &mut i64) -> i64 {
        self.max(other)
    }
}

/// Replica of a stage: its compute and its two send engines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WorkerState<T> {
    /// Number of finished operations.
    pub(super) done: u64,
    /// Times at which the compute and the two send engines (activations, gradients) become free.
    pub(super) free: [T; 3],
}

/// Arrivals for one microbatch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<T> {
    pub(super) arrived: T,
    /// Missing transfers; [`TAKEN`] after the operation has run.
    pub(super) missing: u32,
}

const TAKEN: u32 = u32::MAX;

/// Arrivals at one chunk in one direction, from microbatch `first` on.
#[derive(Debug, Clone)]
pub(super) struct Inbox<T> {
    /// Number of transfers that every microbatch waits for. With 0 the inbox is not used.
    pub(super) senders: u32,
    pub(super) first: u32,
    pub(super) slots: VecDeque<Slot<T>>,
}

impl<T: Moment> Inbox<T> {
    pub(super) fn new(senders: u32) -> Self {
        Inbox { senders, first: 0, slots: VecDeque::new() }
    }

    /// Records an arrival. Returns true if it was the last one missing.
    pub(super) fn deliver(&mut self, microbatch: u32, at: T, horizon: &mut i64) -> bool {
        let index = (microbatch - self.first) as usize;
        while self.slots.len() <= index {
            self.slots.push_back(Slot { arrived: T::default(), missing: self.senders });
        }
        let slot = &mut self.slots[index];
        // The first arrival is not compared with the zero of the empty slot.
        slot.arrived = if slot.missing == self.senders { at } else { slot.arrived.later(at, horizon) };
        slot.missing -= 1;
        slot.missing == 0
    }

    /// True if the arrivals for a microbatch are complete.
    pub(super) fn is_complete(&self, microbatch: u32) -> bool {
        let index = microbatch.checked_sub(self.first);
        self.senders == 0
            || index.and_then(|index| self.slots.get(index as usize)).is_some_and(|slot| slot.missing == 0)
    }

    /// Takes the arrivals for a microbatch, if they are complete.
    pub(super) fn take(&mut self, microbatch: u32) -> Option<T> {
        let index = microbatch.checked_sub(self.first)? as usize;
        let slot = self.slots.get_mut(index).filter(|slot| slot.missing == 0)?;
        slot.missing = TAKEN;
        let arrived = slot.arrived;
        while self.slots.front().is_some_and(|slot| slot.missing == TAKEN) {
            self.slots.pop_front();
            self.first += 1;
        }
        Some(arrived)
    }
}

/// Event in ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<T> {
    pub(super) worker: usize,
    /// Chunk that computes or sends.
    pub(super) chunk: u32,
    pub(super) microbatch: u32,
    /// Number of the computation in the worker's order.
    pub(super) index: u64,
    pub(super) kind: EventKind,
    pub(super) start: T,
    pub(super) end: T,
}

/// Run in progress.
#[derive(Debug, Clone)]
pub(super) struct SimulationState<T> {
    pub(super) workers: Vec<WorkerState<T>>,
    /// By chunk: incoming activations and gradients.
    pub(super) inboxes: Vec<[Inbox<T>; 2]>,
    /// See [`Moment::later`].
    pub(super) horizon: i64,
    /// For each worker, true if it is in the worklist. All false between two advances.
    queued: Vec<bool>,
    /// Operations run, without those that leaps skipped.
    #[cfg(test)]
    pub(super) operations: u64,
}

pub(super) const ACTIVATIONS: usize = 0;
pub(super) const GRADIENTS: usize = 1;

impl<T: Moment> SimulationState<T> {
    pub(super) fn new(program: &Program) -> Self {
        SimulationState {
            workers: vec![WorkerState::default(); program.workers.len()],
            inboxes: program.senders().into_iter().map(|senders| senders.map(Inbox::new)).collect(),
            horizon: i64::MAX,
            queued: vec![false; program.workers.len()],
            #[cfg(test)]
            operations: 0,
        }
    }

    /// All moments that later operations may depend on, in the order in which [`SimulationState::map`] visits them.
    pub(super) fn moments(&self) -> Vec<T> {
        let mut all = vec![];
        self.map(|moment| all.push(moment));
        all
    }

    /// Replaces the moments of the state.
    pub(super) fn map<U: Default + Copy>(&self, mut change: impl FnMut(T) -> U) -> SimulationState<U> {
        let workers: Vec<_> =
            self.workers.iter().map(|w| WorkerState { done: w.done, free: w.free.map(&mut change) }).collect();
        let mut inbox = |inbox: &Inbox<T>| Inbox {
            senders: inbox.senders,
            first: inbox.first,
            slots: inbox
                .slots
                .iter()
                .map(|slot| Slot {
                    // The moment is meaningless if nothing has arrived, or if it was taken.
                    arrived: if slot.missing >= inbox.senders { U::default() } else { change(slot.arrived) },
                    missing: slot.missing,
                })
                .collect(),
        };
        let inboxes = self.inboxes.iter().map(|pair| [inbox(&pair[0]), inbox(&pair[1])]).collect();
        SimulationState {
            queued: vec![false; workers.len()],
            workers,
            inboxes,
            horizon: i64::MAX,
            #[cfg(test)]
            operations: self.operations,
        }
    }

    /// Advances every worker until it has done `goal(worker)` operations, or no worker can continue. All goals together
    /// must contain the operations that they depend on.
    pub(super) fn advance(
        &mut self,
        program: &Program,
        goal: impl Fn(usize) -> u64,
        patience: &mut Patience<'_>,
        record: impl FnMut(Record<T>),
    ) {
        // Popped from the back: the first stage goes first.
        self.advance_from((0..self.workers.len()).rev().collect(), program, goal, patience, record);
    }

    /// Like `advance`, if only the workers of `queue`, and those they wake, may continue.
    pub(super) fn advance_from(
        &mut self,
        mut queue: Vec<usize>,
        program: &Program,
        goal: impl Fn(usize) -> u64,
        patience: &mut Patience<'_>,
        mut record: impl FnMut(Record<T>),
    ) {
        let mut queued = std::mem::take(&mut self.queued);
        queue.iter().for_each(|&worker| queued[worker] = true);
        while let Some(worker) = queue.pop() {
            queued[worker] = false;
            let goal = goal(worker);
            let before = self.workers[worker].done;
            while self.workers[worker].done < goal {
                let woken = |other: usize| {
                    if !std::mem::replace(&mut queued[other], true) {
                        queue.push(other);
                    }
                };
                if !self.step(program, worker, &mut record, woken) {
                    break;
                }
            }
            let done = self.workers[worker].done - before;
            #[cfg(test)]
            (self.operations += done);
            if patience.lost_after(done as usize + 1) {
                queue.iter().for_each(|&other| queued[other] = false);
                break;
            }
        }
        self.queued = queued;
    }

    /// Runs a worker's next operation and its transfers. Returns false if an input has not arrived.
    fn step(
        &mut self,
        program: &Program,
        worker: usize,
        record: &mut impl FnMut(Record<T>),
        mut woken: impl FnMut(usize),
    ) -> bool {
        let index = self.workers[worker].done;
        let Computation { work, chunk, own, paired } = program.order(worker).at(index);
        if paired && program.joint {
            return self.step_together(program, worker, record, woken);
        }
        let parts = &program.chunks[chunk as usize];
        let microbatch = program.microbatch(worker, own);
        let mut free = self.workers[worker].free;
        let mut start = free[0];
        let (direction, kind) = match work {
            PassKind::Forward => (ACTIVATIONS, EventKind::Forward),
            PassKind::Backward | PassKind::InputGradient => (GRADIENTS, EventKind::Backward),
            PassKind::WeightGradient => {
                // Its own backward came before it in the worker's order.
                let end = start.after(parts.weights);
                record(Record { worker, chunk, microbatch, index, kind: EventKind::WeightGradient, start, end });
                free[0] = end;
                self.workers[worker] = WorkerState { done: index + 1, free };
                return true;
            }
        };
        let inbox = &mut self.inboxes[chunk as usize][direction];
        if inbox.senders > 0 {
            let Some(arrived) = inbox.take(microbatch) else { return false };
            start = start.later(arrived, &mut self.horizon);
        }
        let end = start.after(parts.pass(work, paired));
        free[0] = end;
        record(Record { worker, chunk, microbatch, index, kind, start, end });
        let made = Record { worker, chunk, microbatch, index, kind, start: end, end };
        self.send(program, made, &mut free[1 + direction], record, &mut woken);
        self.workers[worker] = WorkerState { done: index + 1, free };
        true
    }

    /// Sends the result of a pass, which is ready at the end of `made`, to all chunks that need it.
    fn send(
        &mut self,
        program: &Program,
        made: Record<T>,
        engine: &mut T,
        record: &mut impl FnMut(Record<T>),
        woken: &mut impl FnMut(usize),
    ) {
        let parts = &program.chunks[made.chunk as usize];
        let (direction, sends) = match made.kind {
            EventKind::Forward => (ACTIVATIONS, &parts.activations),
            _ => (GRADIENTS, &parts.gradients),
        };
        for send in sends {
            let mut arrived = made.end;
            if !send.local {
                let start = engine.later(made.end, &mut self.horizon);
                arrived = start.after(program.ticks(*send, made.microbatch));
                *engine = arrived;
                record(Record { kind: sending(direction, *send), start, end: arrived, ..made });
            }
            if self.inboxes[send.to as usize][direction].deliver(made.microbatch, arrived, &mut self.horizon) {
                woken(program.worker(send.to, made.microbatch));
            }
        }
    }
}

impl<T: Moment> SimulationState<T> {
    /// Runs a worker's next two operations side by side: they begin with the later one's inputs and send at their common
    /// end. They are drawn one behind the other. Returns false if an input has not arrived.
    fn step_together(
        &mut self,
        program: &Program,
        worker: usize,
        record: &mut impl FnMut(Record<T>),
        mut woken: impl FnMut(usize),
    ) -> bool {
        let index = self.workers[worker].done;
        let pair = [index, index + 1].map(|index| {
            let operation = program.order(worker).at(index);
            let direction = if operation.work == PassKind::Forward { ACTIVATIONS } else { GRADIENTS };
            (operation, direction, program.microbatch(worker, operation.own))
        });
        if !pair
            .iter()
            .all(|&(own, direction, microbatch)| self.inboxes[own.chunk as usize][direction].is_complete(microbatch))
        {
            return false;
        }
        let mut free = self.workers[worker].free;
        let mut start = free[0];
        for &(own, direction, microbatch) in &pair {
            let inbox = &mut self.inboxes[own.chunk as usize][direction];
            if let Some(arrived) = (inbox.senders > 0).then(|| inbox.take(microbatch)).flatten() {
                start = start.later(arrived, &mut self.horizon);
            }
        }
        let ticks = pair.map(|(own, ..)| program.chunks[own.chunk as usize].pass(own.work, own.paired));
        let ends = [start.after(ticks[0]), start.after(ticks[0] + ticks[1])];
        let starts = [start, ends[0]];
        free[0] = ends[1];
        for (number, &(Computation { work, chunk, .. }, direction, microbatch)) in pair.iter().enumerate() {
            let kind = if work == PassKind::Forward { EventKind::Forward } else { EventKind::Backward };
            let index = index + number as u64;
            let pass = Record { worker, chunk, microbatch, index, kind, start: starts[number], end: ends[number] };
            record(pass);
            self.send(program, Record { end: ends[1], ..pass }, &mut free[1 + direction], record, &mut woken);
        }
        self.workers[worker] = WorkerState { done: index + 2, free };
        true
    }
}

/// Event kind of a transfer in a direction.
pub(super) fn sending(direction: usize, program::Send { stage: to, part, .. }: program::Send) -> EventKind {
    if direction == ACTIVATIONS { EventKind::SendActivation { to, part } } else { EventKind::SendGradient { to, part } }
}
