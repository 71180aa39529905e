//! `check`: plans that come back.

use serde_json::{Value, json as value};

use crate::{BERT, Folder, PLANNERS, TINY, json, plantui, refusal, stdout};

/// All of [`TINY`] on two stages: 0 and 1 on device 0, the rest on devices 1 and 2.
pub(crate) fn tiny_plan() -> Value {
    value!({
        "schema": "plantui.plan/1",
        "limits": {"memory_bytes": 8e9},
        "stages": [
            {"nodes": [0, 1], "data_parallel": 1, "tensor_parallel": 1, "choices": {"0": "vanilla", "1": "vanilla"}},
            {"nodes": [2, 3, 4, 5], "data_parallel": 2, "tensor_parallel": 1,
             "choices": {"2": "vanilla", "3": "vanilla", "4": "vanilla", "5": "activation recomp"}}
        ]
    })
}

fn check(plan: &Value, flags: &[&str], code: i32) -> Value {
    let folder = Folder::new();
    let file = folder.file("plan.json", plan.to_string());
    json(&[&["check", TINY, &file, "--json"], flags].concat(), code)
}

#[test]
fn what_plan_writes_check_confirms_to_the_last_digit() {
    let folder = Folder::new();
    for (workload, flags) in [(TINY, &[][..]), (BERT, &["--devices", "64", "--memory", "8GiB"][..])] {
        for planner in PLANNERS {
            let planned = stdout(&[&["plan", workload, "--json", "--planner", planner], flags].concat(), 0);
            let file = folder.file("plan.json", &planned);
            let planned: Value = serde_json::from_str(&planned).unwrap();
            let checked = json(&["check", workload, &file, "--json"], 0);
            assert_eq!(checked["valid"], true);
            assert_eq!(checked["claim"]["holds"], true);
            assert_eq!(checked["time_per_sample_s"], planned["objective"]["value"]);
            assert_eq!(checked["stages"], planned["stages"]);
            assert_eq!(checked["limits"], planned["limits"]);
            assert_eq!(checked["simulation"], planned["simulation"]);
        }
    }
}

#[test]
fn the_published_result_format_is_read_in_both_spellings() {
    let object = stdout(&["plan", TINY, "--planner", "piper", "--format", "piper-result"], 0);
    let mut result: Value = serde_json::from_str(&object).unwrap();
    let folder = Folder::new();
    let first = json(&["check", TINY, &folder.file("object.json", &object), "--json"], 0);
    for stage in result["stages"].as_array_mut().unwrap() {
        let pairs: Vec<Value> = stage["TMPCids"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(id, mode)| value!([id.parse::<i64>().unwrap(), mode]))
            .collect();
        stage["TMPCids"] = pairs.into();
    }
    let second = json(&["check", TINY, &folder.file("pairs.json", result.to_string()), "--json"], 0);
    assert_eq!(first["plan"]["kind"], "Piper result");
    assert_eq!(first["time_per_sample_s"], second["time_per_sample_s"]);
    assert_eq!(
        first["time_per_sample_s"],
        json(&["plan", TINY, "--planner", "piper", "--json"], 0)["objective"]["value"]
    );
}

#[test]
fn flags_override_the_plan_which_overrides_the_workload() {
    let limits = |flags: &[&str], code| check(&tiny_plan(), flags, code)["limits"].clone();
    assert_eq!(limits(&[], 0)["memory_bytes"], 8e9);
    assert_eq!(limits(&[], 0)["devices"], 4);
    assert_eq!(limits(&["--memory", "4GB"], 0)["memory_bytes"], 4e9);
    assert_eq!(limits(&["--memory", "1GB"], 1)["memory_bytes"], 1e9);
}

