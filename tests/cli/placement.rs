//! Device placement: latency planners, splits of experts, and published split files.

use std::sync::Arc;

use plantui::{
    cluster::GivenLimits,
    family,
    planner::{self, Options, Planner, Problem, Search, Status},
    workload::{self, Workload},
};
use serde_json::{Value, json as value};

use crate::{Folder, TINY, json, plantui, refusal, stdout};

/// Two branches between a first and a last node: 0 -> 1 -> 3 -> 5 and 0 -> 2 -> 4 -> 5. Each takes 10 on an
/// accelerator, 40 on a CPU and half an accelerator's memory; sending its output takes 1.
fn branches() -> Value {
    let node = |id: usize| {
        value!({"id": id, "name": format!("n{id}"), "supportedOnFpga": true, "cpuLatency": 40.0, "fpgaLatency": 10.0,
            "isBackwardNode": false, "size": 100.0, "colorClass": id})
    };
    let edge = |(from, to): (usize, usize)| value!({"sourceId": from, "destId": to, "cost": 1.0});
    let edges = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)];
    value!({"maxSizePerFPGA": 200.0, "maxFPGAs": 3, "maxCPUs": 1,
        "nodes": (0..6).map(node).collect::<Vec<_>>(), "edges": edges.map(edge)})
}

/// The same as a training graph: backward nodes 10 to 15 with the classes of 0 to 5, edges mirrored.
fn training() -> Value {
    let mut file = branches();
    for id in 0..6 {
        let mut node = file["nodes"][id].clone();
        (node["id"], node["name"], node["isBackwardNode"]) = (value!(10 + id), value!(format!("b{id}")), value!(true));
        file["nodes"].as_array_mut().unwrap().push(node);
    }
    for i in 0..6 {
        let edge = |end: &str| 10 + file["edges"][i][end].as_u64().unwrap();
        let (from, to) = (edge("destId"), edge("sourceId"));
        file["edges"].as_array_mut().unwrap().push(value!({"sourceId": from, "destId": to, "cost": 1.0}));
    }
    file["edges"].as_array_mut().unwrap().push(value!({"sourceId": 5, "destId": 15, "cost": 1.0}));
    file["maxSizePerFPGA"] = value!(400.0);
    file
}

/// 0 and 1 on an accelerator, 2 and 4 on a second, 3 and 5 on a third.
fn split() -> Value {
    value!({"fpgas": [{"nodes": [3, 5]}, {"nodes": [0, 1]}, {"nodes": [2, 4]}], "cpus": [{"nodes": []}]})
}

#[test]
fn every_latency_planner_plans_and_its_plan_is_confirmed() {
    let folder = Folder::new();
    let workload = folder.file("branches.json", branches().to_string());
    for (planner, settings, status) in [
        ("placement-latency-greedy", &[][..], "feasible"),
        ("placement-latency-dp", &[], "feasible"),
        ("placement-latency-ip", &[], "optimal"),
        ("placement-latency-ip", &["--set", "subgraphs=2"], "optimal"),
    ] {
        let text = stdout(&[&["plan", &workload, "--planner", planner, "--json"], settings].concat(), 0);
        let planned: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&planned["status"], &planned["objective"]["name"]), (&value!(status), &value!("latency")));
        let latency = planned["objective"]["value"].as_f64().unwrap();
        let simulated = planned["simulation"]["iteration_s"].as_f64().unwrap();
        assert!((simulated * 1e3 - latency).abs() < 1e-9, "{planner}: {latency} ms, {simulated} s");
        assert_eq!(planned["simulation"]["schedule"], "single-sample");
        let plan = folder.file("plan.json", &text);
        let checked = json(&["check", &workload, &plan, "--json"], 0);
        assert_eq!((&checked["objective"], &checked["claim"]["holds"]), (&planned["objective"], &value!(true)));
        assert_eq!((&checked["stages"], &checked["simulation"]), (&planned["stages"], &planned["simulation"]));
        let trace = json(&["simulate", &workload, &plan, "--format", "chrome-trace"], 0);
        let events = trace["traceEvents"].as_array().unwrap();
        let end = |event: &Value| event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap_or(0.0);
        let last = events.iter().map(end).fold(0.0, f64::max);
        assert!((last / 1e3 - latency).abs() < 1e-6 * latency, "{planner}: the trace ends at {last} µs");
        assert!(stdout(&["simulate", &workload, &plan], 0).starts_with("simulated one sample: "));
    }
}

