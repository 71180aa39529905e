//! Writes a workload as a file in the format of its profile.

use serde_json::{Map, Value, json};

use crate::{
    graph::Dag,
    workload::{
        formats::{
            mixed,
            operators::{self, OperatorFile},
            torch_graph, training,
        },
        node::NodeId,
        piper::PiperProfile,
        placement::PlacementProfile,
        profiled::{Profile, Workload},
    },
};

/// Text of the file, with the provenance if there is one. Reading it back gives the same nodes, edges, costs and
/// limits.
pub fn text(workload: &Workload) -> String {
    let mut file = Map::new();
    if let Some(provenance) = &workload.provenance {
        file.insert("provenance".into(), json!(provenance.made_by));
        file.insert("assumptions".into(), json!(provenance.assumptions));
    }
    if let Some(recipe) = &workload.recipe {
        file.insert("recipe".into(), json!(recipe));
    }
    let limits = &workload.limits;
    let ids: Vec<NodeId> = workload.nodes.iter().map(|node| node.id).collect();
    let (given, nodes, edges) = match &workload.profile {
        Profile::Piper(profile) => (
            vec![
                ("maxDevices", limits.devices().map(Value::from)),
                ("maxMemoryPerDevice", limits.memory_bytes().map(Value::from)),
                ("bandwidth", limits.bandwidth_bytes_per_s().map(Value::from)),
                ("mbsInBatch", limits.microbatches().map(Value::from)),
            ],
            piper_nodes(profile, &workload.dag, &ids),
            edges(&workload.dag, &ids, "communicationCost", |edge| profile.edge_bytes[edge]),
        ),
        Profile::Placement(profile) => (
            vec![
                ("maxSizePerFPGA", limits.memory_bytes().map(Value::from)),
                ("maxFPGAs", limits.devices().map(Value::from)),
                ("maxCPUs", limits.cpus().map(Value::from)),
            ],
            placement_nodes(profile),
            edges(&workload.dag, &ids, "cost", |edge| profile.nodes[workload.dag.edges()[edge].0 as usize].transfer),
        ),
        Profile::Layers(profile) => return torch_graph::write(workload, profile),
        Profile::Training(profile) => return training::text(workload, profile),
        Profile::Mixed(profile) => return mixed::text(workload, profile),
        Profile::Operators(profile) => {
            let provenance = workload.provenance.clone();
            let (provenance, assumptions) =
                provenance.map_or_else(Default::default, |made| (made.made_by, made.assumptions));
            let names = workload.nodes.iter().map(crate::workload::Node::label).collect();
            let limits = workload.limits.clone();
            let profile = profile.clone();
            return operators::text(&OperatorFile { names, profile, limits, provenance, assumptions });
        }
    };
    for (field, value) in given {
        if let Some(value) = value {
            file.insert(field.into(), value);
        }
    }
    let named = workload.nodes.iter().zip(nodes).map(|(node, costs)| {
        let mut entry = Map::from_iter([("id".to_string(), json!(node.id))]);
        if let Some(name) = &node.name {
            entry.insert("name".into(), json!(name));
        }
        entry.extend(costs);
        Value::Object(entry)
    });
    file.insert("nodes".into(), named.collect());
    file.insert("edges".into(), Value::Array(edges));
    let mut text = serde_json::to_string_pretty(&Value::Object(file)).expect("finite numbers can be written");
    text.push('\n');
    text
}

fn edges(dag: &Dag, ids: &[NodeId], field: &str, cost: impl Fn(usize) -> f64) -> Vec<Value> {
    let edge = |(edge, &(u, v)): (usize, &(u32, u32))| json!({"sourceId": ids[u as usize], "destId": ids[v as usize], field: cost(edge)});
    dag.edges().iter().enumerate().map(edge).collect()
}

fn placement_nodes(profile: &PlacementProfile) -> Vec<Map<String, Value>> {
    let node = |node: &crate::workload::PlacementNode| {
        let mut entry = Map::new();
        entry.insert("supportedOnFpga".into(), json!(node.supported));
        entry.insert("cpuLatency".into(), json!(node.cpu_time));
        entry.insert("fpgaLatency".into(), json!(node.accelerator_time));
        entry.insert("isBackwardNode".into(), json!(node.backward));
        entry.insert("size".into(), json!(node.size_bytes));
        for (field, value) in [("colorClass", node.colour_class), ("layerId", node.layer)] {
            if let Some(value) = value {
                entry.insert(field.into(), json!(value));
            }
        }
        entry
    };
    profile.nodes.iter().map(node).collect()
}

fn piper_nodes(profile: &PiperProfile, dag: &Dag, ids: &[NodeId]) -> Vec<Map<String, Value>> {
    let node = |v: usize| {
        let sync = |edges: &[u32], bytes: &[f64], end: fn(&(u32, u32)) -> u32| -> Value {
            let entry = |(&edge, &bytes): (&u32, &f64)| {
                (ids[end(&dag.edges()[edge as usize]) as usize].to_string(), json!(bytes))
            };
            Value::Object(edges.iter().zip(bytes).map(entry).collect())
        };
        let mut degrees = Map::new();
        for degree in &profile.nodes[v].degrees {
            let mode = |mode: &crate::workload::Mode| {
                let mut entry = Map::new();
                entry.insert("id".into(), json!(mode.id));
                entry.insert("timePerSample".into(), json!(mode.time_s));
                if let Some(forward) = mode.forward_s {
                    entry.insert("forwardTimePerSample".into(), json!(forward));
                }
                entry.insert("parameterSize".into(), json!(mode.parameters));
                entry.insert("memoryUsageA".into(), json!(mode.memory_a));
                entry.insert("memoryUsageB".into(), json!(mode.memory_b));
                entry.insert("syncTimeFw".into(), sync(dag.in_edges(v), &mode.sync_in, |edge| edge.0));
                entry.insert("syncTimeBw".into(), sync(dag.out_edges(v), &mode.sync_out, |edge| edge.1));
                Value::Object(entry)
            };
            degrees.insert(degree.degree.to_string(), degree.modes.iter().map(mode).collect());
        }
        Map::from_iter([("TMPCs".to_string(), Value::Object(degrees))])
    };
    (0..profile.nodes.len()).map(node).collect()
}
