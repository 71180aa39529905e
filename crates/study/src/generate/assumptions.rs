//! Assumptions of a generated workload, a sentence each, in the order of the settings.

use super::{
    GenerateSettings, Head, Mlp, ModelConfig,
    cost::CostModel,
    follows_published_profile,
    settings::{StateBytes, TensorOverhead, WorkingSet},
};
use plantui_core::units;

/// Sentences for one generated file.
pub(super) fn sentences(costs: &CostModel<'_>) -> Vec<String> {
    let (model, hardware, settings) = (costs.model, costs.hardware, costs.settings);
    let mut list = vec![
        format!(
            "Model: {}, {} parameters; source: {}.",
            model.name,
            units::count_short(model.parameters()),
            model.source
        ),
        format!(
            "Hardware: {}, {} TFLOP/s in 16 bits ({}), {} of memory.",
            hardware.name,
            hardware.peak_flops.value / 1e12,
            hardware.peak_flops.source,
            units::bytes_exact(hardware.memory_bytes.value)
        ),
        format!(
            "A microbatch is {} of {} tokens; elements take {} bytes.",
            plural(settings.micro_batch, "sequence"),
            settings.sequence_length,
            settings.element_bytes
        ),
        mfu(costs),
        "The backward pass takes twice the time of the forward pass; full recomputation adds one forward.".into(),
        overhead(settings),
        "parameterSize counts elements: 4(d-1)/d of it is then a ring all-reduce of 2-byte gradients.".into(),
        state(settings),
        activations(model, settings),
        working_set(costs),
        "At tensor degrees above 1 every tensor that leaves a stage is gathered in full (syncTimeFw, syncTimeBw, in \
        bytes)."
            .into(),
        "Embedding and norms are bound by memory bandwidth or part of the utilisation; the vocabulary is not \
        padded."
            .into(),
        format!(
            "Bandwidth between devices {}; the preset's link across nodes is {} ({}).",
            units::bandwidth_exact(settings.limits.bandwidth()),
            units::bandwidth_exact(hardware.inter_node_link.value),
            hardware.inter_node_link.source
        ),
    ];
    if settings.element_bytes != 2 {
        list.push(format!(
            "Activations were counted with elements of 2 bytes and are scaled to {}; state, logits (4 bytes) and the \
             all-reduce of gradients are not.",
            settings.element_bytes
        ));
    }
    match model.head {
        Head::LanguageModel { tied: true } | Head::MaskedLanguageModel => list.push(
            "The head is tied to the embedding: its copy counts in the last stage's memory and all-reduce; the \
            all-reduce between the two copies has no cost."
                .into(),
        ),
        Head::Pooler | Head::LanguageModel { tied: false } => {}
    }
    if model.padding_mask {
        list.push(
            "Every layer reads the padding mask: one edge per layer, charged to every stage that receives it.".into(),
        );
    }
    list
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn mfu(costs: &CostModel<'_>) -> String {
    let (hardware, settings) = (costs.hardware, costs.settings);
    let source = if settings.mfu == hardware.mfu.value { hardware.mfu.source } else { "as given" };
    let causal = match (costs.model.padding_mask, settings.causal_credit) {
        (true, _) => "attention sees the whole sequence",
        (false, true) => "causal attention counts as half of its operations",
        (false, false) => "causal attention counts in full, masked half included",
    };
    format!("Matrix work runs at {} of the peak ({source}); {causal}.", units::percent(settings.mfu))
}

fn overhead(settings: &GenerateSettings) -> String {
    match settings.tensor_overhead {
        TensorOverhead::Share(kappa) => format!(
            "Tensor degree t takes T1/t * (1 + {kappa} * (t - 1)), an effective cost{}.",
            if kappa == super::settings::TENSOR_OVERHEAD { ", fitted on the published BERT-32 profile" } else { "" }
        ),
        TensorOverhead::Bandwidth(bandwidth) => format!(
            "Tensor degree t adds four all-reduces of the hidden state per layer at {}, two more with recomputation.",
            units::bandwidth_exact(bandwidth)
        ),
    }
}

fn state(settings: &GenerateSettings) -> String {
    let bytes = settings.state.per_parameter();
    match settings.state {
        StateBytes::Distributed(replicas) => format!(
            "State takes {} bytes per parameter: a distributed optimizer over {replicas} replicas, whatever the \
            plan's degree.",
            units::number(bytes)
        ),
        StateBytes::Fixed(_) => {
            let what = match bytes {
                2.0 => "weights only, as in the published profile; training needs 16 to 18",
                4.0 => "weights and gradients, no optimizer",
                16.0 => "mixed-precision Adam with 16-bit gradients",
                18.0 => "mixed-precision Adam with 32-bit main gradients, as in Megatron-LM",
                _ => "as given",
            };
            format!("State takes {bytes} bytes per parameter: {what}.")
        }
    }
}

fn activations(model: &ModelConfig, settings: &GenerateSettings) -> String {
    let per = settings.layer_activation(model);
    let origin = match (settings.activation, settings.sequence_parallel) {
        (Some(given), _) if given == super::settings::PUBLISHED_ACTIVATION.at(settings.element_bytes) => {
            "fitted on the published BERT-32 profile"
        }
        (Some(_), _) => "as given",
        (None, true) => "Korthikanti et al. 2022, sequence parallel",
        (None, false) => "Korthikanti et al. 2022, no sequence parallelism",
    };
    let gated = if model.mlp == Mlp::Gated && settings.activation.is_none() {
        " The third matrix of gated blocks and the savings of grouped queries are not counted."
    } else {
        ""
    };
    let scores = if settings.keep_attention_scores { "are kept" } else { "are not kept (flash attention)" };
    format!(
        "A layer keeps {} + {}/t bytes per token and hidden unit ({origin}); attention scores {scores}.{gated}",
        units::number(per.fixed),
        units::number(per.split)
    )
}

fn working_set(costs: &CostModel<'_>) -> String {
    match costs.settings.working_set {
        WorkingSet::EveryLayer => {
            let published = if follows_published_profile(costs.model) { "" } else { ", to be comparable with it" };
            format!(
                "Recomputation counts the recomputed activations of all layers of a stage at once, as the published \
                profile does{published}; in fact one layer at a time is live (--working-set one-layer)."
            )
        }
        WorkingSet::OneLayer => format!(
            "Recomputation restores one layer at a time: its {} at degree 1 are subtracted from the memory limit of \
            every device.",
            units::bytes(costs.layer_activation_bytes(1))
        ),
    }
}
