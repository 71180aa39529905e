//! Every export format for a plan of every family: it is written by the rules of who reads it, or refused with a sentence.

use std::collections::BTreeMap;

use super::{Folder, argument, engine_rules, json, plantui, stdout, trace_rules};

/// A family's plan: a workload with the flags of its planner, and what its plans cannot leave as.
struct Family {
    name: &'static str,
    plan: &'static [&'static str],
    refused: &'static [&'static str],
}

/// The formats of training engines.
const ENGINES: [&str; 8] =
    ["megatron", "deepspeed", "torch", "torch-schedule", "torchtitan", "galvatron", "vllm", "megatron-bridge"];
/// The others.
const OTHERS: [&str; 7] = ["chrome-trace", "svg", "csv", "dot", "jax", "piper", "placement-split"];

const FAMILIES: [Family; 7] = [
    Family {
        name: "stages with replicas",
        plan: &["inputs/bert32a100.json", "--devices", "16", "--memory", "16GiB", "--microbatches", "48"],
        refused: &["jax", "placement-split"],
    },
    Family {
        name: "stages of a graph where nothing repeats",
        plan: &["inputs/tiny-branch.json"],
        refused: &["megatron", "megatron-bridge", "galvatron", "vllm", "jax", "placement-split"],
    },
    Family {
        name: "devices that cut through layers",
        plan: &["inputs/branching-cnn-training.json", "--planner", "placement-local-search"],
        refused: &["megatron", "megatron-bridge", "deepspeed", "torch", "torchtitan", "galvatron", "vllm", "jax"],
    },
    Family {
        name: "one device for all",
        plan: &["inputs/mistral-7b-latency.json", "--planner", "placement-one", "--memory", "80GiB"],
        refused: &["jax"],
    },
    Family {
        name: "devices by latency",
        plan: &["inputs/branching-cnn-training.json", "--planner", "placement-latency-greedy"],
        refused: &["jax", "torch-schedule"],
    },
    Family {
        name: "stages over machines",
        plan: &["inputs/bert32-layers.txt", "--machines", "1,1", "--batch", "64"],
        refused: &["jax", "placement-split"],
    },
    Family {
        name: "split operators",
        plan: &["inputs/alexnet-operators.json"],
        refused: &[
            "megatron",
            "megatron-bridge",
            "deepspeed",
            "torch",
            "torch-schedule",
            "torchtitan",
            "galvatron",
            "vllm",
            "piper",
            "placement-split",
        ],
    },
];

#[test]
fn every_format_takes_every_family_or_says_why_not() {
    let folder = Folder::new();
    for family in &FAMILIES {
        let document = json(&[&["plan"], family.plan, &["--json"]].concat(), 0);
        let plan = folder.file("plan.json", document.to_string());
        for format in ENGINES.into_iter().chain(OTHERS) {
            let told = format!("{}: --to {format}", family.name);
            if family.refused.contains(&format) {
                refused(&plan, format, &told);
                continue;
            }
            let text = stdout(&["export", &plan, "--to", format], 0);
            read(format, &text, &document, &told);
        }
    }
}

/// One sentence that names the format's reader or the format, nothing on standard output, no panic.
fn refused(plan: &str, format: &str, told: &str) {
    let output = plantui().args(["export", plan, "--to", format]).output().expect("it runs");
    let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
    assert!(matches!(output.status.code(), Some(1 | 2)) && output.stdout.is_empty(), "{told}: {error}");
    let first = error.lines().next().unwrap_or_default();
    assert!(first.starts_with("error: ") && !error.contains("panicked"), "{told}: {error}");
    let reason =
        ["cannot run this plan", "counts repeated layers", "needs a pipeline", "is for operator graphs", "is no"];
    assert!(reason.iter().any(|reason| first.contains(reason)), "{told}: {error}");
}

