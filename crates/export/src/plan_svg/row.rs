//! Content of the boxes in a plan's picture.
//!
//! A box is a stage. If operators are split over one set of devices there is only one stage; a box is then a run of
//! operators with the same split.

use plantui_core::{
    cluster::Limits,
    family::{self, devices, kinds::KindCount},
    plan::{Measure, NodeScore, Plan, Score, Stage, StageScore},
    simulate::Transfer,
    units,
    workload::{NodeIndex, Workload},
};

/// Kinds of work that take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkKind {
    Compute,
    Communication,
    Sync,
}

/// Segment of a box's bar, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BarSegment {
    pub(super) work: WorkKind,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
}

/// Bytes used and available; without a limit, the maximum over all boxes stands for the available bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MemoryBar {
    pub(super) used: f64,
    pub(super) of: f64,
}

/// One box.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct StageBox {
    /// Index of its stage, if it is one.
    pub(super) stage: Option<usize>,
    /// Name and devices, up to three lines.
    pub(super) what: Vec<String>,
    /// Nodes, up to three lines.
    pub(super) holds: Vec<String>,
    pub(super) spans: Vec<BarSegment>,
    pub(super) time: String,
    /// Reason why the box matters; empty if it does not.
    pub(super) verdict: String,
    pub(super) limits: bool,
    pub(super) memory: Option<MemoryBar>,
    pub(super) memory_text: String,
    pub(super) in_flight: String,
    /// Replicas, and devices of each.
    pub(super) replicas: (u32, u32),
}

/// Boxes of a plan, from the top.
pub(super) fn rows(workload: &Workload, limits: &Limits, plan: &Plan, score: &Score) -> Vec<StageBox> {
    if let (Measure::OperatorCost(_), [stage], [scored]) = (plan.measure, &plan.stages[..], &score.stages[..]) {
        return operators(workload, stage, scored);
    }
    let bottleneck = score.bottleneck();
    let stage = |(at, (stage, scored)): (usize, (&Stage, &StageScore))| StageBox {
        stage: Some(at),
        limits: bottleneck == Some(at),
        ..of_stage(workload, limits, score, at, stage, scored)
    };
    let mut rows: Vec<StageBox> = plan.stages.iter().zip(&score.stages).enumerate().map(stage).collect();
    if let Some(row) = bottleneck.and_then(|at| rows.get_mut(at)).filter(|row| row.verdict.is_empty()) {
        row.verdict = "slowest stage".into();
    }
    rows
}

fn of_stage(
    workload: &Workload,
    limits: &Limits,
    score: &Score,
    at: usize,
    stage: &Stage,
    scored: &StageScore,
) -> StageBox {
    let on_cpu = stage.on_cpus();
    let mut row = StageBox { replicas: (stage.data_parallel, stage.tensor_parallel), ..StageBox::default() };
    let degrees = degrees(workload, stage, on_cpu) + &machines(limits, stage);
    let family = family::of(workload);
    let kind = family.stage_kind(stage).map_or_else(String::new, |kind| format!(" of {kind}"));
    row.what = vec![format!("stage {}", at + 1), degrees, devices(stage) + &kind];
    let recomputed = stage.recomputed();
    let count = units::counted(family.layers(&stage.nodes), family.nouns().trim_end_matches('s'));
    let count = if recomputed > 0 { format!("{count}, {recomputed} recompute") } else { count };
    row.holds = vec![names(workload, &stage.nodes), count];
    match scored.sample {
        Some(times) => {
            row.spans = vec![BarSegment { work: WorkKind::Compute, from_s: times.start_s, to_s: times.finish_s }];
            row.time = units::seconds(times.finish_s - times.start_s);
            let latency_s: f64 = score.stages.iter().filter_map(|s| s.sample).map(|s| s.critical_s).sum();
            if latency_s > 0.0 && times.critical_s > 0.0 {
                row.verdict = format!("critical for {} of the latency", units::percent(times.critical_s / latency_s));
            }
        }
        None => {
            let parts = [
                (WorkKind::Compute, scored.compute_s),
                (WorkKind::Communication, scored.communication_s),
                (WorkKind::Sync, scored.sync_s),
            ];
            row.spans = stacked(parts, scored.load_s);
            row.time = units::seconds(scored.load_s);
        }
    }
    if on_cpu {
        row.memory_text = "host memory".into();
        return row;
    }
    let most = score.peak_memory_bytes();
    let limit = family::of(workload).memory_limit(limits, stage);
    let unlimited = units::bytes_exact(limit) == "unlimited";
    row.memory = Some(MemoryBar { used: scored.memory_bytes, of: if unlimited { most } else { limit } });
    row.memory_text = units::bytes_beside(scored.memory_bytes, limit);
    if scored.in_flight > 0 && !family::of(workload).stages_are_devices() {
        row.in_flight = format!("{} in flight", units::counted(scored.in_flight as usize, "microbatch"));
    }
    row
}

