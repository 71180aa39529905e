//! Accelerators as training needs them.
//!
//! Peaks are dense; links are per direction and device. A device is described by its data sheet and its generation;
//! [`super::constants`] has the fraction of them that a run attains.

use super::run::TrainingPrecision;
use std::{collections::BTreeMap, sync::OnceLock};

use crate::{
    cluster::hardware::{self, HardwareSheet, sheet, sheets},
    units::GIB,
};

/// Generation of accelerators that attain similar fractions of their peaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// V100. Its constants are Ampere's, because no training run on it is published.
    Volta,
    /// A100.
    Ampere,
    /// H100, H200.
    Hopper,
    /// B200, GB200, B300, GB300.
    Blackwell,
}

impl Generation {
    /// Streaming multiprocessors of a data centre's device of the generation.
    pub fn multiprocessors(self) -> f64 {
        match self {
            Generation::Volta => 80.0,
            Generation::Ampere => 108.0,
            Generation::Hopper => 132.0,
            Generation::Blackwell => 148.0,
        }
    }
}

/// Network above the machines: pods with full bandwidth, and less between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// Devices of a pod.
    pub pod: u32,
    /// Bandwidth of a pod's devices over that which leaves the pod, at least 1.
    pub oversubscription: f64,
}

impl Fabric {
    /// Largest oversubscription.
    pub const MOST_OVERSUBSCRIPTION: f64 = hardware::MOST_OVERSUBSCRIPTION;
}

/// Accelerator and its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accelerator {
    /// Id on the command line.
    pub id: &'static str,
    /// Generation.
    pub generation: Generation,
    /// Peak dense FLOP/s in 16 bits.
    pub peak_16: f64,
    /// FLOP/s in 16 bits that the constants of its generation are fractions of, at `rated_watts`.
    pub rated_16: f64,
    /// Power of that rate, watts.
    pub rated_watts: f64,
    /// Peak dense FLOP/s in 32 bits.
    pub peak_32: f64,
    /// Peak dense FLOP/s in 8 bits, if supported.
    pub peak_8: Option<f64>,
    /// Peak dense FLOP/s in 4 bits, if supported.
    pub peak_4: Option<f64>,
    /// Bytes per second to its own memory.
    pub memory_bandwidth: f64,
    /// Bytes per second to the devices of its NVLink domain.
    pub inner_link: f64,
    /// Bytes per second to all others.
    pub outer_link: f64,
    /// Devices in an NVLink domain.
    pub domain: u32,
    /// Network above the machines; `None` if all devices have full bandwidth between them.
    pub fabric: Option<Fabric>,
    /// Bytes per second to the host's memory, per direction.
    pub host_link: f64,
    /// Bytes per second of the host's memory, shared out over its devices.
    pub host_bandwidth: f64,
    /// Maximum power, watts.
    pub watts: f64,
    /// Bytes of memory.
    pub memory_bytes: f64,
    /// Link type within a domain, in one word.
    pub joined_by: &'static str,
}

/// All accelerators of the table, oldest first within a vendor.
pub fn all() -> &'static [Accelerator] {
    static ALL: OnceLock<Vec<Accelerator>> = OnceLock::new();
    ALL.get_or_init(|| sheets().iter().map(Accelerator::from).collect())
}

/// Accelerator with this id, in either case: a preset, or the user's own. `a100` is the one with 80 GiB.
pub fn find(id: &str) -> Option<Accelerator> {
    sheet(id).map(Accelerator::from)
}

/// Hardware of the user from the figures of a file, under the names of [`Accelerator::named`]. It becomes known under its
/// id.
///
/// # Errors
/// A sentence, if a figure is unknown, missing or out of range.
pub fn from_figures(id: &str, generation: &str, figures: &BTreeMap<String, f64>) -> Result<Accelerator, String> {
    let mut sheet = HardwareSheet { id: id.into(), generation: generation.into(), ..HardwareSheet::default() };
    for (name, &value) in figures {
        match name.as_str() {
            "peak_16" => sheet.peak_16 = value,
            "peak_32" => sheet.peak_32 = Some(value),
            "peak_8" => sheet.peak_8 = Some(value),
            "peak_4" => sheet.peak_4 = Some(value),
            "memory_bandwidth" => sheet.memory_bandwidth = value,
            "memory_bytes" => sheet.memory_gib = value / GIB,
            "inner_link" => sheet.inner_link = value,
            "outer_link" => sheet.outer_link = value,
            "domain" => sheet.domain = value as u32,
            "pod" => sheet.pod = Some(value as u32),
            "oversubscription" => sheet.oversubscription = Some(value),
            "host_link" => sheet.host_link = value,
            "host_bandwidth" => sheet.host_bandwidth = value,
            "watts" => sheet.watts = value,
            _ => return Err(format!("{} is no figure of hardware", crate::text::printable(name))),
        }
    }
    hardware::add(sheet)?;
    find(id).ok_or_else(|| "is not known".into())
}

impl Generation {
    /// Name in files.
    pub fn id(self) -> &'static str {
        match self {
            Generation::Volta => "volta",
            Generation::Ampere => "ampere",
            Generation::Hopper => "hopper",
            Generation::Blackwell => "blackwell",
        }
    }
}

