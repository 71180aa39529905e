//! Hardware of the user: a TOML file given with `--hardware`, or a table `[hardware.NAME]` of the configuration file.

use std::path::Path;

use super::{Failure, input};
use crate::{
    cluster::hardware::{self, HardwareSheet},
    config::{self, Config},
    folders,
    workload::formats::file,
};

/// Size limit of a hardware file, bytes.
const MAX_BYTES: u64 = 1 << 16;

/// Id of the hardware that `--hardware` names. A file, or a table of the configuration file, becomes known under its id.
///
/// # Errors
/// [`Failure`] if a file cannot be read as hardware.
pub(super) fn id_of(value: &str) -> Result<String, Failure> {
    if Path::new(value).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return from_file(Path::new(value));
    }
    if hardware::find(value).is_none() {
        let place = config::place(folders::variable);
        place.map(|place| Config::load(&place)).transpose()?.unwrap_or_default().add_hardware();
    }
    Ok(value.into())
}

fn from_file(path: &Path) -> Result<String, Failure> {
    let shown = input::shown(path);
    let hint = "a hardware file needs peak_16, memory_gib, memory_bandwidth, inner_link and outer_link; it may have generation, \
        watts, domain, pod, oversubscription, peak_8, peak_4, peak_32, host_link, host_bandwidth and others";
    let bytes = file::read_at_most(path, MAX_BYTES)
        .map_err(|error| Failure::refused(format!("{shown}: {}", error.problem), error.repair))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut sheet: HardwareSheet = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        Failure::refused(format!("{shown}:{line}: {}", crate::text::printable(error.message())), hint)
    })?;
    if sheet.id.is_empty() {
        sheet.id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    }
    let id = sheet.id.clone();
    hardware::add(sheet).map_err(|problem| Failure::refused(format!("{shown}: {problem}"), hint))?;
    Ok(id)
}