#[test]
fn the_table_of_a_latency_plan_tells_when_devices_run_and_what_is_waited_for() {
    let folder = Folder::new();
    let workload = folder.file("branches.json", branches().to_string());
    let plan = folder.file("split.json", split().to_string());
    let table = stdout(&["check", &workload, &plan, "--objective", "latency"], 0);
    // 0 and 1 run for 22 with what they send, 2 and 4 for 22 more with both transfers, 3 and 5 for 22 with what they receive.
    for part in [
        "latency 66.00 ms   3 stages on 3 of 3 accelerators",
        "waited for",
        "limited by stage 1 (accelerator 1)",
        "33.3%",
    ] {
        assert!(table.contains(part), "`{part}` is missing in\n{table}");
    }
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("accelerator ") && line.contains("n")).collect();
    assert!(rows.iter().any(|row| row.contains("44.00 ms") && row.contains("66.00 ms")), "{table}");
}

#[test]
fn a_split_is_scored_by_what_it_claims_or_by_what_is_asked_for() {
    let folder = Folder::new();
    let workload = folder.file("branches.json", branches().to_string());
    let check = |edit: fn(&mut Value), flags: &[&str], code| {
        let mut split = split();
        edit(&mut split);
        let file = folder.file("split.json", split.to_string());
        json(&[&["check", &workload, &file, "--json"], flags].concat(), code)
    };
    let plain = check(|_| (), &[], 0);
    assert_eq!(plain["plan"]["kind"], "placement split");
    assert_eq!(plain["objective"], value!({"name": "max_load", "value": 22.0, "unit": "ms"}));
    // In the order in which data flows, whatever that of the file.
    let first = |checked: &Value| checked["stages"][0]["nodes"].clone();
    assert_eq!((first(&plain), &plain["claim"]), (value!([0, 1]), &Value::Null));
    let latency = check(|split| split["totalLatency"] = value!(66.0), &[], 0);
    assert_eq!((&latency["objective"]["name"], &latency["claim"]["holds"]), (&value!("latency"), &value!(true)));
    let asked = check(|split| split["maxLoad"] = value!(22.0), &["--objective", "latency"], 0);
    assert_eq!((&asked["objective"]["value"], &asked["claim"]), (&value!(66.0), &Value::Null));
    let unknown = check(|split| split["maxLoad"] = value!(-1.0), &[], 0);
    assert_eq!(unknown["claim"], Value::Null);
    let wrong = check(|split| split["maxLoad"] = value!(23.0), &[], 1);
    assert_eq!((&wrong["valid"], &wrong["claim"]["holds"]), (&value!(false), &value!(false)));
    let apart = check(|_| (), &["--objective", "separate-maxima"], 0);
    assert_eq!(apart["objective"]["value"], 22.0);
    let full = check(|_| (), &["--memory", "150"], 1);
    assert_eq!(full["violations"].as_array().unwrap().len(), 3);
    let two = check(
        |split| {
            *split =
                value!({"fpgas": [{"nodes": [0, 1]}, {"nodes": [2, 4]}], "cpus": [{"nodes": [3]}, {"nodes": [5]}]});
        },
        &["--cpus", "2"],
        0,
    );
    assert_eq!(two["objective"]["value"], 40.0);
    assert!(two["notes"][0].as_str().unwrap().contains("each CPU is a device of its own"), "{}", two["notes"]);
}

