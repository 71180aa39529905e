//! Jobs of training engines where a command takes a workload: the model under the job's settings, and the plan that runs.

use std::path::Path;

use super::{Failure, estimate, input};
use crate::{
    family::{
        self,
        training::{Model, configured, request::ResolvedRequest},
    },
    jobs::{self, Job, ReadOptions},
    notice,
    plan::Plan,
    source::LoadError,
    study::improve::ExistingRun,
    workload::{
        Workload,
        formats::{detect, file},
    },
};

/// Most bytes that are read: no configuration is larger.
const MOST_BYTES: u64 = 4 << 20;

/// Fact of the command line: its name in a request, its value, and its flag.
pub(crate) type GivenFact = (String, String, String);

/// Name of the micro-batch among the facts.
pub(crate) const MICRO_BATCH: &str = "mbs";

/// Job that stands for a workload.
pub(super) struct JobInput {
    pub(super) job: Job,
    pub(super) resolved: ResolvedRequest,
    pub(super) workload: Workload,
}

/// Reads a job, under facts of the command line; `None` if the file is no job.
///
/// # Errors
/// [`LoadError`] if the job cannot be read, or does not state its model.
pub(super) fn read(path: &Path, facts: &[GivenFact]) -> Result<Option<JobInput>, LoadError> {
    with_model(path, facts, || Ok(None))
}

/// Like [`read`], of a named model.
///
/// # Errors
/// [`Failure`] as [`read`], or if there is no such model.
pub(super) fn read_as(path: &Path, facts: &[GivenFact], model: Option<&str>) -> Result<Option<JobInput>, Failure> {
    with_model(path, facts, || model.map(estimate::model).transpose())
}

/// Reads a job; the model is looked up only for jobs.
fn with_model<E: From<LoadError>>(
    path: &Path,
    facts: &[GivenFact],
    model: impl FnOnce() -> Result<Option<Model>, E>,
) -> Result<Option<JobInput>, E> {
    if input::is_standard_input(path) || !path.is_file() {
        return Ok(None);
    }
    let source = input::shown(path);
    let Ok(bytes) = file::read_at_most(path, MOST_BYTES) else { return Ok(None) };
    let Ok(text) = detect::text(&bytes, &source, &detect::JOB) else { return Ok(None) };
    if !jobs::is_job(text, &source) {
        return Ok(None);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let options = ReadOptions { flags: facts.to_vec(), model: model()?, ..ReadOptions::default() };
    let job = jobs::read(text, &source, Some(folder), &options)?;
    if let Some(refused) = &job.refused {
        return Err(refused.clone().into());
    }
    let Some(model) = &job.model else { return Err(no_model(&job).into()) };
    let resolved = job.resolve(&model.value)?;
    let existing = ExistingRun {
        model: &model.value,
        run: &resolved.run,
        accelerator: &resolved.accelerator,
        devices: resolved.devices,
    };
    let workload = existing.workload(&model.value.name, &source);
    Ok(Some(JobInput { job, resolved, workload }))
}

/// Error for a job whose model is not known.
pub(super) fn no_model(job: &Job) -> LoadError {
    let repair = format!("name it: plantui import {} MODEL, a published name or a config.json", job.source);
    match &job.model_name {
        Some(name) => {
            let problem = format!("is `{}`, which is no published name", crate::text::printable(&name.value));
            name.place.error("the model", problem, repair)
        }
        None => LoadError::file(&job.source, format!("{} does not state the model", job.title), repair),
    }
}

impl JobInput {
    /// Prints what was read and assumed, in a line each.
    pub(super) fn announce(&self) {
        notice::note(&format!("{}: {}; `plantui import` shows what was read", self.job.source, self.job.title));
        for it in &self.job.assumed {
            notice::note(&format!("assumed: {} {}", it.name, it.value));
        }
    }

    /// Plan of the job as it runs.
    ///
    /// # Errors
    /// [`Failure`] if the layout has no plan.
    pub(super) fn plan(&self) -> Result<Plan, Failure> {
        plan(&self.workload, &self.resolved, &self.job)
    }
}

/// Plan of a resolved job.
///
/// # Errors
/// [`Failure`] if the layout has no plan.
pub(super) fn plan(workload: &Workload, resolved: &ResolvedRequest, job: &Job) -> Result<Plan, Failure> {
    let no_plan = || Failure::refused(format!("{}: the job has no plan", job.source), "");
    let profile = workload.training().ok_or_else(no_plan)?;
    debug_assert!(family::of(workload).has_platform(), "a job is a model to be trained");
    configured::plan_of_run(profile, &resolved.run).ok_or_else(no_plan)
}
