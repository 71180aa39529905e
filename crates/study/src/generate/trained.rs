//! Piper workload with the times and memory of the model of real training, by tensor degree, at one micro-batch.
//!
//! Embedding, layers and head form a path. Masks, which no engine sends, are left out, so interleaved schedules can run
//! the profile. `O(layers · degrees)` time and memory.

use super::{
    GenerateError,
    cost::ModeCost,
    sketch::{Sketch, SketchNode},
};
use plantui_core::{
    cluster::Limits,
    family::training::{
        Layout, Projection, Recompute, TrainingRun, check,
        iteration::Parameters,
        layer::{LayerTime, RunRates},
        memory,
        repeated::Repeated,
    },
    units,
    workload::{
        NodeIndex, TrainingProfile,
        piper::{RECOMPUTE, TRANSFORMER_LAYER, VANILLA},
        recipe::{ModelShape, Precision, Recipe},
    },
};

/// Settings of a profile, and the limits written into the file.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedSettings {
    /// Sequences per microbatch.
    pub micro_batch: u32,
    /// Tensor-parallel degrees to offer, ascending, starting with 1; `None` for those of 1, 2, 4 and 8 that the engine
    /// accepts.
    pub tensor_degrees: Option<Vec<u32>>,
    /// Replicas over which the optimizer's state is divided; 1 if each replica has all of it.
    pub optimizer_shards: u32,
    /// Limits written into the file.
    pub limits: Limits,
}

impl TrainedSettings {
    /// Default settings: one sequence per microbatch, the whole optimizer state, and the accelerators' memory and
    /// links.
    pub fn usual(profile: &TrainingProfile) -> Self {
        let accelerator = &profile.accelerator;
        TrainedSettings {
            micro_batch: 1,
            tensor_degrees: None,
            optimizer_shards: 1,
            limits: Limits {
                devices: 64,
                memory_bytes: Some(accelerator.memory_bytes - profile.settings.reserve_bytes),
                microbatches: 128,
                bandwidth_bytes_per_s: Some(accelerator.outer_link),
                ..Limits::NEUTRAL
            },
        }
    }
}

/// Text of a Piper workload for a trained model.
///
/// # Errors
/// [`GenerateError::Setting`] if an engine refuses a degree or the micro-batch.
pub fn trained(
    profile: &TrainingProfile,
    settings: &TrainedSettings,
    command_line: &str,
) -> Result<String, GenerateError> {
    let maker = LayerCostModel {
        profile,
        micro_batch: settings.micro_batch,
        optimizer_shards: settings.optimizer_shards.max(1),
    };
    let degrees = match &settings.tensor_degrees {
        Some(degrees) if degrees.first() != Some(&1) || !degrees.is_sorted_by(|a, b| a < b) => {
            let problem = "the degrees must be ascending, without repetition, and start at 1".into();
            return Err(GenerateError::Setting { flag: "--tensor-degrees", problem });
        }
        Some(degrees) => {
            for &degree in degrees {
                maker
                    .check_degree(degree)
                    .map_err(|problem| GenerateError::Setting { flag: "--tensor-degrees", problem })?;
            }
            degrees.clone()
        }
        None => [1, 2, 4, 8].into_iter().filter(|&degree| maker.check_degree(degree).is_ok()).collect(),
    };
    maker.check_degree(1).map_err(|problem| GenerateError::Setting { flag: "--micro-batch", problem })?;
    let count = profile.nodes();
    let nodes: Vec<SketchNode> = NodeIndex::first(count).map(|node| maker.node(node, &degrees)).collect();
    let bytes = 2.0 * maker.run(1, Recompute::None).tokens() * profile.model.hidden as f64;
    let edges = (1..count).map(|node| (node - 1, node, bytes)).collect();
    let accelerator = &profile.accelerator;
    let sketch = Sketch {
        nodes,
        edges,
        limits: settings.limits.clone(),
        provenance: command_line.into(),
        assumptions: maker.assumptions(),
        recipe: Some(maker.recipe()),
        gathered: Some(accelerator.outer_link / accelerator.inner_link),
    };
    Ok(sketch.text())
}

struct LayerCostModel<'a> {
    profile: &'a TrainingProfile,
    micro_batch: u32,
    optimizer_shards: u32,
}

