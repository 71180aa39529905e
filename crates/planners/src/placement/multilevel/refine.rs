//! Moves of single vertices as in Fiduccia and Mattheyses, evaluated by the load of the busiest accelerator.
//!
//! A pass moves every vertex at most once, always by the best move, even a worsening one, and keeps the best state. Two
//! kinds of moves can help: away from the busiest or an overfull accelerator, and to the busiest if this saves more
//! transfers than it adds time. Only these are considered. A counter per net and device evaluates a move in
//! `O(nets of the vertex)` for each target; the three largest loads give the new maximum at once. A vertex that joins
//! the busiest saves transfers only as the last missing pin of a net. The exclusive or of the pins is stored beside
//! each counter and yields that pin without a walk over the net. So a move takes `O(devices · pins of the busiest)`,
//! however many pins a net has.
//!
//! Sizes are counted as in [`AcceleratorMemory`], so that their sums are exact. If an accelerator is too overfull for
//! that, its sum is recomputed.
//!
//! [`AcceleratorMemory`]: plantui_core::family::placement::accelerator_memory::AcceleratorMemory

use super::level::GraphLevel;
use crate::placement::PlacementLimits;
use plantui_core::search::Search;

/// A pass ends after this many moves without a better state.
const PATIENCE: usize = 40;
/// Maximum number of passes over one level.
const PASSES: usize = 6;
/// Maximum number of counters of a state (256 MiB, with the exclusive ors).
const MOST_COUNTERS: usize = 1 << 25;
/// Relative gains below this are rounding.
const LEAST_GAIN: f64 = 1e-9;
/// Number of vertices between two checks for cancellation.
const UNTIL_ASKED: usize = 1024;

/// True if a load exceeds a bound by no more than rounding.
pub(super) fn meets(load: f64, bound: f64) -> bool {
    load <= bound * (1.0 + LEAST_GAIN)
}

/// Value of a state, compared lexicographically: bytes over the memory limits, load of the busiest device, sum of
/// squared loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StateValue {
    excess: f64,
    max_load: f64,
    squares: f64,
}

impl StateValue {
    /// Value of loads; `sizes` are those of devices with a memory limit.
    pub(super) fn of(loads: &[f64], sizes: &[f64], memory: f64) -> StateValue {
        StateValue {
            excess: sizes.iter().map(|size| (size - memory).max(0.0)).sum(),
            max_load: loads.iter().copied().fold(0.0, f64::max),
            squares: loads.iter().map(|load| load * load).sum(),
        }
    }

    /// True if memory holds and the max-load attains the lower bound `bound`.
    pub(super) fn meets(&self, bound: f64) -> bool {
        self.excess <= 0.0 && meets(self.max_load, bound)
    }

    /// True if this is better by more than rounding.
    pub(super) fn is_less(&self, than: &StateValue) -> bool {
        for (a, b) in [(self.excess, than.excess), (self.max_load, than.max_load), (self.squares, than.squares)] {
            if (a - b).abs() > LEAST_GAIN * a.max(b) {
                return a < b;
            }
        }
        false
    }
}

/// Assignment of vertices to devices with incremental costs. Device `accelerators` is the CPU.
pub(super) struct RefinementState<'a> {
    level: &'a GraphLevel,
    devices: usize,
    memory: f64,
    device: Vec<u32>,
    /// `inside[net · devices + d]`: number of pins of the net on device `d`.
    inside: Vec<u32>,
    /// Indexed as `inside`: the exclusive or of these pins.
    folded: Vec<u32>,
    /// By net: the exclusive or of all its pins.
    pins_folded: Vec<u32>,
    loads: Vec<f64>,
    sizes: Vec<f64>,
    movable: Vec<bool>,
    /// Vertices of each device, and the position of each vertex among them.
    held: Vec<Vec<u32>>,
    place: Vec<u32>,
    /// By vertex: number of the last search for a move that saw it.
    seen: Vec<u32>,
    clock: u32,
    /// Lower bound on the max-load of this level's assignments.
    bound: f64,
    /// By device: the change of its load if the current vertex joins.
    joining: Vec<f64>,
}

