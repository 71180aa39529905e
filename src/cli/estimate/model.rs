//! Model of an argument: a published name, a `config.json`, a folder with one, a workload of a model, or standard input.

use std::path::{Path, PathBuf};

use crate::{
    cli::{Failure, input},
    family::training::{self, Model, published},
    workload::formats::{self, detect, file},
};

/// Most bytes of a `config.json`, which has a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1 << 24;

/// Most names that are suggested for an unknown one.
const MOST_NEAR: usize = 6;

/// Model of an argument. A file takes precedence over a name.
///
/// # Errors
/// [`Failure`] if neither such a file nor such a name exists, or the file cannot be read as a model.
pub(in crate::cli) fn model(word: &str) -> Result<Model, Failure> {
    model_like(word, None)
}

/// Like [`model`], with the known architecture by whose rules an unknown one is read.
///
/// # Errors
/// [`Failure`] as [`model`].
pub(super) fn model_like(word: &str, like: Option<&str>) -> Result<Model, Failure> {
    if word == input::STANDARD_INPUT {
        let bytes = file::limited(crate::streams::input(), input::STANDARD_INPUT, MAX_CONFIG_BYTES)?;
        return parsed(&bytes, input::STANDARD_INPUT, like);
    }
    let mut path = PathBuf::from(word);
    if path.is_dir() && path.join("config.json").is_file() {
        path = path.join("config.json");
    }
    if !path.is_file() {
        if let Some(model) = published::find(word) {
            return Ok(model);
        }
        if path.extension().is_none() && !word.contains(std::path::MAIN_SEPARATOR) || !looks_like_file(&path) {
            return Err(unknown(word));
        }
    }
    let (bytes, source) = (file::read_at_most(&path, MAX_CONFIG_BYTES)?, input::shown(&path));
    parsed(&bytes, &source, like)
}

fn looks_like_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) || path.is_dir()
}

fn parsed(bytes: &[u8], source: &str, like: Option<&str>) -> Result<Model, Failure> {
    let text = detect::text(bytes, source, &detect::CONFIGURATION)?;
    if text.contains("\"plantui.training/") {
        // A workload file: its model alone.
        let workload = formats::load_bytes(bytes, source, source)?;
        if let Some(profile) = workload.training() {
            return Ok(profile.model.clone());
        }
    }
    Ok(training::read_like(text, source, like)?)
}

fn unknown(word: &str) -> Failure {
    let wanted = word.to_ascii_lowercase();
    let short = wanted.rsplit('/').next().unwrap_or_default();
    let stem: String = short.chars().take_while(char::is_ascii_alphabetic).collect();
    let known = published::names();
    let mut near: Vec<&str> =
        known.iter().copied().filter(|name| !stem.is_empty() && name.starts_with(stem.as_str())).collect();
    near.truncate(MOST_NEAR);
    let hint = match crate::text::nearest(short, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if near.is_empty() => {
            format!("give a config.json, or one of {} published names such as llama-3.1-8b", known.len())
        }
        None => format!("give a config.json, or a name such as {}", near.join(", ")),
    };
    Failure::refused(format!("there is no model and no file `{}`", crate::text::printable(word)), hint)
}
