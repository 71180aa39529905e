//! Decision problem: is there a mapping on which no communication takes longer than a target?
//!
//! Depth-first search over workers. Each worker has a domain of devices, as bits. The worker with the smallest domain
//! is placed next (ties: the larger demand). Its neighbours keep the devices with enough bandwidth for their traffic. A
//! group with an all-reduce must lie where a ring of its width can exist: in one component of the threshold graph,
//! without dead ends. Among devices with equal bandwidths to all others, only one is tried; likewise among empty
//! machines of the same kind. Loads of shared channels are summed as workers are placed; a ring is checked when it is
//! complete.
//!
//! A node of the search takes `O((workers + degree) · devices / 64)`. Memory is `O(workers² · devices / 64)`, besides
//! that of [`Reachability`]. The number of nodes is limited, so that the answer is the same on every machine.

use super::{MappingCost, MappingInstance, reach::Reachability};
use crate::{random::SplitMix, search::Search};

/// Result of a search for one target.
#[derive(Debug, Clone, PartialEq)]
pub enum Feasibility {
    /// A mapping was found.
    Mapping(Vec<usize>, MappingCost),
    /// Proven infeasible: every possibility was tried.
    Proved,
    /// Not found within the node budget, or the search was cancelled.
    Budget,
}

/// Order in which devices are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceOrder {
    /// By number.
    Ascending,
    /// Random, with this seed.
    Random(u64),
}

/// State of a search for one target.
pub(super) struct FeasibilitySearch<'a, 'b> {
    instance: &'b MappingInstance<'a>,
    target: f64,
    words: usize,
    reach: &'b Reachability,
    /// By flow: the narrowest sufficient width.
    narrowest: Vec<f64>,
    /// By group and device: the component in which the device can be part of a ring, `None` if it cannot. Then by group
    /// and component: the bits of its devices.
    parts: Vec<Vec<Option<usize>>>,
    part_bits: Vec<Vec<Vec<u64>>>,
    demand: Vec<f64>,
    twins: Vec<usize>,
    alike_machines: bool,
    order: DeviceOrder,
    nodes: u64,
    /// True if a group is too large for an exact ring.
    unsure: bool,
}

/// Variables of the depth-first search.
struct FeasibilityState {
    /// Bits of the domains, by depth, worker and word.
    domains: Vec<Vec<u64>>,
    devices: Vec<usize>,
    load: Vec<f64>,
    /// Number of workers on each machine.
    machine_workers: Vec<u32>,
    used: Vec<bool>,
}

impl<'a, 'b> FeasibilitySearch<'a, 'b> {
    pub(super) fn new(instance: &'b MappingInstance<'a>, target: f64, order: DeviceOrder, budget: u64) -> Self {
        let (devices, workers) = (instance.devices(), instance.workers());
        let words = devices.div_ceil(64);
        // Tolerance for rounding: a target is itself a quotient of bytes and width.
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
        FeasibilitySearch {
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

    /// Runs the search.
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
        let mut state = FeasibilityState {
            domains: vec![vec![0; workers * self.words]; workers + 1],
            devices: vec![usize::MAX; workers],
            load: vec![0.0; self.instance.routes.as_ref().map_or(0, |_| self.instance.topology.channels())],
            machine_workers: vec![0; self.instance.topology.machines().sizes().len()],
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

    /// Places the remaining workers; `None` if the budget ran out or the search was cancelled.
    fn place(&mut self, state: &mut FeasibilityState, depth: usize, search: &Search) -> Option<bool> {
        let workers = self.instance.workers();
        if depth == workers {
            return Some(self.instance.cost(&state.devices).seconds <= self.target);
        }
        if self.nodes == 0 || (self.nodes.is_multiple_of(64) && search.cancelled()) {
            return None;
        }
        self.nodes -= 1;
        let domain = |state: &FeasibilityState, worker: usize| -> u32 {
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
        if let DeviceOrder::Random(seed) = self.order {
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

    /// True if an equivalent device was already tried. Else the device is recorded as tried.
    fn stands_for_another(&self, state: &FeasibilityState, device: usize, tried: &mut Vec<usize>) -> bool {
        if tried.contains(&self.twins[device]) {
            return true;
        }
        if self.alike_machines {
            // One empty machine stands for all empty machines.
            let machines = self.instance.topology.machines();
            let machine = self.instance.topology.machine_of(device);
            if state.machine_workers[machine] == 0 {
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

    /// Places a worker and narrows its neighbours' domains. Returns the previous loads of channels; `None` if the
    /// target is violated.
    fn sit(&self, state: &mut FeasibilityState, depth: usize, worker: usize, device: usize) -> Option<Vec<(u32, f64)>> {
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
        state.machine_workers[self.instance.topology.machine_of(device)] += 1;
        let mut before = vec![];
        let ok = self.carry(state, worker, device, &mut before) && self.rings_hold(state, worker);
        if !ok {
            self.rise(state, worker, device, &before);
            return None;
        }
        Some(before)
    }

    /// Adds a worker's traffic with placed workers to the channels; false if a channel exceeds the target. The previous
    /// loads are kept, because subtracting a load would leave a rounding error.
    fn carry(&self, state: &mut FeasibilityState, worker: usize, device: usize, before: &mut Vec<(u32, f64)>) -> bool {
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
                // Sums depend on the order of their terms; the final check is exact.
                if *load > self.target * (1.0 + 1e-9) {
                    return false;
                }
            }
        }
        true
    }

    /// True if the rings completed by this worker are wide enough.
    fn rings_hold(&self, state: &FeasibilityState, worker: usize) -> bool {
        self.instance.groups_of[worker].iter().all(|&index| {
            let group = &self.instance.demands.groups[index];
            let whole = group.workers.iter().all(|&other| state.devices[other] != usize::MAX);
            !whole || group.bytes / self.instance.ring(group, &state.devices).width <= self.target
        })
    }

    /// Undoes the last placement.
    fn rise(&self, state: &mut FeasibilityState, worker: usize, device: usize, before: &[(u32, f64)]) {
        state.devices[worker] = usize::MAX;
        state.used[device] = false;
        state.machine_workers[self.instance.topology.machine_of(device)] -= 1;
        for &(channel, load) in before.iter().rev() {
            state.load[channel as usize] = load;
        }
    }
}

/// By device: the component in which it can be part of a ring of `size` devices; and the bits of every component. Only
/// pairs that are wide enough count: both ways for two devices, without dead ends for more.
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
