//! Piper's JSON, as in the published files (msr-fiddle/piper, `inputs/`).
//!
//! ```text
//! { "maxDevices": k, "maxMemoryPerDevice": bytes, "bandwidth": bytes/s, "mbsInBatch": N,
//!   "nodes": [ { "id": 0, "name": "...", "TMPCs": { "<t>": [ { "id": "vanilla", "timePerSample": s,
//!                "parameterSize": B, "memoryUsageA": B, "memoryUsageB": B,
//!                "syncTimeFw": {"<predecessor>": B}, "syncTimeBw": {"<successor>": B} } ] } } ],
//!   "edges": [ { "sourceId": 0, "destId": 1, "communicationCost": B } ] }
//! ```
//!
//! The reader accepts more than the published format: the batch as `mbsInBatch` or `maxBatchSize`, absent limits, any
//! number of modes, nodes without edges, unknown fields anywhere. It also reads optional fields of plantui:
//! `provenance` with `assumptions` and `recipe` at the top, and `forwardTimePerSample` in a mode.
//!
//! Two names of the published format are misleading: `syncTimeFw` is keyed by *predecessors* and `syncTimeBw` by
//! *successors*, and both are bytes.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use super::{
    format::WorkloadFormat,
    reader::{OwnField, WorkloadReader, parse, unknown_fields},
};
use crate::source::strict::{JsonPairs, Object};
use crate::{
    cluster::{GivenLimits, LimitKind, MOST_LISTED_DEVICES, MOST_MICROBATCHES},
    graph::{Dag, GraphError},
    source::{
        LoadError,
        error::{printable, single_line},
    },
    units::exact_number,
    workload::{
        node::{Node, NodeId},
        piper::{DegreeProfile, Mode, NodeProfile, PiperProfile},
        profiled::{Profile, Provenance, Workload},
    },
};

