//! Every lint rule of device placement fires where it should and is silent where it should not.

use plantui::workload::{
    self, Workload,
    lint::{self, Severity},
};
use serde_json::{Value, json};

use crate::lint::positions;

/// A training graph with nothing to find: forward 0 -> 1 -> 2, backward 5 -> 4 -> 3, classes by layer.
fn sound() -> Value {
    let node = |id: i64| {
        let layer = if id < 3 { id } else { id - 3 };
        json!({"id": id, "name": format!("n{id}"), "supportedOnFpga": 1, "cpuLatency": 40.0, "fpgaLatency": 4.0,
               "isBackwardNode": i64::from(id >= 3), "size": 1e8, "colorClass": layer})
    };
    // What the last layer hands to its own backward part is never sent.
    let edge = |u: i64, v: i64| json!({"sourceId": u, "destId": v, "cost": if u == 2 { 0.0 } else { 1.0 }});
    json!({
        "maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 1e9,
        "nodes": (0..6).map(node).collect::<Vec<_>>(),
        "edges": [edge(0, 1), edge(1, 2), edge(2, 5), edge(5, 4), edge(4, 3), edge(0, 3), edge(1, 4)],
    })
}

fn load(value: &Value) -> Workload {
    workload::load_bytes(value.to_string().as_bytes(), "w.json", "w").unwrap_or_else(|error| panic!("{error}"))
}

/// Rule, severity, nodes and text of every finding after an edit.
fn found(edit: impl Fn(&mut Value)) -> Vec<(&'static str, Severity, Vec<usize>, String)> {
    let mut value = sound();
    edit(&mut value);
    let all = lint::lint(&load(&value));
    all.into_iter().map(|f| (f.rule, f.severity, positions(&f), f.what)).collect()
}