#[test]
fn a_hand_made_plan_is_worth_what_its_stages_take() {
    let checked = check(&tiny_plan(), &[], 0);
    // Stage 1: 6 ms of compute; its two outgoing edges of 8 MB, both ways, over 4 GB/s.
    let stage = &checked["stages"][0];
    assert_eq!(stage["compute_s"], 0.006);
    assert_eq!(stage["communication_s"], 0.008);
    // Stage 2: 18 + 12 + 6 + 16 ms over two replicas; 110 MB of parameters through 4 (d - 1) / d / N.
    let stage = &checked["stages"][1];
    assert!((stage["compute_s"].as_f64().unwrap() - 0.026).abs() < 1e-12, "{stage}");
    assert!((stage["sync_s"].as_f64().unwrap() - 4.0 * 0.5 * 110e6 / 12.0 / 4e9).abs() < 1e-12, "{stage}");
    assert_eq!(checked["claim"], Value::Null);
}

#[test]
fn every_broken_rule_is_told() {
    type Edit = fn(&mut Value);
    let cases: [(Edit, &str); 8] = [
        (
            |p| {
                p["stages"][0]["nodes"] = value!([0]);
                p["stages"][0]["choices"] = value!({"0": "vanilla"});
            },
            "stem is not in any stage",
        ),
        (
            |p| {
                p["stages"][0]["devices"] = value!([99]);
                p["stages"][1]["devices"] = value!([1, 2]);
            },
            "stage 1: device 99 does not exist: there are 4",
        ),
        (|p| p["stages"][1]["data_parallel"] = value!(5), "5 replicas do not divide 12 microbatches"),
        (|p| p["stages"][1]["data_parallel"] = value!(4), "uses 5 devices, but there are only 4"),
        (|p| p["stages"][1]["data_parallel"] = value!(0), "must be at least 1"),
        (|p| p["stages"][1]["choices"]["3"] = value!("magic"), "right branch has no mode `magic`"),
        (|p| p["stages"].as_array_mut().unwrap().swap(0, 1), "goes back from stage 2 to stage 1"),
        (|p| p["limits"]["memory_bytes"] = value!(1e8), "the limit is 100 MB"),
    ];
    for (edit, part) in cases {
        let mut plan = tiny_plan();
        edit(&mut plan);
        let checked = check(&plan, &[], 1);
        assert_eq!(checked["valid"], false);
        let violations = checked["violations"].to_string();
        assert!(violations.contains(part), "{part}: {violations}");
    }
}

#[test]
fn absurd_degrees_are_refused_and_no_crash() {
    let mut plan = tiny_plan();
    for stage in plan["stages"].as_array_mut().unwrap() {
        stage["data_parallel"] = value!(u32::MAX);
        stage["tensor_parallel"] = value!(u32::MAX);
    }
    let folder = Folder::new();
    let told = refusal(&["check", TINY, &folder.file("plan.json", plan.to_string())]);
    assert!(told.contains("stages[0].data_parallel is 4294967295, and a plan has no more than 10000"), "{told}");
    // More than there are is a violation.
    for stage in plan["stages"].as_array_mut().unwrap() {
        stage["data_parallel"] = value!(999);
        stage["tensor_parallel"] = value!(5);
    }
    let violations = check(&plan, &[], 1)["violations"].to_string();
    assert!(violations.contains("but there are only 4"), "{violations}");
}

#[test]
fn a_false_claim_is_not_valid_whatever_limits_are_asked_for() {
    let mut plan = tiny_plan();
    plan["objective"] = value!({"name": "time_per_sample", "value": 0.001, "unit": "s"});
    let checked = check(&plan, &[], 1);
    assert_eq!((&checked["valid"], &checked["claim"]["holds"]), (&value!(false), &value!(false)));
    assert_eq!(checked["violations"], value!([]));
    let checked = check(&plan, &["--bandwidth", "1GB/s"], 1);
    assert_eq!((&checked["valid"], &checked["claim"]["holds"]), (&value!(false), &value!(false)));
}

