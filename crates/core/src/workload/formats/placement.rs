//! JSON of device placement (msr-fiddle/dnn-partitioning), for throughput and latency inputs.
//!
//! ```text
//! { "maxSizePerFPGA": bytes, "maxFPGAs": K, "maxCPUs": L,
//!   "nodes": [ { "id": 1, "name": "...", "supportedOnFpga": 1, "cpuLatency": t, "fpgaLatency": t, "isBackwardNode": 0,
//!                "size": bytes, "colorClass": 1, "layerId": 1 } ],
//!   "edges": [ { "sourceId": 1, "destId": 2, "cost": t } ] }
//! ```
//!
//! The cost of sending a node's output is a property of the node. The file repeats it on every edge out of the node, so
//! the edges must agree. Parallel edges are read as one, with a finding. An "FPGA" is any accelerator.
//!
//! Accelerators that are not all alike take the place of `maxFPGAs` and `maxSizePerFPGA`; the published files have none:
//!
//! ```text
//! "accelerators": [ { "kind": "a100", "count": 2, "speed": 1, "maxSize": bytes } ]
//! ```

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, Unexpected, Visitor},
};

use super::format::WorkloadFormat;
use super::reader::{OwnField, WorkloadReader, parse, unknown_fields};
use crate::{
    cluster::{GivenLimits, LimitKind},
    graph::{Dag, GraphError},
    source::strict::Object,
    source::{
        LoadError,
        error::{printable, single_line},
    },
    workload::{
        mixed::MOST_KINDS,
        node::{Node, NodeId},
        node_index::NodeIndex,
        placement::{AcceleratorKind, PlacementNode, PlacementProfile},
        profiled::{Profile, Provenance, Workload},
        recipe::Recipe,
    },
};

/// Maximum number of accelerators, and of CPUs, in a file.
pub const MAX_DEVICES: f64 = 10_000.0;
/// Speeds of an accelerator.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;
/// Maximum difference between the costs on the edges out of one node.
pub const COST_TOLERANCE: f64 = 1e-6;

/// Content of a file of this format.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementFile {
    /// Short name, safe for a terminal.
    pub name: String,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order without repetitions, over node indices.
    pub dag: Dag,
    /// Costs.
    pub profile: PlacementProfile,
    /// `maxFPGAs`.
    pub accelerators: Option<u32>,
    /// `maxCPUs`.
    pub cpus: Option<u32>,
    /// `maxSizePerFPGA`, bytes.
    pub memory_bytes: Option<f64>,
    /// Origin of the file, if it states one.
    pub provenance: Option<Provenance>,
    /// Build and run settings of the network, if the file states them.
    pub recipe: Option<Recipe>,
    /// Top-level fields that this reader does not support.
    pub unknown_fields: Vec<String>,
}

impl PlacementFile {
    /// Converts the file to a workload.
    pub fn into_workload(self, source: &str) -> Workload {
        Workload {
            name: self.name,
            source: source.into(),
            format: WorkloadFormat::Placement,
            nodes: self.nodes,
            dag: self.dag,
            profile: Profile::Placement(self.profile),
            limits: GivenLimits::default()
                .maybe(LimitKind::Devices, self.accelerators)
                .maybe(LimitKind::Cpus, self.cpus)
                .maybe(LimitKind::Memory, self.memory_bytes),
            provenance: self.provenance,
            recipe: self.recipe,
            unknown_fields: self.unknown_fields,
        }
    }
}

/// Boolean that the published files write as `true` or as `1`.
#[derive(Debug, Clone, Copy)]
struct Flag(bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlagVisitor;
        impl Visitor<'_> for FlagVisitor {
            type Value = Flag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, 1 or 0")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Flag, E> {
                match value {
                    0 | 1 => Ok(Flag(value == 1)),
                    _ => Err(E::invalid_value(Unexpected::Unsigned(value), &self)),
                }
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Flag, E> {
                Err(E::invalid_value(Unexpected::Signed(value), &self))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Flag, E> {
                if value == 0.0 || value == 1.0 {
                    Ok(Flag(value == 1.0))
                } else {
                    Err(E::invalid_value(Unexpected::Float(value), &self))
                }
            }
        }
        deserializer.deserialize_any(FlagVisitor)
    }
}