/// A move under evaluation.
struct VertexMove {
    vertex: usize,
    to: usize,
    left: f64,
    joined: f64,
}

impl<'a> RefinementState<'a> {
    /// State of an assignment; `bound` is a lower bound on the max-load of all assignments.
    ///
    /// # Errors
    /// The assignment itself, if the counters would take too much memory.
    pub(super) fn new(
        level: &'a GraphLevel,
        limits: &PlacementLimits,
        bound: f64,
        device: Vec<u32>,
    ) -> Result<Self, Vec<u32>> {
        let devices = limits.accelerators as usize + 1;
        if level.net_cost.len().saturating_mul(devices) > MOST_COUNTERS {
            return Err(device);
        }
        let mut state = RefinementState {
            level,
            devices,
            memory: limits.memory_bytes,
            inside: vec![0; level.net_cost.len() * devices],
            folded: vec![0; level.net_cost.len() * devices],
            pins_folded: (0..level.net_cost.len()).map(|net| fold(level.pins(net))).collect(),
            loads: vec![0.0; devices],
            sizes: vec![0.0; devices],
            movable: (0..level.len()).map(|vertex| level.forced(limits, vertex).is_none()).collect(),
            held: vec![vec![]; devices],
            place: vec![0; level.len()],
            seen: vec![0; level.len()],
            clock: 0,
            bound,
            joining: vec![0.0; devices],
            device,
        };
        state.reprice();
        Ok(state)
    }

    /// Device of every vertex.
    pub(super) fn into_devices(self) -> Vec<u32> {
        self.device
    }

