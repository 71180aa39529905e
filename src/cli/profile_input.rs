//! Flags for profiles of times: facts about the measurement that the file does not state.
//!
//! The flag overrides the file. A plan provides the value it was made with if neither states it.

use std::path::Path;

use clap::Args;

use super::{
    Failure, input,
    job_input::{GivenFact, MICRO_BATCH},
};
use crate::{
    family::{self, dial, layers::PROFILE_BATCH},
    notice,
    units::{self, UnitError},
    workload::Workload,
};

/// Flags for profiles of times.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Layer profiles (PipeDream's graph.txt)")]
pub(crate) struct ProfileArgs {
    /// Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image sizes, else 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = samples)]
    pub profile_batch: Option<u32>,
    /// Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job, its micro-batch
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = samples)]
    pub micro_batch: Option<u32>,
}

fn samples(text: &str) -> Result<u32, UnitError> {
    units::parse_count(text)
}

impl ProfileArgs {
    /// Micro-batch as a fact of what is loaded.
    pub(super) fn facts(&self) -> Option<GivenFact> {
        self.micro_batch.map(|size| (MICRO_BATCH.into(), size.to_string(), "--micro-batch".into()))
    }

    /// Workload with the flag applied.
    ///
    /// # Errors
    /// [`Failure`] if it is not a profile of a batch, or does not support this batch.
    pub(super) fn over(&self, workload: Workload) -> Result<Workload, Failure> {
        let Some(samples) = self.profile_batch else { return Ok(workload) };
        if family::of(&workload).profile_batch().is_none() {
            let problem = format!("--profile-batch is for layer profiles, and {} is not one", workload.name);
            return Err(Failure::refused(problem, "leave it out"));
        }
        let turned = dial::turned(&workload, PROFILE_BATCH, &samples.to_string());
        turned.map_err(|error| Failure::refused(format!("--profile-batch: {error}"), ""))
    }

    /// Dial of the workload that this flag or a planner's setting changes.
    #[cfg(feature = "screen")]
    pub(super) fn changed_dial(&self, settings: &[String]) -> Option<String> {
        let set = settings.iter().any(|setting| is_batch(setting));
        (self.profile_batch.is_some() || set).then(|| PROFILE_BATCH.to_string())
    }

    /// The same for a plan's file: the value in the plan counts if nothing else states it.
    ///
    /// # Errors
    /// As [`ProfileArgs::over`]; [`Failure`] if the plan cannot be read.
    pub(super) fn over_for(&self, workload: Workload, plan: &Path) -> Result<Workload, Failure> {
        let untold = family::of(&workload).profile_batch().is_some_and(|batch| !batch.stated);
        if self.profile_batch.is_some() || !untold {
            return self.over(workload);
        }
        ProfileArgs { profile_batch: batch_in_plan(plan)?, ..self.clone() }.over(workload)
    }
}

/// Batch that a plan's file says it was made with.
fn batch_in_plan(plan: &Path) -> Result<Option<u32>, Failure> {
    let (bytes, _) = input::file_bytes(plan)?;
    // Errors in the file are reported when the plan is read.
    let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let document = document.get(0).unwrap_or(&document);
    let at = |pointer: &str| document.pointer(pointer)?.as_f64();
    let samples = at("/workload/profile_batch").or_else(|| at("/planner/options/profile_batch"));
    Ok(samples.filter(|samples| (1.0..=f64::from(u32::MAX)).contains(samples)).map(|samples| samples as u32))
}

/// Returns true for `profile_batch=N`.
fn is_batch(setting: &str) -> bool {
    setting.split_once('=').is_some_and(|(name, _)| name.trim() == "profile_batch")
}

/// Prints a note that a PipeDream file does not state the batch: PipeDream's own tools accept no comments.
pub(super) fn untold_in(format: &str, workload: &Workload) {
    if let Some(batch) = family::of(workload).profile_batch().filter(|batch| format == "pipedream" && batch.samples > 1)
    {
        let samples = batch.samples;
        notice::note(&format!(
            "the file does not hold the profile's batch, since PipeDream's tools cannot read it; read it with \
            --profile-batch {samples}"
        ));
    }
}

/// Settings without the batch, which is applied to the workload: it was formerly an option of planners.
///
/// # Errors
/// As [`ProfileArgs::over`].
pub(super) fn batch_of(
    workload: &mut Workload,
    settings: Vec<String>,
    asked: &ProfileArgs,
) -> Result<Vec<String>, Failure> {
    let (batch, rest): (Vec<String>, Vec<String>) = settings.into_iter().partition(|setting| is_batch(setting));
    if let Some((_, text)) = batch.last().and_then(|setting| setting.split_once('=')) {
        if asked.profile_batch.is_some() {
            return Err(Failure::refused(
                "--profile-batch and --set profile_batch set the same value",
                "give one of them",
            ));
        }
        let samples_of = |error: UnitError| Failure::refused(format!("--set profile_batch: {error}"), "");
        let profile_batch = Some(samples(text).map_err(samples_of)?);
        *workload = ProfileArgs { profile_batch, micro_batch: None }.over(workload.clone())?;
    }
    Ok(rest)
}
