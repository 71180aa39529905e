//! The timeline of a plan for latency: one sample alone, every part when it runs.
//!
//! Nothing is left to a schedule: [`SingleSample`] says when each part starts, and a part receives, computes and sends in
//! this order. A row of the timeline is a stage. Parts of a stage that overlap, as CPU nodes do and as pieces of an
//! accelerator may under the published evaluation, get rows of their own, like the replicas of a pipeline's stage:
//! each goes to the first row that is free. `O(p log p + p r)` for `p` parts on at most `r` rows of a stage.

use std::collections::BTreeMap;

use super::{Event, EventKind, MemoryParts, Pipeline, PipelineStage, Timeline};
use crate::{
    plan::{Measure, Plan, SingleSample, single_sample::Part},
    workload::{
        PlacementProfile, Workload,
        placement::{CPU, SECONDS},
    },
};

/// Where and when the parts of a single sample run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleRun {
    /// The parts with their times, in milliseconds; events call them by their index here.
    pub sample: SingleSample,
    /// By part: its nodes in words.
    pub names: Vec<String>,
    /// By part: its row within its stage.
    pub rows: Vec<u32>,
    /// By stage: whether it is on CPUs.
    pub cpus: Vec<bool>,
    /// Accelerators that the stages are on.
    pub accelerators: usize,
}

/// The pipeline of a plan for latency; one that cannot run has no parts.
pub(super) fn pipeline(workload: &Workload, profile: &PlacementProfile, plan: &Plan) -> Pipeline {
    let subgraphs = matches!(plan.measure, Measure::Latency { subgraphs: Some(_) });
    let sample = SingleSample::of(&workload.dag, profile, plan, subgraphs).unwrap_or_default();
    let (rows, counts) = rows(&sample, plan.stages.len());
    let cpus: Vec<bool> =
        plan.stages.iter().map(|stage| stage.choices.first().is_some_and(|choice| choice == CPU)).collect();
    // Stages of one device share its memory.
    let mut bytes: BTreeMap<u32, f64> = BTreeMap::new();
    for stage in plan.stages.iter().zip(&cpus).filter(|(_, cpu)| !**cpu).map(|(stage, _)| stage) {
        let sizes = stage.nodes.iter().filter_map(|&node| profile.nodes.get(node)).map(|node| node.size_bytes);
        stage.devices.iter().for_each(|&device| *bytes.entry(device).or_default() += sizes.clone().sum::<f64>());
    }
    let stage = |index: usize| {
        let parts = sample.parts.iter().filter(|part| part.stage == index);
        let device = plan.stages[index].devices.first().filter(|_| !cpus[index]);
        PipelineStage {
            forward_s: parts.map(|part| part.cost().compute * SECONDS).sum(),
            replicas: counts[index],
            devices: 1,
            fixed_bytes: device.and_then(|device| bytes.get(device).copied()).unwrap_or(0.0),
            ..PipelineStage::default()
        }
    };
    let stages = (0..plan.stages.len()).map(stage).collect();
    let mut notes = vec![
        "the file's times are taken as milliseconds".to_string(),
        "one sample alone: a part receives what it reads, computes, and sends what others read".to_string(),
    ];
    if counts.iter().any(|&rows| rows > 1) {
        notes.push("what runs at the same time on one device is on rows of its own".to_string());
    }
    if !bytes.is_empty() {
        notes.push("the bubble is that of the accelerators; transfers are part of it".to_string());
    }
    let names = sample.parts.iter().map(|part| name(workload, &part.nodes)).collect();
    let run = SampleRun { sample, names, rows, cpus, accelerators: bytes.len() };
    Pipeline { stages, microbatches: 1, notes, single_sample: Some(run), ..Pipeline::default() }
}

