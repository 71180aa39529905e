//! Refusals of training engines, each with the engine's rule.
//!
//! They share nothing with the costs: a run that passes can be launched, however slow it is.

use crate::schedule::interleaved_round;
use thiserror::Error;

use super::split::StageSplit;
use crate::workload::training::{
    expert_settings::{Dispatcher, ExpertOverlap, Imbalance},
    hardware::{Accelerator, Generation},
    model::{FeedForward, LayerKind, Model},
    run::{
        AttentionKernel, ContextStyle, Modules, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings,
        ZeroBubble,
    },
};

/// Reason why a run cannot be launched. Displays as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct Refusal {
    /// Problem, with the rule.
    pub problem: String,
    /// Repair.
    pub repair: String,
}

fn refuse(problem: String, repair: impl Into<String>) -> Result<(), Refusal> {
    Err(Refusal { problem, repair: repair.into() })
}

/// Checks a run of a model on a number of devices, and returns its split into stages.
///
/// # Errors
/// [`Refusal`] with the first broken rule.
pub fn check(model: &Model, run: &TrainingRun, accelerator: &Accelerator, devices: u64) -> Result<StageSplit, Refusal> {
    degrees(run, devices)?;
    sharding(run)?;
    batch(run)?;
    tensor(model, run)?;
    context(model, run, accelerator)?;
    experts(model, run)?;
    settings(model, run.stack, &run.settings)?;
    overlap(run)?;
    graphs(run)?;
    precision(run, accelerator)?;
    sequence(model, run)?;
    let split = stages(model, run)?;
    recomputation(run, &split)?;
    Ok(split)
}

fn degrees(run: &TrainingRun, devices: u64) -> Result<(), Refusal> {
    let layout = &run.layout;
    if layout.devices() != devices {
        let product = u64::from(layout.tensor) * u64::from(layout.context) * u64::from(layout.pipeline);
        return refuse(
            format!(
                "tp·cp·pp·dp = {}·{}·{}·{} = {}, but there are {devices} devices",
                layout.tensor,
                layout.context,
                layout.pipeline,
                layout.data,
                layout.devices()
            ),
            format!("the engines run one rank per device: use a multiple of {product} devices"),
        );
    }
    if let Some(schedule) = run.zero_bubble {
        let id = schedule.id();
        if layout.pipeline < 2 {
            return refuse(
                format!("{id} needs at least two pipeline stages"),
                "with one stage there is no bubble to fill",
            );
        }
        match schedule.parts() {
            Some(parts) if layout.virtual_stages != parts => {
                return refuse(
                    format!("{id} has {parts} virtual stages on every rank, but vp={}", layout.virtual_stages),
                    format!("set vp={parts}"),
                );
            }
            None if layout.virtual_stages < 2 => {
                return refuse(format!("{id} needs several virtual stages on every rank, but vp=1"), "set vp=2");
            }
            _ => {}
        }
    }
    if layout.virtual_stages > 1 && layout.pipeline < 2 {
        return refuse(
            format!("vp={} needs at least two pipeline stages, but pp={}", layout.virtual_stages, layout.pipeline),
            "interleaving (Megatron-LM's --num-layers-per-virtual-pipeline-stage) needs a pipeline: leave vp out",
        );
    }
    Ok(())
}

/// Checks that what is divided or moved away is divided over some ranks, and exists.
fn sharding(run: &TrainingRun) -> Result<(), Refusal> {
    let (settings, layout) = (&run.settings, &run.layout);
    if settings.parameter_offload && !settings.fsdp {
        return refuse(
            "parameter_offload needs fsdp: without it every rank holds whole weights".into(),
            "set zero=3, or parameter_offload=false",
        );
    }
    let ranks = layout.data * layout.context;
    let shards = settings.hsdp;
    if shards == 0 {
        return Ok(());
    }
    if !(settings.fsdp || settings.shard_gradients || settings.distributed_optimizer) {
        return refuse("hsdp divides nothing under zero=0".into(), "set zero=1, 2 or 3, or hsdp=0");
    }
    if !ranks.is_multiple_of(shards) {
        return refuse(
            format!("hsdp={shards} does not divide dp·cp = {}·{} = {ranks}", layout.data, layout.context),
            "every copy of the weights has as many ranks",
        );
    }
    Ok(())
}