/// Runs of operators with one split.
fn operators(workload: &Workload, stage: &Stage, scored: &StageScore) -> Vec<StageBox> {
    let run = |run: std::ops::Range<usize>| {
        let costs = scored.nodes.get(run.clone()).unwrap_or_default();
        let sum = |part: fn(&NodeScore) -> f64| costs.iter().map(part).sum::<f64>();
        let parts = [
            (WorkKind::Compute, sum(|node| node.compute_s)),
            (WorkKind::Communication, sum(|node| node.communication_s)),
            (WorkKind::Sync, sum(|node| node.sync_s)),
        ];
        let time_s: f64 = parts.iter().map(|part| part.1).sum();
        let nodes = &stage.nodes[run.clone()];
        let bytes = sum(|node| node.memory_bytes);
        StageBox {
            what: vec![units::counted(run.len(), "operator"), format!("split {}", stage.choices[run.start])],
            holds: vec![names(workload, nodes)],
            spans: stacked(parts, time_s),
            time: units::seconds(time_s),
            memory: Some(MemoryBar { used: bytes, of: scored.memory_bytes }),
            memory_text: units::bytes(bytes),
            ..StageBox::default()
        }
    };
    let mut rows: Vec<StageBox> = stage.runs_of_a_choice().into_iter().map(run).collect();
    let length = |row: &StageBox| row.spans.iter().map(|span| span.to_s).fold(0.0, f64::max);
    let longest = rows.iter().map(length).fold(0.0, f64::max);
    if let Some(row) = rows.iter_mut().find(|row| length(row) >= longest) {
        row.limits = true;
        row.verdict = "most of the iteration".into();
    }
    rows
}

/// Consecutive segments, scaled so that their sum is the whole.
fn stacked(parts: [(WorkKind, f64); 3], whole_s: f64) -> Vec<BarSegment> {
    let sum: f64 = parts.iter().map(|part| part.1).sum();
    let scale = if sum > 0.0 { whole_s / sum } else { 0.0 };
    let mut from_s = 0.0;
    let mut spans = vec![];
    for (work, seconds) in parts.into_iter().filter(|part| part.1 > 0.0) {
        let to_s = from_s + seconds * scale;
        spans.push(BarSegment { work, from_s, to_s });
        from_s = to_s;
    }
    spans
}

/// End of the longest bar.
pub(super) fn longest(rows: &[StageBox]) -> f64 {
    rows.iter().flat_map(|row| &row.spans).map(|span| span.to_s).fold(0.0, f64::max)
}

/// Degrees in words: `6 replicas of 2 devices`.
fn degrees(workload: &Workload, stage: &Stage, on_cpu: bool) -> String {
    if family::of(workload).stages_are_devices() {
        return if on_cpu { "on a CPU" } else { "on an accelerator" }.into();
    }
    match (stage.data_parallel, stage.tensor_parallel) {
        (1, 1) => "1 replica".into(),
        (d, 1) => units::counted(d as usize, "replica"),
        (d, t) => format!("{} of {t} devices", units::counted(d as usize, "replica")),
    }
}

/// Machines, counted from 1: `, machines 1–2`. Empty where devices have no machines.
fn machines(limits: &Limits, stage: &Stage) -> String {
    let machine = |&device: &u32| limits.machines.machine_of(device).map(|machine| machine as u32 + 1);
    let Some(mut machines) = stage.devices.iter().map(machine).collect::<Option<Vec<u32>>>() else {
        return String::new();
    };
    machines.sort_unstable();
    machines.dedup();
    match machines.len() {
        0 => String::new(),
        1 => format!(", machine {}", ranges(&machines)),
        _ => format!(", machines {}", ranges(&machines)),
    }
}

