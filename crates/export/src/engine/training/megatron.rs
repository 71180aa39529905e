//! Megatron-LM's flags for a configuration of a training workload: degrees, batch, recomputation, overlaps, sizes.
//!
//! Flags follow `megatron/training/arguments.py` of Megatron-LM. If the layers do not divide evenly, the split is
//! written as a layout (`E` embedding, `t` decoder layer, `m` layer that predicts further tokens, `L` loss). Facts that the workload lacks (norms, biases,
//! data) are listed in a comment, to be filled in.

use super::super::{Engine, launch};
use plantui_core::{
    family::training::{check, configured},
    plan::Configuration,
    workload::{
        TrainingProfile,
        recipe::NormKind,
        training::{
            Accelerator, Attention, AttentionKernel, ContextStyle, Dispatcher, ExpertOverlap, FeedForward, Imbalance,
            LayerKind, Projection, Recompute, Span, TrainingPrecision, TrainingRun,
        },
    },
};

/// Script with all flags: for sbatch, or for every machine by itself with `HEAD` set to the name of the first.
pub(super) fn text(
    profile: &TrainingProfile,
    run: &TrainingRun,
    configuration: &Configuration,
    spread: launch::Spread,
) -> String {
    let flags = flags(profile, run, configuration);
    let flags: String = flags.iter().map(|flag| format!("  {flag}\n")).collect();
    let requests: String = launch::requests(spread).iter().map(|line| format!("{line}\n")).collect();
    let connections =
        if launch::connects(Engine::Megatron, run) { format!("{}\n", launch::CONNECTIONS) } else { String::new() };
    let program = if profile.model.is_decoder() { "pretrain_gpt.py" } else { "pretrain_bert.py" };
    format!(
        "{requests}{head}\nFLAGS=(\n{flags})\n\n{connections}{}",
        launch::either(spread, &format!("{program} \"${{FLAGS[@]}}\" \"$@\"")),
        head = head(profile, run, spread)
    )
}

/// Flags of a configuration.
fn flags(profile: &TrainingProfile, run: &TrainingRun, configuration: &Configuration) -> Vec<String> {
    let layout = &run.layout;
    let mut flags = vec![
        format!("--tensor-model-parallel-size {}", layout.tensor),
        format!("--pipeline-model-parallel-size {}", layout.pipeline),
        format!("--context-parallel-size {}", layout.context),
    ];
    if profile.model.has_experts() {
        flags.push(format!("--expert-model-parallel-size {}", layout.expert));
        if layout.tensor > 1 {
            flags.push(format!("--expert-tensor-parallel-size {}", layout.expert_tensor));
        }
    }
    flags.extend(split(profile, run, configuration));
    flags.push(format!("--micro-batch-size {}", layout.micro_batch));
    flags.push(format!("--global-batch-size {}", run.global_batch));
    flags.push(format!("--seq-length {}", run.sequence));
    flags.push(format!("--max-position-embeddings {}", profile.model.longest_sequence.max(run.sequence)));
    flags.extend(recomputation(run));
    flags.extend(software(run, &profile.accelerator));
    if profile.model.has_experts() {
        flags.extend(of_experts(run, &profile.accelerator));
    }
    flags.extend(precision(run));
    flags.extend(sizes(profile));
    flags
}

/// Comment above the flags.
fn head(profile: &TrainingProfile, run: &TrainingRun, spread: launch::Spread) -> String {
    let layout = &run.layout;
    let mut head = format!(
        "# {} ranks on {}: tensor {} x context {} x data {} x pipeline {}, neighbouring ranks tensor first\n",
        layout.devices(),
        profile.accelerator.id,
        layout.tensor,
        layout.context,
        layout.data,
        layout.pipeline
    );
    for line in spread.told(launch::ORDER) {
        head += &format!("# {line}\n");
    }
    head += "# with SLURM: sbatch THIS_FILE; without: HEAD=NAME_OF_THE_FIRST bash THIS_FILE on every machine. Arguments \
        behind the file are added to the flags.\n";
    head += &format!("# vocabulary: {} rows\n", profile.model.ends.vocabulary);
    if let Some(why) = activation(profile) {
        head += &format!("# {why}\n");
    }
    head += if profile.model.details.is_some_and(|details| details.norm.is_some()) {
        "# fill in what a layout does not state: --rotary-base, learning rate, training length, tokenizer and data\n"
    } else {
        "# fill in what a layout does not state: kind of norm (--normalization RMSNorm), biases \
        (--disable-bias-linear, --add-qkv-bias), --rotary-base, learning rate, training length, tokenizer and data\n"
    };
    if profile.model.kinds.len() > 1 {
        head += "# layers are of several kinds: the flags below give the most common one; see the model's own \
            script\n";
    }
    head
}

