//! `plantui estimate`: predicts the iteration time of a training run and its memory, with the error of such
//! predictions.

pub(super) mod document;
mod model;
pub(super) mod report;

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    CommandEnd, Failure,
    cost::CostArgs,
    hardware_file, input,
    output::{self, Destination},
    topology_input::TopologyArgs,
};
use crate::{
    family::{
        kinds::KindCount,
        training::{
            self, Adapter, Calibration, Estimate, USUAL_BATCH, check::Refusal, expert_settings::read_counts, fabric,
            remedy, request::Request,
        },
    },
    workload::{
        formats::{self, detect},
        training::hardware::Fabric,
    },
};
pub(in crate::cli) use document::schema;
pub(super) use model::model;

const EXAMPLES: &str = "\
Examples:
  plantui estimate llama-3.1-70b --devices 64 --parallel tp=4,pp=4,vp=5,cp=2 --global-batch 128
  plantui estimate path/to/config.json --hardware b200 --devices 8 --global-batch 64 --precision fp8 --json
  plantui estimate Qwen/Qwen3-30B-A3B --hardware h100 --devices 32 --parallel pp=2,ep=8 --global-batch 256
  plantui estimate gpt3-175b --hardware a100 --parallel tp=8,pp=8,vp=3 --global-batch 64 --recompute full \\
      --stack plain --set sequence_parallel=false --set attention=unfused
  plantui estimate llama-3.1-8b --topology 2xdgx-h100 --parallel tp=2 --global-batch 64
  plantui estimate llama-3.1-8b --parallel pp=4 --global-batch 32 --layers 9,8,8,7

  plantui estimate llama-3-70b --hardware a100-40 --devices 4 --adapter qlora:r=16 --set zero=3 --recompute full
  plantui estimate llama-3.1-8b --hardware my-board.toml --devices 8 --tokens 1T --price 1.20

