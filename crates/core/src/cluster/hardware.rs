//! Hardware: figures of an accelerator and its links, each with its source, from a table file and from the user's own.
//!
//! Figures are the vendor's nominal ones. The model FLOP utilisation (MFU), the fraction of the peak that a training
//! run attains, is an assumption and marked as one. Links are per direction and per device. `hardware.toml` has the
//! presets; a file of the user has the same fields.

use std::sync::{OnceLock, RwLock};

use serde::{Deserialize, Serialize};

use crate::units::GIB;

/// Figure and its source: a data sheet, or the word `assumed` with the reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourcedFigure {
    /// Value in base units (FLOP/s, bytes, bytes per second), or a fraction.
    pub value: f64,
    /// Source of the value.
    pub source: &'static str,
}

/// Accelerator and its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hardware {
    /// Id on the command line: `a100-80`.
    pub id: &'static str,
    /// Product name.
    pub name: &'static str,
    /// Peak dense 16-bit matrix FLOP/s.
    pub peak_flops: SourcedFigure,
    /// Fraction of the peak that training attains at tensor degree 1.
    pub mfu: SourcedFigure,
    /// Bytes of device memory.
    pub memory_bytes: SourcedFigure,
    /// Bytes per second to device memory.
    pub memory_bandwidth: SourcedFigure,
    /// Bytes per second of one NVLink, per direction.
    pub nvlink: SourcedFigure,
    /// Bytes per second, per direction, to the other devices of the machine.
    pub intra_node_link: SourcedFigure,
    /// Bytes per second, per direction and device, to other machines.
    pub inter_node_link: SourcedFigure,
}

/// Row of the table, or file of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HardwareSheet {
    /// Id on the command line.
    pub id: String,
    /// Product name.
    pub name: String,
    /// Generation whose fitted constants apply: `volta`, `ampere`, `hopper` or `blackwell`.
    pub generation: String,
    /// Source of the peaks, the memory and the power.
    pub source: String,
    /// Peak dense FLOP/s in 16 bits.
    pub peak_16: f64,
    /// Peak dense FLOP/s in 32 bits; a sixteenth of the peak in 16 bits if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_32: Option<f64>,
    /// Peak dense FLOP/s in 8 bits, if supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_8: Option<f64>,
    /// Peak dense FLOP/s in 4 bits, if supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_4: Option<f64>,
    /// FLOP/s in 16 bits that the constants refer to, if not the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_16: Option<f64>,
    /// Power of that rate, watts, if not the maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_watts: Option<f64>,
    /// Device memory, GiB.
    pub memory_gib: f64,
    /// Bytes per second to device memory.
    pub memory_bandwidth: f64,
    /// Maximum power, watts.
    pub watts: f64,
    /// Bytes per second to the other devices of its domain.
    pub inner_link: f64,
    /// Source of that figure.
    pub inner_source: String,
    /// Bytes per second to all others.
    pub outer_link: f64,
    /// Source of that figure.
    pub outer_source: String,
    /// Devices in a domain.
    pub domain: u32,
    /// Devices of a pod, between which the network has full bandwidth; all, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<u32>,
    /// Bandwidth of a pod's devices over that which leaves the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// Link type within a domain, in one word.
    pub joined_by: String,
    /// Bytes per second of one NVLink.
    pub nvlink: f64,
    /// Bytes per second to the host's memory.
    pub host_link: f64,
    /// Bytes per second of the host's memory, shared out over its devices.
    pub host_bandwidth: f64,
    /// Fraction of the peak that training attains.
    pub mfu: f64,
    /// Source of that figure.
    pub mfu_source: String,
}

impl Default for HardwareSheet {
    /// Usual figures; those that every board has of its own are 0, which [`HardwareSheet::problem`] calls missing.
    fn default() -> Self {
        let own = || "nominal: the user's own figures".to_string();
        HardwareSheet {
            id: String::new(),
            name: String::new(),
            generation: "hopper".into(),
            source: own(),
            peak_16: 0.0,
            peak_32: None,
            peak_8: None,
            peak_4: None,
            rated_16: None,
            rated_watts: None,
            memory_gib: 0.0,
            memory_bandwidth: 0.0,
            watts: 700.0,
            inner_link: 0.0,
            inner_source: own(),
            outer_link: 0.0,
            outer_source: own(),
            domain: 8,
            pod: None,
            oversubscription: None,
            joined_by: "its own links".into(),
            nvlink: 25e9,
            host_link: 25e9,
            host_bandwidth: 50e9,
            mfu: 0.4,
            mfu_source: "assumed: as on common hardware".into(),
        }
    }
}

/// Largest oversubscription of a network.
pub const MOST_OVERSUBSCRIPTION: f64 = 1000.0;

/// Generations with fitted constants.
pub const GENERATIONS: [&str; 4] = ["volta", "ampere", "hopper", "blackwell"];

