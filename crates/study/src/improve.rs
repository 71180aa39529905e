//! Best layouts for a training run that exists: the same model, batch, devices and software, planned anew.
//!
//! `joint` plans for the settings of the run, and for the division of the optimizer's state that the engine offers beside
//! them. The variants are independent problems. Each result is a prediction of the same kind as that of the run, so that
//! both may be compared.

use std::sync::Arc;

use rayon::prelude::*;

use plantui_core::{
    cluster::{GivenLimits, LimitKind},
    family::{
        self,
        training::{Estimate, configured},
    },
    search::Search,
    workload::{
        TrainingProfile, Workload, WorkloadFormat,
        training::{Accelerator, Model, Stack, TrainingRun},
    },
};
use plantui_planners::{self as planner, Fault, Options, Problem, Status};

use crate::run;

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

    /// Best plan that `joint` finds; `None` if nothing fits.
    ///
    /// # Errors
    /// [`Fault`] if a plan is not confirmed by the check.
    pub fn best(&self, search: &Search) -> Result<Option<BetterRun>, Fault> {
        let profiles = variants(&self.profile());
        let found: Result<Vec<Option<BetterRun>>, Fault> =
            profiles.par_iter().map(|profile| self.planned(profile, search)).collect();
        let found = found?.into_iter().flatten();
        Ok(found.min_by(|a, b| a.estimate.iteration_s.total_cmp(&b.estimate.iteration_s)))
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
            _ => "best of all layouts under these settings",
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
