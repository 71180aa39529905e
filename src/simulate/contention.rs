//! Runs in which things wait for one another: transfers for links, or for the devices at both their ends.
//!
//! Whoever was ready first goes first, so what runs next depends on when things end, and events are played by the clock. A
//! transfer needs its sender's engine; without overlap also the compute of both ends; with exclusive links also those on its
//! way. Each of these has a queue in the one global order in which transfers became ready, and a transfer starts when it is
//! at the head of all its queues and everything is free. A device with a transfer in its queue starts no new computation.
//! So the first of all pending transfers always gets what it needs as soon as what runs now has ended, and no run gets
//! stuck. The surprising decision is that reservation: without it transfers between two busy devices starve.
//!
//! Links are those between pairs of stages, one for each direction, which all replicas of the pair share; where the plan is
//! laid out over machines, transfers between machines use the ports of these instead, out of one and into the other. A lone
//! transfer fills its links; the fair share of several is max-min ([`super::sharing`]).
//!
//! `O(log n)` for each of `n` events, with fair shares also the transfers joined by links; memory for what is under way.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use super::{
    EventKind, LinkModel, Pipeline,
    order::{Operation, Work},
    program::{Program, Send},
    run::{ACTIVATIONS, GRADIENTS, Inbox, Record, sending},
    sharing::Sharing,
};

/// What a moment of the clock brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    /// A worker's computation.
    Computed(u32),
    /// A transfer, by its slot; of this version of its share of the links.
    Arrived(u32, u32),
}

/// A transfer that waits or is under way.
#[derive(Debug, Clone)]
struct Transfer {
    sender: usize,
    receiver: usize,
    chunk: u32,
    send: Send,
    direction: usize,
    microbatch: u32,
    start: i64,
    /// What it takes for itself.
    resources: Vec<u32>,
}

/// A worker's compute.
#[derive(Debug, Clone, Copy)]
struct Compute {
    done: u64,
    operation: Operation,
    start: i64,
}

struct Contention<'a, F> {
    program: &'a Program,
    record: F,
    overlap: bool,
    model: LinkModel,
    now: i64,
    workers: Vec<Compute>,
    inboxes: Vec<[Inbox<i64>; 2]>,
    /// Waiting transfers of every resource: the compute of each worker, its two send engines, the links.
    queues: Vec<VecDeque<u32>>,
    busy: Vec<bool>,
    transfers: Vec<Transfer>,
    vacant: Vec<u32>,
    /// What ends at the same time is taken by worker, so of transfers that are ready together the first worker's goes first.
    clock: BinaryHeap<Reverse<(i64, Ending)>>,
    sharing: Sharing,
    routes: Routes,
    /// Resources whose first transfer may be able to start, and workers that may be able to compute.
    stirred: Vec<u32>,
    woken: Vec<usize>,
}

/// Moments between two looks at whether to go on.
const PATIENCE: u32 = 1 << 12;

/// Plays the whole batch, unless `stopped` says that nobody waits for it any more; whether it came to its end.
pub(super) fn play(
    pipeline: &Pipeline,
    program: &Program,
    stopped: &dyn Fn() -> bool,
    record: impl FnMut(Record<i64>),
) -> bool {
    let workers = program.workers.len();
    let first_link = 3 * workers as u32;
    let routes = Routes::new(pipeline, program);
    let idle = Compute { done: 0, operation: Operation { work: Work::Forward, chunk: 0, own: 0 }, start: 0 };
    let mut run = Contention {
        program,
        record,
        overlap: pipeline.settings.overlap,
        model: pipeline.settings.links,
        now: 0,
        workers: vec![idle; workers],
        inboxes: program.senders().into_iter().map(|senders| senders.map(Inbox::new)).collect(),
        queues: vec![VecDeque::new(); (first_link + routes.links) as usize],
        busy: vec![false; (first_link + routes.links) as usize],
        transfers: vec![],
        vacant: vec![],
        clock: BinaryHeap::new(),
        sharing: Sharing::new(routes.links as usize),
        routes,
        stirred: vec![],
        woken: (0..workers).rev().collect(),
    };
    run.settle();
    let mut moments = 0u32;
    while let Some(&Reverse((time, _))) = run.clock.peek() {
        moments = moments.wrapping_add(1);
        if moments.is_multiple_of(PATIENCE) && stopped() {
            return false;
        }
        run.now = time;
        while let Some(&Reverse((_, ending))) = run.clock.peek().filter(|next| next.0.0 == time) {
            run.clock.pop();
            match ending {
                Ending::Computed(worker) => run.computed(worker as usize),
                Ending::Arrived(slot, version) => {
                    if run.model != LinkModel::Shared || run.sharing.version(slot) == version {
                        run.arrived(slot);
                    }
                }
            }
        }
        run.settle();
    }
    true
}

