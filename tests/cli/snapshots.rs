//! Reports, errors and help as snapshots, which a reviewer reads as a diff (`cargo insta review`).
//!
//! Planning times are filtered. Everything else that the program prints is the same on every machine.

use super::{Folder, plantui};

/// Runs the program and gives the command, its exit code, standard output and standard error as one text.
fn report(arguments: &[&str]) -> String {
    let output = plantui().args(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_string();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().unwrap_or(-1);
    let errors = if err.is_empty() { String::new() } else { format!("\n--- standard error\n{err}") };
    format!("exit code {code}\n{out}{errors}\n")
}

/// Compares the report of a command with its snapshot.
fn compare(name: &str, arguments: &[&str]) {
    let text = report(arguments);
    insta::with_settings!({
        // Files of the test's folder by their names alone.
        description => arguments.iter().fold("plantui".to_string(), |words, &word| {
            let shown = if word.starts_with('/') { word.rsplit('/').next().unwrap_or(word) } else { word };
            format!("{words} {shown}")
        }),
        omit_expression => true,
        prepend_module_to_snapshot => false,
        filters => [
            // Times of planning: `in 8.0 ms`, `(2 re-plans, 12 ms)`.
            (r"\bin \d+(\.\d+)? (ns|µs|us|ms|s|min)\b", "in [time]"),
            (r"\b\d+(\.\d+)? (ns|µs|us|ms|s) of planning\b", "[time] of planning"),
            // Column of planning times beside the gap.
            (r"( (?:proven\*?|-|[\d.]+%\*?)) +[\d.]+ (?:ns|µs|us|ms|s)( +(?:[-+]|-$))", "$1 [time]$2"),
            (r"(?m) +[\d.]+ (?:ns|µs|us|ms|s)(  no plan)?$", " [time]$1"),
            (r"[\d.]+ (?:ns|µs|us|ms|s)  (fails|reaches)", "[time]  $1"),
            // Folder of the test.
            (r"/\S*/(plan|piper)\.json", "[folder]/$1.json"),
        ],
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn kinds_of_devices() {
    let devices = "16xh100:2.50,32xa100-80:1.20";
    compare("plan-kinds", &["plan", "llama-3-8b", "--devices", "16xh100,32xa100-80", "--batch", "128"]);
    let both = ["--batch", "128", "--set", "minimise=both"];
    compare("plan-kinds-cheaper", &[&["plan", "llama-3-8b", "--devices", devices], &both[..]].concat());
    compare("plan-kinds-file", &["plan", "inputs/two-kinds.json"]);
    compare("plan-two-speeds", &["plan", "inputs/two-speeds.json"]);
    compare("explain-two-speeds", &["explain", "inputs/two-speeds.json"]);
    let kinds = ["explain", "llama-3-8b", "--devices", "16xh100,32xa100-80", "--batch", "128"];
    compare("explain-kinds", &[&kinds[..], &["--each", "1min"]].concat());
}

#[test]
fn plans() {
    compare("plan-profile", &["plan", "inputs/bert32a100.json"]);
    compare("plan-piper", &["plan", "inputs/bert32a100.json", "--planner", "piper"]);
    compare("plan-equal-partition", &["plan", "inputs/bert32a100.json", "--planner", "equal-partition"]);
    compare("plan-branch", &["plan", "inputs/tiny-branch.json"]);
    compare("plan-any-space", &["plan", "inputs/tiny-branch.json", "--set", "space=any"]);
    compare("plan-infeasible", &["plan", "inputs/bert32a100.json", "--devices", "8", "--memory", "1GiB"]);
    compare(
        "plan-infeasible-piper",
        &["plan", "inputs/bert32a100.json", "--devices", "8", "--memory", "1GiB", "--planner", "piper"],
    );
    compare("plan-placement", &["plan", "inputs/branching-cnn-training.json"]);
    compare("plan-latency", &["plan", "inputs/mistral-7b-latency.json", "--planner", "placement-latency-greedy"]);
    compare("plan-operators", &["plan", "inputs/alexnet-operators.json", "--devices", "16"]);
    compare("plan-layers", &["plan", "inputs/bert32-layers.txt", "--batch", "128", "--machines", "2x8"]);
    compare("plan-parmesan", &["plan", "inputs/bert32-layers.txt", "--planner", "parmesan", "--topology", "dgx-1"]);
    compare("plan-topology", &["plan", "inputs/bert32a100.json", "--devices", "16", "--topology", "2xdgx-a100"]);
    compare("plan-model", &["plan", "llama-3.1-70b", "--hardware", "h100", "--devices", "64", "--global-batch", "128"]);
    compare(
        "plan-model-devices",
        &["plan", "llama-3.1-405b", "--devices", "64..512", "--global-batch", "256", "--tokens", "1T", "--price", "2"],
    );
    compare(
        "plan-model-infeasible",
        &["plan", "llama-3.1-70b", "--hardware", "h100", "--devices", "4", "--global-batch", "128"],
    );
}

#[test]
fn studies() {
    compare("compare", &["compare", "inputs/tiny-branch.json"]);
    compare("explain", &["explain", "inputs/tiny-branch.json"]);
    compare("explain-profile", &["explain", "inputs/bert32a100.json", "--devices", "64"]);
    compare("seek", &["seek", "inputs/bert32a100.json", "--least", "devices", "--until", "iteration_time<=160s"]);
    compare("sweep", &["sweep", "inputs/tiny-branch.json", "--devices", "1..4"]);
    compare("simulate", &["simulate", "inputs/bert32a100.json"]);
    compare(
        "estimate",
        &[
            "estimate",
            "llama-3.1-70b",
            "--hardware",
            "h100",
            "--devices",
            "64",
            "--parallel",
            "tp=4,pp=4,vp=5,cp=2",
            "--global-batch",
            "128",
        ],
    );
    compare(
        "explain-model",
        &["explain", "llama-3-8b", "--hardware", "h100", "--devices", "16", "--global-batch", "64"],
    );
}

#[test]
fn checks_and_exports() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", plantui().args(["plan", super::TINY, "--json"]).output().unwrap().stdout);
    let piper = ["plan", super::BERT, "--planner", "piper", "--json"];
    let piper = folder.file("piper.json", plantui().args(piper).output().unwrap().stdout);
    compare("check", &["check", super::TINY, &plan]);
    compare("check-piper", &["check", super::BERT, &piper]);
    compare("map", &["map", super::BERT, &piper, "--topology", "8xdgx-a100"]);
    for format in ["megatron", "deepspeed", "torchtitan", "maxtext", "galvatron", "vllm"] {
        compare(&format!("export-{format}"), &["export", &piper, "--workload", super::BERT, "--to", format]);
    }
    compare("lint", &["lint", "inputs/branching-cnn-training.json"]);
    compare("lint-profile", &["lint", super::BERT]);
}

#[test]
fn lists() {
    for list in ["planners", "hardware", "topologies", "themes", "terms"] {
        compare(&format!("list-{list}"), &[list]);
    }
    compare("topology", &["topologies", "2xdgx-a100"]);
    compare("term", &["help", "terms", "bubble"]);
}

#[test]
fn errors() {
    let folder = Folder::new();
    let cut = folder.file("cut.json", "{\"maxDevices\": 4, \"nodes\": [");
    compare("error-no-file", &["plan", "nowhere.json"]);
    compare("error-model", &["plan", "llama-3.1-8bb"]);
    compare("error-no-devices", &["plan", super::TINY, "--devices", "0"]);
    compare("error-planner", &["plan", super::TINY, "--planner", "pipper"]);
    compare("error-option", &["plan", super::TINY, "--set", "schedul=gpipe"]);
    compare("error-moved-option", &["plan", super::TINY, "--planner", "piper", "--set", "engine=megatron"]);
    compare("error-unit", &["plan", super::TINY, "--memory", "8 apples"]);
    compare("error-planner-workload", &["plan", super::TINY, "--planner", "dapple"]);
    let text = report(&["plan", &cut]).replace(&cut, "cut.json");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("error-cut-file", text);
    });
}

#[test]
fn help() {
    compare("help", &["--help"]);
    for command in [
        "plan",
        "check",
        "compare",
        "sweep",
        "simulate",
        "explain",
        "seek",
        "estimate",
        "calibrate",
        "import",
        "export",
        "convert",
        "generate",
        "lint",
        "map",
        "topologies",
        "hardware",
        "planners",
        "themes",
        "terms",
        "schema",
        "serve",
        "completions",
        "man",
    ] {
        compare(&format!("help-{command}"), &[command, "--help"]);
    }
}
