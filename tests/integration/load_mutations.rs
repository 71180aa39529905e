//! No mutation of a valid file makes the loader, the lint or their messages panic.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family, generate,
    planner::{self, Options, Problem, Search},
    run,
    workload::{self, Workload, lint},
};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::Value;

/// Loads and, where that succeeds, lints; every message stays on one line.
fn survive(bytes: &[u8]) {
    match workload::load_bytes(bytes, "mutated.json", "mutated") {
        Ok(w) => {
            for finding in lint::lint(&w) {
                assert!(!finding.subject(&w).is_empty());
            }
            assert!(w.parameters() >= 0.0);
            if w.operators().is_some() {
                plan_operators(w);
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("mutated.json:") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}

/// Plans an operator graph; the plan passes the check or the run panics.
fn plan_operators(workload: Workload) {
    let Ok(limits) = family::resolve(&workload, &GivenLimits::default().with(LimitKind::Devices, 3)) else {
        return;
    };
    let pase = planner::find("pase").expect("it is registered");
    let problem = Problem { workload: Arc::new(workload), limits, options: Options::defaults(pase.options()) };
    run::plan(pase, &problem, &Search::default()).unwrap();
}

/// A valid file of one of the formats.
fn base() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        generate::tiny_branch("plantui generate tiny-branch"),
        include_str!("../common/every_operator.json").to_string(),
    ])
}

/// JSON pointers to every value in a document.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_string());
    match value {
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| places(v, &format!("{at}/{i}"), all)),
        Value::Object(map) => {
            map.iter().for_each(|(k, v)| places(v, &format!("{at}/{}", k.replace('~', "~0").replace('/', "~1")), all));
        }
        _ => {}
    }
}

/// Values that a careless or hostile writer might put anywhere.
fn intruder() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![0.0, -1.0, 1e308, 5e-324, 1e16, 4_294_967_296.0, 0.5]).prop_map(Value::from),
        prop::sample::select(vec!["", "1", "-1", "a\u{1b}[2J\n", "nodes[0].x", "\u{202e}", "1e400"])
            .prop_map(Value::from),
        Just(serde_json::json!([])),
        Just(serde_json::json!({})),
        Just(serde_json::json!([[1, "x", {}]])),
        Just(serde_json::json!({"1": [], "": 0, "a.b[3]": 1})),
    ]
}

#[derive(Debug, Clone)]
enum Edit {
    Replace(prop::sample::Index, Value),
    Remove(prop::sample::Index),
    Rename(prop::sample::Index, String),
    Repeat(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), intruder()).prop_map(|(i, v)| Edit::Replace(i, v)),
        2 => index().prop_map(Edit::Remove),
        1 => (index(), "[0-9a-z.\\[\\]\u{1b} ]{0,6}").prop_map(|(i, key)| Edit::Rename(i, key)),
        1 => index().prop_map(Edit::Repeat),
        2 => (index(), index()).prop_map(|(a, b)| Edit::Swap(a, b)),
    ]
}

fn apply(document: &mut Value, edit: Edit) {
    let mut all = vec![];
    places(document, "", &mut all);
    let take = |index: &prop::sample::Index| all[index.index(all.len())].clone();
    match edit {
        Edit::Replace(index, value) => *document.pointer_mut(&take(&index)).expect("a listed place") = value,
        Edit::Swap(a, b) => {
            let (a, b) = (take(&a), take(&b));
            let (one, other) = (document.pointer(&a).cloned(), document.pointer(&b).cloned());
            *document.pointer_mut(&a).expect("a listed place") = other.expect("a listed place");
            if let Some(place) = document.pointer_mut(&b) {
                *place = one.expect("a listed place");
            }
        }
        Edit::Remove(index) | Edit::Rename(index, _) | Edit::Repeat(index) => {
            let place = take(&index);
            let Some((parent, key)) = place.rsplit_once('/') else { return };
            let Some(parent) = document.pointer_mut(parent) else { return };
            match (parent, &edit) {
                (Value::Array(list), Edit::Repeat(_)) => {
                    let copy = key.parse::<usize>().ok().and_then(|i| list.get(i).cloned());
                    list.extend(copy);
                }
                (Value::Array(list), _) => {
                    if let Some(i) = key.parse::<usize>().ok().filter(|&i| i < list.len()) {
                        list.remove(i);
                    }
                }
                (Value::Object(map), Edit::Rename(_, name)) => {
                    if let Some(value) = map.remove(key) {
                        map.insert(name.clone(), value);
                    }
                }
                (Value::Object(map), Edit::Remove(_)) => drop(map.remove(key)),
                _ => {}
            }
        }
    }
}

/// The same two thousand mutations of each kind take a second; `PROPTEST_CASES=200000` takes minutes and other ones.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(1) };
    ProptestConfig { cases: asked.unwrap_or(2000), rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// A bandwidth so small that no transfer time is finite: once a crash of the planner.
#[test]
fn rates_next_to_nothing() {
    for field in ["flops", "bandwidth", "memory"] {
        for value in [5e-324, 1e-9, 1e30] {
            let mut document: Value = serde_json::from_str(include_str!("../common/every_operator.json")).unwrap();
            document[field] = value.into();
            survive(document.to_string().as_bytes());
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn structural_edits(base in base(), edits in prop::collection::vec(edit(), 1..5)) {
        let mut document: Value = serde_json::from_str(&base).expect("the generator writes JSON");
        for edit in edits {
            apply(&mut document, edit);
        }
        survive(document.to_string().as_bytes());
        survive(serde_json::to_string_pretty(&document).expect("a document prints").as_bytes());
    }

    #[test]
    fn flipped_bytes(base in base(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = base.into_bytes();
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        survive(&bytes);
    }

    #[test]
    fn truncated_spliced_and_doubled(base in base(), cut in any::<prop::sample::Index>(), paste in any::<prop::sample::Index>()) {
        let bytes = base.into_bytes();
        let (cut, paste) = (cut.index(bytes.len()), paste.index(bytes.len()));
        survive(&bytes[..cut]);
        survive(&bytes[cut..]);
        survive(&[&bytes[..cut], &bytes[paste..]].concat());
    }

    #[test]
    fn digits_replaced(text in base(), index in any::<prop::sample::Index>(), digits in "-?[0-9]{1,30}(\\.[0-9]{1,20})?(e-?[0-9]{1,3})?") {
        let at: Vec<usize> = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
        let start = at[index.index(at.len())];
        let end = start + text[start..].find(|c: char| !c.is_ascii_digit()).expect("the file ends with a brace");
        survive(format!("{}{digits}{}", &text[..start], &text[end..]).as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(&bytes);
    }

    #[test]
    fn any_configuration(edits in prop::collection::vec(edit(), 0..5)) {
        let mut config = serde_json::json!({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": true
        });
        for edit in edits {
            apply(&mut config, edit);
        }
        if let Err(error) = generate::from_hugging_face(&config.to_string(), "config.json") {
            let message = error.to_string();
            assert!(message.starts_with("config.json:") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}