fn batch(run: &TrainingRun) -> Result<(), Refusal> {
    let layout = &run.layout;
    let step = u64::from(layout.micro_batch) * u64::from(layout.data);
    if !run.global_batch.is_multiple_of(step) {
        let (b, d) = (layout.micro_batch, layout.data);
        let above = run.global_batch.next_multiple_of(step);
        return refuse(
            format!("global batch {} is not divisible by mbs·dp = {b}·{d} = {step}", run.global_batch),
            format!("every replica runs whole microbatches: {above} sequences work"),
        );
    }
    let (m, p) = (run.microbatches(), u64::from(layout.pipeline));
    if layout.virtual_stages > 1 && run.zero_bubble.is_none() && !m.is_multiple_of(p) {
        return refuse(
            format!("interleaving needs a multiple of {p} microbatches, the pipeline stages; there are {m}"),
            format!("a global batch of {} works", m.next_multiple_of(p) * step),
        );
    }
    let rounds = u32::try_from(m).ok().and_then(|m| interleaved_round(layout.pipeline, m));
    if run.zero_bubble == Some(ZeroBubble::Interleaved) && rounds.is_none() {
        return refuse(
            format!("interleaved-zb needs equal rounds of at least {p} microbatches; there are {m}"),
            format!("a global batch of {} works", m.next_multiple_of(p) * step),
        );
    }
    Ok(())
}

fn tensor(model: &Model, run: &TrainingRun) -> Result<(), Refusal> {
    let t = u64::from(run.layout.tensor);
    if run.settings.tp_overlap && !run.settings.sequence_parallel && t > 1 {
        return refuse(
            "tp_overlap needs sequence_parallel, as --tp-comm-overlap needs --sequence-parallel".into(),
            "set sequence_parallel=true, or tp_overlap=false",
        );
    }
    for kind in &model.kinds {
        heads(kind, run.stack, t)?;
        let width = match kind.feed_forward {
            FeedForward::Dense { width, .. } => width,
            FeedForward::Experts(experts) if experts.shared_width > 0 => experts.shared_width,
            FeedForward::Experts(experts) => experts.width,
        };
        if !width.is_multiple_of(t) {
            return refuse(
                format!("tp={t} does not divide the feed-forward width {width}"),
                "tensor-parallel ranks have equal shares of that width",
            );
        }
    }
    Ok(())
}

/// Checks that every rank of a tensor group of `t` has whole heads.
fn heads(kind: &LayerKind, stack: Stack, t: u64) -> Result<(), Refusal> {
    let (heads, groups) = (kind.attention.heads(), kind.attention.key_value_heads());
    if let Some(mixer) = kind.mixer.filter(|mixer| !mixer.heads.is_multiple_of(t)) {
        return refuse(
            format!("tp={t} does not divide the {} heads of a state", mixer.heads),
            "every tensor-parallel rank has whole heads",
        );
    }
    if !heads.is_multiple_of(t) {
        return refuse(
            format!("tp={t} does not divide the model's {heads} attention heads"),
            "every tensor-parallel rank has whole heads",
        );
    }
    // Megatron-Core copies a head of keys and values to all ranks that need it.
    let copies = stack != Stack::Torchtitan && t.is_multiple_of(groups);
    if !groups.is_multiple_of(t) && !copies {
        let repair = match stack {
            Stack::Torchtitan => format!("torchtitan gives every rank whole heads: tp must divide {groups}"),
            _ => format!("tp must divide the {groups} heads, or be a multiple (Megatron-Core copies them)"),
        };
        return refuse(format!("tp={t} does not divide the model's {groups} key/value heads"), repair);
    }
    Ok(())
}

/// True if the heads of every layer can be divided over a tensor group.
pub fn takes_tensor(model: &Model, stack: Stack, tensor: u32) -> bool {
    model.kinds.iter().all(|kind| heads(kind, stack, tensor.into()).is_ok())
}

