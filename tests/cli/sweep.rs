//! `plantui sweep`.

use std::fs;

use serde_json::Value;

use super::{BERT, Folder, TINY, argument, json, plantui, refusal, stdout};

#[test]
fn one_limit_and_one_planner_are_a_table_with_all_figures() {
    let text = stdout(&["sweep", BERT, "--planner", "piper", "--devices", "8..32:x2", "--memory", "8GiB"], 0);
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
    let endless = fs::File::create(folder.path("large.csv")).unwrap();
    endless.set_len(1 << 40).unwrap();
    let large = argument(&folder.path("large.csv"));
    assert!(refusal(&["sweep", TINY, "--devices", "1,4", "--resume", &large]).contains("has more than 256 MiB"));
    let binary = folder.file("binary.csv", [0xff, 0xfe, 0x00]);
    assert!(refusal(&["sweep", TINY, "--devices", "1,4", "--resume", &binary]).contains("is no text"));
}

#[cfg(unix)]
#[test]
fn nothing_without_an_end_is_resumed() {
    let folder = Folder::new();
    let pipe = argument(&folder.path("pipe"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    let mut endless = vec!["/dev/zero".to_string(), argument(folder.0.path())];
    endless.extend(made.is_ok_and(|status| status.success()).then_some(pipe));
    for path in endless {
        let error = refusal(&["sweep", TINY, "--devices", "1,4", "--resume", &path]);
        assert!(error.contains("is no regular file") || error.contains("is a directory"), "{error}");
    }
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
        (&["--devices", "1,2", "--planner", "piper", "--planner", "piper"], "two series are named `piper`"),
        (&["--devices", "1,2", "--set", "speed=9"], "no planner of this sweep has the option `speed`"),
        (&["--devices", "1,2", "--planner", "placement-ip"], "cannot plan"),
        (&["--devices", "1,2", "--planner", "placement-ip", "--planner", "placement-latency-ip"], "file); "),
        (&["--devices", "8..16..32"], "write the range 8..32 or the list 8,16,32"),
        (&["--memory", "1GiB..80"], "write 1GiB..80GiB"),
        (&["--devices", "1,2", "--deadline", "0s"], "`0s` is no time to plan in"),
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
fn a_planner_that_cannot_plan_the_workload_says_why_and_the_others_go_on() {
    let call = ["sweep", TINY, "--devices", "1,4", "--planner", "piper", "--planner", "placement-ip"];
    let assert = plantui().args(call).assert().code(0);
    let output = assert.get_output();
    let (text, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(notes.starts_with("note: ") && notes.contains("cannot plan tiny-branch: "), "{notes}");
    assert!(text.contains("cannot") && text.contains("no plan of placement-ip with 4 devices: "), "{text}");
    let document = json(&[&call[..], &["--json"]].concat(), 0);
    let refused = document["points"].as_array().unwrap().iter().filter(|point| point["series"] == 1);
    assert!(refused.clone().count() == 2 && refused.clone().all(|point| !point["why"].as_str().unwrap().is_empty()));
}

#[test]
fn a_limit_that_no_planner_heeds_is_told_once() {
    let placement = "inputs/branching-cnn-training.json";
    for (limits, planners, part) in [
        (["--bandwidth", "1GB/s,2GB/s"], &["placement-dp"][..], "--bandwidth changes nothing here: "),
        (["--microbatches", "8"], &["placement-dp", "placement-one"], " and "),
        (["--memory", "1GiB,2GiB"], &["placement-dp"], ""),
    ] {
        let mut command = plantui();
        command.args(["sweep", placement, "--devices", "1,2"]).args(limits);
        for planner in planners {
            command.args(["--planner", planner]);
        }
        let notes = String::from_utf8(command.assert().get_output().stderr.clone()).unwrap();
        assert_eq!(notes.lines().count(), usize::from(!part.is_empty()), "{notes}");
        assert!(notes.contains(part), "{notes}");
    }
}

#[test]
fn names_of_series_cannot_command_the_terminal() {
    let text = stdout(&["sweep", TINY, "--devices", "1,4", "--series", "a\u{1b}[2Jb:piper", "--planner", "piper"], 0);
    assert!(text.contains("a[2Jb") && !text.contains('\u{1b}'), "{text:?}");
    for series in ["pi\u{1b}[2Jper", "piper,recompute=\u{1b}[2J", "piper,\u{1b}[2J=1"] {
        let error = refusal(&["sweep", TINY, "--devices", "1,4", "--series", series]);
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

#[test]
fn documents_tell_only_limits_that_the_workload_has() {
    let placement = "inputs/branching-cnn-training.json";
    let sweep = json(&["sweep", placement, "--devices", "1,2", "--planner", "placement-dp", "--json"], 0);
    let explained = json(&["explain", placement, "--planner", "placement-dp", "--each", "1s", "--json"], 0);
    let planned = json(&["plan", placement, "--planner", "placement-dp", "--json"], 0);
    assert_eq!(explained["limits"], planned["limits"]);
    for limits in [&explained["limits"], &sweep["points"][0]["limits"]] {
        for neutral in ["bandwidth_bytes_per_s", "microbatches", "batch", "flops_per_s"] {
            assert!(limits.get(neutral).is_none(), "{limits}");
        }
    }
}

#[test]
fn no_plan_at_all_is_exit_code_1() {
    let text = stdout(&["sweep", BERT, "--devices", "1,2", "--memory", "1GiB"], 1);
    assert!(text.contains("no plan with 2 devices: No feasible plan"), "{text}");
}

#[test]
fn standard_output_holds_one_result() {
    let chart = stdout(&["sweep", TINY, "--devices", "1,4", "--svg", "-"], 0);
    assert!(chart.starts_with("<svg") || chart.starts_with("<?xml"), "{chart}");
    assert!(chart.trim_end().ends_with("</svg>"), "{chart}");
    let error = refusal(&["sweep", TINY, "--devices", "1,4", "--json", "--output", "-"]);
    assert!(error.contains("share standard output"), "{error}");
    let error = refusal(&["sweep", TINY, "--devices", "1,4", "--resume", "-"]);
    assert!(error.contains("--resume needs a file"), "{error}");
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
fn an_option_that_suits_one_of_the_workloads_only_is_told() {
    let series = ["--devices", "2,4", "--memory", "80GB", "--series", "m:joint,engine=megatron"];
    let assert = plantui().args([&["sweep", TINY, BERT], &series[..]].concat()).assert().code(0);
    let output = assert.get_output();
    let (text, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("bert32a100"), "{text}");
    assert!(told.contains("note: tiny-branch cannot be planned with engine=megatron: Megatron-LM counts"), "{told}");
    let error = refusal(&[&["sweep", TINY], &series[..]].concat());
    assert!(error.contains("tiny-branch cannot be planned with engine=megatron"), "{error}");
}

#[test]
fn more_columns_than_anybody_sees_become_a_block_for_each_line() {
    let mut arguments = vec!["sweep".to_string(), TINY.into(), "--devices".into(), "1..4:+1".into()];
    let modes = ["auto", "never", "always", "all-or-none"];
    for (place, mode) in modes.iter().cycle().take(12).enumerate() {
        let name = format!("a line with a long name {place}");
        arguments.extend(["--series".into(), format!("{name}:piper,recompute={mode}")]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = stdout(&arguments, 0);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 160, "{widest} columns:\n{text}");
    let heads = text.lines().filter(|line| line.starts_with("a line with a long name ")).count();
    assert_eq!(heads, 12, "{text}");
    assert_eq!(text.matches("samples/s").count(), 12, "{text}");
}
