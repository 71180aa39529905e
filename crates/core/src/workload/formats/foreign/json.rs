//! JSON objects that are not workloads, detected by their keys.

use super::{FileKind, FileRole, model, other};

/// Other documents of plantui, by their schema.
const OWN: [(&str, &str); 8] = [
    (
        "plantui.compare/",
        "what `plantui compare --json` wrote, not a workload: give the workload, and plans of `plantui plan --json` to compare with",
    ),
    ("plantui.sweep/", "what `plantui sweep --json` wrote, not a workload: give the workload that was swept"),
    ("plantui.explain/", "what `plantui explain --json` wrote, not a workload: give the workload that is explained"),
    (
        "plantui.simulation/",
        "what `plantui simulate` wrote, not a workload: give the workload, or the plan that was simulated",
    ),
    ("plantui.schedules/", "what `--schedule all` wrote, not a workload: give the workload that was simulated"),
    ("plantui.stage-times/", "measured times of stages, which `plantui simulate` plays: there is nothing to plan"),
    ("plantui.lint/", "what `plantui lint --json` wrote, not a workload: give the workload that was looked at"),
    ("plantui.sessions/", "plantui's list of sessions, not a workload"),
];

/// Kind of a JSON object, if its keys show that it is not a workload. `has` is true for a key of the object, `schema`
/// is the text of its schema.
pub(in crate::workload::formats) fn of_json(schema: &str, has: &dyn Fn(&str) -> bool) -> Option<FileKind> {
    let any = |keys: &[&str]| keys.iter().any(|key| has(key));
    let own = || OWN.iter().find(|(own, _)| schema.contains(&format!("\"{own}"))).map(|(_, is)| *is);
    if let Some(is) = has("schema").then(own).flatten() {
        return Some(other(is));
    }
    if has("schema") && schema.contains("chakra") {
        return Some(other(
            "a Chakra execution trace, which tells no sizes of what layers hold: `python -m plantui.profile` measures the module",
        ));
    }
    if has("model") && any(&["execution_time", "execution_memory"]) {
        return Some(other(
            "a profile of Metis, which has one time for each layer of a degree: `plantui generate MODEL` makes a workload of the model",
        ));
    }
    if any(&["nodes", "maxFPGAs", "maxSizePerFPGA", "operators"]) {
        return None;
    }
    Some(match () {
        () if has("weight_map") => model("a safetensors index, which lists the files of a model's weights"),
        () if any(&["irVersion", "opsetImport"]) => model("an ONNX model as JSON"),
        () if has("_class_name") => other("a configuration of Diffusers, which `plantui generate` does not read"),
        () if any(&["hidden_size", "n_embd", "model_type", "architectures"]) => {
            FileKind { is: "a Hugging Face model configuration", role: FileRole::Configuration }
        }
        () if any(&["added_tokens", "tokenizer_class", "added_tokens_decoder"]) => other(
            "a tokenizer of Hugging Face: the model's config.json lies beside it, for `plantui generate config.json`",
        ),
        () if has("transformers_version") => other(
            "a generation configuration of Hugging Face: the model's config.json lies beside it, for `plantui generate config.json`",
        ),
        () if any(&["train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization"]) => {
            other("a DeepSpeed configuration: plantui writes those, with `plantui export --to deepspeed`")
        }
        () if has("schema") && schema.contains("plantui.plan/") => {
            other("a plan, not a workload: `plantui check WORKLOAD PLAN` scores it")
        }
        () if has("stages") => {
            other("a plan in Piper's result format, not a workload: `plantui check WORKLOAD PLAN` scores it")
        }
        () if has("traceEvents") && any(&["schemaVersion", "deviceProperties"]) => {
            other("a trace of the PyTorch profiler, which tells no sizes of what layers hold and send")
        }
        () if has("traceEvents") => other("a Chrome trace"),
        () if has("fpgas") => other("a split in the device-placement format, not a workload"),
        () if has("nbformat") => other("a Jupyter notebook"),
        () if any(&["devDependencies", "scripts"]) && has("name") => other("a package.json of npm"),
        () if has("$schema") => other("a JSON schema, or a file that names one"),
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frameworks_write_is_known_by_its_keys() {
        for (key, part) in [
            ("weight_map", "safetensors index"),
            ("model_type", "Hugging Face model configuration"),
            ("tokenizer_class", "tokenizer"),
            ("zero_optimization", "DeepSpeed"),
            ("nbformat", "notebook"),
            ("_class_name", "Diffusers"),
            ("opsetImport", "ONNX"),
        ] {
            let kind = of_json("{}", &|asked| asked == key).expect("it is known");
            assert!(kind.is.contains(part), "{key}: {}", kind.is);
        }
        assert_eq!(of_json("{}", &|_| false), None);
        assert_eq!(of_json("{}", &|asked| ["nodes", "weight_map"].contains(&asked)), None);
    }
}