#[derive(Deserialize)]
struct HardwareTable {
    hardware: Vec<HardwareSheet>,
}

/// Rows of the table, oldest first within a vendor.
pub fn sheets() -> &'static [HardwareSheet] {
    static SHEETS: OnceLock<Vec<HardwareSheet>> = OnceLock::new();
    SHEETS.get_or_init(|| {
        let table: HardwareTable = toml::from_str(include_str!("hardware.toml")).expect("a test reads the table");
        table.hardware
    })
}

/// Sheets of the user, kept for the life of the process: a workload refers to its hardware by id.
static OWN: RwLock<Vec<&'static HardwareSheet>> = RwLock::new(vec![]);

/// Makes the user's own hardware known under its id. A sheet with the same id takes its place.
///
/// # Errors
/// A sentence, if a figure is out of range, or the id is that of a preset.
pub fn add(sheet: HardwareSheet) -> Result<(), String> {
    if let Some(problem) = sheet.problem() {
        return Err(problem);
    }
    if sheets().iter().any(|known| known.id.eq_ignore_ascii_case(&sheet.id)) {
        return Err(format!("id is `{}`, which is a preset; choose another", sheet.id));
    }
    let mut own = OWN.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if own.iter().any(|known| **known == sheet) {
        return Ok(());
    }
    own.retain(|known| !known.id.eq_ignore_ascii_case(&sheet.id));
    own.push(Box::leak(Box::new(sheet)));
    Ok(())
}

/// Forgets all sheets that were [added](add).
pub fn forget_added() {
    OWN.write().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
}

/// Sheet with this id, in either case. `a100` is the one with 80 GiB.
pub fn sheet(id: &str) -> Option<&'static HardwareSheet> {
    let id = match id.to_ascii_lowercase().as_str() {
        "a100" => "a100-80".to_string(),
        "rtx-a6000" => "a6000".into(),
        short @ ("3090" | "4090" | "5090") => format!("rtx-{short}"),
        id => id.to_string(),
    };
    let own = OWN.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let of_user = own.iter().find(|sheet| sheet.id.eq_ignore_ascii_case(&id)).copied();
    of_user.or_else(|| sheets().iter().find(|sheet| sheet.id == id))
}

impl HardwareSheet {
    /// Figures that every sheet needs.
    pub const NEEDED: [&'static str; 5] = ["peak_16", "memory_gib", "memory_bandwidth", "inner_link", "outer_link"];

    /// First figure out of range, as a sentence.
    pub fn problem(&self) -> Option<String> {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.id.is_empty() || self.id.len() > 40 || !self.id.chars().all(word) {
            let shown = crate::text::printable(&self.id);
            return Some(format!("id is `{shown}`, must be 1 to 40 letters, digits, `-`, `_` or `.`"));
        }
        if !GENERATIONS.contains(&self.generation.as_str()) {
            let shown = crate::text::printable(&self.generation);
            return Some(format!("generation is `{shown}`, must be {}", GENERATIONS.join(", ")));
        }
        let needed = [
            ("peak_16", Some(self.peak_16)),
            ("peak_32", self.peak_32),
            ("peak_8", self.peak_8),
            ("peak_4", self.peak_4),
            ("rated_16", self.rated_16),
            ("rated_watts", self.rated_watts),
            ("memory_gib", Some(self.memory_gib)),
            ("memory_bandwidth", Some(self.memory_bandwidth)),
            ("watts", Some(self.watts)),
            ("inner_link", Some(self.inner_link)),
            ("outer_link", Some(self.outer_link)),
            ("domain", Some(f64::from(self.domain))),
            ("pod", self.pod.map(f64::from)),
            ("oversubscription", self.oversubscription),
            ("nvlink", Some(self.nvlink)),
            ("host_link", Some(self.host_link)),
            ("host_bandwidth", Some(self.host_bandwidth)),
        ];
        let odd = |(_, value): &(&str, Option<f64>)| value.is_some_and(|value| !(1.0..=1e18).contains(&value));
        if let Some((name, value)) = needed.into_iter().find(odd) {
            if value == Some(0.0) && HardwareSheet::NEEDED.contains(&name) {
                return Some(format!("{name} is missing"));
            }
            return Some(format!("{name} is {}, must be from 1 to 1e18", value.unwrap_or_default()));
        }
        if let Some(times) = self.oversubscription.filter(|times| *times > MOST_OVERSUBSCRIPTION) {
            return Some(format!("oversubscription is {times}, must be from 1 to {MOST_OVERSUBSCRIPTION}"));
        }
        if let Some(pod) = self.pod.filter(|pod| *pod < self.domain) {
            return Some(format!("pod is {pod}, must be at least the domain of {}", self.domain));
        }
        if self.oversubscription.is_some() && self.pod.is_none() {
            return Some("oversubscription is given without pod, the devices that it surrounds".into());
        }
        (!(self.mfu > 0.0 && self.mfu <= 1.0)).then(|| format!("mfu is {}, must be above 0 and at most 1", self.mfu))
    }
}

impl From<&'static HardwareSheet> for Hardware {
    fn from(sheet: &'static HardwareSheet) -> Self {
        let figure = |value: f64, source: &'static str| SourcedFigure { value, source };
        Hardware {
            id: &sheet.id,
            name: &sheet.name,
            peak_flops: figure(sheet.peak_16, &sheet.source),
            mfu: figure(sheet.mfu, &sheet.mfu_source),
            memory_bytes: figure(sheet.memory_gib * GIB, &sheet.source),
            memory_bandwidth: figure(sheet.memory_bandwidth, &sheet.source),
            nvlink: figure(sheet.nvlink, &sheet.inner_source),
            intra_node_link: figure(sheet.inner_link, &sheet.inner_source),
            inter_node_link: figure(sheet.outer_link, &sheet.outer_source),
        }
    }
}

