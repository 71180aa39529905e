//! DeepSpeed's configuration of a training workload without a pipeline: ZeRO, in Python that also prints the JSON.
//!
//! Names follow DeepSpeed 0.19 (`runtime/config.py`, `runtime/zero/config.py`). `autotp_size` divides the module's
//! matrices, `autoep_size` its experts, and `sequence_parallel_size` the heads of its attention (Ulysses).

use super::super::python;
use plantui_core::family::training::{Recompute, TrainingPrecision, TrainingRun};
use serde_json::{Map, Value, json};

/// Content of the file.
pub(super) fn text(run: &TrainingRun) -> String {
    let lines: String = configuration(run)
        .iter()
        .map(|(name, value)| format!("    {}: {},\n", python::string(name), literal(value)))
        .collect();
    let checkpointing = python::truth(run.recompute == Recompute::Full);
    format!(
        "# For deepspeed.initialize(config=CONFIG) or TrainingArguments(deepspeed=CONFIG, \
         gradient_checkpointing=GRADIENT_CHECKPOINTING).
# For programs that take a file: python THIS_FILE > ds_config.json
import json

CONFIG = {{
{lines}}}
SEQUENCE_LENGTH = {sequence}
# True: every layer recomputes its activations. The program sets it, not DeepSpeed.
GRADIENT_CHECKPOINTING = {checkpointing}

if __name__ == \"__main__\":
    print(json.dumps(CONFIG, indent=2))
",
        sequence = run.sequence
    )
}

/// Entries of DeepSpeed's configuration.
fn configuration(run: &TrainingRun) -> Map<String, Value> {
    let (layout, settings) = (&run.layout, &run.settings);
    let mut entries = Map::new();
    let mut set = |name: &str, value: Value| entries.insert(name.into(), value);
    set("train_micro_batch_size_per_gpu", json!(layout.micro_batch));
    set("gradient_accumulation_steps", json!(run.microbatches()));
    match run.precision {
        TrainingPrecision::Fp16 => drop(set("fp16", json!({"enabled": true}))),
        TrainingPrecision::Fp32 => {}
        _ => drop(set("bf16", json!({"enabled": true}))),
    }
    let mut zero = Map::new();
    zero.insert("stage".into(), json!(settings.zero()));
    let host = json!({"device": "cpu", "pin_memory": true});
    if settings.optimizer_offload {
        zero.insert("offload_optimizer".into(), host.clone());
    }
    if settings.parameter_offload {
        zero.insert("offload_param".into(), host);
    }
    if settings.zero() >= 2 {
        zero.insert("overlap_comm".into(), json!(settings.dp_overlap));
    }
    set("zero_optimization", Value::Object(zero));
    // Without ZeRO, DeepSpeed adds gradients in the format of the weights and refuses another.
    if run.precision != TrainingPrecision::Fp32 && settings.zero() > 0 {
        let wide = if settings.gradient_bytes == 4 { "fp32" } else { "bf16" };
        let own = if run.precision == TrainingPrecision::Fp16 && wide == "bf16" { "fp16" } else { wide };
        set("data_types", json!({"grad_accum_dtype": own}));
    }
    if layout.context > 1 {
        set("sequence_parallel_size", json!(layout.context));
    }
    if layout.tensor > 1 {
        set("tensor_parallel", json!({"autotp_size": layout.tensor}));
    }
    if layout.expert > 1 {
        set("expert_parallel", json!({"enabled": true, "autoep_size": layout.expert}));
    }
    entries
}

/// JSON value as a Python literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Bool(value) => python::truth(*value).into(),
        Value::String(text) => python::string(text),
        Value::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(name, value)| format!("{}: {}", python::string(name), literal(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