Degrees: tp tensor, pp pipeline, vp virtual stages, cp context, ep expert, etp tensor for experts, dp data parallel, \
mbs sequences in a microbatch. Default 1; dp follows from the devices, etp from the stack.
Hardware: `plantui hardware` lists the presets. Stacks: megatron-2025, nemo-24, torchtitan, plain.
Modules of --recompute selective: core_attn, mlp, moe, moe_act, layernorm, mla_up_proj, proj, op (every second matrix \
product, as torchtitan); policies of MaxText: minimal, save_dot_except_mlp, save_out_proj, save_qkv_proj.
Settings and their values: sequence_parallel, distributed_optimizer, shard_gradients, fsdp, tp_overlap, dp_overlap, \
accumulate_whole, fused_cross_entropy, vocab_parallel_loss, fused_elementwise, optimizer_offload, parameter_offload \
(true, false), zero (0 to 3: the optimizer's state, gradients, weights divided over replicas), hsdp (ranks of one \
copy), attention (flash, flash1, flash2, unfused), context_style (ring, all-gather, all-to-all, hierarchical), \
dispatcher (alltoall, deepep, hybridep), ep_overlap (none, shared, batch), shared_expert_overlap, delay_weight_gradients, \
cuda_graph (true, false), release (of Megatron-Bridge, such as 26.02), gradient_bytes (2, 4), \
master_bytes (0, 2, 4), moment_bytes (1, 2, 4), activation_offload (layers of each stage), reserve (a size).";

/// Predict time, throughput and memory of a training run from the model and the hardware
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EstimateArgs {
    /// Hugging Face config.json, a folder with one, a published name such as llama-3.1-8b, or `-` for standard input
    model: String,
    // Before the hardware: each field consumes its flag, and a topology is read with the hardware's links.
    #[command(flatten)]
    topology: TopologyArgs,
    /// Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that of the topology,
    /// else h100]
    #[arg(long, value_name = "ID")]
    hardware: Option<String>,
    /// Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as 3072:7, or
    /// roce-24k [default: full bandwidth between all]
    #[arg(long, value_name = "POD:RATIO", allow_hyphen_values = true, value_parser = fabric::parse)]
    fabric: Option<Fabric>,
    /// Number of devices [default: the product of the degrees]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    devices: Option<String>,
    /// Degrees of parallelism and the micro-batch, such as tp=4,pp=2,mbs=1
    #[arg(long, value_name = "NAME=N,..", allow_hyphen_values = true)]
    parallel: Option<String>,
    /// Sequences in an iteration, over all devices; also --batch [default: 128]
    #[arg(long, value_name = "N", alias = "batch", allow_hyphen_values = true)]
    global_batch: Option<String>,
    /// Tokens in a sequence [default: the model's longest, at most 8192]
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    sequence_length: Option<String>,
    /// Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    #[arg(long, value_name = "FORMAT")]
    precision: Option<String>,
    /// Recomputation in the backward pass: none, selective (the stack's modules), selective:MODULES, full, full:N for N
    /// layers of a virtual stage, or every:N for one layer in N [default: none]
    #[arg(long, value_name = "WHAT")]
    recompute: Option<String>,
    /// Schedule: 1f1b (interleaved where vp is above 1), zb-h1, zb-v or interleaved-zb [default: 1f1b]
    #[arg(long, value_name = "ID")]
    schedule: Option<String>,
    /// Profile of the training software; it sets the defaults of --set [default: megatron-2025]
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// Layers of each stage (each virtual stage, in the model's order) in place of an even split; m,0 at the end puts the
    /// layers that predict further tokens before the head
    #[arg(long, value_name = "N,..", allow_hyphen_values = true)]
    layers: Option<String>,
    /// Sets a setting of the software; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Adapters in place of training all weights: lora or qlora, such as lora:r=16,targets=all, or PEFT's
    /// adapter_config.json
    #[arg(long, value_name = "ADAPTER")]
    adapter: Option<String>,
    /// Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file with the tokens of
    /// each expert
    #[arg(long, value_name = "LOAD|FILE")]
    imbalance: Option<String>,
    #[command(flatten)]
    cost: CostArgs,
    /// Known architecture by whose rules a config.json of an unknown one is read, such as llama
    #[arg(long, value_name = "TYPE")]
    like: Option<String>,
    /// Calibration file: factors that `plantui calibrate` fitted to your runs
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Prints one JSON document (schema plantui.estimate/1) in place of the table
    #[arg(long)]
    json: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

impl EstimateArgs {
    /// Predicts and prints.
    ///
    /// # Errors
    /// [`Failure`] for a refused model, flag or combination.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let model = model::model_like(&self.model, self.like.as_deref())?;
        let resolved = self.request()?.resolve(&model).map_err(refused)?;
        let mut resolved = resolved;
        let mut accelerator = resolved.accelerator;
        if self.fabric.is_some() && self.topology.is_some() {
            return Err(Failure::refused("--fabric and --topology both state the links", "give one"));
        }
        if let Some(fabric) = self.fabric {
            fabric.suits(&accelerator).map_err(|problem| Failure::refused(format!("--fabric {problem}"), ""))?;
            accelerator.fabric = Some(fabric);
        }
        if let Some(topology) = &*self.topology {
            accelerator = topology.wiring().around(&accelerator);
            let devices: Vec<usize> = (0..usize::try_from(resolved.devices).unwrap_or(usize::MAX)).collect();
            resolved.run.links = training::links(topology.topology(), &devices, &resolved.run);
        }
        let calibration = self.calibration.as_deref().map(calibration).transpose()?;
        let mut estimate = Estimate::of(&model, &resolved.run, &accelerator, resolved.devices, calibration.as_ref())
            .map_err(refused)?;
        if self.global_batch.is_none() {
            estimate.assumptions.push(format!("global batch {USUAL_BATCH}; --global-batch sets it"));
        }
        estimate.assumptions.extend(accelerator.fabric.map(|fabric| fabric.told()));
        estimate.assumptions.extend(self.topology.as_ref().map(|topology| topology.wiring().summary));
        let cost = self.cost.on(resolved.accelerator.id)?;
        let remedies = remedy::remedies(&model, &resolved.run, &accelerator, resolved.devices, calibration.as_ref());
        let told = report::EstimateReport {
            model: &model,
            resolved: &resolved,
            estimate: &estimate,
            cost: &cost,
            remedies: &remedies,
        };
        destination.write(&if self.json { output::json(&told.document()) } else { told.table() })?;
        Ok(CommandEnd::Done)
    }

    fn request(&self) -> Result<Request, Failure> {
        if let Some(refusal) = self.devices.as_deref().and_then(KindCount::misplaced) {
            return Err(Failure::refused(format!("--devices: {refusal}"), "give a number and --hardware"));
        }
        let hardware = self.hardware.as_deref().map(hardware_file::id_of).transpose()?;
        let adapter = self.adapter.as_deref().map(adapter).transpose()?;
        let imbalance = self.imbalance.as_deref().map(imbalance).transpose()?;
        let flags = [
            ("hardware", &hardware),
            ("devices", &self.devices),
            ("parallel", &self.parallel),
            ("global-batch", &Some(self.global_batch.clone().unwrap_or_else(|| USUAL_BATCH.to_string()))),
            ("sequence-length", &self.sequence_length),
            ("precision", &self.precision),
            ("recompute", &self.recompute),
            ("schedule", &self.schedule),
            ("stack", &self.stack),
            ("layers", &self.layers),
            ("adapter", &adapter),
            ("imbalance", &imbalance),
        ];
        // The topology gives the number of devices, unless the flag does.
        let mut request = request(&flags, &self.settings)?;
        if let Some(topology) = &*self.topology {
            let named = |problem: String| Failure::refused(format!("--topology: {problem}"), "");
            match &self.devices {
                None => request.set("devices", &topology.devices().to_string()).map_err(named)?,
                Some(devices) => topology.has(devices.parse().unwrap_or(0))?,
            }
            if self.hardware.is_none() {
                request.set("hardware", topology.named_hardware()?).map_err(named)?;
            }
        }
        Ok(request)
    }
}

/// Text of the adapters: as given, or of PEFT's file.
///
/// # Errors
/// [`Failure`] if the file is no `adapter_config.json`.
pub(super) fn adapter(value: &str) -> Result<String, Failure> {
    let path = Path::new(value);
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(value.into());
    }
    let source = input::shown(path);
    let bytes = formats::read_file(path)?;
    let adapter = Adapter::from_peft(&String::from_utf8_lossy(&bytes))
        .map_err(|problem| Failure::refused(format!("--adapter {source} {problem}"), "PEFT writes such files"))?;
    Ok(adapter.to_string())
}

