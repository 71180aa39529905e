//! Detects a file's format by its content, and names the kind of a file that is not a workload.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{
    foreign::{self, FileKind, FileRole},
    format::WorkloadFormat,
};
use crate::source::error::LoadError;
use std::{borrow::Cow, collections::BTreeMap};

/// Kind of file that a reader expects, for messages about another kind.
pub struct ExpectedFile {
    /// Noun with its article: `a workload`.
    noun: &'static str,
    /// Repair for an empty file.
    make: &'static str,
    /// Repair for another kind of file.
    give: &'static str,
    /// Repair for a model or its weights.
    model: &'static str,
}

impl ExpectedFile {
    /// Repair for another kind of file.
    pub fn give(&self) -> &'static str {
        self.give
    }
}

/// Expects a workload.
pub(crate) const WORKLOAD: ExpectedFile = ExpectedFile {
    noun: "a workload",
    make: "give a workload, or make one with `plantui generate bert-32`",
    give: "give the JSON profile of a network",
    model: "it holds no times: `plantui generate config.json` makes a workload of a model's Hugging Face configuration, and `python -m plantui.profile` measures a module",
};

/// Expects a plan.
pub const PLAN: ExpectedFile = ExpectedFile {
    noun: "a plan",
    make: "make a plan with `plantui plan WORKLOAD --json`",
    give: "give a plan that `plantui plan --json` wrote, or a result of Piper",
    model: "give a plan that `plantui plan --json` wrote, or a result of Piper",
};

/// Expects the list of a schedule.
pub const SCHEDULE: ExpectedFile = ExpectedFile {
    noun: "the list of a schedule",
    make: "make one with `plantui export PLAN --to torch-schedule`",
    give: "give a CSV file with a row of passes for each rank, as PyTorch writes it",
    model: "give a CSV file with a row of passes for each rank, as PyTorch writes it",
};

/// Expects a model configuration.
pub const CONFIGURATION: ExpectedFile = ExpectedFile {
    noun: "a model configuration",
    make: "give a Hugging Face config.json",
    give: "give a Hugging Face config.json",
    model: "give the config.json that lies beside it",
};

/// Expects the configuration of a training engine's job.
pub const JOB: ExpectedFile = ExpectedFile {
    noun: "a configuration of a training engine",
    make: "give the script, log or configuration of a job: `plantui import --help` lists what is read",
    give: "give the script, log or configuration of a job: `plantui import --help` lists what is read",
    model: "give the script, log or configuration of a job: `plantui import --help` lists what is read",
};

/// Expects measured runs.
pub const RUNS: ExpectedFile = ExpectedFile {
    noun: "a table or log of runs",
    make: "give a CSV of measured runs, or a log of Megatron-LM or torchtitan",
    give: "give a CSV of measured runs, or a log of Megatron-LM or torchtitan",
    model: "give a CSV of measured runs, or a log of Megatron-LM or torchtitan",
};

/// Expects a topology.
pub const TOPOLOGY: ExpectedFile = ExpectedFile {
    noun: "a topology",
    make: "make one with `plantui topologies dgx-1 --json`, or save what `nvidia-smi topo -m` prints",
    give: "give a JSON topology, a CSV matrix, or what `nvidia-smi topo -m` or p2pBandwidthLatencyTest prints",
    model: "give a JSON topology, a CSV matrix, or what `nvidia-smi topo -m` or p2pBandwidthLatencyTest prints",
};

/// Expects a calibration.
pub const CALIBRATION: ExpectedFile = ExpectedFile {
    noun: "a calibration",
    make: "`plantui calibrate` writes such files",
    give: "`plantui calibrate` writes such files",
    model: "`plantui calibrate` writes such files",
};

/// Expects the configuration of plantui.
pub const SETTINGS: ExpectedFile = ExpectedFile {
    noun: "a configuration of plantui",
    make: "`plantui --print-config > FILE` makes one",
    give: "a configuration is TOML: `plantui --print-config` shows one",
    model: "a configuration is TOML: `plantui --print-config` shows one",
};

/// Error for a JSON object that is known to be something else.
pub fn other_object(text: &str, source: &str, wanted: &ExpectedFile) -> Option<LoadError> {
    let keys = keys(text);
    let kind = foreign::of_json(schema(text, keys.as_ref()), &|key| has(text, keys.as_ref(), key))?;
    Some(looks_like(&kind, source, wanted, wanted.give))
}

/// Error for a text that cannot be TOML. `None` if it may be TOML with a mistake.
pub fn no_toml(text: &str, source: &str, wanted: &ExpectedFile) -> Option<LoadError> {
    if text.trim_start().starts_with('{') {
        let object = FileKind { is: "a JSON object", role: FileRole::Other };
        return other_object(text, source, wanted).or_else(|| Some(looks_like(&object, source, wanted, wanted.give)));
    }
    let kind = foreign::of_text(text, source);
    let may_be = ["TOML", "an INI file", "Markdown or a text of comments", "plain text"];
    (!may_be.contains(&kind.is)).then(|| looks_like(&kind, source, wanted, wanted.give))
}

/// Text of a file, without a byte-order mark.
pub fn text<'a>(bytes: &'a [u8], source: &str, wanted: &ExpectedFile) -> Result<&'a str, LoadError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(LoadError::file(source, "is empty", wanted.make));
    }
    if let Some(kind) = foreign::of_bytes(bytes, source) {
        return Err(refused(&kind, source, wanted));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        LoadError::file(source, "is not text in UTF-8", "save it as JSON in UTF-8").on_line(Some(line))
    })
}