/// Devices as ranges.
fn devices(stage: &Stage) -> String {
    match stage.devices.len() {
        0 => String::new(),
        1 => format!("device {}", ranges(&stage.devices)),
        _ => format!("devices {}", ranges(&stage.devices)),
    }
}

/// Numbers as ranges: `0–3, 8`.
fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let shown = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Names of the nodes: the only one, else the first and the last.
fn names(workload: &Workload, nodes: &[NodeIndex]) -> String {
    let label = |&node: &NodeIndex| workload.node(node).map(plantui_core::workload::Node::label).unwrap_or_default();
    match nodes {
        [] => "nothing".into(),
        [one] => label(one),
        [first, .., last] if label(first) == label(last) => label(first),
        [first, .., last] => format!("{} .. {}", label(first), label(last)),
    }
}

/// Data that a stage receives from stages further back than the previous one.
pub(super) fn received_late(transfers: &[Transfer], stage: usize) -> Option<String> {
    let late: Vec<&Transfer> = transfers.iter().filter(|t| t.to == stage && t.from + 1 < stage).collect();
    let senders: Vec<u32> = late.iter().map(|transfer| transfer.from as u32 + 1).collect();
    let sum = Transfer {
        from: 0,
        to: stage,
        seconds: late.iter().map(|transfer| transfer.seconds).sum(),
        bytes: late.iter().map(|transfer| transfer.bytes).sum(),
    };
    let noun = if senders.len() == 1 { "stage" } else { "stages" };
    (!late.is_empty()).then(|| format!("and from {noun} {}: {}", ranges(&senders), sent(&sum)))
}

/// Amount that a transfer moves; files that state transfers as times have no bytes.
pub(super) fn sent(transfer: &Transfer) -> String {
    match transfer.bytes > 0.0 {
        true => format!("{}, {}", units::bytes(transfer.bytes), units::seconds(transfer.seconds)),
        false => units::seconds(transfer.seconds),
    }
}

/// Line below the title.
pub(super) fn value_line(limits: &Limits, plan: &Plan, score: &Score) -> String {
    let value = score.measure.show(score.value);
    let stages = units::counted(plan.stages.len(), "stage");
    let what = match score.measure {
        Measure::Latency { .. } => "latency ",
        Measure::MaxLoad | Measure::SeparateMaxima => "largest load ",
        _ => "",
    };
    format!("{what}{value}  ·  {stages} on {}", devices::used(limits, plan))
}

/// Headings of the columns.
pub(super) fn columns(measure: Measure, limits: &Limits, workload: &Workload) -> [String; 4] {
    let time = match measure {
        Measure::Latency { .. } => "when it runs",
        Measure::OperatorCost(_) => "time per iteration",
        _ => "time per sample",
    };
    let memory = match (measure, units::bytes_exact(limits.memory_limit())) {
        (Measure::OperatorCost(_), _) => "memory, share of a device".into(),
        _ if !KindCount::of(workload).is_empty() => "memory per device, of its kind".into(),
        (_, limit) if limit == "unlimited" => "memory per device, no limit".into(),
        (_, limit) => format!("memory per device, limit {limit}"),
    };
    let devices = if family::of(workload).nodes_are_operators() { "operators" } else { "devices" };
    [devices.into(), "nodes".into(), time.into(), memory]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_in_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3]), "0–3");
        assert_eq!(ranges(&[9, 1, 2, 5]), "1–2, 5, 9");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn parts_are_as_long_as_the_whole() {
        let parts = [(WorkKind::Compute, 2.0), (WorkKind::Communication, 0.0), (WorkKind::Sync, 2.0)];
        let spans = stacked(parts, 8.0);
        assert_eq!(spans.iter().map(|span| (span.from_s, span.to_s)).collect::<Vec<_>>(), [(0.0, 4.0), (4.0, 8.0)]);
        assert!(stacked(parts, 0.0).iter().all(|span| span.to_s == 0.0));
    }
}