fn context(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> Result<(), Refusal> {
    let (c, t) = (u64::from(run.layout.context), u64::from(run.layout.tensor));
    if c > 1 {
        if !run.sequence.is_multiple_of(2 * c) {
            return refuse(
                format!("sequence length {} is not divisible by 2·cp = {}", run.sequence, 2 * c),
                "context parallelism gives every rank two chunks of the sequence",
            );
        }
        if run.settings.attention == AttentionKernel::Unfused {
            return refuse(
                format!("cp={c} needs a fused attention kernel, not attention=unfused"),
                "context parallelism is built on flash attention",
            );
        }
        let style = run.settings.context_style;
        // Ranks that exchange heads for parts of the sequence.
        let exchange = match style {
            ContextStyle::AllToAll => c,
            ContextStyle::Hierarchical => run.layout.context_hierarchy(accelerator.domain)[0].into(),
            ContextStyle::Ring | ContextStyle::AllGather => 1,
        };
        if exchange > 1 {
            for kind in &model.kinds {
                let attention = kind.attention.replicated(run.layout.tensor);
                let (heads, groups) = (attention.heads() / t, attention.key_value_heads() / t);
                if let Some(count) = [heads, groups].into_iter().find(|count| !count.is_multiple_of(exchange)) {
                    return refuse(
                        format!(
                            "context_style={} needs cp to divide the heads of a rank; cp={exchange}, heads {count}",
                            style.id()
                        ),
                        "use a smaller cp, or context_style=ring",
                    );
                }
            }
        }
    }
    if run.settings.sequence_parallel && t > 1 && !run.sequence.is_multiple_of(t * c) {
        return refuse(
            format!("sequence length {} is not divisible by tp·cp = {}", run.sequence, t * c),
            "sequence parallelism splits every sequence over the tensor group",
        );
    }
    Ok(())
}

fn experts(model: &Model, run: &TrainingRun) -> Result<(), Refusal> {
    let layout = &run.layout;
    let [e, parts] = [layout.expert, layout.expert_tensor].map(u64::from);
    if !model.has_experts() {
        return match (e, parts) {
            (1, 1) => Ok(()),
            (1, _) => refuse(format!("etp={parts}, but {} has no experts", model.name), "leave etp out"),
            _ => refuse(format!("ep={e}, but {} has no experts", model.name), "leave ep out"),
        };
    }
    if layout.tensor > 1 && !run.settings.sequence_parallel {
        return refuse(
            format!("tp={} with experts needs sequence_parallel (Megatron-Core, torchtitan)", layout.tensor),
            "set sequence_parallel=true, or tp=1",
        );
    }
    for experts in model.kinds.iter().filter_map(|kind| kind.experts()) {
        if !experts.count.is_multiple_of(e) {
            return refuse(
                format!("ep={e} does not divide the {} experts of a layer", experts.count),
                "every expert-parallel rank has whole experts",
            );
        }
    }
    if run.stack == Stack::Torchtitan && parts != 1 && (e != 1 || parts != u64::from(layout.tensor)) {
        return refuse(
            format!("torchtitan 0.3 has no degree of its own to divide each expert, but etp={parts}"),
            "leave etp out: experts are divided by tp without ep, and are whole with it",
        );
    }
    for experts in model.kinds.iter().filter_map(|kind| kind.experts()) {
        if !experts.width.is_multiple_of(parts) {
            return refuse(
                format!("etp={parts} does not divide the experts' width {}", experts.width),
                "ranks that share an expert have equal parts of it",
            );
        }
    }
    let (group, ranks) = (layout.stage_devices(), layout.expert_ranks());
    if !group.is_multiple_of(ranks) {
        return refuse(
            format!(
                "ep·etp = {e}·{parts} = {ranks} does not divide tp·cp·dp = {}·{}·{} = {group}",
                layout.tensor, layout.context, layout.data
            ),
            "experts are divided over the ranks of a stage (parallel folding, Megatron-Core from 0.9)",
        );
    }
    Ok(())
}

/// Checks the settings of mixtures of experts that hold for every layout: the rules are Megatron-Core's.
///
/// # Errors
/// [`Refusal`] with the first broken rule.
pub fn settings(model: &Model, stack: Stack, settings: &TrainingSettings) -> Result<(), Refusal> {
    if settings.release.is_some() && stack != Stack::Megatron2025 {
        return refuse(
            format!("release is one of Megatron-Bridge, but the stack is {}", stack.id()),
            "leave release out, or take --stack megatron-2025",
        );
    }
    if let Some(name) = settings.given_of_kinds() {
        return refuse(
            format!("{name} is for several kinds of devices, and there is one"),
            "give --devices 16xh100,32xa100-80, or leave it out",
        );
    }
    if settings.delay_weight_gradients && settings.ep_overlap != ExpertOverlap::Batch {
        return refuse(
            "delay_weight_gradients needs ep_overlap=batch, as --delay-wgrad-compute needs the overlap of batches"
                .into(),
            "set ep_overlap=batch, or delay_weight_gradients=false",
        );
    }
    if let Imbalance::Counts(lists) = &settings.imbalance {
        let counted = lists.first().map_or(0, Vec::len) as u64;
        if let Some(experts) = model.kinds.iter().filter_map(|kind| kind.experts()).find(|own| own.count != counted) {
            return refuse(
                format!("imbalance counts tokens of {counted} experts, but a layer has {}", experts.count),
                "give one number per expert",
            );
        }
    }
    if matches!(settings.imbalance, Imbalance::Capacity(_)) && settings.dispatcher != Dispatcher::AllToAll {
        return refuse(
            format!("imbalance=capacity pads experts, which dispatcher={} does not", settings.dispatcher.id()),
            "set dispatcher=alltoall, or give the load as a factor",
        );
    }
    if stack == Stack::Torchtitan && settings.ep_overlap != ExpertOverlap::None {
        let overlap = settings.text("ep_overlap");
        return refuse(format!("ep_overlap={overlap} is Megatron-Core's, not torchtitan's"), "set ep_overlap=none");
    }
    match settings.ep_overlap {
        ExpertOverlap::None | ExpertOverlap::Batch => Ok(()),
        ExpertOverlap::Shared => {
            if !model.kinds.iter().filter_map(|kind| kind.experts()).any(|experts| experts.shared_width > 0) {
                return refuse(
                    format!("ep_overlap=shared needs a shared expert, which {} lacks", model.name),
                    "set ep_overlap=none or batch",
                );
            }
            if settings.dispatcher != Dispatcher::AllToAll {
                return refuse(
                    format!("ep_overlap=shared needs dispatcher=alltoall, not {}", settings.dispatcher.id()),
                    "--moe-shared-expert-overlap is built on it: set dispatcher=alltoall, or ep_overlap=none",
                );
            }
            Ok(())
        }
    }
}

/// True if a recomputation repeats whole layers.
pub fn repeats_layers(recompute: Recompute) -> bool {
    matches!(recompute, Recompute::Full | Recompute::Layers(_) | Recompute::Every(_))
}

/// Checks the overlap of microbatches in a layout.
fn overlap(run: &TrainingRun) -> Result<(), Refusal> {
    if run.settings.ep_overlap != ExpertOverlap::Batch {
        return Ok(());
    }
    let layout = &run.layout;
    let refused = |problem: &str, repair: &str| refuse(format!("ep_overlap=batch {problem}"), repair);
    if layout.expert < 2 {
        return refused("needs expert parallelism, but ep=1", "give an ep, or set ep_overlap=none");
    }
    if layout.pipeline > 1 && layout.virtual_stages < 2 {
        return refused(
            "needs virtual stages in a pipeline, but vp=1",
            "give a vp of 2 or more, or set ep_overlap=none",
        );
    }
    if let Some(schedule) = run.zero_bubble {
        let problem = format!("is a schedule of its own, which {} is not part of", schedule.id());
        return refused(&problem, "leave the schedule out, or set ep_overlap=none");
    }
    if repeats_layers(run.recompute) {
        return refused(
            "does not run with recomputation of whole layers",
            "recompute modules (--recompute selective:moe_act), or set ep_overlap=none",
        );
    }
    if run.modules().has(Modules::MOE) {
        return refused(
            "does not run with recomputation of the module moe",
            "recompute moe_act, or set ep_overlap=none",
        );
    }
    Ok(())
}

/// Recomputation that CUDA graphs do not allow, in words; `None` if the run has none.
pub fn repeated_in_graphs(run: &TrainingRun) -> Option<&'static str> {
    match () {
        () if repeats_layers(run.recompute) => Some("whole layers"),
        () if run.modules().has(Modules::MOE) => Some("the module moe"),
        () => None,
    }
}

