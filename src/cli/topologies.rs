//! `plantui topologies`: lists the cluster presets, each figure with its source, and draws one.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CommandEnd, Failure,
    output::{self, Destination},
    report::{line, table},
    topology_input::{self, LinkFlags},
};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::{
        Machines,
        topology::{self, Halves, LinkRule, Topology},
    },
    export, units,
};

const EXAMPLES: &str = "\
Examples:
  plantui topologies                              presets, tori and networks
  plantui topologies dgx-1                        bandwidths, links and the bisection
  plantui topologies 2xdgx-a100+eth-100g --svg -o two.svg
  plantui topologies dgx-1 --json > mine.json     edit it and read it back
  nvidia-smi topo -m | plantui topologies -
  plantui topologies 4xbox.txt+ib-ndr --hardware h100   four machines of a saved table
  plantui plan graph.txt --topology dapple-a --batch 128

A name is [N x]PRESET[+NETWORK] or [N x]FILE[+NETWORK]. Without a network the machines' own NICs join them. A file \
is plantui's JSON, a CSV matrix in GB/s, or the output of `nvidia-smi topo -m`, p2pBandwidthLatencyTest, \
nvbandwidth, `rocm-smi --showtopo`, `amd-smi topology` or nccl-tests.";

/// List the topology presets, or show one topology
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TopologiesArgs {
    /// A preset such as dgx-1 or 4xdgx-h100, or a file; `-` is standard input
    #[arg(value_name = "NAME|FILE")]
    topology: Option<String>,
    /// Hardware of the devices; its data sheet gives the bandwidth of an NVLink
    #[arg(long, value_name = "ID", requires = "topology")]
    hardware: Option<String>,
    #[command(flatten)]
    links: LinkFlags,
    /// Prints JSON: a list of the presets, or one topology, which plantui can read
    #[arg(long)]
    json: bool,
    /// Draws the topology as SVG
    #[arg(long, requires = "topology", conflicts_with_all = ["json", "dot"])]
    svg: bool,
    /// Writes the topology for Graphviz
    #[arg(long, requires = "topology", conflicts_with = "json")]
    dot: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TopologyEntry {
    id: String,
    name: String,
    devices: usize,
    machines: Machines,
    memory_bytes: Option<f64>,
    nvlink_bandwidth: Option<f64>,
    ethernet_bandwidth: Option<f64>,
    all_reduce_bandwidth: Option<f64>,
    sources: Vec<SourceEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SourceEntry {
    figure: String,
    source: String,
}

impl TopologiesArgs {
    /// Prints the list, or one topology.
    ///
    /// # Errors
    /// [`Failure`] if the topology does not exist, its file is refused, or the output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let text = match &self.topology {
            None => {
                let entries = entries()?;
                if self.json { output::json(&entries) } else { listed(&entries) }
            }
            Some(name) => {
                let topology = topology_input::topology(name, self.links, self.hardware.as_deref())?;
                if let Some(hardware) = &self.hardware {
                    topology_input::agree(&topology, hardware)?;
                }
                match (self.json, self.svg, self.dot) {
                    (true, ..) => topology.json(),
                    (_, true, _) => export::topology::svg(&topology),
                    (.., true) => export::topology::dot(&topology),
                    _ => shown(&topology),
                }
            }
        };
        destination.write(&text)?;
        Ok(CommandEnd::Done)
    }
}

fn entries() -> Result<Vec<TopologyEntry>, Failure> {
    let presets = topology::PRESETS.iter().map(|preset| preset.id);
    let tori = topology::TORI.iter().map(|torus| torus.example);
    let published = topology::PUBLISHED.iter().map(|cluster| cluster.id);
    presets.chain(tori).chain(published).map(entry).collect()
}

fn entry(id: &str) -> Result<TopologyEntry, Failure> {
    let topology = topology_input::topology(id, LinkFlags::default(), None)?;
    let rule = LinkRule::of(&topology);
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let published = topology::find_published(id).map(|cluster| cluster.links);
    let source =
        |source: &topology::FigureSource| SourceEntry { figure: source.figure.clone(), source: source.source.clone() };
    Ok(TopologyEntry {
        id: id.into(),
        name: topology.title.clone(),
        devices: topology.devices(),
        machines: topology.machines(),
        memory_bytes: topology.memory_bytes,
        nvlink_bandwidth: published.map(|links| links.in_machine).or(finite(rule.within)),
        ethernet_bandwidth: published.map(|links| links.between_machines).or(finite(rule.across)),
        all_reduce_bandwidth: published.map(|links| links.all_reduce).or(finite(rule.across)),
        sources: topology.sources.iter().map(source).collect(),
    })
}

fn listed(entries: &[TopologyEntry]) -> String {
    let bandwidth = |value: Option<f64>| value.map_or_else(|| "-".into(), units::bandwidth_exact);
    let head = ["id", "machines", "memory", "slowest pair in a machine", "between", "all-reduce", "name"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(entries.iter().map(|entry| {
        vec![
            entry.id.clone(),
            entry.machines.to_string(),
            entry.memory_bytes.map_or_else(|| "-".into(), units::bytes_exact),
            bandwidth(entry.nvlink_bandwidth),
            bandwidth(entry.ethernet_bandwidth),
            bandwidth(entry.all_reduce_bandwidth),
            entry.name.clone(),
        ]
    }));
    let mut text = String::new();
    table(&mut text, &rows);
    line(&mut text, format_args!("\nseveral machines: 4xdgx-h100, or with one NIC each 2xdgx-1+eth-25g; networks:"));
    let mut networks = vec![];
    for network in &topology::NETWORKS {
        let bandwidth = units::bandwidth_exact(network.bandwidth);
        networks.push(vec![format!("+{}", network.id), bandwidth, network.title.into()]);
    }
    table(&mut text, &networks);
    line(&mut text, format_args!("\nsources"));
    for entry in entries {
        for source in &entry.sources {
            line(&mut text, format_args!("  {}: {} ({})", entry.id, source.figure, source.source));
        }
    }
    line(&mut text, format_args!("  dapple-c: links as in a and b, scaled by 10/25"));
    text
}

fn shown(topology: &Topology) -> String {
    let mut text = String::new();
    let machines = topology.machines();
    let devices = units::counted(topology.devices(), "device");
    let count = units::counted(machines.sizes().len(), "machine");
    let memory = topology.memory_bytes.map(|bytes| format!(", {} each", units::bytes_exact(bytes)));
    line(&mut text, format_args!("{}: {}", topology.name, topology.title));
    line(&mut text, format_args!("{devices} in {count}{}", memory.unwrap_or_default()));
    line(&mut text, format_args!("\n{}", export::topology::text(topology).trim_end()));
    if let Some(halves) = Halves::of(topology) {
        let width = units::bandwidth_exact(halves.bandwidth);
        let how = if halves.proven { "proven" } else { "best cut found" };
        line(&mut text, format_args!("\nbisection bandwidth: {width} each way ({how})"));
        let [first, second] = [&halves.first, &halves.second].map(|half| topology.listed(half));
        line(&mut text, format_args!("  {first} | {second}"));
        const SHOWN: usize = 8;
        let full: Vec<String> = halves.full.iter().take(SHOWN).map(|&channel| topology.channel_name(channel)).collect();
        let more = halves.full.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        line(&mut text, format_args!("  saturated: {}{more}", full.join(", ")));
    }
    for source in &topology.sources {
        line(&mut text, format_args!("source: {} ({})", source.figure, source.source));
    }
    for note in &topology.notes {
        line(&mut text, format_args!("note: {note}"));
    }
    text
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<Vec<TopologyEntry>>("topologies")
}
