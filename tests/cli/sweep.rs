//! `plantui sweep`.

use std::fs;

use serde_json::Value;

use super::{BERT, Folder, TINY, argument, json, plantui, refusal, stdout};

#[test]
fn one_limit_and_one_planner_are_a_table_with_all_figures() {
    let text = stdout(&["sweep", BERT, "--devices", "8..32:x2", "--memory", "8GiB"], 0);
    for part in ["time per sample by devices: 3 points", "samples/s", "peak memory", "proven", "162.2 ms/sample"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn points_are_those_of_the_single_command() {
    let document = json(&["sweep", BERT, "--devices", "8,64", "--microbatches", "480,1920", "--json"], 0);
    assert_eq!(document["schema"], "plantui.sweep/1");
    assert_eq!(document["axes"], serde_json::json!(["devices", "microbatches"]));
    assert_eq!((document["complete"].clone(), document["points"].as_array().unwrap().len()), (true.into(), 4));
    for point in document["points"].as_array().unwrap() {
        let limit = |name: &str| point["limits"][name].to_string();
        let (devices, microbatches) = (limit("devices"), limit("microbatches"));
        let single = json(&["plan", BERT, "--devices", &devices, "--microbatches", &microbatches, "--json"], 0);
        let value = |document: &Value| document["objective"]["value"].as_f64().unwrap();
        assert!((value(point) - value(&single)).abs() <= 1e-9 * value(&single));
        assert_eq!((&point["status"], &point["limits"]), (&single["status"], &single["limits"]));
    }
}

#[test]
fn several_lines_stand_side_by_side_and_the_best_has_a_star() {
    let text = stdout(
        &[
            "sweep",
            BERT,
            "--devices",
            "8,64",
            "--series",
            "best:piper",
            "--planner",
            "equal-partition",
            "--memory",
            "1GiB,8GiB",
        ],
        0,
    );
    for part in ["best, 1 GiB", "equal-partition, 8 GiB", "*162.2 ms/sample", "no plan"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn a_sweep_is_taken_up_again_and_never_overwritten_unasked() {
    let folder = Folder::new();
    let (path, chart) = (argument(&folder.path("sweep.csv")), argument(&folder.path("sweep.svg")));
    stdout(&["sweep", TINY, "--devices", "1,4", "--output", &path, "--svg", &chart], 0);
    let before = fs::read_to_string(&path).unwrap();
    assert_eq!(before.lines().count(), 3, "{before}");
    let svg = fs::read_to_string(&chart).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("devices"), "{svg}");
    let error = refusal(&["sweep", TINY, "--devices", "1..4:+1", "--output", &path]);
    assert!(error.contains("exists already") && error.contains("--resume") && error.contains("--force"), "{error}");
    assert!(refusal(&["sweep", TINY, "--devices", "1,4", "--svg", &chart]).contains("--force"));
    let text = stdout(&["sweep", TINY, "--devices", "1..4:+1", "--resume", &path], 0);
    assert!(text.contains("4 points, 2 of them from the file"), "{text}");
    let after = fs::read_to_string(&path).unwrap();
    assert!(
        before.lines().all(|line| after.contains(line)),
        "rows that were there are as they were:\n{before}\n{after}"
    );
    assert_eq!(after.lines().count(), 5);
    // All is there: nothing is planned, the table stays.
    stdout(&["sweep", TINY, "--devices", "1..4:+1", "--resume", &path], 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    let csv = stdout(&["sweep", TINY, "--devices", "1,4", "--csv"], 0);
    assert_eq!(csv.lines().next(), before.lines().next());
}

#[test]
fn resuming_begins_where_there_is_no_file_and_refuses_another() {
    let folder = Folder::new();
    let path = argument(&folder.path("new.csv"));
    stdout(&["sweep", TINY, "--devices", "1,4", "--resume", &path], 0);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    let other = folder.file("other.csv", "a,b\n1,2\n");
    let error = refusal(&["sweep", TINY, "--devices", "1,4", "--resume", &other]);
    assert!(error.contains("other.csv: line 1"), "{error}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "a,b\n1,2\n");
}

#[test]
fn wrong_use_is_one_sentence() {
    for (arguments, part) in [
        (&["--devices", "64..8"][..], "write 8..64"),
        (&["--devices", "8..64:x0"], ":x2"),
        (&[], "nothing to sweep"),
        (&["--devices", "8", "--memory", "8GiB"], "nothing to sweep"),
        (&["--devices", "1,2", "--memory", "1GiB,2GiB", "--bandwidth", "1GB/s,2GB/s"], "one or two"),
        (&["--devices", "1,2", "--series", "pipper"], "no planner `pipper`"),
        (&["--devices", "1,2", "--planner", "piper", "--planner", "piper"], "two series are called `piper`"),
        (&["--devices", "1,2", "--set", "speed=9"], "no planner of this sweep has the option `speed`"),
        (&["--devices", "1,2", "--planner", "placement-ip"], "cannot plan"),
        (&["--devices", "1,2", "--json", "--csv"], "--csv"),
        (&["--devices", "1,2", "--figure", "beauty"], "objective"),
        (&["--study", "piper-figure-1", "--devices", "8,16"], "--devices"),
        (&["--study", "piper-figure-9"], "piper-figure-1"),
        (&["--study", "piper-figure-1"], "piper/inputs/bert32a100.json"),
    ] {
        let call: Vec<&str> = ["sweep", TINY].iter().chain(arguments).copied().collect();
        let error = refusal(&call);
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

#[test]
fn no_plan_at_all_is_exit_code_1() {
    let text = stdout(&["sweep", BERT, "--devices", "1,2", "--memory", "1GiB"], 1);
    assert!(text.contains("no plan with 2 devices: No plan fits"), "{text}");
}

#[test]
fn standard_output_holds_one_result() {
    let chart = stdout(&["sweep", TINY, "--devices", "1,4", "--svg", "-"], 0);
    assert!(chart.starts_with("<svg") || chart.starts_with("<?xml"), "{chart}");
    assert!(chart.trim_end().ends_with("</svg>"), "{chart}");
    let error = refusal(&["sweep", TINY, "--devices", "1,4", "--json", "--output", "-"]);
    assert!(error.contains("share standard output"), "{error}");
    let error = refusal(&["sweep", TINY, "--devices", "1,4", "--resume", "-"]);
    assert!(error.contains("--resume takes a file"), "{error}");
}

#[test]
fn a_sweep_without_time_is_stopped_and_not_without_a_plan() {
    stdout(&["sweep", "inputs/bert32a100.json", "--devices", "8,16", "--deadline", "1ns"], 3);
}

#[test]
fn workloads_can_stand_side_by_side() {
    let text = stdout(&["sweep", TINY, BERT, "--devices", "2,4", "--memory", "80GB"], 0);
    assert!(text.contains("tiny-branch") && text.contains("bert32a100"), "{text}");
    let text = stdout(&["sweep", TINY, BERT, "--devices", "4", "--memory", "80GB", "--figure", "throughput"], 0);
    assert!(text.contains("by workload: 2 points"), "{text}");
}

#[test]
fn the_studies_run_from_the_published_inputs() {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE") else {
        println!("skipped the_studies_run_from_the_published_inputs: PLANTUI_REFERENCE is not set");
        return;
    };
    let text = plantui().args(["sweep", "--study", "piper-resnet", "--csv"]).arg(root).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1 + 50, "{text}");
    assert!(text.lines().any(|line| line.contains("resnet,Piper,piper,knapsack=greedy,128,")), "{text}");
}
