//! Ways on for a run whose machine fails, and their cost.
//!
//! A spare machine keeps the plan. Without one, the run goes on with a replica less, if that fits, or is planned anew for
//! fewer machines. Two milder faults keep every device: a slow one, for which its whole stage waits, and
//! links between machines at half their bandwidth. A few plans and predictions.

use std::sync::Arc;

use plantui_core::{
    cluster::{LimitKind, Limits},
    family,
    plan::{Configuration, Plan},
    search::Search,
    simulate::{Setup, length_unless},
    units,
    workload::Workload,
};

use crate::{
    improve,
    remedies::{InputChange, PlanInputs, TrainedFigures},
};

/// Speed of a slow device relative to the others.
const SLOW: f64 = 0.8;

/// Way on after a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct WayOn {
    /// The way, in words.
    pub what: String,
    /// Its configuration.
    pub configuration: Configuration,
    /// Iteration time, seconds.
    pub iteration_s: f64,
    /// Memory of the fullest device, bytes.
    pub memory_bytes: f64,
    /// Devices left over.
    pub idle: u32,
    /// Shards that must move before it runs, in words.
    pub moves: &'static str,
    /// Change of the inputs that leads there; `None` if they stay.
    pub change: Option<InputChange>,
}

/// Result of the study.
#[derive(Debug, Clone, PartialEq)]
pub enum WayResult {
    /// Way that runs.
    Way(Box<WayOn>),
    /// Way that does not, and why.
    Refused(String),
}

/// Ways on after a machine of `machine` devices fails, and after milder faults of `stage`, one after the other. `plan`
/// takes `iteration_s` seconds.
pub fn ways_on(
    inputs: &PlanInputs,
    (plan, iteration_s): (&Plan, f64),
    (machine, stage): (u32, usize),
    search: &Search,
    tell: &mut dyn FnMut(WayResult),
) {
    let (workload, limits) = (&inputs.problem.workload, &inputs.problem.limits);
    let Some(now) = TrainedFigures::of(workload, limits, plan, iteration_s) else { return };
    let mut way =
        |what: String, figures: TrainedFigures, idle: u32, moves: &'static str, change: Option<InputChange>| {
            let TrainedFigures { configuration, iteration_s, memory_bytes, .. } = figures;
            let way = WayOn { what, configuration, iteration_s, memory_bytes, idle, moves, change };
            tell(WayResult::Way(Box::new(way)));
        };
    way("a spare machine takes its place".into(), now.clone(), 0, "the shards of one machine", None);
    let left = limits.devices.saturating_sub(machine);
    let whole = |devices: u32| devices / machine.max(1) * machine;
    let mut counts = vec![left, left.saturating_sub(machine), whole(limits.devices * 3 / 4), whole(limits.devices / 2)];
    counts.retain(|count| *count > 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.dedup();
    for devices in counts {
        let figures = inputs.on_devices(devices, search);
        if search.cancelled() {
            return;
        }
        let Some(figures) = figures else { continue };
        let same = |of: fn(&Configuration) -> u32| of(&figures.configuration) == of(&now.configuration);
        let keeps = same(|own| own.layout.tensor)
            && same(|own| own.layout.pipeline)
            && same(|own| own.layout.virtual_stages)
            && figures.configuration.layers == now.configuration.layers;
        let moves = if keeps { "replicas" } else { "every shard" };
        way(
            format!("plan anew for {devices}"),
            figures,
            left - devices,
            moves,
            Some(InputChange::Limit(LimitKind::Devices, f64::from(devices))),
        );
    }
    if let Some(slow) = with_slow_device(workload, limits, plan, stage, search) {
        let figures = TrainedFigures { iteration_s: iteration_s * slow, ..now.clone() };
        let what = format!("milder: device of stage {} at {}", stage + 1, units::percent_whole(SLOW));
        way(what, figures, 0, "nothing", None);
    }
    if let Some(figures) = at_half_bandwidth(workload, &now, limits.samples()) {
        way("milder: links at half".into(), figures, 0, "nothing", None);
    }
    if let Some(refused) = without_replica(workload, limits, &now) {
        tell(WayResult::Refused(refused));
    }
}

/// Iteration time relative to now, if a device of a stage is slow and its whole stage waits for it.
fn with_slow_device(
    workload: &Arc<Workload>,
    limits: &Limits,
    plan: &Plan,
    stage: usize,
    search: &Search,
) -> Option<f64> {
    let setup = Setup::default().of(plan);
    let mut pipeline = family::pipeline(workload, limits, plan, &setup.settings);
    let schedule = pipeline.schedule(setup.schedule);
    let stopped = || search.cancelled();
    let before = length_unless(&pipeline, schedule, &stopped)?;
    let own = pipeline.stages.get_mut(stage)?;
    own.forward_s /= SLOW;
    own.backward_s /= SLOW;
    own.recompute_s /= SLOW;
    Some(length_unless(&pipeline, schedule, &stopped)? / before)
}

/// The same layout with half of the bandwidth between machines.
fn at_half_bandwidth(workload: &Workload, now: &TrainedFigures, batch: u32) -> Option<TrainedFigures> {
    let profile = workload.training()?;
    let mut half = profile.clone();
    half.accelerator.outer_link /= 2.0;
    let run = profile.run(&now.configuration, batch);
    let [before, after] = [improve::predict(profile, &run)?, improve::predict(&half, &run)?];
    let iteration_s = now.iteration_s * after.simulated_s / before.simulated_s;
    Some(TrainedFigures { iteration_s, ..now.clone() })
}

/// Why the layout without one replica does not run; `None` if it does.
fn without_replica(workload: &Workload, limits: &Limits, now: &TrainedFigures) -> Option<String> {
    let profile = workload.training()?;
    let mut configuration = now.configuration.clone();
    let data = configuration.layout.data;
    if data < 2 {
        return Some("the layout has one replica: without a machine none is left".into());
    }
    configuration.layout.data = data - 1;
    let Some(estimate) = improve::predict(profile, &profile.run(&configuration, limits.samples())) else {
        return Some(format!("the layout with {} replicas divides neither batch nor experts", data - 1));
    };
    let bytes = estimate.memory_bytes + profile.settings.reserve_bytes;
    (bytes > limits.memory_limit()).then(|| {
        format!(
            "the same layout with {} does not fit: {} of {}",
            units::counted(data as usize - 1, "replica"),
            units::bytes_beside(bytes, limits.memory_limit()),
            units::bytes_exact(limits.memory_limit())
        )
    })
}
