//! Loading device placements: every rule of the format with its message, and what is read generously.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family,
    planner::{self, Options, Problem, Search, Status},
    run,
    workload::{self, Choice, PlacementNode, Workload},
};
use serde_json::{Value, json};

/// A valid graph of a forward pair and its backward pair.
fn valid() -> Value {
    let node = |id: i64, backward: i64, class: i64| {
        json!({"id": id, "name": format!("n{id}"), "supportedOnFpga": 1, "cpuLatency": 8.0, "fpgaLatency": 2.0,
               "isBackwardNode": backward, "size": 100.0, "colorClass": class, "layerId": class})
    };
    let edge = |u: i64, v: i64, cost: f64| json!({"sourceId": u, "destId": v, "cost": cost});
    json!({
        "maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 400.0,
        "nodes": [node(10, 0, 1), node(20, 0, 2), node(30, 1, 2), node(40, 1, 1)],
        "edges": [edge(10, 20, 0.5), edge(20, 30, 0.25), edge(30, 40, 0.5), edge(10, 40, 0.5)],
    })
}

fn load(value: &Value) -> Result<Workload, String> {
    let text = serde_json::to_string_pretty(value).unwrap();
    workload::load_bytes(text.as_bytes(), "w.json", "w").map_err(|error| error.to_string())
}

/// The message when the value at a JSON pointer is replaced; `null` removes the field.
fn refused(pointer: &str, new: &Value) -> String {
    let mut value = valid();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap();
    match (parent, new) {
        (Value::Object(object), Value::Null) => _ = object.remove(field).unwrap(),
        (Value::Array(list), _) => list[field.parse::<usize>().unwrap()] = new.clone(),
        (parent, _) => parent[field] = new.clone(),
    }
    load(&value).err().unwrap_or_else(|| panic!("{pointer} = {new} was accepted"))
}

#[test]
fn a_valid_file_is_read_exactly() {
    let w = load(&valid()).unwrap();
    assert_eq!(w.format, workload::WorkloadFormat::Placement);
    let limits =
        GivenLimits::default().with(LimitKind::Devices, 2).with(LimitKind::Cpus, 1).with(LimitKind::Memory, 400.0);
    assert_eq!(w.limits, limits);
    let profile = w.placement().unwrap();
    let expected = PlacementNode {
        cpu_time: 8.0,
        accelerator_time: 2.0,
        supported: true,
        backward: true,
        size_bytes: 100.0,
        colour_class: Some(2),
        layer: Some(2),
        transfer: 0.5,
    };
    assert_eq!(profile.nodes[2], expected);
    assert_eq!(w.dag.edges(), [(0, 1), (1, 2), (2, 3), (0, 3)]);
    assert_eq!(profile.nodes.iter().map(|n| n.transfer).collect::<Vec<_>>(), [0.5, 0.25, 0.5, 0.0]);
}

