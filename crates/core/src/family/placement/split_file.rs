//! Published file of a device placement: the nodes of each accelerator and CPU.
//!
//! ```text
//! { "maxLoad": x, "fpgas": [ { "load": x, "nodes": [ids] } ], "cpus": [ { "load": x, "nodes": [ids] } ] }
//! { "totalLatency": x, "fpgas": [ { "nodes": [ids] } ], "cpus": [ { "nodes": [ids] } ] }
//! ```
//!
//! Where accelerators are of several kinds, the list names all of them in the order of their numbers, those without nodes
//! too. The loads of devices are ignored. A negative value means unknown in the published program. Devices are written from
//! the last stage to the first, as by that program. The order between accelerators and CPUs is lost, so reading sorts
//! the devices along the edges of the forward pass, if these have an order. `O(n + m)`.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    cluster::GivenLimits,
    family::read::{LoadedPlan, parse},
    graph::Dag,
    plan::{
        Measure, Plan, Score, Stage,
        figures::{Claims, Figures},
    },
    source::{LoadError, strict::Object},
    workload::{Choice, Node, NodeId, NodeIndex, PlacementProfile, Workload, placement::SECONDS},
};

/// Shape of a split file, for messages.
const SHAPE: &str = "a split is `{\"fpgas\": [{\"nodes\": [ids]}], \"cpus\": [{\"nodes\": [ids]}]}`";

/// Relative tolerance of a claimed value. Splits may come from solvers, whose values are only as exact as their
/// tolerances.
const CLAIM_TOLERANCE: f64 = 1e-6;

