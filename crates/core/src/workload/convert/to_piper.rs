//! Converts a device placement to Piper's profile: one node per colour class, forward and backward together, on one
//! device.

use std::collections::{BTreeMap, BTreeSet};

use super::{Conversion, ConversionError};
use crate::{
    cluster::{GivenLimits, LimitKind},
    graph::Dag,
    units,
    workload::{
        choice::Choice,
        colour::ColourClasses,
        formats::WorkloadFormat,
        node::Node,
        node_index::NodeIndex,
        piper::{DegreeProfile, Mode, NodeProfile, PiperProfile, VANILLA},
        placement::{PlacementProfile, SECONDS},
        profiled::{Profile, Workload},
    },
};

/// Converts a device placement to Piper's profile. `bandwidth` (bytes per second) turns transfer times into bytes;
/// `microbatches` goes into the limits.
///
/// Classes on a common cycle become one node. If nodes of two classes exchange tensors, there is one edge along the
/// forward pass. It carries half the bytes of every node that sends in either direction, because Piper charges an edge
/// twice.
///
/// # Errors
/// A reason that a user can act on: the workload has another profile, or an accelerator cannot run a node.
// Long: one pass over nodes and edges, which share their sums.
pub fn to_piper(workload: &Workload, microbatches: u32, bandwidth: f64) -> Result<Conversion, ConversionError> {
    let profile = workload.placement().ok_or(ConversionError::NoPlacement)?;
    if !profile.kinds.is_empty() {
        return Err(ConversionError::UnequalAccelerators);
    }
    if let Some(node) = profile.nodes.iter().position(|node| !node.supported) {
        let label = workload.nodes[node].label();
        return Err(ConversionError::NoAccelerator(label.to_string()));
    }
    let merged = MergedNodes::new(workload, profile);
    let edges = merged.edges(workload, profile);
    let (mut read, mut sent) = (vec![0; merged.members.len()], vec![0; merged.members.len()]);
    for &(from, to) in edges.keys() {
        sent[from as usize] += 1;
        read[to as usize] += 1;
    }
    let mode = |members: &Vec<NodeIndex>, at: usize| {
        let sum = |wanted: &dyn Fn(NodeIndex) -> bool| {
            members.iter().filter(|&&v| wanted(v)).map(|&v| profile.nodes[v].accelerator_time).sum::<f64>()
        };
        Mode {
            id: VANILLA.into(),
            time_s: sum(&|_| true) * SECONDS,
            forward_s: Some(sum(&|v| !profile.nodes[v].backward) * SECONDS),
            parameters: 0.0,
            memory_a: 0.0,
            memory_b: members.iter().map(|&v| profile.nodes[v].size_bytes).sum(),
            sync_in: vec![0.0; read[at]],
            sync_out: vec![0.0; sent[at]],
        }
    };
    let costs = |(at, members): (usize, &Vec<NodeIndex>)| NodeProfile {
        degrees: vec![DegreeProfile { degree: 1, modes: vec![mode(members, at)] }],
    };
    let nodes = merged.members.iter().enumerate().map(costs).collect();
    let dag = Dag::new(merged.members.len(), edges.keys().copied().collect()).expect("edges follow one order");
    let edge_bytes = edges.values().map(|time| time * SECONDS * bandwidth / 2.0).collect();
    let alone = workload.nodes.len() - merged.members.len();
    let name = |members: &Vec<NodeIndex>| {
        let first = &workload.nodes[members[0]];
        match members.len() {
            1 => first.clone(),
            count => Node { id: first.id, name: Some(format!("{} and {} more", first.label(), count - 1)) },
        }
    };
    let mut assumptions = vec![
        "Converted from a device placement: every node runs on one accelerator, in one mode, at tensor degree 1; CPUs are \
         not used."
            .to_string(),
        format!(
            "Times of transfers are bytes at {}, half of them each way; a tensor that several classes read is charged for \
             each of them.",
            units::bandwidth_exact(bandwidth)
        ),
        "A node's size is held whatever is in flight; it has no parameters to keep equal between replicas.".into(),
    ];
    if alone > 0 {
        assumptions.push(format!(
            "Forward and backward nodes of a colour class are one node, and so are classes that lead into one another: {} \
             nodes became {}.",
            workload.nodes.len(),
            merged.members.len()
        ));
    }
    Ok(Conversion {
        choices: vec![Choice::Accelerator; workload.nodes.len()],
        workload: Workload {
            format: WorkloadFormat::Piper,
            nodes: merged.members.iter().map(name).collect(),
            dag,
            profile: Profile::Piper(PiperProfile { nodes, edge_bytes }),
            limits: GivenLimits::default()
                .maybe(LimitKind::Devices, workload.limits.devices())
                .maybe(LimitKind::Cpus, None::<f64>)
                .maybe(LimitKind::Memory, workload.limits.memory_bytes())
                .with(LimitKind::Microbatches, microbatches)
                .with(LimitKind::Bandwidth, bandwidth),
            ..workload.clone()
        },
        members: merged.members,
        assumptions,
    })
}

/// New nodes: groups of classes on a common cycle.
struct MergedNodes {
    members: Vec<Vec<NodeIndex>>,
    /// New node by original node.
    of: Vec<u32>,
    /// Position of each new node along the forward pass.
    position: Vec<usize>,
}

impl MergedNodes {
    fn new(workload: &Workload, profile: &PlacementProfile) -> Self {
        let classes = ColourClasses::new(profile);
        let groups = classes.groups(&workload.dag, profile);
        let mut group_of = vec![0u32; classes.members.len()];
        let mut of = vec![0u32; profile.nodes.len()];
        let mut members: Vec<Vec<NodeIndex>> = vec![vec![]; groups.len()];
        for (group, list) in groups.iter().enumerate() {
            for &class in list {
                group_of[class] = group as u32;
                for &node in &classes.members[class] {
                    of[node.index()] = group as u32;
                    members[group].push(node);
                }
            }
        }
        members.iter_mut().for_each(|nodes| nodes.sort_unstable());
        let order: BTreeSet<(u32, u32)> = classes
            .order(&workload.dag, profile)
            .into_iter()
            .map(|(a, b)| (group_of[a as usize], group_of[b as usize]))
            .filter(|(a, b)| a != b)
            .collect();
        let order = Dag::new(groups.len(), order.into_iter().collect()).expect("cycles were merged");
        let mut position = vec![0; groups.len()];
        for (at, &group) in order.topological_order().iter().enumerate() {
            position[group as usize] = at;
        }
        MergedNodes { members, of, position }
    }

    /// Total transfer time between two new nodes, in the profile's unit, by edge along the forward pass.
    fn edges(&self, workload: &Workload, profile: &PlacementProfile) -> BTreeMap<(u32, u32), f64> {
        let mut edges: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for (u, cost) in profile.nodes.iter().enumerate() {
            let a = self.of[u];
            let readers: BTreeSet<u32> = workload.dag.successors(u).map(|v| self.of[v]).filter(|&b| b != a).collect();
            for b in readers {
                let along = self.position[a as usize] < self.position[b as usize];
                *edges.entry(if along { (a, b) } else { (b, a) }).or_insert(0.0) += cost.transfer;
            }
        }
        edges
    }
}
