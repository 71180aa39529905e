//! The network as a line of units that stages are cut from, with the costs of units `a .. b` at one tensor degree.
//!
//! A cut is allowed before a node that takes input from the node right before it. Then every stage sends to the next,
//! so the chain of stages in the bounds ([`super::bounds`]) exists for any other cuts. The nodes between two such
//! places are one unit. Of two topological orders, the one with more units is used.
//!
//! All costs are prefix sums, so the cost of units `a .. b` is a difference. `O(nodes + edges)` time and memory for
//! each degree, except that edges over many units are listed at each boundary.

use plantui_core::{
    graph::Dag,
    workload::{
        Mode, PiperProfile,
        layering::{LayerPosition, Layering},
        piper::{VANILLA, recomputes},
    },
};

use super::{
    engine::linked,
    recompute::{Offers, RecomputeItem, Swaps},
    weighing::{ModeDifference, SmallerModes},
};
use crate::{engine_layers::Rule, pipeline_options::Recompute};

/// Forward share of a node's time if the profile has none: the simulator's default.
const FORWARD_SHARE: f64 = 1.0 / 3.0;

/// Units in the order of the line.
#[derive(Debug, Clone)]
pub(super) struct UnitLine {
    /// Nodes in topological order, by unit.
    pub(super) units: Vec<Vec<usize>>,
    /// Unit, by node.
    unit_of: Vec<usize>,
    /// True for a repeated layer, by unit, if an engine counts layers.
    blocks: Option<Vec<bool>>,
    /// True for nodes before or behind the repeated layers, by node, if an engine recomputes whole layers.
    at_ends: Option<Vec<bool>>,
}

impl UnitLine {
    pub(super) fn of(dag: &Dag) -> Self {
        let orders = [dag.topological_order().to_vec(), dag.stack_order()];
        let lines = orders.map(|order| UnitLine::along(dag, &order));
        let [first, second] = lines;
        if second.units.len() > first.units.len() { second } else { first }
    }

    fn along(dag: &Dag, order: &[u32]) -> Self {
        let mut units: Vec<Vec<usize>> = vec![];
        let mut unit_of = vec![0; order.len()];
        for &node in order {
            let node = node as usize;
            let before = units.last().and_then(|unit| unit.last()).copied();
            let follows = before.is_some_and(|before| dag.predecessors(node).any(|other| other == before));
            if units.is_empty() || follows {
                units.push(vec![]);
            }
            unit_of[node] = units.len() - 1;
            units.last_mut().expect("a unit was begun").push(node);
        }
        UnitLine { units, unit_of, blocks: None, at_ends: None }
    }

    /// Line of an engine's layers. If no layer repeats, a layer without input from the one before joins its unit.
    pub(super) fn layered(layering: &Layering, dag: &Dag) -> Self {
        let alone = layering.blocks() == 0;
        let (mut units, mut blocks): (Vec<Vec<usize>>, Vec<bool>) = (vec![], vec![]);
        let mut unit_of = vec![0; layering.layer_of.len()];
        for (layer, linked) in layering.layers.iter().zip(linked(layering, dag)) {
            if units.is_empty() || linked || !alone {
                units.push(vec![]);
                blocks.push(matches!(layer.kind, LayerPosition::Block(_)));
            }
            for node in layer.nodes.iter().map(|node| node.index()) {
                unit_of[node] = units.len() - 1;
                units.last_mut().expect("a unit was begun").push(node);
            }
        }
        UnitLine { units, unit_of, blocks: Some(blocks), at_ends: Some(layering.at_ends.clone()) }
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// True if nodes recompute one by one. Otherwise those of a repeated layer do so together.
    fn by_node(&self) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| !blocks.contains(&true))
    }

    /// Line with at most `most` units, each merged from about equally many neighbours.
    pub(super) fn thinned(self, most: usize) -> Self {
        let n = self.units.len();
        if n <= most {
            return self;
        }
        let group = |unit: usize| unit * most / n;
        let mut units = vec![vec![]; most];
        for (unit, nodes) in self.units.into_iter().enumerate() {
            units[group(unit)].extend(nodes);
        }
        UnitLine { units, unit_of: self.unit_of.into_iter().map(group).collect(), blocks: None, at_ends: self.at_ends }
    }
}

