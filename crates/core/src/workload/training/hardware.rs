//! Accelerators as training needs them, and constants for the fraction of the data sheet that a run attains.
//!
//! Peaks are dense; links are per direction and device. The constants were fitted on published runs, one set per
//! generation. A device is therefore described by its data sheet and its generation alone.

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

impl Generation {
    /// Peak in 16 bits (FLOP/s) and power (watts) at which the constants were fitted.
    fn reference(self) -> (f64, f64) {
        match self {
            Generation::Volta => (125e12, 300.0),
            Generation::Ampere => (312e12, 400.0),
            Generation::Hopper => (989.4e12, 700.0),
            Generation::Blackwell => (2250e12, 1000.0),
        }
    }
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
    peak_8: None,
    peak_4: None,
    memory_bandwidth: 2.039e12,
    inner_link: 300e9,
    outer_link: 25e9,
    domain: 8,
    watts: 400.0,
    memory_bytes: 80.0 * GIB,
    joined_by: "NVLink",
};

const V100: Accelerator = Accelerator {
    id: "v100",
    generation: Generation::Volta,
    peak_16: 125e12,
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
    pub fn named(&self) -> [(&'static str, Option<f64>); 9] {
        [
            ("peak_16", Some(self.peak_16)),
            ("peak_8", self.peak_8),
            ("peak_4", self.peak_4),
            ("memory_bandwidth", Some(self.memory_bandwidth)),
            ("inner_link", Some(self.inner_link)),
            ("outer_link", Some(self.outer_link)),
            ("domain", Some(f64::from(self.domain))),
            ("watts", Some(self.watts)),
            ("memory_bytes", Some(self.memory_bytes)),
        ]
    }

    /// Sets a figure by its name. Returns false if there is no such figure.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        match name {
            "peak_16" => self.peak_16 = value,
            "peak_8" => self.peak_8 = Some(value),
            "peak_4" => self.peak_4 = Some(value),
            "memory_bandwidth" => self.memory_bandwidth = value,
            "inner_link" => self.inner_link = value,
            "outer_link" => self.outer_link = value,
            "domain" => self.domain = value.max(1.0) as u32,
            "watts" => self.watts = value,
            "memory_bytes" => self.memory_bytes = value,
            _ => return false,
        }
        true
    }

    /// Sustained rate in 16 bits, FLOP/s: power determines it, not the data sheet's peak.
    pub fn sustained_16(&self) -> f64 {
        let (peak, watts) = self.generation.reference();
        peak * (self.watts / watts)
    }
}

/// Fractions of the data sheet that a run attains, fitted on published runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// Fraction of the sustained rate that large matrix products attain in 16 bits.
    pub gemm_16: f64,
    /// Same in 8 and 4 bits.
    pub gemm_8: f64,
    /// Fraction of the sustained rate that the fused attention core attains.
    pub attention: f64,
    /// Fraction of a dense product's rate that grouped products of experts attain.
    pub experts: f64,
    /// Fraction of the memory bandwidth that elementwise kernels attain.
    pub memory: f64,
    /// Fraction of a link's bandwidth that collectives attain.
    pub links: f64,
    /// Fraction of tensor-parallel transfers that overlap does not hide.
    pub tensor_exposed: f64,
    /// Fraction of data-parallel transfers that overlap does not hide.
    pub data_exposed: f64,
    /// Minimum fraction of FSDP's gathers that overlap does not hide.
    pub fsdp_exposed: f64,
    /// Fixed time per iteration beside all of this, seconds.
    pub fixed_s: f64,
    /// Relative growth of an iteration with every doubling of the devices beyond eight.
    pub growth: f64,
}

/// Source of the shipped constants.
const FITTED: &str = "fitted on 168 published runs (docs/src/background/truth.md)";

impl Constants {
    /// All constants by name.
    pub fn named(&self) -> [(&'static str, f64); 11] {
        [
            ("gemm_16", self.gemm_16),
            ("gemm_8", self.gemm_8),
            ("attention", self.attention),
            ("experts", self.experts),
            ("memory", self.memory),
            ("links", self.links),
            ("tensor_exposed", self.tensor_exposed),
            ("data_exposed", self.data_exposed),
            ("fsdp_exposed", self.fsdp_exposed),
            ("fixed_s", self.fixed_s),
            ("growth", self.growth),
        ]
    }

    /// Constant with this name, mutable.
    pub fn by_name(&mut self, name: &str) -> Option<&mut f64> {
        Some(match name {
            "gemm_16" => &mut self.gemm_16,
            "gemm_8" => &mut self.gemm_8,
            "attention" => &mut self.attention,
            "experts" => &mut self.experts,
            "memory" => &mut self.memory,
            "links" => &mut self.links,
            "tensor_exposed" => &mut self.tensor_exposed,
            "data_exposed" => &mut self.data_exposed,
            "fsdp_exposed" => &mut self.fsdp_exposed,
            "fixed_s" => &mut self.fixed_s,
            "growth" => &mut self.growth,
            _ => return None,
        })
    }

    /// Source of a constant's value.
    pub fn source(name: &str) -> &'static str {
        match name {
            "fixed_s" | "growth" => "fitted on 168 published runs: what grows with no work, and with the cluster",
            _ => FITTED,
        }
    }

    /// Shipped constants of a generation.
    pub fn shipped(generation: Generation) -> Self {
        let (gemm_16, gemm_8, attention) = match generation {
            Generation::Volta | Generation::Ampere => (0.90, 0.90, 0.60),
            Generation::Hopper => (0.73, 0.75, 0.53),
            Generation::Blackwell => (0.52, 0.55, 0.55),
        };
        Constants {
            gemm_16,
            gemm_8,
            attention,
            experts: 0.70,
            memory: 0.80,
            links: 0.75,
            tensor_exposed: 0.23,
            data_exposed: 0.30,
            fsdp_exposed: 0.09,
            fixed_s: 0.03,
            growth: 0.003,
        }
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
        assert_eq!(find("GB200").unwrap().sustained_16(), 2700e12);
        assert_eq!(find("a100").unwrap().id, "a100-80");
        assert_eq!(find("h100").unwrap().sustained_16(), 989.4e12);
        assert!(find("abacus").is_none());
    }
}
