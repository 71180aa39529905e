//! Best layouts for a training run that exists: the same model, batch, devices and software, planned anew.
//!
//! `joint` plans for the settings of the run, and for the division of the optimizer's state that the engine offers beside
//! them. The variants are independent problems. Each result is a prediction of the same kind as that of the run, so that
//! both may be compared.

mod changes;
mod rule;
mod steps;

use std::sync::Arc;

use rayon::prelude::*;

use plantui_core::{
    cluster::{GivenLimits, LimitKind},
    family::{
        self,
        training::{Estimate, Fits, configured},
    },
    search::Search,
    workload::{
        TrainingProfile, Workload, WorkloadFormat,
        training::{Accelerator, Layout, Model, Recompute, Stack, TrainingRun},
    },
};
use plantui_planners::{self as planner, Fault, Options, Problem, Status};

use crate::run;

pub use changes::SingleChange;
pub use rule::rule_of_thumb;
pub use steps::{Step, predict, steps};

/// Axes that the software of a run can change without another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// True if it can run pipelines.
    pub pipeline: bool,
    /// True if a stage may have several virtual stages.
    pub virtual_stages: bool,
    /// True if it can divide tensors.
    pub tensor: bool,
}

impl Reach {
    /// All axes.
    pub const ALL: Reach = Reach { pipeline: true, virtual_stages: true, tensor: true };
    /// Data parallelism: micro-batch, recomputation and the division of the state.
    pub const DATA: Reach = Reach { pipeline: false, virtual_stages: false, tensor: false };
    /// Pipelines without virtual stages, and tensor parallelism.
    pub const PIPELINE: Reach = Reach { pipeline: true, virtual_stages: false, tensor: true };
}

/// Run to improve.
#[derive(Debug, Clone, Copy)]
pub struct ExistingRun<'a> {
    /// Model.
    pub model: &'a Model,
    /// Run.
    pub run: &'a TrainingRun,
    /// Accelerator.
    pub accelerator: &'a Accelerator,
    /// Number of devices.
    pub devices: u64,
}

/// Best plan for a run.
#[derive(Debug, Clone)]
pub struct BetterRun {
    /// The run of the plan.
    pub run: TrainingRun,
    /// Its prediction.
    pub estimate: Estimate,
    /// Devices that it uses.
    pub devices: u64,
    /// The search and its end, for a reader.
    pub summary: String,
}

