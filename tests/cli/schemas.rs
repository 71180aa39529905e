//! `plantui schema`: what the program writes fits its schema, field by field, and what it reads is refused where the schema
//! refuses it.

use std::{collections::BTreeMap, fs, path::Path};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{Folder, TINY, argument, json as printed, plantui, refusal, stdout};

/// Schema with `additionalProperties` off wherever it names properties: a field that it does not name is an error.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            let named = fields.contains_key("properties") && !fields.contains_key("additionalProperties");
            // Flattened parts name only their own fields.
            if named && !fields.contains_key("anyOf") && !fields.contains_key("allOf") {
                fields.insert("additionalProperties".into(), false.into());
            }
            for (_, value) in fields.iter_mut() {
                *value = closed(value.take());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = closed(value.take())),
        _ => {}
    }
    schema
}

fn schema(name: &str) -> Value {
    printed(&["schema", name], 0)
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).expect("the schema is one")
}

fn fits(validator: &Validator, document: &Value, about: &str) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path)).collect();
    assert!(errors.is_empty(), "{about}: {}", errors.join("\n"));
}

#[test]
fn every_document_fits_its_schema() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    let trained = ["llama-3.1-8b", "--devices", "8", "--global-batch", "32"];
    let layers = folder.file("layers.txt", stdout(&["convert", TINY, "--to", "pipedream"], 0));
    let job = "tests/field/jobs/08-cp.sh";
    let runs = folder.file("runs.csv", "tp,pp,devices,global_batch,measured_s\n4,4,64,128,14.9\n8,2,64,128,15.8\n");
    let calibration = argument(&folder.path("ours.json"));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let with_json = |arguments: &[&str]| [arguments, &["--json"]].concat().iter().map(ToString::to_string).collect();
    let calls: Vec<Vec<String>> = vec![
        with_json(&["plan", TINY]),
        with_json(&["plan", TINY, "--planner", "piper"]),
        with_json(&["plan", TINY, "--devices", "1"]),
        with_json(&[&["plan"], &trained[..], &["--tokens", "1T", "--price", "2"]].concat()),
        with_json(&["plan", "inputs/alexnet-operators.json"]),
        with_json(&["plan", &layers, "--machines", "2x2", "--batch", "8", "--memory", "8GB"]),
        with_json(&["check", TINY, &plan]),
        with_json(&["simulate", TINY, &plan]),
        with_json(&["simulate", TINY, &plan, "--schedule", "all"]),
        with_json(&["compare", TINY, "--planner", "piper", "--planner", "joint", "--plan", &plan]),
        with_json(&[&["compare"], &trained[..], &["--planner", "joint"]].concat()),
        with_json(&["explain", TINY]),
        with_json(&[&["explain"], &trained[..]].concat()),
        with_json(&["explain", job]),
        with_json(&["seek", TINY, "--least", "devices", "--until", "iteration_time<=0.2s"]),
        with_json(&["sweep", TINY, "--devices", "1..4"]),
        with_json(&["sweep", "llama-3.1-8b", "--devices", "8,16", "--global-batch", "32"]),
        with_json(&["estimate", "llama-3.1-8b", "--devices", "8", "--parallel", "tp=2"]),
        with_json(&["estimate", "llama-3.1-70b", "--devices", "8", "--parallel", "tp=2"]),
        with_json(&["import", job, "--hardware", "h100"]),
        with_json(&["calibrate", "llama-3.1-70b", "--runs", &runs, "--write", &calibration]),
        with_json(&["lint", TINY]),
        with_json(&["map", TINY, &plan, "--topology", "dgx-1"]),
        with_json(&["topologies", "dgx-1"]),
        with_json(&["hardware"]),
        with_json(&["planners"]),
        with_json(&["topologies"]),
        with_json(&["terms"]),
        vec!["generate".into(), "llama-3-8b".into(), "--as".into(), "training".into()],
        vec!["generate".into(), "alexnet".into()],
    ];
    for call in calls {
        let output = plantui().args(&call).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{call:?}: {error} {}", String::from_utf8_lossy(&output.stderr)));
        let name = document["schema"].as_str().unwrap_or(&call[0]).to_string();
        fits(&validator(&closed(schema(&name))), &document, &call.join(" "));
        *seen.entry(name).or_default() += 1;
    }
    let written: Value = serde_json::from_slice(&fs::read(&calibration).unwrap()).unwrap();
    fits(&validator(&closed(schema("calibration"))), &written, "the calibration");
    // Only read: stage times and kernels, which the next test has, and tables of kinds.
    let known: Vec<String> =
        stdout(&["schema"], 0).lines().map(|line| line.split_whitespace().nth(1).unwrap().into()).collect();
    let left: Vec<&String> = known.iter().filter(|id| !seen.contains_key(*id)).collect();
    assert_eq!(
        left,
        ["plantui.calibration/1", "plantui.kernels/1", "plantui.mixed/1", "plantui.stage-times/1"],
        "{seen:?}"
    );
}

