//! plantui's own JSON, schema `plantui.topology/1`.

use serde::{Deserialize, Serialize};

use super::{joined, refused};
use crate::{
    cluster::topology::graph::{Duplex, FigureSource, Link, Topology, TopologyProblem, Vertex, VertexKind},
    source::{LoadError, locate, syntax},
    text::printable,
    units::{self, UnitError},
};

/// Schema that is read and written.
pub const SCHEMA: &str = "plantui.topology/1";

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct File {
    /// `plantui.topology/1`.
    schema: String,
    /// Name in reports and plans.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// Description in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    title: String,
    /// Memory per device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<Quantity>,
    /// Hardware preset of the devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hardware: Option<String>,
    /// True if devices pass on what is not for them.
    #[serde(default)]
    relay: bool,
    /// Devices, in the order of their numbers.
    devices: Vec<TopologyNode>,
    /// Switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    switches: Vec<TopologyNode>,
    /// Network cards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nics: Vec<TopologyNode>,
    /// Hosts: CPU sockets with their memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<TopologyNode>,
    /// Links between any two of them.
    links: Vec<Wire>,
    /// Sources of figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sources: Vec<Origin>,
    /// Remarks on the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct TopologyNode {
    /// Name of the device, switch, NIC or host.
    id: String,
    /// Name of its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Wire {
    /// One end.
    from: String,
    /// The other end.
    to: String,
    /// Bytes per second each way, or text with a unit.
    bandwidth: Quantity,
    /// Seconds, or text with a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency: Option<Quantity>,
    /// `full` (the default) if both directions have the bandwidth at once, `half` if they share it, `one-way` if there is only
    /// the one from `from` to `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duplex: Option<String>,
    /// Kind of the link in words, such as `NVLink`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    what: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Origin {
    /// Figure that the source is of.
    figure: String,
    /// Its source.
    source: String,
}

/// Number in base units, or text with its unit.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Quantity {
    Number(f64),
    Text(String),
}

impl Quantity {
    fn read(&self, parse: impl Fn(&str) -> Result<f64, UnitError>, least: f64) -> Result<f64, String> {
        match self {
            Quantity::Number(value) if value.is_finite() && *value >= least => Ok(*value),
            Quantity::Number(value) if least > 0.0 => {
                Err(format!("is {}, must be above 0", units::exact_number(*value)))
            }
            Quantity::Number(value) => Err(format!("is {}, must not be below 0", units::exact_number(*value))),
            Quantity::Text(text) => parse(text).map_err(|error| format!("cannot be read: {error}")),
        }
    }
}

const KINDS: [(&str, VertexKind); 4] = [
    ("devices", VertexKind::Device),
    ("switches", VertexKind::Switch),
    ("nics", VertexKind::Nic),
    ("hosts", VertexKind::Host),
];

