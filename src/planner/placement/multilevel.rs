//! Multilevel partitioning of the class graph: coarsen, split what is left, refine on the way back.
//!
//! The scheme of Karypis and Kumar (*A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs*, SIAM J.
//! Sci. Comput. 1998): heavy-edge matching merges classes that exchange much until few are left; these are dealt out along
//! a topological order, and largest first; moves in the manner of Fiduccia and Mattheyses (DAC 1982), of which a pass keeps
//! its best prefix, refine every level. It takes the place of Scotch and METIS where no system package is wanted.
//!
//! What differs is the measure: partitioners balance weights and then minimise the cut, here every level is priced by the
//! load of the busiest accelerator itself, transfers included ([`ClassCosts`]), so cut and balance are traded as the
//! objective trades them. Memory comes first, as bytes over the limit. Classes that no accelerator can run go to one CPU if
//! there is one. Nothing is contiguous, nothing is proven.
//!
//! A run takes `O(levels · moves · classes · devices · nets of a class)` at worst; results depend on the seed alone.

use super::{
    DeviceKind, Placed, PlacementLimits, Split,
    baselines::scored,
    classes::{ClassGraph, Partition},
    load::ClassCosts,
    random::SplitMix,
};
use crate::{
    graph::Dag,
    planner::{Search, Status},
    workload::placement::PlacementProfile,
};

/// Coarsening stops at this many vertices per device.
const COARSEST_PER_DEVICE: usize = 8;
/// Moves in a row without a better state after which a pass ends.
const PATIENCE: usize = 40;
/// Passes over one level.
const PASSES: usize = 6;

/// The best of `runs` runs with different random matchings.
pub fn plan(dag: &Dag, profile: &PlacementProfile, limits: &PlacementLimits, runs: u32, search: &Search) -> Placed {
    if limits.accelerators == 0 {
        let note = "the partitioner places everything it can on accelerators: allow at least one".to_string();
        return Placed { notes: vec![note], ..Placed::without(Status::Infeasible) };
    }
    // More devices than nodes are of no use, but cost memory.
    let accelerators = limits.accelerators.min(dag.len() as u32);
    let limits = &PlacementLimits { accelerators, ..*limits };
    let finest = ClassGraph::new(dag, profile, &Partition::by_colour(profile)).partition;
    let mut random = SplitMix::new(search.seed());
    let mut best: Option<(Value, Vec<u32>)> = None;
    let mut levels = 0;
    for run in 0..runs.max(1) {
        if best.is_some() && search.cancelled() {
            break;
        }
        search.report_fraction(f64::from(run) / f64::from(runs.max(1)));
        let hierarchy = coarsened(dag, profile, limits, &finest, &mut random);
        levels = levels.max(hierarchy.len());
        let found = partitioned(dag, profile, limits, &hierarchy, &mut random, search);
        if best.as_ref().is_none_or(|(value, _)| found.0.is_less(value)) {
            best = Some(found);
        }
    }
    let (_, device) = best.expect("at least one run");
    let mut stages = vec![(DeviceKind::Accelerator, vec![]); accelerators as usize];
    stages.push((DeviceKind::Cpu, vec![]));
    for node in 0..dag.len() {
        stages[device[finest.class(node)] as usize].1.push(node);
    }
    stages.retain(|(_, nodes)| !nodes.is_empty());
    let mut placed = scored(dag, profile, limits, Split::from_stages(stages));
    placed.counts = vec![("classes", finest.len() as f64), ("levels", levels as f64)];
    if search.cancelled() {
        placed.status = Status::Cancelled;
    }
    placed
}

/// Partitions from the finest to the coarsest; each merges pairs of the one before.
fn coarsened(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    finest: &Partition,
    random: &mut SplitMix,
) -> Vec<Partition> {
    let few = COARSEST_PER_DEVICE * limits.accelerators as usize;
    let mut hierarchy = vec![finest.clone()];
    while let Some(last) = hierarchy.last().filter(|last| last.len() > few) {
        let pairs = matching(dag, profile, limits, last, random);
        // Where hardly anything matches, further levels only cost time.
        if pairs.len() * 20 < last.len() {
            break;
        }
        hierarchy.push(last.united(pairs));
    }
    hierarchy
}

