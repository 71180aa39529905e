//! Reading workloads: one file per format, recognised by content.
//!
//! [`load`] reads a path, [`load_reader`] standard input, [`load_bytes`] what is in memory already. All end in the
//! same validation and the same [`LoadError`]. Linear in the size of the file, in time and memory.

pub(crate) mod detect;
mod locate;
pub mod operators;
pub mod piper;
pub mod placement;
mod reader;
pub(crate) mod strict;
pub(crate) mod syntax;
pub mod torch_graph;

use std::{fmt, fs, io::Read, path::Path};

use super::{LoadError, Workload};

pub use detect::looks_like;

/// The largest file that is read. A profile of a million nodes stays far below it.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// The formats that can be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// Piper's JSON.
    Piper,
    /// The JSON of device placement.
    Placement,
    /// PipeDream's layer profile, the text that DAPPLE reads.
    #[serde(rename = "pipedream")]
    PipeDream,
    /// plantui's own JSON of operator graphs.
    Operators,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Piper => "piper",
            Format::Placement => "placement",
            Format::PipeDream => "pipedream",
            Format::Operators => "operators",
        })
    }
}

/// Loads a workload from a file; its name is the file's stem.
///
/// # Errors
/// [`LoadError`] if the file cannot be read or is no valid workload.
pub fn load(path: &Path) -> Result<Workload, LoadError> {
    let bytes = read_file(path)?;
    let shown = super::error::printable(&path.display().to_string());
    let name = path.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    load_bytes(&bytes, &shown, &name)
}

/// Loads a workload from anything that can be read, such as standard input or a pipe.
///
/// # Errors
/// As [`load`].
pub fn load_reader(reader: impl Read, source: &str, name: &str) -> Result<Workload, LoadError> {
    load_bytes(&read_all(reader, source)?, source, name)
}

/// The bytes of a file, if it is one of at most [`MAX_FILE_BYTES`].
///
/// # Errors
/// [`LoadError`] if it is a directory, too large, or cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    let shown = super::error::printable(&path.display().to_string());
    let metadata = fs::metadata(path).map_err(|error| unreadable(&shown, &error))?;
    if metadata.is_dir() {
        return Err(LoadError::file(&shown, "is a directory", "name a file in it"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(too_large(&shown, metadata.len()));
    }
    let file = fs::File::open(path).map_err(|error| unreadable(&shown, &error))?;
    read_all(file, &shown)
}

/// Everything a reader gives, if it is at most [`MAX_FILE_BYTES`]. `source` is how messages call it.
///
/// # Errors
/// [`LoadError`] if it is larger or cannot be read.
pub fn read_all(reader: impl Read, source: &str) -> Result<Vec<u8>, LoadError> {
    let mut bytes = vec![];
    reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(source, &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(source, bytes.len() as u64));
    }
    Ok(bytes)
}

/// Loads a workload from bytes. `source` is how messages call it, `name` what the screen shows.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(bytes: &[u8], source: &str, name: &str) -> Result<Workload, LoadError> {
    let text = detect::text(bytes, source, &detect::WORKLOAD)?;
    match detect::format(text, source)? {
        Format::Piper => piper::read(text, source, name),
        Format::Placement => placement::read(text, source, name).map(|file| file.into_workload(source)),
        Format::PipeDream => torch_graph::read(text, source, name),
        Format::Operators => operators::read(text, source, name),
    }
}

fn unreadable(file: &str, error: &std::io::Error) -> LoadError {
    let repair = match error.kind() {
        std::io::ErrorKind::NotFound => "check the path",
        std::io::ErrorKind::PermissionDenied => "make it readable for you",
        _ => "",
    };
    let problem = match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_string(),
        std::io::ErrorKind::PermissionDenied => "may not be read".to_string(),
        _ => format!("cannot be read: {error}"),
    };
    LoadError::file(file, problem, repair)
}

fn too_large(file: &str, bytes: u64) -> LoadError {
    LoadError::file(
        file,
        format!("has more than {}", crate::units::bytes(MAX_FILE_BYTES.min(bytes) as f64)),
        "a workload file is text of a few megabytes: is this the right file?",
    )
}
