//! Which stage or device limits the rest, what it does with its time, and which link is busiest in a simulated batch.

use std::collections::BTreeSet;

use crate::{
    family,
    plan::{Measure, Plan, Score, StageScore},
    simulate::{Pipeline, Timeline},
    workload::Workload,
};

/// A part of the time of the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// One word: `compute`.
    pub name: &'static str,
    /// Seconds per sample.
    pub seconds: f64,
    /// Share of all parts, 0 to 1.
    pub share: f64,
}

/// The busiest link of a simulated batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyLink {
    /// The earlier stage, from 0.
    pub from: usize,
    /// The later stage.
    pub to: usize,
    /// Share of the batch during which one direction carries something, 0 to 1.
    pub busy: f64,
}

/// What limits the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Bottleneck {
    /// Which stage, from 0.
    pub stage: usize,
    /// What it is called: `stage 3`, `accelerator 2`.
    pub name: String,
    /// What its time is made of; parts that are nothing are left out.
    pub parts: Vec<Part>,
    /// Share of a simulated batch during which its busiest replica computes, 0 to 1.
    pub busy: Option<f64>,
    /// The busiest link of that batch.
    pub link: Option<BusyLink>,
}

impl Bottleneck {
    /// The bottleneck of a valid plan, and what a simulated batch says of it.
    pub fn of(
        workload: &Workload,
        plan: &Plan,
        score: &Score,
        simulated: Option<(&Pipeline, &Timeline)>,
    ) -> Option<Self> {
        let stage = score.bottleneck()?;
        let pipelined = simulated.filter(|(_, timeline)| timeline.iteration_s > 0.0);
        Some(Bottleneck {
            stage,
            name: stage_name(workload, plan, stage),
            parts: parts(&score.stages[stage]),
            busy: pipelined.and_then(|(_, timeline)| Some(timeline.busy_s.get(stage)? / timeline.iteration_s)),
            link: pipelined.and_then(|(pipeline, timeline)| busiest_link(pipeline, timeline)),
        })
    }
}

fn parts(stage: &StageScore) -> Vec<Part> {
    let mut parts = vec![];
    if stage.backward_compute_s > 0.0 {
        parts.push(("forward", stage.compute_s - stage.backward_compute_s));
        parts.push(("backward", stage.backward_compute_s));
    } else {
        parts.push(("compute", stage.compute_s));
    }
    if stage.received_s > 0.0 {
        parts.push(("received", stage.received_s));
        parts.push(("sent", stage.communication_s - stage.received_s));
    } else {
        parts.push(("edges", stage.communication_s));
    }
    parts.push(("sync", stage.sync_s));
    parts.retain(|(_, seconds)| *seconds > 0.0);
    let whole: f64 = parts.iter().map(|(_, seconds)| seconds).sum();
    parts.into_iter().map(|(name, seconds)| Part { name, seconds, share: seconds / whole }).collect()
}

/// The link whose one direction carries most: every replica of its sender carries its share of the microbatches.
fn busiest_link(pipeline: &Pipeline, timeline: &Timeline) -> Option<BusyLink> {
    let load = |transfer: &crate::simulate::Transfer| {
        let senders = pipeline.stages.get(transfer.from).map_or(1, |stage| stage.replicas.max(1));
        let receivers = pipeline.stages.get(transfer.to).map_or(1, |stage| stage.replicas.max(1));
        let turns = pipeline.microbatches.div_ceil(senders.min(receivers));
        transfer.seconds * f64::from(turns) / timeline.iteration_s
    };
    let links = pipeline.transfers.iter().map(|t| BusyLink { from: t.from, to: t.to, busy: load(t) });
    links.reduce(|best, link| if link.busy > best.busy { link } else { best }).filter(|link| link.busy > 0.0)
}

/// What a stage is called: in device placements every stage is a device of a kind.
pub fn stage_name(workload: &Workload, plan: &Plan, stage: usize) -> String {
    if !family::of(workload).stages_are_devices()
        || matches!(plan.measure, Measure::TimePerSample | Measure::IterationTime)
    {
        return format!("stage {}", stage + 1);
    }
    let is_cpu = |i: usize| plan.stages[i].on_cpus();
    // Stages that share a device count once.
    let before: BTreeSet<Vec<u32>> = (0..=stage)
        .filter(|&i| is_cpu(i) == is_cpu(stage))
        .map(|i| match plan.stages[i].devices.first() {
            Some(&device) => vec![device],
            // Without a number it is like no other.
            None => vec![u32::MAX, i as u32],
        })
        .collect();
    format!("{} {}", if is_cpu(stage) { "CPU" } else { "accelerator" }, before.len())
}