/// Pairs of classes that exchange much, each class in one pair at most: in random order every class takes the free
/// neighbour to which most time of transfers leads.
fn matching(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    partition: &Partition,
    random: &mut SplitMix,
) -> Vec<(usize, usize)> {
    let costs = ClassCosts::new(dag, profile, partition);
    let mut neighbours: Vec<Vec<(u32, f64)>> = vec![vec![]; partition.len()];
    for (u, cost) in profile.nodes.iter().enumerate() {
        let a = partition.class(u);
        let mut readers: Vec<usize> = dag.successors(u).map(|v| partition.class(v)).filter(|&b| b != a).collect();
        readers.sort_unstable();
        readers.dedup();
        for b in readers {
            neighbours[a].push((b as u32, cost.transfer));
            neighbours[b].push((a as u32, cost.transfer));
        }
    }
    // A vertex heavier than this leaves no choice to balance with.
    let share = costs.accelerator.iter().sum::<f64>() / f64::from(limits.accelerators);
    let mut order: Vec<usize> = (0..partition.len()).collect();
    random.shuffle(&mut order);
    let mut free = vec![true; partition.len()];
    let mut pairs = vec![];
    for a in order {
        if !free[a] {
            continue;
        }
        let list = &mut neighbours[a];
        list.sort_by_key(|&(b, _)| b);
        let mut heaviest: Option<(f64, usize)> = None;
        for group in list.chunk_by(|x, y| x.0 == y.0) {
            let b = group[0].0 as usize;
            let weight: f64 = group.iter().map(|&(_, transfer)| transfer).sum();
            let fits = costs.accelerator[a] + costs.accelerator[b] <= share / 2.0
                && costs.size[a] + costs.size[b] <= limits.memory_bytes / 2.0
                && costs.supported[a] == costs.supported[b];
            if free[b] && fits && heaviest.is_none_or(|(most, _)| weight > most) {
                heaviest = Some((weight, b));
            }
        }
        if let Some((_, b)) = heaviest {
            (free[a], free[b]) = (false, false);
            pairs.push((a, b));
        }
    }
    pairs
}

/// Splits the coarsest level in several ways, refines the best down to the finest; devices by finest class.
fn partitioned(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    hierarchy: &[Partition],
    random: &mut SplitMix,
    search: &Search,
) -> (Value, Vec<u32>) {
    let coarsest = hierarchy.last().expect("there is the finest level");
    let costs = ClassCosts::new(dag, profile, coarsest);
    let starts = [along_order(dag, coarsest, &costs, limits), largest_first(&costs, limits, random)];
    let refined = starts.map(|start| {
        let mut state = State::new(&costs, limits, start);
        state.refine(search);
        (state.value(), state.device)
    });
    let [first, second] = refined;
    let (mut value, mut device) = if second.0.is_less(&first.0) { second } else { first };
    for level in (0..hierarchy.len() - 1).rev() {
        let (fine, coarse) = (&hierarchy[level], &hierarchy[level + 1]);
        let mut projected = vec![0; fine.len()];
        for node in 0..dag.len() {
            projected[fine.class(node)] = device[coarse.class(node)];
        }
        let costs = ClassCosts::new(dag, profile, fine);
        let mut state = State::new(&costs, limits, projected);
        state.refine(search);
        (value, device) = (state.value(), state.device);
    }
    (value, device)
}

/// Where classes go that no accelerator can run: the CPU after the accelerators, if there is one.
fn forced(costs: &ClassCosts, limits: &PlacementLimits, class: usize) -> Option<u32> {
    (!costs.supported[class] && limits.cpus > 0).then_some(limits.accelerators)
}

/// Classes in topological order, a new accelerator whenever the one in hand has its share.
fn along_order(dag: &Dag, partition: &Partition, costs: &ClassCosts, limits: &PlacementLimits) -> Vec<u32> {
    let share = costs.accelerator.iter().sum::<f64>() / f64::from(limits.accelerators);
    let mut device = vec![u32::MAX; partition.len()];
    let mut done = 0.0;
    for &node in dag.topological_order() {
        let class = partition.class(node as usize);
        if device[class] != u32::MAX {
            continue;
        }
        // The middle of the class decides, so that shares come out even.
        let at = ((done + costs.accelerator[class] / 2.0) / share) as u32;
        device[class] = forced(costs, limits, class).unwrap_or(at.min(limits.accelerators - 1));
        done += costs.accelerator[class];
    }
    device
}

/// Classes by falling time, each to the accelerator that has least; equal times in random order.
fn largest_first(costs: &ClassCosts, limits: &PlacementLimits, random: &mut SplitMix) -> Vec<u32> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    random.shuffle(&mut order);
    order.sort_by(|&a, &b| costs.accelerator[b].total_cmp(&costs.accelerator[a]));
    let mut loads = vec![0.0; limits.accelerators as usize];
    let mut device = vec![0; costs.len()];
    for class in order {
        let least = (0..loads.len()).fold(0, |best, d| if loads[d] < loads[best] { d } else { best });
        device[class] = forced(costs, limits, class).unwrap_or(least as u32);
        if device[class] as usize == least {
            loads[least] += costs.accelerator[class];
        }
    }
    device
}

/// How good a state is: bytes over the memory limits, then the busiest device, then the sum of squared loads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value {
    excess: f64,
    max_load: f64,
    squares: f64,
}