impl<F: FnMut(Record<i64>)> Contention<'_, F> {
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
    }

    fn try_transfer(&mut self, resource: u32) {
        let Some(&slot) = self.queues[resource as usize].front() else { return };
        let transfer = &mut self.transfers[slot as usize];
        let ready = |&r: &u32| !self.busy[r as usize] && self.queues[r as usize].front() == Some(&slot);
        if !transfer.resources.iter().all(ready) {
            return;
        }
        transfer.start = self.now;
        for &resource in &transfer.resources {
            self.queues[resource as usize].pop_front();
            self.busy[resource as usize] = true;
        }
        let ticks = transfer.send.ticks;
        if self.model == LinkModel::Shared {
            let links = self.routes.of(transfer.chunk, transfer.send.to, transfer.sender, transfer.receiver);
            self.sharing.join(slot, links, ticks, self.now);
            self.retime();
        } else {
            self.at(self.now + ticks, Ending::Arrived(slot, 0));
        }
    }

    /// Puts the ends of transfers whose share of the links has changed into the clock.
    fn retime(&mut self) {
        while let Some((slot, version, end)) = self.sharing.changed() {
            self.at(end, Ending::Arrived(slot, version));
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
        let microbatch = self.microbatch(worker, operation.own);
        let inbox = &mut self.inboxes[operation.chunk as usize][direction];
        if operation.work != Work::WeightGradient && inbox.senders > 0 && inbox.take(microbatch).is_none() {
            return;
        }
        self.busy[worker] = true;
        self.workers[worker] = Compute { done, operation, start: self.now };
        self.at(self.now + ticks, Ending::Computed(worker as u32));
    }

    fn microbatch(&self, worker: usize, own: u32) -> u32 {
        let place = self.program.workers[worker];
        own * self.program.groups[place.stage as usize].replicas + place.replica
    }

    fn computed(&mut self, worker: usize) {
        let Compute { done, operation, start } = self.workers[worker];
        self.workers[worker].done = done + 1;
        self.free(worker as u32);
        let microbatch = self.microbatch(worker, operation.own);
        let chunk = &self.program.chunks[operation.chunk as usize];
        let (kind, direction, sends) = match operation.work {
            Work::Forward => (EventKind::Forward, ACTIVATIONS, &chunk.activations[..]),
            Work::Backward => (EventKind::Backward, GRADIENTS, &chunk.gradients[..]),
            Work::WeightGradient => (EventKind::WeightGradient, GRADIENTS, &[][..]),
        };
        let end = self.now;
        (self.record)(Record { worker, chunk: operation.chunk, microbatch, index: done, kind, start, end });
        for &send in sends {
            if send.local {
                self.deliver(send, direction, microbatch);
            } else {
                self.enqueue(worker, operation.chunk, send, direction, microbatch);
            }
        }
    }

    fn enqueue(&mut self, sender: usize, chunk: u32, send: Send, direction: usize, microbatch: u32) {
        let receiver = self.program.worker(send.to, microbatch);
        let mut resources = match self.vacant.last() {
            Some(&slot) => std::mem::take(&mut self.transfers[slot as usize].resources),
            None => vec![],
        };
        let workers = self.workers.len() as u32;
        resources.clear();
        resources.push(workers + 2 * sender as u32 + direction as u32);
        // What takes no time keeps nobody from anything.
        if !self.overlap && send.ticks > 0 {
            resources.extend([sender as u32, receiver as u32]);
        }
        if self.model == LinkModel::Exclusive {
            let links = self.routes.of(chunk, send.to, sender, receiver);
            resources.extend(links.iter().map(|link| 3 * workers + link));
        }
        let transfer = Transfer { sender, receiver, chunk, send, direction, microbatch, start: 0, resources };
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
            self.queues[resource as usize].push_back(slot);
        }
        self.stirred.push(self.transfers[slot as usize].resources[0]);
    }

    fn arrived(&mut self, slot: u32) {
        if self.model == LinkModel::Shared {
            self.sharing.leave(slot, self.now);
            self.retime();
        }
        let resources = std::mem::take(&mut self.transfers[slot as usize].resources);
        resources.iter().for_each(|&resource| self.free(resource));
        let Transfer { sender, chunk, send, direction, microbatch, start, .. } = self.transfers[slot as usize];
        self.transfers[slot as usize].resources = resources;
        self.vacant.push(slot);
        let kind = sending(direction, send.stage);
        (self.record)(Record { worker: sender, chunk, microbatch, index: 0, kind, start, end: self.now });
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

/// Which links a transfer runs over.
struct Routes {
    /// By sending and receiving chunk's stages: the link of the pair.
    pairs: BTreeMap<(u32, u32), [u32; 1]>,
    /// By sending and receiving worker: the ports of machines, where they lie on different ones.
    ports: BTreeMap<(u32, u32), Vec<u32>>,
    stage_of: Vec<u32>,
    links: u32,
}

impl Routes {
    fn new(pipeline: &Pipeline, program: &Program) -> Self {
        let machines: Vec<Vec<u32>> = (0..program.workers.len()).map(|w| machines(pipeline, program, w)).collect();
        let ports = 2 * machines.iter().flatten().max().map_or(0, |last| last + 1);
        let mut routes = Routes {
            pairs: BTreeMap::new(),
            ports: BTreeMap::new(),
            stage_of: program.chunks.iter().map(|chunk| chunk.stage).collect(),
            links: ports,
        };
        for chunk in &program.chunks {
            for send in chunk.activations.iter().chain(&chunk.gradients).filter(|send| !send.local) {
                let mut fresh = || {
                    routes.links += 1;
                    [routes.links - 1]
                };
                routes.pairs.entry((chunk.stage, send.stage)).or_insert_with(&mut fresh);
                let workers = |stage: u32| {
                    let group = &program.groups[stage as usize];
                    group.first_worker..group.first_worker + group.replicas as usize
                };
                for from in workers(chunk.stage) {
                    for to in workers(send.stage).filter(|&to| machines[from] != machines[to]) {
                        let out = machines[from].iter().map(|machine| 2 * machine);
                        let into = machines[to].iter().map(|machine| 2 * machine + 1);
                        routes.ports.insert((from as u32, to as u32), out.chain(into).collect());
                    }
                }
            }
        }
        routes
    }

    fn of(&self, chunk: u32, to_chunk: u32, sender: usize, receiver: usize) -> &[u32] {
        if !self.ports.is_empty()
            && let Some(ports) = self.ports.get(&(sender as u32, receiver as u32))
        {
            return ports;
        }
        let pair = (self.stage_of[chunk as usize], self.stage_of[to_chunk as usize]);
        self.pairs.get(&pair).map_or(&[], |link| link)
    }
}

/// The machines that a worker's devices lie on, in order; none where the plan is not laid out over machines.
fn machines(pipeline: &Pipeline, program: &Program, worker: usize) -> Vec<u32> {
    let place = program.workers[worker];
    let width = pipeline.stages[place.stage as usize].devices.max(1) as usize;
    let all = pipeline.machines.get(place.stage as usize).map_or(&[][..], Vec::as_slice);
    let from = (place.replica as usize * width).min(all.len());
    let mut own = all[from..(from + width).min(all.len())].to_vec();
    own.sort_unstable();
    own.dedup();
    own
}
