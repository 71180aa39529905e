//! Runs with contention: transfers wait for links, or for the devices at both their ends.
//!
//! Resources serve in order of readiness. The next operation therefore depends on when others end, and events are
//! simulated by the clock. A transfer needs its sender's engine; without overlap also the compute of both ends; with
//! exclusive links also the links on its way. Each of these resources has a queue, in the global order in which
//! transfers became ready. A transfer starts when it is at the head of all its queues and all its resources are free. A
//! device with a transfer in its queue starts no new computation. The first of all pending transfers therefore starts
//! as soon as the running operations have ended, and no run deadlocks. Without that reservation, transfers between two
//! busy devices starve.
//!
//! Transfers that became ready at the same moment are ordered by stage, then microbatch, then activations before
//! gradients, then nearest destination first ([`TransferOrder`]). Stages have the pipeline's order, and a microbatch
//! fixes the replicas at both ends. The plan alone therefore decides ties, never the order of replicas, machines, nodes
//! or edges in a file. Ties matter: equal stages have many, and without overlap another rule may change the iteration
//! time by a quarter and more.
//!
//! Links connect pairs of stages, one per direction, shared by all replicas of the pair. If the plan is mapped to
//! machines, transfers between machines use an output port and an input port instead. If it is mapped to a topology,
//! they use the channels of their routes ([`super::routes`]). A lone transfer fills its links; several share them
//! max-min fairly ([`super::sharing`]).
//!
//! `O(log n)` for each of `n` events; with fair sharing also the number of transfers joined by links. Memory for
//! pending operations only. If the state recurs, the rounds in between are skipped ([`super::recurrence`]).

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use super::{
    order::{Computation, PassKind},
    patience::Patience,
    pipeline::Pipeline,
    program::{Program, Send},
    recurrence::Recurrence,
    routes::PipelineRoutes,
    run::{ACTIVATIONS, GRADIENTS, Inbox, Record, sending},
    settings::LinkModel,
    sharing::Sharing,
    timeline::EventKind,
};

/// Event of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClockEvent {
    /// End of a worker's computation.
    Computed(u32),
    /// End of a transfer, by its slot and the version of its bandwidth.
    Arrived(u32, u32),
}

/// Total order of transfers: time of readiness, sending stage, microbatch, direction, sending part of the model, and
/// number of the transfer, nearest part first.
pub(super) type TransferOrder = (i64, u32, u32, usize, u32, usize);

/// Waiting or running transfer.
#[derive(Debug, Clone)]
pub(super) struct PendingTransfer {
    pub(super) sender: usize,
    pub(super) receiver: usize,
    /// Sending stage.
    stage: u32,
    pub(super) chunk: u32,
    pub(super) send: Send,
    pub(super) direction: usize,
    /// Index among the chunk's transfers in its direction.
    number: usize,
    pub(super) microbatch: u32,
    pub(super) ready: i64,
    /// Start, if it has started.
    pub(super) start: Option<i64>,
    /// Resources that it occupies; empty once it has arrived.
    pub(super) resources: Vec<u32>,
}

impl PendingTransfer {
    pub(super) fn turn(&self) -> TransferOrder {
        (self.ready, self.stage, self.microbatch, self.direction, self.chunk, self.number)
    }
}

/// Compute state of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compute {
    pub(super) done: u64,
    /// Microbatch of the current or last computation.
    pub(super) microbatch: u32,
    pub(super) start: i64,
    pub(super) computing: bool,
}

/// State of a run, with its clock.
pub(super) struct Contention<'a> {
    pub(super) program: &'a Program,
    overlap: bool,
    pub(super) model: LinkModel,
    pub(super) now: i64,
    pub(super) workers: Vec<Compute>,
    pub(super) inboxes: Vec<[Inbox<i64>; 2]>,
    /// Waiting transfers of every resource: each worker's compute, its two send engines, the links.
    pub(super) queues: Vec<VecDeque<u32>>,
    pub(super) busy: Vec<bool>,
    pub(super) transfers: Vec<PendingTransfer>,
    vacant: Vec<u32>,
    pub(super) clock: BinaryHeap<Reverse<(i64, ClockEvent)>>,
    pub(super) sharing: Sharing,
    pub(super) routes: PipelineRoutes,
    /// Resources whose first transfer may start, and workers that may compute.
    stirred: Vec<u32>,
    woken: Vec<usize>,
}

/// Cost of a moment, in operations of a run with fixed order.
const MOMENT: usize = 4;

/// Simulates the whole batch. Returns the number of simulated moments, or `None` if stopped. `record` receives all
/// microbatches except those from `drawn` on until `drawn` before the end.
pub(super) fn simulate(
    pipeline: &Pipeline,
    program: &Program,
    drawn: u32,
    patience: &mut Patience<'_>,
    mut record: impl FnMut(Record<i64>),
) -> Option<u64> {
    let gap = drawn..program.microbatches.saturating_sub(drawn);
    let mut record = |happened: Record<i64>| {
        if !gap.contains(&happened.microbatch) {
            record(happened);
        }
    };
    let mut run = Contention::new(pipeline, program);
    let placed = program.by_replica || (run.routes.by_replica() && run.model != LinkModel::Private);
    let mut recurrence = Recurrence::new(program, &gap, placed);
    let mut moments = 0;
    while run.moment(&mut record) {
        moments += 1;
        if patience.lost_after(MOMENT) {
            return None;
        }
        recurrence.watch(&mut run);
    }
    Some(moments)
}