    /// Recomputes all loads, so that rounding errors do not accumulate.
    fn reprice(&mut self) {
        let (level, devices) = (self.level, self.devices);
        self.inside.fill(0);
        self.folded.fill(0);
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
                self.folded[net as usize * devices + d] ^= vertex as u32;
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

    fn value(&self) -> StateValue {
        StateValue::of(&self.loads, &self.sizes[..self.devices - 1], self.memory)
    }

    /// Change of an accelerator's load when one of its vertices leaves.
    fn leaving(&self, vertex: usize, from: usize) -> f64 {
        let mut change = -self.level.time[vertex];
        for &net in self.level.nets(vertex) {
            let net = net as usize;
            let here = self.inside[net * self.devices + from];
            // A net costs nothing if all of its pins are on the device, or none.
            if here == self.level.pins(net).len() as u32 {
                change += self.level.net_cost[net];
            } else if here == 1 {
                change -= self.level.net_cost[net];
            }
        }
        change
    }

    /// Change of an accelerator's load when a vertex joins.
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

    /// Like [`RefinementState::coming`], for all accelerators at once.
    fn coming_anywhere(&mut self, vertex: usize) {
        let accelerators = self.devices - 1;
        self.joining[..accelerators].fill(self.level.time[vertex]);
        for &net in self.level.nets(vertex) {
            let net = net as usize;
            let (cost, all_but_one) = (self.level.net_cost[net], self.level.pins(net).len() as u32 - 1);
            let inside = &self.inside[net * self.devices..net * self.devices + accelerators];
            for (to, &there) in inside.iter().enumerate() {
                self.joining[to] += if there == all_but_one {
                    -cost
                } else if there == 0 {
                    cost
                } else {
                    0.0
                };
            }
        }
    }

    /// Makes a move whose new loads are known.
    fn make(&mut self, &VertexMove { vertex, to, left, joined }: &VertexMove) {
        let from = self.device[vertex] as usize;
        (self.loads[from], self.loads[to]) = (left, joined);
        for &net in self.level.nets(vertex) {
            let row = net as usize * self.devices;
            self.inside[row + from] -= 1;
            self.inside[row + to] += 1;
            self.folded[row + from] ^= vertex as u32;
            self.folded[row + to] ^= vertex as u32;
        }
        let at = self.place[vertex] as usize;
        self.held[from].swap_remove(at);
        if let Some(&moved) = self.held[from].get(at) {
            self.place[moved as usize] = at as u32;
        }
        self.place[vertex] = self.held[to].len() as u32;
        self.held[to].push(vertex as u32);
        self.device[vertex] = to as u32;
        self.sizes[to] += self.level.size[vertex];
        if self.sizes[from] > 2.0 * self.memory {
            self.sizes[from] = self.held[from].iter().map(|&vertex| self.level.size[vertex as usize]).sum();
        } else {
            self.sizes[from] -= self.level.size[vertex];
        }
    }

    /// Runs passes until one gains nothing, or the bound is attained.
    pub(super) fn refine(&mut self, search: &Search) {
        for _ in 0..PASSES {
            if self.value().meets(self.bound) || search.cancelled() || !self.pass(search) {
                return;
            }
        }
    }

    /// Moves vertices, always by the best move, and keeps the best state. True if it is better than before.
    fn pass(&mut self, search: &Search) -> bool {
        let mut locked: Vec<bool> = self.movable.iter().map(|movable| !movable).collect();
        let mut best = (self.value(), 0);
        let mut made: Vec<(usize, u32)> = vec![];
        while made.len() < best.1 + PATIENCE && !search.cancelled() {
            let Some(found) = self.best_move(&locked, search) else { break };
            made.push((found.vertex, self.device[found.vertex]));
            self.make(&found);
            locked[found.vertex] = true;
            let value = self.value();
            if value.is_less(&best.0) {
                best = (value, made.len());
                if value.meets(self.bound) {
                    break;
                }
            }
        }
        for &(vertex, from) in made[best.1..].iter().rev() {
            self.device[vertex] = from;
        }
        self.reprice();
        best.1 > 0
    }

    /// Move to the least value; `None` if no move is left or the search was cancelled.
    fn best_move(&mut self, locked: &[bool], search: &Search) -> Option<VertexMove> {
        let accelerators = self.devices - 1;
        let mut looked_at = 0;
        let mut stopped = move || {
            looked_at += 1;
            looked_at % UNTIL_ASKED == 0 && search.cancelled()
        };
        let busiest = (0..accelerators).fold(0, |best, d| if self.loads[d] > self.loads[best] { d } else { best });
        let around = LargestLoads::of(self);
        let mut best: Option<(StateValue, VertexMove)> = None;
        let mut look = |state: &RefinementState<'_>, candidate: VertexMove| {
            let rejected = |(known, _): &(StateValue, VertexMove)| {
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
                if stopped() {
                    return None;
                }
                if locked[vertex] {
                    continue;
                }
                let left = self.loads[from] + self.leaving(vertex, from);
                self.coming_anywhere(vertex);
                for to in (0..accelerators).filter(|&to| to != from) {
                    look(self, VertexMove { vertex, to, left, joined: self.loads[to] + self.joining[to] });
                }
            }
        }
        for vertex in self.near(busiest, locked, &mut stopped)? {
            let joined = self.loads[busiest] + self.coming(vertex, busiest);
            if joined < self.loads[busiest] {
                let from = self.device[vertex] as usize;
                let left = self.loads[from] + self.leaving(vertex, from);
                look(self, VertexMove { vertex, to: busiest, left, joined });
            }
        }
        best.map(|(_, candidate)| candidate)
    }

    /// Vertices of other accelerators that are the only missing pin of some net on `device`, without duplicates. `None`
    /// if `stopped`.
    fn near(&mut self, device: usize, locked: &[bool], stopped: &mut impl FnMut() -> bool) -> Option<Vec<usize>> {
        self.clock += 1;
        let mut near = vec![];
        for &vertex in &self.held[device] {
            if stopped() {
                return None;
            }
            for &net in self.level.nets(vertex as usize) {
                let (net, at) = (net as usize, net as usize * self.devices + device);
                if self.inside[at] + 1 != self.level.pins(net).len() as u32 {
                    continue;
                }
                let missing = (self.pins_folded[net] ^ self.folded[at]) as usize;
                let fresh = std::mem::replace(&mut self.seen[missing], self.clock) != self.clock;
                if fresh && self.device[missing] as usize + 1 < self.devices && !locked[missing] {
                    near.push(missing);
                }
            }
        }
        Some(near)
    }
}

