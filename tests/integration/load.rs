//! Loading workloads: every rule of Piper's format with its message, what is read generously, and files that are none.

use std::{fmt::Write as _, fs};

use crate::common::reference;
use plantui::{
    cluster::{GivenLimits, LimitKind},
    workload::{self, NodeId, NodeIndex, Workload},
};
use serde_json::{Value, json};

/// A valid workload of three nodes in a row, two degrees at the middle one.
fn valid() -> Value {
    let mode = |id: &str, before: Value, after: Value| {
        json!({"id": id, "timePerSample": 0.5, "parameterSize": 10.0, "memoryUsageA": 2.0, "memoryUsageB": 1.0,
               "syncTimeFw": before, "syncTimeBw": after})
    };
    json!({
        "maxDevices": 4, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 8,
        "nodes": [
            {"id": 10, "name": "first", "TMPCs": {"1": [mode("vanilla", json!({}), json!({"20": 0.0}))]}},
            {"id": 20, "TMPCs": {
                "1": [mode("vanilla", json!({"10": 0.0}), json!({"30": 0.0})), mode("recomp", json!({"10": 0}), json!({"30": 0}))],
                "2": [mode("vanilla", json!({"10": 5.0}), json!({"30": 6.0}))]}},
            {"id": 30, "name": "last", "TMPCs": {"1": [mode("vanilla", json!({"20": 0.0}), json!({}))]}}
        ],
        "edges": [
            {"sourceId": 10, "destId": 20, "communicationCost": 100.0},
            {"sourceId": 20, "destId": 30, "communicationCost": 200.0}
        ]
    })
}

fn load(text: &str) -> Result<Workload, String> {
    workload::load_bytes(text.as_bytes(), "w.json", "w").map_err(|error| error.to_string())
}

/// The valid workload after an edit, printed with two spaces: line numbers below count that text.
fn edited(edit: impl Fn(&mut Value)) -> Result<Workload, String> {
    let mut value = valid();
    edit(&mut value);
    load(&serde_json::to_string_pretty(&value).unwrap())
}

/// The message when the value at a JSON pointer is replaced; `null` removes the field.
fn refused(pointer: &str, new: &Value) -> String {
    let result = edited(|value| {
        if new.is_null() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field).unwrap();
        } else if let Some(place) = value.pointer_mut(pointer) {
            *place = new.clone();
        } else {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap()[field] = new.clone();
        }
    });
    result.err().unwrap_or_else(|| panic!("{pointer} = {new} was accepted"))
}

#[test]
fn a_valid_file_is_read_exactly() {
    let w = load(&valid().to_string()).unwrap();
    assert_eq!((w.name.as_str(), w.source.as_str(), w.format), ("w", "w.json", workload::WorkloadFormat::Piper));
    assert_eq!(w.nodes.iter().map(|n| n.id.0).collect::<Vec<_>>(), [10, 20, 30]);
    assert_eq!(w.nodes.iter().map(workload::Node::label).collect::<Vec<_>>(), ["first", "node 20", "last"]);
    assert_eq!(w.dag.edges(), [(0, 1), (1, 2)]);
    let limits = GivenLimits::default()
        .maybe(LimitKind::Cpus, None::<f64>)
        .with(LimitKind::Devices, 4)
        .with(LimitKind::Memory, 1e9)
        .with(LimitKind::Microbatches, 8)
        .with(LimitKind::Bandwidth, 1e9)
        .maybe(LimitKind::Flops, None::<f64>)
        .maybe(LimitKind::Batch, None::<f64>);
    assert_eq!(w.limits, limits);
    let profile = w.piper().unwrap();
    assert_eq!(profile.edge_bytes, [100.0, 200.0]);
    assert_eq!(profile.degrees(), [1, 2]);
    let mode = &profile.nodes[1].modes(2).unwrap()[0];
    assert_eq!((mode.time_s, mode.parameters, mode.memory_a, mode.memory_b), (0.5, 10.0, 2.0, 1.0));
    assert_eq!((mode.sync_in.as_slice(), mode.sync_out.as_slice()), (&[5.0][..], &[6.0][..]));
    assert_eq!((w.index_of(NodeId(30)), w.index_of(NodeId(1))), (Some(NodeIndex::new(2)), None));
}

