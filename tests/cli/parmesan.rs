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
    assert!(text.contains("simulated on the routes of dgx-1: an iteration takes"), "{text}");
}

#[test]
fn planners_that_know_less_are_told_the_slowest_links() {
    let dapple = stdout(&["plan", LAYERS, "--planner", "dapple", "--topology", "2xdgx-a100", "--batch", "32"], 0);
    assert!(dapple.contains("2xdgx-a100: the planner uses two bandwidths"), "{dapple}");
    let arguments = ["plan", crate::TINY, "--planner", "equal-partition", "--topology", "dgx-1", "--json"];
    let piper = json(&arguments, 0);
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

#[test]
fn devices_are_told_and_simulated_on_their_routes_everywhere() {
    let folder = Folder::new();
    let on = ["plan", LAYERS, "--planner", "parmesan", "--topology", "dgx-1", "--set", "replicas=false"];
    let text = stdout(&on, 0);
    assert!(text.contains("on devices"), "{text}");
    let plan = json(&[&on[..], &["--json"]].concat(), 0);
    // One figure for a batch, in the mapping and in the simulation, and `check` finds it again.
    assert_eq!(plan["mapping"]["iteration_s"], plan["simulation"]["iteration_s"]);
    let file = folder.file("plan.json", plan.to_string());
    stdout(&["check", LAYERS, &file, "--strict"], 0);
    let mut forged = plan.clone();
    forged["mapping"]["iteration_s"] = (plan["mapping"]["iteration_s"].as_f64().unwrap() / 2.0).into();
    let forged = folder.file("forged.json", forged.to_string());
    let text = stdout(&["check", LAYERS, &forged], 1);
    assert!(text.contains("mapping: iteration_s is"), "{text}");
    let mut moved = plan.clone();
    moved["mapping"]["devices"][0] = 99.into();
    let moved = folder.file("moved.json", moved.to_string());
    assert!(crate::refusal(&["check", LAYERS, &moved]).contains("mapping.devices"));
    // Devices in order cost what the routes between them say.
    let identity = json(&[&on[..], &["--set", "mapping=identity", "--json"]].concat(), 0);
    let seconds = |plan: &serde_json::Value| plan["simulation"]["iteration_s"].as_f64().unwrap();
    assert!(seconds(&identity) > seconds(&plan), "{} {}", seconds(&identity), seconds(&plan));
}

#[test]
fn plans_of_every_planner_are_mapped_to_the_topology() {
    let folder = Folder::new();
    for (workload, planner) in [(LAYERS, "dapple"), (crate::TINY, "piper"), (crate::TINY, "joint")] {
        let plan = json(&["plan", workload, "--planner", planner, "--topology", "2xdgx-1+eth-25g", "--json"], 0);
        assert_eq!(plan["mapping"]["topology"], "2xdgx-1+eth-25g", "{planner}");
        assert_eq!(plan["mapping"]["iteration_s"], plan["simulation"]["iteration_s"], "{planner}");
        let file = folder.file("plan.json", plan.to_string());
        stdout(&["check", workload, &file], 0);
    }
}

#[test]
fn a_topology_from_a_file_is_found_again_by_check() {
    let folder = Folder::new();
    let matrix = folder.file("pair.csv", "0,10\n10,0\n");
    let plan = json(&["plan", LAYERS, "--planner", "parmesan", "--topology", &matrix, "--memory", "80GB", "--json"], 0);
    assert_eq!(plan["mapping"]["file"], matrix.as_str());
    let file = folder.file("plan.json", plan.to_string());
    stdout(&["check", LAYERS, &file], 0);
    std::fs::remove_file(&matrix).unwrap();
    let error = crate::refusal(&["check", LAYERS, &file]);
    assert!(error.contains("mapping.file"), "{error}");
}

#[test]
fn topologies_are_an_axis_of_a_sweep() {
    let sweep = ["sweep", LAYERS, "--planner", "dapple", "--topology", "dgx-1,dgx-2,2xdgx-1+eth-25g"];
    let text = stdout(&sweep, 0);
    let at = |name: &str| text.rfind(name).unwrap_or_else(|| panic!("{name}: {text}"));
    // The fastest first, each against the one before it, and where most communication is.
    assert!(at("  2xdgx-1+eth-25g  ") < at("  dgx-2  ") && at("  dgx-2  ") < at("  dgx-1  "), "{text}");
    assert!(
        text.contains("% longer than dgx-2; ") && text.contains("of communication per microbatch, most at"),
        "{text}"
    );
    let csv = stdout(&[&sweep[..], &["--csv"]].concat(), 0);
    assert_eq!(csv.lines().filter(|line| line.contains("2xdgx-1+eth-25g")).count(), 1, "{csv}");
}

#[test]
fn an_ensemble_is_as_fast_as_its_fastest_member_and_tells_all() {
    let folder = Folder::new();
    let batch = |members: &str| {
        let set = format!("members={members}");
        let plan = json(&["plan", LAYERS, "--planner", "ensemble", "--topology", "dgx-1", "--set", &set, "--json"], 0);
        let file = folder.file("plan.json", plan.to_string());
        stdout(&["check", LAYERS, &file], 0);
        let notes = plan["notes"].to_string();
        (plan["simulation"]["iteration_s"].as_f64().unwrap(), notes)
    };
    let alone = ["parmesan;replicas=false", "dapple", "dapple-hpgo"].map(|member| batch(member).0);
    let (all, notes) = batch("parmesan;replicas=false,dapple,dapple-hpgo");
    assert_eq!(all, alone.into_iter().fold(f64::INFINITY, f64::min));
    assert!(notes.contains("member dapple: ") && notes.contains("member parmesan;replicas=false: "), "{notes}");
    // Without names, all that plan the workload as it is; in whatever order, the same time.
    let (every, notes) = batch("");
    assert!(every <= all && notes.contains("member parmesan: "), "{notes}");
    assert_eq!(batch("dapple-hpgo+dapple+parmesan;replicas=false").0, all);
    let error =
        crate::refusal(&["plan", LAYERS, "--planner", "ensemble", "--topology", "dgx-1", "--set", "members=pase"]);
    assert!(error.contains("members cannot be `pase`") && error.contains("dapple-hpgo"), "{error}");
    // On Piper's profiles plans are told by the time of a batch.
    let tiny = json(&["plan", crate::TINY, "--planner", "ensemble", "--set", "members=piper,joint", "--json"], 0);
    assert_eq!(tiny["objective"]["name"], "iteration_time");
}

#[test]
fn a_graph_comes_back_with_its_stages_and_ranks_with_their_devices() {
    let on = ["plan", LAYERS, "--planner", "parmesan", "--topology", "dgx-1", "--set", "replicas=false"];
    let folder = Folder::new();
    let text = stdout(&[&on[..], &["--format", "pipedream"]].concat(), 0);
    let nodes = std::fs::read_to_string(LAYERS).unwrap().lines().filter(|line| line.starts_with("node")).count();
    assert_eq!(text.lines().filter(|line| line.contains(" -- stage_id=")).count(), nodes, "{text}");
    let file = folder.file("graph.txt", &text);
    stdout(&["lint", &file], 0);
    let plan = json(&[&on[..], &["--json"]].concat(), 0);
    let ranks = stdout(&[&on[..], &["--format", "rank-file"]].concat(), 0);
    let devices: Vec<String> = ranks
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split(',').nth(5).unwrap().to_string())
        .collect();
    let mapped: Vec<String> = plan["mapping"]["devices"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(devices, mapped);
    assert!(ranks.starts_with(&format!("# machine 0: CUDA_VISIBLE_DEVICES={}\n", mapped.join(","))), "{ranks}");
}

#[test]
fn profiles_of_other_families_are_converted_and_mapped() {
    let folder = Folder::new();
    let on = ["--planner", "parmesan", "--topology", "dgx-1", "--json"];
    let bert = "inputs/bert32a100.json";
    let placement = folder.file(
        "chain.json",
        r#"{"maxSizePerFPGA": 1e9, "maxFPGAs": 8, "maxCPUs": 0, "nodes": [
        {"id": 1, "supportedOnFpga": true, "cpuLatency": 9, "fpgaLatency": 1, "size": 1, "isBackwardNode": false},
        {"id": 2, "supportedOnFpga": true, "cpuLatency": 9, "fpgaLatency": 2, "size": 1, "isBackwardNode": false},
        {"id": 3, "supportedOnFpga": true, "cpuLatency": 9, "fpgaLatency": 3, "size": 1, "isBackwardNode": false}],
        "edges": [{"sourceId": 1, "destId": 2, "cost": 0.1}, {"sourceId": 2, "destId": 3, "cost": 0.1}]}"#,
    );
    for workload in [bert, &placement] {
        let plan = json(&[&["plan", workload][..], &on, &["--memory", "80GB"]].concat(), 0);
        assert_eq!(plan["mapping"]["topology"], "dgx-1", "{plan}");
        assert!(plan["notes"].to_string().contains("No proof"), "{plan}");
        let file = folder.file("plan.json", plan.to_string());
        stdout(&["check", workload, &file], 0);
    }
}

