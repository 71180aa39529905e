//! Timeline in the Trace Event Format, for <https://ui.perfetto.dev> and `chrome://tracing`.
//!
//! Each replica of a stage is a process, numbered by its first device. It has a thread for each resource: 0 compute, 1
//! sent activations, 3 collectives, 4 sent gradients. The simulator has no receive engine, which would be 2. Sends use
//! two threads because slices of one thread must not overlap and the two directions do. One more process has a thread
//! for each directed link, or two where activations and gradients go the same way. Arrows lead from a transfer to the
//! computation that waits for it. A counter shows the bytes that microbatches in flight occupy on the first replica of
//! each stage. Stages are counted from 1. Replicas, microbatches and the model parts of a device are counted from 0. A
//! backward with recomputation is two consecutive slices. Metadata comes first, then all events by time.
//!
//! The trace of a single sample has a process for each accelerator and for each row of parts that run side by side. Its
//! threads are transfers from the host (4), compute (0) and transfers to the host (1).
//!
//! Times are microseconds, rounded to multiples of a small power of two. So `ts + dur` is exact for every slice, and
//! slices that touch do not overlap. `O(e log e)` time for `e` events. The trace is written line by line (`lines`), so
//! it needs little memory in addition to its timeline.

mod lines;
mod sample;

use std::{borrow::Cow, collections::BTreeMap, io};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json, to_writer};

use lines::{TraceLine, TraceLines};

use plantui_core::{
    plan::Plan,
    simulate::{Event, EventKind, Pipeline, Schedule, SimulatorSetting, Timeline},
};

const COMPUTE: u32 = 0;
const SEND_ACTIVATIONS: u32 = 1;
const COLLECTIVE: u32 = 3;
const SEND_GRADIENTS: u32 = 4;

/// Trace as text.
pub fn to_json(plan: &Plan, pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) -> String {
    let mut text = vec![];
    write(&mut text, plan, pipeline, schedule, timeline).expect("memory takes what is written to it");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Writes the trace line by line, one event per line; `out` should be buffered. Long batches make hundreds of megabytes
/// (200 MB for 64 stages and 2,000 microbatches), none of which is kept in memory.
///
/// # Errors
/// Errors of `out`.
pub fn write(
    out: &mut impl io::Write,
    plan: &Plan,
    pipeline: &Pipeline,
    schedule: Schedule,
    timeline: &Timeline,
) -> io::Result<()> {
    let trace = Trace::new(plan, pipeline, timeline);
    let settings = SimulatorSetting::ALL.map(|setting| (setting.id(), setting.text(&pipeline.settings)));
    let settings = BTreeMap::from(settings);
    let about = json!({
        "schedule": schedule.id(),
        "settings": settings,
        "iteration_s": timeline.iteration_s,
        "bubble": timeline.idle,
        "assumptions": pipeline.notes,
    });
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[")?;
    let mut between = "\n";
    for metadata in trace.metadata() {
        write!(out, "{between}{metadata}")?;
        between = ",\n";
    }
    let mut text = vec![];
    for line in TraceLines::new(timeline).iter() {
        text.clear();
        text.extend_from_slice(between.as_bytes());
        trace.write(&mut text, &line)?;
        out.write_all(&text)?;
        between = ",\n";
    }
    writeln!(out, "\n]}}")
}

/// Event with a duration.
#[derive(Serialize)]
struct Slice<'a> {
    name: Cow<'a, str>,
    cat: &'static str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    args: Args,
}

/// Arguments shown with a slice.
#[derive(Default, Serialize)]
struct Args {
    stage: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    microbatch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst: Option<u32>,
}

/// One end of an arrow.
#[derive(Serialize)]
struct Arrow {
    name: &'static str,
    cat: &'static str,
    ph: &'static str,
    id: usize,
    pid: u32,
    tid: u32,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
}

/// Value at a point in time.
#[derive(Serialize)]
struct Counter {
    name: &'static str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    args: Bytes,
}

#[derive(Serialize)]
struct Bytes {
    bytes: f64,
}

struct Trace<'a> {
    plan: &'a Plan,
    pipeline: &'a Pipeline,
    timeline: &'a Timeline,
    /// True if stages have several parts of the model.
    parts: bool,
    /// Devices by stage, then replica.
    devices: Vec<Vec<Vec<u32>>>,
    /// Process of the links.
    links_pid: u32,
    /// Thread of every link, by sender, receiver and direction (true for gradients). Where a device has several parts
    /// of the model, activations and gradients may use a link the same way at the same time.
    links: BTreeMap<(u32, u32, bool), u32>,
    /// Bytes of a transfer, by the stages at its ends.
    bytes: FxHashMap<(usize, usize), f64>,
    /// Time resolution, microseconds.
    grain: f64,
}