/// Nodes in words: the first and the last stand for many.
fn name(workload: &Workload, nodes: &[usize]) -> String {
    let label = |node: usize| workload.nodes[node].label();
    match *nodes {
        [] => String::new(),
        [node] => label(node),
        [first, .., last] => format!("{} nodes: {} .. {}", nodes.len(), label(first), label(last)),
    }
}

/// The row of every part within its stage, and the rows of every stage.
fn rows(sample: &SingleSample, stages: usize) -> (Vec<u32>, Vec<u32>) {
    let mut free: Vec<Vec<f64>> = vec![vec![]; stages];
    let mut rows = vec![0; sample.parts.len()];
    for index in by_time(&sample.parts) {
        let part = &sample.parts[index];
        let free = &mut free[part.stage];
        let row = free.iter().position(|&free| free <= part.start).unwrap_or_else(|| {
            free.push(0.0);
            free.len() - 1
        });
        free[row] = part.finish();
        rows[index] = row as u32;
    }
    (rows, free.iter().map(|free| free.len().max(1) as u32).collect())
}

/// Indices of the parts by start, then finish.
fn by_time(parts: &[Part]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |part: &Part| (part.start, part.finish());
        let (a, b) = (key(&parts[a]), key(&parts[b]));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    order
}

/// The timeline of a sample's run.
pub(super) fn play(pipeline: &Pipeline, run: &SampleRun) -> Timeline {
    let mut timeline = Timeline {
        replicas: pipeline.stages.iter().map(|stage| stage.replicas).collect(),
        iteration_s: run.sample.latency * SECONDS,
        peak_memory_bytes: pipeline.stages.iter().map(|stage| stage.fixed_bytes).collect(),
        peak_parts: pipeline.stages.iter().map(|stage| MemoryParts::of(stage, 0.0)).collect(),
        memory: pipeline.stages.iter().map(|stage| vec![(0.0, stage.fixed_bytes)]).collect(),
        ..Timeline::default()
    };
    // By stage, row, resource, and then time.
    let mut events: Vec<((u32, u32, u8), Event)> = vec![];
    for index in by_time(&run.sample.parts) {
        let part = &run.sample.parts[index];
        let cost = part.cost();
        let (arrived, computed) = (part.start + cost.receive, part.start + cost.receive + cost.compute);
        let (stage, replica) = (part.stage as u32, run.rows[index]);
        for (rank, kind, from, to) in [
            (0, EventKind::Forward, arrived, computed),
            (1, EventKind::ToHost, computed, part.finish()),
            (2, EventKind::FromHost, part.start, arrived),
        ] {
            if rank == 0 || to > from {
                let (start_s, end_s, microbatch) = (from * SECONDS, to * SECONDS, index as u32);
                events.push((
                    (stage, replica, rank),
                    Event { start_s, end_s, stage, replica, microbatch, part: 0, kind },
                ));
            }
        }
    }
    events.sort_by_key(|(key, _)| *key);
    timeline.events = events.into_iter().map(|(_, event)| event).collect();
    summarise(pipeline, run, &mut timeline);
    timeline
}

/// Fills in what follows from the events.
fn summarise(pipeline: &Pipeline, run: &SampleRun, timeline: &mut Timeline) {
    let mut busy = 0.0;
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let of_row = |row| -> f64 {
            let computed = timeline.row(index, row).iter().filter(|event| event.kind == EventKind::Forward);
            computed.map(|event| event.end_s - event.start_s).sum()
        };
        let rows: Vec<f64> = (0..stage.replicas).map(of_row).collect();
        busy += if run.cpus[index] { 0.0 } else { rows.iter().sum() };
        timeline.busy_s.push(rows.into_iter().fold(0.0, f64::max));
    }
    if timeline.iteration_s > 0.0 {
        timeline.samples_per_s = 1.0 / timeline.iteration_s;
    }
    let paid = timeline.iteration_s * run.accelerators as f64;
    if paid > 0.0 {
        timeline.bubble = (1.0 - busy / paid).clamp(0.0, 1.0);
    }
}
