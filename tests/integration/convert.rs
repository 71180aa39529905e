//! Conversions between Piper's profile and device placements, and planners that plan through them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use assert_cmd::Command;
use plantui::{
    cluster::{GivenLimits, Limits},
    family,
    plan::Measure,
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    workload::{
        self, NodeIndex, Workload,
        convert::{self, ModeRule},
    },
};
use serde_json::{Value, json};

fn input(file: &str) -> Workload {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("inputs").join(file);
    workload::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

fn load(value: &Value) -> Workload {
    workload::load_bytes(value.to_string().as_bytes(), "w.json", "w").unwrap_or_else(|error| panic!("{error}"))
}

fn limits(workload: &Workload) -> Limits {
    family::resolve(workload, &GivenLimits::default()).unwrap()
}

/// Runs a planner; `planner::run` asserts that its plan is valid and worth what it says.
fn planned(id: &str, workload: &Arc<Workload>, limits: Limits) -> Outcome {
    let planner = planner::find(id).unwrap();
    assert_eq!(planner.can_plan(workload), Ok(()), "{id}");
    let options = Options::defaults(planner.options());
    run::plan(planner, &Problem { workload: workload.clone(), limits, options }, &Search::default()).unwrap().0
}

/// A chain of three nodes in Piper's format whose tensors have one reader each.
fn chain() -> Value {
    let mode = |id: &str, time: f64, a: f64, before: Value, after: Value| {
        json!({"id": id, "timePerSample": time, "parameterSize": 1.0, "memoryUsageA": a, "memoryUsageB": 100.0,
               "syncTimeFw": before, "syncTimeBw": after})
    };
    let modes = |before: Value, after: Value| json!({"1": [mode("recomp", 0.004, 1.0, before.clone(), after.clone()), mode("vanilla", 0.003, 10.0, before, after)]});
    json!({"maxDevices": 3, "maxMemoryPerDevice": 1000.0, "bandwidth": 1000.0, "mbsInBatch": 4,
        "nodes": [
            {"id": 1, "TMPCs": modes(json!({}), json!({"2": 0}))},
            {"id": 2, "TMPCs": modes(json!({"1": 0}), json!({"3": 0}))},
            {"id": 3, "TMPCs": modes(json!({"2": 0}), json!({}))}],
        "edges": [{"sourceId": 1, "destId": 2, "communicationCost": 0.5},
                  {"sourceId": 2, "destId": 3, "communicationCost": 0.25}]})
}

#[test]
fn pipers_profile_becomes_a_placement() {
    let original = load(&chain());
    let converted = convert::to_placement(&original, ModeRule::Keeping, 2, 1000.0).unwrap();
    assert!(
        converted.choices.iter().all(|choice| choice.is_mode("vanilla")),
        "the mode that keeps activations, wherever it stands"
    );
    let w = &converted.workload;
    assert_eq!((w.limits.devices(), w.limits.cpus(), w.limits.memory_bytes()), (Some(3), Some(0), Some(1000.0)));
    let node = &w.placement().unwrap().nodes[0];
    // 2 x 0.5 bytes at 1000 bytes a second, in milliseconds; 2 microbatches in flight.
    assert_eq!((node.accelerator_time, node.transfer, node.size_bytes), (3.0, 1.0, 120.0));
    let small = convert::to_placement(&original, ModeRule::Smallest, 2, 1000.0).unwrap();
    assert!(small.choices.iter().all(|choice| choice.is_mode("recomp")));
    assert_eq!(small.workload.placement().unwrap().nodes[0].size_bytes, 102.0);
    assert!(converted.assumptions.iter().any(|a| a.contains("`vanilla`")), "{:?}", converted.assumptions);
    let mut without = chain();
    let degrees = without["nodes"][1]["TMPCs"].as_object_mut().unwrap();
    let one = degrees.remove("1").unwrap();
    degrees.insert("2".into(), one);
    let reason = convert::to_placement(&load(&without), ModeRule::Keeping, 1, 1000.0).unwrap_err();
    assert_eq!(reason.to_string(), "node 2 has no mode at tensor degree 1, and an accelerator is one device");
}

#[test]
fn a_placement_becomes_pipers_profile() {
    let node = |id: i64, backward: bool, class: i64| {
        json!({"id": id, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": if backward { 2.0 } else { 1.0 },
               "isBackwardNode": backward, "size": 10.0, "colorClass": class})
    };
    let edge = |u: i64, v: i64, cost: f64| json!({"sourceId": u, "destId": v, "cost": cost});
    let mut value = json!({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 50.0,
        "nodes": [node(1, false, 7), node(2, false, 8), node(3, true, 8), node(4, true, 7)],
        "edges": [edge(1, 2, 0.5), edge(2, 3, 0.0), edge(3, 4, 0.25), edge(1, 4, 0.5)]});
    let converted = convert::to_piper(&load(&value), 8, 1e6).unwrap();
    assert_eq!(converted.members, [[0, 3], [1, 2]].map(NodeIndex::list));
    let profile = converted.workload.piper().unwrap();
    let mode = &profile.nodes[0].degrees[0].modes[0];
    assert_eq!((mode.time_s, mode.forward_s, mode.memory_b), (0.003, Some(0.001), 20.0));
    // Node 1's output goes along the edge, node 3's gradient back; an edge is charged twice.
    assert_eq!(converted.workload.dag.edges(), [(0, 1)]);
    assert!((profile.edge_bytes[0] - (0.5 + 0.25) * 1e-3 * 1e6 / 2.0).abs() < 1e-9, "{:?}", profile.edge_bytes);
    // A forward edge back to the first class makes the two one node.
    value["nodes"].as_array_mut().unwrap().push(node(5, false, 7));
    value["edges"].as_array_mut().unwrap().push(edge(2, 5, 0.0));
    assert_eq!(convert::to_piper(&load(&value), 8, 1e6).unwrap().members, [NodeIndex::list(0..5)]);
    value["nodes"][4]["supportedOnFpga"] = json!(0);
    let reason = convert::to_piper(&load(&value), 8, 1e6).unwrap_err();
    assert_eq!(reason.to_string(), "node 5 cannot run on an accelerator, and stages run on nothing else");
}

#[test]
fn either_family_plans_the_others_workload() {
    for file in ["bert32a100.json", "llama-3-70b-h100.json", "tiny-branch.json"] {
        let workload = Arc::new(input(file));
        let limits = limits(&workload);
        let best = planned("piper", &workload, limits.clone()).objective.unwrap();
        for id in ["placement-dp", "placement-dpl", "placement-pipedream", "placement-one"] {
            let outcome = planned(id, &workload, limits.clone());
            assert!(outcome.lower_bound.is_none() && outcome.status != Status::Optimal, "{file} {id}");
            if let Some(plan) = &outcome.plan {
                assert_eq!(plan.measure, Measure::TimePerSample);
                assert!(outcome.objective.unwrap() >= best, "{file}: {id} beats the proven optimum");
                assert!(outcome.notes.iter().any(|note| note.contains("Converted from Piper's profile")), "{id}");
            }
        }
        assert!(planned("placement-dp", &workload, limits).plan.is_some(), "{file}");
    }
    for file in ["branching-cnn-training.json", "llama-3-8b-training.json"] {
        let workload = Arc::new(input(file));
        let limits = limits(&workload);
        let best = planned("placement-dp", &workload, limits.clone()).objective.unwrap();
        for id in ["piper", "equal-partition"] {
            let outcome = planned(id, &workload, limits.clone());
            let plan = outcome.plan.unwrap_or_else(|| panic!("{file}: {id}: {:?}", outcome.infeasible));
            assert_eq!(plan.measure, Measure::MaxLoad);
            let value = outcome.objective.unwrap();
            println!("{file}: {id} {value}, DP {best}");
            assert!(value >= best * (1.0 - 1e-9), "{file}: {id} beats the proven optimum");
            assert!(id != "piper" || value < 1.5 * best, "{file}: {id} is worth {value}, the optimum {best}");
        }
    }
}

/// What a planner says its values are is what its plans are measured by, whether it converts or not.
#[test]
fn a_planners_values_are_of_the_measure_of_its_plans() {
    let mut asked = 0;
    for file in ["tiny-branch.json", "llama-3-8b-training.json", "alexnet-operators.json"] {
        let workload = Arc::new(input(file));
        let limits = limits(&workload);
        for planner in planner::all() {
            let options = Options::defaults(planner.options());
            let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
            if planner.can_plan(&workload).is_err() || planner.check_options(&problem).is_err() {
                continue;
            }
            let search = Search::new(Some(Duration::from_millis(300)), 0);
            let Some(plan) = planner.plan(&problem, &search).plan else { continue };
            let said = planner.measure(&workload, &problem.options);
            assert_eq!((said.name(), said.unit()), (plan.measure.name(), plan.measure.unit()), "{}", planner.info().id);
            asked += 1;
        }
    }
    assert!(asked > 8, "{asked}");
}

#[test]
fn sizes_grow_until_the_plan_fits_with_its_microbatches_in_flight() {
    // Three stages hold 3, 2 and 1 microbatches of 300 bytes: with 1000 bytes the first would need 100 + 3 x 300.
    let mut value = chain();
    for node in 0..3 {
        value["nodes"][node]["TMPCs"]["1"][1]["memoryUsageA"] = json!(300.0);
    }
    let workload = Arc::new(load(&value));
    let fits = planned("placement-dp", &workload, limits(&workload));
    assert_eq!(fits.plan.unwrap().stages.len(), 3);
    // With 800 bytes, three stages do not fit if each is charged three microbatches that keep their activations.
    value["maxMemoryPerDevice"] = json!(800.0);
    let workload = Arc::new(load(&value));
    let tight = planned("placement-dp", &workload, limits(&workload));
    let plan = tight.plan.unwrap();
    assert!(plan.stages.iter().flat_map(|stage| &stage.choices).all(|choice| choice.is_mode("recomp")));
    assert!(tight.notes.iter().any(|note| note.contains("needs least memory (`recomp`)")), "{:?}", tight.notes);
    value["maxMemoryPerDevice"] = json!(90.0);
    let workload = Arc::new(load(&value));
    assert_eq!(planned("placement-dp", &workload, limits(&workload)).status, Status::Infeasible);
}

#[test]
fn a_converted_plan_for_one_stage_is_worth_the_same() {
    let workload = Arc::new(load(&chain()));
    let outcome = planned("placement-one", &workload, limits(&workload));
    assert!((outcome.objective.unwrap() - 0.009).abs() < 1e-12);
    // On a chain without branches nothing is lost: the DP meets Piper without its other freedoms.
    let dp = planned("placement-dp", &workload, limits(&workload)).objective.unwrap();
    assert!((dp - 0.0045).abs() < 1e-12, "{dp}");
}

#[test]
fn files_are_written_that_read_back_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for (file, to) in [("bert32a100.json", "placement"), ("llama-3-8b-training.json", "piper")] {
        let path = folder.path().join(format!("{to}.json"));
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("inputs").join(file);
        Command::cargo_bin("plantui")
            .unwrap()
            .args(["convert", source.to_str().unwrap(), "--to", to, "--output", path.to_str().unwrap()])
            .assert()
            .success()
            .stdout("");
        let written = workload::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let original = input(file);
        let expected = match to {
            "placement" => {
                convert::to_placement(&original, ModeRule::Keeping, 1, original.limits.bandwidth_bytes_per_s().unwrap())
            }
            _ => convert::to_piper(&original, 32, 16e9),
        }
        .unwrap();
        let w = &expected.workload;
        assert_eq!((&written.nodes, &written.dag), (&w.nodes, &w.dag));
        // Reading a number may change its last digit.
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * b.abs(), "{file}: {a} is not {b}");
        close(written.limits.memory_bytes().unwrap(), w.limits.memory_bytes().unwrap());
        assert_eq!((written.limits.devices(), written.limits.cpus()), (w.limits.devices(), w.limits.cpus()));
        match to {
            "placement" => {
                for (a, b) in written.placement().unwrap().nodes.iter().zip(&w.placement().unwrap().nodes) {
                    close(a.accelerator_time, b.accelerator_time);
                    close(a.cpu_time, b.cpu_time);
                    close(a.transfer, b.transfer);
                    close(a.size_bytes, b.size_bytes);
                }
            }
            _ => {
                let (a, b) = (written.piper().unwrap(), w.piper().unwrap());
                a.edge_bytes.iter().zip(&b.edge_bytes).for_each(|(&a, &b)| close(a, b));
                for (a, b) in a.nodes.iter().zip(&b.nodes) {
                    let (a, b) = (&a.degrees[0].modes[0], &b.degrees[0].modes[0]);
                    close(a.time_s, b.time_s);
                    close(a.forward_s.unwrap(), b.forward_s.unwrap());
                    close(a.memory_b, b.memory_b);
                    assert_eq!((&a.sync_in, &a.sync_out), (&b.sync_in, &b.sync_out));
                }
            }
        }
        let provenance = written.provenance.unwrap();
        assert!(provenance.made_by.ends_with(&format!("--to {to}")), "{}", provenance.made_by);
        assert!(expected.assumptions.iter().all(|a| provenance.assumptions.contains(a)));
    }
    let output = Command::cargo_bin("plantui")
        .unwrap()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["convert", "inputs/tiny-branch.json", "--to", "piper"])
        .assert()
        .code(2);
    let message = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(message.contains("inputs/tiny-branch.json cannot be written as piper: it has no transfers"), "{message}");
}
