//! Estimate as JSON, schema `plantui.estimate/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::schemas::DocumentSchema;
use crate::{
    family::training::{
        Estimate, Model, StageEstimate, TrainingSettings, remedy::Remedy, request::ResolvedRequest, truth::RunClass,
    },
    plan::document::CostPart,
    workload::training::Layout,
};

/// Schema of this version.
const SCHEMA: &str = "plantui.estimate/1";

/// Predicted time, throughput and memory of a training run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct EstimateDocument {
    /// Always `plantui.estimate/1`.
    schema: &'static str,
    /// Model of the run.
    model: ModelPart,
    /// Id of the hardware.
    hardware: &'static str,
    /// Number of devices.
    devices: u64,
    /// Degrees of parallelism.
    parallel: LayoutPart,
    /// Sequences in an iteration, over all devices.
    global_batch: u64,
    /// Microbatches in an iteration.
    microbatches: u64,
    /// Tokens in a sequence.
    sequence_length: u64,
    /// Number format of matrix products.
    precision: &'static str,
    /// Recomputation in the backward pass.
    recompute: String,
    /// Profile of the training software.
    stack: &'static str,
    /// Settings of the software by name: true or false, a number, or a word; `reserve` in bytes.
    settings: Map<String, Value>,
    /// Seconds of an iteration.
    iteration_s: f64,
    /// Days and cost, if a price or a number of tokens was given.
    cost: Option<CostPart>,
    /// Seconds of an iteration from the simulator.
    simulated_s: f64,
    /// Tokens per second.
    tokens_per_s: f64,
    /// Tokens per second and device.
    tokens_per_s_per_device: f64,
    /// Operations that the model needs, per second and device.
    model_flops_per_s_per_device: f64,
    /// The model's operations as a fraction of the peak, 0 to 1.
    mfu: f64,
    /// Like `mfu`, but includes recomputed operations.
    hfu: f64,
    /// Share of the iteration in which the mean rank waits during warm-up and drain.
    bubble: f64,
    /// Seconds of each part of the iteration on the mean rank; they add up to `iteration_s`.
    #[schemars(with = "BTreeMap<String, f64>")]
    parts_s: Map<String, Value>,
    /// Bytes on the fullest rank, without the reserve.
    memory_bytes: f64,
    /// Memory of a device.
    device_memory_bytes: f64,
    /// Stages, first to last.
    stages: Vec<EstimatedStagePart>,
    /// `yes` if it fits with the memory model's error added, `close` if only without, `no`.
    fits: &'static str,
    /// Single changes that would make it fit.
    would_fit: Vec<RemedyPart>,
    /// Comparable published runs; `null` if there are none.
    trust: Option<&'static RunClass>,
    /// Differences from all published runs, a phrase each. Empty if there are comparable runs.
    differs: Vec<String>,
    /// Reason why the utilisation is implausible, if it is.
    implausible: Option<String>,
    /// Assumptions, a sentence each.
    assumptions: Vec<String>,
}

/// Model of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelPart {
    /// Name of the model.
    name: String,
    /// Source of its sizes.
    source: String,
    /// Number of parameters.
    parameters: u64,
    /// Parameters that a token uses.
    active_parameters: u64,
    /// Number of layers.
    layers: usize,
}

/// Degrees of parallelism.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct LayoutPart {
    /// Tensor parallelism.
    tp: u32,
    /// Pipeline stages.
    pp: u32,
    /// Virtual stages per device.
    vp: u32,
    /// Context parallelism.
    cp: u32,
    /// Expert parallelism.
    ep: u32,
    /// Tensor parallelism of experts.
    etp: u32,
    /// Data parallelism.
    dp: u32,
    /// Sequences in a microbatch; absent in an imported job, which has it as `micro_batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mbs: Option<u32>,
}

impl LayoutPart {
    /// Degrees without the micro-batch.
    pub(in crate::cli) fn degrees(layout: &Layout) -> Self {
        LayoutPart {
            tp: layout.tensor,
            pp: layout.pipeline,
            vp: layout.virtual_stages,
            cp: layout.context,
            ep: layout.expert,
            etp: layout.expert_tensor,
            dp: layout.data,
            mbs: None,
        }
    }
}

/// Stage of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct EstimatedStagePart {
    /// Number of layers.
    layers: usize,
    /// Seconds of a microbatch forward.
    forward_s: f64,
    /// Seconds of a microbatch backward.
    backward_s: f64,
    /// Microbatches in flight.
    in_flight: f64,
    /// Bytes of a device.
    memory_bytes: f64,
    /// Its parts.
    memory: StageMemoryPart,
}

