//! `simulate`: batches of plans that come back.

use crate::{Folder, TINY, check::tiny_plan, json, plantui, stdout};

#[test]
fn a_plan_is_simulated_in_either_schedule() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", tiny_plan().to_string());
    for schedule in ["1f1b", "gpipe"] {
        let document = json(&["simulate", TINY, &plan, "--schedule", schedule, "--format", "json"], 0);
        assert_eq!(document["schema"], "plantui.simulation/1");
        assert_eq!(document["schedule"], schedule);
        // The busiest stage alone bounds the batch from below: 12 microbatches of 52 ms on two replicas.
        assert!(document["iteration_s"].as_f64().unwrap() >= 6.0 * 0.052, "{document}");
        assert_eq!(document["stages"].as_array().unwrap().len(), 2);
    }
    assert!(stdout(&["simulate", TINY, &plan], 0).starts_with("simulated 1F1B: "));
    let trace = json(&["simulate", TINY, &plan, "--format", "chrome-trace"], 0);
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 48));
    plantui().args(["simulate", TINY, &plan, "--devices", "1"]).assert().code(1).stdout("");
}

#[test]
fn it_is_simulated_as_one_says() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", tiny_plan().to_string());
    let time = |more: &[&str]| {
        let arguments = [&["simulate", TINY, &plan, "--json"], more].concat();
        json(&arguments, 0)["iteration_s"].as_f64().unwrap()
    };
    let plain = time(&[]);
    assert!(time(&["--no-overlap"]) > plain);
    assert!(time(&["--links", "shared"]) >= plain && time(&["--links", "exclusive"]) >= plain);
    assert!((time(&["--optimizer-step", "250ms"]) - plain - 0.25).abs() < 1e-9);
    assert!(time(&["--buckets", "8"]) <= plain);
    assert!(time(&["--schedule", "inference"]) < plain / 2.0);
    let h1 = ["--schedule", "zb-h1"];
    assert!(time(&h1) <= plain);
    assert_eq!(time(&[&h1[..], &["--weight-gradient-share", "0"]].concat()), plain);
    assert!(time(&["--schedule", "eager-1f1b", "--extra-warmup", "2"]) <= plain);
    let document = json(&["simulate", TINY, &plan, "--json", "--buckets", "3"], 0);
    let path = &document["critical_path"];
    let shares = path["shares"].as_array().unwrap().iter().map(|share| share["seconds"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - document["iteration_s"].as_f64().unwrap()).abs() < 1e-9);
    for stage in document["stages"].as_array().unwrap() {
        let parts = stage["memory"].as_object().unwrap().values().map(|bytes| bytes.as_f64().unwrap());
        assert!((parts.sum::<f64>() / stage["peak_memory_bytes"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    }
    let link = &document["links"][0];
    assert!(link["from_stage"] == 1 && link["to_stage"] == 2 && link["utilization"].as_f64().unwrap() > 0.0);
    let text = stdout(&["simulate", TINY, &plan], 0);
    assert!(text.contains("\ncritical path: ") && text.contains("memory of stage "), "{text}");
}

#[test]
fn flags_that_nothing_listens_to_are_named() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", tiny_plan().to_string());
    for (flags, told) in [
        (&["--virtual-stages", "4"][..], "note: --virtual-stages changes nothing here: only interleaved schedules "),
        (&["--extra-warmup", "2"], "note: --extra-warmup changes nothing here: only eager 1F1B "),
        (
            &["--weight-gradient-share", "0.4"],
            "note: --weight-gradient-share changes nothing here: only zero-bubble schedules ",
        ),
        (&["--schedule", "inference", "--buckets", "4"], "note: --buckets changes nothing here: inference has no "),
        (&["--schedule", "inference", "--optimizer-step", "1ms"], "note: --optimizer-step changes nothing here: "),
        (&["--no-overlap", "--buckets", "4"], "note: --buckets changes nothing here: without overlap "),
        (&["--schedule", "eager-1f1b", "--extra-warmup", "2", "--links", "shared"], ""),
        (&["--no-overlap"], ""),
    ] {
        for command in [&["simulate", TINY, &plan][..], &["compare", TINY, "--planner", "piper"]] {
            let output = plantui().args(command).args(flags).assert().code(0).get_output().clone();
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(
                error.starts_with(told) && error.lines().count() == usize::from(!told.is_empty()),
                "{flags:?}: {error}"
            );
        }
    }
    let placement = "inputs/mistral-7b-latency.json";
    let flags = ["--planner", "placement-latency-greedy", "--schedule", "gpipe"];
    let error = plantui().args(["compare", placement]).args(flags).assert().code(0).get_output().stderr.clone();
    assert!(String::from_utf8(error).unwrap().contains("note: --schedule changes nothing here"));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", tiny_plan().to_string());
    let refused = |more: &[&str]| {
        let output =
            plantui().args(["simulate", TINY, &plan]).args(more).assert().code(2).stdout("").get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused(&["--schedule", "zb-v"]);
    assert!(
        text.starts_with("error: ZB-V needs ") && text.contains("hint: schedules of this plan: 1f1b, gpipe"),
        "{text}"
    );
    assert!(refused(&["--weight-gradient-share", "1.5"]).contains("a share from 0 to 1"));
    assert!(refused(&["--virtual-stages", "0"]).contains("a whole number from 1"));
    assert!(refused(&["--optimizer-step", "-1s"]).contains("--optimizer-step"));
    assert!(refused(&["--optimizer-step", "20"]).contains("without a unit"));
    assert!(refused(&["--json", "--format", "summary"]).contains("cannot be used with"));
}
