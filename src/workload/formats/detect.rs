//! Telling formats apart by content, and naming what a file is when it is no workload.

use serde::de::IgnoredAny;

use super::{super::LoadError, Format};
use std::{borrow::Cow, collections::BTreeMap};

/// What a file should be, for messages about one that is something else.
pub(crate) struct Wanted {
    /// With its article: `a workload`.
    noun: &'static str,
    /// What to do about an empty file.
    make: &'static str,
    /// What to give instead of another file.
    give: &'static str,
}

impl Wanted {
    /// What to give instead of another file.
    pub(crate) fn give(&self) -> &'static str {
        self.give
    }
}

/// A workload.
pub(crate) const WORKLOAD: Wanted = Wanted {
    noun: "a workload",
    make: "give a workload, or make one with `plantui generate bert-32`",
    give: "give the JSON profile of a network",
};

/// A plan.
pub(crate) const PLAN: Wanted = Wanted {
    noun: "a plan",
    make: "make a plan with `plantui plan WORKLOAD --json`",
    give: "give a plan that `plantui plan --json` wrote, or a result of Piper",
};

/// A model configuration.
pub(crate) const CONFIGURATION: Wanted = Wanted {
    noun: "a model configuration",
    make: "give a Hugging Face config.json",
    give: "give a Hugging Face config.json",
};

/// The text of a file, without a byte-order mark.
pub(crate) fn text<'a>(bytes: &'a [u8], source: &str, wanted: &Wanted) -> Result<&'a str, LoadError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(LoadError::file(source, "is empty", wanted.make));
    }
    if let Some(kind) = compression(bytes) {
        return Err(LoadError::file(source, format!("is {kind}-compressed"), "unpack it first"));
    }
    if let Some(kind) = binary_kind(bytes) {
        return Err(LoadError::file(source, format!("is {kind}, not {}", wanted.noun), wanted.give));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        LoadError::file(source, "is not text in UTF-8", "save it as JSON in UTF-8").on_line(Some(line))
    })
}

/// Refuses a text that is no JSON object, saying what it looks like.
pub(crate) fn object(text: &str, source: &str, wanted: &Wanted) -> Result<(), LoadError> {
    if text.trim_start().starts_with('{') {
        return Ok(());
    }
    let problem = format!("is not {}: it looks like {}", wanted.noun, looks_like(text));
    Err(LoadError::file(source, problem, wanted.give))
}

fn compression(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 4] =
        [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz")];
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind)
}

fn binary_kind(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 11] = [
        (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint is one)"),
        (b"\x7fELF", "a program"),
        (b"\x89PNG", "a picture"),
        (b"%PDF", "a PDF"),
        (b"GGUF", "a GGUF model"),
        (b"\x80\x02", "a Python pickle"),
        (b"\x80\x03", "a Python pickle"),
        (b"\x80\x04", "a Python pickle"),
        (b"\x80\x05", "a Python pickle"),
        (b"\xfe\xff", "text in UTF-16"),
        (b"\xff\xfe", "text in UTF-16"),
    ];
    MAGIC
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map(|(_, kind)| *kind)
        .or_else(|| bytes.iter().take(4096).any(|&b| b == 0).then_some("binary data"))
}

