//! Converts a latency plan to the simulator's input: one sample alone.
//!
//! Parts of a stage that overlap get rows of their own: each goes to the first free row. `O(p log p + p s)` for `p`
//! parts of `s` stages.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use crate::{
    family::placement::single_sample,
    plan::{Measure, Plan, SingleSample},
    simulate::{Pipeline, PipelineStage, SampleRun, by_time},
    workload::{NodeIndex, PlacementProfile, Workload, placement::SECONDS},
};

/// Pipeline of a latency plan; without parts if it cannot run.
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
        "the file's times are read as milliseconds".to_string(),
        "a single sample: a part receives its inputs, computes, and sends its outputs".to_string(),
    ];
    if counts.iter().any(|&rows| rows > 1) {
        notes.push("work that runs at the same time on one device has separate rows".to_string());
    }
    if !bytes.is_empty() {
        notes.push("idle time is that of the accelerators; transfers count as idle".to_string());
    }
    let names = sample.parts.iter().map(|part| name(workload, &part.nodes)).collect();
    let run = SampleRun { sample, names, rows, cpus, accelerators: bytes.len() };
    Pipeline { stages, microbatches: 1, notes, single_sample: Some(run), ..Pipeline::default() }
}

/// Nodes in words: the first and the last represent a longer list.
fn name(workload: &Workload, nodes: &[NodeIndex]) -> String {
    let label = |node: NodeIndex| workload.nodes[node].label();
    match *nodes {
        [] => String::new(),
        [node] => label(node),
        [first, .., last] => format!("{} nodes: {} .. {}", nodes.len(), label(first), label(last)),
    }
}

/// Rows of a stage: occupied ones by the time at which they become free, and free ones by number. Times are
/// non-negative, so the order of their bits is that of the times.
#[derive(Default)]
struct StageSlots {
    occupied: BinaryHeap<Reverse<(u64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl StageSlots {
    /// Occupies the first row that is free at `start`, until `until`. Start times must not decrease.
    fn take(&mut self, start: f64, until: f64) -> u32 {
        while let Some(&Reverse((end, row))) = self.occupied.peek()
            && f64::from_bits(end) <= start
        {
            self.occupied.pop();
            self.free.push(Reverse(row));
        }
        let row = self.free.pop().map_or(self.count, |Reverse(row)| row);
        self.count = self.count.max(row + 1);
        self.occupied.push(Reverse((until.max(0.0).to_bits(), row)));
        row
    }
}

/// Row of every part within its stage, and the number of rows of every stage.
fn rows(sample: &SingleSample, stages: usize) -> (Vec<u32>, Vec<u32>) {
    let mut of_stage: Vec<StageSlots> = std::iter::repeat_with(StageSlots::default).take(stages).collect();
    let mut rows = vec![0; sample.parts.len()];
    for index in by_time(&sample.parts) {
        let part = &sample.parts[index];
        rows[index] = of_stage[part.stage].take(part.start, part.finish());
    }
    (rows, of_stage.iter().map(|rows| rows.count.max(1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_goes_to_the_first_row_that_is_free() {
        let mut state = 7u64;
        let mut random = |values: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % values) as f64
        };
        for round in 0..200 {
            let (mut rows, mut free, mut start) = (StageSlots::default(), Vec::<f64>::new(), 0.0);
            for _ in 0..60 {
                start += random(3);
                let until = start + random(1 + round % 20);
                let first = free.iter().position(|&free| free <= start).unwrap_or(free.len());
                free.resize(free.len().max(first + 1), 0.0);
                free[first] = until;
                assert_eq!(rows.take(start, until), first as u32, "{round}");
                assert_eq!(rows.count as usize, free.len(), "{round}");
            }
        }
    }
}
