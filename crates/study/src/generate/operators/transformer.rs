//! Operators of a transformer: norms, projections, attention, feed-forward block, residual sums.

use super::{Kernel, OperatorSettings, Operators, SavedForBackward};
use plantui_core::workload::model::{Head, Mlp, ModelConfig};

/// Forward pass: inputs, embedding, consecutive layers, head.
pub(super) fn operators(model: &ModelConfig, settings: &OperatorSettings) -> Vec<super::ForwardOperator> {
    let tokens = (settings.sequence_length * settings.micro_batch) as f64;
    let h = model.hidden as f64;
    let mut ops = Operators::default();
    let ids = ops.add("tokens", &[], tokens, SavedForBackward::NoGradient);
    let embedding = ops.add("Embedding", &[ids], tokens * h, SavedForBackward::Inputs);
    let parameters = model.embedding_parameters(1);
    (ops.list[embedding].parameters, ops.list[embedding].parameters_read) = (parameters, tokens * h);
    let mask = model.padding_mask.then(|| {
        ops.add("attention mask", &[], tokens * settings.sequence_length as f64, SavedForBackward::NoGradient)
    });
    let mut last = embedding;
    for layer in 1..=model.layers as usize {
        ops.layer = layer;
        last = transformer_layer(&mut ops, model, settings, last, mask);
    }
    ops.layer += 1;
    let samples = settings.micro_batch as f64;
    let vocabulary = model.vocabulary as f64;
    match model.head {
        Head::Pooler => _ = ops.add_product("pooler", last, [samples, h, h], h),
        Head::LanguageModel { .. } => {
            let norm = norm(&mut ops, model, "final norm", last, tokens);
            ops.add_product("logits", norm, [tokens, vocabulary, h], 0.0);
        }
        Head::MaskedLanguageModel => {
            let transform = ops.add_product("transform", last, [tokens, h, h], h);
            let norm = norm(&mut ops, model, "final norm", transform, tokens);
            ops.add_product("logits", norm, [tokens, vocabulary, h], vocabulary);
        }
    }
    ops.list
}

fn norm(ops: &mut Operators, model: &ModelConfig, name: &str, input: usize, tokens: f64) -> usize {
    ops.add_matrix(name, &[input], tokens * model.hidden as f64, 0.0, model.norm_parameters())
}

/// Adds one layer, norms first; returns its output.
fn transformer_layer(
    ops: &mut Operators,
    model: &ModelConfig,
    settings: &OperatorSettings,
    input: usize,
    mask: Option<usize>,
) -> usize {
    let sequence = settings.sequence_length as f64;
    let tokens = sequence * settings.micro_batch as f64;
    let [h, f] = [model.hidden, model.mlp_width].map(|v| v as f64);
    let query_width = (model.heads * model.head_size) as f64;
    let key_width = (model.key_value_heads * model.head_size) as f64;
    let matrix = |ops: &mut Operators, name: &str, input: usize, from: f64, to: f64, bias: bool| {
        ops.add_product(name, input, [tokens, to, from], if bias { to } else { 0.0 })
    };
    let biases = model.biases;
    let first = norm(ops, model, "attention norm", input, tokens);
    let query = matrix(ops, "query", first, h, query_width, biases.query_key_value);
    let key = matrix(ops, "key", first, h, key_width, biases.query_key_value);
    let value = matrix(ops, "value", first, h, key_width, biases.query_key_value);
    // Scores and their product with the values take the same arithmetic.
    let credit = if settings.causal_credit { 0.5 } else { 1.0 };
    let half = 2.0 * tokens * sequence * query_width * credit;
    let masked = |inputs: &[usize]| inputs.iter().copied().chain(mask).collect::<Vec<_>>();
    let attention = if settings.keep_attention_scores {
        let pairs = tokens * sequence * model.heads as f64;
        let scores = ops.add_matrix("scores", &masked(&[query, key]), pairs, half, 0.0);
        let softmax = ops.add("softmax", &[scores], pairs, SavedForBackward::Output);
        ops.add_matrix("context", &[softmax, value], tokens * query_width, half, 0.0)
    } else {
        let at = ops.add_matrix("attention", &masked(&[query, key, value]), tokens * query_width, 2.0 * half, 0.0);
        ops.list[at].kernel = Kernel::Attention;
        at
    };
    let output = matrix(ops, "attention output", attention, query_width, h, biases.attention_output);
    let middle = ops.add("attention residual", &[input, output], tokens * h, SavedForBackward::Nothing);
    let second = norm(ops, model, "MLP norm", middle, tokens);
    let up = matrix(ops, "up", second, h, f, biases.mlp);
    let active = match model.mlp {
        Mlp::Plain => ops.add("activation", &[up], tokens * f, SavedForBackward::Inputs),
        Mlp::Gated => {
            let gate = matrix(ops, "gate", second, h, f, biases.mlp);
            ops.add("gated activation", &[up, gate], tokens * f, SavedForBackward::Inputs)
        }
    };
    let down = matrix(ops, "down", active, f, h, biases.mlp);
    ops.add("MLP residual", &[middle, down], tokens * h, SavedForBackward::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{
        operators::{OperatorNetwork, SamplePass},
        preset, presets,
    };
    use plantui_core::cluster::hardware;

    #[test]
    fn the_operators_have_the_parameters_and_arithmetic_of_the_model() {
        for name in presets() {
            let model = preset(name).unwrap();
            let network = OperatorNetwork::Transformer(model.clone());
            let hardware = hardware::find("a100-80").unwrap();
            let settings = OperatorSettings::defaults(&network, &hardware, SamplePass::Training);
            let list = operators(&model, &settings);
            let parameters: f64 = list.iter().map(|op| op.parameters).sum();
            let tied = match model.head {
                Head::LanguageModel { tied: true } => (model.vocabulary * model.hidden) as f64,
                _ => 0.0,
            };
            assert!((parameters - tied - model.parameters()).abs() < 1.0, "{name}: {parameters}");
            let tokens = settings.sequence_length as f64;
            let attention = 4.0 * tokens * tokens * (model.heads * model.head_size) as f64;
            let layer = 2.0 * tokens * model.layer_matrix_parameters() + attention;
            let flop: f64 = list.iter().filter(|op| op.layer == 1).map(|op| op.flop).sum();
            assert!((flop / layer - 1.0).abs() < 1e-12, "{name}: {flop}");
            let unfused = OperatorSettings { keep_attention_scores: true, ..settings };
            let same: f64 = operators(&model, &unfused).iter().map(|op| op.flop).sum();
            assert!((same / list.iter().map(|op| op.flop).sum::<f64>() - 1.0).abs() < 1e-12, "{name}");
        }
    }
}
