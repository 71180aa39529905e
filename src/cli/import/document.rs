//! Imported job as JSON, schema `plantui.import/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    ImportedJob,
    report::{adapter, offload, recompute, sharding},
};
use crate::schemas::DocumentSchema;
use crate::{
    cli::{
        cost::CostArgs,
        estimate::{
            document::{EstimateDocument, LayoutPart},
            report::EstimateReport,
        },
    },
    family::training::request::ResolvedRequest,
    jobs::{Assumption, Measured, Unused},
    workload::training::ZeroBubble,
};

/// Schema of this version.
const SCHEMA: &str = "plantui.import/1";

/// Job of a training engine: its settings with their places, and predictions of it as it runs and of the best layout.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ImportDocument<'a> {
    /// Always `plantui.import/1`.
    schema: &'static str,
    /// Id of the job's format.
    format: &'static str,
    /// Function, command or recipe of the file, if it has several.
    recipe: Option<&'a str>,
    /// Settings of the job.
    read: ReadPart<'a>,
    /// Place of each setting, by name.
    sources: BTreeMap<&'a str, String>,
    /// Values that the file does not state.
    assumed: Vec<AssumedPart<'a>>,
    /// Settings without a use.
    not_used: NotUsedPart<'a>,
    /// Facts that the prediction cannot express, and rules of the engine.
    notes: &'a [String],
    /// Measured iterations, if the job is a log.
    measured: Option<MeasuredPart>,
    /// Prediction of the job.
    as_it_runs: EstimateDocument,
    /// Prediction of the best layout found.
    best: Option<EstimateDocument>,
}

/// Settings of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct ReadPart<'a> {
    /// Name of the model.
    model: &'a str,
    /// Number of parameters.
    parameters: u64,
    /// Parameters that a token uses.
    active_parameters: u64,
    /// Number of layers, or those of each stage.
    layers: LayersPart<'a>,
    /// Tokens in a sequence.
    sequence_length: u64,
    /// Number format of matrix products.
    precision: &'static str,
    /// Number of devices.
    devices: u64,
    /// Degrees of parallelism.
    parallel: LayoutPart,
    /// Sequences in a microbatch.
    micro_batch: u32,
    /// Sequences in an iteration.
    global_batch: u64,
    /// Recomputation.
    recompute: String,
    /// Division of weights, gradients and state over replicas: `none`, `zero1`, `zero2`, `zero3`, `hsdp`.
    sharding: &'static str,
    /// Parts that lie in the host's memory.
    offload: Vec<&'static str>,
    /// Adapter, or `none`.
    adapter: String,
    /// Schedule with split backward passes, if it has one.
    schedule: Option<&'static str>,
}

/// Number of layers, or those of each stage.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum LayersPart<'a> {
    /// Number of layers.
    Count(usize),
    /// Layers of each stage.
    Stages(&'a [u32]),
}

/// Value that a file does not state.
#[derive(Debug, Serialize, JsonSchema)]
struct AssumedPart<'a> {
    /// Name of the setting.
    name: &'a str,
    /// Its value.
    value: &'a str,
    /// Flag that gives another.
    flag: &'a str,
}

/// Settings without a use.
#[derive(Debug, Serialize, JsonSchema)]
struct NotUsedPart<'a> {
    /// Settings that have no effect on time and memory.
    no_effect: Vec<UnusedPart<'a>>,
    /// Settings that were not understood.
    not_understood: Vec<UnusedPart<'a>>,
}

/// Setting without a use.
#[derive(Debug, Serialize, JsonSchema)]
struct UnusedPart<'a> {
    /// Name of the setting.
    name: &'a str,
    /// Its value.
    value: &'a str,
    /// File and line.
    source: String,
}

/// Measured iterations.
#[derive(Debug, Serialize, JsonSchema)]
struct MeasuredPart {
    /// Seconds of an iteration.
    iteration_s: f64,
    /// Bytes of a device, if stated.
    memory_bytes: Option<f64>,
    /// Number of iterations.
    iterations: usize,
}

impl ImportedJob<'_> {
    /// Document of the job.
    pub(super) fn document(&self) -> ImportDocument<'_> {
        let (run, job) = (&self.resolved.run, self.job);
        let cost = CostArgs::default();
        let best = self.best.map(|best| {
            let resolved = ResolvedRequest { run: best.run.clone(), devices: best.devices, ..self.resolved.clone() };
            let model = self.model;
            EstimateReport { model, resolved: &resolved, estimate: &best.estimate, cost: &cost, remedies: &[] }
                .document()
        });
        let as_it_runs = EstimateReport {
            model: self.model,
            resolved: self.resolved,
            estimate: self.estimate,
            cost: &cost,
            remedies: self.remedies,
        };
        let facts = job.facts.iter().map(|(name, fact)| (name.as_str(), fact.place.to_string()));
        ImportDocument {
            schema: SCHEMA,
            format: job.format,
            recipe: job.recipe.as_deref(),
            read: ReadPart {
                model: &self.model.name,
                parameters: self.model.parameters(),
                active_parameters: self.model.active_parameters(),
                layers: match run.layers.is_empty() {
                    true => LayersPart::Count(self.model.layers.len()),
                    false => LayersPart::Stages(&run.layers),
                },
                sequence_length: run.sequence,
                precision: run.precision.id(),
                devices: self.resolved.devices,
                parallel: LayoutPart::degrees(&run.layout),
                micro_batch: run.layout.micro_batch,
                global_batch: run.global_batch,
                recompute: recompute(run),
                sharding: sharding(&run.settings),
                offload: offload(&run.settings),
                adapter: adapter(&run.settings),
                schedule: run.zero_bubble.map(ZeroBubble::id),
            },
            sources: facts.chain(job.model.iter().map(|model| ("model", model.place.to_string()))).collect(),
            assumed: job.assumed.iter().map(assumed).collect(),
            not_used: NotUsedPart {
                no_effect: job.no_effect.iter().map(unused).collect(),
                not_understood: job.not_understood.iter().map(unused).collect(),
            },
            notes: &job.notes,
            measured: job.measured.as_ref().map(measured),
            as_it_runs: as_it_runs.document(),
            best,
        }
    }
}

fn assumed(assumption: &Assumption) -> AssumedPart<'_> {
    AssumedPart { name: &assumption.name, value: &assumption.value, flag: &assumption.flag }
}

fn unused(setting: &Unused) -> UnusedPart<'_> {
    UnusedPart { name: &setting.name, value: &setting.value, source: setting.place.to_string() }
}

fn measured(measured: &Measured) -> MeasuredPart {
    MeasuredPart {
        iteration_s: measured.iteration_s,
        memory_bytes: measured.memory_bytes,
        iterations: measured.iterations,
    }
}

/// JSON Schema of the document.
pub(in crate::cli) fn schema() -> DocumentSchema {
    DocumentSchema::written::<ImportDocument<'_>>(SCHEMA)
}