/// Exclusive or of pins.
fn fold(pins: &[u32]) -> u32 {
    pins.iter().fold(0, |folded, pin| folded ^ pin)
}

/// Values that all compared moves share.
struct LargestLoads {
    /// Three largest loads with their devices, descending.
    largest: [(f64, usize); 3],
    squares: f64,
    excess: f64,
}

impl LargestLoads {
    fn of(state: &RefinementState<'_>) -> Self {
        let mut largest = [(f64::NEG_INFINITY, usize::MAX); 3];
        for (d, &load) in state.loads.iter().enumerate() {
            if load > largest[2].0 {
                largest[2] = (load, d);
                largest.sort_by(|a, b| b.0.total_cmp(&a.0));
            }
        }
        let StateValue { excess, squares, .. } = state.value();
        LargestLoads { largest, squares, excess }
    }

    fn value(&self, state: &RefinementState<'_>, candidate: &VertexMove) -> StateValue {
        let &VertexMove { vertex, to, left, joined } = candidate;
        let from = state.device[vertex] as usize;
        let others = self.largest.iter().find(|(_, d)| *d != from && *d != to).map_or(0.0, |&(load, _)| load);
        let (before, size) = (state.loads[from].powi(2) + state.loads[to].powi(2), state.level.size[vertex]);
        let over = |bytes: f64| (bytes - state.memory).max(0.0);
        // Summed only if there is an excess, and without subtraction, so that no rounding error remains.
        let elsewhere = if self.excess > 0.0 {
            let others = (0..state.devices - 1).filter(|&d| d != from && d != to);
            others.map(|d| over(state.sizes[d])).sum()
        } else {
            0.0
        };
        StateValue {
            excess: elsewhere + over(state.sizes[from] - size) + over(state.sizes[to] + size),
            max_load: others.max(left).max(joined),
            squares: self.squares - before + left * left + joined * joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::classes::Partition;
    use plantui_core::{
        family::placement::accelerator_memory::AcceleratorMemory,
        graph::Dag,
        random::SplitMix,
        workload::{PlacementNode, placement::PlacementProfile},
    };

    fn node(accelerator_time: f64, size_bytes: f64, transfer: f64) -> PlacementNode {
        PlacementNode {
            cpu_time: 50.0,
            accelerator_time,
            supported: true,
            backward: false,
            size_bytes,
            colour_class: None,
            layer: None,
            transfer,
        }
    }

    /// Finest level of a graph in which all nodes read the first node's output.
    fn star(nodes: Vec<PlacementNode>) -> GraphLevel {
        let n = nodes.len();
        let dag = Dag::new(n, (1..n as u32).map(|v| (0, v)).collect()).unwrap();
        let profile: PlacementProfile = nodes.into();
        GraphLevel::finest(&dag, &profile, &Partition::by_colour(&profile), f64::INFINITY)
    }

    #[test]
    fn what_spares_the_busiest_its_transfers_is_near() {
        let mut random = SplitMix::new(7);
        let mut found = 0;
        for _ in 0..200 {
            let edges: Vec<(u32, u32)> =
                (0..9).flat_map(|u| (u + 1..9).map(move |v| (u, v))).filter(|_| random.unit() < 0.2).collect();
            let profile: PlacementProfile = (0..9).map(|_| node(1.0, 1.0, 8.0)).collect::<Vec<_>>().into();
            let dag = Dag::new(9, edges).unwrap();
            let level = GraphLevel::finest(&dag, &profile, &Partition::by_colour(&profile), f64::INFINITY);
            let limits = PlacementLimits { accelerators: 2, cpus: 1, memory_bytes: 9.0 };
            let device = (0..9).map(|_| (random.unit() * 3.0) as u32).collect();
            let mut state = RefinementState::new(&level, &limits, 0.0, device).unwrap_or_else(|_| unreachable!());
            for _ in 0..4 {
                let near = state.near(0, &[false; 9], &mut || false).unwrap();
                for vertex in (0..9).filter(|&vertex| state.device[vertex] == 1) {
                    if state.coming(vertex, 0) < 0.0 {
                        assert!(near.contains(&vertex), "{vertex} of {near:?}, {:?}", state.device);
                        found += 1;
                    }
                }
                let vertex = random.below(9);
                if state.device[vertex] < 2 {
                    let to = 1 - state.device[vertex] as usize;
                    state.make(&VertexMove { vertex, to, left: 0.0, joined: 0.0 });
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn a_search_that_is_cancelled_ends_within_a_move() {
        let level = star((0..3 * UNTIL_ASKED).map(|v| node(1.0, 1.0, if v == 0 { 1.0 } else { 0.0 })).collect());
        let limits = PlacementLimits { accelerators: 2, cpus: 0, memory_bytes: 1e9 };
        let mut state =
            RefinementState::new(&level, &limits, 0.0, vec![0; level.len()]).unwrap_or_else(|_| unreachable!());
        let (search, locked) = (Search::default(), vec![false; level.len()]);
        assert!(state.best_move(&locked, &search).is_some());
        search.cancel();
        assert!(state.best_move(&locked, &search).is_none());
    }

    #[test]
    fn what_leaves_an_overfull_accelerator_leaves_nothing_behind() {
        let profile: PlacementProfile =
            (0..300).map(|v| node(1.0, 0.1 + f64::from(v % 7) / 10.0, 0.0)).collect::<Vec<_>>().into();
        let room = AcceleratorMemory::new(&profile, 0.9);
        let level = star(room.profile(&profile).nodes.clone());
        let limits = PlacementLimits { accelerators: 2, cpus: 0, memory_bytes: room.limit_bytes() };
        let mut state = RefinementState::new(&level, &limits, 0.0, vec![0; 300]).unwrap_or_else(|_| unreachable!());
        for vertex in 0..299 {
            state.make(&VertexMove { vertex, to: 1, left: 0.0, joined: 0.0 });
        }
        assert_eq!(state.sizes[0], level.size[299]);
        state.make(&VertexMove { vertex: 299, to: 1, left: 0.0, joined: 0.0 });
        assert_eq!(state.sizes[0], 0.0);
    }

    #[test]
    fn moves_are_priced_as_a_fresh_count_prices_them() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)];
        let node = |v: usize| node(10.0 + v as f64, 1.0, 8.0 / (v + 1) as f64);
        let profile: PlacementProfile = (0..8).map(node).collect::<Vec<_>>().into();
        let dag = Dag::new(8, edges.to_vec()).unwrap();
        let level = GraphLevel::finest(&dag, &profile, &Partition::by_colour(&profile), f64::INFINITY);
        let limits = PlacementLimits { accelerators: 3, cpus: 0, memory_bytes: 3.0 };
        let mut state =
            RefinementState::new(&level, &limits, 0.0, vec![0, 1, 2, 0, 1, 2, 0, 1]).unwrap_or_else(|_| unreachable!());
        for (vertex, to) in [(0, 1), (3, 2), (5, 0), (0, 2), (7, 0), (4, 0)] {
            let from = state.device[vertex] as usize;
            let (left, joined) =
                (state.loads[from] + state.leaving(vertex, from), state.loads[to] + state.coming(vertex, to));
            state.coming_anywhere(vertex);
            assert!((state.joining[to] - state.coming(vertex, to)).abs() < 1e-9);
            let candidate = VertexMove { vertex, to, left, joined };
            let expected = LargestLoads::of(&state).value(&state, &candidate);
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
