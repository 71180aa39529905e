//! Topologies on the command line: the name of a preset, or a file in one of the forms that are read.

use std::path::Path;

use super::{Failure, input};
use crate::{
    cluster::topology::{self, NameError, Topology},
    workload::formats::detect,
};

/// The topology of this name, or in this file.
///
/// # Errors
/// [`Failure`] with what there is, or with the line of the file.
pub(super) fn topology(text: &str) -> Result<Topology, Failure> {
    let path = Path::new(text);
    if !input::is_standard_input(path) && !path.is_file() {
        return topology::named(text).map_err(|error| match error {
            NameError::Unknown { name, known } => {
                let hint = format!("a preset is {known}; 2xdgx-a100 is two of them, 2xdgx-1+eth-25g two over one NIC each, and tpu-v4-4x4x4 a torus");
                Failure::refused(format!("no topology is called `{name}`, and no file"), hint)
            }
            error => {
                let told = error.to_string();
                let (message, hint) = told.split_once("; ").unwrap_or((&told, ""));
                Failure::refused(message, hint)
            }
        });
    }
    let (bytes, source) = input::plan_bytes(path)?;
    let text = detect::text(&bytes, &source, &detect::TOPOLOGY)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = crate::text::printable(stem.as_deref().unwrap_or("topology"));
    Ok(topology::read(text, &source, &name)?)
}