/// Maximum number of devices and maximum tensor-parallel degree in a file (as published).
pub const MAX_DEVICES: f64 = MOST_LISTED_DEVICES as f64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPiperFile {
    max_memory_per_device: Option<f64>,
    max_devices: Option<f64>,
    bandwidth: Option<f64>,
    mbs_in_batch: Option<f64>,
    max_batch_size: Option<f64>,
    nodes: Vec<Object<RawPiperNode>>,
    edges: Vec<Object<RawPiperEdge>>,
    provenance: Option<OwnField<String>>,
    assumptions: Option<OwnField<Vec<String>>>,
    recipe: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct RawPiperNode {
    id: f64,
    name: Option<String>,
    #[serde(rename = "TMPCs")]
    tmpcs: JsonPairs<Vec<Object<RawMode>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMode {
    id: String,
    time_per_sample: f64,
    forward_time_per_sample: Option<f64>,
    parameter_size: f64,
    memory_usage_a: f64,
    memory_usage_b: f64,
    sync_time_fw: JsonPairs<f64>,
    sync_time_bw: JsonPairs<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPiperEdge {
    source_id: f64,
    dest_id: f64,
    communication_cost: f64,
}

/// Known fields at the top level; all others are listed as unknown.
const TOP_LEVEL: [&str; 10] = [
    "maxMemoryPerDevice",
    "maxDevices",
    "bandwidth",
    "mbsInBatch",
    "maxBatchSize",
    "nodes",
    "edges",
    "provenance",
    "assumptions",
    "recipe",
];

/// Reads and validates a Piper workload.
///
/// # Errors
/// [`LoadError`] that names file, line, JSON path and repair. Rules are checked in the order of the file.
pub fn read(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let raw: RawPiperFile = parse(text, source)?;
    let unknown_fields = unknown_fields(text, &TOP_LEVEL);
    WorkloadReader { source, text }.workload(raw, name, unknown_fields)
}

impl WorkloadReader<'_> {
    fn workload(&self, mut raw: RawPiperFile, name: &str, unknown_fields: Vec<String>) -> Result<Workload, LoadError> {
        let limits = self.limits(&raw)?;
        if raw.nodes.is_empty() {
            return Err(self.error("nodes", "is empty", "a workload needs at least one node"));
        }
        let recipe = self.recipe(raw.recipe.take())?;
        let (nodes, index) = self.nodes(&raw.nodes)?;
        let (dag, edge_bytes) = self.edges(&raw.edges, &nodes, &index)?;
        let mut profiles = Vec::with_capacity(nodes.len());
        for (i, Object(node)) in raw.nodes.into_iter().enumerate() {
            profiles.push(self.node_profile(i, node.tmpcs, &nodes, &dag)?);
        }
        let mut modes = profiles.iter().flat_map(|node: &NodeProfile| &node.degrees).flat_map(|degree| &degree.modes);
        if modes.all(|mode| mode.time_s == 0.0) {
            let repair = "plans are made from times: profile the network, in seconds";
            return Err(self.error("nodes", "has no node that takes any time, in any mode", repair));
        }
        Ok(Workload {
            name: printable(name),
            source: self.source.into(),
            format: WorkloadFormat::Piper,
            nodes,
            dag,
            profile: Profile::Piper(PiperProfile { nodes: profiles, edge_bytes }),
            limits,
            provenance: raw.provenance.and_then(OwnField::known).map(|made_by| Provenance {
                made_by: single_line(&made_by),
                assumptions: raw
                    .assumptions
                    .and_then(OwnField::known)
                    .unwrap_or_default()
                    .iter()
                    .map(|a| single_line(a))
                    .collect(),
            }),
            recipe,
            unknown_fields,
        })
    }

    fn limits(&self, raw: &RawPiperFile) -> Result<GivenLimits, LoadError> {
        let count = |value: Option<f64>, field: &str, most: u32| match value {
            None => Ok(None),
            Some(v) if v.fract() == 0.0 && (1.0..=f64::from(most)).contains(&v) => Ok(Some(v as u32)),
            Some(v) => {
                let shown = exact_number(v);
                Err(self.error(field, format!("is {shown}, must be a whole number from 1 to {most}"), ""))
            }
        };
        let memory_bytes = self.limit(raw.max_memory_per_device, "maxMemoryPerDevice")?;
        let devices = count(raw.max_devices, "maxDevices", MOST_LISTED_DEVICES)?;
        let bandwidth_bytes_per_s = self.limit(raw.bandwidth, "bandwidth")?;
        let batch = count(raw.mbs_in_batch, "mbsInBatch", MOST_MICROBATCHES)?;
        let other_batch = count(raw.max_batch_size, "maxBatchSize", MOST_MICROBATCHES)?;
        if let (Some(a), Some(b)) = (batch, other_batch)
            && a != b
        {
            return Err(self.error(
                "maxBatchSize",
                format!("is {b}, but mbsInBatch is {a}"),
                "both name the microbatches in a batch: keep one",
            ));
        }
        let microbatches = batch.or(other_batch);
        Ok(GivenLimits::default()
            .maybe(LimitKind::Devices, devices)
            .maybe(LimitKind::Memory, memory_bytes)
            .maybe(LimitKind::Microbatches, microbatches)
            .maybe(LimitKind::Bandwidth, bandwidth_bytes_per_s))
    }

    fn nodes(&self, raw: &[Object<RawPiperNode>]) -> Result<(Vec<Node>, FxHashMap<NodeId, usize>), LoadError> {
        let mut nodes = Vec::with_capacity(raw.len());
        let mut index: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (i, Object(node)) in raw.iter().enumerate() {
            let id = NodeId(self.integer(node.id, || format!("nodes[{i}].id"))?);
            if let Some(first) = index.insert(id, i) {
                return Err(self.error(
                    &format!("nodes[{i}].id"),
                    format!("is {id}, which nodes[{first}] has already"),
                    "give every node an id of its own",
                ));
            }
            let name = node.name.as_deref().map(printable).filter(|name| !name.is_empty());
            nodes.push(Node { id, name });
        }
        Ok((nodes, index))
    }

    fn edges(
        &self,
        raw: &[Object<RawPiperEdge>],
        nodes: &[Node],
        index: &FxHashMap<NodeId, usize>,
    ) -> Result<(Dag, Vec<f64>), LoadError> {
        let mut edges = Vec::with_capacity(raw.len());
        let mut edge_bytes = Vec::with_capacity(raw.len());
        let mut seen: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        for (i, Object(edge)) in raw.iter().enumerate() {
            let end = |value: f64, field: &str| -> Result<u32, LoadError> {
                let path = || format!("edges[{i}].{field}");
                let id = NodeId(self.integer(value, path)?);
                index.get(&id).map(|&v| v as u32).ok_or_else(|| {
                    self.error(&path(), format!("is {id}, which is no node's id"), "add the node or remove the edge")
                })
            };
            let (u, v) = (end(edge.source_id, "sourceId")?, end(edge.dest_id, "destId")?);
            edge_bytes.push(self.not_negative(edge.communication_cost, || format!("edges[{i}].communicationCost"))?);
            if let Some(first) = seen.insert((u, v), i) {
                let (from, to) = (nodes[u as usize].id, nodes[v as usize].id);
                return Err(self.error(
                    &format!("edges[{i}]"),
                    format!("from {from} to {to} repeats edges[{first}]"),
                    "merge the two into one edge with the sum of their bytes",
                ));
            }
            edges.push((u, v));
        }
        let first_edge: FxHashMap<(u32, u32), usize> = seen;
        let dag = Dag::new(nodes.len(), edges).map_err(|GraphError::Cycle(cycle)| {
            let edge = first_edge.get(&(cycle[0] as u32, cycle[1 % cycle.len()] as u32)).copied().unwrap_or(0);
            let shown = cycle.iter().take(8).map(|&v| nodes[v].id.to_string()).collect::<Vec<_>>().join(" -> ");
            let more = if cycle.len() > 8 { " -> ..".to_string() } else { format!(" -> {}", nodes[cycle[0]].id) };
            self.error(
                &format!("edges[{edge}]"),
                format!("lies on a cycle: {shown}{more}"),
                "a network's graph must be acyclic: remove one of these edges",
            )
        })?;
        Ok((dag, edge_bytes))
    }

    fn node_profile(
        &self,
        i: usize,
        raw: JsonPairs<Vec<Object<RawMode>>>,
        nodes: &[Node],
        dag: &Dag,
    ) -> Result<NodeProfile, LoadError> {
        let path = format!("nodes[{i}].TMPCs");
        let slots = |of: &mut dyn Iterator<Item = usize>, kind| Neighbours {
            kind,
            slots: of.enumerate().map(|(slot, v)| (nodes[v].id, slot)).collect(),
        };
        let predecessors = slots(&mut dag.predecessors(i), "predecessor");
        let successors = slots(&mut dag.successors(i), "successor");
        let mut degrees: Vec<DegreeProfile> = vec![];
        let mut seen = FxHashSet::default();
        for (key, modes) in raw.0 {
            let place = format!("{path}.{key}");
            let degree = match key.parse::<u32>() {
                Ok(t) if (1..=MOST_LISTED_DEVICES).contains(&t) && !key.starts_with('+') => t,
                _ => {
                    return Err(self.error(
                        &path,
                        format!("has the key `{}`", printable(&key)),
                        "keys are tensor-parallel degrees, whole numbers from 1 to 10000",
                    ));
                }
            };
            if !seen.insert(degree) {
                return Err(self.error(
                    &path,
                    format!("has degree {degree} twice"),
                    "keep one list of modes per degree",
                ));
            }
            let mut list: Vec<Mode> = Vec::with_capacity(modes.len());
            let mut ids: FxHashMap<String, usize> = FxHashMap::default();
            for (j, Object(mode)) in modes.into_iter().enumerate() {
                let mode = self.mode(&format!("{place}[{j}]"), mode, &predecessors, &successors)?;
                if let Some(first) = ids.insert(mode.id.clone(), j) {
                    return Err(self.error(
                        &format!("{place}[{j}].id"),
                        format!("is `{}`, which {place}[{first}] has already", mode.id),
                        "give every mode of a degree an id of its own",
                    ));
                }
                list.push(mode);
            }
            // An empty list means that the node does not support the degree.
            if !list.is_empty() {
                degrees.push(DegreeProfile { degree, modes: list });
            }
        }
        if degrees.is_empty() {
            return Err(self.error(
                &path,
                "has no mode for any tensor-parallel degree",
                "give the node at least one mode, such as `\"1\": [{\"id\": \"vanilla\", ..}]`",
            ));
        }
        degrees.sort_by_key(|d| d.degree);
        Ok(NodeProfile { degrees })
    }

    fn mode(
        &self,
        place: &str,
        raw: RawMode,
        predecessors: &Neighbours,
        successors: &Neighbours,
    ) -> Result<Mode, LoadError> {
        if printable(&raw.id).is_empty() {
            return Err(self.error(&format!("{place}.id"), "is empty", "name the mode, for example `vanilla`"));
        }
        let value = |value: f64, field: &str| self.not_negative(value, || format!("{place}.{field}"));
        let time_s = value(raw.time_per_sample, "timePerSample")?;
        let forward_s = match raw.forward_time_per_sample {
            None => None,
            Some(forward) => {
                let forward = value(forward, "forwardTimePerSample")?;
                if forward > time_s {
                    return Err(self.error(
                        &format!("{place}.forwardTimePerSample"),
                        format!("is {}, more than timePerSample {}", exact_number(forward), exact_number(time_s)),
                        "timePerSample is forward and backward together",
                    ));
                }
                Some(forward)
            }
        };
        Ok(Mode {
            id: printable(&raw.id),
            time_s,
            forward_s,
            parameters: value(raw.parameter_size, "parameterSize")?,
            memory_a: value(raw.memory_usage_a, "memoryUsageA")?,
            memory_b: value(raw.memory_usage_b, "memoryUsageB")?,
            sync_in: self.sync(&format!("{place}.syncTimeFw"), raw.sync_time_fw, predecessors)?,
            sync_out: self.sync(&format!("{place}.syncTimeBw"), raw.sync_time_bw, successors)?,
        })
    }

    /// Values of a sync object in the order of `neighbours`. Its keys must be exactly their ids.
    fn sync(&self, place: &str, raw: JsonPairs<f64>, neighbours: &Neighbours) -> Result<Vec<f64>, LoadError> {
        let kind = neighbours.kind;
        let mut values = vec![f64::NAN; neighbours.slots.len()];
        for (key, bytes) in raw.0 {
            let Some(&slot) = key.parse().ok().and_then(|id| neighbours.slots.get(&NodeId(id))) else {
                return Err(self.error(
                    place,
                    format!("names `{}`, which is no {kind} of the node", printable(&key)),
                    format!("keys are exactly the ids of the node's {kind}s"),
                ));
            };
            if !values[slot].is_nan() {
                return Err(self.error(place, format!("names {key} twice"), "keep one"));
            }
            values[slot] = self.not_negative(bytes, || format!("{place}.{key}"))?;
        }
        if let Some(missing) = values.iter().position(|v| v.is_nan()) {
            let id = neighbours.id_at(missing);
            return Err(self.error(
                place,
                format!("lacks the {kind} {id}"),
                format!("add `\"{id}\": bytes` (0 if nothing is gathered)"),
            ));
        }
        Ok(values)
    }
}

/// Ids that a sync object of one node must have, with their position among the node's edges.
struct Neighbours {
    /// `predecessor` or `successor`.
    kind: &'static str,
    slots: FxHashMap<NodeId, usize>,
}

impl Neighbours {
    /// Id at a position; every position has one.
    fn id_at(&self, slot: usize) -> NodeId {
        let mut ids: Vec<(usize, NodeId)> = self.slots.iter().map(|(&id, &slot)| (slot, id)).collect();
        ids.sort_unstable();
        ids[slot].1
    }
}
