//! Moves of single vertices in the manner of Fiduccia and Mattheyses, priced by the load of the busiest accelerator.
//!
//! A pass moves every vertex once at most, always by the best move, even a bad one, and keeps the best state on the way.
//! Only what leaves the busiest or an overfull accelerator can help, or what comes to the busiest and spares it more
//! transfers than it brings time; only such moves are looked at. A counter per net and device prices a move in `O(nets of
//! the vertex)` for each target, and with the three largest loads at hand the value of a move is known at once.

use super::level::Level;
use crate::planner::{Search, placement::PlacementLimits};

/// Moves in a row without a better state after which a pass ends.
const PATIENCE: usize = 40;
/// Passes over one level.
const PASSES: usize = 6;
/// Counters that one state may have (128 MiB).
const MOST_COUNTERS: usize = 1 << 25;
/// Gains below this share are rounding.
const LEAST_GAIN: f64 = 1e-9;

/// How good a state is: bytes over the memory limits, then the busiest device, then the sum of squared loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    excess: f64,
    max_load: f64,
    squares: f64,
}

impl Value {
    /// The value of loads, and of the sizes of those that have a memory.
    pub(super) fn of(loads: &[f64], sizes: &[f64], memory: f64) -> Value {
        Value {
            excess: sizes.iter().map(|size| (size - memory).max(0.0)).sum(),
            max_load: loads.iter().copied().fold(0.0, f64::max),
            squares: loads.iter().map(|load| load * load).sum(),
        }
    }

    /// Whether this is better by more than rounding.
    pub(super) fn is_less(&self, than: &Value) -> bool {
        for (a, b) in [(self.excess, than.excess), (self.max_load, than.max_load), (self.squares, than.squares)] {
            if (a - b).abs() > LEAST_GAIN * a.max(b) {
                return a < b;
            }
        }
        false
    }
}

/// Vertices on devices, priced as they move. Device `accelerators` is the CPU.
pub(super) struct State<'a> {
    level: &'a Level,
    devices: usize,
    memory: f64,
    device: Vec<u32>,
    /// `inside[net · devices + d]`: how many pins of the net are on device `d`.
    inside: Vec<u32>,
    loads: Vec<f64>,
    sizes: Vec<f64>,
    movable: Vec<bool>,
    /// By device, its vertices, and by vertex its place among them.
    held: Vec<Vec<u32>>,
    place: Vec<u32>,
    /// By vertex, the number of the last search for a move that saw it.
    seen: Vec<u32>,
    clock: u32,
    /// By device, what a vertex would add to its load.
    joining: Vec<f64>,
}

/// A move that is looked at.
struct Candidate {
    vertex: usize,
    to: usize,
    left: f64,
    joined: f64,
}

impl<'a> State<'a> {
    /// The state of an assignment.
    ///
    /// # Errors
    /// The assignment itself, where the counters would take too much memory.
    pub(super) fn new(level: &'a Level, limits: &PlacementLimits, device: Vec<u32>) -> Result<Self, Vec<u32>> {
        let devices = limits.accelerators as usize + 1;
        if level.net_cost.len().saturating_mul(devices) > MOST_COUNTERS {
            return Err(device);
        }
        let mut state = State {
            level,
            devices,
            memory: limits.memory_bytes,
            inside: vec![0; level.net_cost.len() * devices],
            loads: vec![0.0; devices],
            sizes: vec![0.0; devices],
            movable: (0..level.len()).map(|vertex| level.forced(limits, vertex).is_none()).collect(),
            held: vec![vec![]; devices],
            place: vec![0; level.len()],
            seen: vec![0; level.len()],
            clock: 0,
            joining: vec![0.0; devices],
            device,
        };
        state.reprice();
        Ok(state)
    }

    /// The device of every vertex.
    pub(super) fn into_devices(self) -> Vec<u32> {
        self.device
    }

    /// Prices all devices afresh, so that rounding does not pile up.
    fn reprice(&mut self) {
        let (level, devices) = (self.level, self.devices);
        self.inside.fill(0);
        self.loads.fill(0.0);
        self.sizes.fill(0.0);
        self.held.iter_mut().for_each(Vec::clear);
        for (vertex, &d) in self.device.iter().enumerate() {
            let d = d as usize;
            self.loads[d] += if d + 1 == devices { level.cpu_time[vertex] } else { level.time[vertex] };
            self.sizes[d] += level.size[vertex];
            self.place[vertex] = self.held[d].len() as u32;
            self.held[d].push(vertex as u32);
            for &net in level.nets(vertex) {
                self.inside[net as usize * devices + d] += 1;
            }
        }
        for (net, inside) in self.inside.chunks_exact(devices).enumerate() {
            let pins = level.pins(net).len() as u32;
            // A CPU pays for no transfer.
            for (load, &count) in self.loads[..devices - 1].iter_mut().zip(inside) {
                if count > 0 && count < pins {
                    *load += level.net_cost[net];
                }
            }
        }
    }

    fn value(&self) -> Value {
        Value::of(&self.loads, &self.sizes[..self.devices - 1], self.memory)
    }

