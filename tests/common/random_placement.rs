//! Small random device-placement instances, and the two definitions of their latency written down without regard to speed.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind, Limits},
    family,
    graph::Dag,
    workload::{
        Node, NodeId, Profile, Workload, WorkloadFormat,
        placement::{PlacementNode, PlacementProfile},
    },
};

/// A stream of numbers below the argument (xorshift*), by seed.
pub(crate) fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }
}

/// An inference graph with limits.
pub(crate) struct RandomPlacement {
    pub(crate) dag: Dag,
    pub(crate) profile: PlacementProfile,
    pub(crate) accelerators: usize,
    pub(crate) memory_bytes: f64,
}

impl RandomPlacement {
    /// Three to six nodes (eight for every tenth seed, with one or two accelerators), up to three accelerators.
    pub(crate) fn new(seed: u64) -> Self {
        let mut draw = numbers(seed + 1);
        let large = seed % 10 == 1;
        let mut case = Self::sized(seed, if large { 8 } else { 3 + draw(4) });
        case.accelerators = if large { 1 + draw(2) } else { 1 + draw(3) };
        case
    }

    /// `n` nodes and three accelerators. Node ids are no topological order.
    pub(crate) fn sized(seed: u64, n: usize) -> Self {
        let mut draw = numbers(seed + 77);
        let mut name: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            name.swap(i, draw(i + 1));
        }
        let density = 2 + draw(3);
        let mut edges = vec![];
        for u in 0..n {
            for v in u + 1..n.min(u + 5) {
                if draw(density + 1) == 0 {
                    edges.push((name[u], name[v]));
                    if draw(8) == 0 {
                        edges.push((name[u], name[v]));
                    }
                }
            }
        }
        let dag = Dag::new(n, edges).unwrap();
        let colours = draw(3);
        let node = |v: usize| {
            let accelerator_time = draw(12) as f64;
            PlacementNode {
                cpu_time: accelerator_time * (1 + draw(9)) as f64 + draw(2) as f64,
                accelerator_time,
                supported: draw(8) > 0,
                backward: false,
                size_bytes: (1 + draw(5)) as f64,
                colour_class: (colours > 0 && draw(3) == 0).then(|| draw(2) as i64),
                layer: None,
                transfer: if dag.out_degree(v) > 0 { draw(6) as f64 } else { 0.0 },
            }
        };
        let profile = PlacementProfile::from((0..n).map(node).collect::<Vec<_>>());
        let all: f64 = profile.nodes.iter().map(|node| node.size_bytes).sum();
        let memory_bytes = if draw(4) == 0 { all } else { (all * (2 + draw(5)) as f64 / 8.0).floor() };
        RandomPlacement { dag, profile, accelerators: 3, memory_bytes }
    }

    /// The same as a loaded file, with one CPU.
    pub(crate) fn workload(&self) -> (Arc<Workload>, Limits) {
        let node = |id: usize| Node { id: NodeId(10 + id as i64), name: None };
        let workload = Workload {
            name: "random".into(),
            source: "random".into(),
            format: WorkloadFormat::Placement,
            nodes: (0..self.dag.len()).map(node).collect(),
            dag: self.dag.clone(),
            profile: Profile::Placement(self.profile.clone()),
            limits: GivenLimits::default()
                .with(LimitKind::Devices, self.accelerators as u32)
                .with(LimitKind::Cpus, 1)
                .with(LimitKind::Memory, self.memory_bytes),
            provenance: None,
            recipe: None,
            unknown_fields: vec![],
        };
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        (Arc::new(workload), limits)
    }

    fn reads(&self, tail: usize, head: usize) -> bool {
        self.dag.edges().contains(&(tail as u32, head as u32))
    }
}

