//! Topologies by their name on the command line or in a plan file: a preset or a file.

use std::{path::Path, sync::Arc};

use super::file::read_file;
use crate::{
    cluster::topology::{self, PlanTopology, Spec},
    source::LoadError,
    text::printable,
};

impl PlanTopology {
    /// Reads a topology by name, from a file with this path, or of several such machines ([`Spec`]). A file takes
    /// precedence over a preset of the same name.
    ///
    /// # Errors
    /// [`LoadError`] that names the file and its line, or lists the presets.
    pub fn read(asked: &str) -> Result<Self, LoadError> {
        let spec = PlanTopology::spec(asked);
        let path = Path::new(&spec.base);
        if !path.is_file() {
            let topology = topology::named(asked).map_err(|error| match read_file(path) {
                // If the path exists but is not a readable file, report it like any other input.
                Err(no_file) if path.exists() => no_file,
                _ => LoadError::file(asked, error.to_string(), ""),
            })?;
            return Ok(PlanTopology { topology: Arc::new(topology), file: None });
        }
        let bytes = read_file(path)?;
        PlanTopology::of_text(&String::from_utf8_lossy(&bytes), &spec.base, &spec)
    }

    /// Splits a text into its parts. A part that names a file is a file, even if its name has special characters.
    pub fn spec(asked: &str) -> Spec {
        Spec::parse(asked, &|name| Path::new(name).is_file())
    }

    /// Reads a topology from a text and applies the machines and network of a spec. `source` is the text's name in
    /// messages.
    ///
    /// # Errors
    /// [`LoadError`] with the line, or with the problem of joining its machines.
    pub fn of_text(text: &str, source: &str, spec: &Spec) -> Result<Self, LoadError> {
        let stem = Path::new(&spec.base).file_stem().map(|stem| printable(&stem.to_string_lossy()));
        let stem = stem.filter(|stem| stem != "-").unwrap_or_else(|| "topology".into());
        let read = topology::read(text, source, &stem, &spec.assumed)?;
        let one = spec.machines.is_none() && spec.network.is_none();
        let topology = if one && read.apart().is_none() {
            read
        } else {
            topology::joined_copies(spec, &read).map_err(|error| {
                let told = error.to_string();
                let (problem, repair) = told.split_once("; ").unwrap_or((&told, ""));
                LoadError::file(source, problem, repair)
            })?
        };
        Ok(PlanTopology { topology: Arc::new(topology), file: Some(spec.to_string()) })
    }
}