impl<'a> Trace<'a> {
    fn new(plan: &'a Plan, pipeline: &'a Pipeline, timeline: &'a Timeline) -> Self {
        let devices = match &pipeline.single_sample {
            Some(run) => sample::processes(plan, pipeline, run),
            None => devices(plan, pipeline),
        };
        let links_pid = devices.iter().flatten().flatten().max().map_or(0, |last| last + 1);
        // An iteration has 2⁵² steps: every multiple below is an exact double, and so is the sum of two.
        let exponent =
            if timeline.iteration_s > 0.0 { (timeline.iteration_s * 1e6).log2().floor() - 51.0 } else { 0.0 };
        let mut trace = Trace {
            plan,
            pipeline,
            timeline,
            parts: timeline.events.iter().any(|event| event.part > 0),
            devices,
            links_pid,
            links: BTreeMap::new(),
            // Of several transfers between two stages, the first counts.
            bytes: pipeline.transfers.iter().rev().map(|t| ((t.from, t.to), t.bytes)).collect(),
            grain: 2f64.powi(exponent.clamp(-1000.0, 1000.0) as i32),
        };
        let mut links: BTreeMap<(u32, u32, bool), u32> =
            timeline.events.iter().filter_map(|event| trace.link(event)).map(|link| (link, 0)).collect();
        links.values_mut().zip(0..).for_each(|(tid, number)| *tid = number);
        trace.links = links;
        trace
    }

    fn micros(&self, seconds: f64) -> f64 {
        (seconds * 1e6 / self.grain).round() * self.grain
    }

    fn pid(&self, stage: usize, replica: u32) -> u32 {
        self.devices[stage][replica as usize][0]
    }

    /// Sender and receiver of a transfer.
    fn ends(&self, event: &Event) -> Option<(u32, u32)> {
        let to = event.receiver()?.0 as usize;
        let replica = event.microbatch % self.timeline.replicas[to];
        Some((self.pid(event.stage as usize, event.replica), self.pid(to, replica)))
    }

    /// Link that a transfer uses.
    fn link(&self, event: &Event) -> Option<(u32, u32, bool)> {
        let (from, to) = self.ends(event)?;
        Some((from, to, matches!(event.kind, EventKind::SendGradient { .. })))
    }