/// Activation that no flag names: Gemma's gate is a GELU.
fn activation(profile: &TrainingProfile) -> Option<&'static str> {
    let gemma = profile.model.name.to_ascii_lowercase().starts_with("gemma");
    gemma.then_some("fill in: a gated GELU, which no flag of Megatron-LM names (activation_func and gated_linear_unit of its configuration)")
}

/// Virtual stages, or a layout if the layers do not divide evenly.
fn split(profile: &TrainingProfile, run: &TrainingRun, configuration: &Configuration) -> Vec<String> {
    let (p, v) = (run.layout.pipeline as usize, run.layout.virtual_stages as usize);
    if let Some(layout) = layout(profile, run, configuration) {
        return vec![format!("--pipeline-model-parallel-layout \"{layout}\"")];
    }
    let each = profile.model.layers.len() / (p * v).max(1);
    if p > 1 && v > 1 { vec![format!("--num-layers-per-virtual-pipeline-stage {each}")] } else { vec![] }
}

/// Layout of the stages if the layers do not divide evenly; `None` if they do, or without a pipeline.
pub(super) fn layout(profile: &TrainingProfile, run: &TrainingRun, configuration: &Configuration) -> Option<String> {
    let layers = profile.model.layers.len();
    let (p, v) = (run.layout.pipeline as usize, run.layout.virtual_stages as usize);
    if p < 2 || run.layers.is_empty() && layers.is_multiple_of(p * v) {
        return None;
    }
    let split = configured::split(profile, configuration)?;
    // In model order: part j of stage i has number j·p + i.
    let parts: Vec<usize> = (0..v)
        .flat_map(|part| {
            (0..p).filter_map({
                let split = &split;
                move |stage| split.chunks(stage).nth(part).map(ExactSizeIterator::len)
            })
        })
        .collect();
    let last = parts.len() - 1;
    let letters = |(index, &count): (usize, &usize)| {
        let blocks = match count {
            0 => String::new(),
            1 => "t".into(),
            count => format!("t*{count}"),
        };
        let here = index + usize::from(run.head_alone) == last;
        let predicts = "m".repeat(if here { profile.model.prediction_layers as usize } else { 0 });
        format!("{}{blocks}{predicts}{}", if index == 0 { "E" } else { "" }, if index == last { "L" } else { "" })
    };
    let layout: Vec<String> = parts.iter().enumerate().map(letters).collect();
    Some(layout.join("|"))
}

fn recomputation(run: &TrainingRun) -> Vec<String> {
    let flags = match run.recompute {
        Recompute::None => return vec![],
        Recompute::Selective(_) => {
            format!("--recompute-granularity selective --recompute-modules {}", run.modules().names().join(" "))
        }
        Recompute::Full => "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1".into(),
        Recompute::Layers(count) => {
            format!("--recompute-granularity full --recompute-method block --recompute-num-layers {count}")
        }
        Recompute::Every(_) => "# fill in: Megatron-LM has no option to recompute every n-th layer".into(),
    };
    vec![flags]
}