impl From<&'static HardwareSheet> for Accelerator {
    fn from(sheet: &'static HardwareSheet) -> Self {
        let generation = match sheet.generation.as_str() {
            "volta" => Generation::Volta,
            "ampere" => Generation::Ampere,
            "blackwell" => Generation::Blackwell,
            _ => Generation::Hopper,
        };
        Accelerator {
            id: &sheet.id,
            generation,
            peak_16: sheet.peak_16,
            rated_16: sheet.rated_16.unwrap_or(sheet.peak_16),
            rated_watts: sheet.rated_watts.unwrap_or(sheet.watts),
            peak_32: sheet.peak_32.unwrap_or(sheet.peak_16 / 16.0),
            peak_8: sheet.peak_8,
            peak_4: sheet.peak_4,
            memory_bandwidth: sheet.memory_bandwidth,
            inner_link: sheet.inner_link,
            outer_link: sheet.outer_link,
            domain: sheet.domain,
            fabric: sheet.pod.map(|pod| Fabric { pod, oversubscription: sheet.oversubscription.unwrap_or(1.0) }),
            host_link: sheet.host_link,
            host_bandwidth: sheet.host_bandwidth,
            watts: sheet.watts,
            memory_bytes: sheet.memory_gib * GIB,
            joined_by: &sheet.joined_by,
        }
    }
}

/// Devices from which a domain is a rack and not a machine.
const RACK: u32 = 16;
/// Devices of a machine in such a rack.
const TRAY: u32 = 4;

impl Accelerator {
    /// Default number format of products: bfloat16 if supported.
    pub fn usual_precision(&self) -> TrainingPrecision {
        if self.generation == Generation::Volta { TrainingPrecision::Fp16 } else { TrainingPrecision::Bf16 }
    }

    /// Devices of a machine, which is rented and fails as a whole: those of a domain, or of a rack a tray of four.
    pub fn machine(&self) -> u32 {
        if self.domain >= RACK { TRAY } else { self.domain.max(1) }
    }

    /// True if its figures, links included, equal its preset.
    pub fn is_preset(&self) -> bool {
        find(self.id) == Some(*self)
    }

    /// Figures by name; `None` if not supported.
    pub fn named(&self) -> [(&'static str, Option<f64>); 14] {
        [
            ("peak_16", Some(self.peak_16)),
            ("peak_32", Some(self.peak_32)),
            ("peak_8", self.peak_8),
            ("peak_4", self.peak_4),
            ("memory_bandwidth", Some(self.memory_bandwidth)),
            ("inner_link", Some(self.inner_link)),
            ("outer_link", Some(self.outer_link)),
            ("domain", Some(f64::from(self.domain))),
            ("pod", self.fabric.map(|fabric| f64::from(fabric.pod))),
            ("oversubscription", self.fabric.map(|fabric| fabric.oversubscription)),
            ("host_link", Some(self.host_link)),
            ("host_bandwidth", Some(self.host_bandwidth)),
            ("watts", Some(self.watts)),
            ("memory_bytes", Some(self.memory_bytes)),
        ]
    }

    /// Sets a figure by its name. Returns false if there is no such figure.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "peak_16" => {
                self.rated_16 *= value / self.peak_16;
                self.peak_16 = value;
            }
            "peak_32" => self.peak_32 = value,
            "peak_8" => self.peak_8 = Some(value),
            "peak_4" => self.peak_4 = Some(value),
            "memory_bandwidth" => self.memory_bandwidth = value,
            "inner_link" => self.inner_link = value,
            "outer_link" => self.outer_link = value,
            "domain" => self.domain = value.max(1.0) as u32,
            "pod" => {
                let oversubscription = self.fabric.map_or(1.0, |fabric| fabric.oversubscription);
                self.fabric = Some(Fabric { pod: value.max(1.0) as u32, oversubscription });
            }
            "oversubscription" => {
                let pod = self.fabric.map_or(u32::MAX, |fabric| fabric.pod);
                self.fabric = Some(Fabric { pod, oversubscription: value.max(1.0) });
            }
            "host_link" => self.host_link = value,
            "host_bandwidth" => self.host_bandwidth = value,
            "watts" => self.watts = value,
            "memory_bytes" => self.memory_bytes = value,
            _ => return false,
        }
        true
    }

    /// Sustained rate in 16 bits, FLOP/s: power to this exponent determines it, not the data sheet's peak.
    pub fn sustained_16(&self, power: f64) -> f64 {
        self.rated_16 * (self.watts / self.rated_watts).powf(power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_sets_the_sustained_rate() {
        let mut own = find("a100").unwrap();
        assert!(own.set("peak_16", 71e12) && own.set("watts", 350.0));
        assert_eq!(own.sustained_16(1.0), 71e12 * 350.0 / 400.0);
        assert_eq!(find("GB200").unwrap().sustained_16(1.0), 2700e12);
        assert_eq!(find("a100").unwrap().id, "a100-80");
        assert_eq!(find("h100").unwrap().sustained_16(1.0), 989.4e12);
        assert!(find("abacus").is_none());
    }
}