    /// What an accelerator's load changes by when one of its vertices leaves.
    fn leaving(&self, vertex: usize, from: usize) -> f64 {
        let mut change = -self.level.time[vertex];
        for &net in self.level.nets(vertex) {
            let net = net as usize;
            let here = self.inside[net * self.devices + from];
            // Whole nets are free, and so are absent ones.
            if here == self.level.pins(net).len() as u32 {
                change += self.level.net_cost[net];
            } else if here == 1 {
                change -= self.level.net_cost[net];
            }
        }
        change
    }

    /// What an accelerator's load changes by when a vertex comes to it.
    fn coming(&self, vertex: usize, to: usize) -> f64 {
        let mut change = self.level.time[vertex];
        for &net in self.level.nets(vertex) {
            let net = net as usize;
            let there = self.inside[net * self.devices + to];
            if there + 1 == self.level.pins(net).len() as u32 {
                change -= self.level.net_cost[net];
            } else if there == 0 {
                change += self.level.net_cost[net];
            }
        }
        change
    }

    /// As [`State::coming`], for all accelerators at once.
    fn coming_anywhere(&mut self, vertex: usize) {
        let accelerators = self.devices - 1;
        self.joining[..accelerators].fill(self.level.time[vertex]);
        for &net in self.level.nets(vertex) {
            let net = net as usize;
            let (cost, all_but_one) = (self.level.net_cost[net], self.level.pins(net).len() as u32 - 1);
            let inside = &self.inside[net * self.devices..net * self.devices + accelerators];
            for (change, &there) in self.joining.iter_mut().zip(inside) {
                *change += if there == all_but_one {
                    -cost
                } else if there == 0 {
                    cost
                } else {
                    0.0
                };
            }
        }
    }

    /// Makes a move, of which the new loads are known.
    fn make(&mut self, &Candidate { vertex, to, left, joined }: &Candidate) {
        let from = self.device[vertex] as usize;
        (self.loads[from], self.loads[to]) = (left, joined);
        self.sizes[from] -= self.level.size[vertex];
        self.sizes[to] += self.level.size[vertex];
        for &net in self.level.nets(vertex) {
            self.inside[net as usize * self.devices + from] -= 1;
            self.inside[net as usize * self.devices + to] += 1;
        }
        let at = self.place[vertex] as usize;
        self.held[from].swap_remove(at);
        if let Some(&moved) = self.held[from].get(at) {
            self.place[moved as usize] = at as u32;
        }
        self.place[vertex] = self.held[to].len() as u32;
        self.held[to].push(vertex as u32);
        self.device[vertex] = to as u32;
    }

    /// Passes until one brings nothing.
    pub(super) fn refine(&mut self, search: &Search) {
        for _ in 0..PASSES {
            if search.cancelled() || !self.pass(search) {
                return;
            }
        }
    }

    /// Moves vertices, always by the best move; keeps the best state on the way. Whether it is better than the one before.
    fn pass(&mut self, search: &Search) -> bool {
        let mut locked: Vec<bool> = self.movable.iter().map(|movable| !movable).collect();
        let mut best = (self.value(), 0);
        let mut made: Vec<(usize, u32)> = vec![];
        while made.len() < best.1 + PATIENCE && !search.cancelled() {
            let Some(found) = self.best_move(&locked) else { break };
            made.push((found.vertex, self.device[found.vertex]));
            self.make(&found);
            locked[found.vertex] = true;
            let value = self.value();
            if value.is_less(&best.0) {
                best = (value, made.len());
            }
        }
        for &(vertex, from) in made[best.1..].iter().rev() {
            self.device[vertex] = from;
        }
        self.reprice();
        best.1 > 0
    }