#[test]
fn every_rule_has_its_sentence() {
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/maxFPGAs", json!(-1), "w.json:2: maxFPGAs is -1, must be a whole number from 0 to 10000"),
        ("/maxFPGAs", json!(10001), "w.json:2: maxFPGAs is 10001, must be a whole number from 0 to 10000"),
        ("/maxFPGAs", json!(2.5), "w.json:2: maxFPGAs is 2.5, must be a whole number from 0 to 10000"),
        ("/maxFPGAs", json!("2"), "w.json:2: maxFPGAs is the string \"2\", must be a number"),
        ("/maxCPUs", json!(1.5), "w.json:3: maxCPUs is 1.5, must be a whole number from 0 to 10000"),
        ("/maxSizePerFPGA", json!(-4), "w.json:4: maxSizePerFPGA is -4, must be >= 0"),
        (
            "/maxSizePerFPGA",
            json!(1e31),
            "w.json:4: maxSizePerFPGA is 1e31, must be at most 1e30; nothing computed from it would be finite: correct it",
        ),
        ("/nodes", json!([]), "w.json:5: nodes is empty; a workload needs at least one node"),
        ("/nodes", json!({}), "w.json:5: nodes is an object, must be an array"),
        ("/nodes/1", json!([1]), "w.json:17: nodes[1] is an array, must be an object"),
        ("/nodes/1/id", Value::Null, "w.json:17: nodes[1] lacks the field `id`; add `id`"),
        (
            "/nodes/1/id",
            json!(10),
            "w.json:18: nodes[1].id is 10, which nodes[0] has already; give every node an id of its own",
        ),
        ("/nodes/1/id", json!(1.5), "w.json:18: nodes[1].id is 1.5, must be a whole number"),
        (
            "/nodes/1/supportedOnFpga",
            Value::Null,
            "w.json:17: nodes[1] lacks the field `supportedOnFpga`; add `supportedOnFpga`",
        ),
        (
            "/nodes/1/supportedOnFpga",
            json!(2),
            "w.json:20: nodes[1].supportedOnFpga is the number `2`, must be true, false, 1 or 0",
        ),
        (
            "/nodes/1/isBackwardNode",
            json!(-1),
            "w.json:23: nodes[1].isBackwardNode is the number `-1`, must be true, false, 1 or 0",
        ),
        (
            "/nodes/1/isBackwardNode",
            json!("no"),
            "w.json:23: nodes[1].isBackwardNode is the string \"no\", must be true, false, 1 or 0",
        ),
        ("/nodes/1/cpuLatency", Value::Null, "w.json:17: nodes[1] lacks the field `cpuLatency`; add `cpuLatency`"),
        ("/nodes/1/cpuLatency", json!(-2), "w.json:21: nodes[1].cpuLatency is -2, must be >= 0"),
        ("/nodes/1/fpgaLatency", json!(-0.5), "w.json:22: nodes[1].fpgaLatency is -0.5, must be >= 0"),
        (
            "/nodes/1/fpgaLatency",
            json!("2ms"),
            "w.json:22: nodes[1].fpgaLatency is the string \"2ms\", must be a number",
        ),
        ("/nodes/1/size", json!(-1), "w.json:24: nodes[1].size is -1, must be >= 0"),
        ("/nodes/1/colorClass", json!(0.5), "w.json:25: nodes[1].colorClass is 0.5, must be a whole number"),
        (
            "/nodes/1/colorClass",
            json!(1e16),
            "w.json:25: nodes[1].colorClass is 10000000000000000, larger than the largest id 9e15; give smaller ids",
        ),
        ("/nodes/1/layerId", json!(1.5), "w.json:26: nodes[1].layerId is 1.5, must be a whole number"),
        (
            "/nodes/1/containedSubnodes",
            json!([1, 2]),
            "w.json:27: nodes[1].containedSubnodes marks a node that was contracted already; give the original graph, before contraction",
        ),
        ("/edges", Value::Null, "w.json:1: lacks the field `edges`; add `edges`"),
        ("/edges/1/cost", Value::Null, "w.json:57: edges[1] lacks the field `cost`; add `cost`"),
        ("/edges/1/cost", json!(-1), "w.json:60: edges[1].cost is -1, must be >= 0"),
        (
            "/edges/1/sourceId",
            json!(99),
            "w.json:58: edges[1].sourceId is 99, which is no node's id; add the node or remove the edge",
        ),
        (
            "/edges/1/destId",
            json!(99),
            "w.json:59: edges[1].destId is 99, which is no node's id; add the node or remove the edge",
        ),
        ("/edges/1/destId", json!(20), "w.json:57: edges[1] leads from 20 to itself; remove it"),
        (
            "/edges/3/cost",
            json!(0.75),
            "w.json:70: edges[3].cost is 0.75, but edges[0], out of node 10 too, has 0.5; a node sends one output: write the same cost on all its outgoing edges",
        ),
        (
            "/nodes/3/isBackwardNode",
            json!(0),
            "w.json:62: edges[2] leads from the backward node 30 to the forward node 40; the backward pass follows the forward pass: turn the edge or mend isBackwardNode",
        ),
        (
            "/edges/2/destId",
            json!(20),
            "w.json:62: edges[2] leads from the backward node 30 to the forward node 20; the backward pass follows the forward pass: turn the edge or mend isBackwardNode",
        ),
    ];
    let differing: Vec<String> = cases
        .iter()
        .filter(|(pointer, new, expected)| refused(pointer, new) != *expected)
        .map(|(pointer, new, expected)| {
            format!("{pointer} = {new}\n  wanted {expected}\n  is     {}", refused(pointer, new))
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn a_cycle_is_named_by_ids() {
    let mut value = valid();
    for node in 0..4 {
        value["nodes"][node]["isBackwardNode"] = json!(0);
    }
    value["edges"][3] = json!({"sourceId": 40, "destId": 10, "cost": 0.5});
    let message = load(&value).unwrap_err();
    assert!(message.contains(" lies on a cycle: "), "{message}");
    assert!(["10", "20", "30", "40"].iter().all(|id| message.contains(id)), "{message}");
    assert!(message.ends_with("; a network's graph must be acyclic: remove one of these edges"), "{message}");
}

#[test]
fn a_machine_without_any_device_is_refused() {
    let mut value = valid();
    (value["maxFPGAs"], value["maxCPUs"]) = (json!(0), json!(0));
    let message = load(&value).unwrap_err();
    assert_eq!(message, "w.json:2: maxFPGAs and maxCPUs are both 0; allow at least one device");
}

#[test]
fn what_is_read_generously() {
    let mut value = valid();
    for field in ["name", "size", "colorClass", "layerId"] {
        value["nodes"][0].as_object_mut().unwrap().remove(field);
    }
    value["nodes"][0]["supportedOnFpga"] = json!(false);
    value["nodes"][1]["isBackwardNode"] = json!(0.0);
    value["nodes"][1]["color"] = json!("red");
    value["edges"][0]["size"] = json!(7);
    for field in ["maxFPGAs", "maxCPUs", "maxSizePerFPGA"] {
        value.as_object_mut().unwrap().remove(field);
    }
    value["comment"] = json!("ours");
    let twice = value["edges"][0].clone();
    value["edges"].as_array_mut().unwrap().push(twice);
    let w = load(&value).unwrap();
    assert_eq!(w.limits, GivenLimits::default());
    assert_eq!(w.unknown_fields, ["comment"]);
    assert_eq!(w.dag.edges().len(), 4, "an edge given twice is one");
    let first = &w.placement().unwrap().nodes[0];
    assert_eq!((first.size_bytes, first.colour_class, first.layer, first.supported), (0.0, None, None, false));
    assert_eq!(w.nodes[0].label(), "node 10");
}

#[test]
fn a_file_may_allow_cpus_alone() {
    let mut value = valid();
    (value["maxFPGAs"], value["maxCPUs"]) = (json!(0), json!(2));
    let w = load(&value).unwrap();
    assert_eq!((w.limits.devices(), w.limits.cpus()), (Some(0), Some(2)));
    let limits = family::resolve(&w, &GivenLimits::default()).unwrap();
    let workload = Arc::new(w);
    let mut planned = 0;
    for planner in planner::all().iter().filter(|planner| planner.can_plan(&workload).is_ok()) {
        let options = Options::defaults(planner.options());
        let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
        let (outcome, _) = run::plan(*planner, &problem, &Search::default()).unwrap();
        if let Some(plan) = &outcome.plan {
            assert!(plan.stages.iter().flat_map(|stage| &stage.choices).all(|choice| *choice == Choice::Cpu));
            planned += 1;
        } else {
            assert_eq!(outcome.status, Status::Infeasible, "{}", planner.info().id);
        }
        if planner.info().id == "placement-dp" {
            assert_eq!((outcome.status, outcome.objective), (Status::Optimal, Some(16.0)));
        }
    }
    assert!(planned >= 2, "the DP and its linearised form plan on CPUs");
}

#[test]
fn kinds_of_accelerators_are_read_or_refused() {
    let kind =
        |kind: &str, count: f64, speed: f64| json!({"kind": kind, "count": count, "speed": speed, "maxSize": 400.0});
    let with = |kinds: Value, alike: bool| {
        let mut value = valid();
        value["accelerators"] = kinds;
        if !alike {
            value.as_object_mut().unwrap().retain(|field, _| field != "maxFPGAs" && field != "maxSizePerFPGA");
        }
        load(&value)
    };
    let read = with(json!([kind("fast", 2.0, 2.0), kind("slow", 3.0, 1.0)]), false).unwrap();
    let kinds = &read.placement().unwrap().kinds;
    assert_eq!((kinds[1].id.as_str(), kinds[1].count, kinds[0].speed), ("slow", 3, 2.0));
    assert_eq!(read.limits.devices(), Some(5));
    let refused = [
        (json!([kind("fast", 2.0, 2.0)]), true, "maxFPGAs"),
        (json!([kind("fast", 0.0, 2.0)]), false, "accelerators[0].count is 0"),
        (json!([kind("fast", 1.5, 2.0)]), false, "accelerators[0].count is 1.5"),
        (json!([kind("fast", 2.0, 0.0)]), false, "accelerators[0].speed is 0"),
        (json!([kind("7", 2.0, 1.0)]), false, "accelerators[0].kind is `7`"),
        (json!([kind("a", 2.0, 1.0), kind("A", 2.0, 1.0)]), false, "accelerators[1].kind is `A`"),
        (json!([{"kind": "a", "count": 1, "maxsize": 4}]), false, "maxsize"),
        (json!("many"), false, "accelerators"),
    ];
    for (kinds, alike, told) in refused {
        let error = with(kinds.clone(), alike).unwrap_err();
        assert!(error.contains(told), "{kinds}: {error}");
    }
}