impl<'a> Contention<'a> {
    fn new(pipeline: &Pipeline, program: &'a Program) -> Self {
        let workers = program.workers.len();
        let routes = PipelineRoutes::new(pipeline, program);
        let resources = 3 * workers + routes.links as usize;
        let idle = Compute { done: 0, microbatch: 0, start: 0, computing: false };
        let mut run = Contention {
            program,
            overlap: pipeline.settings.overlap,
            model: pipeline.settings.links,
            now: 0,
            workers: vec![idle; workers],
            inboxes: program.senders().into_iter().map(|senders| senders.map(Inbox::new)).collect(),
            queues: vec![VecDeque::new(); resources],
            busy: vec![false; resources],
            transfers: vec![],
            vacant: vec![],
            clock: BinaryHeap::new(),
            sharing: Sharing::new(routes.links as usize, routes.capacities.clone()),
            routes,
            stirred: vec![],
            woken: (0..workers).rev().collect(),
        };
        run.settle();
        run
    }

    /// Advances to the next moment at which an operation ends, and starts all that can then start. Returns false at the
    /// end.
    fn moment(&mut self, record: &mut impl FnMut(Record<i64>)) -> bool {
        let Some(&Reverse((time, _))) = self.clock.peek() else { return false };
        self.now = time;
        while let Some(&Reverse((_, ending))) = self.clock.peek().filter(|next| next.0.0 == time) {
            self.clock.pop();
            match ending {
                ClockEvent::Computed(worker) => self.computed(worker as usize, record),
                ClockEvent::Arrived(slot, version) => {
                    if self.model != LinkModel::Shared || self.sharing.version(slot) == version {
                        self.arrived(slot, record);
                    }
                }
            }
        }
        self.settle();
        true
    }

    /// Number of waiting or running transfers.
    pub(super) fn under_way(&self) -> usize {
        self.transfers.len() - self.vacant.len()
    }

    fn at(&mut self, time: i64, ending: ClockEvent) {
        self.clock.push(Reverse((time, ending)));
    }

    /// Starts all operations that can start now, transfers first.
    fn settle(&mut self) {
        while let Some(resource) = self.stirred.pop() {
            self.try_transfer(resource);
        }
        while let Some(worker) = self.woken.pop() {
            self.try_compute(worker);
        }
        if self.model == LinkModel::Shared {
            let clock = &mut self.clock;
            self.sharing
                .share(self.now, |slot, version, end| clock.push(Reverse((end, ClockEvent::Arrived(slot, version)))));
        }
    }

    fn try_transfer(&mut self, resource: u32) {
        let Some(&slot) = self.queues[resource as usize].front() else { return };
        let transfer = &mut self.transfers[slot as usize];
        let ready = |&r: &u32| !self.busy[r as usize] && self.queues[r as usize].front() == Some(&slot);
        if !transfer.resources.iter().all(ready) {
            return;
        }
        transfer.start = Some(self.now);
        for &resource in &transfer.resources {
            self.queues[resource as usize].pop_front();
            self.busy[resource as usize] = true;
        }
        let ticks = self.program.ticks(transfer.send, transfer.microbatch);
        if self.model == LinkModel::Shared {
            let way = (transfer.chunk, transfer.direction, transfer.number);
            let path = self.routes.path(way, transfer.microbatch, transfer.sender, transfer.receiver);
            self.sharing.join(slot, path, ticks, self.now);
        } else {
            self.at(self.now + ticks, ClockEvent::Arrived(slot, 0));
        }
    }

    fn try_compute(&mut self, worker: usize) {
        let done = self.workers[worker].done;
        let order = self.program.order(worker);
        let waits = !self.overlap && !self.queues[worker].is_empty();
        if self.busy[worker] || waits || done == order.len {
            return;
        }
        // What a computation waits for: its chunk's inbox and microbatch.
        let awaited = |operation: Computation| {
            let direction = if operation.work == PassKind::Forward { ACTIVATIONS } else { GRADIENTS };
            (operation.chunk as usize, direction, self.program.microbatch(worker, operation.own))
        };
        let mut ticks = 0;
        for operation in self.together(worker) {
            let (chunk, direction, microbatch) = awaited(operation);
            ticks += self.program.chunks[chunk].pass(operation.work, operation.paired);
            let waits = operation.work != PassKind::WeightGradient;
            if waits && !self.inboxes[chunk][direction].is_complete(microbatch) {
                return;
            }
        }
        for operation in self.together(worker).filter(|operation| operation.work != PassKind::WeightGradient) {
            let (chunk, direction, microbatch) = awaited(operation);
            self.inboxes[chunk][direction].take(microbatch);
        }
        self.busy[worker] = true;
        let microbatch = self.program.microbatch(worker, order.at(done).own);
        self.workers[worker] = Compute { done, microbatch, start: self.now, computing: true };
        self.at(self.now + ticks, ClockEvent::Computed(worker as u32));
    }

