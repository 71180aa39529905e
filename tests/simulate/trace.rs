//! Chrome traces of random pipelines, in every schedule and under every setting.

use std::collections::BTreeMap;

use crate::simulated::{Random, random_pipeline, random_settings};
use plantui::{
    export::chrome_trace,
    plan::Plan,
    simulate::{EventKind, simulate},
};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Slices of a thread never overlap, arrows lead from a slice to a later one that begins there, times agree with the timeline.
#[test]
fn traces_obey_the_rules_of_perfetto() {
    let mut random = Random(61);
    for _ in 0..120 {
        let mut pipeline = random_pipeline(&mut random);
        pipeline.settings = random_settings(&mut random);
        for schedule in pipeline.playable() {
            let timeline = simulate(&pipeline, schedule);
            let text = chrome_trace::to_json(&Plan::default(), &pipeline, schedule, &timeline);
            let trace: Value = serde_json::from_str(&text).expect("a trace is JSON");
            let mut threads: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
            let mut arrows: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
            let (mut named, mut last) = (vec![], 0.0);
            for event in trace["traceEvents"].as_array().unwrap() {
                let thread = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
                let ts = number(&event["ts"]);
                assert!(ts >= last, "by time");
                last = ts;
                match event["ph"].as_str().unwrap() {
                    "M" if event["name"] == "thread_name" => named.push(thread),
                    "X" => threads.entry(thread).or_default().push((ts, ts + number(&event["dur"]))),
                    "s" | "f" => arrows.entry(event["id"].as_u64().unwrap()).or_default().push(event),
                    _ => {}
                }
            }
            for (thread, slices) in &threads {
                assert!(named.contains(thread), "{thread:?} has a name");
                // The reader of JSON may be off by the last digit.
                let apart = |pair: &[(f64, f64)]| pair[0].1 - pair[1].0 <= 1e-15 * pair[0].1.abs();
                let bad = slices.windows(2).find(|pair| !apart(pair));
                assert_eq!(bad, None, "{schedule:?} {thread:?}");
            }
            let end = threads.values().flatten().map(|slice| slice.1).fold(0.0, f64::max);
            assert!((end / 1e6 - timeline.iteration_s).abs() <= 1e-9 * timeline.iteration_s);
            let transfers = timeline.events.iter().filter(|e| (1..=2).contains(&e.kind.lane())).count();
            assert_eq!(arrows.len(), transfers, "every transfer leads somewhere: {schedule:?}");
            for pair in arrows.values() {
                assert!(pair[0]["ph"] == "s" && pair[1]["ph"] == "f" && pair[1]["bp"] == "e");
                let (pid, tid) = (pair[1]["pid"].as_u64().unwrap(), pair[1]["tid"].as_u64().unwrap());
                let ts = number(&pair[1]["ts"]);
                assert!(threads[&(pid, tid)].iter().any(|slice| slice.0 == ts), "an arrow ends where a slice begins");
            }
            let slices: usize = threads.values().map(Vec::len).sum();
            assert_eq!(slices, timeline.events.len() + transfers, "each event once, and each transfer on its link too");
            let recomputed = timeline.events.iter().any(|e| e.kind == EventKind::Recompute);
            assert_eq!(text.contains("\"name\":\"R m"), recomputed);
        }
    }
}