#[test]
fn every_rule_has_its_sentence() {
    let mode = "/nodes/1/TMPCs/2/0";
    let cases: Vec<(String, Value, &str)> = vec![
        ("/maxDevices".into(), json!(0), "w.json:2: maxDevices is 0, must be a whole number from 1 to 10000"),
        ("/maxDevices".into(), json!(10001), "w.json:2: maxDevices is 10001, must be a whole number from 1 to 10000"),
        ("/maxDevices".into(), json!(2.5), "w.json:2: maxDevices is 2.5, must be a whole number from 1 to 10000"),
        ("/maxMemoryPerDevice".into(), json!(0), "w.json:3: maxMemoryPerDevice is 0, must be at least 1e-9"),
        ("/bandwidth".into(), json!(-1.5), "w.json:4: bandwidth is -1.5, must be at least 1e-9"),
        ("/mbsInBatch".into(), json!(0), "w.json:5: mbsInBatch is 0, must be a whole number from 1 to 1000000"),
        (
            "/maxBatchSize".into(),
            json!(16),
            "w.json:106: maxBatchSize is 16, but mbsInBatch is 8; both name the microbatches in a batch: keep one",
        ),
        ("/bandwidth".into(), json!("25GB/s"), "w.json:4: bandwidth is the string \"25GB/s\", must be a number"),
        ("/nodes".into(), json!([]), "w.json:6: nodes is empty; a workload needs at least one node"),
        ("/nodes".into(), json!({}), "w.json:6: nodes is an object, must be an array"),
        ("/nodes/1/id".into(), Value::Null, "w.json:26: nodes[1] lacks the field `id`; add `id`"),
        (
            "/nodes/1/id".into(),
            json!(10),
            "w.json:27: nodes[1].id is 10, which nodes[0] has already; give every node an id of its own",
        ),
        ("/nodes/1/id".into(), json!(1.5), "w.json:27: nodes[1].id is 1.5, must be a whole number"),
        (
            "/nodes/1/TMPCs".into(),
            json!({}),
            "w.json:28: nodes[1].TMPCs has no mode for any tensor-parallel degree; give the node at least one mode, such as `\"1\": [{\"id\": \"vanilla\", ..}]`",
        ),
        (
            "/nodes/1/TMPCs/0".into(),
            json!([]),
            "w.json:28: nodes[1].TMPCs has the key `0`; keys are tensor-parallel degrees, whole numbers from 1 to 10000",
        ),
        (
            "/nodes/1/TMPCs/10001".into(),
            json!([]),
            "w.json:28: nodes[1].TMPCs has the key `10001`; keys are tensor-parallel degrees, whole numbers from 1 to 10000",
        ),
        (
            "/nodes/1/TMPCs/two".into(),
            json!([]),
            "w.json:28: nodes[1].TMPCs has the key `two`; keys are tensor-parallel degrees, whole numbers from 1 to 10000",
        ),
        (
            "/nodes/1/TMPCs/02".into(),
            json!([]),
            "w.json:28: nodes[1].TMPCs has degree 2 twice; keep one list of modes per degree",
        ),
        (
            "/nodes/1/TMPCs/1/1/id".into(),
            json!("vanilla"),
            "w.json:44: nodes[1].TMPCs.1[1].id is `vanilla`, which nodes[1].TMPCs.1[0] has already; give every mode of a degree an id of its own",
        ),
        (
            format!("{mode}/id"),
            json!(""),
            "w.json:59: nodes[1].TMPCs.2[0].id is empty; name the mode, for example `vanilla`",
        ),
        (
            format!("{mode}/timePerSample"),
            json!(-1),
            "w.json:60: nodes[1].TMPCs.2[0].timePerSample is -1, must be >= 0",
        ),
        (
            format!("{mode}/parameterSize"),
            json!(-0.5),
            "w.json:61: nodes[1].TMPCs.2[0].parameterSize is -0.5, must be >= 0",
        ),
        (format!("{mode}/memoryUsageA"), json!(-2), "w.json:62: nodes[1].TMPCs.2[0].memoryUsageA is -2, must be >= 0"),
        (format!("{mode}/memoryUsageB"), json!(-2), "w.json:63: nodes[1].TMPCs.2[0].memoryUsageB is -2, must be >= 0"),
        (
            format!("{mode}/memoryUsageB"),
            Value::Null,
            "w.json:58: nodes[1].TMPCs.2[0] lacks the field `memoryUsageB`; add `memoryUsageB`",
        ),
        (
            format!("{mode}/timePerSample"),
            json!("fast"),
            "w.json:60: nodes[1].TMPCs.2[0].timePerSample is the string \"fast\", must be a number",
        ),
        (
            format!("{mode}/timePerSample"),
            json!(true),
            "w.json:60: nodes[1].TMPCs.2[0].timePerSample is the boolean `true`, must be a number",
        ),
        (
            format!("{mode}/timePerSample"),
            json!([1]),
            "w.json:60: nodes[1].TMPCs.2[0].timePerSample is an array, must be a number",
        ),
        (
            format!("{mode}/forwardTimePerSample"),
            json!(0.75),
            "w.json:70: nodes[1].TMPCs.2[0].forwardTimePerSample is 0.75, more than timePerSample 0.5; timePerSample is forward and backward together",
        ),
        (
            format!("{mode}/syncTimeFw"),
            json!({}),
            "w.json:64: nodes[1].TMPCs.2[0].syncTimeFw lacks the predecessor 10; add `\"10\": bytes` (0 if nothing is gathered)",
        ),
        (
            format!("{mode}/syncTimeBw"),
            json!({}),
            "w.json:67: nodes[1].TMPCs.2[0].syncTimeBw lacks the successor 30; add `\"30\": bytes` (0 if nothing is gathered)",
        ),
        (
            format!("{mode}/syncTimeFw"),
            json!({"10": 1, "30": 1}),
            "w.json:64: nodes[1].TMPCs.2[0].syncTimeFw names `30`, which is no predecessor of the node; keys are exactly the ids of the node's predecessors",
        ),
        (
            format!("{mode}/syncTimeBw"),
            json!({"30": 1, "x": 1}),
            "w.json:67: nodes[1].TMPCs.2[0].syncTimeBw names `x`, which is no successor of the node; keys are exactly the ids of the node's successors",
        ),
        (
            format!("{mode}/syncTimeFw"),
            json!({"10": -1}),
            "w.json:65: nodes[1].TMPCs.2[0].syncTimeFw.10 is -1, must be >= 0",
        ),
        (
            format!("{mode}/syncTimeFw"),
            json!({"10": 1, "010": 1}),
            "w.json:64: nodes[1].TMPCs.2[0].syncTimeFw names 010 twice; keep one",
        ),
        ("/edges".into(), Value::Null, "w.json:1: lacks the field `edges`; add `edges`"),
        (
            "/edges/1/destId".into(),
            json!(31),
            "w.json:102: edges[1].destId is 31, which is no node's id; add the node or remove the edge",
        ),
        ("/edges/1/sourceId".into(), json!(0.5), "w.json:101: edges[1].sourceId is 0.5, must be a whole number"),
        ("/edges/1/communicationCost".into(), json!(-1), "w.json:103: edges[1].communicationCost is -1, must be >= 0"),
        (
            "/edges/1".into(),
            json!({"sourceId": 10, "destId": 20, "communicationCost": 1}),
            "w.json:100: edges[1] from 10 to 20 repeats edges[0]; merge the two into one edge with the sum of their bytes",
        ),
        (
            "/edges/1".into(),
            json!({"sourceId": 20, "destId": 20, "communicationCost": 1}),
            "w.json:100: edges[1] lies on a cycle: 20 -> 20; a network's graph must be acyclic: remove one of these edges",
        ),
        (
            "/edges/1".into(),
            json!({"sourceId": 20, "destId": 10, "communicationCost": 1}),
            "w.json:100: edges[1] lies on a cycle: 20 -> 10 -> 20; a network's graph must be acyclic: remove one of these edges",
        ),
    ];
    let mut wrong = String::new();
    for (pointer, new, expected) in cases {
        let found = refused(&pointer, &new);
        if found != expected {
            writeln!(wrong, "{pointer} = {new}\n  found    {found}\n  expected {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn what_is_read_generously() {
    let limits = |edit: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        edited(|value| edit(value.as_object_mut().unwrap())).unwrap().limits
    };
    let other_name = limits(&|map| {
        let batch = map.remove("mbsInBatch").unwrap();
        map.insert("maxBatchSize".into(), batch);
    });
    assert_eq!(other_name.microbatches(), Some(8));
    let both = limits(&|map| drop(map.insert("maxBatchSize".into(), json!(8))));
    assert_eq!(both.microbatches(), Some(8));
    let none = limits(&|map| {
        for field in ["maxDevices", "maxMemoryPerDevice", "bandwidth", "mbsInBatch"] {
            map.remove(field);
        }
    });
    assert_eq!(none, GivenLimits::default());

    let more_modes = edited(|value| {
        let modes = value["nodes"][0]["TMPCs"]["1"].as_array_mut().unwrap();
        for i in 0..5 {
            let mut mode = modes[0].clone();
            mode["id"] = json!(format!("mode {i}"));
            modes.push(mode);
        }
    });
    assert_eq!(more_modes.unwrap().piper().unwrap().nodes[0].modes(1).unwrap().len(), 6);

    let single = edited(|value| {
        value["edges"] = json!([]);
        let mut node = value["nodes"][0].clone();
        node["TMPCs"]["1"][0]["syncTimeBw"] = json!({});
        value["nodes"] = json!([node]);
    })
    .unwrap();
    assert_eq!((single.nodes.len(), single.dag.edges().len()), (1, 0));

    let empty_degree = edited(|value| value["nodes"][1]["TMPCs"]["4"] = json!([])).unwrap();
    assert_eq!(empty_degree.piper().unwrap().degrees(), [1, 2]);

    let unknown = edited(|value| {
        value["comment"] = json!({"any": ["thing"]});
        value["nodes"][0]["kind"] = json!("conv");
        value["edges"][0]["weight"] = json!(null);
        value["nodes"][0]["TMPCs"]["1"][0]["note"] = json!([1]);
    })
    .unwrap();
    assert_eq!(unknown.unknown_fields, ["comment"]);
    assert_eq!(unknown.piper(), load(&valid().to_string()).unwrap().piper());

    let provenance = edited(|value| {
        value["provenance"] = json!("plantui generate \u{1b}[31mx");
        value["assumptions"] = json!(["one\n", "two"]);
    })
    .unwrap()
    .provenance
    .unwrap();
    assert_eq!((provenance.made_by.as_str(), provenance.assumptions.len()), ("plantui generate [31mx", 2));
    let foreign = edited(|value| value["provenance"] = json!({"tool": "another"})).unwrap();
    assert_eq!(foreign.provenance, None);

    let forward = edited(|value| value["nodes"][1]["TMPCs"]["2"][0]["forwardTimePerSample"] = json!(0.25)).unwrap();
    assert_eq!(forward.piper().unwrap().nodes[1].modes(2).unwrap()[0].forward_s, Some(0.25));

    // Names of other formats that are no fields.
    for (schema, provenance) in [("mine", "plantui.sweep/1"), ("mine", "plantui.training/1")] {
        let said = edited(|value| {
            value["schema"] = json!(schema);
            value["provenance"] = json!(provenance);
            value["nodes"][0]["name"] = json!("fpgaLatency");
        });
        assert!(said.unwrap().piper().is_some(), "{provenance}");
    }
    let control = valid().to_string().replace("first", "fi\u{1}rst");
    assert!(load(&control).unwrap_err().contains("control character"), "{:?}", load(&control));

    let marked = format!("\u{feff}{}\r\n", valid());
    assert_eq!(load(&marked).unwrap().nodes.len(), 3);
}

#[test]
fn what_is_no_workload_is_named() {
    let hint = "plantui reads JSON of Piper or device placement (an object with `nodes` and `edges`), operator graphs (`operators`) and PipeDream's graph.txt";
    let model = "it holds no times: `plantui generate config.json` makes a workload of a model's Hugging Face configuration, and `python -m plantui.profile` measures a module";
    let piper = "plantui plans Piper workloads (nodes with `TMPCs`)";
    let cases: Vec<(&[u8], String)> = vec![
        (b"", "w.json: is empty; give a workload, or make one with `plantui generate bert-32`".into()),
        (b" \n\t ", "w.json: is empty; give a workload, or make one with `plantui generate bert-32`".into()),
        (b"PK\x03\x04rest", "w.json: is a zip archive; unpack it first".into()),
        (b"{\"nodes\"\0\0", "w.json: is binary data, not a workload; give the JSON profile of a network".into()),
        (b"\x80\x04K.", format!("w.json: is a Python pickle, not a workload; {model}")),
        (b"{\n\n\"nodes\": \"\xff\"}", "w.json:3: is not text in UTF-8; save it as JSON in UTF-8".into()),
        (b"[1, 2]", format!("w.json: is not a workload: it looks like a JSON array; {hint}")),
        (b"node1 -- Input -- forward_compute_time=0.00, backward_compute_time=0.00", "w.json:1: has 2 figures where a node has 4, in `forward_compute_time=0.00, backward_compute_time=0.00`; write `ID -- NAME -- forward_compute_time=.., backward_compute_time=.., activation_size=.., parameter_size=..`, and ` -- stage_id=N` after it if you like".into()),
        (b"nodes:\n  - id: 1\n", format!("w.json: is not a workload: it looks like YAML; {hint}")),
        (b"digraph g { a -> b }", format!("w.json: is not a workload: it looks like a Graphviz graph; {hint}")),
        (b"<html>", format!("w.json: is not a workload: it looks like an HTML page; {hint}")),
        (b"import torch\n", format!("w.json: is not a workload: it looks like Python source; {hint}")),
        (b"id,time,memory\n", format!("w.json: is not a workload: it looks like CSV; {hint}")),
        (b"devices = 4\n", format!("w.json: is not a workload: it looks like TOML; {hint}")),
        (b"Hello", format!("w.json: is not a workload: it looks like plain text; {hint}")),
        (b"{\"maxFPGAs\": 6, \"nodes\": []}", "w.json:1: lacks the field `edges`; add `edges`".into()),
        (b"{\"model_type\": \"llama\"}", "w.json: hidden_size is missing; add hidden_size, a whole number".into()),
        (b"{\"schema\": \"plantui.plan/1\", \"stages\": []}", format!("w.json: looks like a plan, not a workload: `plantui check WORKLOAD PLAN` scores it; {piper}")),
        (b"{\"schema\": \"plantui.compare/1\", \"plans\": []}", format!("w.json: looks like what `plantui compare --json` wrote, not a workload: give the workload, and plans of `plantui plan --json` to compare with; {piper}")),
        (b"{\"schema\": \"plantui.explain/1\", \"stages\": []}", format!("w.json: looks like what `plantui explain --json` wrote, not a workload: give the workload that is explained; {piper}")),
        (b"{\"stages\": []}", format!("w.json: looks like a plan in Piper's result format, not a workload: `plantui check WORKLOAD PLAN` scores it; {piper}")),
        (b"{\"traceEvents\": []}", format!("w.json: looks like a Chrome trace; {piper}")),
        (b"{}", "w.json:1: lacks the field `nodes`; add `nodes`".into()),
    ];
    let mut wrong = String::new();
    for (bytes, expected) in cases {
        let found = workload::load_bytes(bytes, "w.json", "w").expect_err("no workload").to_string();
        if found != expected {
            writeln!(wrong, "{}\n  found    {found}\n  expected {expected}", String::from_utf8_lossy(bytes)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn broken_json_is_placed() {
    let text = serde_json::to_string_pretty(&valid()).unwrap();
    let replaced = |from: &str, to: &str| load(&text.replacen(from, to, 1)).unwrap_err();
    let mut found = vec![
        replaced("0.5", "NaN"),
        replaced("0.5", "-Infinity"),
        replaced("0.5", "1e999"),
        replaced("\"name\": \"first\",", "\"name\": \"first\""),
        replaced("\"maxDevices\": 4,", "\"maxDevices\": 4, \"maxDevices\": 5,"),
        replaced("\"timePerSample\": 0.5,", "\"timePerSample\": 0.5, \"timePerSample\": 0.5,"),
        load(&format!("{text} {{}}")).unwrap_err(),
        load(&format!("{{\"nodes\": {}", "[".repeat(100_000))).unwrap_err(),
    ];
    let cut = text.find("\"parameterSize\"").unwrap();
    found.push(load(&text[..cut]).unwrap_err());
    found.push(load("{\"nodes\": [").unwrap_err());
    let expected = [
        "w.json:14: nodes[0].TMPCs.1[0].timePerSample is not valid JSON: expected value (column 30); JSON has no NaN or Infinity: write a number",
        "w.json:14: nodes[0].TMPCs.1[0].timePerSample is not valid JSON: invalid number (column 31); JSON has no NaN or Infinity: write a number",
        "w.json:14: nodes[0].TMPCs.1[0].timePerSample is a number too large to hold; write one of at most 1e30",
        "w.json:10: nodes[0] is not valid JSON: expected `,` or `}` (column 7); correct the JSON there",
        "w.json:2: has the field `maxDevices` twice; keep one",
        "w.json:14: nodes[0].TMPCs.1[0] has the field `timePerSample` twice; keep one",
        "w.json:106: has text after the end of its JSON object; remove it",
        "w.json:1: nodes[0] is an array, must be an object",
        "w.json:15: nodes[0].TMPCs.1[0] is the last part of the file, which ends before its JSON is complete; it looks truncated: copy it again",
        "w.json:1: nodes is the last part of the file, which ends before its JSON is complete; it looks truncated: copy it again",
    ];
    assert_eq!(found, expected);
}

#[test]
fn paths_that_are_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display().to_string();
    let error = |name: &str| workload::load(&folder.path().join(name)).unwrap_err().to_string();
    assert_eq!(error("missing.json"), format!("{shown}/missing.json: does not exist; check the path"));
    assert_eq!(
        workload::load(folder.path()).unwrap_err().to_string(),
        format!("{shown}: is a directory; name a file in it")
    );
    fs::write(folder.path().join("my model.json"), valid().to_string()).unwrap();
    let named = workload::load(&folder.path().join("my model.json")).unwrap();
    assert_eq!(named.name, "my model");
}

#[test]
fn names_cannot_move_the_cursor() {
    let w = edited(|value| {
        value["nodes"][0]["name"] = json!("a\u{1b}[2J\u{202e}b\nc");
        value["nodes"][2]["name"] = json!("\u{7}");
    })
    .unwrap();
    assert_eq!(w.nodes[0].name.as_deref(), Some("a[2Jbc"));
    assert_eq!(w.nodes[2].name, None);
    for message in [
        refused("/nodes/1/TMPCs/\u{1b}[2J", &json!([])),
        refused("/nodes/1/TMPCs/2/0/syncTimeFw", &json!({"\u{1b}[2J": -1})),
        refused("/nodes/1/TMPCs/\u{1b}[2J", &json!(3)),
        refused("/nodes/1/TMPCs/2/0/timePerSample", &json!("\u{1b}[2J")),
    ] {
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
}

/// A chain in which one node feeds all others: one node's sync objects have as many keys as there are nodes.
fn chain(nodes: usize, padding: usize) -> String {
    let mut text = String::from("{\"maxDevices\": 8, \"nodes\": [\n");
    let filler = "x".repeat(padding);
    for v in 0..nodes {
        let (mut before, mut after) = (vec![], vec![]);
        if v > 0 {
            before.push(0);
            after.extend((v + 1 < nodes).then_some(v + 1));
            before.extend((v > 1).then_some(v - 1));
        } else {
            after.extend(1..nodes);
        }
        let sync = |list: &[usize]| list.iter().map(|u| format!("\"{u}\": 0")).collect::<Vec<_>>().join(",");
        let end = if v + 1 < nodes { "," } else { "" };
        writeln!(
            text,
            "{{\"id\": {v}, \"comment\": \"{filler}\", \"TMPCs\": {{\"1\": [{{\"id\": \"vanilla\", \"timePerSample\": 1, \
             \"parameterSize\": 1, \"memoryUsageA\": 1, \"memoryUsageB\": 1, \"syncTimeFw\": {{{}}}, \"syncTimeBw\": {{{}}}}}]}}}}{end}",
            sync(&before),
            sync(&after)
        )
        .unwrap();
    }
    text.push_str("], \"edges\": [\n");
    let mut edges: Vec<String> =
        (1..nodes).map(|v| format!("{{\"sourceId\": 0, \"destId\": {v}, \"communicationCost\": 1}}")).collect();
    edges.extend((2..nodes).map(|v| format!("{{\"sourceId\": {}, \"destId\": {v}, \"communicationCost\": 1}}", v - 1)));
    text.push_str(&edges.join(",\n"));
    text.push_str("\n]}");
    text
}

#[test]
fn files_of_tens_of_megabytes_load_or_are_refused_at_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    let text = chain(40_000, 600);
    assert!(text.len() > 30_000_000);
    fs::write(&path, &text).unwrap();
    let w = workload::load(&path).unwrap();
    assert_eq!((w.nodes.len(), w.dag.edges().len()), (40_000, 79_997));
    fs::write(&path, &text[..text.len() - 1]).unwrap();
    let lines = text.lines().count();
    assert_eq!(
        workload::load(&path).unwrap_err().to_string(),
        format!("{}:{lines}: ends before its JSON is complete; it looks truncated: copy it again", path.display())
    );
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_published_files_load() {
    let reference = reference::root();
    for (file, nodes, edges) in [("bert32a100", 37, 67), ("gnmt", 78, 104), ("resnet", 177, 193)] {
        let path = std::path::Path::new(&reference).join("piper/inputs").join(file).with_extension("json");
        let w = workload::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((w.nodes.len(), w.dag.edges().len()), (nodes, edges), "{file}");
        assert!(w.unknown_fields.is_empty() && w.provenance.is_none());
    }
}