    fn computed(&mut self, worker: usize, record: &mut impl FnMut(Record<i64>)) {
        let Compute { done, mut start, .. } = self.workers[worker];
        let program = self.program;
        let ended = self.together(worker);
        self.workers[worker].done = done + ended.clone().count() as u64;
        self.workers[worker].computing = false;
        self.free(worker as u32);
        for (Computation { work, chunk, own, paired }, index) in ended.zip(done..) {
            let sending = &program.chunks[chunk as usize];
            let (kind, direction, sends) = match work {
                PassKind::Forward => (EventKind::Forward, ACTIVATIONS, &sending.activations[..]),
                PassKind::Backward | PassKind::InputGradient => {
                    (EventKind::Backward, GRADIENTS, &sending.gradients[..])
                }
                PassKind::WeightGradient => (EventKind::WeightGradient, GRADIENTS, &[][..]),
            };
            let (microbatch, end) = (program.microbatch(worker, own), start + sending.pass(work, paired));
            record(Record { worker, chunk, microbatch, index, kind, start, end });
            start = end;
            for (number, &send) in sends.iter().enumerate() {
                if send.local {
                    self.deliver(send, direction, microbatch);
                } else {
                    self.enqueue(worker, (chunk, direction, number), send, microbatch);
                }
            }
        }
    }

    /// Computations that a worker runs next, side by side.
    fn together(&self, worker: usize) -> impl Iterator<Item = Computation> + Clone + use<'a> {
        let (order, done) = (self.program.order(worker), self.workers[worker].done);
        let pair = self.program.joint && order.at(done).paired;
        (done..done + 1 + u64::from(pair)).map(|index| order.at(index))
    }

    /// Puts a transfer that is ready now into the queues of all its resources.
    fn enqueue(&mut self, sender: usize, way: (u32, usize, usize), send: Send, microbatch: u32) {
        let (chunk, direction, number) = way;
        let receiver = self.program.worker(send.to, microbatch);
        let mut resources = match self.vacant.last() {
            Some(&slot) => std::mem::take(&mut self.transfers[slot as usize].resources),
            None => vec![],
        };
        let workers = self.workers.len() as u32;
        resources.push(workers + 2 * sender as u32 + direction as u32);
        // A transfer of duration 0 blocks no device.
        if !self.overlap && self.program.ticks(send, microbatch) > 0 {
            resources.extend([sender as u32, receiver as u32]);
        }
        if self.model == LinkModel::Exclusive {
            let links = self.routes.path(way, microbatch, sender, receiver).links.into_iter().flatten();
            resources.extend(links.map(|link| 3 * workers + link));
        }
        let ready = self.now;
        let stage = self.program.chunks[chunk as usize].stage;
        let transfer = PendingTransfer {
            sender,
            receiver,
            stage,
            chunk,
            send,
            direction,
            number,
            microbatch,
            ready,
            start: None,
            resources,
        };
        let turn = transfer.turn();
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.transfers[slot as usize] = transfer;
                slot
            }
            None => {
                self.transfers.push(transfer);
                self.transfers.len() as u32 - 1
            }
        };
        for &resource in &self.transfers[slot as usize].resources {
            let queue = &mut self.queues[resource as usize];
            // Only transfers that became ready at this moment may be overtaken.
            let earlier = queue.iter().rev().take_while(|&&other| self.transfers[other as usize].turn() > turn).count();
            queue.insert(queue.len() - earlier, slot);
        }
        self.stirred.push(self.transfers[slot as usize].resources[0]);
    }

    fn arrived(&mut self, slot: u32, record: &mut impl FnMut(Record<i64>)) {
        if self.model == LinkModel::Shared {
            self.sharing.leave(slot);
        }
        let mut resources = std::mem::take(&mut self.transfers[slot as usize].resources);
        resources.iter().for_each(|&resource| self.free(resource));
        resources.clear();
        let PendingTransfer { sender, chunk, send, direction, microbatch, start, .. } = self.transfers[slot as usize];
        self.transfers[slot as usize].resources = resources;
        self.vacant.push(slot);
        let (kind, start) = (sending(direction, send), start.unwrap_or(self.now));
        record(Record { worker: sender, chunk, microbatch, index: 0, kind, start, end: self.now });
        self.deliver(send, direction, microbatch);
    }

    fn free(&mut self, resource: u32) {
        self.busy[resource as usize] = false;
        self.stirred.push(resource);
        if (resource as usize) < self.workers.len() {
            self.woken.push(resource as usize);
        }
    }

    fn deliver(&mut self, send: Send, direction: usize, microbatch: u32) {
        if self.inboxes[send.to as usize][direction].deliver(microbatch, self.now, &mut 0) {
            self.woken.push(self.program.worker(send.to, microbatch));
        }
    }
}