    fn metadata(&self) -> Vec<Value> {
        let mut all = vec![];
        let mut name = |pid: u32, tid: Option<u32>, name: &str, sort: u32| {
            let (kind, tid) = if tid.is_some() { ("thread", tid) } else { ("process", Some(0)) };
            let mut one = |what: &str, args: Value| {
                let name = format!("{kind}_{what}");
                all.push(json!({"name": name, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": args}));
            };
            one("name", json!({"name": name}));
            one("sort_index", json!({"sort_index": sort}));
        };
        let mut order = 0;
        if let Some(run) = &self.pipeline.single_sample {
            for (pid, called) in sample::names(self.plan, run, &self.devices) {
                name(pid, None, &called, pid);
                let threads = [(SEND_GRADIENTS, "from host"), (COMPUTE, "compute"), (SEND_ACTIVATIONS, "to host")];
                threads.iter().zip(0..).for_each(|(&(tid, called), sort)| name(pid, Some(tid), called, sort));
            }
            return all;
        }
        for (stage, replicas) in self.devices.iter().enumerate() {
            for (replica, devices) in replicas.iter().enumerate() {
                let (first, last) = (devices[0], devices[devices.len() - 1]);
                let gpus = if first == last { format!("GPU{first}") } else { format!("GPU{first}-{last}") };
                name(first, None, &format!("{gpus} stage{} rep{replica}", stage + 1), order);
                order += 1;
                name(first, Some(COMPUTE), "compute", 0);
                name(first, Some(SEND_ACTIVATIONS), "send activations", 1);
                name(first, Some(SEND_GRADIENTS), "send gradients", 2);
                if replica == 0 && self.pipeline.stages[stage].all_reduce_s > 0.0 {
                    name(first, Some(COLLECTIVE), "collective", 3);
                }
            }
        }
        if !self.links.is_empty() {
            name(self.links_pid, None, "links", order);
            for (&(from, to, gradients), &tid) in &self.links {
                let both = self.links.contains_key(&(from, to, !gradients));
                let what = if gradients { " gradients" } else { " activations" };
                let what = if both { what } else { "" };
                name(self.links_pid, Some(tid), &format!("GPU{from} -> GPU{to}{what}"), tid);
            }
        }
        all
    }

    fn write(&self, out: impl io::Write, line: &TraceLine<'_>) -> io::Result<()> {
        let written = match *line {
            TraceLine::Slice(event) => {
                let (tid, category) = lane(event);
                to_writer(out, &self.slice(event, self.pid(event.stage as usize, event.replica), tid, category))
            }
            TraceLine::Link(event) => {
                let tid = self.link(event).and_then(|link| self.links.get(&link)).copied().unwrap_or_default();
                to_writer(out, &self.slice(event, self.links_pid, tid, lane(event).1))
            }
            TraceLine::ArrowStart(event, id) => to_writer(out, &self.arrow(event, id, "s", None)),
            TraceLine::ArrowEnd(event, id) => to_writer(out, &self.arrow(event, id, "f", Some("e"))),
            TraceLine::Counter { stage, time_s, bytes } => {
                let bytes = (bytes - self.pipeline.stages[stage].fixed_bytes).max(0.0);
                let (pid, ts, args) = (self.pid(stage, 0), self.micros(time_s), Bytes { bytes });
                to_writer(out, &Counter { name: "activations in flight", ph: "C", pid, tid: COMPUTE, ts, args })
            }
        };
        Ok(written?)
    }

    fn arrow(&self, event: &Event, id: usize, ph: &'static str, bp: Option<&'static str>) -> Arrow {
        let (pid, tid) = (self.pid(event.stage as usize, event.replica), lane(event).0);
        Arrow { name: "transfer", cat: "p2p", ph, id, pid, tid, ts: self.micros(event.start_s), bp }
    }

    fn slice(&self, event: &Event, pid: u32, tid: u32, cat: &'static str) -> Slice<'_> {
        let (ts, end) = (self.micros(event.start_s), self.micros(event.end_s));
        let mut args = Args { stage: event.stage + 1, ..Args::default() };
        let slice = |name, args| Slice { name, cat, ph: "X", pid, tid, ts, dur: end - ts, args };
        let m = event.microbatch;
        if let Some(run) = &self.pipeline.single_sample {
            let part = m as usize;
            let name = match event.kind {
                EventKind::ToHost => "to host",
                EventKind::FromHost => "from host",
                _ => run.names[part].as_str(),
            };
            (args.row, args.part) = (Some(event.replica), Some(m));
            args.nodes = Some(run.sample.parts[part].nodes.len());
            return slice(name.into(), args);
        }
        let name = match event.kind {
            EventKind::Forward => format!("F m{m}"),
            EventKind::Recompute => format!("R m{m}"),
            EventKind::Backward => format!("B m{m}"),
            EventKind::WeightGradient => format!("W m{m}"),
            EventKind::OptimizerStep => "optimizer".into(),
            EventKind::SendActivation { to, .. } => format!("F m{m} to stage{}", to + 1),
            EventKind::SendGradient { to, .. } => format!("B m{m} to stage{}", to + 1),
            EventKind::AllReduce if self.pipeline.settings.buckets > 1 => format!("all-reduce bucket {m}"),
            EventKind::AllReduce => "all-reduce".into(),
            EventKind::ToHost => "to host".into(),
            EventKind::FromHost => "from host".into(),
        };
        if event.kind == EventKind::AllReduce {
            args.replicas = Some(self.timeline.replicas[event.stage as usize]);
        } else {
            args.replica = Some(event.replica);
            if event.kind != EventKind::OptimizerStep {
                args.microbatch = Some(m);
                args.part = self.parts.then_some(event.part);
            }
        }
        if let (Some((from, to)), Some((receiver, _))) = (self.ends(event), event.receiver()) {
            let pair = (receiver.min(event.stage) as usize, receiver.max(event.stage) as usize);
            args.bytes = self.bytes.get(&pair).copied();
            (args.src, args.dst) = (Some(from), Some(to));
        }
        slice(name.into(), args)
    }
}

/// Thread and category of an event.
fn lane(event: &Event) -> (u32, &'static str) {
    match event.kind {
        EventKind::Forward => (COMPUTE, "fwd"),
        EventKind::Recompute => (COMPUTE, "recompute"),
        EventKind::Backward => (COMPUTE, "bwd"),
        EventKind::WeightGradient => (COMPUTE, "wgrad"),
        EventKind::OptimizerStep => (COMPUTE, "optimizer"),
        EventKind::SendActivation { .. } => (SEND_ACTIVATIONS, "p2p"),
        EventKind::SendGradient { .. } => (SEND_GRADIENTS, "p2p"),
        EventKind::AllReduce => (COLLECTIVE, "allreduce"),
        EventKind::ToHost => (SEND_ACTIVATIONS, "p2p"),
        EventKind::FromHost => (SEND_GRADIENTS, "p2p"),
    }
}

/// Devices by stage and replica: the plan's, or consecutive numbers where the plan's lists do not fit its degrees.
fn devices(plan: &Plan, pipeline: &Pipeline) -> Vec<Vec<Vec<u32>>> {
    let width = |stage: usize| pipeline.stages[stage].devices.max(1) as usize;
    let wanted = |stage: usize| pipeline.stages[stage].replicas.max(1) as usize * width(stage);
    let mut seen = std::collections::BTreeSet::new();
    let fits = plan.stages.len() == pipeline.stages.len()
        && plan.stages.iter().enumerate().all(|(i, stage)| {
            stage.devices.len() == wanted(i) && stage.devices.iter().all(|&device| seen.insert(device))
        });
    let mut next = 0;
    (0..pipeline.stages.len())
        .map(|stage| {
            let numbered: Vec<u32> = (next..next + wanted(stage) as u32).collect();
            next += wanted(stage) as u32;
            let devices = if fits { &plan.stages[stage].devices } else { &numbered };
            devices.chunks(width(stage)).map(<[u32]>::to_vec).collect()
        })
        .collect()
}
