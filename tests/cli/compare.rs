//! `plantui compare`.

use super::{BERT, Folder, TINY, json, refusal, stdout};

const PLACEMENT: &str = "inputs/branching-cnn-training.json";

#[test]
fn every_planner_that_can_is_on_one_table() {
    let text = stdout(&["compare", TINY], 0);
    for part in ["Piper", "Equal partition", "samples/s", "proven", "left out: placement-"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn a_proof_says_among_which_plans() {
    const ARGUMENTS: [&str; 4] = [PLACEMENT, "--planner", "placement-dp", "--json"];
    let document = json(&[&["compare"], ARGUMENTS.as_slice()].concat(), 0);
    assert_eq!(document["entries"][0]["proven_among"], "contiguous splits in a chain");
    let text = stdout(&[&["compare"], &ARGUMENTS[..3]].concat(), 0);
    assert!(
        text.contains("proven*") && text.contains("gap* is to the best among contiguous splits in a chain"),
        "{text}"
    );
    let explained = json(&[&["explain"], ARGUMENTS.as_slice(), &["--each", "100ms"]].concat(), 0);
    assert_eq!(explained["proven_among"], "contiguous splits in a chain");
}

#[test]
fn a_gap_is_told_of_the_model_it_is_in() {
    let text = stdout(&["compare", BERT], 0);
    assert!(text.contains("objective: time per sample; gap: to each planner's own lower bound"), "{text}");
    assert!(!text.contains("gap: to the fastest simulated iteration"), "{text}");
    assert!(!text.contains("among contiguous splits in a chain"), "its gap is not known: {text}");
    let own = stdout(&["compare", BERT, "--planner", "piper"], 0);
    assert!(own.contains("gap: to the least time per microbatch in Piper's model"), "{own}");
}

#[test]
fn figures_are_those_of_the_single_commands() {
    let folder = Folder::new();
    let planned = json(&["plan", BERT, "--planner", "piper", "--json"], 0);
    let plan = folder.file("plan.json", planned.to_string());
    let document =
        json(&["compare", BERT, "--planner", "piper", "--planner", "equal-partition", "--plan", &plan, "--json"], 0);
    assert_eq!(document["schema"], "plantui.compare/1");
    let entries = document["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    let throughput = |i: usize| entries[i]["samples_per_s"].as_f64().unwrap();
    assert!(throughput(0) >= throughput(1) && throughput(1) >= throughput(2), "sorted by throughput");
    for entry in entries.iter().filter(|entry| entry["id"] != "equal-partition") {
        assert_eq!(entry["objective"], planned["objective"]);
        assert_eq!(entry["iteration_s"], planned["simulation"]["iteration_s"]);
    }
    let own = planned["objective"]["value"].as_f64().unwrap();
    let simulated = 1.0 / planned["simulation"]["samples_per_s"].as_f64().unwrap();
    let piper = entries.iter().find(|entry| entry["id"] == "piper").unwrap();
    assert!((piper["prediction_error"].as_f64().unwrap() - (own / simulated - 1.0)).abs() < 1e-12);
    let by_time =
        json(&["compare", BERT, "--planner", "piper", "--planner", "equal-partition", "--sort", "listed", "--json"], 0);
    assert_eq!(by_time["entries"][0]["id"], "piper");
}

#[test]
fn no_plan_at_all_is_exit_code_1_and_says_why() {
    let text = stdout(&["compare", BERT, "--devices", "1", "--memory", "1GiB", "--planner", "piper"], 1);
    assert!(text.contains("(no plan)") && text.contains("note: Piper: "), "{text}");
    let error = refusal(&["compare", BERT, "--planner", "placement-ip"]);
    assert!(error.contains("placement-ip"), "{error}");
}

#[test]
fn objectives_stand_apart_and_are_sorted_by_simulated_time() {
    let planners = ["placement-latency-greedy", "placement-dp", "placement-one", "placement-dpl"];
    let asked: Vec<&str> = planners.into_iter().flat_map(|id| ["--planner", id]).collect();
    let text = stdout(&[&["compare", PLACEMENT], asked.as_slice()].concat(), 0);
    let (batches, samples) = text.split_once("one sample, simulated; objective: latency").expect("two groups");
    assert!(batches.contains("objective: max load"), "{text}");
    assert!(batches.contains("Placement: DP") && !samples.contains("Placement: DP  "), "{text}");
    assert!(samples.contains("Latency: greedy") && !batches.contains("Latency: greedy"), "{text}");
    let document = json(&[&["compare", PLACEMENT, "--json"], asked.as_slice()].concat(), 0);
    let entries = document["entries"].as_array().unwrap();
    let figures = |objective: &str| -> Vec<f64> {
        let of = entries.iter().filter(|entry| entry["objective"]["name"] == objective);
        of.map(|entry| entry["iteration_s"].as_f64().unwrap()).collect()
    };
    assert_eq!(figures("max_load").len(), 3);
    assert!(figures("max_load").is_sorted());
    // The simulator runs one sample exactly as the objective has it.
    let latency = entries.iter().find(|entry| entry["objective"]["name"] == "latency").unwrap();
    assert!(latency["prediction_error"].as_f64().unwrap().abs() < 1e-9);
}

#[test]
fn operator_graphs_tell_how_many_samples_a_second() {
    let operators = "inputs/alexnet-operators.json";
    let document = json(&["compare", operators, "--json"], 0);
    let entries = document["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "PaSE and data parallelism");
    for entry in entries {
        // The file's batch dimension is 128.
        let samples = entry["iteration_s"].as_f64().unwrap() * entry["samples_per_s"].as_f64().unwrap();
        assert!((samples - 128.0).abs() < 1e-9, "{entry}");
    }
}

#[test]
fn all_are_played_under_the_settings_asked_for() {
    let plain = json(&["compare", TINY, "--planner", "piper", "--json"], 0);
    let slower = json(&["compare", TINY, "--planner", "piper", "--no-overlap", "--optimizer-step", "1s", "--json"], 0);
    let time = |document: &serde_json::Value| document["entries"][0]["iteration_s"].as_f64().unwrap();
    assert!(time(&slower) >= time(&plain) + 1.0, "{} {}", time(&slower), time(&plain));
    assert_eq!((plain["played_with"].to_string(), slower["played_with"].as_array().unwrap().len()), ("[]".into(), 2));
    let text = stdout(&["compare", TINY, "--planner", "piper", "--schedule", "gpipe", "--optimizer-step", "1s"], 0);
    assert!(text.contains("\nsimulated as GPipe, optimizer step 1.000 s\n"), "{text}");
}

#[test]
fn plans_are_compared_on_the_routes_of_a_topology() {
    let layers = "inputs/bert32-layers.txt";
    let asked = ["--planner", "dapple", "--planner", "parmesan", "--json"];
    let document = json(&[&["compare", layers, "--topology", "2xdgx-1+eth-25g"], asked.as_slice()].concat(), 0);
    let entry =
        |id: &str| document["entries"].as_array().unwrap().iter().find(|entry| entry["id"] == id).unwrap().clone();
    let remarks = entry("dapple")["remarks"].to_string();
    assert!(remarks.contains("mapping: ") || remarks.contains("mapped to 2xdgx-1+eth-25g"), "{remarks}");
    // What `plan` says of the same planner on the same wiring is what stands in the table.
    let plan = json(&["plan", layers, "--topology", "2xdgx-1+eth-25g", "--planner", "dapple", "--json"], 0);
    assert_eq!(plan["simulation"]["iteration_s"], entry("dapple")["iteration_s"]);
    let own = json(&["plan", layers, "--topology", "2xdgx-1+eth-25g", "--planner", "parmesan", "--json"], 0);
    assert_eq!(own["simulation"]["iteration_s"], entry("parmesan")["iteration_s"]);
}
