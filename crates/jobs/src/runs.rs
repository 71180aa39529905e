//! Measured runs of Megatron-LM's logs, for `calibrate`.

use plantui_core::{
    family::training::{calibrate::MeasuredRun, request::Request},
    source::LoadError,
    workload::training::Model,
};

use super::job::ReadOptions;

/// True if a text is a log of Megatron-LM with iteration times.
pub fn is_log(text: &str) -> bool {
    text.contains("elapsed time per iteration (ms)")
}

/// Run of a Megatron-LM log. Facts that the log lacks come from `defaults`.
///
/// # Errors
/// [`LoadError`] if the log has another model, or an argument that no run can have.
pub fn measured_run(text: &str, source: &str, model: &Model, defaults: &Request) -> Result<MeasuredRun, LoadError> {
    let options = ReadOptions { format: Some("megatron"), model: Some(model.clone()), ..ReadOptions::default() };
    let job = super::read(text, source, None, &options)?;
    let refused = |problem: String, repair: &str| LoadError::file(source, problem, repair);
    let Some(measured) = &job.measured else {
        return Err(refused("has no elapsed time per iteration".into(), "give a log with some iterations"));
    };
    let resolved = job
        .request()?
        .or(defaults)
        .resolve(model)
        .map_err(|refusal| LoadError::file(source, refusal.problem, refusal.repair))?;
    Ok(MeasuredRun {
        place: source.into(),
        resolved,
        measured_s: measured.iteration_s,
        measured_bytes: measured.memory_bytes,
    })
}