/// Checks that nothing inside a CUDA graph runs again.
fn graphs(run: &TrainingRun) -> Result<(), Refusal> {
    let graphs = run.settings.cuda_graph && run.stack != Stack::Torchtitan;
    let Some(what) = repeated_in_graphs(run).filter(|_| graphs) else { return Ok(()) };
    refuse(
        format!("cuda_graph does not run with recomputation of {what}"),
        "recompute other modules (--recompute selective:moe_act), or set cuda_graph=false",
    )
}

fn precision(run: &TrainingRun, accelerator: &Accelerator) -> Result<(), Refusal> {
    let has = match run.precision.bits() {
        8 => accelerator.peak_8.is_some(),
        4 => accelerator.peak_4.is_some(),
        _ => true,
    };
    if run.precision == TrainingPrecision::MxFp8 && accelerator.generation != Generation::Blackwell {
        return refuse(
            format!("mxfp8 needs hardware block scaling, which {} lacks", accelerator.id),
            "use fp8 or bf16, or an accelerator from b200 on",
        );
    }
    if run.precision == TrainingPrecision::Bf16 && accelerator.generation == Generation::Volta {
        return refuse(format!("{} has no products in bf16", accelerator.id), "use fp16");
    }
    if !has {
        let (id, bits) = (run.precision.id(), run.precision.bits());
        return refuse(
            format!("{} has no products in {bits} bits, which {id} needs", accelerator.id),
            "use bf16, or a later accelerator",
        );
    }
    Ok(())
}

