//! Runs in which things wait for one another: transfers for links, or for the devices at both their ends.
//!
//! Whoever was ready first goes first, so what runs next depends on when things end, and events are simulated by the clock. A
//! transfer needs its sender's engine; without overlap also the compute of both ends; with exclusive links also those on its
//! way. Each of these has a queue in the one global order in which transfers became ready, and a transfer starts when it is
//! at the head of all its queues and everything is free. A device with a transfer in its queue starts no new computation.
//! So the first of all pending transfers always gets what it needs as soon as what runs now has ended, and no run gets
//! stuck. Without that reservation transfers between two busy devices starve.
//!
//! Of transfers that became ready at the same moment that of the earlier stage goes first; of one stage, that of the earlier
//! microbatch; of one microbatch, activations before gradients; of these, what goes to the nearest stage ([`Turn`]). Stages
//! count as the pipeline orders them, and a microbatch fixes the replicas at both ends. So ties are decided by the plan
//! alone, never by how a file lists replicas, machines, nodes or edges. They matter: equal stages make many ties, and without
//! overlap another rule may change the time of a batch by a quarter and more.
//!
//! Links are those between pairs of stages, one for each direction, which all replicas of the pair share; where the plan is
//! laid out over machines, transfers between machines use the ports of these instead, out of one and into the other; and
//! where its parts sit on a topology, the channels of the routes between them ([`super::routes`]). A lone transfer fills its links; the fair share of several is max-min ([`super::sharing`]).
//!
//! `O(log n)` for each of `n` events, with fair shares also the transfers joined by links; memory for what is under way. Where
//! the state repeats itself the rounds in between are leapt over ([`super::recurrence`]).

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use super::{
    EventKind, LinkModel, Pipeline,
    order::Work,
    patience::Patience,
    program::{Program, Send},
    recurrence::Recurrence,
    routes::Routes,
    run::{ACTIVATIONS, GRADIENTS, Inbox, Record, sending},
    sharing::Sharing,
};

/// What a moment of the clock brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// A worker's computation.
    Computed(u32),
    /// A transfer, by its slot; of this version of its share of the links.
    Arrived(u32, u32),
}

/// The order of all transfers: when they became ready, sending stage, microbatch, direction, sending part of the model, and
/// which of its transfers it is, to the nearest part first.
pub(super) type Turn = (i64, u32, u32, usize, u32, usize);

/// A transfer that waits or is under way.
#[derive(Debug, Clone)]
pub(super) struct Transfer {
    pub(super) sender: usize,
    pub(super) receiver: usize,
    /// The sending stage.
    stage: u32,
    pub(super) chunk: u32,
    pub(super) send: Send,
    pub(super) direction: usize,
    /// Which of the chunk's transfers in its direction.
    number: usize,
    pub(super) microbatch: u32,
    pub(super) ready: i64,
    /// When it started, if it has.
    pub(super) start: Option<i64>,
    /// What it takes for itself; nothing once it has arrived.
    pub(super) resources: Vec<u32>,
}

impl Transfer {
    pub(super) fn turn(&self) -> Turn {
        (self.ready, self.stage, self.microbatch, self.direction, self.chunk, self.number)
    }
}

/// A worker's compute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compute {
    pub(super) done: u64,
    /// Of what it computes, or computed last.
    work: Work,
    chunk: u32,
    pub(super) microbatch: u32,
    pub(super) start: i64,
    pub(super) computing: bool,
}

/// The state of a run, and its clock.
pub(super) struct Contention<'a> {
    pub(super) program: &'a Program,
    overlap: bool,
    pub(super) model: LinkModel,
    pub(super) now: i64,
    pub(super) workers: Vec<Compute>,
    pub(super) inboxes: Vec<[Inbox<i64>; 2]>,
    /// Waiting transfers of every resource: the compute of each worker, its two send engines, the links.
    pub(super) queues: Vec<VecDeque<u32>>,
    pub(super) busy: Vec<bool>,
    pub(super) transfers: Vec<Transfer>,
    vacant: Vec<u32>,
    pub(super) clock: BinaryHeap<Reverse<(i64, Ending)>>,
    pub(super) sharing: Sharing,
    pub(super) routes: Routes,
    /// Resources whose first transfer may be able to start, and workers that may be able to compute.
    stirred: Vec<u32>,
    woken: Vec<usize>,
}

/// How many operations of a run in a fixed order a moment counts for.
const MOMENT: usize = 4;