/// Split in a file. Nodes are indices, and some may be missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SplitFile {
    /// Nodes of each accelerator, in the order of the file.
    pub accelerators: Vec<Vec<NodeIndex>>,
    /// Nodes of each CPU, in the order of the file.
    pub cpus: Vec<Vec<NodeIndex>>,
    /// Claimed max-load, in the unit of the profile.
    pub max_load: Option<f64>,
    /// Claimed latency, in the unit of the profile.
    pub total_latency: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSplit {
    #[serde(default)]
    fpgas: Vec<Object<RawDevice>>,
    #[serde(default)]
    cpus: Vec<Object<RawDevice>>,
    max_load: Option<f64>,
    total_latency: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct RawDevice {
    nodes: Vec<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OutSplit {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_load: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_latency: Option<f64>,
    fpgas: Vec<OutDevice>,
    cpus: Vec<OutDevice>,
}

#[derive(Debug, Serialize)]
struct OutDevice {
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<f64>,
    nodes: Vec<NodeId>,
}

impl SplitFile {
    /// Reads a split of a graph's nodes. `source` is the file's name in messages.
    ///
    /// # Errors
    /// [`LoadError`] if the file has another format, names a node that the graph lacks, or names one twice.
    pub fn read(text: &str, source: &str, nodes: &[Node]) -> Result<SplitFile, LoadError> {
        let Object(raw): Object<RawSplit> = parse(text, source)?;
        if raw.fpgas.is_empty() && raw.cpus.is_empty() {
            return Err(LoadError::file(source, "names no device", SHAPE));
        }
        let index: FxHashMap<i64, NodeIndex> =
            NodeIndex::enumerate(nodes).map(|(index, node)| (node.id.0, index)).collect();
        let mut place_of: Vec<Option<String>> = vec![None; nodes.len()];
        let mut devices = |key: &str, list: Vec<Object<RawDevice>>| -> Result<Vec<Vec<NodeIndex>>, LoadError> {
            let mut devices = vec![];
            for (d, Object(device)) in list.into_iter().enumerate() {
                let mut members = Vec::with_capacity(device.nodes.len());
                for (i, id) in device.nodes.into_iter().enumerate() {
                    let place = format!("{key}[{d}].nodes[{i}]");
                    let Some(&node) = index.get(&id) else {
                        let problem = format!("is {id}, which is no node's id");
                        return Err(LoadError::at(source, place, problem, "is it the split of another workload?"));
                    };
                    if let Some(first) = place_of[node.index()].replace(place.clone()) {
                        let problem = format!("is {id}, which {first} is already");
                        return Err(LoadError::at(source, place, problem, "put each node on one device"));
                    }
                    members.push(node);
                }
                members.sort_unstable();
                devices.push(members);
            }
            Ok(devices)
        };
        let (accelerators, cpus) = (devices("fpgas", raw.fpgas)?, devices("cpus", raw.cpus)?);
        let known = |value: Option<f64>| value.filter(|&value| value >= 0.0);
        let (max_load, total_latency) = (known(raw.max_load), known(raw.total_latency));
        Ok(SplitFile { accelerators, cpus, max_load, total_latency })
    }
}

/// Reads a split as a plan: for latency if the file has `totalLatency`, else for max-load.
///
/// # Errors
/// [`LoadError`] as [`SplitFile::read`], or if the workload cannot be split so.
pub(crate) fn read(workload: &Workload, text: &str, source: &str) -> Result<LoadedPlan, LoadError> {
    let Some(profile) = workload.placement() else {
        let problem = format!("is a device placement, and {} has no times for one", workload.name);
        return Err(LoadError::file(source, problem, "check it with its own workload"));
    };
    let file = SplitFile::read(text, source, &workload.nodes)?;
    let known = profile.kinds.iter().map(|kind| kind.count as usize).sum::<usize>();
    if !profile.kinds.is_empty() && file.accelerators.len() != known {
        let problem = format!("lists {} accelerators, and {} has {known}", file.accelerators.len(), workload.name);
        let repair = "list them in the order of their kinds, with no nodes where one is idle";
        return Err(LoadError::at(source, "fpgas", problem, repair));
    }
    let cpus = file.cpus.iter().filter(|nodes| !nodes.is_empty()).count();
    let listed = file.accelerators.len() as u32;
    let devices = (0..).zip(file.accelerators).map(|(number, nodes)| (nodes, Choice::Accelerator, number));
    let devices = devices.chain((listed..).zip(file.cpus).map(|(number, nodes)| (nodes, Choice::Cpu, number)));
    let mut devices: Vec<ListedDevice> = devices.filter(|(nodes, ..)| !nodes.is_empty()).collect();
    in_order(workload, profile, &mut devices);
    let measure = match file.total_latency {
        Some(_) if file.max_load.is_none() => Measure::Latency { subgraphs: None },
        _ => Measure::MaxLoad,
    };
    let mut plan = Plan { measure, ..Plan::default() };
    let accelerators = devices.iter().filter(|(_, choice, _)| *choice == Choice::Accelerator).count() as u32;
    let accelerators = workload.limits.devices().unwrap_or(0).max(accelerators);
    for (nodes, choice, number) in devices {
        let choices = vec![choice; nodes.len()];
        plan.stages.push(Stage { nodes, choices, data_parallel: 1, tensor_parallel: 1, devices: vec![number] });
    }
    let alike = profile.kinds.is_empty();
    let plan = if alike { plan.with_devices_by_kind(accelerators) } else { plan };
    let value = if measure == Measure::MaxLoad { file.max_load } else { file.total_latency };
    let mut notes = vec![];
    if cpus > 1 && measure == Measure::MaxLoad {
        notes.push("each CPU is a device of its own; the published evaluation sums over all CPUs".to_string());
    }
    Ok(LoadedPlan {
        plan,
        limits: GivenLimits::default(),
        planner: None,
        recipe: None,
        training: None,
        kinds: vec![],
        options: std::collections::BTreeMap::new(),
        claims: Claims { value, lower_bound: None, tolerance: CLAIM_TOLERANCE },
        figures: Figures::default(),
        kind: "placement split",
        notes,
        accelerators: Some(accelerators).filter(|_| alike),
    })
}

/// Nodes of a device, its kind, and its number in the lists.
type ListedDevice = (Vec<NodeIndex>, Choice, u32);

/// Sorts devices along the data flow, if that is possible.
fn in_order(workload: &Workload, profile: &PlacementProfile, devices: &mut Vec<ListedDevice>) {
    let mut device_of = vec![None; workload.nodes.len()];
    for (d, (nodes, ..)) in devices.iter().enumerate() {
        nodes.iter().for_each(|node| device_of[node.index()] = Some(d as u32));
    }
    let forward = |v: NodeIndex| device_of[v.index()].filter(|_| !profile.nodes[v].backward);
    let crossing = workload.edges().filter_map(|(u, v)| forward(u).zip(forward(v)));
    if let Ok(order) = Dag::new(devices.len(), crossing.filter(|(from, to)| from != to).collect()) {
        let mut taken: Vec<Option<ListedDevice>> = devices.drain(..).map(Some).collect();
        devices.extend(order.topological_order().iter().filter_map(|&d| taken[d as usize].take()));
    }
}

/// Converts a checked plan to a split file, ending in a newline. Subgraphs of one accelerator must be joined before
/// ([`Plan::measured_by`]). `score` is that of `plan` under its own measure, and the file claims its max-load or its
/// latency.
pub fn to_json(workload: &Workload, plan: &Plan, score: &Score) -> String {
    let latency = matches!(plan.measure, Measure::Latency { .. });
    let device = |place: usize| {
        let mut nodes: Vec<NodeId> = plan.stages[place].nodes.iter().map(|&node| workload.nodes[node].id).collect();
        nodes.sort_unstable();
        OutDevice { load: (!latency).then_some(score.stages[place].load_s / SECONDS), nodes }
    };
    let on = |place: &usize, cpu: bool| plan.stages[*place].on_cpus() == cpu;
    let places = 0..plan.stages.len();
    let of_kind = |cpu: bool| places.clone().rev().filter(|place| on(place, cpu)).map(device).collect();
    let kinds = workload.placement().map_or(&[][..], |profile| &profile.kinds);
    let numbers = 0..kinds.iter().map(|kind| kind.count).sum();
    let numbered = |number: u32| {
        let place =
            places.clone().find(|place| on(place, false) && plan.stages[*place].devices.first() == Some(&number));
        place.map_or(OutDevice { load: (!latency).then_some(0.0), nodes: vec![] }, device)
    };
    let accelerators = if kinds.is_empty() { of_kind(false) } else { numbers.map(numbered).collect() };
    let out = OutSplit {
        max_load: (!latency).then_some(score.slowest_s / SECONDS),
        total_latency: Some(score.value).filter(|value| latency && value.is_finite()),
        fpgas: accelerators,
        cpus: of_kind(true),
    };
    serde_json::to_string_pretty(&out).expect("numbers and lists are JSON") + "\n"
}