impl LayerCostModel<'_> {
    fn run(&self, tensor: u32, recompute: Recompute) -> TrainingRun {
        let layout = Layout { tensor, micro_batch: self.micro_batch, ..Layout::ONE };
        TrainingRun { layout, recompute, global_batch: self.micro_batch.into(), ..self.profile.alone() }
    }

    /// Checks that an engine accepts a degree; the error is the reason.
    fn check_degree(&self, tensor: u32) -> Result<(), String> {
        let profile = self.profile;
        let run = self.run(tensor, Recompute::None);
        let checked = check::check(&profile.model, &run, &profile.accelerator, tensor.into());
        checked.map(|_| ()).map_err(|refusal| format!("{}; {}", refusal.problem, refusal.repair))
    }

    /// Bytes per parameter: 16-bit weights, the gradients, and the optimizer's 12, whole or divided.
    fn state_bytes(&self) -> f64 {
        f64::from(2 + self.profile.settings.gradient_bytes) + 12.0 / f64::from(self.optimizer_shards)
    }

    /// Value of `parameterSize` for this many parameters. Replicas exchange `4(d − 1)/d` of it in bytes. Gradients are
    /// reduced at the width they are kept: twice in a ring, or once with 16-bit weights gathered from sharded
    /// optimizers.
    fn exchanged(&self, parameters: f64) -> f64 {
        let gradient = f64::from(self.profile.settings.gradient_bytes);
        parameters * if self.optimizer_shards > 1 { (gradient + 2.0) / 4.0 } else { gradient / 2.0 }
    }

    fn node(&self, node: NodeIndex, degrees: &[u32]) -> SketchNode {
        let last = self.profile.nodes() - 1;
        let name = match node.index() {
            0 => "Embedding",
            node if node == last => "Head",
            _ => TRANSFORMER_LAYER,
        };
        let modes = |&degree: &u32| {
            let kept = (VANILLA, self.cost(node, degree, Recompute::None));
            (degree, vec![kept, (RECOMPUTE, self.cost(node, degree, Recompute::Full))])
        };
        SketchNode { name: name.into(), degrees: degrees.iter().map(modes).collect() }
    }

    fn cost(&self, node: NodeIndex, tensor: u32, recompute: Recompute) -> ModeCost {
        let TrainingProfile { model, accelerator, constants, .. } = self.profile;
        let run = self.run(tensor, recompute);
        let rates = RunRates::new(model, &run, accelerator, constants);
        let input = 2.0 * run.tokens() * model.hidden as f64 / run.sequence_split();
        let state = self.state_bytes();
        let ends = &model.ends;
        let table = (ends.vocabulary * ends.token_width) as f64 / f64::from(tensor);
        if let Some(layer) = self.profile.layer_of(node) {
            let kind = model.kind(layer);
            let repeated = if recompute == Recompute::Full { Repeated::Whole } else { Repeated::NOTHING };
            let LayerTime { forward, backward, again, .. } = rates.layer(kind, repeated);
            let of = Parameters::of_layer(model, &run, kind);
            let parameters = of.shared + of.experts;
            let kept = if recompute == Recompute::Full { input } else { memory::layer_bytes(model, &run, kind) };
            return ModeCost {
                time_s: forward.total() + backward.total() + again.total(),
                forward_s: forward.total(),
                parameters: self.exchanged(parameters),
                memory_a: kept,
                memory_b: state * parameters,
            };
        }
        if node.index() == 0 {
            let time_s = rates.embedding();
            let parameters = table + ends.before as f64;
            return ModeCost {
                time_s,
                forward_s: time_s / 3.0,
                parameters: self.exchanged(parameters),
                memory_a: input,
                memory_b: state * parameters,
            };
        }
        let [forward_s, backward_s] = rates.head();
        let parameters = ends.after as f64 + if ends.projection == Projection::None { 0.0 } else { table };
        // Only one microbatch's logits exist at a time.
        let logits = if ends.projection == Projection::None { 0.0 } else { 10.0 * table / ends.token_width as f64 };
        ModeCost {
            time_s: forward_s + backward_s,
            forward_s,
            parameters: self.exchanged(parameters),
            memory_a: input,
            memory_b: state * parameters + run.tokens() * logits,
        }
    }

    fn recipe(&self) -> Recipe {
        let settings = &self.profile.settings;
        Recipe {
            micro_batch: Some(self.micro_batch),
            sequence_length: u32::try_from(self.profile.sequence).ok(),
            precision: Some(Precision::Bf16),
            sequence_parallel: Some(settings.sequence_parallel),
            tensor_overlap: Some(settings.tp_overlap),
            keeps_attention_scores: Some(
                settings.attention == plantui_core::family::training::AttentionKernel::Unfused,
            ),
            state_bytes_per_parameter: Some(self.state_bytes()),
            optimizer_shards: (self.optimizer_shards > 1).then_some(self.optimizer_shards),
            model: ModelShape::of(&self.profile.model),
        }
    }

    fn assumptions(&self) -> Vec<String> {
        let TrainingProfile { model, accelerator, stack, sequence, .. } = self.profile;
        vec![
            format!(
                "Model: {}, {} parameters; source: {}.",
                model.name,
                units::count_short(model.parameters() as f64),
                model.source
            ),
            format!(
                "Hardware: {}; times come from the model that docs/src/background/truth.md compares with \
                published runs.",
                accelerator.id
            ),
            format!("A microbatch is {} x {sequence} tokens, software as {} runs it.", self.micro_batch, stack.id()),
            match self.optimizer_shards {
                1 => "Memory counts 16-bit weights, gradients as the engine keeps them, and 12 bytes of optimizer a \
                      parameter, whole."
                    .into(),
                shards => format!(
                    "Memory counts 16-bit weights, gradients as the engine keeps them, and 12 bytes of optimizer a \
                     parameter over {shards} replicas."
                ),
            },
            format!(
                "parameterSize is chosen so that 4(d-1)/d of it are the bytes that d replicas exchange: gradients \
                of {} bytes.",
                self.profile.settings.gradient_bytes
            ),
            "Recomputation restores one layer at a time; its activations are not counted.".into(),
            "At tensor degrees above 1 a stage sends its output whole; the gather within a machine counts as bytes \
            at the bandwidth between devices."
                .into(),
            "Every stage makes its own attention masks; none are sent.".into(),
        ]
    }
}
