//! Ctrl-C: what was found until then is printed, however long that takes, and only a second press ends the program.

use std::{
    io::Read,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Folder, TINY, plantui, stdout};

/// Starts the program with its output in a pipe.
fn started(arguments: &[&str]) -> Child {
    let mut command = Command::new(plantui().get_program());
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts")
}

fn press(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Waits until the program listens for Ctrl-C, or has ended.
fn listening(child: &mut Child) {
    const SIGINT: u64 = 1 << 1;
    let status = format!("/proc/{}/status", child.id());
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        if caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok()).is_some_and(|set| set & SIGINT != 0) {
            return;
        }
        thread::yield_now();
    }
}

/// The rest of its output, and its exit code.
fn ended(mut child: Child) -> (String, Option<i32>) {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    (text, child.wait().unwrap().code())
}

/// A chain whose nodes fill an accelerator each.
fn chain(nodes: usize) -> String {
    let node = |id| json!({"id": id, "supportedOnFpga": true, "cpuLatency": 9.0, "fpgaLatency": 1.0, "isBackwardNode": false, "size": 1});
    let edges: Vec<Value> = (1..nodes).map(|id| json!({"sourceId": id - 1, "destId": id, "cost": 0.1})).collect();
    let nodes: Vec<Value> = (0..nodes).map(node).collect();
    json!({"maxSizePerFPGA": 1.5, "maxFPGAs": 8, "maxCPUs": 1, "nodes": nodes, "edges": edges}).to_string()
}

/// The table has a row for each of thousands of devices, and is more than a pipe holds: it is being written when the key
/// is pressed.
#[test]
fn a_plan_that_is_being_written_is_written_whole() {
    let folder = Folder::new();
    let workload = folder.file("chain.json", chain(3000));
    let arguments = ["plan", &workload, "--planner", "placement-dp", "--devices", "3000", "--cpus", "0"];
    let mut child = started(&arguments);
    let mut first = [0; 64];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    press(&child);
    // Longer than a program takes to end that does end.
    thread::sleep(Duration::from_millis(300));
    let (text, code) = ended(child);
    assert_eq!(code, Some(0));
    assert!(text.contains("accelerator 3000 ") && text.contains("\nlimits: "), "{}", &text[text.len() - 500..]);
}

#[test]
fn a_search_that_is_stopped_has_its_best_plan() {
    let arguments = ["plan", "inputs/bert96a100.json", "--planner", "joint", "--set", "space=any", "--json"];
    let mut child = started(&arguments);
    listening(&mut child);
    // Time for a first plan; the search itself takes minutes.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(child.try_wait().unwrap(), None, "the search is over before the key is pressed");
    press(&child);
    let (text, code) = ended(child);
    assert_eq!(code, Some(0), "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!(!document["stages"].as_array().unwrap().is_empty());
    assert_eq!(document["status"], "cancelled");
}

/// Two stages of 64 replicas: every exchange of two devices takes a ring of 64 apart.
fn mapped_long(folder: &Folder) -> String {
    let devices = ["--devices", "128", "--microbatches", "128", "--memory", "1TB", "--set", "stages=2"];
    let plan = stdout(&[&["plan", TINY, "--planner", "piper", "--json"], &devices[..]].concat(), 0);
    folder.file("plan.json", plan)
}

/// What came of a mapping that was stopped: a plan that holds, with a batch of it simulated.
fn is_mapped(folder: &Folder, text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let mapping = &document["mapping"];
    assert_eq!(mapping["devices"].as_array().unwrap().len(), 128);
    assert!(mapping["iteration_s"].as_f64().unwrap() > 0.0, "{mapping}");
    let notes = mapping["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with("the search was stopped")), "{notes:?}");
    stdout(&["check", TINY, &folder.file("mapped.json", text)], 0);
}

#[test]
fn a_mapping_ends_with_its_deadline_and_keeps_the_best() {
    let folder = Folder::new();
    let plan = mapped_long(&folder);
    for method in ["search", "annealing", "random"] {
        let asked =
            ["map", TINY, &plan, "--topology", "16xdgx-h100", "--method", method, "--deadline", "1ms", "--json"];
        is_mapped(&folder, &stdout(&asked, 0));
    }
    let text = stdout(&["map", TINY, &plan, "--topology", "16xdgx-h100", "--deadline", "1ms"], 0);
    assert!(text.contains("\nnote: the search was stopped: this is the best mapping so far\n"), "{text}");
}

#[test]
fn a_mapping_that_is_stopped_has_its_best_devices() {
    let folder = Folder::new();
    let plan = mapped_long(&folder);
    let mut child = started(&["map", TINY, &plan, "--topology", "16xdgx-h100", "--json"]);
    listening(&mut child);
    press(&child);
    let (text, code) = ended(child);
    assert_eq!(code, Some(0), "{text}");
    is_mapped(&folder, &text);
}
