//! The rules of Chrome's trace format, as Perfetto reads it, and of this project's layout.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Microseconds by which a number may differ from what was written: the reader of JSON used here rounds the last digit.
const LAST_DIGIT: f64 = 1e-6;

/// A slice: process, thread, beginning and end in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    pub(crate) thread: (u64, u64),
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// What a trace holds.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) slices: Vec<Slice>,
    /// Where data leaves and where it is taken up.
    pub(crate) arrows: Vec<(Slice, f64)>,
    /// Names of processes.
    pub(crate) processes: BTreeSet<String>,
    /// The end of the last slice.
    pub(crate) end: f64,
}

fn integer(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("{field} is no whole number: {event}"))
}

fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("{field} is no number: {event}"))
}

/// Reads a trace. Fails unless metadata comes first and the rest in order of time; slices of a thread are disjoint; every
/// arrow leaves a slice as it begins, arrives not before that one ends, within a slice that has work or at its border, and
/// says so; every process and thread has a name; and every forward of a microbatch ends before its backward on the same
/// stage and replica begins.
pub(crate) fn read(text: &str) -> Trace {
    let document: Value = serde_json::from_str(text).expect("a trace is JSON");
    assert_eq!(document["displayTimeUnit"], "ms");
    let events = document["traceEvents"].as_array().expect("it has events");
    let first = events.iter().position(|event| event["ph"] != "M").unwrap_or(events.len());
    assert!(events[first..].iter().all(|event| event["ph"] != "M"), "metadata comes first");
    assert!(events[first..].is_sorted_by(|a, b| number(a, "ts") <= number(b, "ts")), "events are in order of time");
    let mut trace = Trace::default();
    let mut named: BTreeSet<(u64, Option<u64>)> = BTreeSet::new();
    let mut threads: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
    let mut arrows: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    let mut work: BTreeMap<(u64, u64, u64), [Option<Slice>; 2]> = BTreeMap::new();
    for event in events {
        let thread = (integer(event, "pid"), integer(event, "tid"));
        assert!(event["name"].is_string() && number(event, "ts") >= 0.0, "{event}");
        match event["ph"].as_str().expect("it has a phase") {
            "M" => match event["name"].as_str().unwrap() {
                "process_name" => {
                    named.insert((thread.0, None));
                    trace.processes.insert(event["args"]["name"].as_str().expect("a name").into());
                }
                "thread_name" => assert!(named.insert((thread.0, Some(thread.1))), "named twice: {event}"),
                other => assert!(["process_sort_index", "thread_sort_index"].contains(&other), "{event}"),
            },
            "X" => {
                let slice = Slice { thread, from: number(event, "ts"), to: number(event, "ts") + number(event, "dur") };
                assert!(slice.to >= slice.from, "{event}");
                threads.entry(thread).or_default().push(slice);
                let pass = ["fwd", "bwd"].iter().position(|category| event["cat"] == *category);
                let args = &event["args"];
                if let (Some(pass), Some(microbatch)) = (pass, args["microbatch"].as_u64()) {
                    let own = (integer(args, "stage"), integer(args, "replica"), microbatch);
                    assert_eq!(work.entry(own).or_default()[pass].replace(slice), None, "twice: {event}");
                }
            }
            "s" | "f" => arrows.entry(integer(event, "id")).or_default().push(event),
            phase => {
                assert_eq!(phase, "C", "{event}");
                let series = event["args"].as_object().expect("a counter has series");
                assert!(!series.is_empty() && series.values().all(|value| value.as_f64().is_some_and(|v| v >= 0.0)));
            }
        }
    }
    for (thread, slices) in &threads {
        assert!(
            named.contains(&(thread.0, None)) && named.contains(&(thread.0, Some(thread.1))),
            "{thread:?} has no name"
        );
        let overlap = slices.windows(2).find(|pair| pair[0].to > pair[1].from + LAST_DIGIT);
        assert_eq!(overlap, None, "{thread:?} has slices that overlap");
    }
    for pair in arrows.values() {
        let [from, to] = pair[..] else { panic!("an arrow has two ends: {pair:?}") };
        assert!(from["ph"] == "s" && to["ph"] == "f" && to["bp"] == "e", "{pair:?}");
        assert!(from["cat"] == to["cat"] && from["name"] == to["name"], "{pair:?}");
        let sender = &threads[&(integer(from, "pid"), integer(from, "tid"))];
        let sent = sender.iter().find(|slice| slice.from == number(from, "ts")).expect("it leaves a slice");
        assert!(
            sent.to <= number(to, "ts") + LAST_DIGIT && threads.contains_key(&(integer(to, "pid"), integer(to, "tid"))),
            "{pair:?}"
        );
        trace.arrows.push((*sent, number(to, "ts")));
    }
    for (own, passes) in &work {
        if let [Some(forward), Some(backward)] = passes {
            assert!(forward.to <= backward.from + LAST_DIGIT, "{own:?} goes back before it went forward");
        }
    }
    trace.slices = threads.into_values().flatten().collect();
    trace.end = trace.slices.iter().map(|slice| slice.to).fold(0.0, f64::max);
    trace
}

impl Trace {
    /// Microseconds that a thread works.
    pub(crate) fn busy(&self, thread: (u64, u64)) -> f64 {
        self.slices.iter().filter(|slice| slice.thread == thread).map(|slice| slice.to - slice.from).sum()
    }
}
