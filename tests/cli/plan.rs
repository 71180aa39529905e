//! `plan` and the command without a name.

use predicates::prelude::*;
use serde_json::Value;

use crate::{BERT, Folder, PLANNERS, TINY, argument, json, plantui, refusal, stdout};

/// `path` leads to a value that `is` accepts.
fn field(document: &Value, path: &str, is: fn(&Value) -> bool) {
    let value = document.pointer(path).unwrap_or_else(|| panic!("{path} is missing in {document:#}"));
    assert!(is(value), "{path} is {value}");
}

const PROVEN: &str = "\nproof: within 0.1% of the fastest simulated iteration (lower bound ";

#[test]
fn the_table_says_what_was_found_and_what_limits_it() {
    let table = stdout(&["plan", TINY], 0);
    for part in [
        "tiny-branch (6 layers, 6 edges): Joint, within 0.1% of optimal, in ",
        "/iteration",
        "of 4 devices",
        PROVEN,
        // It branches, which BERT below does not.
        "; searched: linear pipelines with uniform TP and DP, ",
    ] {
        assert!(table.contains(part), "`{part}` is missing in\n{table}");
    }
    for part in ["limited by stage", "limits: devices 4, memory 1 GB", "simulated 1F1B", "of 1 GB", "\n*  "] {
        assert!(table.contains(part), "`{part}` is missing in\n{table}");
    }
}

#[test]
fn the_json_document_has_every_field_of_the_schema() {
    let document = json(&["plan", TINY, "--json"], 0);
    field(&document, "/schema", |v| v == "plantui.plan/1");
    field(&document, "/workload/name", |v| v == "tiny-branch");
    field(&document, "/workload/format", |v| v == "piper");
    field(&document, "/workload/nodes", |v| v == 6);
    field(&document, "/workload/edges", |v| v == 6);
    field(&document, "/planner/id", |v| v == "joint");
    field(&document, "/planner/options/data_parallel", Value::is_boolean);
    field(&document, "/planner/options/recompute", Value::is_string);
    field(&document, "/limits/devices", |v| v == 4);
    field(&document, "/limits/memory_bytes", |v| v == 1e9);
    field(&document, "/limits/microbatches", |v| v == 12);
    field(&document, "/limits/bandwidth_bytes_per_s", |v| v == 4e9);
    field(&document, "/status", |v| v == "feasible");
    field(&document, "/objective/name", |v| v == "iteration_time");
    field(&document, "/objective/value", Value::is_f64);
    field(&document, "/objective/unit", |v| v == "s");
    field(&document, "/lower_bound", Value::is_f64);
    for part in ["compute_s", "communication_s", "sync_s", "memory_bytes"] {
        field(&document, &format!("/stages/0/{part}"), Value::is_number);
    }
    for part in ["data_parallel", "tensor_parallel"] {
        field(&document, &format!("/stages/0/{part}"), Value::is_u64);
    }
    field(&document, "/stages/0/nodes", |v| v.as_array().is_some_and(|ids| ids.iter().all(Value::is_i64)));
    field(&document, "/stages/0/devices", |v| v.as_array().is_some_and(|ids| ids.iter().all(Value::is_u64)));
    field(&document, "/stages/0/choices/0", Value::is_string);
    field(&document, "/simulation/schedule", |v| v == "1f1b");
    field(&document, "/simulation/iteration_s", |v| v.as_f64().is_some_and(|s| s > 0.0));
    field(&document, "/stats/seconds", Value::is_number);
    field(&document, "/notes", Value::is_array);
}

#[test]
fn a_plan_takes_as_long_as_its_slowest_stage() {
    let document = json(&["plan", BERT, "--planner", "piper", "--devices", "8", "--json"], 0);
    let load = |stage: &Value| ["compute_s", "communication_s", "sync_s"].map(|part| stage[part].as_f64().unwrap());
    let slowest = document["stages"].as_array().unwrap().iter().map(|s| load(s).iter().sum()).fold(0.0, f64::max);
    let value = document["objective"]["value"].as_f64().unwrap();
    assert!((slowest - value).abs() <= 1e-9 * value, "{slowest} {value}");
}

