//! Every lint rule fires where it should and is silent where it should not, on small workloads and the published files.

use crate::common::reference;
use plantui::workload::{
    self, Workload,
    lint::{self, Finding, Severity},
};
use serde_json::{Value, json};

/// A node without sync bytes on a chain `0 -> 1 -> .. `: name, and by degree the modes `(id, time, parameters, a, b)`.
type Modes<'a> = &'a [(&'a str, f64, f64, f64, f64)];

fn chain(nodes: &[&[(u32, Modes<'_>)]]) -> Value {
    let last = nodes.len() - 1;
    let list: Vec<Value> = nodes
        .iter()
        .enumerate()
        .map(|(v, degrees)| {
            let mut tmpcs = serde_json::Map::new();
            for (degree, modes) in *degrees {
                let modes: Vec<Value> = modes
                    .iter()
                    .map(|&(id, time, parameters, a, b)| {
                        let before = if v > 0 { json!({(v - 1).to_string(): 0}) } else { json!({}) };
                        let after = if v < last { json!({(v + 1).to_string(): 0}) } else { json!({}) };
                        json!({"id": id, "timePerSample": time, "parameterSize": parameters, "memoryUsageA": a,
                               "memoryUsageB": b, "syncTimeFw": before, "syncTimeBw": after})
                    })
                    .collect();
                tmpcs.insert(degree.to_string(), json!(modes));
            }
            json!({"id": v, "name": format!("n{v}"), "TMPCs": tmpcs})
        })
        .collect();
    let edges: Vec<Value> =
        (0..last).map(|v| json!({"sourceId": v, "destId": v + 1, "communicationCost": 1e6})).collect();
    json!({"maxDevices": 4, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 8, "nodes": list, "edges": edges})
}

/// Nothing to find: keeps 9 bytes of state per byte of weights, as 18 per 2-byte element.
const SOUND: Modes<'static> = &[("vanilla", 0.01, 1e6, 5e6, 9e6), ("recomp", 0.013, 1e6, 1e6, 9e6)];

fn load(value: &Value) -> Workload {
    workload::load_bytes(value.to_string().as_bytes(), "w.json", "w").unwrap_or_else(|error| panic!("{error}"))
}

fn findings(value: &Value) -> Vec<Finding> {
    lint::lint(&load(value))
}

/// Where the nodes of a finding stand in the workload.
pub(crate) fn positions(finding: &Finding) -> Vec<usize> {
    finding.nodes.iter().map(|node| node.index()).collect()
}

/// The nodes of a rule's only finding, with its text; panics unless it is the only finding there is.
fn only(value: &Value, rule: &str) -> (Vec<usize>, String) {
    let found = findings(value);
    assert_eq!(found.iter().map(|f| f.rule).collect::<Vec<_>>(), [rule], "{found:?}");
    (positions(&found[0]), found[0].what.clone())
}

#[test]
fn a_sound_profile_has_no_findings() {
    assert_eq!(findings(&chain(&[&[(1, SOUND)], &[(1, SOUND)], &[(1, SOUND)]])), []);
}

#[test]
fn an_id_gap_is_none() {
    let mut value = chain(&[&[(1, SOUND)], &[(1, SOUND)]]);
    value["nodes"][1]["id"] = json!(700);
    value["edges"][0]["destId"] = json!(700);
    for mode in 0..2 {
        value["nodes"][0]["TMPCs"]["1"][mode]["syncTimeBw"] = json!({"700": 0});
    }
    assert_eq!(findings(&value), []);
}

#[test]
fn memory_that_fits_nowhere() {
    let large: Modes<'_> = &[("vanilla", 0.01, 1e6, 9.92e8, 9e6)];
    let (nodes, what) = only(&chain(&[&[(1, SOUND)], &[(1, large)]]), "memory-too-large");
    assert_eq!(nodes, [1]);
    assert!(what.contains("955 MiB") && what.contains("1 GB"), "{what}");
    let just: Modes<'_> = &[("vanilla", 0.01, 1e6, 9.91e8, 9e6)];
    assert_eq!(findings(&chain(&[&[(1, SOUND)], &[(1, just)]])), []);
    let mut unlimited = chain(&[&[(1, SOUND)], &[(1, large)]]);
    unlimited.as_object_mut().unwrap().remove("maxMemoryPerDevice");
    assert_eq!(findings(&unlimited), []);
    // A higher degree that fits is a way out.
    let shared: Modes<'_> = &[("vanilla", 0.01, 1e6, 4.9e8, 9e6)];
    assert_eq!(findings(&chain(&[&[(1, SOUND), (2, SOUND)], &[(1, large), (2, shared)]])), []);
}

#[test]
fn weights_without_optimizer_and_counts_for_bytes() {
    let weights: Modes<'_> = &[("vanilla", 0.01, 1e6, 5e6, 2e6)];
    let found = findings(&chain(&[&[(1, weights)], &[(1, weights)]]));
    assert_eq!(
        found.iter().map(|f| (f.rule, f.nodes.len())).collect::<Vec<_>>(),
        [("no-optimizer-state", 2), ("element-counts", 0)]
    );
    assert!(found[0].what.contains("2 bytes per unit"), "{}", found[0].what);
    assert_eq!(found[0].subject(&load(&chain(&[&[(1, weights)], &[(1, weights)]]))), "2 nodes: 0-1");
    let adam: Modes<'_> = &[("vanilla", 0.01, 1e6, 5e6, 16e6)];
    assert_eq!(only(&chain(&[&[(1, adam)], &[(1, adam)]]), "element-counts").0, [0; 0]);
    // Uneven state is no element count, and 3 bytes are too few for an optimizer.
    let three: Modes<'_> = &[("vanilla", 0.01, 1e6, 5e6, 3e6)];
    assert_eq!(only(&chain(&[&[(1, SOUND)], &[(1, three)]]), "no-optimizer-state").0, [1]);
}

#[test]
fn time_that_is_not_there() {
    let idle: Modes<'_> = &[("vanilla", 0.0, 1e6, 5e6, 9e6)];
    assert_eq!(only(&chain(&[&[(1, SOUND)], &[(1, idle)]]), "zero-time").0, [1]);
    let tensor: Modes<'_> = &[("vanilla", 0.0, 0.0, 5e6, 0.0)];
    assert_eq!(findings(&chain(&[&[(1, tensor)], &[(1, SOUND)]])), []);
}

#[test]
fn modes_that_nobody_should_choose() {
    let dominated: Modes<'_> = &[("vanilla", 0.01, 1e6, 5e6, 9e6), ("recomp", 0.013, 1e6, 5e6, 10e6)];
    let (nodes, what) = only(&chain(&[&[(1, SOUND)], &[(1, dominated)]]), "dominated-mode");
    assert_eq!(nodes, [1]);
    assert!(what.contains("`recomp`") && what.contains("`vanilla`"), "{what}");
    // More memory with one microbatch, less with two: of use.
    let crossing: Modes<'_> = &[("vanilla", 0.01, 1e6, 5e6, 9e6), ("recomp", 0.013, 1e6, 4e6, 11e6)];
    assert_eq!(findings(&chain(&[&[(1, SOUND)], &[(1, crossing)]])), []);
    let same: Modes<'_> = &[("vanilla", 0.01, 1e6, 5e6, 9e6), ("recomp", 0.01, 1e6, 5e6, 9e6)];
    assert_eq!(only(&chain(&[&[(1, same)], &[(1, SOUND)]]), "identical-modes").0, [0]);
    // Less to gather at a border is a reason to exist.
    let mut gathers = chain(&[&[(1, dominated)], &[(1, SOUND)]]);
    gathers["nodes"][0]["TMPCs"]["1"][0]["syncTimeBw"]["1"] = json!(5);
    assert_eq!(findings(&gathers), []);
}

#[test]
fn degrees_that_are_missing_or_slower() {
    let faster: Modes<'_> = &[("vanilla", 0.006, 5e5, 2.5e6, 4.5e6)];
    let (nodes, what) = only(&chain(&[&[(1, SOUND), (2, faster)], &[(1, SOUND)]]), "partial-degree");
    assert_eq!(nodes, [1]);
    assert!(what.contains("degree 2"), "{what}");
    assert_eq!(findings(&chain(&[&[(1, SOUND), (2, faster)], &[(1, SOUND), (2, faster)]])), []);
    assert_eq!(only(&chain(&[&[(2, faster)], &[(1, SOUND), (2, faster)]]), "no-degree-1").0, [0]);
    let slower: Modes<'_> = &[("vanilla", 0.011, 5e5, 2.5e6, 4.5e6)];
    assert_eq!(only(&chain(&[&[(1, SOUND), (2, slower)], &[(1, SOUND), (2, faster)]]), "time-rises").0, [0]);
}

#[test]
fn milliseconds_for_seconds() {
    let slow: Modes<'_> = &[("vanilla", 5.0, 1e6, 5e6, 9e6)];
    let (nodes, what) = only(&chain(&[&[(1, slow)], &[(1, slow)]]), "milliseconds");
    assert!(nodes.is_empty() && what.contains("milliseconds"), "{what}");
    // The same times with a hundredfold of activations are a large network.
    let large: Modes<'_> = &[("vanilla", 5.0, 1e6, 5e8, 9e6)];
    assert_eq!(findings(&chain(&[&[(1, large)], &[(1, large)]])), []);
    // And over a slow link communication counts.
    let mut slow_link = chain(&[&[(1, slow)], &[(1, slow)]]);
    slow_link["bandwidth"] = json!(1e6);
    assert_eq!(findings(&slow_link), []);
}

/// A mask tensor of 3 bytes and an input of 7, both read by two nodes in a row that exchange 7 bytes.
fn masked(mask_to_second: f64, first_to_second: f64) -> Value {
    let mode = |time: f64, a: f64, parameters: f64, before: Value, after: Value| {
        json!([{"id": "vanilla", "timePerSample": time, "parameterSize": parameters, "memoryUsageA": a,
                "memoryUsageB": 9.0 * parameters, "syncTimeFw": before, "syncTimeBw": after}])
    };
    let edge = |u: i64, v: i64, bytes: f64| json!({"sourceId": u, "destId": v, "communicationCost": bytes});
    json!({
        "maxDevices": 4, "maxMemoryPerDevice": 1e9, "bandwidth": 10.0, "mbsInBatch": 8,
        "nodes": [
            {"id": 0, "name": "mask", "TMPCs": {"1": mode(0.0, 3.0, 0.0, json!({}), json!({"1": 0, "2": 0}))}},
            {"id": 1, "name": "first", "TMPCs": {"1": mode(0.1, 9.0, 5.0, json!({"0": 0}), json!({"2": 0}))}},
            {"id": 2, "name": "second", "TMPCs": {"1": mode(0.1, 9.0, 5.0, json!({"0": 0, "1": 0}), json!({}))}}
        ],
        "edges": [edge(0, 1, 3.0), edge(0, 2, mask_to_second), edge(1, 2, first_to_second)]
    })
}

#[test]
fn sizes_that_look_exchanged() {
    let found = findings(&masked(7.0, 3.0));
    assert_eq!(found.iter().map(|f| (f.rule, positions(f))).collect::<Vec<_>>(), [("swapped-sizes", vec![2])]);
    assert_eq!(found[0].subject(&load(&masked(7.0, 3.0))), "second (node 2)");
    let right = findings(&masked(3.0, 7.0));
    assert!(right.iter().all(|f| f.rule == "shared-tensor"), "{right:?}");
}

#[test]
fn tensors_with_many_readers() {
    let found = findings(&masked(3.0, 7.0));
    assert_eq!(
        found.iter().map(|f| (f.rule, f.severity, positions(f))).collect::<Vec<_>>(),
        [("shared-tensor", Severity::Note, vec![0])]
    );
    let generated = lint::lint(&workload::builtin());
    let mask = generated.iter().find(|f| f.rule == "shared-tensor").unwrap();
    assert_eq!((mask.severity, positions(mask)), (Severity::Warning, vec![4]));
    assert!(mask.what.contains("32 nodes"), "{}", mask.what);
}

#[test]
fn the_worst_comes_first() {
    let found = lint::lint(&workload::builtin());
    assert!(found.len() > 3 && found.is_sorted_by_key(|finding| finding.severity), "{found:?}");
}

/// Rule and nodes of every finding about a published file.
fn published(name: &str) -> (Workload, Vec<Finding>) {
    let path = reference::root().join("piper/inputs").join(name).with_extension("json");
    let workload = workload::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let findings = lint::lint(&workload);
    (workload, findings)
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_published_bert_profile_has_its_known_findings() {
    let (workload, found) = published("bert32a100");
    let subject =
        |rule: &str| found.iter().filter(|f| f.rule == rule).map(|f| f.subject(&workload)).collect::<Vec<_>>();
    assert_eq!(subject("swapped-sizes"), ["31 nodes: 5-35"]);
    assert_eq!(subject("no-optimizer-state"), ["34 nodes: 1, 3, 5-36"]);
    assert_eq!(subject("element-counts"), ["the file"]);
    assert_eq!(subject("zero-time"), ["Pooler (node 36)"]);
    assert_eq!(subject("time-rises"), ["Embedding (node 1)"]);
    assert_eq!(subject("milliseconds"), [""; 0]);
    assert!(subject("shared-tensor").contains(&"tensor (node 4)".to_string()), "{found:?}");
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_published_gnmt_and_resnet_times_look_like_milliseconds() {
    for name in ["gnmt", "resnet"] {
        let (_, found) = published(name);
        assert_eq!(found.iter().filter(|f| f.rule == "milliseconds").count(), 1, "{name}: {found:?}");
    }
}

#[test]
fn figures_that_mean_never() {
    let mut value = chain(&[&[(1, SOUND)], &[(1, SOUND)], &[(1, SOUND)], &[(1, SOUND)]]);
    value["edges"][1]["communicationCost"] = json!(1e18);
    let (nodes, what) = only(&value, "far-apart");
    assert_eq!(nodes, [1]);
    assert!(what.starts_with("size of an edge out of it is up to") && what.contains("1.0e12 times"), "{what}");
    let never: Modes<'_> = &[("vanilla", 1e6, 1e6, 5e6, 9e6), ("recomp", 1.3e6, 1e6, 1e6, 9e6)];
    let found = findings(&chain(&[&[(1, SOUND)], &[(1, never)], &[(1, SOUND)]]));
    assert!(found.iter().any(|finding| finding.rule == "far-apart" && positions(finding) == [1]), "{found:?}");
}

#[test]
fn layers_that_mean_never() {
    let layer = |i: usize, forward: f64, activation: f64| {
        format!(
            "node{i} -- layer{i} -- forward_compute_time={forward}, backward_compute_time=1, activation_size={activation}, \
             parameter_size=8\n"
        )
    };
    let load = |forward: f64, activation: f64| {
        let text = "# profile_batch=4\n".to_string() + &layer(1, 1.0, 100.0) + &layer(2, forward, activation);
        let text = text + &layer(3, 1.0, 100.0);
        let text = text + "\tnode1 -- node2\n\tnode2 -- node3\n";
        workload::load_bytes(text.as_bytes(), "layers.txt", "layers").unwrap_or_else(|error| panic!("{error}"))
    };
    let rules = |workload: &Workload| lint::lint(workload).iter().map(|f| (f.rule, positions(f))).collect::<Vec<_>>();
    let alone = ("weights-alone", vec![]);
    assert_eq!(rules(&load(1.0, 100.0)), std::slice::from_ref(&alone));
    assert_eq!(rules(&load(1e9, 100.0)), [("far-apart", vec![1]), alone.clone()]);
    assert_eq!(rules(&load(1.0, 1e18)), [("far-apart", vec![1]), alone]);
}