/// Load of the ranks of experts: as given, or counted in a JSON file.
///
/// # Errors
/// [`Failure`] if the file holds no counts.
pub(super) fn imbalance(value: &str) -> Result<String, Failure> {
    let path = Path::new(value);
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(value.into());
    }
    let bytes = formats::read_file(path)?;
    let counts = read_counts(&String::from_utf8_lossy(&bytes), &input::shown(path));
    counts.map(|counts| counts.to_string()).map_err(|problem| Failure::refused(format!("--imbalance {problem}"), ""))
}

/// Request from flags and settings as typed.
pub(super) fn request(flags: &[(&str, &Option<String>)], settings: &[String]) -> Result<Request, Failure> {
    let mut request = Request::default();
    for (flag, value) in flags {
        if let Some(value) = value {
            let named = |problem: String| Failure::refused(format!("--{flag}: {problem}"), "");
            request.set(flag, value).map_err(named)?;
        }
    }
    for setting in settings {
        let shown = crate::text::printable(setting);
        let Some((name, value)) = setting.split_once('=') else {
            return Err(Failure::refused(format!("--set `{shown}` is no NAME=VALUE"), "write --set tp_overlap=false"));
        };
        // Values with their own flags are not settings.
        if Request::NAMES.contains(&name) || Request::DEGREES.contains(&name) {
            let flag = if Request::DEGREES.contains(&name) { "parallel".into() } else { name.replace('_', "-") };
            return Err(Failure::refused(format!("--set: {name} is no setting"), format!("give it with --{flag}")));
        }
        request.set(name, value).map_err(|problem| Failure::refused(format!("--set: {problem}"), ""))?;
    }
    Ok(request)
}

/// Failure for a run that an engine refuses.
pub(super) fn refused(refusal: Refusal) -> Failure {
    Failure::refused(refusal.problem, refusal.repair)
}

/// Calibration from its file.
pub(super) fn calibration(path: &Path) -> Result<Calibration, Failure> {
    let source = input::shown(path);
    let bytes = formats::read_file(path)?;
    let hint = "`plantui calibrate` writes such files";
    let text = detect::text(&bytes, &source, &detect::CALIBRATION)?;
    detect::object(text, &source, &detect::CALIBRATION)?;
    let calibration: Calibration = serde_json::from_str(text).map_err(|error| {
        let told = crate::text::printable(&error.to_string());
        let wrong = || Failure::refused(format!("{source} is no calibration: {told}"), hint);
        detect::other_object(text, &source, &detect::CALIBRATION).map_or_else(wrong, Failure::from)
    })?;
    match calibration.problem() {
        Some(problem) => Err(Failure::refused(format!("{source}: {problem}"), hint)),
        None => Ok(calibration),
    }
}
