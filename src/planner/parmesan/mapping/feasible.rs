//! Is there a mapping on which no communication takes longer than a target?
//!
//! Depth-first over workers with a domain of devices each, as bits: who has the fewest devices left is placed next (of
//! several the one with the larger demand), and its neighbours keep the devices that are wide enough for what they
//! exchange. A group that reduces must lie where rings of its width can be: in one part of the threshold graph without dead
//! ends. Devices that are alike in all they reach count once, as do machines that nobody sits on yet. Loads of shared
//! channels are added up as workers are placed; rings are checked when they are whole.
//!
//! `O((workers + degree) · devices / 64)` for a node of the search, `O(workers² · devices / 64)` memory, beside that of
//! [`Reach`]. At most a number of nodes is looked at, so that the answer is the same on every machine.

use super::{Cost, Instance, reach::Reach};
use crate::planner::{Search, random::SplitMix};

/// How a search for a target ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Feasibility {
    /// There is one.
    Mapping(Vec<usize>, Cost),
    /// There is none: every possibility was looked at.
    Proved,
    /// It was not found within the budget of nodes, or somebody stopped the search.
    Budget,
}

/// The order in which devices are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By number.
    Ascending,
    /// At random, by this seed.
    Random(u64),
}

/// A search under way.
pub(super) struct Feasible<'a, 'b> {
    instance: &'b Instance<'a>,
    target: f64,
    words: usize,
    reach: &'b Reach,
    /// By flow: the narrowest width that is enough for it.
    narrowest: Vec<f64>,
    /// By group: by device, the bits of the part that it may form a ring in; none where it may not.
    parts: Vec<Vec<Option<usize>>>,
    part_bits: Vec<Vec<Vec<u64>>>,
    demand: Vec<f64>,
    twins: Vec<usize>,
    alike_machines: bool,
    order: Order,
    nodes: u64,
    /// Whether a group is too large for its ring to be decided exactly.
    unsure: bool,
}

/// What changes on the way.
struct State {
    /// By depth, worker, word.
    domains: Vec<Vec<u64>>,
    devices: Vec<usize>,
    load: Vec<f64>,
    /// Workers on each machine.
    sitting: Vec<u32>,
    used: Vec<bool>,
}

impl<'a, 'b> Feasible<'a, 'b> {
    pub(super) fn new(instance: &'b Instance<'a>, target: f64, order: Order, budget: u64) -> Self {
        let (devices, workers) = (instance.devices(), instance.workers());
        let words = devices.div_ceil(64);
        // What comes out of a division comes out of the same one again, but for this.
        let target = target * (1.0 + 1e-12);
        let reach = instance.reach();
        let mut demand = vec![0.0; workers];
        for flow in &instance.demands.flows {
            demand[flow.from] += flow.bytes;
            demand[flow.to] += flow.bytes;
        }
        let (mut parts, mut part_bits) = (vec![], vec![]);
        let mut unsure = false;
        for group in &instance.demands.groups {
            unsure |= group.workers.len() > 9;
            group.workers.iter().for_each(|&worker| demand[worker] += group.bytes);
            let wide = |a: usize, b: usize| group.bytes / instance.matrix.at(a, b) <= target;
            let (part, bits) = ring_parts(wide, devices, words, group.workers.len());
            parts.push(part);
            part_bits.push(bits);
        }
        Feasible {
            instance,
            target,
            words,
            narrowest: instance.demands.flows.iter().map(|flow| reach.narrowest(flow.bytes, target)).collect(),
            reach,
            parts,
            part_bits,
            demand,
            twins: instance.twins(),
            alike_machines: instance.routes.is_none() && instance.topology.machines_alike(),
            order,
            nodes: budget,
            unsure,
        }
    }

