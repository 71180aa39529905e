//! Readers of workloads, one file per format. The content determines the format.
//!
//! [`load`] reads a path, [`load_reader`] standard input, [`load_bytes`] data in memory. All end in the same validation
//! and the same [`LoadError`]. Linear in the size of the file, in time and memory.

pub mod detect;
pub mod file;
mod foreign;
pub(crate) mod format;
pub mod mixed;
pub mod operators;
pub mod piper;
pub mod placement;
mod reader;
pub mod sailor;
pub mod stage_times;
pub mod torch_graph;
pub(crate) mod training;
mod wiring;

use std::{borrow::Cow, collections::BTreeMap, io::Read, path::Path};

use serde_json::value::RawValue;

use super::{profiled::Workload, training::published};
use crate::source::error::LoadError;

pub use crate::cluster::topology::PlanTopology;
pub use file::{MAX_FILE_BYTES, read_all, read_file};
pub use format::WorkloadFormat;

/// Loads a workload from a file, whose stem becomes its name, or from a folder with a model's `config.json`. If there
/// is no such file, loads a model by its published name.
///
/// # Errors
/// [`LoadError`] if the file cannot be read or is not a valid workload.
pub fn load(path: &Path) -> Result<Workload, LoadError> {
    if !path.exists()
        && let Some(workload) = path.to_str().and_then(training::named)
    {
        return Ok(workload);
    }
    if let Some(error) = unknown_model(path) {
        return Err(error);
    }
    let configuration = path.join("config.json");
    if path.is_dir() && configuration.is_file() {
        let mut workload = load(&configuration)?;
        workload.name = path.file_name().map_or(workload.name, |name| crate::text::printable(&name.to_string_lossy()));
        return Ok(workload);
    }
    let bytes = read_file(path)?;
    let shown = crate::text::printable(&path.display().to_string());
    let name = path.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    load_bytes(&bytes, &shown, &name)
}

/// Error for a name that is neither a file nor a model but may be a misspelled model: it has no folder and no file
/// extension.
fn unknown_model(path: &Path) -> Option<LoadError> {
    let name = path.to_str().filter(|name| !name.is_empty() && !name.contains(['/', '\\']) && !path.exists())?;
    // "llama-3.1-8b" has no extension, "model.json" has one.
    if path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| !ending.starts_with(char::is_numeric)) {
        return None;
    }
    let known = published::names();
    let repair = match crate::text::nearest(&name.to_ascii_lowercase(), known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "give a file, a folder with a config.json, or a model's name such as `llama-3-70b`".to_string(),
    };
    Some(LoadError::file(&crate::text::printable(name), "is no file, and no model has that name", repair))
}

/// Loads a workload from a reader, such as standard input or a pipe.
///
/// # Errors
/// As [`load`].
pub fn load_reader(reader: impl Read, source: &str, name: &str) -> Result<Workload, LoadError> {
    load_bytes(&read_all(reader, source)?, source, name)
}

/// Loads the profile of a micro-batch from a file that has one for each, as Sailor (SOSP 2025) publishes Piper's
/// profiles; `None` if the file has a single workload.
///
/// # Errors
/// [`LoadError`] if the file cannot be read, has no such micro-batch, or its profile is not valid.
pub fn load_micro_batch(path: &Path, size: u32) -> Result<Option<Workload>, LoadError> {
    let bytes = read_file(path)?;
    let shown = crate::text::printable(&path.display().to_string());
    let text = detect::text(&bytes, &shown, &detect::WORKLOAD)?;
    let Some(profiles) = by_micro_batch(text) else { return Ok(None) };
    let Some((_, profile)) = profiles.iter().find(|(own, _)| *own == size) else {
        let sizes: Vec<String> = profiles.iter().map(|(size, _)| size.to_string()).collect();
        let problem = format!("has no profile for the micro-batch {size}");
        return Err(LoadError::file(&shown, problem, format!("choose one of {}", sizes.join(", "))));
    };
    let name = path.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    load_bytes(profile.get().as_bytes(), &shown, &format!("{name} at micro-batch {size}")).map(Some)
}

/// Profiles of a file by their micro-batch, smallest first.
fn by_micro_batch(text: &str) -> Option<Vec<(u32, &RawValue)>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
    let profile = |(key, value): (&Cow<'_, str>, &&'_ RawValue)| {
        let holds = value.get().starts_with('{') && value.get().contains("\"nodes\"");
        key.parse().ok().filter(|_| holds)
    };
    let sizes: Option<Vec<u32>> = fields.iter().map(profile).collect();
    let mut all: Vec<(u32, &RawValue)> = sizes?.into_iter().zip(fields.into_values()).collect();
    all.sort_by_key(|(size, _)| *size);
    (!all.is_empty()).then_some(all)
}

/// Loads a workload from bytes. `source` is its name in messages, `name` its name on the screen.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(bytes: &[u8], source: &str, name: &str) -> Result<Workload, LoadError> {
    let text = detect::text(bytes, source, &detect::WORKLOAD)?;
    if let Some(profiles) = by_micro_batch(text) {
        let sizes: Vec<String> = profiles.iter().map(|(size, _)| size.to_string()).collect();
        let problem = format!("has a profile for each of the micro-batches {}", sizes.join(", "));
        return Err(LoadError::file(source, problem, format!("choose one with --micro-batch {}", sizes[0])));
    }
    match detect::format(text, source)? {
        WorkloadFormat::Piper => piper::read(text, source, name),
        WorkloadFormat::Placement => placement::read(text, source, name).map(|file| file.into_workload(source)),
        WorkloadFormat::PipeDream => torch_graph::read(text, source, name),
        WorkloadFormat::Operators => operators::read(text, source, name),
        WorkloadFormat::HuggingFace => training::read_configuration(text, source, name),
        WorkloadFormat::Training => training::read(text, source, name),
        WorkloadFormat::Mixed => mixed::read(text, source, name),
        WorkloadFormat::Sailor => sailor::read(text, source, name),
    }
}