    /// The move to the least value.
    fn best_move(&mut self, locked: &[bool]) -> Option<Candidate> {
        let accelerators = self.devices - 1;
        let busiest = (0..accelerators).fold(0, |best, d| if self.loads[d] > self.loads[best] { d } else { best });
        let around = Around::of(self);
        let mut best: Option<(Value, Candidate)> = None;
        let mut look = |state: &State<'_>, candidate: Candidate| {
            let rejected = |(known, _): &(Value, Candidate)| {
                let most = candidate.left.max(candidate.joined);
                known.excess <= 0.0 && most > known.max_load * (1.0 + LEAST_GAIN)
            };
            if best.as_ref().is_some_and(rejected) {
                return;
            }
            let value = around.value(state, &candidate);
            if best.as_ref().is_none_or(|(least, _)| value.is_less(least)) {
                best = Some((value, candidate));
            }
        };
        for from in 0..accelerators {
            if from != busiest && self.sizes[from] <= self.memory {
                continue;
            }
            for at in 0..self.held[from].len() {
                let vertex = self.held[from][at] as usize;
                if locked[vertex] {
                    continue;
                }
                let left = self.loads[from] + self.leaving(vertex, from);
                self.coming_anywhere(vertex);
                for to in (0..accelerators).filter(|&to| to != from) {
                    look(self, Candidate { vertex, to, left, joined: self.loads[to] + self.joining[to] });
                }
            }
        }
        for vertex in self.near(busiest, locked) {
            let joined = self.loads[busiest] + self.coming(vertex, busiest);
            if joined < self.loads[busiest] {
                let from = self.device[vertex] as usize;
                let left = self.loads[from] + self.leaving(vertex, from);
                look(self, Candidate { vertex, to: busiest, left, joined });
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// Vertices of other accelerators that share a net with one of a device, each once.
    fn near(&mut self, device: usize, locked: &[bool]) -> Vec<usize> {
        self.clock += 1;
        let mut near = vec![];
        for &vertex in &self.held[device] {
            for &net in self.level.nets(vertex as usize) {
                let pins = self.level.pins(net as usize);
                if self.inside[net as usize * self.devices + device] == pins.len() as u32 {
                    continue;
                }
                for &pin in pins {
                    let (pin, on) = (pin as usize, self.device[pin as usize] as usize);
                    let fresh = std::mem::replace(&mut self.seen[pin], self.clock) != self.clock;
                    if fresh && on != device && on + 1 < self.devices && !locked[pin] {
                        near.push(pin);
                    }
                }
            }
        }
        near
    }
}

/// What is the same for all moves that are compared.
struct Around {
    /// The three largest loads with their devices, falling.
    largest: [(f64, usize); 3],
    squares: f64,
    excess: f64,
}

impl Around {
    fn of(state: &State<'_>) -> Self {
        let mut largest = [(f64::NEG_INFINITY, usize::MAX); 3];
        for (d, &load) in state.loads.iter().enumerate() {
            if load > largest[2].0 {
                largest[2] = (load, d);
                largest.sort_by(|a, b| b.0.total_cmp(&a.0));
            }
        }
        let Value { excess, squares, .. } = state.value();
        Around { largest, squares, excess }
    }

    fn value(&self, state: &State<'_>, candidate: &Candidate) -> Value {
        let &Candidate { vertex, to, left, joined } = candidate;
        let from = state.device[vertex] as usize;
        let others = self.largest.iter().find(|(_, d)| *d != from && *d != to).map_or(0.0, |&(load, _)| load);
        let (before, size) = (state.loads[from].powi(2) + state.loads[to].powi(2), state.level.size[vertex]);
        let over = |bytes: f64| (bytes - state.memory).max(0.0);
        // Added up where there is something to add, so that nothing is left of what is taken out.
        let elsewhere = if self.excess > 0.0 {
            let others = (0..state.devices - 1).filter(|&d| d != from && d != to);
            others.map(|d| over(state.sizes[d])).sum()
        } else {
            0.0
        };
        Value {
            excess: elsewhere + over(state.sizes[from] - size) + over(state.sizes[to] + size),
            max_load: others.max(left).max(joined),
            squares: self.squares - before + left * left + joined * joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::Dag,
        planner::placement::classes::Partition,
        workload::{PlacementNode, placement::PlacementProfile},
    };

    #[test]
    fn moves_are_priced_as_a_fresh_count_prices_them() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)];
        let node = |v: usize| PlacementNode {
            cpu_time: 50.0,
            accelerator_time: 10.0 + v as f64,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class: None,
            layer: None,
            transfer: 8.0 / (v + 1) as f64,
        };
        let profile: PlacementProfile = (0..8).map(node).collect::<Vec<_>>().into();
        let dag = Dag::new(8, edges.to_vec()).unwrap();
        let level = Level::finest(&dag, &profile, &Partition::by_colour(&profile), f64::INFINITY);
        let limits = PlacementLimits { accelerators: 3, cpus: 0, memory_bytes: 3.0 };
        let mut state = State::new(&level, &limits, vec![0, 1, 2, 0, 1, 2, 0, 1]).unwrap_or_else(|_| unreachable!());
        for (vertex, to) in [(0, 1), (3, 2), (5, 0), (0, 2), (7, 0), (4, 0)] {
            let from = state.device[vertex] as usize;
            let (left, joined) =
                (state.loads[from] + state.leaving(vertex, from), state.loads[to] + state.coming(vertex, to));
            state.coming_anywhere(vertex);
            assert!((state.joining[to] - state.coming(vertex, to)).abs() < 1e-9);
            let candidate = Candidate { vertex, to, left, joined };
            let expected = Around::of(&state).value(&state, &candidate);
            state.make(&candidate);
            let (loads, sizes, held) = (state.loads.clone(), state.sizes.clone(), state.held.clone());
            state.reprice();
            assert!(loads.iter().zip(&state.loads).all(|(a, b)| (a - b).abs() < 1e-9), "{loads:?} {:?}", state.loads);
            assert_eq!(sizes, state.sizes);
            let value = level.value(&state.device, &limits);
            for (a, b) in [(value.excess, expected.excess), (value.max_load, expected.max_load)] {
                assert!((a - b).abs() < 1e-9, "{value:?} {expected:?}");
            }
            for (mut kept, fresh) in held.into_iter().zip(&state.held) {
                kept.sort_unstable();
                assert_eq!(&kept, fresh);
            }
        }
    }
}
