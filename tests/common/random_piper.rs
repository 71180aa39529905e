//! Random Piper workloads, small enough to try every plan of; the same for the same seed on every machine.

use plantui::{
    cluster::GivenLimits,
    graph::Dag,
    workload::{
        DegreeProfile, Mode, Node, NodeId, PiperProfile, Profile, Workload, WorkloadFormat,
        piper::{NodeProfile, RECOMPUTE, VANILLA},
    },
};

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// From 0 up to `most`: whole, or any fraction.
    pub(crate) fn amount(&mut self, most: u32, whole: bool) -> f64 {
        if whole {
            self.below(most as usize + 1) as f64
        } else {
            (self.next() >> 11) as f64 / (1u64 << 53) as f64 * f64::from(most)
        }
    }
}

/// How the modes of a node differ, and how finely amounts are measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flavour {
    /// Whole amounts (many ties) or any fraction.
    pub(crate) whole: bool,
    /// All modes of a node share parameters and sync sizes.
    pub(crate) uniform: bool,
    /// Every node can recompute.
    pub(crate) all_recompute: bool,
    /// At most so many modes.
    pub(crate) most_modes: usize,
}

/// A workload from its parts, nodes without names and numbered from 0.
pub(crate) fn assemble(edges: Vec<(u32, u32)>, edge_bytes: Vec<f64>, nodes: Vec<NodeProfile>) -> Workload {
    Workload {
        name: "random".into(),
        source: "built-in".into(),
        format: WorkloadFormat::Piper,
        nodes: (0..nodes.len()).map(|id| Node { id: NodeId(id as i64), name: None }).collect(),
        dag: Dag::new(nodes.len(), edges).unwrap(),
        profile: Profile::Piper(PiperProfile { nodes, edge_bytes }),
        limits: GivenLimits::default(),
        provenance: None,
        recipe: None,
        unknown_fields: vec![],
    }
}

/// Edges between nodes whose numbers say nothing of their order; at most one between any two.
pub(crate) fn edges(random: &mut Random, n: usize) -> Vec<(u32, u32)> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    let density = random.pick(&[0, 15, 30, 50, 80]);
    let chain = random.chance(40);
    let mut edges = vec![];
    for i in 0..n {
        for j in i + 1..n {
            if (chain && j == i + 1) || random.chance(density) {
                edges.push((order[i], order[j]));
            }
        }
    }
    edges
}

/// The modes of one node at one degree. Recomputing is slower and holds less for each microbatch in flight, at times
/// more besides.
fn modes(random: &mut Random, flavour: Flavour, t: u32, incoming: usize, outgoing: usize) -> Vec<Mode> {
    let Flavour { whole, uniform, .. } = flavour;
    let sync = |random: &mut Random, count: usize| -> Vec<f64> {
        (0..count).map(|_| if t == 1 || random.chance(50) { 0.0 } else { random.amount(6, whole) }).collect()
    };
    let mode = |id: &str, time_s: f64, a: f64, b: f64, random: &mut Random| Mode {
        id: id.into(),
        time_s,
        forward_s: None,
        parameters: random.amount(8, whole),
        memory_a: a,
        memory_b: b,
        sync_in: sync(random, incoming),
        sync_out: sync(random, outgoing),
    };
    let time = if random.chance(8) { 0.0 } else { random.amount(40, whole) };
    let (a, b) = (random.amount(8, whole), random.amount(8, whole));
    let vanilla = mode(VANILLA, time, a, b, random);
    let slower = time + random.amount(15, whole);
    let (less, more) = (random.amount(8, whole).min(a), b + random.amount(2, whole));
    let recompute = mode(RECOMPUTE, slower, less, more, random);
    let (time, a, b) = (random.amount(50, whole), random.amount(8, whole), random.amount(10, whole));
    let third = mode("offload", time, a, b, random);
    let mut list = match 1 + random.below(flavour.most_modes) {
        1 if flavour.all_recompute => vec![recompute],
        1 => vec![vanilla],
        2 if random.chance(20) => vec![recompute, vanilla],
        2 => vec![vanilla, recompute],
        _ => vec![vanilla, third, recompute],
    };
    if uniform {
        let first = list[0].clone();
        for mode in &mut list[1..] {
            mode.parameters = first.parameters;
            mode.sync_in.clone_from(&first.sync_in);
            mode.sync_out.clone_from(&first.sync_out);
        }
    }
    list
}

/// A workload over the given edges; every node offers some of the tensor degrees 1, 2 and 4.
pub(crate) fn workload(random: &mut Random, n: usize, edges: Vec<(u32, u32)>, flavour: Flavour) -> Workload {
    let degree_sets: [&[u32]; 7] = [&[1], &[1], &[1, 2], &[1, 2], &[1, 2, 4], &[2], &[1, 4]];
    let alike = random.chance(50).then(|| random.pick(&degree_sets));
    let nodes = (0..n)
        .map(|v| {
            let incoming = edges.iter().filter(|edge| edge.1 as usize == v).count();
            let outgoing = edges.iter().filter(|edge| edge.0 as usize == v).count();
            let degrees = alike.unwrap_or_else(|| random.pick(&degree_sets));
            let profile =
                |&degree: &u32| DegreeProfile { degree, modes: modes(random, flavour, degree, incoming, outgoing) };
            NodeProfile { degrees: degrees.iter().map(profile).collect() }
        })
        .collect();
    let edge_bytes =
        edges.iter().map(|_| if random.chance(15) { 0.0 } else { random.amount(20, flavour.whole) }).collect();
    assemble(edges, edge_bytes, nodes)
}