#[test]
fn a_conversion_asks_for_less_memory_where_the_original_counts_more() {
    let folder = Folder::new();
    let on = ["--planner", "parmesan", "--devices", "16", "--memory", "40GiB", "--json"];
    let plan = json(&[&["plan", "inputs/bert32a100.json"][..], &on].concat(), 0);
    let fullest = plan["stages"].as_array().unwrap().iter().map(|stage| stage["memory_bytes"].as_f64().unwrap());
    let fullest = fullest.fold(0.0, f64::max);
    // Just below what that takes another split is found, or the least that was seen is told, and never in no time at all.
    let less = format!("{}", (0.9 * fullest) as u64);
    let output = crate::plantui()
        .args([
            "plan",
            "inputs/bert32a100.json",
            "--planner",
            "parmesan",
            "--devices",
            "16",
            "--memory",
            &less,
            "--json",
        ])
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["stats"]["seconds"].as_f64().unwrap() > 0.0, "{document}");
    if output.status.success() {
        let file = folder.file("plan.json", document.to_string());
        stdout(&["check", "inputs/bert32a100.json", &file], 0);
    } else {
        assert_eq!(document["status"], "infeasible", "{document}");
    }
}

/// Inputs are not planned: they stand with what reads them, and no device is kept for them.
#[test]
fn no_stage_is_of_inputs_alone() {
    let folder = Folder::new();
    let mut graph =
        "node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=64, parameter_size=0\n"
            .to_string();
    for node in 2..=6 {
        graph += &format!(
            "node{node} -- Linear{node} -- forward_compute_time=1, backward_compute_time=2, activation_size=4096, parameter_size=8\n"
        );
    }
    for node in 2..=6 {
        graph += &format!("\tnode{} -- node{node}\n", node - 1);
    }
    let file = folder.file("graph.txt", graph);
    for more in [&[][..], &["--set", "k=5"], &["--set", "new_flow=false"]] {
        let asked = ["plan", &file, "--planner", "parmesan", "--topology", "dgx-1", "--batch", "64", "--json"];
        let plan = json(&[&asked[..], &["--set", "replicas=false"], more].concat(), 0);
        let stages = plan["stages"].as_array().unwrap();
        assert!(stages.iter().all(|stage| !stage["nodes"].as_array().unwrap().is_empty()), "{more:?} {stages:?}");
        assert_eq!(stages[0]["nodes"].as_array().unwrap()[0], 1, "{more:?}");
    }
}