#[test]
fn a_plan_leaves_as_a_split() {
    let folder = Folder::new();
    let workload = folder.file("branches.json", branches().to_string());
    for (planner, field) in [("placement-dp", "maxLoad"), ("placement-latency-ip", "totalLatency")] {
        let planned = json(&["plan", &workload, "--planner", planner, "--json"], 0);
        let text = stdout(&["plan", &workload, "--planner", planner, "--format", "placement-split"], 0);
        let split: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(split[field], planned["objective"]["value"]);
        let checked = json(&["check", &workload, &folder.file("split.json", text), "--json"], 0);
        assert_eq!((&checked["objective"], &checked["claim"]["holds"]), (&planned["objective"], &value!(true)));
    }
    let plan = folder.file("plan.json", stdout(&["plan", &workload, "--json"], 0));
    let exported = json(&["export", &plan, "--workload", &workload, "--to", "placement-split"], 0);
    assert_eq!(exported["maxLoad"], 22.0);
    assert!(refusal(&["plan", TINY, "--format", "placement-split"]).contains("is not one"));
    let other = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    assert!(refusal(&["export", &other, "--to", "placement-split"]).contains("is not one"));
}

#[test]
fn split_files_that_are_broken_are_refused_in_a_sentence() {
    let folder = Folder::new();
    let workload = folder.file("branches.json", branches().to_string());
    for (content, part) in [
        ("{\"fpgas\": [{\"nodes\": [0, 99]}]}", "split.json: fpgas[0].nodes[1] is 99, which is no node's id"),
        (
            "{\"fpgas\": [{\"nodes\": [0]}], \"cpus\": [{\"nodes\": [0]}]}",
            "cpus[0].nodes[0] is 0, which fpgas[0].nodes[0]",
        ),
        ("{\"fpgas\": [], \"cpus\": []}", "names no device"),
        ("{\"fpgas\": 3}", "split.json:1: fpgas is the number `3`, must be an array"),
        ("{\"fpgas\": [[0, 1]]}", "fpgas[0] is an array, must be an object"),
        ("{\"fpgas\": [{\"load\": 3}]}", "lacks the field `nodes`"),
        ("{\"fpgas\": [{\"nodes\": [0.5]}]}", "fpgas[0].nodes[0] is the number `0.5`, must be a whole number"),
        ("{\"fpgas\": [{\"nodes\": [\"a\"]}]}", "fpgas[0].nodes[0] is the string \"a\", must be a whole number"),
        ("{\"fpgas\": [{\"nodes\": [0]}], \"fpgas\": []}", "has the field `fpgas` twice"),
        ("{\"fpgas\": [{\"nodes\": [0]}]} {}", "has text after the end"),
        ("{\"fpgas\": [{\"nodes\": [0]", "before its JSON is complete"),
        ("", "is empty"),
        ("[]", "array"),
    ] {
        let file = folder.file("split.json", content);
        let calls = [
            vec!["check", &workload, &file],
            vec!["plan", &workload, "--planner", "placement-expert", "--set", "split=FILE"],
        ];
        for mut call in calls {
            let setting = format!("split={file}");
            call.iter_mut().filter(|word| **word == "split=FILE").for_each(|word| *word = &setting);
            let error = refusal(&call);
            assert!(error.contains(part), "{content}: {error}");
            assert!(error.lines().count() <= 2, "{error}");
        }
    }
    let file = folder.file("split.json", split().to_string());
    assert!(refusal(&["check", TINY, &file]).contains("is a device placement, and tiny-branch has no times for"));
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    assert!(refusal(&["check", TINY, &plan, "--objective", "latency"]).contains("is for device placements"));
}

