//! Assumptions of a generated device-placement workload, a sentence each.

use super::{OperatorNetwork, OperatorSettings, SamplePass};
use plantui_core::{cluster::hardware::Hardware, units};

/// Sentences for one generated file.
pub(super) fn sentences(network: &OperatorNetwork, hardware: &Hardware, settings: &OperatorSettings) -> Vec<String> {
    let mut list = vec![match network {
        OperatorNetwork::Transformer(model) => {
            format!(
                "Network: {}, {} parameters; source: {}.",
                model.name,
                units::count_short(model.parameters()),
                model.source
            )
        }
        OperatorNetwork::Cnn(cnn) => format!(
            "Network: {} blocks of four branches in the manner of GoogLeNet (Szegedy et al. 2015), images of {1} x {1} pixels, \
             {2} channels in the stem.",
            cnn.blocks, cnn.image, cnn.width
        ),
    }];
    let samples = match settings.micro_batch {
        1 => "1 sample".to_string(),
        count => format!("{count} samples"),
    };
    list.push(match network {
        OperatorNetwork::Transformer(_) => format!(
            "A microbatch is {samples} of {} tokens; elements take {} bytes.",
            settings.sequence_length, settings.element_bytes
        ),
        OperatorNetwork::Cnn(_) => {
            format!("A microbatch is {samples}; elements take {} bytes.", settings.element_bytes)
        }
    });
    list.extend(accelerator(hardware, settings));
    list.push(format!(
        "CPU: {} TFLOP/s and memory at {}, as a server processor attains.",
        units::number(settings.cpu_flops / 1e12),
        units::bandwidth_exact(settings.cpu_bandwidth)
    ));
    list.push(format!(
        "Sending an output over the link between accelerator and host takes its bytes at {}.",
        units::bandwidth_exact(settings.host_link)
    ));
    list.push(match settings.pass {
        SamplePass::Training if settings.trained.is_some() => {
            "A gradient of a product is two products; it shares its operator's colour class.".into()
        }
        SamplePass::Training => {
            "A gradient takes twice its operator's operations and memory traffic, and shares its colour class.".into()
        }
        SamplePass::Inference => "Only the forward pass runs; every operator has its own colour class.".into(),
    });
    list.push(format!(
        "An operator holds {} bytes of state per parameter and its output{}; its gradient holds nothing.",
        units::number(settings.state.per_parameter()),
        if settings.pass == SamplePass::Training { ", kept for one microbatch" } else { "" }
    ));
    if let OperatorNetwork::Transformer(model) = network {
        let causal = match (model.padding_mask, settings.causal_credit) {
            (true, _) => "sees the whole sequence",
            (false, true) => "is causal and counts as half of its operations",
            (false, false) if settings.trained.is_some() => "is causal and does half of the operations",
            (false, false) => "is causal and counts in full",
        };
        let scores = if settings.keep_attention_scores {
            "scores, softmax and context are operators"
        } else {
            "attention is one operator that keeps no scores (flash attention)"
        };
        list.push(format!("Attention {causal}; {scores}."));
        list.push(
            "A head tied to the embedding has a copy of it; the all-reduce between the two copies has no cost.".into(),
        );
    }
    list
}

/// Assumptions about operator times on accelerators and CPUs.
fn accelerator(hardware: &Hardware, settings: &OperatorSettings) -> Vec<String> {
    let Some(trained) = &settings.trained else {
        let longer = "An operator takes the longer of its matrix arithmetic and its memory traffic; its launch costs \
            nothing.";
        let attained = format!(
            "Accelerator: {}, {} of {} TFLOP/s ({}), memory at {}.",
            hardware.name,
            units::percent(settings.mfu),
            hardware.peak_flops.value / 1e12,
            hardware.peak_flops.source,
            units::bandwidth_exact(hardware.memory_bandwidth.value)
        );
        return vec![longer.into(), attained];
    };
    let kernels = format!(
        "Accelerator: {}; products, attention and memory attain what they attain in the training runs that docs/src/background/truth.md \
         holds, software as {} runs it.",
        trained.accelerator.id,
        trained.stack.id()
    );
    let cpu = "A CPU takes the longer of the arithmetic and the memory traffic.";
    vec![kernels, cpu.into()]
}
