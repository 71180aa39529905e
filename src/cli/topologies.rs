//! `plantui topologies`: the cluster presets of `--topology`.

use clap::Args;
use serde::Serialize;

use super::{
    Ending, Failure, output,
    report::{line, table},
};
use crate::{
    cluster::{Machines, topology},
    units,
};

const EXAMPLES: &str = "\
Examples:
  plantui topologies
  plantui topologies --json
  plantui plan graph.txt --topology dapple-a --batch 128

A preset sets machines, memory and links; flags and --set go before it.";

/// List the cluster presets
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct TopologiesArgs {
    /// Prints a JSON array in place of the table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct TopologyEntry {
    id: &'static str,
    name: &'static str,
    machines: Machines,
    memory_bytes: f64,
    nvlink_bandwidth: f64,
    ethernet_bandwidth: f64,
    all_reduce_bandwidth: f64,
}

impl TopologiesArgs {
    /// Prints the list.
    ///
    /// # Errors
    /// [`Failure`] if standard output cannot be written.
    pub fn run(self) -> Result<Ending, Failure> {
        let entry = |topology: &topology::Topology| TopologyEntry {
            id: topology.id,
            name: topology.name,
            machines: topology.machines,
            memory_bytes: topology.memory_bytes,
            nvlink_bandwidth: topology.links.in_machine,
            ethernet_bandwidth: topology.links.between_machines,
            all_reduce_bandwidth: topology.links.all_reduce,
        };
        let entries: Vec<TopologyEntry> = topology::ALL.iter().map(entry).collect();
        output::print(&if self.json { output::json(&entries) } else { text(&entries) })?;
        Ok(Ending::Done)
    }
}

fn text(entries: &[TopologyEntry]) -> String {
    let head = ["id", "machines", "memory", "in a machine", "between", "all-reduce", "name"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(entries.iter().map(|entry| {
        vec![
            entry.id.into(),
            entry.machines.to_string(),
            units::bytes_exact(entry.memory_bytes),
            units::bandwidth_exact(entry.nvlink_bandwidth),
            units::bandwidth_exact(entry.ethernet_bandwidth),
            units::bandwidth_exact(entry.all_reduce_bandwidth),
            entry.name.into(),
        ]
    }));
    let mut text = String::new();
    table(&mut text, &rows);
    line(&mut text, format_args!(""));
    line(&mut text, format_args!("links of C are those of A and B, divided as 25 Gb/s and 10 Gb/s are"));
    text
}