#[test]
fn limits_of_the_flags_let_no_forged_figure_pass() {
    let folder = Folder::new();
    let planned = json(&["plan", BERT, "--planner", "piper", "--json"], 0);
    let forged = |path: &str, to: Value| {
        let mut plan = planned.clone();
        *plan.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = to;
        folder.file("plan.json", plan.to_string())
    };
    let unbound = {
        let mut plan = planned.clone();
        plan.as_object_mut().unwrap().remove("lower_bound");
        folder.file("unbound.json", plan.to_string())
    };
    for flags in [&[][..], &["--devices", "64"], &["--memory", "10GiB"], &["--devices", "128"]] {
        let honest = folder.file("honest.json", planned.to_string());
        let checked = |file: &str, code| stdout(&[&["check", BERT, file, "--strict"], flags].concat(), code);
        checked(&honest, 0);
        assert!(checked(&unbound, 1).contains("no lower_bound"), "{flags:?}");
        checked(&forged("/objective/value", value!(0.001)), 1);
        checked(&forged("/stages/0/compute_s", value!(1e-9)), 1);
        checked(&forged("/simulation/iteration_s", value!(1.0)), 1);
    }
}

#[test]
fn stages_on_cpus_of_latency_plans_have_the_numbers_of_cpus() {
    let (folder, workload) = (Folder::new(), "inputs/mistral-7b-latency.json");
    // Four accelerators, 0 to 3, and eight CPUs behind them.
    let planned = json(&["plan", workload, "--planner", "placement-latency-greedy", "--json"], 0);
    let stages = planned["stages"].as_array().unwrap();
    let on_cpus = stages.iter().position(|stage| stage["devices"][0] == 4).expect("a stage on CPUs");
    let checked = |device: u32, code| {
        let mut plan = planned.clone();
        plan["stages"][on_cpus]["devices"] = value!([device]);
        stdout(&["check", workload, &folder.file("plan.json", plan.to_string())], code)
    };
    checked(11, 0);
    assert!(checked(0, 1).contains("is on CPUs, but its device is the accelerator of stage 1"));
    for device in [12, 4_000_000_000] {
        assert!(checked(device, 1).contains(&format!("its device {device} is no device")), "{device}");
    }
}

#[test]
fn what_a_plan_claims_is_judged_or_refused() {
    let folder = Folder::new();
    let written: Value = serde_json::from_str(&stdout(&["plan", TINY, "--json"], 0)).unwrap();
    let edited = |path: &str, to: Value| {
        let mut plan = written.clone();
        *plan.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = to;
        folder.file("plan.json", plan.to_string())
    };
    for (path, to, part) in [
        ("/objective/unit", value!("ms"), "objective.unit is `ms`"),
        ("/objective/name", value!("latency"), "objective.name is `latency`"),
        ("/status", value!("splendid"), "status is `splendid`"),
        ("/status", value!("infeasible"), "but there are stages"),
        ("/workload/nodes", value!(5), "workload.nodes is 5, but tiny-branch has 6"),
        ("/workload/edges", value!(99), "belongs to another workload"),
        ("/stages/0/choices/0", value!(7), "stages[0].choices.0 is the number `7`, must be a string"),
        ("/stages/0/data_parallel", value!(1.5), "must be a whole number from 0"),
        ("/limits/devices", value!(20000), "limits.devices is 20000, must be a whole number from 1 to 10000"),
        ("/lower_bound", value!(-1.0), "lower_bound is -1, and no measure of plans is below 0"),
    ] {
        let error = refusal(&["check", TINY, &edited(path, to)]);
        assert!(error.contains(part) && !error.contains("u32") && !error.contains("struct"), "{path}: {error}");
    }
    let text = stdout(&["check", TINY, &edited("/lower_bound", value!(999.0))], 1);
    assert!(
        text.starts_with("not valid") && text.contains("states a lower bound of 999.0 s/iteration, above"),
        "{text}"
    );
    // A planner that was stopped writes the best plan it has.
    stdout(&["check", TINY, &edited("/status", value!("cancelled"))], 0);
    let mut plan = tiny_plan();
    plan["stages"][0]["choices"]["5"] = value!("vanilla");
    let error = refusal(&["check", TINY, &folder.file("plan.json", plan.to_string())]);
    assert!(error.contains("stages[0].choices lists `5`, which is not a node of the stage"), "{error}");
}

