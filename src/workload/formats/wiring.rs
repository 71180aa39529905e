//! Topologies by what a user or a plan file calls them: a preset, or a file.

use std::path::Path;

use super::read_file;
use crate::{
    cluster::topology::{self, Topology},
    source::LoadError,
};

/// The topology of this name, or in the file of this name. A file wins over a preset that is called the same.
///
/// # Errors
/// [`LoadError`] that names the file and its line, or says what presets there are.
pub fn read_topology(asked: &str) -> Result<Topology, LoadError> {
    let path = Path::new(asked);
    if !path.is_file() {
        return topology::named(asked).map_err(|error| LoadError::file(asked, error.to_string(), ""));
    }
    let bytes = read_file(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let stem = path.file_stem().map_or_else(|| asked.to_string(), |stem| stem.to_string_lossy().into_owned());
    topology::read(&text, asked, &stem)
}
