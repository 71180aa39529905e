//! From a plan for latency to what is simulated: one sample alone.
//!
//! Parts of a stage that overlap get rows of their own: each goes to the first row that is free. `O(p log p + p r)` for `p`
//! parts on at most `r` rows of a stage.

use std::collections::BTreeMap;

use crate::{
    family::placement::single_sample,
    plan::{Measure, Plan, SingleSample},
    simulate::{Pipeline, PipelineStage, SampleRun, by_time},
    workload::{NodeIndex, PlacementProfile, Workload, placement::SECONDS},
};

/// The pipeline of a plan for latency; one that cannot run has no parts.
pub(crate) fn pipeline(workload: &Workload, profile: &PlacementProfile, plan: &Plan) -> Pipeline {
    let subgraphs = matches!(plan.measure, Measure::Latency { subgraphs: Some(_) });
    let sample = single_sample::of(&workload.dag, profile, plan, subgraphs).unwrap_or_default();
    let (rows, counts) = rows(&sample, plan.stages.len());
    let cpus: Vec<bool> = plan.stages.iter().map(crate::plan::Stage::on_cpus).collect();
    // Stages of one device share its memory.
    let mut bytes: BTreeMap<u32, f64> = BTreeMap::new();
    for stage in plan.stages.iter().zip(&cpus).filter(|(_, cpu)| !**cpu).map(|(stage, _)| stage) {
        let sizes = stage.nodes.iter().filter_map(|node| profile.nodes.get(node.index())).map(|node| node.size_bytes);
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
fn name(workload: &Workload, nodes: &[NodeIndex]) -> String {
    let label = |node: NodeIndex| workload.nodes[node].label();
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