#[test]
fn a_transfer_that_forbids_a_cut_makes_no_other_cut_free() {
    let folder = Folder::new();
    let forward = [2, 1, 3, 2, 2, 3, 3, 2, 1, 3, 2, 3];
    let bytes = ["1e4", "", "3e9", "1e4", "3e9", "3e9", "1e10", "1e10", "1e10", "3e9", "1e10", "1e3"];
    let planned = |forbidding: &str| {
        let layer = |(at, (forward, bytes)): (usize, (&i32, &&str))| {
            let bytes = if bytes.is_empty() { forbidding } else { bytes };
            format!(
                "node{at} -- L{at} -- forward_compute_time={forward}, backward_compute_time=2, activation_size={bytes}, parameter_size=1000\n"
            )
        };
        let layers: String = forward.iter().zip(&bytes).enumerate().map(layer).collect();
        let edges: String = (1..12).map(|at| format!("\tnode{} -- node{at}\n", at - 1)).collect();
        let workload = folder.file(&format!("{forbidding}.txt"), layers + &edges);
        let limits = ["--devices", "4", "--machines", "4", "--memory", "1e29", "--batch", "32"];
        let own = ["--planner", "parmesan", "--set", "replicas=false", "--set", "peak_activation_per_sample=1000"];
        let plan = json(&[&["plan", &workload], &limits[..], &own, &["--json"]].concat(), 0);
        let nodes: Vec<_> = plan["stages"].as_array().unwrap().iter().map(|stage| stage["nodes"].clone()).collect();
        (nodes, plan["simulation"]["iteration_s"].as_f64().unwrap())
    };
    // How much it is that cannot be sent makes no difference.
    let (much, more) = (planned("1e24"), planned("1e30"));
    assert_eq!(much, more);
}