/// Returns an error if the text is not a JSON object. The error names what the text looks like.
pub fn object(text: &str, source: &str, wanted: &ExpectedFile) -> Result<(), LoadError> {
    if text.trim_start().starts_with('{') {
        let keys = keys(text);
        return match foreign::of_json(schema(text, keys.as_ref()), &|key| has(text, keys.as_ref(), key)) {
            Some(kind) if kind.role == FileRole::Model => Err(refused(&kind, source, wanted)),
            _ => Ok(()),
        };
    }
    Err(looks_like(&foreign::of_text(text, source), source, wanted, wanted.give))
}

/// Error for a file that is known to be something else.
fn refused(kind: &FileKind, source: &str, wanted: &ExpectedFile) -> LoadError {
    let repair = repair(kind, wanted).unwrap_or(wanted.give);
    let problem = match kind.role {
        FileRole::Packed => format!("is {}", kind.is),
        _ => format!("is {}, not {}", kind.is, wanted.noun),
    };
    LoadError::file(source, problem, repair)
}

/// Error for a text that looks like something else.
fn looks_like(kind: &FileKind, source: &str, wanted: &ExpectedFile, give: &'static str) -> LoadError {
    let problem = format!("is not {}: it looks like {}", wanted.noun, kind.is);
    LoadError::file(source, problem, repair(kind, wanted).unwrap_or(give))
}

/// Repair, if the file itself or another file of the same model is usable.
fn repair(kind: &FileKind, wanted: &ExpectedFile) -> Option<&'static str> {
    match kind.role {
        FileRole::Model => Some(wanted.model),
        FileRole::Packed => Some("unpack it first"),
        FileRole::Encoded => Some("save it in UTF-8"),
        FileRole::Pointer => Some("fetch the file itself with `git lfs pull`"),
        FileRole::Other | FileRole::Configuration => None,
    }
}

/// Keys of a JSON object. Values are skipped.
type Keys<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn keys(text: &str) -> Option<Keys<'_>> {
    serde_json::from_str(text).ok()
}

/// True if an object has a key. In broken JSON, the key may be anywhere.
fn has(text: &str, keys: Option<&Keys<'_>>, key: &str) -> bool {
    keys.map_or_else(|| text.contains(&format!("\"{key}\"")), |keys| keys.contains_key(key))
}

/// Text of the object's schema. In broken JSON, the whole text.
fn schema<'a>(text: &'a str, keys: Option<&Keys<'a>>) -> &'a str {
    keys.and_then(|keys| keys.get("schema")).map_or(text, |schema| schema.get())
}

/// Format of a text, or an error that names what it looks like.
pub(super) fn format(text: &str, source: &str) -> Result<WorkloadFormat, LoadError> {
    let start = text.trim_start();
    if start.starts_with('{') {
        // The format's own reader reports broken JSON with its position.
        let keys = keys(text);
        let has = |key: &str| has(text, keys.as_ref(), key);
        if keys.is_none() && is_json_lines(start) {
            let kind = "JSON Lines, a document in each line, and a workload is one document";
            return Err(LoadError::file(source, format!("looks like {kind}"), WORKLOAD.give));
        }
        if has("operators") && !has("stages") {
            return Ok(WorkloadFormat::Operators);
        }
        let schema = schema(text, keys.as_ref());
        if has("schema") && schema.contains(&format!("\"{}\"", super::training::SCHEMA)) {
            return Ok(WorkloadFormat::Training);
        }
        if has("schema") && schema.contains(&format!("\"{}\"", super::mixed::SCHEMA)) {
            return Ok(WorkloadFormat::Mixed);
        }
        if has("num_all_layers") && has("global_batch_size") && has("model") {
            return Ok(WorkloadFormat::Sailor);
        }
        if let Some(kind) = foreign::of_json(schema, &has) {
            if kind.role == FileRole::Configuration {
                return Ok(WorkloadFormat::HuggingFace);
            }
            let repair = match kind.role {
                FileRole::Model => WORKLOAD.model,
                _ => "plantui plans Piper workloads (nodes with `TMPCs`)",
            };
            return Err(LoadError::file(source, format!("looks like {}", kind.is), repair));
        }
        let placement =
            has("maxFPGAs") || has("maxSizePerFPGA") || (has("nodes") && has_key_within(text, "fpgaLatency"));
        return Ok(if placement { WorkloadFormat::Placement } else { WorkloadFormat::Piper });
    }
    if is_layer_profile(text) {
        return Ok(WorkloadFormat::PipeDream);
    }
    Err(looks_like(
        &foreign::of_text(text, source),
        source,
        &WORKLOAD,
        "plantui reads JSON of Piper or device placement (an object with `nodes` and `edges`), operator graphs (`operators`) and PipeDream's graph.txt",
    ))
}

/// True if a key with this name and a value is anywhere in the text.
fn has_key_within(text: &str, name: &str) -> bool {
    text.split(&format!("\"{name}\"")).skip(1).any(|rest| rest.trim_start().starts_with(':'))
}

/// True if each line is an object of its own.
fn is_json_lines(start: &str) -> bool {
    let mut lines = start.lines().filter(|line| !line.trim().is_empty());
    let object = |line: &str| line.starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok();
    lines.next().is_some_and(object) && lines.next().is_some_and(object)
}

/// True if the text is PipeDream's: its first line that is not a comment has parts between ` -- `.
pub(crate) fn is_layer_profile(text: &str) -> bool {
    let line = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    line.contains(" -- ")
        && (line.contains("_time=") || line.contains("_size=") || line.trim_start().starts_with("node"))
}