#[test]
fn rules_that_a_split_breaks_are_told() {
    let folder = Folder::new();
    let workload = folder.file("branches.json", branches().to_string());
    for (fpgas, objective, part) in [
        (value!([[0, 1], [2, 4], [3]]), "max-load", "n5 is not in any stage"),
        (value!([[0], [1], [2, 4], [3, 5]]), "latency", "uses 4 devices, but there are only 3"),
        (value!([[0, 1, 2], [4, 3, 5]]), "latency", "stage 1 needs 300 B per device, the limit is 200 B"),
        // 0 and 5 are cut apart, but 1 with 4 and 2 with 3 wait for one another.
        (value!([[0, 5], [1, 4], [2, 3]]), "latency", "these wait for one another in a cycle: stage"),
    ] {
        let fpgas: Vec<Value> = fpgas.as_array().unwrap().iter().map(|nodes| value!({"nodes": nodes})).collect();
        let file = folder.file("split.json", value!({"fpgas": fpgas, "cpus": []}).to_string());
        let checked = json(&["check", &workload, &file, "--objective", objective, "--json"], 1);
        assert!(checked["violations"].to_string().contains(part), "{part}: {}", checked["violations"]);
        assert_eq!((&checked["valid"], &checked["objective"]), (&value!(false), &Value::Null));
        plantui().args(["check", &workload, &file, "--objective", objective]).assert().code(1);
    }
}

#[test]
fn an_experts_split_is_extended_and_scored() {
    let folder = Folder::new();
    let inference = folder.file("branches.json", branches().to_string());
    let file = folder.file("split.json", split().to_string());
    let expert = |workload: &str, settings: &[&str], code| {
        let setting = format!("split={file}");
        json(
            &[&["plan", workload, "--planner", "placement-expert", "--set", &setting, "--json"], settings].concat(),
            code,
        )
    };
    let planned = expert(&inference, &[], 0);
    assert_eq!(planned["objective"], value!({"name": "max_load", "value": 22.0, "unit": "ms"}));
    assert_eq!(planned["status"], "feasible");
    let latency = expert(&inference, &["--set", "objective=latency"], 0);
    assert_eq!(latency["objective"], value!({"name": "latency", "value": 66.0, "unit": "ms"}));
    // The split names the forward pass: the backward nodes follow their classes.
    let training = folder.file("training.json", training().to_string());
    let trained = expert(&training, &[], 0);
    let mut nodes: Vec<Value> =
        trained["stages"].as_array().unwrap().iter().map(|stage| stage["nodes"].clone()).collect();
    nodes.sort_by_key(ToString::to_string);
    assert_eq!(nodes, [value!([0, 1, 10, 11]), value!([2, 4, 12, 14]), value!([3, 5, 13, 15])]);
    // It heeds no memory, but says what it needs and what it would be worth.
    let full = expert(&inference, &["--memory", "150"], 1);
    let story = full["infeasible"]["explanation"].as_str().unwrap();
    assert!(
        story.contains("has a max-load of 22 ms, but needs 200 B on one accelerator, the limit is 150 B"),
        "{story}"
    );
    assert_eq!(full["infeasible"]["smallest_memory_bytes"], 200.0);
    let full = expert(&inference, &["--memory", "150", "--set", "objective=latency"], 1);
    let story = full["infeasible"]["explanation"].as_str().unwrap();
    assert!(story.contains("takes 66 ms, but needs 200 B on one accelerator, the limit is 150 B"), "{story}");
    let one = json(&["plan", &inference, "--planner", "placement-one", "--json"], 1);
    let story = one["infeasible"]["explanation"].as_str().unwrap();
    assert!(story.contains("has a max-load of 60 ms, but needs 600 B"), "{story}");
}