/// The format of a text, or the error that says what it looks like instead.
pub(super) fn format(text: &str, source: &str) -> Result<Format, LoadError> {
    let start = text.trim_start();
    if start.starts_with('{') {
        // Keys only: values are skipped, and broken JSON is left to the format's own reader, which names the place.
        let keys: Option<BTreeMap<Cow<'_, str>, IgnoredAny>> = serde_json::from_str(text).ok();
        let has =
            |key: &str| keys.as_ref().map_or_else(|| text.contains(&format!("\"{key}\"")), |k| k.contains_key(key));
        if has("operators") && !has("stages") {
            return Ok(Format::Operators);
        }
        if let Some(kind) = foreign_json(text, &has) {
            return Err(LoadError::file(
                source,
                format!("looks like {kind}"),
                "plantui plans Piper workloads (nodes with `TMPCs`)",
            ));
        }
        let placement = has("maxFPGAs") || has("maxSizePerFPGA") || (has("nodes") && text.contains("\"fpgaLatency\""));
        return Ok(if placement { Format::Placement } else { Format::Piper });
    }
    if is_layer_profile(text) {
        return Ok(Format::PipeDream);
    }
    let kind = looks_like(text);
    Err(LoadError::file(
        source,
        format!("is not a workload: it looks like {kind}"),
        "plantui reads JSON of Piper or device placement (an object with `nodes` and `edges`), operator graphs (`operators`) and PipeDream's graph.txt",
    ))
}

/// What a JSON object is, when its keys show that it is no Piper workload.
fn foreign_json(text: &str, has: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    // Other documents that plantui writes; the first one of a text is its own.
    const OWN: [(&str, &str); 6] = [
        (
            "plantui.compare/",
            "what `plantui compare --json` wrote, not a workload: give the workload, and plans of `plantui plan --json` to compare with",
        ),
        ("plantui.sweep/", "what `plantui sweep --json` wrote, not a workload: give the workload that was swept"),
        (
            "plantui.explain/",
            "what `plantui explain --json` wrote, not a workload: give the workload that is explained",
        ),
        (
            "plantui.simulation/",
            "what `plantui simulate` wrote, not a workload: give the workload, or the plan that was played",
        ),
        ("plantui.lint/", "what `plantui lint --json` wrote, not a workload: give the workload that was looked at"),
        ("plantui.sessions/", "plantui's list of sessions, not a workload"),
    ];
    let own = || OWN.iter().find(|(schema, _)| text.contains(&format!("\"{schema}"))).map(|(_, kind)| *kind);
    if let Some(kind) = has("schema").then(own).flatten() {
        Some(kind)
    } else if has("nodes") || has("maxFPGAs") || has("maxSizePerFPGA") {
        None
    } else if has("hidden_size") || has("n_embd") || has("model_type") || has("architectures") {
        Some("a Hugging Face model configuration: make a workload of it with `plantui generate FILE`")
    } else if has("schema") && text.contains("plantui.plan/") {
        Some("a plan, not a workload: `plantui check WORKLOAD PLAN` scores it")
    } else if has("stages") {
        Some("a plan in Piper's result format, not a workload: `plantui check WORKLOAD PLAN` scores it")
    } else if has("traceEvents") {
        Some("a Chrome trace")
    } else if has("fpgas") {
        Some("a split in the device-placement format, not a workload")
    } else {
        None
    }
}

/// Whether a text is PipeDream's: its first line has parts between ` -- `.
fn is_layer_profile(text: &str) -> bool {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.contains(" -- ")
        && (line.contains("_time=") || line.contains("_size=") || line.trim_start().starts_with("node"))
}

/// What a text that is no JSON object looks like.
pub fn looks_like(text: &str) -> &'static str {
    let start = text.trim_start();
    let line = start.lines().next().unwrap_or_default();
    if start.starts_with('[') {
        "a JSON array (a Chrome trace?)"
    } else if is_layer_profile(start) {
        "a layer profile of PipeDream or DAPPLE (graph.txt)"
    } else if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        "a single JSON value"
    } else if start.starts_with("<?xml") || start.starts_with('<') {
        "XML or HTML"
    } else if start.starts_with("---") || line.trim_end().ends_with(':') {
        "YAML"
    } else if start.starts_with("digraph") || start.starts_with("graph") {
        "a Graphviz graph"
    } else if start.starts_with("#!") || start.starts_with("import ") || start.starts_with("from ") {
        "a script"
    } else if line.starts_with('[') || line.contains(" = ") {
        "TOML or an INI file"
    } else if line.matches(',').count() >= 2 {
        "CSV"
    } else {
        "plain text"
    }
}