/// Documents with one field left out, or with a value of another kind, and the place of the change.
fn broken(document: &Value) -> Vec<(String, Value)> {
    fn walk(whole: &Value, path: &str, made: &mut Vec<(String, Value)>) {
        let Some(here) = whole.pointer(path) else { return };
        let fields: Vec<String> = match here {
            Value::Object(fields) => fields.keys().cloned().collect(),
            Value::Array(values) => (0..values.len().min(1)).map(|place| place.to_string()).collect(),
            _ => return,
        };
        for field in fields {
            let inner = format!("{path}/{field}");
            if here.is_object() {
                let mut less = whole.clone();
                less.pointer_mut(path).and_then(Value::as_object_mut).unwrap().remove(&field);
                made.push((format!("without {inner}"), less));
            }
            for other in [json!("word"), json!([[]]), json!({"unknown": {}}), json!(true), json!(-1)] {
                let mut changed = whole.clone();
                *changed.pointer_mut(&inner).unwrap() = other.clone();
                made.push((format!("{inner} = {other}"), changed));
            }
            walk(whole, &inner, made);
        }
    }
    let mut made = vec![];
    walk(document, "", &mut made);
    made
}

#[test]
fn what_a_schema_refuses_its_reader_refuses() {
    let folder = Folder::new();
    let plan: Value = printed(&["plan", TINY, "--json"], 0);
    let topology: Value = printed(&["topologies", "dgx-1", "--json"], 0);
    let training: Value = printed(&["generate", "llama-3-8b", "--as", "training"], 0);
    let operators: Value = printed(&["generate", "alexnet"], 0);
    let times = json!({
        "schema": "plantui.stage-times/1", "microbatches": 8, "transfer_s": 0.001, "memory_bytes": 8e10,
        "stages": [{"count": 2, "forward_s": 0.01, "backward_s": 0.02, "activation_bytes": 1e6, "fixed_bytes": 1e9}],
    });
    let file = argument(&folder.path("changed.json"));
    let readers: Vec<(&str, Value, Vec<&str>)> = vec![
        ("plan", plan, vec!["check", TINY, &file]),
        ("topology", topology, vec!["topologies", &file]),
        ("training", training, vec!["lint", &file]),
        ("operators", operators, vec!["lint", &file]),
        ("stage-times", times, vec!["simulate", &file]),
    ];
    // Of a plan's document a reader needs only these; the rest it reads as far as it is there.
    let needed = |name: &str, change: &str| {
        name != "plan" || change.contains(" /stages") || change.contains("/schema") || change.starts_with("/stages")
    };
    for (name, document, call) in readers {
        let validator = validator(&schema(name));
        fits(&validator, &document, name);
        let reads = |document: &Value| {
            fs::write(&file, document.to_string()).unwrap();
            let output = plantui().args(&call).output().unwrap();
            (output.status.code() != Some(2), String::from_utf8(output.stderr).unwrap())
        };
        assert!(reads(&document).0, "{name} is read");
        let mut refused = 0;
        for (change, changed) in broken(&document).into_iter().take(400) {
            let (taken, told) = reads(&changed);
            if !validator.is_valid(&changed) && needed(name, &change) {
                assert!(!taken, "{name}, {change}: the schema refuses it and the reader takes it");
                refused += 1;
            }
            // A value of another kind, or a missing field; wrong values of the right kind are beyond a schema.
            let kinds = [
                "` is missing\n",
                "lacks the field",
                ", must be an array",
                ", must be an object",
                ", must be a string",
                ", must be a number",
            ];
            if kinds.iter().any(|kind| told.contains(kind)) {
                assert!(!validator.is_valid(&changed), "{name}, {change}: the schema takes it; the reader: {told}");
            }
        }
        assert!(refused >= 5, "{name}: only {refused} changes are refused");
    }
}

#[test]
fn the_schemas_of_the_documentation_are_those_of_the_program() {
    let folder = Folder::new();
    let directory = argument(&folder.path("schemas"));
    stdout(&["schema", "--directory", &directory], 0);
    let of = |folder: &Path| -> BTreeMap<String, String> {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
            .collect()
    };
    let written = of(Path::new(&directory));
    assert!(written.len() >= 20);
    let told = "run `plantui schema --directory docs/schema --force`";
    assert_eq!(of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema")), written, "{told}");
    assert!(refusal(&["schema", "--directory", &directory]).contains("--force"));
    assert!(refusal(&["schema", "plann"]).contains("did you mean `plan`?"));
}

/// Fields below a schema that have no description, with their places.
fn undescribed(schema: &Value, place: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            // A variant of a choice has one field, and its description stands beside the field.
            let variant = properties.is_some_and(|own| own.len() == 1) && fields.get("description").is_some();
            for (name, field) in properties.into_iter().flatten() {
                let described = field.get("description").is_some() || variant;
                if !described {
                    found.push(format!("{place}: {name}"));
                }
            }
            for (name, value) in fields {
                undescribed(value, if name == "properties" || name == "$defs" { place } else { name }, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| undescribed(value, place, found)),
        _ => {}
    }
}

#[test]
fn every_field_that_people_write_is_described() {
    for name in ["operators", "topology", "kernels", "training", "stage-times", "calibration"] {
        let mut found = vec![];
        undescribed(&schema(name), name, &mut found);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}