#[test]
fn an_experts_split_that_does_not_fit_the_graph_is_refused() {
    let folder = Folder::new();
    let mut graph = branches();
    graph["nodes"][3]["colorClass"] = value!(0);
    let workload = folder.file("branches.json", graph.to_string());
    let planning = ["plan", &workload, "--planner", "placement-expert"];
    let error = refusal(&planning);
    assert!(error.contains("needs the option `split`; give it with --set split=split.json"), "{error}");
    for (split, flags, part) in [
        (
            value!({"fpgas": [{"nodes": [0, 1]}, {"nodes": [2, 3, 4, 5]}]}),
            &[][..],
            "separates colour class 0 at node 3",
        ),
        (value!({"fpgas": [{"nodes": [0, 1]}, {"nodes": [2, 4]}]}), &[], "lists neither node 5 nor another node"),
        (
            value!({"fpgas": [{"nodes": [0, 1]}, {"nodes": [2, 4, 5]}]}),
            &["--devices", "1"],
            "uses 2 accelerators, 1 are allowed",
        ),
    ] {
        let setting = format!("split={}", folder.file("split.json", split.to_string()));
        let error = refusal(&[&planning[..], &["--set", &setting], flags].concat());
        assert!(error.contains("split.json: ") && error.contains(part), "{error}");
    }
    let missing = refusal(&[&planning[..], &["--set", "split=nowhere.json"]].concat());
    assert!(missing.contains("nowhere.json"), "{missing}");
    let on_cpu = folder.file("split.json", value!({"fpgas": [], "cpus": [{"nodes": [0, 1, 2, 3, 4, 5]}]}).to_string());
    let setting = format!("split={on_cpu}");
    let story = json(&[&planning[..], &["--set", &setting, "--cpus", "0", "--json"]].concat(), 1);
    assert!(story["infeasible"]["explanation"].to_string().contains("uses 1 CPU; 0 are allowed"), "{story}");
}

#[test]
fn a_cpu_has_the_number_of_a_cpu() {
    let folder = Folder::new();
    let mut graph = branches();
    graph["maxFPGAs"] = value!(5);
    graph["maxCPUs"] = value!(2);
    let workload = folder.file("branches.json", graph.to_string());
    let mut both = split();
    both["cpus"] = value!([{"nodes": both["fpgas"].as_array_mut().unwrap().pop().unwrap()["nodes"]}]);
    let setting = format!("split={}", folder.file("split.json", both.to_string()));
    for objective in ["latency", "max-load"] {
        let of = format!("objective={objective}");
        let planning = ["plan", &workload, "--planner", "placement-expert", "--set", &setting, "--set", &of, "--json"];
        let planned = json(&planning, 0);
        let at =
            planned["stages"].as_array().unwrap().iter().position(|stage| stage["choices"].to_string().contains("cpu"));
        let at = at.expect("a stage is on a CPU");
        assert_eq!(planned["stages"][at]["devices"], value!([5]));
        let check = |device: u32, flags: &[&str], code| {
            let mut plan = planned.clone();
            plan["stages"][at]["devices"] = value!([device]);
            let file = folder.file("plan.json", plan.to_string());
            json(&[&["check", &workload, &file, "--json"], flags].concat(), code)["violations"].to_string()
        };
        assert_eq!(check(5, &[], 0), "[]");
        assert_eq!(check(6, &[], 0), "[]");
        assert!(check(4, &[], 1).contains("its device 4 is an accelerator"), "{objective}");
        let used = check(0, &[], 1);
        assert!(used.contains("the accelerator of stage") || used.contains("is an accelerator"), "{used}");
        for device in [7, 4_000_000_000] {
            let told = check(device, &[], 1);
            assert!(told.contains("is no device") || told.contains("does not exist"), "{told}");
        }
        // Under other limits the numbers move along.
        assert_eq!(check(5, &["--devices", "8"], 0), "[]");
        assert_eq!(check(5, &["--devices", "3"], 0), "[]");
        // A file that numbers no devices gets the right ones.
        let mut plan = planned.clone();
        plan["stages"].as_array_mut().unwrap().iter_mut().for_each(|stage| stage["devices"] = value!([]));
        let file = folder.file("plan.json", plan.to_string());
        let checked = json(&["check", &workload, &file, "--json"], 0);
        assert_eq!(checked["stages"][at]["devices"], value!([5]));
    }
    let planned = json(&["plan", &workload, "--planner", "placement-expert", "--set", &setting, "--json"], 0);
    let mut plan = planned.clone();
    let at = plan["stages"].as_array().unwrap().iter().position(|stage| stage["devices"][0] == 0).unwrap();
    plan["stages"][at]["devices"] = value!([6]);
    let file = folder.file("plan.json", plan.to_string());
    let told = json(&["check", &workload, &file, "--json"], 1)["violations"].to_string();
    assert!(told.contains("device 6 is a CPU"), "{told}");
}