/// Reads plantui's JSON.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let file: File =
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| syntax::refuse(source, text, &error))?;
    deserializer.end().map_err(|error| {
        LoadError::file(source, "has text after its JSON", "keep one object").on_line(Some(error.line()))
    })?;
    let at = |path: String, problem: String, repair: &str| {
        let line = locate::line_of(text, &path);
        LoadError::at(source, path, problem, repair).on_line(line)
    };
    if file.schema != SCHEMA {
        let problem = format!("is `{}`, must be `{SCHEMA}`", printable(&file.schema));
        return Err(at("schema".into(), problem, "give a topology"));
    }
    let mut machines: Vec<&str> = vec![];
    let mut vertices = vec![];
    for (kind, nodes) in KINDS.iter().zip([&file.devices, &file.switches, &file.nics, &file.hosts]) {
        for node in nodes {
            let machine = node.machine.as_deref().map(|machine| {
                let known = machines.iter().position(|known| *known == machine).unwrap_or(machines.len());
                if known == machines.len() {
                    machines.push(machine);
                }
                known as u32
            });
            vertices.push(Vertex { name: printable(&node.id), kind: kind.1, machine });
        }
    }
    let index: std::collections::HashMap<&str, u32> = (0..)
        .zip(file.devices.iter().chain(&file.switches).chain(&file.nics).chain(&file.hosts))
        .map(|(index, node)| (node.id.as_str(), index))
        .collect();
    let mut links = vec![];
    for (number, wire) in file.links.iter().enumerate() {
        let place = |field: &str| format!("links[{number}].{field}");
        let end = |field: &str, name: &str| {
            let problem = || format!("is `{}`, which is not the id of anything", printable(name));
            let repair = "use the id of a device, switch, NIC or host";
            index.get(name).copied().ok_or_else(|| at(place(field), problem(), repair))
        };
        let (from, to) = (end("from", &wire.from)?, end("to", &wire.to)?);
        let bandwidth = wire.bandwidth.read(units::parse_bandwidth, f64::MIN_POSITIVE);
        let bandwidth =
            bandwidth.map_err(|why| at(place("bandwidth"), why, "write bytes per second, or \"25GB/s\""))?;
        let latency = wire.latency.as_ref().map_or(Ok(0.0), |latency| latency.read(units::parse_seconds, 0.0));
        let latency_s = latency.map_err(|why| at(place("latency"), why, "write seconds, or \"2us\""))?;
        let word = wire.duplex.as_deref().unwrap_or("full");
        let duplex = [Duplex::Full, Duplex::Half, Duplex::OneWay].into_iter().find(|duplex| duplex.name() == word);
        let duplex = duplex
            .ok_or_else(|| at(place("duplex"), format!("is `{}`", printable(word)), "write full, half or one-way"))?;
        links.push(Link { from, to, bandwidth, latency_s, duplex, what: printable(&wire.what) });
    }
    let own = printable(&file.name);
    let name = if own.is_empty() { name } else { &own };
    let mut topology = Topology::new(name, vertices, links).map_err(|problem| {
        let line = match &problem {
            TopologyProblem::NoDevice | TopologyProblem::TooManyDevices(_) | TopologyProblem::TooManyMachines => {
                locate::line_of(text, "devices")
            }
            _ => None,
        };
        refused(source, &problem).on_line(line)
    })?;
    if let Some(memory) = &file.memory {
        let bytes = memory.read(units::parse_bytes, f64::MIN_POSITIVE);
        topology.memory_bytes = Some(bytes.map_err(|why| at("memory".into(), why, "write bytes, or \"16GiB\""))?);
    }
    if !file.title.is_empty() {
        topology.title = printable(&file.title);
    }
    topology.hardware = file.hardware.as_deref().map(printable);
    topology.relay = file.relay;
    topology.notes = file.notes.iter().map(|note| printable(note)).collect();
    let origin =
        |origin: &Origin| FigureSource { figure: printable(&origin.figure), source: printable(&origin.source) };
    topology.sources = file.sources.iter().map(origin).collect();
    joined(topology, source)
}

impl Topology {
    /// Topology as JSON that reads back, schema [`SCHEMA`].
    pub fn json(&self) -> String {
        let topology = self;
        let nodes = |kind: VertexKind| -> Vec<TopologyNode> {
            let vertices = topology.vertices().iter().filter(|vertex| vertex.kind == kind);
            let machine = |machine: u32| format!("machine{machine}");
            vertices
                .map(|vertex| TopologyNode { id: vertex.name.clone(), machine: vertex.machine.map(machine) })
                .collect()
        };
        let name = |vertex: u32| topology.vertices()[vertex as usize].name.clone();
        let wire = |link: &Link| Wire {
            from: name(link.from),
            to: name(link.to),
            bandwidth: Quantity::Number(link.bandwidth),
            latency: (link.latency_s > 0.0).then_some(Quantity::Number(link.latency_s)),
            duplex: (link.duplex != Duplex::Full).then(|| link.duplex.name().into()),
            what: link.what.clone(),
        };
        let origin = |source: &FigureSource| Origin { figure: source.figure.clone(), source: source.source.clone() };
        let file = File {
            schema: SCHEMA.into(),
            name: topology.name.clone(),
            title: topology.title.clone(),
            memory: topology.memory_bytes.map(Quantity::Number),
            hardware: topology.hardware.clone(),
            relay: topology.relay,
            devices: nodes(VertexKind::Device),
            switches: nodes(VertexKind::Switch),
            nics: nodes(VertexKind::Nic),
            hosts: nodes(VertexKind::Host),
            links: topology.links().iter().map(wire).collect(),
            sources: topology.sources.iter().map(origin).collect(),
            notes: topology.notes.clone(),
        };
        // Numbers, strings and lists always serialise.
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }
}

/// JSON Schema of the format.
#[cfg(feature = "schema")]
pub(super) fn schema() -> crate::schemas::DocumentSchema {
    crate::schemas::DocumentSchema::read::<File>(SCHEMA)
}
