//! Stage or device that limits the rest, the parts of its time, and the busiest link of a simulated iteration.

use std::collections::BTreeSet;

use plantui_core::{
    family,
    plan::{Measure, Plan, Score, StageScore},
    simulate::{Pipeline, PipelineStage, Timeline},
    workload::Workload,
};

use crate::pace::Pace;

/// Part of the bottleneck's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeShare {
    /// Name in one word: `compute`.
    pub name: &'static str,
    /// Seconds per sample.
    pub seconds: f64,
    /// Share of the sum of all parts, 0 to 1.
    pub share: f64,
}

/// Busiest link of a simulated iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyLink {
    /// Earlier stage, from 0.
    pub from: usize,
    /// Later stage.
    pub to: usize,
    /// Share of the iteration in which one direction is busy, 0 to 1.
    pub busy: f64,
}

/// Bottleneck of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanBottleneck {
    /// Stage index, from 0.
    pub stage: usize,
    /// Name: `stage 3`, `accelerator 2`.
    pub name: String,
    /// Parts of its time; parts of zero are omitted.
    pub parts: Vec<TimeShare>,
    /// Stages that limit as much, ascending, this one among them.
    pub alike: Vec<usize>,
    /// True if passes hide transfers; then `parts` has the passes alone.
    pub hides_transfers: bool,
    /// Stage that limits the simulated iteration, if the planner counts transfers that passes hide and so names another.
    pub as_simulated: Option<usize>,
    /// Share of a simulated iteration in which its busiest replica computes, 0 to 1.
    pub busy: Option<f64>,
    /// Busiest link of that iteration.
    pub link: Option<BusyLink>,
}

impl PlanBottleneck {
    /// Bottleneck of a valid plan, with the figures of a simulated iteration.
    pub fn of(
        workload: &Workload,
        plan: &Plan,
        score: &Score,
        simulated: Option<(&Pipeline, &Timeline)>,
    ) -> Option<Self> {
        let pipelined = simulated.filter(|(_, timeline)| timeline.iteration_s > 0.0);
        let pace = pipelined.and_then(|(pipeline, timeline)| Pace::of_timeline(plan.measure, pipeline, timeline));
        let paced = pace.as_ref().filter(|_| plan.measure == Measure::IterationTime);
        let stage = paced.map(|pace| pace.stage).or_else(|| score.bottleneck())?;
        let passes = paced.and_then(|_| simulated?.0.stages.get(stage));
        Some(PlanBottleneck {
            stage,
            name: stage_name(workload, plan, stage),
            parts: passes.map_or_else(|| parts(&score.stages[stage]), passes_of),
            alike: paced.map_or_else(|| vec![stage], |pace| pace.alike.clone()),
            hides_transfers: paced.is_some(),
            as_simulated: pace.as_ref().map(|pace| pace.stage).filter(|other| *other != stage),
            busy: pipelined.and_then(|(_, timeline)| Some(timeline.busy_s.get(stage)? / timeline.iteration_s)),
            link: pipelined.and_then(|(pipeline, timeline)| busiest_link(pipeline, timeline)),
        })
    }
}

/// Passes of a microbatch on a stage as parts of its time.
fn passes_of(stage: &PipelineStage) -> Vec<TimeShare> {
    let replicas = f64::from(stage.replicas.max(1));
    shares(vec![("forward", stage.forward_s / replicas), ("backward", stage.backward_s / replicas)])
}

fn parts(stage: &StageScore) -> Vec<TimeShare> {
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
    shares(parts)
}

/// Parts that are not zero, with their shares.
fn shares(mut parts: Vec<(&'static str, f64)>) -> Vec<TimeShare> {
    parts.retain(|(_, seconds)| *seconds > 0.0);
    let whole: f64 = parts.iter().map(|(_, seconds)| seconds).sum();
    parts.into_iter().map(|(name, seconds)| TimeShare { name, seconds, share: seconds / whole }).collect()
}

/// Link with the busiest direction; a sender's replicas divide the microbatches equally.
fn busiest_link(pipeline: &Pipeline, timeline: &Timeline) -> Option<BusyLink> {
    let load = |transfer: &plantui_core::simulate::Transfer| {
        let senders = pipeline.stages.get(transfer.from).map_or(1, |stage| stage.replicas.max(1));
        let receivers = pipeline.stages.get(transfer.to).map_or(1, |stage| stage.replicas.max(1));
        let turns = pipeline.microbatches.div_ceil(senders.min(receivers));
        transfer.seconds * f64::from(turns) / timeline.iteration_s
    };
    let links = pipeline.transfers.iter().map(|t| BusyLink { from: t.from, to: t.to, busy: load(t) });
    links.reduce(|best, link| if link.busy > best.busy { link } else { best }).filter(|link| link.busy > 0.0)
}

/// Name of a stage: in device placements every stage is a device of a kind.
pub fn stage_name(workload: &Workload, plan: &Plan, stage: usize) -> String {
    if !family::of(workload).stages_are_devices()
        || matches!(plan.measure, Measure::TimePerSample | Measure::IterationTime)
    {
        return format!("stage {}", stage + 1);
    }
    let is_cpu = |i: usize| plan.stages[i].on_cpus();
    // Stages on the same device count once.
    let before: BTreeSet<Vec<u32>> = (0..=stage)
        .filter(|&i| is_cpu(i) == is_cpu(stage))
        .map(|i| match plan.stages[i].devices.first() {
            Some(&device) => vec![device],
            // A stage without a device number differs from all others.
            None => vec![u32::MAX, i as u32],
        })
        .collect();
    format!("{} {}", if is_cpu(stage) { "CPU" } else { "accelerator" }, before.len())
}