/// Memory of a device by use.
#[derive(Debug, Serialize, JsonSchema)]
struct StageMemoryPart {
    /// Weights.
    weights_bytes: f64,
    /// Gradients.
    gradients_bytes: f64,
    /// Optimizer state.
    optimizer_bytes: f64,
    /// Activations of microbatches in flight.
    activations_bytes: f64,
    /// Working memory.
    work_bytes: f64,
}

/// Change that would make a run fit.
#[derive(Debug, Serialize, JsonSchema)]
struct RemedyPart {
    /// Flags that ask for it.
    flags: String,
    /// Seconds of an iteration with it.
    iteration_s: f64,
    /// Bytes on the fullest rank with it.
    memory_bytes: f64,
    /// Result of the memory check with it.
    fits: &'static str,
}

impl EstimateDocument {
    /// Document of an estimate.
    pub(super) fn new(
        (model, resolved): (&Model, &ResolvedRequest),
        estimate: &Estimate,
        cost: Option<CostPart>,
        remedies: &[Remedy],
    ) -> Self {
        let run = &resolved.run;
        EstimateDocument {
            schema: SCHEMA,
            model: ModelPart {
                name: model.name.clone(),
                source: model.source.clone(),
                parameters: model.parameters(),
                active_parameters: model.active_parameters(),
                layers: model.layers.len(),
            },
            hardware: resolved.accelerator.id,
            devices: resolved.devices,
            parallel: LayoutPart { mbs: Some(run.layout.micro_batch), ..LayoutPart::degrees(&run.layout) },
            global_batch: run.global_batch,
            microbatches: run.microbatches(),
            sequence_length: run.sequence,
            precision: run.precision.id(),
            recompute: run.recompute.to_string(),
            stack: resolved.stack.id(),
            settings: settings(&run.settings),
            iteration_s: estimate.iteration_s,
            cost,
            simulated_s: estimate.simulated_s,
            tokens_per_s: estimate.tokens_per_s,
            tokens_per_s_per_device: estimate.tokens_per_s_per_device,
            model_flops_per_s_per_device: estimate.model_flops_per_s_per_device,
            mfu: estimate.mfu,
            hfu: estimate.hfu,
            bubble: estimate.bubble,
            parts_s: estimate.parts.iter().map(|(name, seconds)| ((*name).to_string(), (*seconds).into())).collect(),
            memory_bytes: estimate.memory_bytes,
            device_memory_bytes: estimate.limit_bytes,
            stages: estimate.stages.iter().map(stage).collect(),
            fits: estimate.fits.id(),
            would_fit: remedies.iter().map(remedy).collect(),
            trust: estimate.trust.class(),
            differs: estimate.trust.differences().to_vec(),
            implausible: estimate.implausible.clone(),
            assumptions: estimate.assumptions.clone(),
        }
    }
}

/// Settings by name, in the type of each.
fn settings(settings: &TrainingSettings) -> Map<String, Value> {
    let value = |name: &str| {
        let text = settings.text(name);
        match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ if name == "reserve" => settings.reserve_bytes.into(),
            _ => text.parse::<u32>().map_or(Value::String(text), Value::from),
        }
    };
    TrainingSettings::NAMES.iter().map(|(name, _)| ((*name).to_string(), value(name))).collect()
}

fn stage(stage: &StageEstimate) -> EstimatedStagePart {
    let held = &stage.memory;
    EstimatedStagePart {
        layers: stage.layers,
        forward_s: stage.forward_s,
        backward_s: stage.backward_s,
        in_flight: stage.in_flight,
        memory_bytes: held.total(),
        memory: StageMemoryPart {
            weights_bytes: held.weights,
            gradients_bytes: held.gradients,
            optimizer_bytes: held.optimizer,
            activations_bytes: held.activations,
            work_bytes: held.work,
        },
    }
}

fn remedy(remedy: &Remedy) -> RemedyPart {
    RemedyPart {
        flags: remedy.flags.clone(),
        iteration_s: remedy.iteration_s,
        memory_bytes: remedy.memory_bytes,
        fits: remedy.fits.id(),
    }
}

/// JSON Schema of the document.
pub(in crate::cli) fn schema() -> DocumentSchema {
    DocumentSchema::written::<EstimateDocument>(SCHEMA)
}
