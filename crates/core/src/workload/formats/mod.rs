//! Readers of workloads, one file per format. The content determines the format.
//!
//! [`load`] reads a path, [`load_reader`] standard input, [`load_bytes`] data in memory. All end in the same validation
//! and the same [`LoadError`]. Linear in the size of the file, in time and memory.

pub mod detect;
pub mod file;
mod foreign;
pub(crate) mod format;
pub mod operators;
pub mod piper;
pub mod placement;
mod reader;
pub mod torch_graph;
pub(crate) mod training;
mod wiring;

use std::{io::Read, path::Path};

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

/// Loads a workload from bytes. `source` is its name in messages, `name` its name on the screen.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(bytes: &[u8], source: &str, name: &str) -> Result<Workload, LoadError> {
    let text = detect::text(bytes, source, &detect::WORKLOAD)?;
    match detect::format(text, source)? {
        WorkloadFormat::Piper => piper::read(text, source, name),
        WorkloadFormat::Placement => placement::read(text, source, name).map(|file| file.into_workload(source)),
        WorkloadFormat::PipeDream => torch_graph::read(text, source, name),
        WorkloadFormat::Operators => operators::read(text, source, name),
        WorkloadFormat::HuggingFace => training::read_configuration(text, source, name),
        WorkloadFormat::Training => training::read(text, source, name),
    }
}