    /// Searches.
    pub(super) fn run(&mut self, search: &Search) -> Feasibility {
        let (devices, workers) = (self.instance.devices(), self.instance.workers());
        if workers > devices {
            return Feasibility::Proved;
        }
        let mut full = vec![u64::MAX; self.words];
        if !devices.is_multiple_of(64) {
            full[self.words - 1] = (1 << (devices % 64)) - 1;
        }
        let mut first: Vec<u64> = full.repeat(workers);
        for worker in 0..workers {
            for &group in &self.instance.groups_of[worker] {
                let mut bits = vec![0u64; self.words];
                for part in &self.part_bits[group] {
                    bits.iter_mut().zip(part).for_each(|(bits, part)| *bits |= part);
                }
                let own = &mut first[worker * self.words..(worker + 1) * self.words];
                own.iter_mut().zip(bits).for_each(|(own, bits)| *own &= bits);
            }
        }
        let mut state = State {
            domains: vec![vec![0; workers * self.words]; workers + 1],
            devices: vec![usize::MAX; workers],
            load: vec![0.0; self.instance.routes.as_ref().map_or(0, |_| self.instance.topology.channels())],
            sitting: vec![0; self.instance.topology.machines().sizes().len()],
            used: vec![false; devices],
        };
        state.domains[0] = first;
        match self.place(&mut state, 0, search) {
            Some(true) => {
                let cost = self.instance.cost(&state.devices);
                Feasibility::Mapping(state.devices, cost)
            }
            Some(false) if !self.unsure => Feasibility::Proved,
            _ => Feasibility::Budget,
        }
    }

    /// Places the workers that are left; `None` if the budget ran out.
    fn place(&mut self, state: &mut State, depth: usize, search: &Search) -> Option<bool> {
        let workers = self.instance.workers();
        if depth == workers {
            return Some(self.instance.cost(&state.devices).seconds <= self.target);
        }
        if self.nodes == 0 || (self.nodes.is_multiple_of(64) && search.cancelled()) {
            return None;
        }
        self.nodes -= 1;
        let domain = |state: &State, worker: usize| -> u32 {
            let bits = &state.domains[depth][worker * self.words..(worker + 1) * self.words];
            bits.iter().map(|word| word.count_ones()).sum()
        };
        let mut next: Option<(u32, usize)> = None;
        for worker in (0..workers).filter(|&worker| state.devices[worker] == usize::MAX) {
            let left = domain(state, worker);
            if left == 0 {
                return Some(false);
            }
            let better = next.is_none_or(|(least, known)| {
                left < least || (left == least && self.demand[worker] > self.demand[known])
            });
            if better {
                next = Some((left, worker));
            }
        }
        let Some((_, worker)) = next else { return Some(false) };
        let bits = &state.domains[depth][worker * self.words..(worker + 1) * self.words];
        let mut values: Vec<usize> =
            (0..self.instance.devices()).filter(|&device| bits[device / 64] >> (device % 64) & 1 == 1).collect();
        if let Order::Random(seed) = self.order {
            SplitMix::new(seed ^ (self.nodes << 8) ^ worker as u64).shuffle(&mut values);
        }
        let mut whole = Some(false);
        let mut tried: Vec<usize> = vec![];
        for device in values {
            if self.stands_for_another(state, device, &mut tried) {
                continue;
            }
            if let Some(before) = self.sit(state, depth, worker, device) {
                let below = self.place(state, depth + 1, search);
                if below != Some(false) {
                    if below == Some(true) {
                        return below;
                    }
                    whole = None;
                }
                self.rise(state, worker, device, &before);
                whole?;
            }
        }
        whole
    }

    /// Whether one that is alike has been tried, or will be.
    fn stands_for_another(&self, state: &State, device: usize, tried: &mut Vec<usize>) -> bool {
        if tried.contains(&self.twins[device]) {
            return true;
        }
        if self.alike_machines {
            // A machine that nobody sits on stands for all of these.
            let machines = self.instance.topology.machines();
            let machine = self.instance.topology.machine_of(device);
            if state.sitting[machine] == 0 {
                let key = self.instance.devices() + device - machines.first_of(machine) as usize;
                if tried.contains(&key) {
                    return true;
                }
                tried.push(key);
            }
        }
        tried.push(self.twins[device]);
        false
    }

    /// Seats a worker and narrows its neighbours' domains; the loads of channels before, or `None` if that cannot be.
    fn sit(&self, state: &mut State, depth: usize, worker: usize, device: usize) -> Option<Vec<(u32, f64)>> {
        let words = self.words;
        let (above, below) = state.domains.split_at_mut(depth + 1);
        let domains = &mut below[0];
        domains.copy_from_slice(&above[depth]);
        let mut keep = |other: usize, bits: &[u64]| {
            let own = &mut domains[other * words..(other + 1) * words];
            own.iter_mut().zip(bits).for_each(|(own, bits)| *own &= bits);
        };
        for &flow in &self.instance.leaving[worker] {
            keep(self.instance.demands.flows[flow].to, self.reach.from(device, self.narrowest[flow]));
        }
        for &flow in &self.instance.arriving[worker] {
            keep(self.instance.demands.flows[flow].from, self.reach.to(device, self.narrowest[flow]));
        }
        for &group in &self.instance.groups_of[worker] {
            let part = self.parts[group][device]?;
            for &other in &self.instance.demands.groups[group].workers {
                keep(other, &self.part_bits[group][part]);
            }
        }
        for other in 0..self.instance.workers() {
            domains[other * words + device / 64] &= !(1 << (device % 64));
        }
        state.devices[worker] = device;
        state.used[device] = true;
        state.sitting[self.instance.topology.machine_of(device)] += 1;
        let mut before = vec![];
        let ok = self.carry(state, worker, device, &mut before) && self.rings_hold(state, worker);
        if !ok {
            self.rise(state, worker, device, &before);
            return None;
        }
        Some(before)
    }