/// Gains below this share are rounding.
const LEAST_GAIN: f64 = 1e-9;

impl Value {
    fn is_less(&self, than: &Value) -> bool {
        for (a, b) in [(self.excess, than.excess), (self.max_load, than.max_load), (self.squares, than.squares)] {
            if (a - b).abs() > LEAST_GAIN * a.max(b) {
                return a < b;
            }
        }
        false
    }
}

/// Classes on devices, priced as they move. Device `accelerators` is the CPU.
struct State<'a> {
    costs: &'a ClassCosts,
    devices: usize,
    memory: f64,
    device: Vec<u32>,
    /// `inside[net · devices + d]`: how many classes of the net are on device `d`.
    inside: Vec<u32>,
    loads: Vec<f64>,
    sizes: Vec<f64>,
    movable: Vec<bool>,
}

impl<'a> State<'a> {
    fn new(costs: &'a ClassCosts, limits: &PlacementLimits, device: Vec<u32>) -> Self {
        let devices = limits.accelerators as usize + 1;
        let movable = (0..costs.len()).map(|class| forced(costs, limits, class).is_none()).collect();
        let mut state = State {
            costs,
            devices,
            memory: limits.memory_bytes,
            device,
            inside: vec![0; costs.net_count() * devices],
            loads: vec![],
            sizes: vec![],
            movable,
        };
        state.reprice();
        state
    }

    /// Prices all devices afresh, so that rounding does not pile up.
    fn reprice(&mut self) {
        let (costs, devices) = (self.costs, self.devices);
        self.inside.fill(0);
        (self.loads, self.sizes) = (vec![0.0; devices], vec![0.0; devices]);
        for (class, &d) in self.device.iter().enumerate() {
            let d = d as usize;
            self.loads[d] += if d + 1 == devices { costs.cpu[class] } else { costs.accelerator[class] };
            self.sizes[d] += costs.size[class];
            for &net in costs.nets(class) {
                self.inside[net as usize * devices + d] += 1;
            }
        }
        for (net, inside) in self.inside.chunks_exact(devices).enumerate() {
            // A CPU pays for no transfer.
            for (load, &count) in self.loads[..devices - 1].iter_mut().zip(inside) {
                if count > 0 && count < costs.net_pins(net) {
                    *load += costs.net_cost(net);
                }
            }
        }
    }

    fn value(&self) -> Value {
        self.value_with(&[])
    }

    /// The value with some devices' loads and sizes replaced.
    fn value_with(&self, changed: &[(usize, f64, f64)]) -> Value {
        let mut value = Value { excess: 0.0, max_load: 0.0, squares: 0.0 };
        for d in 0..self.devices {
            let known = (d, self.loads[d], self.sizes[d]);
            let (_, load, size) = changed.iter().find(|change| change.0 == d).copied().unwrap_or(known);
            if d + 1 < self.devices {
                value.excess += (size - self.memory).max(0.0);
            }
            value.max_load = value.max_load.max(load);
            value.squares += load * load;
        }
        value
    }

    /// Loads and sizes of both devices if a class moved.
    fn moved(&self, class: usize, to: usize) -> [(usize, f64, f64); 2] {
        let costs = self.costs;
        let from = self.device[class] as usize;
        let (mut left, mut joined) =
            (self.loads[from] - costs.accelerator[class], self.loads[to] + costs.accelerator[class]);
        for &net in costs.nets(class) {
            let net = net as usize;
            let (price, pins) = (costs.net_cost(net), costs.net_pins(net));
            let (here, there) = (self.inside[net * self.devices + from], self.inside[net * self.devices + to]);
            // Whole nets are free, and so are absent ones.
            left += if here == pins {
                price
            } else if here == 1 {
                -price
            } else {
                0.0
            };
            joined += if there + 1 == pins {
                -price
            } else if there == 0 {
                price
            } else {
                0.0
            };
        }
        let size = costs.size[class];
        [(from, left, self.sizes[from] - size), (to, joined, self.sizes[to] + size)]
    }

    fn make(&mut self, class: usize, to: usize) {
        let from = self.device[class] as usize;
        for (d, load, size) in self.moved(class, to) {
            (self.loads[d], self.sizes[d]) = (load, size);
        }
        for &net in self.costs.nets(class) {
            self.inside[net as usize * self.devices + from] -= 1;
            self.inside[net as usize * self.devices + to] += 1;
        }
        self.device[class] = to as u32;
    }

    /// Passes until one brings nothing.
    fn refine(&mut self, search: &Search) {
        for _ in 0..PASSES {
            if search.cancelled() || !self.pass(search) {
                return;
            }
        }
    }