#[test]
fn no_device_is_invented_for_a_stage_that_lists_none() {
    const MISTRAL: &str = "inputs/mistral-7b-latency.json";
    let folder = Folder::new();
    let mut plan = json(&["plan", MISTRAL, "--planner", "placement-latency-greedy", "--json"], 0);
    plan["stages"][0]["devices"] = value!([]);
    let file = folder.file("plan.json", plan.to_string());
    let text = stdout(&["check", MISTRAL, &file], 1);
    assert!(text.contains("lists 0 devices, must list one") && !text.contains("4294967"), "{text}");
}

#[test]
fn whether_there_are_cpus_counts_for_latency_too() {
    const MISTRAL: &str = "inputs/mistral-7b-latency.json";
    for (cpus, count) in [("0", false), ("3", true)] {
        let output =
            plantui().args(["plan", MISTRAL, "--planner", "placement-latency-greedy", "--cpus", cpus]).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!told.contains("changes nothing here") && !told.contains("ignores"), "{told}");
        assert_eq!(told.contains("does not matter, as long as there is one"), count, "{told}");
    }
}

#[test]
fn devices_are_counted_by_kind_and_only_where_plans_can_use_them() {
    let folder = Folder::new();
    let mut graph = branches();
    graph["maxCPUs"] = value!(4);
    let workload = folder.file("branches.json", graph.to_string());
    for planner in ["piper", "placement-one"] {
        let text = stdout(&["plan", &workload, "--planner", planner, "--memory", "1e9"], 0);
        assert!(text.contains(" of 3 accelerators and 0 of 4 CPUs"), "{text}");
    }
    let text = stdout(&["plan", TINY, "--cpus", "3"], 0);
    assert!(text.contains(" of 4 devices ") || text.contains(" of 4 devices\n"), "{text}");
    assert!(text.contains("--cpus changes nothing about the plan"), "{text}");
    let file = folder.file("plan.json", stdout(&["plan", TINY, "--cpus", "3", "--json"], 0));
    assert!(stdout(&["check", TINY, &file], 0).contains(" of 4 devices"));
}