    /// Adds what a worker exchanges with those that are seated to the channels; false if one carries too much. What each
    /// carried before is kept: a load that is taken off again leaves its rounding behind.
    fn carry(&self, state: &mut State, worker: usize, device: usize, before: &mut Vec<(u32, f64)>) -> bool {
        let Some(routes) = &self.instance.routes else { return true };
        let demands = &self.instance.demands;
        let leaving = self.instance.leaving[worker].iter().map(|&flow| (&demands.flows[flow], true));
        let arriving = self.instance.arriving[worker].iter().map(|&flow| (&demands.flows[flow], false));
        for (flow, out) in leaving.chain(arriving) {
            let other = state.devices[if out { flow.to } else { flow.from }];
            if other == usize::MAX {
                continue;
            }
            let route = if out { routes.get(device, other) } else { routes.get(other, device) };
            for &channel in &route.channels {
                let load = &mut state.load[channel as usize];
                before.push((channel, *load));
                *load += flow.bytes / self.instance.topology.channel_bandwidth(channel);
                // Sums differ by rounding in the order of their parts; the last look is exact.
                if *load > self.target * (1.0 + 1e-9) {
                    return false;
                }
            }
        }
        true
    }

    /// Whether the rings that this worker completes are wide enough.
    fn rings_hold(&self, state: &State, worker: usize) -> bool {
        self.instance.groups_of[worker].iter().all(|&index| {
            let group = &self.instance.demands.groups[index];
            let whole = group.workers.iter().all(|&other| state.devices[other] != usize::MAX);
            !whole || group.bytes / self.instance.ring(group, &state.devices).width <= self.target
        })
    }

    /// Takes back the worker that was seated last.
    fn rise(&self, state: &mut State, worker: usize, device: usize, before: &[(u32, f64)]) {
        state.devices[worker] = usize::MAX;
        state.used[device] = false;
        state.sitting[self.instance.topology.machine_of(device)] -= 1;
        for &(channel, load) in before.iter().rev() {
            state.load[channel as usize] = load;
        }
    }
}

/// By device the part of the devices that it may form a ring of so many in, over pairs that are wide enough, and the bits of
/// every part: joined both ways for two, without dead ends for more.
fn ring_parts(
    wide: impl Fn(usize, usize) -> bool,
    devices: usize,
    words: usize,
    size: usize,
) -> (Vec<Option<usize>>, Vec<Vec<u64>>) {
    let joined = |a: usize, b: usize| if size == 2 { wide(a, b) && wide(b, a) } else { wide(a, b) || wide(b, a) };
    let least = if size == 2 { 1 } else { 2 };
    let mut inside = vec![true; devices];
    loop {
        let dead =
            |a: &usize| inside[*a] && (0..devices).filter(|&b| b != *a && inside[b] && joined(*a, b)).count() < least;
        let dead: Vec<usize> = (0..devices).filter(dead).collect();
        if dead.is_empty() {
            break;
        }
        dead.into_iter().for_each(|a| inside[a] = false);
    }
    let mut part = vec![None; devices];
    let mut bits: Vec<Vec<u64>> = vec![];
    for start in 0..devices {
        if !inside[start] || part[start].is_some() {
            continue;
        }
        let number = bits.len();
        let mut own = vec![0u64; words];
        let mut stack = vec![start];
        part[start] = Some(number);
        let mut count = 0;
        while let Some(a) = stack.pop() {
            own[a / 64] |= 1 << (a % 64);
            count += 1;
            for b in 0..devices {
                if inside[b] && part[b].is_none() && joined(a, b) {
                    part[b] = Some(number);
                    stack.push(b);
                }
            }
        }
        if count < size {
            own = vec![0; words];
        }
        bits.push(own);
    }
    (part, bits)
}