/// Modes of a node: the fastest, and one with less memory or fewer parameters, which may be slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeModes {
    pub(super) fast: usize,
    pub(super) small: Option<usize>,
    /// True if the node has more modes.
    more: bool,
}

/// Modes left by the option; `None` if there are none.
fn ways(modes: &[Mode], recompute: Recompute) -> Option<NodeModes> {
    let all = || recompute.allowed(modes);
    let (fast, best) = all().reduce(|best, next| if next.1.time_s < best.1.time_s { next } else { best })?;
    let saves = |mode: &Mode| mode.memory_a < best.memory_a || mode.memory_b < best.memory_b;
    let smaller = all().filter(|(_, mode)| saves(mode) || mode.parameters < best.parameters);
    let small = smaller.reduce(|least, next| {
        let key = |mode: &Mode| (mode.memory_a, mode.memory_b, mode.time_s);
        if key(next.1) < key(least.1) { next } else { least }
    });
    let small = small.map(|(position, _)| position);
    Some(NodeModes { fast, small, more: all().count() > 1 + usize::from(small.is_some()) })
}

/// Modes of a node for engines: kept, and recomputing unless the node is at an end.
fn layered_ways(modes: &[Mode], at_end: bool) -> NodeModes {
    let find = |again| modes.iter().position(|mode| recomputes(&mode.id) == again);
    let fast = find(false).unwrap_or(0);
    NodeModes { fast, small: find(true).filter(|again| !at_end && *again != fast), more: false }
}

/// Forward seconds of a mode, as the simulator assumes by default.
fn forward(mode: &Mode, modes: &[Mode]) -> f64 {
    let fastest = modes.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s)).unwrap_or(mode);
    let plain = modes.iter().find(|m| m.id == VANILLA).unwrap_or(fastest);
    match mode.forward_s.or(plain.forward_s) {
        Some(forward_s) => forward_s.clamp(0.0, mode.time_s),
        None => (FORWARD_SHARE * plain.time_s).min(mode.time_s),
    }
}

/// Costs of units at one tensor degree.
#[derive(Debug, Clone)]
pub(super) struct DegreeCosts {
    pub(super) t: u32,
    /// Modes, by node.
    pub(super) ways: Vec<NodeModes>,
    /// True if some node has modes that are left out.
    pub(super) leaves_out: bool,
    /// True if all byte counts are integers, so that their sums are exact.
    pub(super) whole_bytes: bool,
    /// Prefix sums by boundary: forward and backward of the fastest modes, their bytes per microbatch in flight and
    /// fixed bytes, parameters.
    forward: Vec<f64>,
    backward: Vec<f64>,
    in_flight: Vec<f64>,
    fixed: Vec<f64>,
    parameters: Vec<f64>,
    /// Number of repeated layers before each boundary, if an engine counts them.
    repeated: Option<Vec<u32>>,
    /// Changes of time and memory by recomputation.
    pub(super) swaps: Swaps,
    /// Changes of parameters by recomputation, if any; `parameters` are then the fewest. `None` if a rule prescribes
    /// which nodes recompute.
    pub(super) weights: Option<SmallerModes>,
    /// True if some node's forward depends on its mode. Bounds then take a stage's time as half forward, half backward,
    /// which makes them least.
    pub(super) halves: bool,
    /// Seconds of the tensors that pass each boundary, by source unit and by target unit.
    passing_from: Vec<Vec<(u32, f64)>>,
    passing_to: Vec<Vec<(u32, f64)>>,
    /// Edges between units: from, to, seconds.
    edges: Vec<(u32, u32, f64)>,
    /// True if a mode's excess over the fastest is all recomputation: the mode that keeps everything is as fast as any
    /// other.
    plain: bool,
    /// Largest time of a single unit.
    pub(super) heaviest: f64,
}

