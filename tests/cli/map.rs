//! `plantui map`: plans of several planners onto topologies.

use serde_json::Value;

use crate::{Folder, TINY, json, plantui, refusal, stdout};

const LAYERS: &str = "inputs/bert32-layers.txt";

/// A chain of layers that put out so many bytes.
fn chain(bytes: &[&str]) -> String {
    let layer = |(at, bytes): (usize, &&str)| {
        format!(
            "node{at} -- L -- forward_compute_time=1, backward_compute_time=2, activation_size={bytes}, parameter_size=10\n"
        )
    };
    let layers: String = bytes.iter().enumerate().map(layer).collect();
    let edges: String = (1..bytes.len()).map(|at| format!("\tnode{} -- node{at}\n", at - 1)).collect();
    layers + &edges
}

/// A plan of a workload in a file of the folder.
fn planned(folder: &Folder, arguments: &[&str]) -> String {
    let text = stdout(&[&["plan"], arguments, &["--json"]].concat(), 0);
    folder.file("plan.json", text)
}

fn devices(document: &Value) -> Vec<u64> {
    let stages = document["stages"].as_array().unwrap().iter();
    stages.flat_map(|stage| stage["devices"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap())).collect()
}

#[test]
fn a_pipeline_of_replicas_finds_its_links() {
    let folder = Folder::new();
    let plan = planned(&folder, &[TINY]);
    let text = stdout(&["map", TINY, &plan, "--topology", "dgx-1"], 0);
    assert!(text.contains("of communication per microbatch, most at") && text.contains("rank order: "), "{text}");
    assert!(text.contains("an iteration simulated on the routes: "), "{text}");
    let mapped = json(&["map", TINY, &plan, "--topology", "dgx-1", "--json"], 0);
    let mapping = &mapped["mapping"];
    assert_eq!(mapping["topology"], "dgx-1");
    assert!(mapping["lower_bound_s"].as_f64().unwrap() <= mapping["communication_s"].as_f64().unwrap());
    let own: Vec<u64> = mapping["devices"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
    assert_eq!(devices(&mapped), own, "stages carry the devices of the mapping");
    assert_eq!(mapping["names"][0], format!("gpu{}", own[0]));
    assert!(mapping["iteration_s"].as_f64().unwrap() > 0.0);
    // Identity may be no better, and its own plan says what it costs.
    let identity = json(&["map", TINY, &plan, "--topology", "dgx-1", "--method", "identity", "--json"], 0);
    assert!(identity["mapping"]["communication_s"].as_f64() >= mapping["communication_s"].as_f64());
    assert_eq!(devices(&identity), (0..own.len() as u64).collect::<Vec<_>>());
    // What comes out is a plan that holds.
    let out = folder.file("mapped.json", mapped.to_string());
    stdout(&["check", TINY, &out], 0);
}

#[test]
fn a_plan_over_machines_is_worth_something_else_on_others() {
    let folder = Folder::new();
    let plan = planned(&folder, &[LAYERS, "--machines", "4", "--batch", "64"]);
    let mapped = json(&["map", LAYERS, &plan, "--topology", "2xdgx-1+eth-25g", "--json"], 0);
    assert_eq!(mapped["limits"]["machines"], serde_json::json!([8, 8]));
    let out = folder.file("mapped.json", mapped.to_string());
    stdout(&["check", LAYERS, &out], 0);
}

#[test]
fn where_nothing_can_be_gained_or_done_it_is_told() {
    let folder = Folder::new();
    let plan = planned(&folder, &[TINY]);
    let text = stdout(&["map", TINY, &plan, "--topology", "dgx-a100"], 0);
    assert!(text.contains("all mappings are equally good") && text.contains("proven"), "{text}");
    let neither = stdout(&["map", TINY, &plan, "--topology", "dgx-1", "--no-p2p", "--no-allr"], 0);
    assert!(neither.contains("the identity is used"), "{neither}");
    let small = plantui().args(["map", TINY, &plan, "--topology", "a6000-2"]).assert().code(1);
    let error = String::from_utf8(small.get_output().stderr.clone()).unwrap();
    assert!(error.contains("2 devices"), "{error}");
    let odd = ["--parallel-same-t", "3", "--parallel-degree", "4"];
    let error = refusal(&[&["map", TINY, &plan, "--topology", "dgx-1"], &odd[..]].concat());
    assert!(error.contains('3') && error.contains('4'), "{error}");
    assert!(refusal(&["map", TINY, &plan, "--topology", "dgx-9"]).contains("dgx-h100"));
}

#[test]
fn bandwidths_that_hardly_differ_are_mapped_to_the_end() {
    let folder = Folder::new();
    let workload = folder.file("graph.txt", chain(&["1000000"; 2]));
    let wires = "0,24.999999999932502,41.387911913411905,24.99999999996625
36.778928782490155,0,24.99999999994375,24.9999999999775
24.99999999994375,24.999999999932502,0,24.999999999988752
39.90310535651519,24.9999999999775,37.50677903527108,0
";
    let wires = folder.file("wires.csv", wires);
    // Far more time than it takes: a search that went round in circles would be stopped by it, and say so.
    let deadline = ["--deadline", "20s"];
    let own = ["--planner", "parmesan", "--topology", &wires, "--set", "replicas=false", "--set", "stages=2"];
    let plan = json(&[&["plan", &workload, "--batch", "32"], &own[..], &deadline, &["--json"]].concat(), 0);
    assert_eq!(plan["stages"].as_array().unwrap().len(), 2);
    let plan = planned(
        &folder,
        &[
            &workload,
            "--devices",
            "4",
            "--batch",
            "32",
            "--planner",
            "parmesan",
            "--set",
            "replicas=false",
            "--set",
            "stages=2",
        ],
    );
    let text = stdout(&[&["map", &workload, &plan, "--topology", &wires], &deadline[..]].concat(), 0);
    assert!(text.contains("rank order: ") && !text.contains("was stopped"), "{text}");
}

#[test]
fn a_measured_matrix_is_mapped_within_a_deadline() {
    let folder = Folder::new();
    let workload = folder.file("graph.txt", chain(&["1000000", "1000037", "1000074", "1000111"]));
    // A hundred devices of which no two pairs attain the same.
    let width = |a: usize, b: usize| if a == b { 0.0 } else { 10.0 + ((a * 100 + b) * 7919 % 10007) as f64 / 300.0 };
    let row = |a: usize| (0..100).map(|b| width(a, b).to_string()).collect::<Vec<_>>().join(",") + "\n";
    let wires = folder.file("wires.csv", (0..100).map(row).collect::<String>());
    let plan = planned(
        &folder,
        &[
            &workload,
            "--devices",
            "4",
            "--batch",
            "32",
            "--planner",
            "parmesan",
            "--set",
            "replicas=false",
            "--set",
            "stages=4",
        ],
    );
    for method in ["identity", "bipartition", "search"] {
        let arguments = ["--topology", &wires, "--method", method, "--deadline", "1ms", "--json"];
        let mapped = json(&[&["map", &workload, &plan], &arguments[..]].concat(), 0);
        let mapping = &mapped["mapping"];
        assert!(mapping["lower_bound_s"].as_f64().unwrap() <= mapping["communication_s"].as_f64().unwrap());
        assert_eq!(devices(&mapped).len(), 4, "{method}");
    }
}
