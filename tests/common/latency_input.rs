//! The published latency inputs, read without any of the program's own readers.

use plantui::{
    graph::Dag,
    workload::placement::{PlacementNode, PlacementProfile},
};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};

/// One input: graph, costs and limits.
pub(crate) struct LatencyInput {
    pub(crate) dag: Dag,
    pub(crate) profile: PlacementProfile,
    pub(crate) accelerators: usize,
    pub(crate) memory_bytes: f64,
    index: BTreeMap<i64, u32>,
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_i64() == Some(1))
}

impl LatencyInput {
    pub(crate) fn read(path: &Path) -> Self {
        let file = json(path);
        let list = |name: &str| file[name].as_array().unwrap().clone();
        let nodes = list("nodes");
        let index: BTreeMap<i64, u32> = nodes.iter().map(|node| node["id"].as_i64().unwrap()).zip(0..).collect();
        let of = |value: &Value| index[&value.as_i64().unwrap()];
        let mut transfer = vec![0.0; nodes.len()];
        let mut edges = vec![];
        for edge in list("edges").iter().rev() {
            transfer[of(&edge["sourceId"]) as usize] = edge["cost"].as_f64().unwrap();
            edges.push((of(&edge["sourceId"]), of(&edge["destId"])));
        }
        edges.reverse();
        let node = |(node, &transfer): (&Value, &f64)| PlacementNode {
            cpu_time: node["cpuLatency"].as_f64().unwrap(),
            accelerator_time: node["fpgaLatency"].as_f64().unwrap(),
            supported: flag(&node["supportedOnFpga"]),
            backward: flag(&node["isBackwardNode"]),
            size_bytes: node["size"].as_f64().unwrap_or(0.0),
            colour_class: node["colorClass"].as_i64(),
            layer: node["layerId"].as_i64(),
            transfer,
        };
        LatencyInput {
            dag: Dag::new(nodes.len(), edges).unwrap(),
            profile: PlacementProfile { nodes: nodes.iter().zip(&transfer).map(node).collect() },
            accelerators: file["maxFPGAs"].as_u64().unwrap() as usize,
            memory_bytes: file["maxSizePerFPGA"].as_f64().unwrap(),
            index,
        }
    }

    /// Node indices by accelerator of a split in the published output format.
    pub(crate) fn split(&self, path: &Path) -> Vec<Vec<u32>> {
        let ids = |device: &Value| device["nodes"].as_array().unwrap().clone();
        let indices = |device| ids(device).iter().map(|id| self.index[&id.as_i64().unwrap()]).collect();
        json(path)["fpgas"].as_array().unwrap().iter().map(indices).collect()
    }
}
