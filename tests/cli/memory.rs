//! What large inputs take of the machine's memory.

use std::{fmt::Write, io::Read, process::Stdio};

use serde_json::{Value, json};

use crate::{Folder, plantui};

const LAYERS: usize = 100_000;

/// The most that a process held in memory until now, bytes.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")).unwrap();
    kilobytes.trim().parse::<u64>().unwrap() * 1024
}

/// A chain with times that differ, for Piper.
fn pipeline() -> String {
    let to = |id: usize| if id < LAYERS { json!({id.to_string(): 0}) } else { json!({}) };
    let node = |id: usize| {
        let mode = json!({"id": "vanilla", "timePerSample": 1e-3 * (1 + id * 7919 % 11) as f64, "parameterSize": 1e6,
            "memoryUsageA": 1e6, "memoryUsageB": 4e6, "syncTimeFw": to(id.wrapping_sub(1)), "syncTimeBw": to(id + 1)});
        json!({"id": id, "TMPCs": {"1": [mode]}})
    };
    let edge = |to: usize| json!({"sourceId": to - 1, "destId": to, "communicationCost": 1e6});
    json!({"maxDevices": 1000, "maxMemoryPerDevice": 1e15, "bandwidth": 25e9, "mbsInBatch": 1024,
        "nodes": (0..LAYERS).map(node).collect::<Vec<_>>(), "edges": (1..LAYERS).map(edge).collect::<Vec<_>>()})
    .to_string()
}

/// The same as a layer profile.
fn layers() -> String {
    let mut text = String::new();
    for id in 0..LAYERS {
        let ms = 1 + id * 7919 % 11;
        let of =
            format!("forward_compute_time={ms}, backward_compute_time={ms}, activation_size=1e6, parameter_size=4e6");
        writeln!(text, "node{id} -- L{id} -- {of}").unwrap();
    }
    for to in 1..LAYERS {
        writeln!(text, "\tnode{} -- node{to}", to - 1).unwrap();
    }
    text
}

#[test]
fn plans_of_100_000_layers_take_less_than_a_gigabyte() {
    let folder = Folder::new();
    let (pipeline, layers) = (folder.file("chain.json", pipeline()), folder.file("graph.txt", layers()));
    let machines = ["--machines", "125x8", "--batch", "4096"];
    for (planner, workload, machines) in [
        ("piper", &pipeline, &[][..]),
        ("joint", &pipeline, &[]),
        ("placement-dp", &pipeline, &[]),
        ("parmesan", &pipeline, &[]),
        ("dapple", &layers, &machines),
    ] {
        let mut command = std::process::Command::new(plantui().get_program());
        // Piper enumerates its closed sets before it has a plan.
        let deadline = if planner == "piper" { "30s" } else { "1s" };
        command.args(["plan", workload, "--planner", planner, "--deadline", deadline, "--json"]).args(machines);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut text = vec![0; 64];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut text).unwrap();
        // The plan is more than a pipe holds: it waits for its reader with everything done.
        let bytes = peak(child.id());
        out.read_to_end(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{planner}");
        let stages = &serde_json::from_slice::<Value>(&text).unwrap()["stages"];
        assert!(text.len() > 200_000 && stages.as_array().is_some_and(|stages| !stages.is_empty()), "{planner}");
        assert!(bytes < 1_000_000_000, "{planner} takes {} MB", bytes / 1_000_000);
    }
}
