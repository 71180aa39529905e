//! `plantui explain`.

use super::{BERT, Folder, TINY, argument, json, refusal, stdout};

#[test]
fn a_minute_of_reading_has_it_all() {
    let text = stdout(&["explain", BERT, "--planner", "piper"], 0);
    for part in [
        "planner's objective: 20.06 ms/sample; simulated 21.90 ms/sample, 9.2% more",
        "idle time: uneven replicas ",
        "limited by stage",
        "binding limits",
        "memory: forces recomputation",
        "what would help, one change each (- is better)",
        "--devices 72",
        "alternatives under the same limits",
        "--set recompute=never",
        "same degrees everywhere, all or no layers recompute",
        "does not bind: microbatch divisors",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(text.lines().count() < 50 && widest < 170, "{widest} columns:\n{text}");
}

#[test]
fn published_planners_stand_beside_the_fastest_batch_with_what_differs() {
    let document = json(&["explain", BERT, "--json"], 0);
    let own = document["value"].as_f64().unwrap();
    let published = document["published"].as_array().unwrap();
    let ids: Vec<&str> = published.iter().map(|entry| entry["planner"].as_str().unwrap()).collect();
    assert_eq!(ids, ["piper", "equal-partition"]);
    for entry in published {
        let theirs = entry["iteration_s"].as_f64().unwrap();
        assert!((entry["difference"].as_f64().unwrap() - (theirs / own - 1.0)).abs() < 1e-9, "{entry}");
        let parts: f64 = entry["parts"].as_object().unwrap().values().map(|seconds| seconds.as_f64().unwrap()).sum();
        // What is left out is less than a thousandth each.
        assert!((parts - (theirs - own)).abs() < 6e-3 * own, "{parts} {entry}");
    }
    assert!(published[0]["parts"]["uneven replicas"].as_f64().unwrap() > 1.0, "{}", published[0]);
    let single = json(&["plan", BERT, "--planner", "piper", "--json"], 0);
    assert_eq!(single["simulation"]["iteration_s"], published[0]["iteration_s"]);
    // Who minimises something else is not held against others' batches.
    assert_eq!(json(&["explain", TINY, "--planner", "piper", "--json"], 0)["published"], serde_json::json!([]));
}

#[test]
fn every_flag_gives_the_figure_beside_it() {
    let document = json(&["explain", TINY, "--json"], 0);
    assert_eq!(document["schema"], "plantui.explain/1");
    assert_eq!((&document["complete"], &document["unit"]), (&true.into(), &"s".into()));
    let base = document["value"].as_f64().unwrap();
    let rows = ["help", "next_best"].iter().flat_map(|list| document[*list].as_array().unwrap());
    let mut tried = 0;
    for row in rows {
        let Some(flags) = row["flags"].as_str() else { continue };
        let mut arguments = vec!["plan", TINY, "--json"];
        arguments.extend(flags.split(' '));
        let planned = json(&arguments, if row["value"].is_null() { 1 } else { 0 });
        assert_eq!(row["status"], planned["status"], "{row}");
        assert_eq!(row["value"].is_null(), planned["objective"].is_null(), "{row}");
        if let Some(value) = row["value"].as_f64() {
            let alone = planned["objective"]["value"].as_f64().unwrap();
            assert!((value - alone).abs() <= 1e-9 * value, "{alone}: {row}");
            let change = row["change"].as_f64().unwrap();
            // Batches of another size are held against one another by what they do; this one has 12 microbatches.
            let work = flags.strip_prefix("--microbatches ").map_or(1.0, |count| 12.0 / count.parse::<f64>().unwrap());
            let expected = value / base * work - 1.0;
            assert!((change - expected).abs() < 1e-12 && row["gain"].as_f64() == Some(-change), "{row}");
            assert_eq!(row["label"].as_str().unwrap().ends_with(" (per sample)"), work != 1.0, "{row}");
        }
        tried += 1;
    }
    assert!(tried > 15, "{tried}");
    let gains: Vec<f64> = document["help"].as_array().unwrap().iter().filter_map(|row| row["gain"].as_f64()).collect();
    assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    let parts = document["bottleneck"]["parts"].as_array().unwrap();
    let whole: f64 = parts.iter().map(|part| part["share"].as_f64().unwrap()).sum();
    assert!((whole - 1.0).abs() < 1e-9, "{parts:?}");
}

#[test]
fn planners_of_every_kind_are_explained_by_what_they_declare() {
    for (arguments, help) in [
        (vec!["inputs/branching-cnn-training.json", "--planner", "placement-dp"], "+1 CPU"),
        (vec!["inputs/mistral-7b-latency.json", "--planner", "placement-latency-greedy"], "+1 device"),
        (vec!["inputs/bert32-layers.txt", "--machines", "4,4", "--batch", "32"], "2x ethernet bandwidth"),
        (vec!["inputs/alexnet-operators.json"], "2x flops"),
        (vec![TINY, "--planner", "placement-dpl"], "2x bandwidth"),
    ] {
        let text = stdout(&[&["explain"], arguments.as_slice()].concat(), 0);
        assert!(text.contains("limited by") && text.contains(help), "{arguments:?}: no {help} in\n{text}");
    }
}

#[test]
fn without_a_plan_the_reason_is_told() {
    let text = stdout(&["explain", TINY, "--devices", "1", "--memory", "1MiB"], 1);
    assert!(text.contains("No feasible plan"), "{text}");
    let document = json(&["explain", TINY, "--devices", "1", "--memory", "1MiB", "--json"], 1);
    assert_eq!(document["status"], "infeasible");
    assert!(
        document["explanation"].as_str().unwrap().contains("No feasible plan")
            && document["help"] == serde_json::json!([])
    );
}

#[test]
fn results_go_to_files_that_are_not_replaced_unasked() {
    let folder = Folder::new();
    let path = argument(&folder.path("explained.txt"));
    assert_eq!(stdout(&["explain", TINY, "--output", &path], 0), "");
    assert!(std::fs::read_to_string(&path).unwrap().contains("binding limits"));
    assert!(refusal(&["explain", TINY, "--output", &path]).contains("--force"));
    assert!(refusal(&["explain", TINY, "--each", "soon"]).contains("soon"));
}

#[test]
fn under_a_deadline_questions_have_as_long_again_unless_each_is_given_time() {
    let layers = "inputs/bert32-layers.txt";
    let asked = ["explain", layers, "--machines", "4x8", "--planner", "dapple", "--deadline", "1us"];
    let text = stdout(&asked, 0);
    assert!(
        text.contains("the deadline has passed: ") && text.contains("not answered; use a longer --deadline"),
        "{text}"
    );
    assert!(text.contains("binding limits: unknown") && !text.contains("re-plans, at most"), "{text}");
    let document = json(&[&asked[..], &["--json"]].concat(), 0);
    assert_eq!(document["complete"], false);
    let text = stdout(&[&asked[..], &["--each", "1ms"]].concat(), 0);
    assert!(!text.contains("not answered"), "{text}");
}

#[test]
fn links_of_a_topology_are_told_and_what_faster_ones_would_be_worth() {
    let layers = "inputs/bert32-layers.txt";
    let asked =
        ["--planner", "parmesan", "--topology", "2xdgx-1+eth-25g", "--set", "replicas=false", "--each", "200ms"];
    let text = stdout(&[&["explain", layers], &asked[..]].concat(), 0);
    assert!(text.contains("busiest links of 2xdgx-1+eth-25g") && text.contains("one link twice as fast"), "{text}");
    let document = json(&[&["explain", layers, "--json"], &asked[..]].concat(), 0);
    let links = &document["links"];
    let loads: Vec<f64> =
        links["loads"].as_array().unwrap().iter().map(|load| load["seconds"].as_f64().unwrap()).collect();
    assert!(!loads.is_empty() && loads.windows(2).all(|pair| pair[0] >= pair[1]), "{links}");
    let now = links["iteration_s"].as_f64().unwrap();
    let wider = links["twice_as_fast"].as_array().unwrap();
    assert!(wider.iter().all(|wider| wider["iteration_s"].as_f64().unwrap() < now), "{links}");
    // Without a topology there are no links to tell.
    let plain = stdout(&["explain", crate::TINY, "--each", "20ms"], 0);
    assert!(!plain.contains("busiest links"), "{plain}");
}
