//! Chrome traces of random pipelines, in every schedule and under every setting: what a reader of the format demands, and
//! that a trace alone tells the whole run.

use std::collections::BTreeMap;

use crate::simulate::simulated::{Random, random_pipeline, random_settings};
use plantui::{
    export::chrome_trace,
    plan::Plan,
    simulate::{EventKind, Pipeline, Schedule, simulate},
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

/// Process, part and microbatch.
type Place = (u64, u64, Option<u64>);

/// A slice as it stands in the trace.
struct Slice {
    pid: u64,
    tid: u64,
    cat: String,
    from: f64,
    to: f64,
    args: Value,
}

impl Slice {
    fn arg(&self, name: &str) -> Option<u64> {
        self.args[name].as_u64()
    }

    fn place(&self) -> Place {
        (self.pid, self.arg("part").unwrap_or(0), self.arg("microbatch"))
    }
}

/// The part of the receiving stage that waits for a transfer: dealt out round robin, the way round leads to the next part.
fn receiving_part(slice: &Slice, schedule: Schedule, stages: &BTreeMap<u64, u64>) -> u64 {
    let part = slice.arg("part").unwrap_or(0);
    let (from, to) = (slice.arg("stage").unwrap(), stages[&slice.arg("dst").unwrap()]);
    match (schedule, slice.tid) {
        (Schedule::Interleaved | Schedule::InterleavedZeroBubble, 1) => part + u64::from(to < from),
        (Schedule::Interleaved | Schedule::InterleavedZeroBubble, _) => part - u64::from(to > from),
        _ => part,
    }
}

fn assert_replays(pipeline: &Pipeline, schedule: Schedule) {
    let timeline = simulate(pipeline, schedule);
    let text = chrome_trace::to_json(&Plan::default(), pipeline, schedule, &timeline);
    let trace: Value = serde_json::from_str(&text).expect("a trace is JSON");
    let events = trace["traceEvents"].as_array().unwrap();
    let metadata = events.iter().take_while(|event| event["ph"] == "M").count();
    assert!(events[metadata..].iter().all(|event| event["ph"] != "M"), "metadata comes first");
    let mut highest: BTreeMap<u64, f64> = BTreeMap::new();
    let mut slices = vec![];
    let links = events[..metadata].iter().find(|event| event["args"]["name"] == "links").map(|event| &event["pid"]);
    for event in &events[metadata..] {
        let pid = event["pid"].as_u64().expect("a whole number");
        let tid = event["tid"].as_u64().expect("a whole number");
        match event["ph"].as_str().unwrap() {
            "C" => {
                let most = highest.entry(pid).or_default();
                *most = most.max(number(&event["args"]["bytes"]));
            }
            "X" if Some(&event["pid"]) != links => {
                let (from, args) = (number(&event["ts"]), event["args"].clone());
                assert!(from >= 0.0 && number(&event["dur"]) >= 0.0);
                let cat = event["cat"].as_str().unwrap().to_string();
                slices.push(Slice { pid, tid, cat, from, to: from + number(&event["dur"]), args });
            }
            _ => {}
        }
    }
    let process = |slice: &Slice| (slice.pid, slice.arg("stage").unwrap());
    let stages: BTreeMap<u64, u64> = slices.iter().map(process).collect();
    // What a device computes is its microbatches' work and its optimizer step.
    let micros = 1e6;
    for (&pid, &number) in &stages {
        let stage = &pipeline.stages[number as usize - 1];
        let of = || slices.iter().filter(|slice| slice.pid == pid && slice.tid == 0);
        let replica = of().find_map(|slice| slice.arg("replica")).unwrap_or(0) as u32;
        let own = pipeline.microbatches / stage.replicas + u32::from(pipeline.microbatches % stage.replicas > replica);
        let (backward_s, step_s) = match schedule {
            Schedule::Inference => (0.0, 0.0),
            _ => (stage.backward_s, pipeline.settings.optimizer_step_s),
        };
        let expected = f64::from(own) * (stage.forward_s + backward_s) + step_s;
        let busy: f64 = of().map(|slice| slice.to - slice.from).sum();
        assert!((busy / micros - expected).abs() <= 1e-9 * expected.max(1.0), "{schedule:?} {busy} {expected}");
        if let Some(&bytes) = highest.get(&pid).filter(|_| replica == 0) {
            let peak = timeline.peak_memory_bytes[number as usize - 1] - stage.fixed_bytes;
            assert!(bytes <= peak * (1.0 + 1e-9) + 1e-6, "{bytes} {peak}");
        }
    }
    // Every transfer begins after what it carries was made, and whoever waits for it begins after it.
    let mut made: BTreeMap<(&str, Place), &Slice> = BTreeMap::new();
    let mut begun: BTreeMap<(bool, Place), f64> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice.tid == 0) {
        made.insert((&slice.cat, slice.place()), slice);
        let backward = matches!(slice.cat.as_str(), "bwd" | "recompute");
        if backward || slice.cat == "fwd" {
            begun.entry((backward, slice.place())).or_insert(slice.from);
        }
    }
    let late = |a: f64, b: f64| a <= b * (1.0 + 1e-15);
    for slice in slices.iter().filter(|slice| slice.cat == "p2p") {
        let gradient = slice.tid == 4;
        assert_eq!(slice.arg("src"), Some(slice.pid));
        let source = made[&(if gradient { "bwd" } else { "fwd" }, slice.place())];
        assert!(late(source.to, slice.from), "{schedule:?}: sent before it was made");
        let part = receiving_part(slice, schedule, &stages);
        let waits = begun[&(gradient, (slice.arg("dst").unwrap(), part, slice.arg("microbatch")))];
        assert!(late(slice.to, waits), "{schedule:?}: used before it arrived");
        let pair = [slice.arg("stage").unwrap(), stages[&slice.arg("dst").unwrap()]].map(|stage| stage as usize - 1);
        let between = |t: &&plantui::simulate::Transfer| (t.from, t.to) == (pair[0].min(pair[1]), pair[0].max(pair[1]));
        let bytes = pipeline.transfers.iter().find(between).map(|t| t.bytes);
        let told = slice.args["bytes"].as_f64();
        assert_eq!(told.is_some(), bytes.is_some());
        // The reader of JSON may be off by the last digit.
        assert!(
            told.zip(bytes).is_none_or(|(told, bytes)| (told - bytes).abs() <= 1e-15 * bytes.abs()),
            "{told:?} {bytes:?}"
        );
    }
    // A backward follows its forward, what was put off its backward, and the all-reduce and the step everything else.
    for (&(cat, place), slice) in &made {
        let before = match cat {
            "bwd" | "recompute" => "fwd",
            "wgrad" => "bwd",
            _ => continue,
        };
        assert!(late(made[&(before, place)].to, slice.from), "{schedule:?} {cat}");
    }
    for step in slices.iter().filter(|slice| slice.cat == "optimizer") {
        let stage = step.arg("stage");
        let before = slices.iter().filter(|slice| slice.cat == "allreduce" && slice.arg("stage") == stage);
        let own = slices.iter().filter(|slice| slice.pid == step.pid && slice.tid == 0 && slice.cat != "optimizer");
        assert!(before.chain(own).all(|slice| late(slice.to, step.from)));
    }
    let told = &trace["otherData"];
    assert_eq!(told["schedule"], schedule.id());
    assert_eq!(told["settings"]["buckets"], pipeline.settings.buckets.to_string());
    assert_eq!(told["settings"]["overlap"], if pipeline.settings.overlap { "yes" } else { "no" });
}

/// Nothing but the trace is needed to see that the run was a right one.
#[test]
fn traces_can_be_replayed_from_their_own_words() {
    let mut random = Random(67);
    let mut replayed: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..120 {
        let mut pipeline = random_pipeline(&mut random);
        pipeline.settings = random_settings(&mut random);
        for schedule in pipeline.playable().into_iter().filter(|schedule| !schedule.is_listed()) {
            assert_replays(&pipeline, schedule);
            *replayed.entry(schedule.id()).or_default() += 1;
        }
    }
    assert!(Schedule::ALL.iter().all(|schedule| schedule.is_listed() || replayed[schedule.id()] > 40), "{replayed:?}");
}