#[derive(Debug, Deserialize)]
struct RawPlacementFile {
    #[serde(rename = "maxSizePerFPGA")]
    max_size_per_fpga: Option<f64>,
    #[serde(rename = "maxFPGAs")]
    max_fpgas: Option<f64>,
    #[serde(rename = "maxCPUs")]
    max_cpus: Option<f64>,
    accelerators: Option<Vec<Object<RawAcceleratorKind>>>,
    nodes: Vec<Object<RawPlacementNode>>,
    edges: Vec<Object<RawPlacementEdge>>,
    provenance: Option<OwnField<String>>,
    assumptions: Option<OwnField<Vec<String>>>,
    recipe: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAcceleratorKind {
    kind: String,
    count: f64,
    speed: Option<f64>,
    max_size: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPlacementNode {
    id: f64,
    name: Option<String>,
    supported_on_fpga: Flag,
    cpu_latency: f64,
    fpga_latency: f64,
    is_backward_node: Flag,
    size: Option<f64>,
    color_class: Option<f64>,
    layer_id: Option<f64>,
    contained_subnodes: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPlacementEdge {
    source_id: f64,
    dest_id: f64,
    cost: f64,
}

/// Known fields at the top level; all others are listed as unknown.
const TOP_LEVEL: [&str; 9] =
    ["maxSizePerFPGA", "maxFPGAs", "maxCPUs", "accelerators", "nodes", "edges", "provenance", "assumptions", "recipe"];

/// Reads and validates a file of this format. `source` is its name in messages, `name` its name on the screen.
///
/// # Errors
/// [`LoadError`] that names file, line, JSON path and repair. Rules are checked in the order of the file.
pub fn read(text: &str, source: &str, name: &str) -> Result<PlacementFile, LoadError> {
    let raw: RawPlacementFile = parse(text, source)?;
    let reader = WorkloadReader { source, text };
    let count = |value: Option<f64>, field: &str| match value {
        None => Ok(None),
        Some(v) if v.fract() == 0.0 && (0.0..=MAX_DEVICES).contains(&v) => Ok(Some(v as u32)),
        Some(v) => Err(reader.error(field, format!("is {v}, must be a whole number from 0 to {MAX_DEVICES}"), "")),
    };
    let kinds = read_kinds(&reader, raw.accelerators.as_deref().unwrap_or_default())?;
    let memory_bytes = raw.max_size_per_fpga.map(|v| reader.not_negative(v, || "maxSizePerFPGA".into())).transpose()?;
    let mut accelerators = count(raw.max_fpgas, "maxFPGAs")?;
    if !kinds.is_empty() {
        for (field, given) in [("maxFPGAs", accelerators.is_some()), ("maxSizePerFPGA", memory_bytes.is_some())] {
            if given {
                return Err(reader.error(
                    field,
                    "is for accelerators that are alike",
                    "leave it out beside `accelerators`",
                ));
            }
        }
        accelerators = Some(kinds.iter().map(|kind| kind.count).sum());
    }
    let cpus = count(raw.max_cpus, "maxCPUs")?;
    if accelerators == Some(0) && cpus == Some(0) {
        return Err(reader.error("maxFPGAs", "and maxCPUs are both 0", "allow at least one device"));
    }
    if raw.nodes.is_empty() {
        return Err(reader.error("nodes", "is empty", "a workload needs at least one node"));
    }
    let (nodes, costs, index) = read_nodes(&reader, &raw.nodes)?;
    if costs.iter().all(|node| node.cpu_time == 0.0 && node.accelerator_time == 0.0) {
        let repair = "plans are made from times: profile the network, in milliseconds";
        return Err(reader.error("nodes", "has no node that takes any time, on an accelerator or on a CPU", repair));
    }
    let mut profile = PlacementProfile { kinds, ..PlacementProfile::from(costs) };
    let dag = read_edges(&reader, &raw.edges, &nodes, &mut profile, &index)?;
    let assumptions = raw.assumptions.and_then(OwnField::known).unwrap_or_default();
    Ok(PlacementFile {
        name: printable(name),
        nodes,
        dag,
        profile,
        accelerators,
        cpus,
        memory_bytes,
        provenance: raw.provenance.and_then(OwnField::known).map(|made_by| Provenance {
            made_by: single_line(&made_by),
            assumptions: assumptions.iter().map(|a| single_line(a)).collect(),
        }),
        recipe: reader.recipe(raw.recipe)?,
        unknown_fields: unknown_fields(text, &TOP_LEVEL),
    })
}

/// Reads the kinds of accelerators.
fn read_kinds(
    reader: &WorkloadReader<'_>,
    raw: &[Object<RawAcceleratorKind>],
) -> Result<Vec<AcceleratorKind>, LoadError> {
    if raw.len() > MOST_KINDS {
        let problem = format!("has {} kinds, must have at most {MOST_KINDS}", raw.len());
        return Err(reader.error("accelerators", problem, ""));
    }
    let mut kinds: Vec<AcceleratorKind> = vec![];
    for (i, Object(kind)) in raw.iter().enumerate() {
        let at = |field: &str| format!("accelerators[{i}].{field}");
        let id = printable(kind.kind.trim());
        let known = |own: &AcceleratorKind| own.id.eq_ignore_ascii_case(&id);
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let repair = "give each kind a name of its own of letters, digits, `-`, `_` and `.`, such as a100";
        if !id.contains(char::is_alphabetic) || !id.chars().all(is_letter) {
            return Err(reader.error(&at("kind"), format!("is `{id}`, which is no name"), repair));
        }
        if kinds.iter().any(known) {
            return Err(reader.error(&at("kind"), format!("is `{id}`, which is used already"), repair));
        }
        let all: f64 = kind.count + kinds.iter().map(|own| f64::from(own.count)).sum::<f64>();
        if kind.count.fract() != 0.0 || kind.count < 1.0 || all > MAX_DEVICES {
            let problem =
                format!("is {}, must be a whole number from 1, and all together at most {MAX_DEVICES}", kind.count);
            return Err(reader.error(&at("count"), problem, ""));
        }
        let speed = kind.speed.unwrap_or(1.0);
        if !SPEEDS.contains(&speed) {
            let problem = format!("is {speed}, must be from {} to {}", SPEEDS.start(), SPEEDS.end());
            return Err(reader.error(&at("speed"), problem, "a node takes its time divided by the speed"));
        }
        let memory_bytes = reader.not_negative(kind.max_size, || at("maxSize"))?;
        kinds.push(AcceleratorKind { id, count: kind.count as u32, speed, memory_bytes });
    }
    Ok(kinds)
}

type Nodes = (Vec<Node>, Vec<PlacementNode>, FxHashMap<NodeId, usize>);

fn read_nodes(reader: &WorkloadReader<'_>, raw: &[Object<RawPlacementNode>]) -> Result<Nodes, LoadError> {
    let mut nodes = Vec::with_capacity(raw.len());
    let mut costs = Vec::with_capacity(raw.len());
    let mut index: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (i, Object(node)) in raw.iter().enumerate() {
        let place = |field: &str| format!("nodes[{i}].{field}");
        let whole = |value: Option<f64>, field: &str| value.map(|v| reader.integer(v, || place(field))).transpose();
        let cost = |value: f64, field: &str| reader.not_negative(value, || place(field));
        let id = NodeId(reader.integer(node.id, || place("id"))?);
        if let Some(first) = index.insert(id, i) {
            return Err(reader.error(
                &place("id"),
                format!("is {id}, which nodes[{first}] has already"),
                "give every node an id of its own",
            ));
        }
        if node.contained_subnodes.is_some() {
            return Err(reader.error(
                &place("containedSubnodes"),
                "marks a node that was contracted already",
                "give the original graph, before contraction",
            ));
        }
        costs.push(PlacementNode {
            cpu_time: cost(node.cpu_latency, "cpuLatency")?,
            accelerator_time: cost(node.fpga_latency, "fpgaLatency")?,
            supported: node.supported_on_fpga.0,
            backward: node.is_backward_node.0,
            size_bytes: cost(node.size.unwrap_or(0.0), "size")?,
            colour_class: whole(node.color_class, "colorClass")?,
            layer: whole(node.layer_id, "layerId")?,
            transfer: 0.0,
        });
        let name = node.name.as_deref().map(printable).filter(|name| !name.is_empty());
        nodes.push(Node { id, name });
    }
    Ok((nodes, costs, index))
}

/// Reads the edges into a graph. The cost of an edge goes to the node that it leaves.
fn read_edges(
    reader: &WorkloadReader<'_>,
    raw: &[Object<RawPlacementEdge>],
    nodes: &[Node],
    profile: &mut PlacementProfile,
    index: &FxHashMap<NodeId, usize>,
) -> Result<Dag, LoadError> {
    let PlacementProfile { nodes: costs, uneven_transfers, repeated_edges, .. } = profile;
    let mut edges = Vec::with_capacity(raw.len());
    let mut place_of: Vec<usize> = Vec::with_capacity(raw.len());
    let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut stated: Vec<Option<usize>> = vec![None; nodes.len()];
    for (i, Object(edge)) in raw.iter().enumerate() {
        let end = |value: f64, field: &str| -> Result<usize, LoadError> {
            let path = || format!("edges[{i}].{field}");
            let id = NodeId(reader.integer(value, path)?);
            index.get(&id).copied().ok_or_else(|| {
                reader.error(&path(), format!("is {id}, which is no node's id"), "add the node or remove the edge")
            })
        };
        let (u, v) = (end(edge.source_id, "sourceId")?, end(edge.dest_id, "destId")?);
        let cost = reader.not_negative(edge.cost, || format!("edges[{i}].cost"))?;
        let (from, to) = (nodes[u].id, nodes[v].id);
        match stated[u] {
            None => {
                stated[u] = Some(i);
                costs[u].transfer = cost;
            }
            Some(first) if (costs[u].transfer - cost).abs() > COST_TOLERANCE => {
                return Err(reader.error(
                    &format!("edges[{i}].cost"),
                    format!("is {cost}, but edges[{first}], out of node {from} too, has {}", costs[u].transfer),
                    "a node sends one output: write the same cost on all its outgoing edges",
                ));
            }
            Some(_) if costs[u].transfer != cost => uneven_transfers.push(NodeIndex::new(u)),
            Some(_) => {}
        }
        if u == v {
            return Err(reader.error(&format!("edges[{i}]"), format!("leads from {from} to itself"), "remove it"));
        }
        if costs[u].backward && !costs[v].backward {
            return Err(reader.error(
                &format!("edges[{i}]"),
                format!("leads from the backward node {from} to the forward node {to}"),
                "the backward pass follows the forward pass: turn the edge or mend isBackwardNode",
            ));
        }
        if seen.insert((u as u32, v as u32)) {
            edges.push((u as u32, v as u32));
            place_of.push(i);
        } else {
            repeated_edges.push(NodeIndex::new(u));
        }
    }
    for nodes in [uneven_transfers, repeated_edges] {
        nodes.sort_unstable();
        nodes.dedup();
    }
    let kept = edges.clone();
    Dag::new(nodes.len(), edges).map_err(|GraphError::Cycle(cycle)| {
        let step = (cycle[0] as u32, cycle[1 % cycle.len()] as u32);
        let edge = kept.iter().position(|&e| e == step).map_or(0, |k| place_of[k]);
        let shown = cycle.iter().take(8).map(|&v| nodes[v].id.to_string()).collect::<Vec<_>>().join(" -> ");
        let more = if cycle.len() > 8 { " -> ..".to_string() } else { format!(" -> {}", nodes[cycle[0]].id) };
        reader.error(
            &format!("edges[{edge}]"),
            format!("lies on a cycle: {shown}{more}"),
            "a network's graph must be acyclic: remove one of these edges",
        )
    })
}
