//! `plantui export`.

use super::{BERT, Folder, TINY, argument, json, plantui, refusal, stdout};

fn plan(folder: &Folder, arguments: &[&str]) -> String {
    folder.file("plan.json", stdout(&[&["plan", BERT, "--json"], arguments].concat(), 0))
}

#[test]
fn a_plan_finds_its_workload_and_leaves_as_flags() {
    let folder = Folder::new();
    let plan = plan(&folder, &["--set", "engine=megatron"]);
    let text = stdout(&["export", &plan, "--to", "megatron"], 0);
    assert!(text.contains("--pipeline-model-parallel-layout \"E"), "{text}");
    assert!(!text.contains("not expressed"), "{text}");
    let named = stdout(&["export", &plan, "--to", "megatron", "--workload", BERT], 0);
    assert_eq!(named, text);
}

#[test]
fn what_is_lost_goes_to_standard_error_too() {
    let folder = Folder::new();
    let plan = plan(&folder, &["--planner", "piper"]);
    let assert = plantui().args(["export", &plan, "--to", "galvatron"]).assert().code(0);
    let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(error.contains("note: Galvatron cannot express") && error.contains("nearest plan"), "{error}");
    let strategy: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert!(strategy["pp_division"].is_string());
    stdout(&["export", &plan, "--to", "megatron", "--exact"], 1);
}

#[test]
fn tables_and_traces_leave_too() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    let csv = stdout(&["export", &plan, "--to", "csv"], 0);
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("stage,data_parallel,"));
    let trace = json(&["export", &plan, "--to", "chrome-trace"], 0);
    assert!(trace["traceEvents"].is_array());
    let piper = json(&["export", &plan, "--to", "piper"], 0);
    assert!(piper["stages"].is_array());
}

#[test]
fn files_are_not_written_over() {
    let folder = Folder::new();
    let plan = plan(&folder, &[]);
    let target = argument(&folder.path("flags.sh"));
    stdout(&["export", &plan, "--to", "megatron", "--output", &target], 0);
    let error = refusal(&["export", &plan, "--to", "megatron", "--output", &target]);
    assert!(error.contains("--force"), "{error}");
    stdout(&["export", &plan, "--to", "megatron", "--output", &target, "--force"], 0);
}

#[test]
fn a_plan_without_its_workload_says_so() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(plan(&folder, &[])).unwrap();
    let moved = folder.file("moved.json", text.replace(BERT, "inputs/nowhere.json"));
    assert!(refusal(&["export", &moved, "--to", "megatron"]).contains("--workload"));
    let silent = folder.file("silent.json", text.replace(&format!("\"source\": \"{BERT}\","), ""));
    assert!(refusal(&["export", &silent, "--to", "megatron"]).contains("--workload"));
    let error = refusal(&["export", &silent, "--to", "megatron", "--workload", BERT, "--layers", "decoder.*"]);
    assert!(error.contains("decoder.*"), "{error}");
}

#[test]
fn pipelines_leave_as_dot_with_a_cluster_for_each_stage() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    let stages = json(&["plan", TINY, "--json"], 0)["stages"].as_array().unwrap().len();
    let dot = stdout(&["export", &plan, "--to", "dot"], 0);
    assert_eq!(dot.matches("subgraph cluster_").count(), stages);
    assert_eq!(dot.matches(" -> ").count(), 6, "every edge is there: {dot}");
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
}

#[test]
fn layers_take_the_names_that_are_given() {
    let folder = Folder::new();
    let plan = plan(&folder, &[]);
    let named = stdout(&["export", &plan, "--to", "torchtitan", "--layer-names", "model.layers.{}"], 0);
    assert!(named.contains("model.layers.1"), "{named}");
    assert!(refusal(&["export", &plan, "--to", "torchtitan", "--layer-names", "model"]).contains("{}"));
}
