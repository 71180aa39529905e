//! Length of a plan: the analytic length by which the published planner ranks plans, and its event-driven estimate.

use super::{
    model::HpgoModel,
    placement::{Devices, ids},
};
use plantui_core::cluster::Links;

/// A stage of a published plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// First state.
    pub from: usize,
    /// Last state.
    pub to: usize,
    /// Number of devices in each pipeline.
    pub groups: u32,
    /// Devices in all pipelines.
    pub devices: Devices,
    /// True if the devices are in one machine.
    pub one_machine: bool,
}

/// Largest number of microbatches times virtual stages of the event estimate.
const MOST_EVENTS: usize = 4 << 20;

impl HpgoModel<'_> {
    /// True if the stage is the last one.
    fn is_last(&self, stage: &Stage) -> bool {
        stage.to + 1 == self.states()
    }

    /// Last state in the stage's costs: one too many if that fault is kept.
    fn counted_to(&self, stage: &Stage) -> usize {
        if self.faults.boundary_parameters && !self.is_last(stage) { stage.to + 1 } else { stage.to }
    }

    #[inline]
    fn all_reduce_s(&self, stage: &Stage) -> f64 {
        let bytes = self.parameter_bytes(stage.from, self.counted_to(stage));
        self.links().all_reduce_of(stage.devices.count() as usize, stage.one_machine, bytes)
    }

    /// Creates a stage and derives the properties of its devices.
    #[inline]
    pub(super) fn stage(&self, from: usize, to: usize, groups: u32, devices: Devices) -> Stage {
        Stage { from, to, groups, devices, one_machine: Links::one_machine(&self.machines, &ids(devices)) }
    }

    /// Seconds per byte between two stages.
    #[inline]
    pub(super) fn per_byte(&self, from: Devices, to: Devices) -> f64 {
        self.links().transfer_per_byte(&self.machines, &ids(from), &ids(to))
    }
}

/// Speed-up of a plan with bottleneck `block_s` (seconds of the whole batch); 0 if the batch is too small for its
/// pipelines.
pub fn speedup(model: &HpgoModel<'_>, stages: &[Stage], pipelines: u32, block_s: f64) -> f64 {
    let per_byte = stages.windows(2).map(|pair| model.per_byte(pair[0].devices, pair[1].devices));
    speedup_over(model, stages, &per_byte.collect::<Vec<_>>(), pipelines, block_s)
}

/// Same as [`speedup`], given the seconds per byte over each cut.
pub(super) fn speedup_over(
    model: &HpgoModel<'_>,
    stages: &[Stage],
    per_byte: &[f64],
    pipelines: u32,
    block_s: f64,
) -> f64 {
    let microbatches = model.speedup.microbatches(model.batch, pipelines);
    if microbatches == 0 {
        return 0.0;
    }
    let (m, pipelines) = (f64::from(microbatches), f64::from(pipelines));
    let step = block_s / m;
    let fill = if model.faults.undivided_fill {
        model.total_s() / pipelines / m
    } else {
        let stage = |stage: &Stage| model.compute_s(stage.from, stage.to) / f64::from(stage.groups);
        stages.iter().map(stage).sum::<f64>() / pipelines / m
    };
    let mut length = step * (m - 1.0) + fill;
    for (cut, stage) in stages.iter().enumerate().take(per_byte.len()) {
        length += model.output_bytes(stage.to) / pipelines / m * per_byte[cut];
    }
    let exposed = |(i, stage): (usize, &Stage)| model.all_reduce_s(stage) - i as f64 * step;
    let delta = stages.iter().enumerate().map(exposed).fold(0.0, f64::max);
    model.total_s() / (length + delta)
}

/// Virtual stage of the event estimate: a stage or a link.
struct Virtual {
    /// Forward seconds, equal to backward seconds.
    half_s: f64,
    all_reduce_s: f64,
}

/// Speed-up by the event-driven estimate; `None` if the batch is too small, or too large to simulate.
///
/// Stages and links alternate. A forward waits for the backward that frees its place. A backward waits for the forwards
/// that must be in flight.
pub fn event_speedup(model: &HpgoModel<'_>, stages: &[Stage], pipelines: u32) -> Option<f64> {
    let count = model.speedup.microbatches(model.batch, pipelines) as usize;
    let width = 2 * stages.len() - 1;
    if count == 0 || count.saturating_mul(width) > MOST_EVENTS {
        return None;
    }
    let m = count as f64;
    let mut virtuals = Vec::with_capacity(width);
    for (i, stage) in stages.iter().enumerate() {
        let share = f64::from(stage.groups) * f64::from(pipelines) * m;
        let half_s = model.compute_s(stage.from, model.counted_to(stage)) / share / 2.0;
        virtuals.push(Virtual { half_s, all_reduce_s: model.all_reduce_s(stage) });
        if let Some(next) = stages.get(i + 1) {
            let half_s = model.output_bytes(stage.to) / m * model.per_byte(stage.devices, next.devices);
            virtuals.push(Virtual { half_s, all_reduce_s: 0.0 });
        }
    }
    // End times by virtual stage, then microbatch.
    let mut forward: Vec<Vec<f64>> = vec![Vec::with_capacity(count); width];
    let mut backward: Vec<Vec<f64>> = vec![Vec::with_capacity(count); width];
    while backward[0].len() < count {
        for x in 0..width {
            while let Some(start) = forward_start(&forward, &backward, x, count) {
                forward[x].push(start + virtuals[x].half_s);
            }
        }
        for x in (0..width).rev() {
            while let Some(start) = backward_start(&forward, &backward, x, count) {
                backward[x].push(start + virtuals[x].half_s);
            }
        }
    }
    let end = |x: usize| backward[x][count - 1] + virtuals[x].all_reduce_s;
    Some(model.total_s() / (0..width).map(end).fold(0.0, f64::max))
}

/// Start of the next forward of a virtual stage; `None` if its predecessors are not known yet.
fn forward_start(forward: &[Vec<f64>], backward: &[Vec<f64>], x: usize, count: usize) -> Option<f64> {
    let i = forward[x].len();
    if i == count {
        return None;
    }
    let in_flight = forward.len() - x;
    let arrived = if x == 0 { 0.0 } else { *forward[x - 1].get(i)? };
    let place = if i < in_flight { 0.0 } else { *backward[x].get(i - in_flight)? };
    let own = if i == 0 { 0.0 } else { forward[x][i - 1] };
    Some(place.max(own).max(arrived))
}

/// Start of the next backward, in the same way.
fn backward_start(forward: &[Vec<f64>], backward: &[Vec<f64>], x: usize, count: usize) -> Option<f64> {
    let i = backward[x].len();
    if i == count {
        return None;
    }
    let in_flight = forward.len() - x;
    let arrived = if x + 1 == forward.len() { 0.0 } else { *backward[x + 1].get(i)? };
    let filled = if i + in_flight > count { 0.0 } else { *forward[x].get(i + in_flight - 1)? };
    let own = if i == 0 { 0.0 } else { backward[x][i - 1] };
    Some(arrived.max(own).max(filled))
}