/// Reads what was written by the rules of its format and compares it with the plan where that is the same for all.
fn read(format: &str, text: &str, document: &serde_json::Value, told: &str) {
    let stages = document["stages"].as_array().unwrap();
    let nodes: usize = stages.iter().map(|stage| stage["nodes"].as_array().unwrap().len()).sum();
    assert!(!text.is_empty(), "{told}");
    match format {
        "megatron" => assert!(engine_rules::megatron(text).tensor_parallel > 0),
        "megatron-bridge" => {
            assert!(text.contains("def planned(config):") && text.contains("tensor_model_parallel_size = "), "{told}");
        }
        "deepspeed" => {
            if let Some(read) = engine_rules::deepspeed(told, text) {
                assert!(!read.parts.is_empty(), "{told}");
            }
        }
        "torch" => {
            engine_rules::torch(told, text, &engine_rules::llama(1000));
        }
        "torch-schedule" => assert!(engine_rules::torch_schedule(text).1 > 0, "{told}"),
        "torchtitan" => assert!(!engine_rules::torchtitan(text).parts.is_empty(), "{told}"),
        "galvatron" => assert!(!engine_rules::galvatron(text).is_empty(), "{told}"),
        "vllm" => assert!(engine_rules::vllm(text).1 > 0, "{told}"),
        "chrome-trace" => {
            let trace = trace_rules::read(text);
            let iteration = document["simulation"]["iteration_s"].as_f64().unwrap();
            assert!((trace.end / 1e6 - iteration).abs() <= 1e-9 * iteration, "{told}: {} {iteration}", trace.end);
            assert!(!trace.processes.is_empty(), "{told}");
        }
        "svg" => {
            let elements = svg(text);
            let boxes = elements.get("rect").copied().unwrap_or(0);
            assert!(boxes > stages.len(), "{told}");
            if document["operators"].is_null() {
                assert_eq!(text.matches("class=\"stage\"").count(), stages.len(), "{told}");
            }
        }
        "csv" => {
            let columns = text.lines().next().unwrap().split(',').count();
            assert_eq!(columns, 11);
            assert_eq!(text.lines().count(), nodes + 1, "{told}: a row for each node");
        }
        "dot" => {
            assert!(text.starts_with("digraph ") && text.matches('{').count() == text.matches('}').count(), "{told}");
            assert_eq!(text.lines().filter(|line| line.contains("fillcolor=")).count(), nodes, "{told}");
        }
        "jax" => {
            let compiled = format!("compile({text:?}, 'plan.py', 'exec')");
            engine_rules::python(told, &compiled);
        }
        _ => {
            let value: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
            assert!(value.is_object(), "{told}");
        }
    }
}

/// The elements of a picture by name. Fails unless its tags are closed in order, it loads nothing and runs nothing.
fn svg(text: &str) -> BTreeMap<String, usize> {
    let mut open: Vec<&str> = vec![];
    let mut elements = BTreeMap::new();
    for tag in text.split('<').skip(1) {
        let (tag, content) = tag.split_once('>').expect("tags are closed");
        assert!(!content.contains('&') || content.contains(';'), "{content}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap();
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        *elements.entry(name.to_string()).or_default() += 1;
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && elements.get("svg") == Some(&1), "{open:?}");
    for foreign in ["script", "image", "style", "use", "foreignObject"] {
        assert!(!elements.contains_key(foreign), "{foreign}");
    }
    assert!(
        !text.contains("NaN") && !text.contains("inf\"") && text.matches("http").count() == 1,
        "only its namespace"
    );
    elements
}

#[test]
fn a_picture_says_what_the_plan_says() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", super::TINY, "--planner", "piper", "--json"], 0));
    let target = argument(&folder.path("plan.svg"));
    stdout(&["export", &plan, "--to", "svg", "--output", &target], 0);
    let text = std::fs::read_to_string(&target).unwrap();
    let elements = svg(&text);
    // Two transfers between neighbours and one past a stage.
    assert_eq!(text.matches("class=\"transfer\"").count(), 3);
    assert_eq!(text.matches("class=\"device\"").count(), 3);
    assert!(elements["text"] > 20);
    for part in [
        "tiny-branch",
        "26.00 ms/sample",
        "stage 3",
        "slowest stage",
        "0.73 GB",
        "limit 1 GB",
        "and from stage 1: 7.63 MiB",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn what_engines_and_others_are_called_stays() {
    let help = stdout(&["export", "--help"], 0);
    for format in "megatron|deepspeed|torch|torchtitan|galvatron|vllm|chrome-trace|svg|csv|dot".split('|') {
        assert!(ENGINES.contains(&format) || OTHERS.contains(&format), "{format}");
        assert!(help.contains(format), "{format} in {help}");
    }
}

#[test]
fn a_plan_for_a_batch_says_its_microbatches() {
    let folder = Folder::new();
    let plan = folder.file(
        "plan.json",
        stdout(&["plan", "inputs/bert32-layers.txt", "--machines", "1,1", "--batch", "64", "--json"], 0),
    );
    let read = engine_rules::megatron(&stdout(&["export", &plan, "--to", "megatron"], 0));
    assert_eq!((read.samples.map(|(all, _)| all), read.stages.len()), (Some(64), 2));
    let smaller = stdout(&["export", &plan, "--to", "megatron", "--micro-batch-size", "1"], 0);
    assert!(smaller.contains("--micro-batch-size 1 ") && smaller.contains("--global-batch-size 64"), "{smaller}");
    let odd = stdout(&["export", &plan, "--to", "megatron", "--micro-batch-size", "3"], 0);
    assert!(
        odd.contains("# not expressed: microbatches of 3 samples do not divide the batch; the export uses 2"),
        "{odd}"
    );
}
