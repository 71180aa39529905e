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
fn what_a_device_holds_is_told_as_the_schedule_has_it_that_is_written() {
    let folder = Folder::new();
    let plan = plan(&folder, &["--set", "engine=torch"]);
    let told = |arguments: &[&str]| {
        let assert = plantui().args([&["export", &plan, "--to"], arguments].concat()).assert().code(0);
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let own = told(&["torch"]);
    assert!(own.contains("need room too") && !own.contains("does not fit"), "{own}");
    let simulated = stdout(&["simulate", BERT, &plan, "--schedule", "gpipe"], 0);
    for format in ["torch", "chrome-trace"] {
        let other = told(&[format, "--schedule", "gpipe"]);
        let line = other.lines().find(|line| line.contains("under GPipe: that does not fit")).expect(format);
        // As much as the simulator says.
        let peak = line.split(" needs ").nth(1).unwrap().split(" GiB").next().unwrap().parse::<f64>().unwrap();
        let peak_simulated = simulated.split("peak memory ").nth(1).unwrap().split(" GiB").next().unwrap();
        assert!((peak - peak_simulated.parse::<f64>().unwrap()).abs() <= 0.01 * peak, "{line}\n{simulated}");
    }
    // Of plans over layers, too.
    let layers = ["inputs/bert32-layers.txt", "--machines", "8,8", "--batch", "128", "--memory", "6GB"];
    let plan = folder.file("layers.json", stdout(&[&["plan"], &layers[..], &["--json"]].concat(), 0));
    let assert = plantui().args(["export", &plan, "--to", "chrome-trace", "--schedule", "gpipe"]).assert().code(0);
    let other = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(other.contains("under GPipe: that does not fit"), "{other}");
    // So are the nearest plans that an engine can run.
    assert!(told(&["torchtitan", "--schedule", "gpipe"]).contains("under GPipe: that does not fit"));
    // And for as many samples as were counted.
    assert!(!own.contains("samples in a microbatch"), "{own}");
    let larger = told(&["torch", "--micro-batch-size", "16"]);
    assert!(larger.contains("hold for 2 samples in a microbatch, not for 16"), "{larger}");
}

#[test]
fn what_an_export_does_not_heed_is_told() {
    let folder = Folder::new();
    let plan = plan(&folder, &["--set", "engine=torch"]);
    for (arguments, told) in [
        (&["torch", "--schedule", "1f1b", "--virtual-stages", "3"][..], "--virtual-stages changes nothing here: only"),
        (&["csv", "--schedule", "gpipe"], "--schedule changes nothing here: csv does not hold a schedule"),
    ] {
        let assert = plantui().args([&["export", &plan, "--to"], arguments].concat()).assert().code(0);
        let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(error.contains(told), "{error}");
    }
    // Nor is a trace drawn of another schedule than the one asked for.
    let forked = folder.file("forked.json", stdout(&["plan", BERT, "--planner", "piper", "--json"], 0));
    let error = refusal(&["export", &forked, "--to", "chrome-trace", "--schedule", "interleaved"]);
    assert!(error.contains("needs a chain of stages"), "{error}");
    // A trace has as many parts as are asked for.
    let chain = ["plan", "inputs/gpt3-175b-a100.json", "--microbatches", "16", "--set", "stages=8", "--json"];
    let plan = folder.file("of-chain.json", stdout(&chain, 0));
    let trace = |parts: &str| {
        let arguments = ["--schedule", "interleaved", "--virtual-stages", parts];
        json(&[&["export", &plan, "--to", "chrome-trace"], &arguments[..]].concat(), 0)
    };
    let events = |trace: &serde_json::Value| trace["traceEvents"].as_array().unwrap().len();
    assert!(events(&trace("4")) > events(&trace("2")));
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

#[test]
fn equal_stages_leave_as_a_mesh_for_maxtext_and_others_are_refused() {
    let folder = Folder::new();
    let workload = folder.file(
        "llama.json",
        stdout(&["generate", "llama-3-8b", "--hardware", "h100", "--devices", "16", "--microbatches", "64"], 0),
    );
    // So little that it takes several stages.
    let asked = ["plan", &workload, "--planner", "equal-partition", "--memory", "12GiB", "--json"];
    let document = json(&asked, 0);
    let plan = folder.file("plan.json", document.to_string());
    let text = stdout(&["export", &plan, "--to", "maxtext"], 0);
    let row = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_else(|| panic!("no {name} in {text}")).to_string()
    };
    let number = |name: &str| row(name).parse::<f64>().unwrap();
    let axis = |name: &str| number(&format!("ici_{name}_parallelism")) * number(&format!("dcn_{name}_parallelism"));
    let stages = document["stages"].as_array().unwrap();
    assert_eq!(axis("pipeline"), stages.len() as f64);
    assert_eq!(axis("data"), stages[0]["data_parallel"].as_f64().unwrap());
    assert_eq!(axis("tensor"), stages[0]["tensor_parallel"].as_f64().unwrap());
    let batch = number("per_device_batch_size") * axis("pipeline") * axis("data") * axis("tensor");
    assert_eq!((batch, row("base_config").as_str()), (64.0, "\"base.yml\""));
    if stages.len() > 1 {
        assert_eq!(number("num_layers_per_pipeline_stage") * stages.len() as f64, 32.0, "{text}");
        assert_eq!(number("num_pipeline_microbatches") * axis("data"), 64.0, "{text}");
    }
    // Three stages of 32 layers are not equal.
    let uneven = json(&["plan", &workload, "--planner", "piper", "--set", "stages=3", "--json"], 0);
    let plan = folder.file("uneven.json", uneven.to_string());
    let output = plantui().args(["export", &plan, "--to", "maxtext"]).assert().code(1).get_output().clone();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("MaxText cannot run this plan") && error.contains("equal-partition"), "{error}");
}