/// Finish of every unit by repeated relaxation; `None` if it does not settle. `unit[v]` names each node's unit, `fixed` the
/// units that are accelerator work, `after` further waits between units.
fn settle(case: &RandomPlacement, unit: &[usize], fixed: &[bool], after: &[(usize, usize)]) -> Option<f64> {
    let (n, units) = (unit.len(), fixed.len());
    let node = |v: usize| &case.profile.nodes[v];
    let duration = |p: usize| -> f64 {
        let members = || (0..n).filter(|&v| unit[v] == p);
        if !fixed[p] {
            return members().map(|v| node(v).cpu_time).sum();
        }
        let compute: f64 = members().map(|v| node(v).accelerator_time).sum();
        let received = (0..n).filter(|&u| unit[u] != p && members().any(|v| case.reads(u, v)));
        let sent = members().filter(|&u| (0..n).any(|w| unit[w] != p && case.reads(u, w)));
        compute + received.chain(sent).map(|u| node(u).transfer).sum::<f64>()
    };
    let durations: Vec<f64> = (0..units).map(duration).collect();
    let mut waits: Vec<(usize, usize)> = case
        .dag
        .edges()
        .iter()
        .map(|&(u, v)| (unit[u as usize], unit[v as usize]))
        .filter(|(p, q)| p != q)
        .chain(after.iter().copied())
        .collect();
    waits.sort_unstable();
    waits.dedup();
    // Longest paths in number of edges tell a circle even where nothing takes time.
    let (mut rank, mut finish) = (vec![0; units], durations.clone());
    for _ in 0..=units {
        for &(p, q) in &waits {
            rank[q] = rank[q].max(rank[p] + 1);
            finish[q] = finish[q].max(finish[p] + durations[q]);
        }
    }
    rank.iter().all(|&r| r < units.max(1)).then(|| finish.iter().copied().fold(0.0, f64::max))
}

/// The published evaluator's latency: depths by walking every path.
pub(crate) fn naive_piece_latency(case: &RandomPlacement, split: &[Vec<u32>]) -> Option<f64> {
    let n = case.dag.len();
    let mut keys: Vec<(usize, usize)> = (0..n).map(|v| (usize::MAX, v)).collect();
    for (accelerator, nodes) in split.iter().enumerate() {
        let inside = |v: usize| nodes.contains(&(v as u32));
        fn depth(case: &RandomPlacement, inside: &dyn Fn(usize) -> bool, v: usize) -> usize {
            let before = case.dag.predecessors(v);
            if inside(v) {
                before.map(|u| depth(case, inside, u) + usize::from(!inside(u))).chain([1]).max().unwrap()
            } else {
                before.map(|u| depth(case, inside, u)).max().unwrap_or(0)
            }
        }
        for v in (0..n).filter(|&v| inside(v)) {
            keys[v] = (accelerator, depth(case, &inside, v));
        }
    }
    let mut names = keys.clone();
    names.sort_unstable();
    names.dedup();
    let unit: Vec<usize> = keys.iter().map(|key| names.iter().position(|name| name == key).unwrap()).collect();
    let fixed: Vec<bool> = names.iter().map(|name| name.0 != usize::MAX).collect();
    settle(case, &unit, &fixed, &[])
}

/// The latency program's value of an assignment to slots, `None` where a constraint is broken.
pub(crate) fn naive_slot_latency(
    case: &RandomPlacement,
    subgraphs: usize,
    slots: &[u32],
    memory_bytes: f64,
) -> Option<f64> {
    let (n, nodes) = (slots.len(), &case.profile.nodes);
    let owner = |v: usize| (slots[v] as usize).div_ceil(subgraphs);
    for accelerator in 1..=case.accelerators {
        let size: f64 = (0..n).filter(|&v| owner(v) == accelerator).map(|v| nodes[v].size_bytes).sum();
        if size > memory_bytes {
            return None;
        }
    }
    for v in 0..n {
        let apart = |w: usize| nodes[w].colour_class == nodes[v].colour_class && owner(w) != owner(v);
        if (owner(v) > 0 && !nodes[v].supported) || (nodes[v].colour_class.is_some() && (0..n).any(apart)) {
            return None;
        }
    }
    // Units 0..n are CPU nodes (without work where the node is elsewhere), then the slots.
    let unit: Vec<usize> = (0..n).map(|v| if slots[v] == 0 { v } else { n + slots[v] as usize - 1 }).collect();
    let fixed: Vec<bool> = (0..n + case.accelerators * subgraphs).map(|u| u >= n).collect();
    let follow = (0..case.accelerators * subgraphs).filter(|slot| slot % subgraphs > 0);
    let after: Vec<(usize, usize)> = follow.map(|slot| (n + slot - 1, n + slot)).collect();
    settle(case, &unit, &fixed, &after)
}
