//! `plantui explain JOB`: what in a job costs most, and single changes that would help, each predicted.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    CommandEnd, Failure,
    estimate::refused,
    import,
    job_input::JobInput,
    output::{self, Destination},
    report::{line, table},
};
use crate::schemas::DocumentSchema;
use crate::{
    family::training::{Estimate, Fits},
    study::improve::{ExistingRun, SingleChange},
    units,
};

/// Schema of the JSON document.
const SCHEMA: &str = "plantui.explain-job/1";

/// Most changes that are printed.
const MOST_CHANGES: usize = 8;

/// Least relative gain that is printed.
const LEAST_GAIN: f64 = 0.005;

/// Explains a job.
///
/// # Errors
/// [`Failure`] if the engine refuses the job, or the result cannot be written.
pub(super) fn run(input: &JobInput, json: bool, destination: &Destination) -> Result<CommandEnd, Failure> {
    let Some(profile) = input.workload.training() else {
        return Err(Failure::refused(format!("{}: the job has no model", input.job.source), ""));
    };
    let run = &input.resolved.run;
    let existing =
        ExistingRun { model: &profile.model, run, accelerator: &profile.accelerator, devices: input.resolved.devices };
    let now = Estimate::of(existing.model, run, existing.accelerator, existing.devices, None).map_err(refused)?;
    let reach = import::reach(&input.job);
    let found = if now.fits == Fits::No { existing.fitting(reach) } else { existing.changes(reach) };
    let helps = |change: &SingleChange| now.fits == Fits::No || gain(&now, change) > LEAST_GAIN;
    let changes: Vec<SingleChange> = found.into_iter().filter(helps).collect();
    destination.write(&if json {
        output::json(&document(input, &now, &changes))
    } else {
        text(input, &now, &changes)
    })?;
    Ok(CommandEnd::Done)
}

/// Relative gain in time.
fn gain(now: &Estimate, change: &SingleChange) -> f64 {
    now.iteration_s / change.estimate.iteration_s - 1.0
}

/// Parts of the time, largest first, with their names.
fn costs(now: &Estimate) -> Vec<(String, f64)> {
    let mut parts: Vec<(String, f64)> =
        now.parts.iter().map(|(name, seconds)| (name.replace('_', " "), seconds / now.iteration_s)).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.retain(|(_, share)| *share >= LEAST_GAIN);
    parts
}

fn text(input: &JobInput, now: &Estimate, changes: &[SingleChange]) -> String {
    let run = &input.resolved.run;
    let mut text = String::new();
    let whole = now.memory_bytes + run.settings.reserve_bytes;
    line(&mut text, format_args!("{}: {}, {}", input.job.source, input.job.title, run.layout));
    line(
        &mut text,
        format_args!(
            "{}/iteration on {} x {}, MFU {}, fits: {}",
            units::seconds(now.iteration_s),
            input.resolved.devices,
            input.resolved.accelerator.id,
            units::percent(now.mfu),
            now.fits.with_excess(whole, now.limit_bytes)
        ),
    );
    let largest: Vec<String> =
        costs(now).iter().take(6).map(|(name, share)| format!("{name} {}", units::percent(*share))).collect();
    line(&mut text, format_args!("time: {}", largest.join(", ")));
    if let Some(stage) = now.stages.iter().max_by(|a, b| a.memory.total().total_cmp(&b.memory.total())) {
        let held = &stage.memory;
        let parts = [
            ("weights", held.weights),
            ("gradients", held.gradients),
            ("optimizer", held.optimizer),
            ("activations", held.activations),
            ("work", held.work),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, bytes)| *bytes > 0.0)
            .map(|(name, bytes)| format!("{name} {}", units::bytes_beside(*bytes, now.limit_bytes)))
            .collect();
        line(&mut text, format_args!("memory of the fullest stage: {}", parts.join(", ")));
    }
    text.push('\n');
    if changes.is_empty() {
        line(&mut text, format_args!("no single change makes it faster or makes it fit"));
    } else {
        let mut rows = vec![["change", "iteration", "difference", "memory", "fits"].map(String::from).to_vec()];
        // Of one degree with several values, the best.
        let mut told = HashSet::new();
        let first = |change: &&SingleChange| {
            let degree = change.what.split(" -> ").next().unwrap_or_default();
            change.what.contains(',') || told.insert(degree.to_string())
        };
        for change in changes.iter().filter(first).take(MOST_CHANGES) {
            let whole = change.estimate.memory_bytes + change.run.settings.reserve_bytes;
            let faster = gain(now, change);
            rows.push(vec![
                change.what.clone(),
                units::seconds(change.estimate.iteration_s),
                format!("{} {}", units::percent(faster.abs()), if faster >= 0.0 { "faster" } else { "slower" }),
                units::bytes_beside(whole, now.limit_bytes),
                format!("{} left", units::bytes_beside(now.limit_bytes - whole, now.limit_bytes)),
            ]);
        }
        table(&mut text, &rows);
    }
    let named = match &input.job.model {
        Some(model) if model.place.to_string() == "MODEL" => format!(" {}", model.value.name),
        _ => String::new(),
    };
    text.push('\n');
    line(&mut text, format_args!("trust: {}", now.trust.summary()));
    line(
        &mut text,
        format_args!(
            "next: plantui import {}{named} --hardware {} compares it with the best layout",
            input.job.source, input.resolved.accelerator.id
        ),
    );
    text
}

/// Costs of a job, and single changes that would help.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExplainJobDocument<'a> {
    /// Always `plantui.explain-job/1`.
    schema: &'static str,
    /// File of the job.
    job: &'a str,
    /// Id of its format.
    format: &'static str,
    /// Seconds of an iteration.
    iteration_s: f64,
    /// The model's operations as a fraction of the peak, 0 to 1.
    mfu: f64,
    /// Bytes on the fullest rank, with the reserve.
    memory_bytes: f64,
    /// Result of the memory check: `yes`, `close`, `no`.
    fits: &'static str,
    /// Share of each part in the iteration, largest first.
    #[schemars(with = "BTreeMap<String, f64>")]
    time_shares: Map<String, Value>,
    /// Single changes, best first.
    changes: Vec<ChangePart<'a>>,
}

/// Single change of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangePart<'a> {
    /// The change in words.
    change: &'a str,
    /// Seconds of an iteration with it.
    iteration_s: f64,
    /// Relative gain in time; below 0 if it is slower.
    faster: f64,
    /// Bytes on the fullest rank with it, with the reserve.
    memory_bytes: f64,
    /// Result of the memory check with it.
    fits: &'static str,
}

fn document<'a>(input: &'a JobInput, now: &Estimate, changes: &'a [SingleChange]) -> ExplainJobDocument<'a> {
    let change = |change: &'a SingleChange| ChangePart {
        change: &change.what,
        iteration_s: change.estimate.iteration_s,
        faster: gain(now, change),
        memory_bytes: change.estimate.memory_bytes + change.run.settings.reserve_bytes,
        fits: change.estimate.fits.id(),
    };
    ExplainJobDocument {
        schema: SCHEMA,
        job: &input.job.source,
        format: input.job.format,
        iteration_s: now.iteration_s,
        mfu: now.mfu,
        memory_bytes: now.memory_bytes + input.resolved.run.settings.reserve_bytes,
        fits: now.fits.id(),
        time_shares: costs(now).into_iter().map(|(name, share)| (name.replace(' ', "_"), share.into())).collect(),
        changes: changes.iter().map(change).collect(),
    }
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<ExplainJobDocument<'_>>(SCHEMA)
}