    /// Moves every class once at most, always the best move, even a bad one; keeps the best state on the way.
    fn pass(&mut self, search: &Search) -> bool {
        let mut locked: Vec<bool> = self.movable.iter().map(|movable| !movable).collect();
        let before = self.value();
        let mut best = (before, 0);
        let mut made: Vec<(usize, usize)> = vec![];
        while made.len() < best.1 + PATIENCE && !search.cancelled() {
            let Some((class, to)) = self.best_move(&locked) else { break };
            made.push((class, self.device[class] as usize));
            self.make(class, to);
            locked[class] = true;
            let value = self.value();
            if value.is_less(&best.0) {
                best = (value, made.len());
            }
        }
        for &(class, from) in made[best.1..].iter().rev() {
            self.device[class] = from as u32;
        }
        self.reprice();
        best.1 > 0
    }

    /// The move to the least value. Only what leaves or joins the busiest or an overfull device can help; any other move
    /// waits until its device is the one.
    fn best_move(&self, locked: &[bool]) -> Option<(usize, usize)> {
        let accelerators = self.devices - 1;
        let busiest = (0..accelerators).fold(0, |best, d| if self.loads[d] > self.loads[best] { d } else { best });
        let matters = |d: usize| d == busiest || self.sizes[d] > self.memory;
        let mut best: Option<(Value, usize, usize)> = None;
        for class in (0..self.device.len()).filter(|&class| !locked[class]) {
            let from = self.device[class] as usize;
            for to in (0..accelerators).filter(|&to| to != from && (matters(from) || matters(to))) {
                let value = self.value_with(&self.moved(class, to));
                if best.as_ref().is_none_or(|(least, ..)| value.is_less(least)) {
                    best = Some((value, class, to));
                }
            }
        }
        best.map(|(_, class, to)| (class, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::PlacementNode;

    /// Two bundles of four nodes that exchange much inside and little between.
    fn bundles() -> (Dag, PlacementProfile) {
        let mut edges = vec![];
        for first in [0u32, 4] {
            edges.extend([(first, first + 1), (first, first + 2), (first + 1, first + 3), (first + 2, first + 3)]);
        }
        edges.push((3, 4));
        let node = |v: usize| PlacementNode {
            cpu_time: 50.0,
            accelerator_time: 10.0,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class: None,
            layer: None,
            transfer: if v == 3 { 1.0 } else { 8.0 },
        };
        (Dag::new(8, edges).unwrap(), (0..8).map(node).collect::<Vec<_>>().into())
    }

    fn limits(accelerators: u32, cpus: u32, memory_bytes: f64) -> PlacementLimits {
        PlacementLimits { accelerators, cpus, memory_bytes }
    }

    #[test]
    fn bundles_stay_together() {
        let (dag, profile) = bundles();
        let placed = plan(&dag, &profile, &limits(2, 0, 100.0), 4, &Search::default());
        assert_eq!(placed.max_load, Some(41.0));
    }

    #[test]
    fn memory_comes_before_load() {
        let (dag, mut profile) = bundles();
        for v in 0..4 {
            profile.nodes[v].size_bytes = 2.0;
        }
        // The first bundle needs 8: it has to be torn.
        let limits = limits(2, 0, 6.0);
        let placed = plan(&dag, &profile, &limits, 4, &Search::default());
        let split = placed.split.unwrap();
        let score = split.score(&dag, &profile);
        assert_eq!(score.over_memory(&split, 6.0).count(), 0, "{:?}", score.loads);
        assert!(placed.max_load.unwrap() > 41.0);
    }

    #[test]
    fn what_no_accelerator_runs_goes_to_the_cpu() {
        let (dag, mut profile) = bundles();
        profile.nodes[7].supported = false;
        let placed = plan(&dag, &profile, &limits(2, 1, 100.0), 4, &Search::default());
        let cpu: Vec<_> = placed.split.unwrap().devices.into_iter().filter(|d| d.kind == DeviceKind::Cpu).collect();
        assert_eq!(cpu.len(), 1);
        assert_eq!(cpu[0].nodes, [7]);
    }

    #[test]
    fn moves_are_priced_as_a_fresh_count_prices_them() {
        let (dag, profile) = bundles();
        let costs = ClassCosts::new(&dag, &profile, &Partition::by_colour(&profile));
        let mut state = State::new(&costs, &limits(3, 0, 100.0), vec![0, 1, 2, 0, 1, 2, 0, 1]);
        for (class, to) in [(0, 1), (3, 2), (5, 0), (0, 2), (7, 0), (4, 0)] {
            state.make(class, to);
            let (loads, sizes) = (state.loads.clone(), state.sizes.clone());
            state.reprice();
            assert!(loads.iter().zip(&state.loads).all(|(a, b)| (a - b).abs() < 1e-9), "{loads:?} {:?}", state.loads);
            assert_eq!(sizes, state.sizes);
        }
    }
}
