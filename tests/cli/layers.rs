//! Layer-wise profiles on the command line.

use std::fmt::Write;

use super::{Folder, json, refusal, stdout};

/// A profile whose branches allow more states than are looked at.
fn fan() -> String {
    let mut text = String::new();
    for i in 0..15 {
        let costs = "forward_compute_time=10, backward_compute_time=20, activation_size=1e6, parameter_size=1e6";
        writeln!(text, "node{i} -- layer{i} -- {costs}").unwrap();
    }
    for i in 1..14 {
        writeln!(text, "\tnode0 -- node{i}\n\tnode{i} -- node14").unwrap();
    }
    text
}

#[test]
fn too_many_states_are_wrong_use_only_where_they_are_asked_for() {
    let folder = Folder::new();
    let profile = folder.file("fan.txt", fan());
    for planner in ["dapple", "dapple-hpgo"] {
        let plan = ["plan", &profile, "--planner", planner, "--machines", "2,2", "--batch", "16"];
        let error = refusal(&[&plan[..], &["--set", "states=antichains"]].concat());
        assert!(error.contains("more than 4096 states") && error.contains("--set states=order"), "{error}");
        let document = stdout(&[&plan[..], &["--json"]].concat(), 0);
        assert!(document.contains("along one order"), "{document}");
        // Which states it came to is in the plan, so that it can be checked.
        let file = folder.file(&format!("{planner}.json"), document);
        assert_eq!(json(&["check", &profile, &file, "--json"], 0)["claim"]["holds"], true);
    }
}

#[test]
fn a_list_of_plans_is_checked_each_by_its_own_batch() {
    let folder = Folder::new();
    let profile = folder.file("fan.txt", fan());
    let plan = ["plan", &profile, "--planner", "dapple", "--machines", "2,2", "--json"];
    let printed = stdout(&[&plan[..], &["--batch", "16,64"]].concat(), 0);
    let list = folder.file("plans.json", &printed);
    let checked = json(&["check", &profile, &list, "--json"], 0);
    let batches = [0, 1].map(|i| checked[i]["limits"]["batch"].as_u64());
    assert_eq!(batches, [Some(16), Some(64)]);
    assert!((0..2).all(|i| checked[i]["valid"] == true && checked[i]["claim"]["holds"] == true), "{checked}");
    // What does not limit such plans is not in them.
    let plans: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let limits = plans[0]["limits"].as_object().unwrap();
    assert!(!limits.contains_key("microbatches") && !limits.contains_key("bandwidth_bytes_per_s"), "{limits:?}");
    let spoilt = folder.file("spoilt.json", printed.replacen("\"status\": \"", "\"status\": \"un", 1));
    assert!(refusal(&["check", &profile, &spoilt]).contains("spoilt.json[0]"));
    let empty = folder.file("empty.json", "[]");
    assert!(refusal(&["check", &profile, &empty]).contains("empty array"));
}

#[test]
fn a_thousand_devices_in_whole_machines() {
    let folder = Folder::new();
    let profile = folder.file("fan.txt", fan());
    for (planner, devices) in [("dapple", "1024"), ("dapple-hpgo", "1024"), ("dapple", "2500")] {
        let arguments = ["--planner", planner, "--devices", devices, "--batch", "8192", "--json"];
        let document = stdout(&[&["plan", &profile], &arguments[..]].concat(), 0);
        let file = folder.file("plan.json", &document);
        assert_eq!(json(&["check", &profile, &file, "--json"], 0)["claim"]["holds"], true, "{planner}");
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert!(document["stats"]["data_parallel_speedup"].as_f64().unwrap() > 1.0);
    }
}

#[test]
fn what_a_format_does_not_hold_is_asked_for_by_its_flag() {
    let folder = Folder::new();
    let profile = folder.file("fan.txt", fan());
    let error = refusal(&["plan", &profile]);
    assert!(error.contains("does not state machines") && error.contains("--machines"), "{error}");
    let file = folder.file("split.json", r#"{"maxSizePerFPGA": 1e9, "nodes": [{"id": 1, "supportedOnFpga": true, "cpuLatency": 1, "fpgaLatency": 1, "size": 1, "isBackwardNode": false}], "edges": []}"#);
    let error = refusal(&["plan", &file]);
    assert!(error.contains("`maxFPGAs`") && error.contains("--devices"), "{error}");
}

#[test]
fn what_nobody_states_is_noted() {
    let layers = "inputs/bert32-layers.txt";
    let notes = |arguments: &[&str]| {
        let plan = json(&[&["plan", layers, "--batch", "64", "--json"], arguments].concat(), 0);
        plan["notes"].to_string()
    };
    let both = notes(&["--devices", "4"]);
    assert!(
        both.contains("memory is assumed to be 16 GB; --memory")
            && both.contains("machines of 8 devices are assumed; --machines"),
        "{both}"
    );
    let batch = json(&["plan", layers, "--machines", "2,2", "--json"], 0);
    assert_eq!(batch["limits"]["batch"], 128);
    assert!(batch["notes"].to_string().contains("batch is assumed to be 128; --batch"), "{batch}");
    let neither = notes(&["--machines", "2,2", "--memory", "16GB"]);
    assert!(!neither.contains("taken"), "{neither}");
}
