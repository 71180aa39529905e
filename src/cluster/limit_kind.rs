//! The kinds of limits: the one table from which flags, panel rows, messages and units are made.

use super::Limits;
use crate::units::{self, UnitError};

/// From this size on memory is not limited.
const UNLIMITED: f64 = 1e30;
/// The most devices a plan may use, as in the published program.
pub const MOST_DEVICES: u32 = 10_000;
/// The most microbatches in a batch, in a file as on the command line.
pub const MOST_MICROBATCHES: u32 = 1_000_000;
/// The most samples in a batch.
pub const MOST_BATCH: u32 = 10_000_000;

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitKind {
    /// Devices available.
    Devices,
    /// CPUs that can run nodes.
    Cpus,
    /// Memory per device.
    Memory,
    /// Microbatches in a batch.
    Microbatches,
    /// Bandwidth between devices.
    Bandwidth,
    /// Samples in a batch over all devices.
    Batch,
    /// Operations per second of a device.
    Flops,
}
impl LimitKind {
    /// All limits, in the order they are shown.
    pub const ALL: [LimitKind; 7] = [
        LimitKind::Devices,
        LimitKind::Cpus,
        LimitKind::Memory,
        LimitKind::Microbatches,
        LimitKind::Bandwidth,
        LimitKind::Batch,
        LimitKind::Flops,
    ];

    /// The limits of pipelines with replicas (Piper's profile).
    pub const PIPELINE: [LimitKind; 4] =
        [LimitKind::Devices, LimitKind::Memory, LimitKind::Microbatches, LimitKind::Bandwidth];

    /// The limits of device placement: accelerators, CPUs, and the accelerators' memory.
    pub const PLACEMENT: [LimitKind; 3] = [LimitKind::Devices, LimitKind::Cpus, LimitKind::Memory];

    /// The limits of pipelines over machines, planned for a whole batch (layer-wise profiles).
    pub const LAYERS: [LimitKind; 3] = [LimitKind::Devices, LimitKind::Batch, LimitKind::Memory];

    /// The limits of operators that are split over all devices.
    pub const OPERATORS: [LimitKind; 4] =
        [LimitKind::Devices, LimitKind::Flops, LimitKind::Bandwidth, LimitKind::Memory];

    /// What the panel and the tables call it.
    pub fn label(self) -> &'static str {
        match self {
            LimitKind::Devices => "devices",
            LimitKind::Cpus => "CPUs",
            LimitKind::Memory => "memory",
            LimitKind::Microbatches => "microbatches",
            LimitKind::Bandwidth => "bandwidth",
            LimitKind::Batch => "batch",
            LimitKind::Flops => "flops",
        }
    }

    /// What one of it is called.
    pub fn singular(self) -> &'static str {
        match self {
            LimitKind::Devices => "device",
            LimitKind::Cpus => "CPU",
            LimitKind::Microbatches => "microbatch",
            LimitKind::Memory | LimitKind::Bandwidth | LimitKind::Batch | LimitKind::Flops => self.label(),
        }
    }

    /// One line on what it limits.
    pub fn help(self) -> &'static str {
        match self {
            LimitKind::Devices => "devices available; not all need be used",
            LimitKind::Cpus => "CPUs that can run nodes beside the accelerators",
            LimitKind::Memory => "memory per device",
            LimitKind::Microbatches => {
                "microbatches in a batch: bounds the replicas of a stage and spreads the all-reduce"
            }
            LimitKind::Bandwidth => "bandwidth between any two devices",
            LimitKind::Batch => "samples in a batch, over all devices",
            LimitKind::Flops => "operations per second of a device, a multiplication with addition being one",
        }
    }

    /// The flag on the command line.
    pub fn flag(self) -> &'static str {
        match self {
            LimitKind::Devices => "--devices",
            LimitKind::Cpus => "--cpus",
            LimitKind::Memory => "--memory",
            LimitKind::Microbatches => "--microbatches",
            LimitKind::Bandwidth => "--bandwidth",
            LimitKind::Batch => "--batch",
            LimitKind::Flops => "--flops",
        }
    }

    /// A value as a user might write it.
    pub fn example(self) -> &'static str {
        match self {
            LimitKind::Devices => "64",
            LimitKind::Cpus => "1",
            LimitKind::Memory => "16GiB",
            LimitKind::Microbatches => "1920",
            LimitKind::Bandwidth => "25GB/s",
            LimitKind::Batch => "128",
            LimitKind::Flops => "10e12",
        }
    }

    /// Prints a value of this limit.
    pub fn format(self, value: f64) -> String {
        match self {
            LimitKind::Devices | LimitKind::Cpus | LimitKind::Microbatches | LimitKind::Batch => format!("{value}"),
            LimitKind::Memory if value >= UNLIMITED => "unlimited".into(),
            LimitKind::Memory => units::bytes_exact(value),
            LimitKind::Bandwidth => units::bandwidth_exact(value),
            LimitKind::Flops => units::flops_exact(value),
        }
    }

    /// A value with what it counts, as it reads in a list of limits: `64 devices`, `1 CPU`, `8 GiB`, `batch 128`.
    pub fn counted(self, value: f64) -> String {
        let text = self.format(value);
        match self {
            LimitKind::Devices | LimitKind::Cpus | LimitKind::Microbatches => {
                format!("{text} {}", if value == 1.0 { self.singular() } else { self.label() })
            }
            LimitKind::Batch => format!("batch {text}"),
            LimitKind::Memory if value >= UNLIMITED => "no memory limit".into(),
            LimitKind::Memory | LimitKind::Bandwidth | LimitKind::Flops => text,
        }
    }

    /// Reads a value of this limit; bare numbers are base units.
    ///
    /// # Errors
    /// [`UnitError`] with what would do.
    pub fn parse(self, text: &str) -> Result<f64, UnitError> {
        let most = |most: u32, too_large: &'static str| match units::parse_count(text) {
            Ok(value) if value <= most => Ok(f64::from(value)),
            Ok(_) => Err(UnitError::new(text, too_large)),
            Err(_) if units::is_larger(text, f64::from(most)) => Err(UnitError::new(text, too_large)),
            Err(error) => Err(error),
        };
        match self {
            LimitKind::Cpus if text.trim() == "0" => Ok(0.0),
            LimitKind::Cpus => most(MOST_DEVICES, "larger than any machine planned here: at most 10000"),
            LimitKind::Devices => most(MOST_DEVICES, "larger than any cluster planned here: at most 10000"),
            LimitKind::Microbatches => most(MOST_MICROBATCHES, "larger than any batch planned here: at most 1000000"),
            LimitKind::Batch => most(MOST_BATCH, "larger than any batch planned here: at most 10000000"),
            LimitKind::Memory if text.trim() == "unlimited" => Ok(Limits::NEUTRAL.memory_bytes),
            LimitKind::Memory => units::parse_bytes(text),
            LimitKind::Bandwidth => units::parse_bandwidth(text),
            LimitKind::Flops => units::parse_flops(text),
        }
    }
}
