//! Topologies by what a user or a plan file calls them: a preset, or a file.

use std::{path::Path, sync::Arc};

use super::read_file;
use crate::{
    cluster::topology::{self, Topology},
    source::LoadError,
};

/// A topology with what it is found by again.
#[derive(Debug, Clone, PartialEq)]
pub struct Wired {
    /// The topology.
    pub topology: Arc<Topology>,
    /// The file it was read from; `None` for a preset, whose name says it all.
    pub file: Option<String>,
}

impl Wired {
    /// The topology of this name, or in the file of this name. A file wins over a preset that is called the same.
    ///
    /// # Errors
    /// [`LoadError`] that names the file and its line, or says what presets there are.
    pub fn read(asked: &str) -> Result<Self, LoadError> {
        let path = Path::new(asked);
        if !path.is_file() {
            let topology = topology::named(asked).map_err(|error| match read_file(path) {
                // What is there and is neither file nor preset is told as it is of every other input.
                Err(no_file) if path.exists() => no_file,
                _ => LoadError::file(asked, error.to_string(), ""),
            })?;
            return Ok(Wired { topology: Arc::new(topology), file: None });
        }
        let bytes = read_file(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let stem = path.file_stem().map_or_else(|| asked.to_string(), |stem| stem.to_string_lossy().into_owned());
        let topology = topology::read(&text, asked, &stem)?;
        Ok(Wired { topology: Arc::new(topology), file: Some(asked.to_string()) })
    }
}