/// Flags of the software's settings.
fn software(run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
    let (settings, layout) = (&run.settings, &run.layout);
    let mut flags = vec![];
    let mut add = |wanted: bool, flag: &str| {
        if wanted {
            flags.push(flag.to_string());
        }
    };
    add(settings.sequence_parallel && layout.tensor > 1, "--sequence-parallel");
    // Megatron-FSDP divides gradients or weights.
    let megatron_fsdp = settings.fsdp || settings.shard_gradients;
    add(settings.fsdp, "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params");
    // Its checkpoints have their own format.
    add(megatron_fsdp, "--ckpt-format fsdp_dtensor");
    add(
        settings.shard_gradients && !settings.fsdp,
        "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads",
    );
    add(settings.distributed_optimizer && !megatron_fsdp, "--use-distributed-optimizer");
    add(settings.tp_overlap && layout.tensor > 1, "--tp-comm-overlap");
    // The guide of Megatron-FSDP asks for these two.
    add(megatron_fsdp, "--use-distributed-optimizer --no-gradient-accumulation-fusion");
    add(settings.dp_overlap, "--overlap-grad-reduce");
    add(settings.dp_overlap && (settings.distributed_optimizer || megatron_fsdp), "--overlap-param-gather");
    add(settings.fused_cross_entropy, "--cross-entropy-loss-fusion");
    add(settings.gradient_bytes == 2 && run.precision != TrainingPrecision::Fp16, "--grad-reduce-in-bf16");
    // With fp16, gradients have the format of the weights unless a flag says otherwise.
    add(
        settings.gradient_bytes == 4 && run.precision == TrainingPrecision::Fp16,
        "--accumulate-allreduce-grads-in-fp32",
    );
    add(settings.optimizer_offload, "--optimizer-cpu-offload");
    // The engine demands it of an optimizer on the host.
    let narrow = settings.moment_bytes < 4 || settings.master_bytes < 4 || settings.optimizer_offload;
    add(narrow, "--use-precision-aware-optimizer");
    let numbers = |bytes: u32| match bytes {
        1 => "fp8",
        2 => "bf16",
        _ => "fp32",
    };
    let moments = numbers(settings.moment_bytes);
    add(settings.moment_bytes < 4, &format!("--exp-avg-dtype {moments}"));
    add(settings.moment_bytes < 4, &format!("--exp-avg-sq-dtype {moments}"));
    add(settings.master_bytes == 2, "--main-params-dtype fp16");

    add(settings.attention == AttentionKernel::Unfused, "--attention-backend unfused");
    add(settings.attention != AttentionKernel::Unfused, "--attention-backend flash");
    add(layout.context > 1, &format!("--cp-comm-type {}", settings.context_style.megatron()));
    if settings.context_style == ContextStyle::Hierarchical {
        let [inside, between] = layout.context_hierarchy(accelerator.domain);
        add(layout.context > 1, &format!("--hierarchical-context-parallel-sizes {inside} {between}"));
    }
    flags
}

/// Flags of the settings of mixtures of experts.
fn of_experts(run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
    let settings = &run.settings;
    let mut flags = vec![];
    // The engine's default is allgather.
    flags.push(match settings.dispatcher {
        Dispatcher::AllToAll => "--moe-token-dispatcher-type alltoall".to_string(),
        flex => format!("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend {}", flex.id()),
    });
    let flag = |wanted: bool, flag: &str| wanted.then(|| flag.to_string());
    flags.extend(flag(settings.ep_overlap == ExpertOverlap::Shared, "--moe-shared-expert-overlap"));
    flags.extend(flag(settings.ep_overlap == ExpertOverlap::Batch, "--overlap-moe-expert-parallel-comm"));
    flags.extend(flag(settings.delay_weight_gradients, "--delay-wgrad-compute"));
    let graphs = settings.launches_from_graphs(accelerator.generation) && check::repeated_in_graphs(run).is_none();
    flags
        .extend(flag(graphs, "--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router moe_preprocess"));
    flags.extend(flag(graphs, "--te-rng-tracker"));
    if let Imbalance::Capacity(factor) = settings.imbalance {
        flags.push(format!("--moe-expert-capacity-factor {factor} --moe-pad-expert-input-to-capacity"));
    }
    flags
}

fn precision(run: &TrainingRun) -> Vec<String> {
    let flags = match run.precision {
        TrainingPrecision::Fp32 => return vec![],
        TrainingPrecision::Bf16 => "--bf16",
        TrainingPrecision::Fp16 => "--fp16",
        // With delayed scaling, the default, norms and activations of experts cannot run again.
        TrainingPrecision::Fp8 => "--bf16 --fp8-format hybrid --fp8-recipe tensorwise",
        TrainingPrecision::MxFp8 => "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8",
        TrainingPrecision::NvFp4 => "--bf16 --fp4-format e2m1",
    };
    vec![flags.into()]
}