/// The only finding after an edit.
fn only(edit: impl Fn(&mut Value)) -> (&'static str, Severity, Vec<usize>, String) {
    let mut all = found(edit);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn set(value: &mut Value, node: usize, field: &str, new: impl Into<Value>) {
    value["nodes"][node][field] = new.into();
}

#[test]
fn a_sound_graph_has_no_findings() {
    assert_eq!(found(|_| ()), []);
}

#[test]
fn nodes_that_no_accelerator_runs() {
    let (rule, severity, nodes, _) = only(|w| set(w, 1, "supportedOnFpga", 0));
    assert_eq!((rule, severity, nodes), ("unsupported", Severity::Note, vec![1]));
    let (rule, severity, _, what) = only(|w| {
        set(w, 1, "supportedOnFpga", false);
        w["maxCPUs"] = json!(0);
    });
    assert_eq!((rule, severity), ("unsupported", Severity::Error));
    assert!(what.contains("allows no CPU"), "{what}");
}

#[test]
fn classes_larger_than_an_accelerator() {
    let large = |w: &mut Value| set(w, 1, "size", 9.5e8);
    let (rule, severity, nodes, what) = only(large);
    assert_eq!((rule, severity, nodes), ("memory-too-large", Severity::Warning, vec![1, 4]));
    assert!(what.contains("up to 1.05 GB, more than an accelerator's 1 GB"), "{what}");
    let (_, severity, ..) = only(|w| {
        large(w);
        w["maxCPUs"] = json!(0);
    });
    assert_eq!(severity, Severity::Error);
    assert_eq!(found(|w| set(w, 1, "size", 9e8)), [], "exactly what an accelerator holds");
}

#[test]
fn graphs_larger_than_all_accelerators() {
    let small = |w: &mut Value| w["maxSizePerFPGA"] = json!(2.5e8);
    let (rule, severity, nodes, what) = only(small);
    assert_eq!((rule, severity, nodes), ("memory-too-small", Severity::Warning, vec![]));
    assert!(what.contains("need 600 MB together, 2 accelerators of 250 MB hold 500 MB"), "{what}");
    let (_, severity, ..) = only(|w| {
        small(w);
        w.as_object_mut().unwrap().remove("maxCPUs");
    });
    assert_eq!(severity, Severity::Error, "a file that names no CPUs allows none");
}

#[test]
fn accelerators_slower_than_cpus() {
    let (rule, severity, nodes, _) = only(|w| set(w, 2, "cpuLatency", 3.0));
    assert_eq!((rule, severity, nodes), ("slower-than-cpu", Severity::Note, vec![2]));
    let (rule, severity, nodes, what) = only(|w| {
        for node in 0..6 {
            set(w, node, "cpuLatency", 1.5);
        }
    });
    assert_eq!((rule, severity, nodes), ("slower-than-cpu", Severity::Warning, vec![]));
    assert!(what.contains("24 ms on an accelerator and 9 ms on a CPU"), "{what}");
}

#[test]
fn classes_on_a_cycle_are_named() {
    // Layer 2 gets layer 0's class: 0 -> 1 -> 0.
    let (rule, severity, nodes, what) = only(|w| {
        set(w, 2, "colorClass", 0);
        set(w, 5, "colorClass", 0);
    });
    assert_eq!((rule, severity, nodes), ("class-cycle", Severity::Warning, vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(what, "2 colour classes (0, 1) lead into one another");
    // Without classes of their own the nodes in the middle are caught all the same.
    let all = found(|w| {
        set(w, 2, "colorClass", 0);
        set(w, 5, "colorClass", 0);
        for node in [1, 4] {
            w["nodes"][node].as_object_mut().unwrap().remove("colorClass");
        }
    });
    let cycle = all.iter().find(|f| f.0 == "class-cycle").unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(cycle.3, "colour class 0 and 2 nodes without a class lead into one another");
    assert_eq!(cycle.2, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_backward_class_of_its_own_is_placed_by_its_mirror_image() {
    // A class 9 with one backward node, between the backward parts of classes 2 and 0.
    let orphan = |w: &mut Value, before: i64, after: i64| {
        let mut node = w["nodes"][4].clone();
        (node["id"], node["colorClass"]) = (json!(6), json!(9));
        w["nodes"].as_array_mut().unwrap().push(node);
        let edges = w["edges"].as_array_mut().unwrap();
        edges.push(json!({"sourceId": before, "destId": 6, "cost": 1.0}));
        edges.push(json!({"sourceId": 6, "destId": after, "cost": 1.0}));
    };
    let (rule, severity, nodes, _) = only(|w| orphan(w, 5, 3));
    assert_eq!((rule, severity, nodes), ("orphan", Severity::Note, vec![6]));
    // Between two nodes of class 2 it closes a circle with it: 9 comes before and after.
    let all = found(|w| {
        set(w, 3, "colorClass", 2);
        orphan(w, 5, 3);
    });
    let cycle = all.iter().find(|f| f.0 == "class-cycle").unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(
        (cycle.2.as_slice(), cycle.3.as_str()),
        (&[2, 3, 5, 6][..], "2 colour classes (2, 9) lead into one another")
    );
}

#[test]
fn nodes_without_a_class_among_classes() {
    let remove = |w: &mut Value, node: usize| _ = w["nodes"][node].as_object_mut().unwrap().remove("colorClass");
    let all = found(|w| remove(w, 1));
    let expected = [("no-class", Severity::Warning, vec![1]), ("orphan", Severity::Note, vec![4])];
    assert_eq!(all.into_iter().map(|f| (f.0, f.1, f.2)).collect::<Vec<_>>(), expected);
    // A graph without any class says nothing by leaving one out; its backward nodes are then orphans.
    let all = found(|w| (0..6).for_each(|node| remove(w, node)));
    assert_eq!(all.iter().map(|f| (f.0, f.2.clone())).collect::<Vec<_>>(), [("orphan", vec![3, 4, 5])]);
    // In an inference graph it matters less.
    let all = found(|w| {
        w["nodes"].as_array_mut().unwrap().truncate(3);
        w["edges"].as_array_mut().unwrap().truncate(2);
        remove(w, 1);
    });
    assert_eq!(all.iter().map(|f| (f.0, f.1)).collect::<Vec<_>>(), [("no-class", Severity::Note)]);
}

#[test]
fn costs_that_differ_a_little() {
    let (rule, severity, nodes, _) = only(|w| w["edges"][5]["cost"] = json!(1.0000005));
    assert_eq!((rule, severity, nodes), ("uneven-cost", Severity::Note, vec![0]));
    let mut value = sound();
    value["edges"][5]["cost"] = json!(1.0000005);
    assert_eq!(load(&value).placement().unwrap().nodes[0].transfer, 1.0, "the first edge counts");
}

#[test]
fn costs_that_nobody_pays() {
    let (rule, severity, nodes, _) = only(|w| {
        for node in [1, 4] {
            set(w, node, "colorClass", 2);
        }
    });
    // Node 1 is read by nodes 2 and 4, node 5 by node 4: all of class 2.
    assert_eq!((rule, severity, nodes), ("unused-cost", Severity::Note, vec![1, 5]));
}

#[test]
fn nodes_without_time() {
    let (rule, severity, nodes, _) = only(|w| set(w, 0, "fpgaLatency", 0));
    assert_eq!((rule, severity, nodes), ("zero-time", Severity::Warning, vec![0]));
    let (rule, severity, nodes, _) = only(|w| {
        set(w, 0, "fpgaLatency", 0);
        set(w, 0, "cpuLatency", 0);
    });
    assert_eq!((rule, severity, nodes), ("zero-time", Severity::Note, vec![0]));
}

#[test]
fn parts_that_share_no_edge() {
    let (rule, severity, nodes, what) = only(|w| {
        w["nodes"].as_array_mut().unwrap().push(json!({"id": 7, "supportedOnFpga": 1, "cpuLatency": 2.0,
            "fpgaLatency": 1.0, "isBackwardNode": 0, "size": 1.0, "colorClass": 7}));
    });
    assert_eq!((rule, severity, nodes), ("disconnected", Severity::Note, vec![6]));
    assert!(what.contains("the graph has 2 parts"), "{what}");
}

#[test]
fn costs_that_mean_never() {
    let far = |field: &'static str, value: f64| only(move |w| set(w, 1, field, value));
    let (rule, severity, nodes, what) = far("cpuLatency", 5e7);
    assert_eq!((rule, severity, nodes), ("far-apart", Severity::Warning, vec![1]));
    assert!(what.contains("time on a CPU is up to 5e7 ms, 1.2e7 times the 4 ms"), "{what}");
    assert_eq!(found(|w| set(w, 1, "cpuLatency", 4e7)), [], "as much as is not far");
    let (rule, _, nodes, what) = only(|w| {
        for edge in [1, 6] {
            w["edges"][edge]["cost"] = json!(1e30);
        }
    });
    assert_eq!((rule, nodes), ("far-apart", vec![1]));
    assert!(what.starts_with("sending its output is up to"), "{what}");
    // Where no node takes any time on an accelerator it is held against the other costs.
    let all = found(|w| {
        (0..6).for_each(|node| set(w, node, "fpgaLatency", 0.0));
        set(w, 1, "cpuLatency", 1e12);
    });
    let (_, _, nodes, what) = all.iter().find(|finding| finding.0 == "far-apart").expect("it is far");
    assert!(*nodes == [1] && what.contains(" that is usual"), "{all:?}");
    // What is small beside the usual misleads nobody.
    assert_eq!(found(|w| set(w, 1, "cpuLatency", 1e-9)).iter().filter(|f| f.0 == "far-apart").count(), 0);
}