/// Costs of a stage: times of a microbatch on one replica.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct StageCost {
    pub(super) forward: f64,
    /// Backward, including recomputation.
    pub(super) backward: f64,
    /// Lower bound on the recomputation in `backward`.
    pub(super) again: f64,
    /// Lower bound on the time to the next stage, one way.
    pub(super) send: f64,
    /// Seconds of all tensors that it sends forward, and of all gradients that it sends back.
    pub(super) sends: f64,
    pub(super) returns: f64,
    /// Parameters in bytes.
    pub(super) parameters: f64,
}

impl StageCost {
    pub(super) fn both(&self) -> f64 {
        self.forward + self.backward
    }
}

impl DegreeCosts {
    /// Computes costs; `None` if a node lacks the degree, or the option leaves it no mode.
    // Long: one pass over the layers fills all tables that the search reads.
    pub(super) fn new(
        dag: &Dag,
        profile: &PiperProfile,
        line: &UnitLine,
        t: u32,
        (recompute, rule): (Recompute, Rule),
        bandwidth: f64,
    ) -> Option<Self> {
        let modes: Vec<&[Mode]> = profile.nodes.iter().map(|node| node.modes(t)).collect::<Option<_>>()?;
        let own = |(node, modes): (usize, &&[Mode])| match &line.at_ends {
            Some(at_ends) => Some(layered_ways(modes, at_ends[node])),
            None => ways(modes, recompute),
        };
        let ways: Vec<NodeModes> = modes.iter().enumerate().map(own).collect::<Option<_>>()?;
        let n = line.len();
        let mut costs = DegreeCosts {
            t,
            leaves_out: ways.iter().any(|ways| ways.more),
            whole_bytes: modes.iter().flat_map(|modes| modes.iter()).all(|mode| {
                let whole = |bytes: f64| bytes.fract() == 0.0 && bytes < 1e14;
                whole(mode.memory_a) && whole(mode.memory_b)
            }),
            forward: vec![0.0],
            backward: vec![0.0],
            in_flight: vec![0.0],
            fixed: vec![0.0],
            parameters: vec![0.0],
            repeated: line.blocks.as_ref().map(|_| vec![0]),
            swaps: Swaps::new(n, rule),
            weights: None,
            halves: false,
            passing_from: vec![vec![]; n + 1],
            passing_to: vec![vec![]; n + 1],
            edges: vec![],
            heaviest: 0.0,
            plain: modes.iter().zip(&ways).all(|(modes, ways)| {
                let kept = modes.iter().find(|mode| mode.id == VANILLA);
                kept.is_none_or(|kept| kept.time_s <= modes[ways.fast].time_s)
            }),
            ways,
        };
        let by_node = line.by_node();
        let (mut smaller, mut fastest) = (vec![vec![]; n], vec![0.0; n]);
        for (unit, nodes) in line.units.iter().enumerate() {
            let mut sums = [0.0; 5];
            let mut layer = RecomputeItem::NOTHING;
            for &node in nodes {
                let (fast, small) = (&modes[node][costs.ways[node].fast], costs.ways[node].small);
                let forward_s = forward(fast, modes[node]);
                let mut parameters = fast.parameters;
                fastest[unit] += parameters;
                let only = recomputes(&fast.id);
                let mut own = RecomputeItem { offers: Offers { kept: !only, again: only }, ..RecomputeItem::NOTHING };
                if let Some(small) = small.map(|small| &modes[node][small]) {
                    costs.halves |= (forward(small, modes[node]) - forward_s).abs() > 1e-12 * fast.time_s;
                    parameters = parameters.min(small.parameters);
                    let key =
                        [small.time_s - fast.time_s, fast.memory_a - small.memory_a, fast.memory_b - small.memory_b];
                    if line.at_ends.is_none() {
                        let ([seconds, in_flight, fixed], parameters) = (key, small.parameters - fast.parameters);
                        smaller[unit].push(ModeDifference { node, seconds, in_flight, fixed, parameters });
                    }
                    own = RecomputeItem { nodes: vec![node], key, offers: Offers { again: true, ..own.offers } };
                }
                if by_node {
                    costs.swaps.add(unit, own);
                } else if line.at_ends.as_ref().is_none_or(|at_ends| !at_ends[node]) {
                    layer.add(own);
                }
                let parts = [forward_s, fast.time_s - forward_s, fast.memory_a, fast.memory_b, parameters];
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
            if line.blocks.as_ref().is_some_and(|blocks| !by_node && blocks[unit]) {
                costs.swaps.add(unit, layer);
            }
            if let (Some(repeated), Some(blocks)) = (&mut costs.repeated, &line.blocks) {
                repeated.push(repeated[unit] + u32::from(blocks[unit]));
            }
            costs.heaviest = costs.heaviest.max(sums[0] + sums[1]);
            let prefixes = [
                &mut costs.forward,
                &mut costs.backward,
                &mut costs.in_flight,
                &mut costs.fixed,
                &mut costs.parameters,
            ];
            for (prefix, sum) in prefixes.into_iter().zip(sums) {
                prefix.push(prefix[unit] + sum);
            }
        }
        costs.swaps.finish();
        costs.weights =
            Some(rule).filter(|&rule| rule == Rule::Free).and_then(|_| SmallerModes::new(smaller, &fastest));
        costs.link(dag, profile, line, &modes, bandwidth);
        Some(costs)
    }

    /// Records transfers between units. Each end counts with the cheaper of its modes.
    fn link(&mut self, dag: &Dag, profile: &PiperProfile, line: &UnitLine, modes: &[&[Mode]], bandwidth: f64) {
        let least = |node: usize, of: &dyn Fn(&Mode) -> f64| {
            let NodeModes { fast, small, .. } = self.ways[node];
            [Some(fast), small].into_iter().flatten().map(|way| of(&modes[node][way])).fold(f64::INFINITY, f64::min)
        };
        let arriving = dag.places_of_arrival();
        let mut between = std::collections::BTreeMap::new();
        for source in 0..dag.len() {
            for (slot, &edge) in dag.out_edges(source).iter().enumerate() {
                let target = dag.edges()[edge as usize].1 as usize;
                let (from, to) = (line.unit_of[source], line.unit_of[target]);
                if from == to {
                    continue;
                }
                let incoming = arriving[edge as usize];
                let gathered = least(target, &|mode| mode.sync_in[incoming]);
                let gathered = gathered.max(least(source, &|mode| mode.sync_out[slot]));
                let seconds = (profile.edge_bytes[edge as usize] + gathered) / bandwidth;
                *between.entry((from as u32, to as u32)).or_insert(0.0) += seconds;
            }
        }
        let add = |list: &mut Vec<(u32, f64)>, unit: u32, seconds: f64| match list.iter_mut().find(|e| e.0 == unit) {
            Some(entry) => entry.1 += seconds,
            None => list.push((unit, seconds)),
        };
        for (&(from, to), &seconds) in &between {
            self.edges.push((from, to, seconds));
            for boundary in from + 1..=to {
                add(&mut self.passing_from[boundary as usize], from, seconds);
                add(&mut self.passing_to[boundary as usize], to, seconds);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.forward.len() - 1
    }

    /// Forward plus backward of units `a .. b` in their fastest modes.
    pub(super) fn fastest(&self, a: usize, b: usize) -> f64 {
        self.forward[b] - self.forward[a] + self.backward[b] - self.backward[a]
    }

    /// Forward of units `a .. b` in their fastest modes.
    pub(super) fn forward_of(&self, a: usize, b: usize) -> f64 {
        self.forward[b] - self.forward[a]
    }

    /// Parameters of units `a .. b` in bytes.
    pub(super) fn parameters_of(&self, a: usize, b: usize) -> f64 {
        self.parameters[b] - self.parameters[a]
    }

    /// True if units `a .. b` can form this number of parts. If an engine counts layers, parts need whole ones.
    /// Otherwise parts are equal, as in the simulator.
    pub(super) fn has_parts(&self, a: usize, b: usize, parts: u32) -> bool {
        parts == 1 || self.repeated.as_ref().is_none_or(|repeated| repeated[b] - repeated[a] >= parts)
    }

    /// True if each of the stages may send to the next only, that is, at most one cut separates the ends of any edge.
    pub(super) fn may_be_chain(&self, stages: usize) -> bool {
        let outside = |&(from, to, _): &(u32, u32, f64)| from as usize + self.len() - 1 - to as usize;
        let long = self.edges.iter().filter(|edge| edge.1 > edge.0 + 1);
        long.map(outside).min().is_none_or(|outside| stages <= outside + 2)
    }

    /// Bytes of units `a .. b` in their fastest modes with `in_flight` microbatches in flight.
    pub(super) fn bytes(&self, a: usize, b: usize, in_flight: f64) -> f64 {
        (self.in_flight[b] - self.in_flight[a]) * in_flight + (self.fixed[b] - self.fixed[a])
    }

    /// Seconds of the tensors that units `a .. b` send over the boundary `over`.
    #[inline]
    pub(super) fn passing(&self, a: usize, b: usize, over: usize) -> f64 {
        let counts = |from: u32| (a..b).contains(&(from as usize));
        self.passing_from[over].iter().filter(|entry| counts(entry.0)).map(|entry| entry.1).sum()
    }

    /// Least time from the stage `a .. b` to the next one, which ends at `next` or later.
    pub(super) fn send(&self, a: usize, b: usize, next: usize) -> f64 {
        self.passing(a, b, b) - self.passing(a, b, next)
    }

    /// Stage of units `a .. b` that recomputes for `recompute` seconds. The next stage ends at `next` or later.
    #[inline]
    pub(super) fn stage(&self, a: usize, b: usize, next: usize, recompute: f64) -> StageCost {
        let sends = self.passing(a, b, b);
        let returned = self.passing_to[a].iter().filter(|entry| (entry.0 as usize) < b);
        StageCost {
            forward: self.forward[b] - self.forward[a],
            backward: self.backward[b] - self.backward[a] + recompute,
            again: if self.plain { recompute } else { 0.0 },
            send: sends - self.passing(a, b, next),
            sends,
            returns: returned.map(|entry| entry.1).sum(),
            parameters: self.parameters[b] - self.parameters[a],
        }
    }

    /// Transfers between the stages that begin at these units: from, to, seconds.
    pub(super) fn transfers(&self, begins: &[usize]) -> Vec<(u32, u32, f64)> {
        let stage_of = |unit: u32| (begins.partition_point(|&begin| begin <= unit as usize) - 1) as u32;
        let mut found: Vec<(u32, u32, f64)> = vec![];
        let pairs = self.edges.iter().map(|&(from, to, seconds)| (stage_of(from), stage_of(to), seconds));
        let mut pairs: Vec<(u32, u32, f64)> = pairs.filter(|(from, to, _)| from < to).collect();
        pairs.sort_unstable_by_key(|&(from, to, _)| (from, to));
        for (from, to, seconds) in pairs {
            match found.last_mut() {
                Some(last) if (last.0, last.1) == (from, to) => last.2 += seconds,
                _ => found.push((from, to, seconds)),
            }
        }
        found
    }
}