#[test]
fn the_published_format_is_read_strictly() {
    let folder = Folder::new();
    let result = stdout(&["plan", TINY, "--format", "piper-result"], 0);
    let plan: Value = serde_json::from_str(&result).unwrap();
    let ids = |stage: &Value| stage["TMPCids"].as_object().unwrap().clone();
    let edited = |name: &str, ids: &dyn Fn(&Value) -> Value| {
        let mut plan = plan.clone();
        for stage in plan["stages"].as_array_mut().unwrap() {
            stage["TMPCids"] = ids(stage);
        }
        folder.file(name, plan.to_string())
    };
    // Pairs with ids as text are as good as any.
    stdout(
        &["check", TINY, &edited("a.json", &|stage| ids(stage).into_iter().map(|(k, v)| value!([k, v])).collect())],
        0,
    );
    for (file, part) in [
        (
            edited("b.json", &|stage| {
                ids(stage).into_iter().flat_map(|(k, v)| [value!([k, v]), value!([k, v])]).collect()
            }),
            "twice",
        ),
        (edited("c.json", &|_| value!([[0]])), "must be a pair"),
        (edited("d.json", &|_| value!(4)), "must be an object of node ids and modes"),
        (
            folder.file("result.json", result.replacen("\"0\": ", "\"0\": \"vanilla\", \"0\": ", 1)),
            "lists node 0 twice",
        ),
    ] {
        let error = refusal(&["check", TINY, &file]);
        assert!(error.contains("TMPCids") && error.contains(part) && !error.contains("enum"), "{part}: {error}");
    }
    let file = folder.file("result.json", &result);
    let text = stdout(&["check", TINY, &file, "--memory", "100MB"], 1);
    assert!(text.contains("hint: the file states no limits"), "{text}");
}

#[test]
fn files_that_are_no_plan_are_told_what_they_are() {
    let folder = Folder::new();
    for (content, part) in [
        (&b""[..], "is empty"),
        (b"\x00\x01", "is binary data, not a plan"),
        (b"\x1f\x8b\x08", "is gzip-compressed\nhint: unpack it first"),
        (b"42", "a single JSON value"),
        (b"{\"schema\": \"plantui.plan/1\", \"stages\": [", "looks truncated"),
        (b"{\"schema\": 1, \"stages\": []}", "schema must be a string"),
        (b"{\"stages\": [{\"data_parallel\": 1}]}", "lacks the field `schema`"),
        (b"{\"schema\": \"plantui.plan/1\", \"stages\": [[1]]}", "stages[0] is an array, must be an object"),
    ] {
        let error = refusal(&["check", TINY, &folder.file("plan.json", content)]);
        assert!(error.contains(part) && error.contains("plan.json"), "{}: {error}", String::from_utf8_lossy(content));
    }
    assert!(refusal(&["check", TINY, TINY]).contains("is a workload, not a plan"));
    assert!(refusal(&["check", TINY, "inputs"]).contains("is a directory"));
}

#[test]
fn a_name_that_several_nodes_have_comes_with_the_id() {
    let folder = Folder::new();
    let planned = stdout(&["plan", BERT, "--json"], 0).replacen("\"vanilla\"", "\"magic\"", 40);
    let violations = json(&["check", BERT, &folder.file("plan.json", planned), "--json"], 1)["violations"].to_string();
    assert!(violations.contains("ParallelTransformerLayer (node "), "{violations}");
}

#[test]
fn the_verdict_is_the_first_word() {
    let folder = Folder::new();
    let file = folder.file("plan.json", tiny_plan().to_string());
    assert!(stdout(&["check", TINY, &file], 0).starts_with("valid: "));
    let text = stdout(&["check", TINY, &file, "--devices", "2"], 1);
    assert!(text.starts_with("not valid: ") && text.contains("uses 3 devices"), "{text}");
}

