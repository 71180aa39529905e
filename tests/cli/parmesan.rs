//! Parmesan from a topology to a plan that `check` confirms, and other planners on the same topology.

use crate::{Folder, json, stdout};

const LAYERS: &str = "inputs/bert32-layers.txt";

#[test]
fn a_plan_on_a_topology_is_checked_and_mapped_again() {
    let folder = Folder::new();
    let arguments = ["--planner", "parmesan", "--topology", "dgx-1", "--batch", "32", "--memory", "80GB"];
    let plan = json(&[&["plan", LAYERS], &arguments[..], &["--json"]].concat(), 0);
    assert_eq!(plan["mapping"]["topology"], "dgx-1");
    assert!(plan["mapping"]["iteration_s"].as_f64().unwrap() > 0.0);
    assert_eq!(plan["limits"]["machines"], serde_json::json!([8]));
    assert_eq!(plan["planner"]["options"]["topology"], "dgx-1");
    let file = folder.file("plan.json", plan.to_string());
    stdout(&["check", LAYERS, &file], 0);
    stdout(&["map", LAYERS, &file, "--topology", "dgx-1"], 0);
    let text = stdout(&[&["plan", LAYERS], &arguments[..], &["--set", "mapping=identity"]].concat(), 0);
    assert!(text.contains("simulated on the routes of dgx-1: a batch takes"), "{text}");
}

#[test]
fn planners_that_know_less_are_told_the_slowest_links() {
    let dapple = stdout(&["plan", LAYERS, "--planner", "dapple", "--topology", "2xdgx-a100", "--batch", "32"], 0);
    assert!(dapple.contains("2xdgx-a100: the planner knows two bandwidths"), "{dapple}");
    let piper = json(&["plan", crate::TINY, "--topology", "dgx-1", "--json"], 0);
    assert_eq!(piper["limits"]["bandwidth_bytes_per_s"], 6e9);
    assert_eq!(piper["limits"]["devices"], 8);
    let notes = piper["notes"].to_string();
    assert!(notes.contains("that of the slowest pair"), "{notes}");
    // A flag counts before the topology.
    let own = json(&["plan", crate::TINY, "--topology", "dgx-1", "--devices", "4", "--json"], 0);
    assert_eq!(own["limits"]["devices"], 4);
}

#[test]
fn there_is_a_plan_before_anything_is_searched() {
    for replicas in ["replicas=true", "replicas=false"] {
        let arguments = ["--planner", "parmesan", "--topology", "dgx-1", "--batch", "32", "--memory", "80GB"];
        let hurry = ["--set", replicas, "--set", "search_k=true", "--deadline", "1ns", "--json"];
        let plan = json(&[&["plan", LAYERS], &arguments[..], &hurry].concat(), 0);
        assert!(!plan["stages"].as_array().unwrap().is_empty(), "{replicas}: {plan}");
    }
}