#[test]
fn limits_and_options_of_the_command_line_win() {
    let arguments = ["plan", BERT, "--devices=16", "--memory=40GiB", "--microbatches=64", "--bandwidth=200Gb/s"];
    let options = ["--set", "tensor_parallel=false", "--set=recompute=never", "--json"];
    let document = json(&[&arguments[..], &options[..]].concat(), 0);
    let limits = &document["limits"];
    assert_eq!(limits["devices"], 16);
    assert_eq!(limits["memory_bytes"], 40.0 * 1024.0 * 1024.0 * 1024.0);
    assert_eq!(limits["microbatches"], 64);
    assert_eq!(limits["bandwidth_bytes_per_s"], 25e9);
    assert_eq!(document["planner"]["options"]["tensor_parallel"], false);
    assert_eq!(document["planner"]["options"]["recompute"], "never");
    assert!(document["stages"].as_array().unwrap().iter().all(|stage| stage["tensor_parallel"] == 1));
}

#[test]
fn bare_numbers_are_bytes() {
    let words = json(&["plan", TINY, "--memory", "2GiB", "--bandwidth", "25GiB/s", "--json"], 0);
    let numbers = json(&["plan", TINY, "--memory", "2147483648", "--bandwidth", "26843545600", "--json"], 0);
    assert_eq!(words["limits"], numbers["limits"]);
    assert_eq!(words["objective"], numbers["objective"]);
}

#[test]
fn threads_and_seed_change_nothing_about_the_plan() {
    let plan = |threads: &str, seed: &str| json(&["plan", BERT, "--threads", threads, "--seed", seed, "--json"], 0);
    let (one, four) = (plan("1", "0"), plan("4", "7"));
    assert_eq!(one["stages"], four["stages"]);
    assert_eq!(one["objective"], four["objective"]);
}