/// Simulates the whole batch, unless nobody waits for it any more: the moments that were simulated. `record` hears of all
/// microbatches but those from `drawn` on until `drawn` before the end.
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
        let routes = Routes::new(pipeline, program);
        let resources = 3 * workers + routes.links as usize;
        let idle = Compute { done: 0, work: Work::Forward, chunk: 0, microbatch: 0, start: 0, computing: false };
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

    /// Goes on to the next moment at which something ends, and starts what can start then; false at the end.
    fn moment(&mut self, record: &mut impl FnMut(Record<i64>)) -> bool {
        let Some(&Reverse((time, _))) = self.clock.peek() else { return false };
        self.now = time;
        while let Some(&Reverse((_, ending))) = self.clock.peek().filter(|next| next.0.0 == time) {
            self.clock.pop();
            match ending {
                Ending::Computed(worker) => self.computed(worker as usize, record),
                Ending::Arrived(slot, version) => {
                    if self.model != LinkModel::Shared || self.sharing.version(slot) == version {
                        self.arrived(slot, record);
                    }
                }
            }
        }
        self.settle();
        true
    }

    /// Transfers that wait or are under way.
    pub(super) fn under_way(&self) -> usize {
        self.transfers.len() - self.vacant.len()
    }

    fn at(&mut self, time: i64, ending: Ending) {
        self.clock.push(Reverse((time, ending)));
    }

    /// Starts all that can start now: transfers first.
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
                .share(self.now, |slot, version, end| clock.push(Reverse((end, Ending::Arrived(slot, version)))));
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
            self.at(self.now + ticks, Ending::Arrived(slot, 0));
        }
    }

    fn try_compute(&mut self, worker: usize) {
        let done = self.workers[worker].done;
        let order = self.program.order(worker);
        let waits = !self.overlap && !self.queues[worker].is_empty();
        if self.busy[worker] || waits || done == order.len {
            return;
        }
        let operation = order.at(done);
        let chunk = &self.program.chunks[operation.chunk as usize];
        let (direction, ticks) = match operation.work {
            Work::Forward => (ACTIVATIONS, chunk.forward),
            Work::Backward => (GRADIENTS, chunk.backward),
            Work::WeightGradient => (GRADIENTS, chunk.weights),
        };
        let place = self.program.workers[worker];
        let microbatch = operation.own * self.program.groups[place.stage as usize].replicas + place.replica;
        let inbox = &mut self.inboxes[operation.chunk as usize][direction];
        if operation.work != Work::WeightGradient && inbox.senders > 0 && inbox.take(microbatch).is_none() {
            return;
        }
        self.busy[worker] = true;
        self.workers[worker] = Compute {
            done,
            work: operation.work,
            chunk: operation.chunk,
            microbatch,
            start: self.now,
            computing: true,
        };
        self.at(self.now + ticks, Ending::Computed(worker as u32));
    }

    fn computed(&mut self, worker: usize, record: &mut impl FnMut(Record<i64>)) {
        let Compute { done, work, chunk, microbatch, start, .. } = self.workers[worker];
        self.workers[worker].done = done + 1;
        self.workers[worker].computing = false;
        self.free(worker as u32);
        let program = self.program;
        let sending = &program.chunks[chunk as usize];
        let (kind, direction, sends) = match work {
            Work::Forward => (EventKind::Forward, ACTIVATIONS, &sending.activations[..]),
            Work::Backward => (EventKind::Backward, GRADIENTS, &sending.gradients[..]),
            Work::WeightGradient => (EventKind::WeightGradient, GRADIENTS, &[][..]),
        };
        record(Record { worker, chunk, microbatch, index: done, kind, start, end: self.now });
        for (number, &send) in sends.iter().enumerate() {
            if send.local {
                self.deliver(send, direction, microbatch);
            } else {
                self.enqueue(worker, (chunk, direction, number), send, microbatch);
            }
        }
    }

    /// Puts a transfer that is ready now into the queues of all it needs.
    fn enqueue(&mut self, sender: usize, way: (u32, usize, usize), send: Send, microbatch: u32) {
        let (chunk, direction, number) = way;
        let receiver = self.program.worker(send.to, microbatch);
        let mut resources = match self.vacant.last() {
            Some(&slot) => std::mem::take(&mut self.transfers[slot as usize].resources),
            None => vec![],
        };
        let workers = self.workers.len() as u32;
        resources.push(workers + 2 * sender as u32 + direction as u32);
        // What takes no time keeps nobody from anything.
        if !self.overlap && self.program.ticks(send, microbatch) > 0 {
            resources.extend([sender as u32, receiver as u32]);
        }
        if self.model == LinkModel::Exclusive {
            let links = self.routes.path(way, microbatch, sender, receiver).links.into_iter().flatten();
            resources.extend(links.map(|link| 3 * workers + link));
        }
        let ready = self.now;
        let stage = self.program.chunks[chunk as usize].stage;
        let transfer = Transfer {
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
            // Only those that became ready at this moment may have to let it pass.
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
        let Transfer { sender, chunk, send, direction, microbatch, start, .. } = self.transfers[slot as usize];
        self.transfers[slot as usize].resources = resources;
        self.vacant.push(slot);
        let (kind, start) = (sending(direction, send.stage), start.unwrap_or(self.now));
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
