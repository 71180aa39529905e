//! Tables of all schedules, measured times of stages.

use crate::{Folder, TINY, json, plantui, stdout};

/// A published model's plan under every schedule, as a paper would print it.
#[test]
fn every_schedule_of_a_published_model_is_in_one_table() {
    for model in ["llama-3.1-405b", "deepseek-v3"] {
        let flags = ["--hardware", "h100", "--devices", "1024", "--batch", "2048", "--planner", "joint"];
        let text = stdout(&[&["compare", model, "--schedule", "all"], &flags[..]].concat(), 0);
        insta::assert_snapshot!(format!("schedules-{model}"), text);
    }
}

#[test]
fn measured_times_of_stages_are_simulated_without_a_plan() {
    let times = "inputs/stage-times.json";
    insta::assert_snapshot!("schedules-of-times", stdout(&["simulate", times, "--schedule", "all"], 0));
    let one = json(&["simulate", times, "--schedule", "zb-v", "--json"], 0);
    let all = json(&["simulate", times, "--schedule", "all", "--json"], 0);
    let rows = all["plans"][0]["schedules"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == "zb-v").unwrap();
    assert_eq!(row["figures"]["iteration_s"], one["iteration_s"]);
    assert_eq!(row["figures"]["peak_memory_bytes"], one["peak_memory_bytes"]);
    assert_eq!(row["engines"], serde_json::json!(["torch", "torchtitan"]));
    // A microbatch more takes longer, and a smaller memory holds fewer schedules.
    let more = json(&["simulate", times, "--schedule", "1f1b", "--json", "--microbatches", "25"], 0);
    assert_eq!(more["schedule"], "1f1b");
    let small = json(&["simulate", times, "--schedule", "all", "--json", "--memory", "40GB"], 0);
    let fitting = |document: &serde_json::Value| {
        let rows = document["plans"][0]["schedules"].as_array().unwrap();
        rows.iter().filter(|row| row["figures"]["fits"] == true).count()
    };
    assert!(fitting(&small) < fitting(&all));
}

#[test]
fn what_stage_times_cannot_be_is_refused() {
    let folder = Folder::new();
    let wrong = folder.file("times.json", r#"{"schema": "plantui.stage-times/1", "stages": []}"#);
    for (words, told) in [
        (&["simulate", &wrong][..], "lacks the field `microbatches`"),
        (&["simulate", "inputs/stage-times.json", "--devices", "4"], "times of stages take no flags of a plan"),
        (&["simulate", "inputs/bert32a100.json"], "is simulated with a plan, and none is given"),
        (&["simulate", "nowhere.json"], "does not exist"),
        (&["compare", TINY, "--schedule", "all", "--sort", "memory"], "--sort changes nothing with --schedule all"),
        (&["plan", "inputs/stage-times.json"], "measured times of stages"),
        (&["simulate", "inputs/stage-times.json", "--schedule", "all", "--format", "chrome-trace"], "one schedule"),
    ] {
        let output = plantui().args(words).assert().code(2).get_output().clone();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(told) && output.stdout.is_empty(), "{words:?}: {error}");
    }
}