#[test]
fn every_planner_can_be_asked() {
    for id in PLANNERS {
        let document = json(&["plan", BERT, "--planner", id, "--json"], 0);
        assert_eq!(document["planner"]["id"], id);
        assert!(document["objective"]["value"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn no_feasible_plan_is_exit_code_1_with_a_document() {
    let document = json(&["plan", TINY, "--devices", "1", "--memory", "1GB", "--json"], 1);
    assert_eq!(document["status"], "infeasible");
    assert_eq!(document["objective"], Value::Null);
    assert_eq!(document["stages"], Value::Array(vec![]));
    field(&document, "/infeasible/explanation", |v| v.as_str().is_some_and(|text| !text.is_empty()));
    field(&document, "/infeasible/limits", |v| v.as_array().is_some_and(|limits| !limits.is_empty()));
    let table = stdout(&["plan", TINY, "--devices", "1", "--memory", "1GB"], 1);
    assert!(table.contains("no feasible plan") && table.contains("just enough: --memory "), "{table}");
}

#[test]
fn the_smallest_memory_named_really_does() {
    let document = json(&["plan", TINY, "--devices", "1", "--memory", "1GB", "--json"], 1);
    let least = document["infeasible"]["smallest_memory_bytes"].as_f64().expect("some memory would do");
    json(&["plan", TINY, "--devices", "1", "--memory", &format!("{least}"), "--json"], 0);
    json(&["plan", TINY, "--devices", "1", "--memory", &format!("{}", least * 0.999), "--json"], 1);
}

#[test]
fn a_deadline_that_leaves_no_time_ends_with_a_plan_or_with_code_3() {
    let assert = plantui().args(["plan", BERT, "--deadline", "1ns", "--json"]).assert();
    let document: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    let found = !document["stages"].as_array().unwrap().is_empty();
    assert.code(if found { 0 } else { 3 });
    assert_ne!(document["status"], "infeasible");
}

#[test]
fn a_workload_may_come_from_standard_input() {
    let text = std::fs::read(TINY).unwrap();
    plantui()
        .args(["plan", "-"])
        .write_stdin(text)
        .assert()
        .success()
        .stdout(predicate::str::starts_with("stdin (6 layers, 6 edges)"));
    plantui().args(["plan", "-"]).write_stdin("{").assert().code(2).stderr(predicate::str::contains("standard input"));
}

#[test]
fn without_a_terminal_the_screen_is_the_report_of_plan() {
    let untimed = |text: &str| text.lines().skip(1).map(|line| line.to_string() + "\n").collect::<String>();
    let report = untimed(&stdout(&["plan", TINY, "--devices", "3"], 0));
    let screen = plantui().args([TINY, "--devices", "3"]).assert().success();
    let output = screen.get_output();
    assert_eq!(untimed(&String::from_utf8_lossy(&output.stdout)), report);
    let note = String::from_utf8_lossy(&output.stderr);
    assert_eq!(note.lines().count(), 1, "{note}");
    assert!(note.contains("terminal"), "{note}");
}

#[test]
fn without_a_file_there_is_an_example() {
    plantui().assert().success().stdout(predicate::str::starts_with("bert32a100 (37 layers, 67 edges)"));
}

#[test]
fn wrong_flags_say_what_would_do() {
    for (arguments, part) in [
        (["--planner", "pipr"], "a similar value exists: 'piper'"),
        (["--planner", "alpa"], "[possible values: joint, piper, equal-partition, placement-dp,"),
        (["--set", "recompute=sometimes"], "auto, never, always, all-or-none"),
        (["--set", "recompte=auto"], "its options: space, schedule"),
        (["--set", "recompute"], "write name=value"),
        (["--devices", "0"], "at least 1"),
        (["--devices", "10001"], "is planned on at most 10000 devices"),
        (["--devices", "1048577"], "`1048577` is too large: at most 1048576"),
        (["--devices", "1e30"], "`1e30` is too large"),
        (["--microbatches", "1000001"], "at most 1000000"),
        (["--bandwidth", "25gb/s"], "write Gb/s for bits or GB/s for bytes"),
        (["--memory", "-1GiB"], "`-1GiB` is not a size in bytes"),
        (["--deadline", "0s"], "`0s` is no time to plan in"),
        (["--deadline", "-1s"], "`-1s` is not a duration"),
        (["--seed", "-1"], "`-1` is not a seed: write a whole number"),
        (["--threads", "x"], "`x` is not a number of threads from 1 to 1024"),
        (["--devices", "-3"], "--devices"),
        (["--memory", "16 parsecs"], "16GiB"),
        (["--memory", "-1"], "--memory"),
        (["--memory", "nan"], "16GiB"),
        (["--bandwidth", "fast"], "25GB/s"),
        (["--microbatches", "1.5"], "whole number"),
        (["--deadline", "soon"], "60s"),
        (["--deadline", "1e300s"], "longer than any run"),
        (["--deadline", "1"], "`1` is a duration without a unit"),
        (["--threads", "0"], "--threads"),
        (["--seed", "x"], "--seed"),
        (["--format", "pdf"], "plan-json"),
    ] {
        let error = refusal(&[&["plan", TINY], &arguments[..]].concat());
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

#[test]
fn a_limit_that_nobody_gives_is_named_with_its_flag() {
    let folder = crate::Folder::new();
    let text = std::fs::read_to_string(TINY).unwrap();
    for (field, flag, value) in [
        ("maxDevices", "--devices", "4"),
        ("maxMemoryPerDevice", "--memory", "1GB"),
        ("bandwidth", "--bandwidth", "4GB/s"),
        ("mbsInBatch", "--microbatches", "12"),
    ] {
        let without: String =
            text.lines().filter(|line| !line.contains(&format!("\"{field}\""))).map(|l| format!("{l}\n")).collect();
        let file = folder.file("limits.json", without);
        let error = refusal(&["plan", &file]);
        assert!(error.contains("limits.json") && error.contains(field) && error.contains(flag), "{error}");
        json(&["plan", &file, flag, value, "--json"], 0);
    }
}

#[test]
fn a_limit_that_changes_nothing_is_named() {
    let told = |arguments: &[&str]| {
        let output = plantui().args(["plan", "inputs/alexnet-operators.json"]).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout)
            .contains("--microbatches changes nothing about the plan: PaSE ignores it")
    };
    assert!(told(&["--microbatches", "4"]));
    assert!(!told(&["--devices", "4"]));
}

#[test]
fn tables_that_would_not_fit_are_refused_with_their_size() {
    let folder = Folder::new();
    let graph = argument(&folder.path("inception3.json"));
    stdout(&["generate", "inception3", "--batch", "128", "--output", &graph], 0);
    let plan = |options: &[&str]| {
        let document = json(&[&["plan", &graph, "--planner", "pase", "--json"], options].concat(), 0);
        (document["status"].clone(), document["notes"].to_string(), document["objective"]["value"].as_f64().unwrap())
    };
    let (status, notes, without) = plan(&["--set", "order=breadth-first", "--set", "bounds=false"]);
    assert_eq!(status, "feasible");
    assert!(notes.contains("not searched: in breadth-first order the tables would have 5.452e14 entries"), "{notes}");
    let (status, notes, proven) = plan(&["--set", "order=breadth-first"]);
    assert!(status == "optimal" && !notes.contains("not searched") && proven < without, "{notes}");
}

#[test]
fn what_is_proven_is_said_of_a_model_with_what_the_simulator_makes_of_it() {
    for (workload, flags, told) in [
        (
            BERT,
            &["--planner", "joint"][..],
            "proof: within 0.8% of the fastest simulated iteration (lower bound 37.48 s/iteration); searched: linear pipelines with \
             uniform TP and DP, two modes per layer under 1F1B\n",
        ),
        (
            BERT,
            &["--planner", "piper"],
            "42.05 s/iteration   45.66 samples/s   8 stages on 63 of 64 devices   simulated, 1F1B\n\
             planner's objective: 20.06 ms/sample; simulated 21.90 ms/sample, 9.2% more\n",
        ),
        (
            BERT,
            &["--planner", "equal-partition"],
            "proof: optimal: least time per microbatch in Piper's model; searched: equal partitions\n",
        ),
        (
            "inputs/branching-cnn-training.json",
            &["--planner", "placement-dp"],
            "proof: optimal: least load of the busiest device in the placement model; searched: contiguous splits in a chain\n",
        ),
        (
            "inputs/branching-cnn-training.json",
            &["--planner", "placement-pipedream"],
            "proof: within 67.9% of the least load of the busiest device in the placement model (lower bound 2.158 ms",
        ),
        (
            "inputs/bert32-layers.txt",
            &["--machines", "8,8", "--batch", "128"],
            "4.430 s/iteration   28.89 samples/s   3 stages on 16 of 16 devices   simulated, 1F1B\n\
             planner's objective: 14.03x one device; simulated ",
        ),
        ("inputs/alexnet-operators.json", &[], "simulated as 1F1B: 9.710 ms/iteration, as planned\n"),
        (
            "inputs/mistral-7b-latency.json",
            &["--planner", "placement-latency-greedy"],
            "proof: within 91.2% of the least time for one sample in the latency model (lower bound 13.87 ms)\n",
        ),
    ] {
        let text = stdout(&[&["plan", workload], flags].concat(), 0);
        assert!(text.contains(told), "`{told}` is missing in\n{text}");
    }
}

#[test]
fn why_simulated_and_planned_time_differ_is_found_by_simulating_again() {
    let note = |flags: &[&str]| {
        let text = stdout(&[&["plan"], flags].concat(), 0);
        let found = text.lines().find(|line| line.starts_with("idle time: ")).map(String::from);
        found.unwrap_or_else(|| panic!("no such note in\n{text}"))
    };
    // Free links: transfers cost nothing, replicas are as uneven as before.
    let free = note(&[BERT, "--planner", "piper", "--bandwidth", "1000000GB/s"]);
    assert!(free.contains("uneven replicas 9.7%") && !free.contains("transfers "), "{free}");
    // Hardly any microbatches: the pipeline fills and drains.
    let short = note(&["inputs/gpt3-175b-a100.json", "--planner", "piper", "--microbatches", "16"]);
    assert!(short.contains("bubble 4"), "{short}");
    // A placement counts transfers on top of compute.
    let split = stdout(&["plan", "inputs/branching-cnn-training.json", "--planner", "placement-dp"], 0);
    assert!(
        split.contains("% of the planned time are transfers and all-reduces, which the simulated iteration overlaps"),
        "{split}"
    );
    let explained = json(&["explain", BERT, "--planner", "piper", "--each", "100ms", "--json"], 0);
    let simulated = &explained["simulated"];
    let shares: f64 = simulated["losses"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!(shares > 0.1 && shares < 0.3 && simulated["difference"].as_f64().unwrap() > 0.09, "{explained}");
}

#[test]
fn a_proof_names_what_the_options_leave_out() {
    const BRANCHING: &str = "inputs/branching-cnn-training.json";
    const LAYERS: &str = "inputs/bert32-layers.txt";
    for (workload, flags, among) in [
        (
            BERT,
            &["--planner", "piper", "--set", "knapsack=greedy"][..],
            "plans with recomputation as the published greedy rule picks it",
        ),
        (BERT, &["--planner", "piper", "--set", "data_parallel=false"], "plans without data parallelism"),
        (BERT, &["--planner", "piper", "--set", "most_replicas=8"], "plans with at most 8 replicas"),
        (BERT, &["--set", "stages=7"], ", with exactly 7 stages"),
        (
            BRANCHING,
            &["--planner", "placement-dp", "--set", "contract_layers=true"],
            "contiguous splits in a chain with colour classes",
        ),
        (LAYERS, &["--machines", "8,8", "--batch", "128", "--set", "stages=1"], "plans with exactly 1 stage"),
        (
            "inputs/mistral-7b-latency.json",
            &["--planner", "placement-latency-ip", "--deadline", "1s"],
            "with at most 1 subgraph on an accelerator",
        ),
    ] {
        let text = stdout(&[&["plan", workload], flags].concat(), 0);
        let proof = text.lines().find(|line| line.starts_with("proof: ")).unwrap_or_default();
        assert!(proof.contains("; searched: ") && proof.contains(among), "`{among}` is missing in\n{text}");
        let document = json(&[&["plan", workload, "--json"], flags].concat(), 0);
        assert!(document["proven_among"].as_str().unwrap().contains(among), "{document}");
    }
}

#[test]
fn divisors_that_leave_devices_idle_are_told() {
    for flags in [
        &["--devices", "64", "--microbatches", "67"][..],
        &["--devices", "512", "--microbatches", "67"],
        &["--planner", "piper", "--devices", "64", "--microbatches", "67"],
        &["--set", "stages=7"],
    ] {
        let text = stdout(&[&["plan", BERT], flags].concat(), 0);
        assert!(text.contains("devices are idle: ") && text.contains(" divide the "), "{flags:?}\n{text}");
    }
}

#[test]
fn devices_that_microbatches_leave_idle_are_explained() {
    const GPT: &str = "inputs/gpt3-175b-a100.json";
    let idle = stdout(&["plan", GPT, "--devices", "512", "--microbatches", "16"], 0);
    for part in [
        "on 128 of 512 devices",
        "note: 384 of 512 devices are idle: the replicas of all stages together are at most the 16 microbatches",
        "those of one stage divide them",
        "with at most 8 devices per replica no plan uses more than 128; --microbatches 64 lets plans use more",
    ] {
        assert!(idle.contains(part), "`{part}` is missing in\n{idle}");
    }
    let more = stdout(&["plan", GPT, "--devices", "512", "--microbatches", "64"], 0);
    assert!(more.contains("on 512 of 512 devices") && !more.contains("are idle"), "{more}");
    // One device of 64 is idle for another reason.
    assert!(!stdout(&["plan", BERT], 0).contains("are idle"));
}

#[test]
fn parts_that_no_schedule_can_have_are_told() {
    let note = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let planning = ["plan", BERT, "--planner", "joint", "--devices", "8", "--memory", "1TB"].into_iter();
        let text = stdout(&planning.chain(settings).collect::<Vec<_>>(), 0);
        text.lines().find(|line| line.starts_with("note: virtual_stages ")).map(str::to_string)
    };
    for schedule in [&[][..], &["schedule=gpipe"], &["schedule=zb-h1"], &["space=any"]] {
        let told = note(&[&["virtual_stages=4"], schedule].concat()).unwrap_or_default();
        assert!(
            told.contains("virtual_stages changes nothing here") && told.contains("on each device"),
            "{schedule:?}: {told}"
        );
    }
    for settings in [&["virtual_stages=4", "schedule=interleaved"][..], &["virtual_stages=4", "schedule=auto"], &[]] {
        assert_eq!(note(settings), None, "{settings:?}");
    }
}

#[test]
fn networks_that_branch_are_planned_for_engines_that_name_modules() {
    // The right branch takes nothing from the left one: both stay together, and one stage needs no cut at all.
    let text = stdout(&["plan", TINY, "--set", "engine=torch", "--memory", "2GB"], 0);
    assert!(text.contains("1 stage on 4 of 4 devices"), "{text}");
    assert!(text.contains("linear pipelines that the engine runs unchanged"), "{text}");
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--set", "engine=deepspeed", "--json"], 0));
    stdout(&["export", &plan, "--to", "deepspeed", "--exact"], 0);
    for schedule in ["interleaved", "zb-v"] {
        let schedule = format!("schedule={schedule}");
        let error = refusal(&["plan", TINY, "--set", "engine=torch", "--set", &schedule, "--memory", "100GB"]);
        assert!(error.contains("virtual stages are made of repeated layers"), "{error}");
    }
    // Where nothing repeats an engine that counts layers has nothing to count: that is no question of limits.
    let error = refusal(&["plan", TINY, "--set", "engine=megatron"]);
    assert!(error.contains("tiny-branch cannot be planned with engine=megatron: Megatron-LM counts"), "{error}");
}

#[test]
fn piper_names_the_planner_that_plans_for_engines() {
    for setting in ["engine=megatron", "engine=any", "engine_feasible=true"] {
        let error = refusal(&["plan", BERT, "--planner", "piper", "--set", setting]);
        assert!(error.contains("plan for an engine with --planner joint --set engine=NAME"), "{error}");
    }
}

#[test]
fn more_layers_than_are_planned_for_engines_are_no_question_of_limits() {
    let folder = Folder::new();
    let count = 3_500;
    let node = |id: i32| {
        let beside = |other: i32| match (0..count).contains(&other) {
            true => serde_json::json!({other.to_string(): 0}),
            false => serde_json::json!({}),
        };
        let mode = serde_json::json!({"id": "vanilla", "timePerSample": 1.0, "parameterSize": 1, "memoryUsageA": 1,
                                      "memoryUsageB": 1, "syncTimeFw": beside(id - 1), "syncTimeBw": beside(id + 1)});
        serde_json::json!({"id": id, "name": format!("n{id}"), "TMPCs": {"1": [mode]}})
    };
    let nodes: Vec<serde_json::Value> = (0..count).map(node).collect();
    let edges: Vec<serde_json::Value> =
        (1..count).map(|id| serde_json::json!({"sourceId": id - 1, "destId": id, "communicationCost": 1})).collect();
    let chain = serde_json::json!({"maxDevices": 4, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 8, "nodes": nodes,
                        "edges": edges});
    let chain = folder.file("chain.json", chain.to_string());
    let error = refusal(&["plan", &chain, "--set", "engine=torch"]);
    assert!(error.contains("at most 1000 layers, and there are 3500"), "{error}");
    stdout(&["plan", &chain, "--deadline", "1s"], 0);
}

#[test]
fn the_memory_that_is_told_to_do_does() {
    // In the limit's kind of unit, each a little more than its digits say.
    for (workload, planner, devices, little) in [
        (BERT, "joint", "8", "1GiB"),
        (BERT, "joint", "8", "1GB"),
        (BERT, "piper", "8", "1GiB"),
        (BERT, "equal-partition", "8", "1GB"),
        (TINY, "joint", "1", "1GB"),
        (TINY, "piper", "1", "512MiB"),
    ] {
        let plan = |memory: &str, code| {
            json(&["plan", workload, "--planner", planner, "--devices", devices, "--memory", memory, "--json"], code)
        };
        let story = plan(little, 1)["infeasible"]["explanation"].as_str().unwrap().to_string();
        let enough = story.split_once(&format!("Feasible with {devices} x ")).unwrap_or_else(|| panic!("{story}")).1;
        let told = enough.split(' ').take(2).collect::<String>();
        let told = told.trim_end_matches([',', '.']);
        assert_eq!(told.ends_with("iB"), little.ends_with("iB"), "{story}");
        plan(told, 0);
    }
}

/// Leaves that take no time but have a size, so many that they cannot be parted from their neighbour in all ways.
#[test]
fn a_proof_names_leaves_that_stay_with_their_neighbour() {
    let node = |id: usize, time: f64, size: f64| {
        serde_json::json!({"id": id, "supportedOnFpga": true, "cpuLatency": time, "fpgaLatency": time, "isBackwardNode": false,
            "size": size})
    };
    let leaves = (0..17).map(|id| node(id, 0.0, 5.0));
    let others = [node(17, 3.0, 136.0), node(18, 3.0, 34.0), node(19, 2.0, 0.0)];
    let edge = |from: usize, to: usize, cost: f64| serde_json::json!({"sourceId": from, "destId": to, "cost": cost});
    let edges = (0..17).map(|leaf| edge(leaf, 17, 0.4)).chain([edge(17, 18, 5.0), edge(19, 17, 4.0)]);
    let file = serde_json::json!({"maxFPGAs": 2, "maxCPUs": 0, "maxSizePerFPGA": 221.0,
        "nodes": leaves.chain(others).collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()});
    let folder = Folder::new();
    let path = folder.file("star.json", file.to_string());
    let plan = ["plan", &path, "--planner", "placement-dp"];
    let text = stdout(&plan, 0);
    let among = "contiguous splits in a chain, with leaves of no cost next to a neighbour";
    assert!(text.contains(&format!("; searched: {among}\n")), "{text}");
    assert!(text.contains(&format!("note: proven for {among}: no edge leads to an earlier device")), "{text}");
    let more = stdout(&[&plan[..], &["--memory", "255"]].concat(), 0);
    assert!(more.contains("; searched: contiguous splits in a chain\n"), "all fit on one: {more}");
    // What would do is not said to be the least.
    let text = stdout(&[&plan[..], &["--memory", "130"]].concat(), 1);
    assert!(text.contains("221 B each would be enough, and at least 136 B are needed."), "{text}");
}

#[test]
fn several_numbers_of_devices_show_what_time_costs() {
    let asked = ["plan", "llama-3.1-8b", "--devices", "16..64", "--global-batch", "128", "--price", "2"];
    let table = stdout(&asked, 0);
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("tp=")).collect();
    assert!(rows.len() == 3 && rows.iter().all(|row| row.starts_with('*')), "{table}");
    assert!(table.contains("per G tokens") && table.contains("no other row is both faster and cheaper\n"), "{table}");
    let documents = json(&[&asked[..], &["--tokens", "1T", "--json"]].concat(), 0);
    let cost = |index: usize, name: &str| documents[index]["prediction"]["cost"][name].as_f64().unwrap();
    assert!(cost(0, "days") > 1.9 * cost(1, "days") && cost(0, "total") < cost(2, "total"));
    // Device hours at the price: days * 24 h * 16 devices * 2.
    assert!((cost(0, "total") / (cost(0, "days") * 24.0 * 32.0) - 1.0).abs() < 1e-9);
    // Rows without a plan name the limit; a row that is slower and dearer has no star.
    let table = stdout(&["plan", BERT, "--devices", "4,8,12,16"], 0);
    assert!(table.contains("no plan") && table.contains("No feasible plan on 4 devices"), "{table}");
    assert!(refusal(&["plan", BERT, "--price", "2"]).contains("states no tokens"));
    for command in ["compare", "seek"] {
        let more: &[&str] = if command == "seek" { &["--least", "memory", "--until", "iteration<=1s"] } else { &[] };
        let error = refusal(&[&[command, BERT, "--devices", "8,16"], more].concat());
        assert!(error.contains("several values"), "{error}");
    }
    assert!(refusal(&["plan", BERT, "--devices", "16..8"]).contains("runs backwards"));
    let folder = Folder::new();
    let plan = folder.file("plan.json", json(&["plan", BERT, "--devices", "8", "--json"], 0).to_string());
    for command in ["check", "simulate"] {
        assert!(refusal(&[command, BERT, &plan, "--devices", "8,16"]).contains("several values"), "{command}");
    }
}

#[test]
fn a_configured_price_gives_the_cost() {
    let folder = Folder::new();
    let config = folder.file("config.toml", "[prices]\nh100 = 2.5\n");
    let told = |config: &str| {
        let mut command = plantui();
        command.env("PLANTUI_CONFIG", config).args(["estimate", "llama-3.1-8b", "--devices", "8", "--tokens", "1T"]);
        String::from_utf8(command.assert().code(0).get_output().stdout.clone()).unwrap()
    };
    assert!(told(&config).contains("days, costs "));
    let config = folder.file("none.toml", "");
    assert!(told(&config).contains("--price gives the cost"));
}
