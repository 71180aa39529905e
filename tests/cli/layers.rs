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