#[test]
fn unreadable_plans_are_exit_code_2() {
    let folder = Folder::new();
    for (content, part) in [
        ("{", "before its JSON is complete"),
        ("{}", "stages"),
        (r#"{"schema": "plantui.plan/9", "stages": []}"#, "plantui.plan/1"),
        (
            r#"{"schema": "plantui.plan/1", "stages": [{"nodes": [77], "data_parallel": 1, "tensor_parallel": 1}]}"#,
            "77",
        ),
        (
            r#"{"schema": "plantui.plan/1", "stages": [{"nodes": [0], "data_parallel": -1, "tensor_parallel": 1}]}"#,
            "-1",
        ),
        (r#"{"schema": "plantui.plan/1", "limits": {"memory_bytes": -5}, "stages": []}"#, "limits.memory_bytes is -5"),
        (r#"{"schema": "plantui.plan/1", "limits": {"microbatches": 0}, "stages": []}"#, "limits.microbatches is 0"),
    ] {
        let error = refusal(&["check", TINY, &folder.file("plan.json", content)]);
        assert!(error.contains(part) && error.contains("plan.json"), "{content}: {error}");
    }
    assert!(refusal(&["check", TINY, "missing.json"]).contains("does not exist"));
    assert!(refusal(&["check", "-", "-"]).contains("cannot both be standard input"));
}

#[test]
fn a_plan_may_come_through_a_pipe() {
    let plan = stdout(&["plan", TINY, "--json"], 0);
    plantui().args(["check", TINY, "-"]).write_stdin(plan).assert().success();
}

#[test]
fn a_device_placement_is_planned_checked_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let (workload, plan) = (folder.path().join("chain.json"), folder.path().join("plan.json"));
    let node = |id: usize| {
        serde_json::json!({"id": id, "supportedOnFpga": true, "cpuLatency": 40.0, "fpgaLatency": 10.0,
            "isBackwardNode": false, "size": 100.0, "colorClass": id})
    };
    let edge = |id: usize| serde_json::json!({"sourceId": id, "destId": id + 1, "cost": 1.0});
    let file = serde_json::json!({"maxSizePerFPGA": 250.0, "maxFPGAs": 2, "maxCPUs": 0,
        "nodes": (0..4).map(node).collect::<Vec<_>>(), "edges": (0..3).map(edge).collect::<Vec<_>>()});
    std::fs::write(&workload, file.to_string()).unwrap();
    let (workload, plan) = (workload.to_str().unwrap(), plan.to_str().unwrap());
    let planned = json(&["plan", workload, "--json"], 0);
    // Two nodes and one transfer on either accelerator.
    assert_eq!(planned["objective"], serde_json::json!({"name": "max_load", "value": 21.0, "unit": "ms"}));
    assert_eq!(planned["status"], "optimal");
    stdout(&["plan", workload, "--output", plan], 0);
    assert!(stdout(&["check", workload, plan], 0).starts_with("valid"));
    assert!(stdout(&["simulate", workload, plan], 0).contains("1F1B"));
    // Three nodes do not fit on one accelerator; a CPU takes one of four.
    json(&["plan", workload, "--devices", "1", "--json"], 1);
    let with_cpu = json(&["plan", workload, "--devices", "1", "--cpus", "2", "--json"], 0);
    assert_eq!(with_cpu["objective"]["value"], 40.0);
}

#[test]
fn a_plan_for_an_engine_is_one_that_the_engine_runs() {
    let mut call = vec!["plan", BERT, "--memory", "64GiB", "--json"];
    call.extend(["space=engine", "engine=megatron", "stages=4"].iter().flat_map(|set| ["--set", set]));
    let planned: Value = serde_json::from_str(&stdout(&call, 0)).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let contradictions = |plan: &Value, code: i32| {
        std::fs::write(file.path(), plan.to_string()).unwrap();
        json(&["check", BERT, file.path().to_str().unwrap(), "--json"], code)["contradictions"].to_string()
    };
    assert_eq!(contradictions(&planned, 0), "[]");
    // One layer of one stage alone recomputes: Megatron-LM has one count for all stages.
    let mut uneven = planned.clone();
    assert_eq!(uneven["stages"][0]["choices"]["9"], "vanilla", "64 GiB are enough to keep all");
    uneven["stages"][0]["choices"]["9"] = value!("activation recomp");
    let told = contradictions(&uneven, 1);
    assert!(told.contains("state that Megatron-LM runs the plan unchanged, and it cannot:"), "{told}");
    // A schedule that the engine has not.
    let mut scheduled = planned.clone();
    scheduled["planner"]["options"]["engine"] = value!("deepspeed");
    scheduled["schedule"] = value!("zb-h1");
    let told = contradictions(&scheduled, 1);
    assert!(told.contains("DeepSpeed runs the plan unchanged, and it cannot: zb-h1: it runs only "), "{told}");
}

#[test]
fn forged_figures_are_named_with_what_was_recomputed() {
    let planned: Value = serde_json::from_str(&stdout(&["plan", TINY, "--planner", "piper", "--json"], 0)).unwrap();
    let said = |forge: &dyn Fn(&mut Value), code: i32| {
        let mut plan = planned.clone();
        forge(&mut plan);
        let checked = check(&plan, &[], code);
        (checked["contradictions"].to_string(), checked["warnings"].to_string())
    };
    assert_eq!(said(&|_| (), 0), ("[]".to_string(), "[]".to_string()));
    for field in ["compute_s", "communication_s", "sync_s", "memory_bytes"] {
        let (contradictions, _) = said(&|plan| plan["stages"][0][field] = value!(0.125), 1);
        assert!(contradictions.contains(&format!("stage 1: {field} is 0.125, recomputed ")), "{contradictions}");
    }
    let bound = planned["objective"]["value"].as_f64().unwrap() / 2.0;
    let (contradictions, _) = said(&|plan| plan["lower_bound"] = value!(bound), 1);
    assert!(contradictions.contains("is optimal"), "{contradictions}");
    let optimist = |plan: &mut Value| {
        plan["lower_bound"] = value!(bound);
        plan["status"] = value!("feasible");
    };
    assert_eq!(said(&optimist, 0).0, "[]");
    let (contradictions, _) = said(&|plan| plan["lower_bound"] = Value::Null, 1);
    assert!(contradictions.contains("is optimal by its own statement, but has no lower_bound"), "{contradictions}");
    let unbound = |plan: &mut Value| {
        plan.as_object_mut().unwrap().shift_remove("lower_bound");
    };
    assert!(said(&unbound, 1).0.contains("has no lower_bound"));
    for field in ["iteration_s", "samples_per_s", "bubble", "peak_memory_bytes"] {
        let (contradictions, _) = said(&|plan| plan["simulation"][field] = value!(0.125), 1);
        assert!(contradictions.contains(&format!("simulation: {field} is 0.125, recomputed ")), "{contradictions}");
    }
    for (name, value, told) in [
        ("schedule", value!("chaos"), "`chaos`, which is not known"),
        ("schedule", value!("gpipe"), "simulation: iteration_s is "),
        ("schedule", value!("zb-v"), "simulation: ZB-V needs "),
        ("settings", value!({"links": "rubber"}), "settings.links is `rubber`: expected private"),
        ("settings", value!({"weather": "fair"}), "settings.weather is `fair`: is not known"),
        ("settings", value!({"optimizer-step": "1s"}), "simulation: iteration_s is "),
    ] {
        let (contradictions, _) = said(&|plan| plan["simulation"][name] = value.clone(), 1);
        assert!(contradictions.contains(told), "{told}: {contradictions}");
    }
    // Figures are those of the file's limits, and judged by them whatever is asked for.
    let mut plan = planned.clone();
    plan["stages"][0]["compute_s"] = value!(0.125);
    assert!(
        check(&plan, &["--memory", "64GB"], 1)["contradictions"][0].as_str().unwrap().contains("compute_s is 0.125")
    );
}

#[test]
fn a_simulation_is_compared_as_the_file_says_it_was_played() {
    let folder = Folder::new();
    let mut plan = json(&["plan", TINY, "--json"], 0);
    let flags = ["--schedule", "gpipe", "--optimizer-step", "250ms", "--links", "shared"];
    let file = folder.file("plan.json", plan.to_string());
    let simulated = json(&[&["simulate", TINY, &file, "--json"], &flags[..]].concat(), 0);
    assert_eq!(simulated["settings"], value!({"links": "shared", "optimizer-step": "0.25s"}));
    for field in ["schedule", "iteration_s", "samples_per_s", "bubble", "peak_memory_bytes", "settings"] {
        plan["simulation"][field] = simulated[field].clone();
    }
    assert_eq!(check(&plan, &[], 0)["contradictions"], value!([]));
    plan["simulation"]["settings"]["links"] = value!("private");
    plan["simulation"]["settings"]["optimizer-step"] = value!("1s");
    assert!(check(&plan, &[], 1)["contradictions"].to_string().contains("iteration_s"));
}

#[test]
fn strict_lets_no_warning_pass() {
    let planned = json(&["plan", TINY, "--json"], 0);
    assert_eq!(check(&planned, &["--strict"], 0)["warnings"], value!([]));
    for (place, value, told) in [
        ("/planner/options/of_tomorrow", value!(3), "planner.options.of_tomorrow is no option of joint"),
        ("/planner/id", value!("oracle"), "planner.id is `oracle`, which is not known"),
    ] {
        let mut plan = planned.clone();
        plan["planner"]["options"]["of_tomorrow"] = value!(0);
        *plan.pointer_mut(place).unwrap() = value;
        let loose = check(&plan, &[], 0);
        assert!(loose["warnings"].to_string().contains(told) && loose["valid"] == true, "{loose}");
        let strict = check(&plan, &["--strict"], 1);
        assert!(strict["warnings"] == loose["warnings"] && strict["valid"] == false, "{strict}");
        let folder = Folder::new();
        let text = stdout(&["check", TINY, &folder.file("plan.json", plan.to_string()), "--strict"], 1);
        assert!(text.starts_with("not valid: ") && text.contains(&format!("warning: {told}")), "{text}");
    }
}

#[test]
fn every_plan_that_is_called_optimal_has_the_bound_that_check_asks_for() {
    let folder = Folder::new();
    let mut optimal = vec![];
    for workload in [
        TINY,
        BERT,
        "inputs/mistral-7b-latency.json",
        "inputs/branching-cnn-training.json",
        "inputs/alexnet-operators.json",
    ] {
        let compared = json(&["compare", workload, "--json", "--deadline", "500ms"], 0);
        for entry in compared["entries"].as_array().unwrap().iter().filter(|entry| entry["status"] == "optimal") {
            let planner = entry["id"].as_str().unwrap();
            let plan = stdout(&["plan", workload, "--planner", planner, "--deadline", "2s", "--json"], 0);
            let checked = json(&["check", workload, &folder.file("plan.json", plan), "--strict", "--json"], 0);
            assert_eq!(checked["valid"], true, "{workload} {planner}");
            optimal.push(planner.to_string());
        }
    }
    for planner in ["piper", "equal-partition", "placement-dp", "pase"] {
        assert!(optimal.iter().any(|id| id == planner), "{planner} is not among {optimal:?}");
    }
}

#[test]
fn what_a_plan_says_of_operators_must_be_its_own() {
    let folder = Folder::new();
    let graph = "inputs/alexnet-operators.json";
    let plan = json(&["plan", graph, "--json"], 0);
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut changed = plan.clone();
        change(changed["operators"].as_array_mut().expect("it lists its operators"));
        refusal(&["check", graph, &folder.file("plan.json", changed.to_string())])
    };
    let unknown = with(&|operators| operators[3]["node"] = (-1).into());
    assert!(unknown.contains("operators[3].node is -1, which is no node of the stages"), "{unknown}");
    let twice = with(&|operators| operators[3]["node"] = operators[2]["node"].clone());
    assert!(twice.contains("operators[3].node is") && twice.contains("which is listed already"), "{twice}");
    let missing = with(&|operators| drop(operators.pop()));
    assert!(missing.contains("operators lacks node"), "{missing}");
}

#[test]
fn options_have_the_types_that_their_planner_takes() {
    let folder = Folder::new();
    let plan = json(&["plan", TINY, "--planner", "piper", "--json"], 0);
    for (option, value, told) in [
        ("stages", Value::from("two"), "a whole number from"),
        ("stages", Value::from(2.5), "a whole number from"),
        ("knapsack", Value::from(3), "it takes exact, greedy"),
        ("recompute", Value::from("sometimes"), "it takes auto"),
        ("data_parallel", Value::from("true"), "it takes true, false"),
        ("stages", Value::Null, "a number, a word, true or false"),
        ("anything", serde_json::json!([1]), "a number, a word, true or false"),
    ] {
        let mut changed = plan.clone();
        changed["planner"]["options"][option] = value;
        let error = refusal(&["check", TINY, &folder.file("plan.json", changed.to_string())]);
        assert!(error.contains(&format!("planner.options.{option} is ")) && error.contains(told), "{error}");
    }
    // What another version may know is left alone.
    let mut changed = plan.clone();
    changed["planner"]["options"]["of_tomorrow"] = 3.into();
    stdout(&["check", TINY, &folder.file("plan.json", changed.to_string())], 0);
}

#[test]
fn a_missing_choice_is_repaired_in_the_words_of_its_workload() {
    let folder = Folder::new();
    for (workload, word) in [
        (TINY, "vanilla"),
        ("inputs/branching-cnn-training.json", "accelerator"),
        ("inputs/alexnet-operators.json", "whole"),
    ] {
        let mut plan = json(&["plan", workload, "--json"], 0);
        let choices = plan["stages"][0]["choices"].as_object_mut().unwrap();
        let (node, _) = choices.shift_remove_entry(&choices.keys().next().unwrap().clone()).unwrap();
        plan.as_object_mut().unwrap().remove("operators");
        let error = refusal(&["check", workload, &folder.file("plan.json", plan.to_string())]);
        assert!(error.contains(&format!("add `\"{node}\": \"{word}\"`")), "{error}");
    }
}

#[test]
fn last_states_of_a_pipeline_over_machines_grow_or_are_not_given() {
    let workload = "inputs/bert32-layers.txt";
    let call = ["plan", workload, "--planner", "dapple", "--machines", "2x2", "--set", "stages=2", "--json"];
    let planned: Value = serde_json::from_str(&stdout(&call, 0)).unwrap();
    let folder = Folder::new();
    let checked = |states: [Option<u32>; 2], code: i32| {
        let mut plan = planned.clone();
        for (stage, state) in plan["stages"].as_array_mut().unwrap().iter_mut().zip(states) {
            match state {
                Some(state) => stage["last_state"] = state.into(),
                None => drop(stage.as_object_mut().unwrap().shift_remove("last_state")),
            }
        }
        json(&["check", workload, &folder.file("plan.json", plan.to_string()), "--json"], code)["violations"]
            .to_string()
    };
    let state = |i: usize| planned["stages"][i]["last_state"].as_u64().map(|state| state as u32);
    assert_eq!(checked([state(0), state(1)], 0), "[]");
    assert_eq!(checked([None, None], 0), "[]");
    for wrong in [[Some(4_000_000_000), state(1)], [state(1), state(1)], [None, state(1)]] {
        let told = checked(wrong, 1);
        assert!(told.contains("`last_state` of the stages must grow from stage to stage"), "{wrong:?}: {told}");
    }
}