/// All presets, oldest first within a vendor.
pub fn all() -> &'static [Hardware] {
    static ALL: OnceLock<Vec<Hardware>> = OnceLock::new();
    ALL.get_or_init(|| sheets().iter().map(Hardware::from).collect())
}

/// Hardware with this id, in either case: a preset, or the user's own.
pub fn find(id: &str) -> Option<Hardware> {
    sheet(id).map(Hardware::from)
}

/// Id of the preset that the text of a test names, such as `NVIDIA H100 80GB HBM3`. `None` for boards with other links
/// (PCIe, NVL).
pub fn named_in(text: &str) -> Option<&'static str> {
    let line = text.lines().find(|line| line.contains("NVIDIA "))?;
    let name = &line[line.find("NVIDIA ")?..];
    if name.contains("PCIe") || name.contains("NVL") {
        return None;
    }
    let known = [("H100", "h100"), ("H200", "h200"), ("GB200", "gb200"), ("B200", "b200"), ("GB300", "gb300")];
    let others = [("B300", "b300"), ("A100-SXM4-40GB", "a100-40"), ("A100", "a100-80"), ("V100", "v100")];
    known.into_iter().chain(others).find(|(word, _)| name.contains(word)).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_id_in_either_case() {
        assert_eq!(find("A100-80").map(|h| h.name), Some("NVIDIA A100 SXM4 80 GB"));
        assert_eq!(find("4090").map(|h| h.id), Some("rtx-4090"));
        assert_eq!(find("abacus"), None);
        assert_eq!(named_in("#  Rank  0 on n1 device 0 [0x1b] NVIDIA H100 80GB HBM3\n"), Some("h100"));
        assert_eq!(named_in("Device: 0, NVIDIA A100-SXM4-40GB, pciBusID: 7"), Some("a100-40"));
        assert_eq!(named_in("Device 0: NVIDIA H100 PCIe"), None);
        for hardware in all() {
            assert_eq!(find(hardware.id), Some(*hardware));
        }
    }

    #[test]
    fn every_figure_says_where_it_comes_from() {
        for sheet in sheets() {
            assert_eq!(sheet.problem(), None, "{}", sheet.id);
        }
        for h in all() {
            for figure in
                [h.peak_flops, h.mfu, h.memory_bytes, h.memory_bandwidth, h.intra_node_link, h.inter_node_link]
            {
                assert!(figure.value > 0.0);
                let known = ["nominal: ", "assumed: ", "fitted: "].iter().any(|kind| figure.source.starts_with(kind));
                assert!(known, "{}: {}", h.id, figure.source);
            }
            assert!(h.mfu.value < 1.0 && h.intra_node_link.value >= h.inter_node_link.value);
        }
    }

    #[test]
    fn own_hardware_is_known_once_its_figures_are_in_range() {
        let own = |id: &str, extra: &str| {
            let text = format!(
                "id = \"{id}\"\npeak_16 = 100e12\nmemory_gib = 64\nmemory_bandwidth = 1e12\ninner_link = 50e9\n\
                outer_link = 10e9\n{extra}"
            );
            toml::from_str::<HardwareSheet>(&text).map_err(|error| error.to_string()).and_then(add)
        };
        assert_eq!(own("test-board", ""), Ok(()));
        assert_eq!(find("Test-Board").map(|own| own.peak_flops.value), Some(100e12));
        assert_eq!(own("test-board", "watts = 300"), Ok(()));
        assert_eq!(sheet("test-board").map(|own| own.watts), Some(300.0));
        assert!(own("h100", "").unwrap_err().contains("is a preset"));
        assert!(own("test-x", "watts = 0").unwrap_err().contains("watts is 0"));
        assert!(own("test-x", "generation = \"pascal\"").unwrap_err().contains("must be volta"));
        assert!(own("test-x", "colour = 1").unwrap_err().contains("colour"));
        let empty: HardwareSheet = toml::from_str("id = \"test-y\"").unwrap();
        assert_eq!(add(empty), Err("peak_16 is missing".into()));
    }
}