/// Sizes of the model.
fn sizes(profile: &TrainingProfile) -> Vec<String> {
    let model = &profile.model;
    let mut of_kind = vec![0usize; model.kinds.len()];
    model.layers.iter().for_each(|&kind| of_kind[usize::from(kind)] += 1);
    let commonest = (0..of_kind.len()).rev().max_by_key(|&kind| of_kind[kind]).unwrap_or(0);
    let kind = &model.kinds[commonest];
    let mut flags = vec![
        format!("--num-layers {}", model.layers.len()),
        format!("--hidden-size {}", model.hidden),
        format!("--num-attention-heads {}", kind.attention.heads()),
    ];
    flags.extend(attention(model.hidden, kind));
    flags.extend(feed_forward(profile, kind));
    flags.extend(details(profile));
    if let Span::Window(tokens) = kind.span {
        flags.push(format!("--window-size {tokens},0"));
    }
    let ends = &model.ends;
    flags.push(format!("--position-embedding-type {}", if ends.positions > 0 { "learned_absolute" } else { "rope" }));
    if ends.projection == Projection::Own {
        flags.push("--untie-embeddings-and-output-weights".into());
    }
    if !model.dropout {
        // The engine's default is 0.1.
        flags.push("--hidden-dropout 0 --attention-dropout 0".into());
    }
    if model.prediction_layers > 0 {
        flags.push(format!("--mtp-num-layers {}", model.prediction_layers));
    }
    flags
}

/// Norms and biases, if the model's source states them.
fn details(profile: &TrainingProfile) -> Vec<String> {
    let Some(details) = profile.model.details else { return vec![] };
    let flags = [
        (details.head_norm, "--qk-layernorm"),
        (details.norm == Some(NormKind::Rms), "--normalization RMSNorm"),
        (!details.bias, "--disable-bias-linear"),
        (details.query_key_value_bias && !details.bias, "--add-qkv-bias"),
    ];
    flags.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag.to_string()).collect()
}

fn attention(hidden: u64, kind: &LayerKind) -> Vec<String> {
    match kind.attention {
        Attention::Grouped { heads, key_value_heads, head_size } => {
            let mut flags = vec![];
            if heads * head_size != hidden {
                flags.push(format!("--kv-channels {head_size}"));
            }
            if key_value_heads != heads {
                flags.push(format!("--group-query-attention --num-query-groups {key_value_heads}"));
            }
            flags
        }
        Attention::Latent { query_rank, key_value_rank, rope, nope, value, .. } => {
            let mut flags = vec!["--multi-latent-attention".to_string()];
            flags.extend(query_rank.map(|rank| format!("--q-lora-rank {rank}")));
            flags.push(format!("--kv-lora-rank {key_value_rank}"));
            flags.push(format!("--qk-head-dim {nope} --qk-pos-emb-head-dim {rope} --v-head-dim {value}"));
            flags
        }
    }
}

fn feed_forward(profile: &TrainingProfile, kind: &LayerKind) -> Vec<String> {
    let dense = profile.model.kinds.iter().find_map(|kind| match kind.feed_forward {
        FeedForward::Dense { width, .. } => Some(width),
        FeedForward::Experts(_) => None,
    });
    let mut flags = vec![];
    let gated = match kind.feed_forward {
        FeedForward::Dense { width, gated } => {
            flags.push(format!("--ffn-hidden-size {width}"));
            gated
        }
        FeedForward::Experts(experts) => {
            flags.push(format!("--ffn-hidden-size {}", dense.unwrap_or(experts.width)));
            flags.push(format!("--num-experts {}", experts.count));
            flags.push(format!("--moe-router-topk {}", experts.chosen));
            flags.push(format!("--moe-ffn-hidden-size {}", experts.width));
            if experts.shared_width > 0 {
                flags.push(format!("--moe-shared-expert-intermediate-size {}", experts.shared_width));
            }
            let sparse = |&kind: &u16| u8::from(profile.model.kinds[usize::from(kind)].experts().is_some()).to_string();
            if dense.is_some() {
                let pattern: Vec<String> = profile.model.layers.iter().map(sparse).collect();
                flags.push(format!("--moe-layer-freq \"[{}]\"", pattern.join(",")));
            }
            flags.push("--moe-grouped-gemm".into());
            experts.gated
        }
    };
    if gated && activation(profile).is_none() {
        flags.push("--swiglu".into());
    }
    flags
}