#[test]
fn latency_asks_for_one_inference() {
    let folder = Folder::new();
    let workload = folder.file("training.json", training().to_string());
    let error = refusal(&["plan", &workload, "--planner", "placement-latency-ip"]);
    assert!(error.contains("training") && error.contains("use the inference graph"), "{error}");
    let error = refusal(&["plan", TINY, "--planner", "placement-latency-greedy"]);
    assert!(error.contains("needs times on accelerators and CPUs"), "{error}");
    let inference = folder.file("branches.json", branches().to_string());
    let error = refusal(&["plan", &inference, "--planner", "placement-latency-ip", "--set", "subgraphs=0"]);
    assert!(error.contains("a whole number from 1 to 64"), "{error}");
    let stopped = json(&["plan", &inference, "--planner", "placement-latency-ip", "--deadline", "1ns", "--json"], 0);
    assert_eq!(stopped["status"], "cancelled");
    assert!(stopped["objective"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn device_numbers_of_a_plan_must_exist_and_differ() {
    let folder = Folder::new();
    let workload = "inputs/branching-cnn-training.json";
    let plan = json(&["plan", workload, "--planner", "placement-dp", "--json"], 0);
    assert!(plan["stages"].as_array().unwrap().len() > 1);
    for (devices, problem) in
        [(value!([1]), "is already used by stage"), (value!([77]), "does not exist"), (value!([]), "must list one")]
    {
        let mut tampered = plan.clone();
        tampered["stages"][0]["devices"] = devices;
        let file = folder.file("tampered.json", tampered.to_string());
        let text = stdout(&["check", workload, &file], 1);
        assert!(text.contains(problem), "{text}");
    }
}

#[test]
fn without_cpus_no_latency_plan_uses_one() {
    let workload = "inputs/mistral-7b-latency.json";
    let plan = |planner: &str, settings: &[&str]| {
        json(&[&["plan", workload, "--planner", planner, "--cpus", "0", "--json"], settings].concat(), 1)
    };
    for (planner, settings) in
        [("placement-latency-greedy", &[][..]), ("placement-latency-ip", &["--set", "rounds=1", "--memory", "1GiB"])]
    {
        let story = plan(planner, settings);
        assert_eq!(story["status"], "infeasible", "{story}");
        assert!(story["infeasible"]["explanation"].as_str().unwrap().contains("--cpus 1"), "{story}");
    }
}

/// A graph of nodes in layers, each reading two of the layer before; layers of one make a chain.
fn layers(nodes: usize, width: usize) -> Arc<Workload> {
    let mut state = 7u64;
    let mut draw = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let node = |id: usize, draw: &mut dyn FnMut(usize) -> usize| {
        let (cpu, accelerator) = (500 + draw(500), 100 + draw(100));
        value!({"id": id, "supportedOnFpga": true, "cpuLatency": cpu, "fpgaLatency": accelerator, "isBackwardNode": false,
            "size": 100})
    };
    let list: Vec<Value> = (0..nodes).map(|id| node(id, &mut draw)).collect();
    let costs: Vec<usize> = (0..nodes).map(|_| 1 + draw(50)).collect();
    let mut edges = vec![];
    for id in width..nodes {
        let layer = (id / width - 1) * width;
        let mut from = [layer + draw(width), layer + draw(width)].to_vec();
        from.dedup();
        edges.extend(from.into_iter().map(|from| value!({"sourceId": from, "destId": id, "cost": costs[from]})));
    }
    let file = value!({"maxSizePerFPGA": 100 * nodes / 4, "maxFPGAs": 6, "maxCPUs": 1, "nodes": list, "edges": edges});
    let text = serde_json::to_vec(&file).unwrap();
    Arc::new(workload::load_bytes(&text, "layers.json", "layers").unwrap_or_else(|error| panic!("{error}")))
}

fn problem(id: &str, workload: &Arc<Workload>, settings: &[&str]) -> (&'static dyn Planner, Problem) {
    let planner = planner::find(id).unwrap();
    let limits = family::resolve(workload, &GivenLimits::default()).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().copied()).unwrap();
    (planner, Problem { workload: workload.clone(), limits, options })
}

#[test]
fn however_large_a_graph_there_is_a_plan_before_any_search() {
    let planners = [
        "placement-dp",
        "placement-dpl",
        "placement-pipedream",
        "placement-ip",
        "placement-local-search",
        "placement-multilevel",
        "placement-latency-ip",
        "placement-latency-dp",
        "placement-latency-greedy",
    ];
    let stopped = Search::default();
    stopped.cancel();
    for width in [1, 8] {
        let graph = layers(20_000, width);
        for id in planners {
            // PipeDream merges what branches, and then nothing may fit.
            if id == "placement-pipedream" && width > 1 {
                continue;
            }
            let (planner, problem) = problem(id, &graph, &[]);
            let outcome = planner.plan(&problem, &stopped.part(None));
            let plan = outcome.plan.as_ref().unwrap_or_else(|| panic!("{id}, {width} wide: {:?}", outcome.infeasible));
            let score = plantui::family::check(&graph, &problem.limits, plan);
            assert!(score.is_valid(), "{id}: {}", score.violations[0]);
            assert!((score.value - outcome.objective.unwrap()).abs() <= 1e-9 * score.value, "{id}");
            let bound = outcome.lower_bound.unwrap_or_else(|| panic!("{id} tells no bound"));
            assert!(bound > 0.0 && bound <= score.value, "{id}: {bound} above {}", score.value);
            if !id.contains("latency") && id != "placement-local-search" {
                assert!(score.value <= 1.5 * bound, "{id}, {width} wide: {} is far above {bound}", score.value);
            }
        }
    }
}

#[test]
fn a_chain_of_ten_thousand_nodes_is_planned_with_proof() {
    let (planner, problem) = problem("placement-dp", &layers(10_000, 1), &[]);
    let outcome = planner.plan(&problem, &Search::default());
    assert_eq!((outcome.status, outcome.objective), (Status::Optimal, outcome.lower_bound));
}

#[test]
fn threads_change_no_placement() {
    let graph = layers(60, 4);
    for (id, settings) in [
        ("placement-dp", &[][..]),
        ("placement-dpl", &[]),
        ("placement-local-search", &["restarts=20"]),
        ("placement-multilevel", &["restarts=6"]),
        ("placement-latency-ip", &["rounds=0"]),
        ("placement-latency-dp", &[]),
    ] {
        let (planner, problem) = problem(id, &graph, settings);
        let planned = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut outcome = pool.install(|| planner.plan(&problem, &Search::new(None, 3)));
            outcome.statistics.seconds = 0.0;
            outcome
        };
        assert_eq!(planned(1), planned(4), "{id}");
    }
}

/// Nodes of these sizes in a row, on two accelerators of 0.9 B without a CPU.
fn tenths(sizes: &[f64]) -> Value {
    let node = |(id, size): (usize, &f64)| {
        value!({"id": id, "supportedOnFpga": true, "cpuLatency": 50.0, "fpgaLatency": 2.0, "isBackwardNode": false,
            "size": size})
    };
    let edges = (1..sizes.len()).map(|to| value!({"sourceId": to - 1, "destId": to, "cost": 1.0}));
    value!({"maxSizePerFPGA": 0.9, "maxFPGAs": 2, "maxCPUs": 0,
        "nodes": sizes.iter().enumerate().map(node).collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()})
}

#[test]
fn an_accelerator_that_is_just_full_is_planned_and_confirmed() {
    let folder = Folder::new();
    let workload = folder.file("tenths.json", tenths(&[0.1, 0.3, 0.2, 0.1, 0.2, 0.3, 0.2, 0.1, 0.3]).to_string());
    for planner in ["placement-dp", "placement-dpl", "placement-pipedream", "placement-ip", "placement-multilevel"] {
        let planned = json(&["plan", &workload, "--planner", planner, "--json"], 0);
        let bytes: Vec<f64> =
            planned["stages"].as_array().unwrap().iter().map(|stage| stage["memory_bytes"].as_f64().unwrap()).collect();
        assert!(bytes.iter().all(|bytes| (bytes - 0.9).abs() < 1e-9), "{planner}: {bytes:?}");
        let file = folder.file("plan.json", planned.to_string());
        stdout(&["check", &workload, &file], 0);
    }
}

#[test]
fn who_heeds_memory_is_not_said_not_to() {
    let folder = Folder::new();
    let workload = folder.file("tenths.json", tenths(&[0.6, 0.6, 0.6]).to_string());
    for (planner, settings) in [
        ("placement-multilevel", &[][..]),
        ("placement-multilevel", &["--set", "objective=latency"]),
        ("placement-latency-greedy", &[]),
    ] {
        let refused = json(&[&["plan", &workload, "--planner", planner, "--json"], settings].concat(), 1);
        assert!(!refused.to_string().contains("ignores"), "{refused}");
    }
    let refused = json(&["plan", &workload, "--planner", "placement-dp", "--json"], 1);
    let story = refused["infeasible"]["explanation"].as_str().unwrap();
    assert!(story.contains("2 B each would be enough, and one byte less would not"), "{story}");
}