fn sequence(model: &Model, run: &TrainingRun) -> Result<(), Refusal> {
    let (s, longest) = (run.sequence, model.longest_sequence);
    if model.ends.positions > 0 && s > longest {
        return refuse(
            format!("sequence length {s} is more than the {longest} learned positions of {}", model.name),
            "give a shorter sequence",
        );
    }
    Ok(())
}

fn stages(model: &Model, run: &TrainingRun) -> Result<StageSplit, Refusal> {
    let layout = &run.layout;
    let (p, v) = (layout.pipeline as usize, layout.virtual_stages as usize);
    let layers = model.layers.len();
    let placed = |split: StageSplit| if run.zero_bubble == Some(ZeroBubble::V) { split.folded() } else { split };
    if run.head_alone {
        head_alone(model, run)?;
    }
    if run.layers.is_empty() {
        let chunks = p * v;
        return StageSplit::even(layers, layout).map(placed).ok_or_else(|| Refusal {
            problem: format!("{layers} layers are too few for pp·vp = {p}·{v} = {chunks} stages"),
            repair: format!("every stage but the first and the last needs a layer: pp·vp can be up to {}", layers + 2),
        });
    }
    let counts: Vec<usize> = run.layers.iter().map(|&count| count as usize).collect();
    let sum: usize = counts.iter().sum();
    let refuse = |problem: String, repair: String| Err(Refusal { problem, repair });
    if counts.len() != p * v {
        return refuse(
            format!("--layers has {} numbers, but there are {} stages, virtual ones counted", counts.len(), p * v),
            "give one number per stage, in the order of the model".into(),
        );
    }
    // The layers that predict further tokens are enough for the stage before the head.
    let inner = 1..counts.len() - 1 - usize::from(run.head_alone);
    if counts.get(inner).is_some_and(|inner| inner.contains(&0)) {
        return refuse(
            "--layers leaves a stage without layers".into(),
            "only the first may hold just the embedding, and the last just the head".into(),
        );
    }
    if sum != layers {
        return refuse(
            format!("--layers adds up to {sum}, but {} has {layers} layers", model.name),
            "the numbers must sum to the layers of the model".into(),
        );
    }
    Ok(placed(StageSplit::of(&counts, p).with_head_alone(run.head_alone)))
}

/// Checks the placement of the layers that predict further tokens before the last stage. Megatron-Core runs all of them on
/// one virtual stage, after the decoder's last layer.
fn head_alone(model: &Model, run: &TrainingRun) -> Result<(), Refusal> {
    if model.prediction_layers == 0 {
        return refuse(format!("--layers has an m, but {} predicts no further tokens", model.name), "leave m out");
    }
    if run.layers.len() < 2 || run.layers.last() != Some(&0) {
        return refuse(
            "--layers has an m before the last stage, which must then have 0 layers: m comes after the decoder".into(),
            "end with m,0 or 2m,0",
        );
    }
    if let Some(schedule) = run.zero_bubble {
        return refuse(format!("--layers has an m, which {} does not place", schedule.id()), "leave m out");
    }
    Ok(())
}

fn recomputation(run: &TrainingRun, split: &StageSplit) -> Result<(), Refusal> {
    if let Recompute::Layers(count) = run.recompute {
        let most = (0..split.stages()).flat_map(|s| split.chunks(s)).map(ExactSizeIterator::len).max().unwrap_or(0);
        if count as usize > most {
            return refuse(
                format!("--recompute full:{count} is more than the {most} layers of a stage"),
                format!("give a number up to {most}, or full"),
            );
        }
    }
    Ok(())
}
