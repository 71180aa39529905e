//! Accelerators as training needs them.
//!
//! Peaks are dense; links are per direction and device. A device is described by its data sheet and its generation;
//! [`super::constants`] has the fraction of them that a run attains.

use super::run::TrainingPrecision;
use crate::units::GIB;

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

const A100: Accelerator = Accelerator {
    id: "a100-80",
    generation: Generation::Ampere,
    peak_16: 312e12,
    rated_16: 312e12,
    rated_watts: 400.0,
    peak_32: 19.5e12,
    peak_8: None,
    peak_4: None,
    memory_bandwidth: 2.039e12,
    inner_link: 300e9,
    outer_link: 25e9,
    domain: 8,
    host_link: 25e9,
    host_bandwidth: 50e9,
    watts: 400.0,
    memory_bytes: 80.0 * GIB,
    joined_by: "NVLink",
};

const V100: Accelerator = Accelerator {
    id: "v100",
    generation: Generation::Volta,
    peak_16: 125e12,
    rated_16: 125e12,
    rated_watts: 300.0,
    peak_32: 15.7e12,
    host_link: 12.5e9,
    host_bandwidth: 30e9,
    memory_bandwidth: 0.9e12,
    inner_link: 150e9,
    watts: 300.0,
    memory_bytes: 32.0 * GIB,
    ..A100
};

const H100: Accelerator = Accelerator {
    id: "h100",
    generation: Generation::Hopper,
    peak_16: 989.4e12,
    rated_16: 989.4e12,
    rated_watts: 700.0,
    peak_32: 66.9e12,
    host_link: 50e9,
    host_bandwidth: 75e9,
    peak_8: Some(1978.9e12),
    memory_bandwidth: 3.35e12,
    inner_link: 450e9,
    outer_link: 50e9,
    watts: 700.0,
    ..A100
};

const B200: Accelerator = Accelerator {
    id: "b200",
    generation: Generation::Blackwell,
    peak_16: 2250e12,
    rated_16: 2250e12,
    rated_watts: 1000.0,
    peak_32: 75e12,
    peak_8: Some(4500e12),
    peak_4: Some(9000e12),
    memory_bandwidth: 8e12,
    inner_link: 900e9,
    watts: 1000.0,
    memory_bytes: 180.0 * GIB,
    ..H100
};

const GB200: Accelerator = Accelerator {
    id: "gb200",
    peak_16: 2500e12,
    peak_32: 80e12,
    host_link: 225e9,
    host_bandwidth: 250e9,
    peak_8: Some(5000e12),
    peak_4: Some(10_000e12),
    domain: 64,
    watts: 1200.0,
    memory_bytes: 186.0 * GIB,
    ..B200
};

const PRESETS: [Accelerator; 9] = [
    V100,
    Accelerator { id: "a100-40", memory_bandwidth: 1.555e12, memory_bytes: 40.0 * GIB, ..A100 },
    A100,
    H100,
    Accelerator { id: "h200", memory_bandwidth: 4.8e12, memory_bytes: 141.0 * GIB, ..H100 },
    B200,
    GB200,
    Accelerator {
        id: "b300",
        peak_4: Some(13_500e12),
        outer_link: 100e9,
        watts: 1100.0,
        memory_bytes: 270.0 * GIB,
        ..B200
    },
    Accelerator {
        id: "gb300",
        peak_4: Some(15_000e12),
        outer_link: 100e9,
        watts: 1400.0,
        memory_bytes: 279.0 * GIB,
        ..GB200
    },
];

/// All accelerators, oldest first.
pub fn all() -> &'static [Accelerator] {
    &PRESETS
}

/// Accelerator with this id, in either case. `a100` is the one with 80 GiB.
pub fn find(id: &str) -> Option<&'static Accelerator> {
    let id = if id.eq_ignore_ascii_case("a100") { "a100-80" } else { id };
    all().iter().find(|accelerator| accelerator.id.eq_ignore_ascii_case(id))
}

impl Accelerator {
    /// Default number format of products: bfloat16 if supported.
    pub fn usual_precision(&self) -> TrainingPrecision {
        if self.generation == Generation::Volta { TrainingPrecision::Fp16 } else { TrainingPrecision::Bf16 }
    }

    /// True if its figures, links included, equal its preset.
    pub fn is_preset(&self) -> bool {
        find(self.id) == Some(self)
    }

    /// Figures by name; `None` if not supported.
    pub fn named(&self) -> [(&'static str, Option<f64>); 12] {
        [
            ("peak_16", Some(self.peak_16)),
            ("peak_32", Some(self.peak_32)),
            ("peak_8", self.peak_8),
            ("peak_4", self.peak_4),
            ("memory_bandwidth", Some(self.memory_bandwidth)),
            ("inner_link", Some(self.inner_link)),
            ("outer_link", Some(self.outer_link)),
            ("domain", Some(f64::from(self.domain))),
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
    use crate::cluster;

    #[test]
    fn data_sheets_agree_with_those_of_the_presets() {
        for accelerator in all() {
            let preset = cluster::hardware::find(accelerator.id).expect("both lists have the same");
            let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
            assert!(near(accelerator.peak_16, preset.peak_flops.value), "{}", accelerator.id);
            assert!(near(accelerator.memory_bandwidth, preset.memory_bandwidth.value), "{}", accelerator.id);
            assert_eq!(accelerator.inner_link, preset.intra_node_link.value);
            assert_eq!(accelerator.outer_link, preset.inter_node_link.value);
            assert_eq!(accelerator.memory_bytes, preset.memory_bytes.value);
        }
        assert_eq!(all().len(), cluster::hardware::all().len());
    }

    #[test]
    fn power_sets_the_sustained_rate() {
        let mut own = *find("a100").unwrap();
        assert!(own.set("peak_16", 71e12) && own.set("watts", 350.0));
        assert_eq!(own.sustained_16(1.0), 71e12 * 350.0 / 400.0);
        assert_eq!(find("GB200").unwrap().sustained_16(1.0), 2700e12);
        assert_eq!(find("a100").unwrap().id, "a100-80");
        assert_eq!(find("h100").unwrap().sustained_16(1.0), 989.4e12);
        assert!(find("abacus").is_none());
    }
}