impl ExistingRun<'_> {
    /// Profile of the run's model, software and hardware.
    pub fn profile(&self) -> TrainingProfile {
        let mut profile = TrainingProfile::new(self.model.clone(), *self.accelerator);
        profile.move_to(*self.accelerator, self.run.stack);
        profile.sequence = self.run.sequence;
        profile.precision = self.run.precision;
        profile.settings = self.run.settings.clone();
        profile
    }

    /// Workload of the run, with its devices, memory and batch as limits.
    pub fn workload(&self, name: &str, source: &str) -> Workload {
        workload(self.profile(), name, source, (self.run.global_batch, self.devices))
    }

    /// Best plan within reach; `None` if nothing fits.
    ///
    /// # Errors
    /// [`Fault`] if a plan is not confirmed by the check.
    pub fn best(&self, reach: Reach, search: &Search) -> Result<Option<BetterRun>, Fault> {
        if reach != Reach::ALL {
            return Ok(self.best_of_few(reach));
        }
        let profiles = variants(&self.profile());
        let found: Result<Vec<Option<BetterRun>>, Fault> =
            profiles.par_iter().map(|profile| self.planned(profile, search)).collect();
        let found = found?.into_iter().flatten();
        Ok(found.min_by(|a, b| a.estimate.iteration_s.total_cmp(&b.estimate.iteration_s)))
    }

    /// Best of the layouts that a limited software can run. They are few, and all are predicted.
    fn best_of_few(&self, reach: Reach) -> Option<BetterRun> {
        let own = self.run.layout;
        let ranks = u32::try_from(self.devices).unwrap_or(u32::MAX) / own.context.max(1);
        let degrees = |varies: bool, own: u32| -> Vec<u32> {
            if varies { (0..=10).map(|power| 1 << power).collect() } else { vec![own] }
        };
        let mut runs = vec![];
        for pipeline in degrees(reach.pipeline, own.pipeline) {
            for tensor in degrees(reach.tensor, own.tensor) {
                let Some(parts) = pipeline.checked_mul(tensor).filter(|parts| ranks.is_multiple_of(*parts)) else {
                    continue;
                };
                let data = ranks / parts;
                for micro_batch in (0..=6).map(|power| 1u32 << power) {
                    let layout = Layout { pipeline, tensor, data, micro_batch, virtual_stages: 1, ..own };
                    let whole = u64::from(micro_batch) * u64::from(data);
                    if self.run.global_batch.is_multiple_of(whole) {
                        runs.extend(self.variations(layout));
                    }
                }
            }
        }
        let predict = |run: &TrainingRun| {
            let estimate = Estimate::of(self.model, run, self.accelerator, self.devices, None).ok()?;
            Some((run.clone(), estimate))
        };
        let found: Vec<(TrainingRun, Estimate)> = runs.par_iter().filter_map(predict).collect();
        let fastest = |fits: Fits| {
            let fitting = found.iter().filter(|(_, estimate)| estimate.fits == fits);
            fitting.min_by(|a, b| a.1.iteration_s.total_cmp(&b.1.iteration_s))
        };
        let (run, estimate) = fastest(Fits::Yes).or_else(|| fastest(Fits::Close))?.clone();
        let summary = format!("best of the {} layouts that this software can run", found.len());
        Some(BetterRun { run, estimate, devices: self.devices, summary })
    }

    /// Runs of a layout with each recomputation and division of the state.
    fn variations(&self, layout: Layout) -> Vec<TrainingRun> {
        let mut recomputes = vec![Recompute::None, Recompute::Full, self.run.recompute];
        recomputes.dedup();
        let stages: Vec<u32> = match (layout.pipeline, self.run.settings.adapter) {
            (_, Some(_)) => vec![self.run.settings.zero()],
            // Gradients and weights stay whole under a pipeline.
            (2.., None) => vec![0, 1],
            (_, None) => vec![0, 1, 2, 3],
        };
        let mut all = vec![];
        for recompute in recomputes {
            for stage in &stages {
                let mut settings = self.run.settings.clone();
                if settings.set("zero", &stage.to_string()).is_ok() {
                    // Layers divide evenly, unless the layout is that of the run.
                    let layers = if layout == self.run.layout { self.run.layers.clone() } else { vec![] };
                    all.push(TrainingRun { layout, recompute, settings, layers, ..self.run.clone() });
                }
            }
        }
        all
    }

    fn planned(&self, profile: &TrainingProfile, search: &Search) -> Result<Option<BetterRun>, Fault> {
        let Some(planner) = planner::find("joint") else { return Ok(None) };
        let workload = workload(profile.clone(), "job", "job", (self.run.global_batch, self.devices));
        let Ok(limits) = family::resolve(&workload, &GivenLimits::default()) else { return Ok(None) };
        let options = Options::defaults(planner.options());
        let problem = Problem { workload: Arc::new(workload), limits, options };
        let (outcome, _) = run::plan(planner, &problem, search)?;
        let Some(plan) = &outcome.plan else { return Ok(None) };
        let batch = u32::try_from(self.run.global_batch).unwrap_or(u32::MAX);
        let run = profile.run(&configured::of_plan(profile, plan), batch);
        let devices = run.layout.devices();
        let Ok(estimate) = Estimate::of(&profile.model, &run, self.accelerator, devices, None) else { return Ok(None) };
        let ended = match outcome.status {
            Status::Cancelled => "best until the deadline",
            Status::Optimal => "best of all layouts under these settings",
            _ => "best found, not proven",
        };
        Ok(Some(BetterRun { run, estimate, devices, summary: format!("{ended}, by {}", planner.info().name) }))
    }
}

fn workload(profile: TrainingProfile, name: &str, source: &str, (batch, devices): (u64, u64)) -> Workload {
    let batch = u32::try_from(batch).ok();
    let mut workload = profile.into_workload(name, source, WorkloadFormat::Training, batch);
    let given = GivenLimits::default().maybe(LimitKind::Devices, u32::try_from(devices).ok());
    workload.limits = given.or(&workload.limits);
    workload
}

/// The profile, and the same with the optimizer's state divided over replicas, if its engine can do that.
fn variants(profile: &TrainingProfile) -> Vec<TrainingProfile> {
    let mut all = vec![profile.clone()];
    let settings = &profile.settings;
    let undivided = !settings.distributed_optimizer && !settings.fsdp && !settings.shard_gradients;
    let whole = profile.stack != Stack::Torchtitan && (undivided || settings.fsdp) && settings.adapter.is_none();
    if whole {
        let mut other = profile.clone();
        if other.settings.set("zero", "1").is_ok() {
            all.push(other);
        }
    }
    all
}
