//! Kinds of limits, in one table from which flags, panel rows, messages and units are made.

use crate::units::{self, UnitError};

/// Maximum number of devices of a plan.
pub const MOST_DEVICES: u32 = 1 << 20;
/// Maximum number of devices where each is listed, or where tables grow with them: measured profiles (as in Piper's
/// program), machines and topologies.
pub const MOST_LISTED_DEVICES: u32 = 10_000;
/// Maximum number of microbatches in a batch, in a file and on the command line.
pub const MOST_MICROBATCHES: u32 = 1_000_000;
/// Maximum number of samples in a batch.
pub const MOST_BATCH: u32 = 10_000_000;

/// Kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitKind {
    /// Number of devices.
    Devices,
    /// Number of CPUs that can run nodes.
    Cpus,
    /// Memory per device.
    Memory,
    /// Number of microbatches in a batch.
    Microbatches,
    /// Bandwidth between devices.
    Bandwidth,
    /// Number of samples in a batch over all devices.
    Batch,
    /// Operations per second of a device.
    Flops,
}

/// Type and range of a limit's values.
#[derive(Debug, Clone, Copy)]
enum LimitValueType {
    /// Whole numbers in a range. `too_large` is the error for values above it.
    Count { least: u32, most: u32, too_large: &'static str },
    /// Bytes, or unlimited.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    PerSecond,
}

/// Properties of a kind.
struct LimitProperties {
    kind: LimitKind,
    label: &'static str,
    singular: &'static str,
    help: &'static str,
    flag: &'static str,
    field: &'static str,
    example: &'static str,
    few: &'static str,
    range: &'static str,
    quantity: LimitValueType,
}

/// One row per kind, in the order of the kinds.
const TABLE: &[LimitProperties] = &[
    LimitProperties {
        kind: LimitKind::Devices,
        label: "devices",
        singular: "device",
        help: "devices available; a plan may use fewer",
        flag: "--devices",
        field: "devices",
        example: "64",
        few: "8,16,32 or 8..64:x2",
        range: "8..512:x2",
        quantity: LimitValueType::Count { least: 1, most: MOST_DEVICES, too_large: "too large: at most 1048576" },
    },
    LimitProperties {
        kind: LimitKind::Cpus,
        label: "CPUs",
        singular: "CPU",
        help: "CPUs that can run nodes beside the accelerators",
        flag: "--cpus",
        field: "cpus",
        example: "1",
        few: "0,1,2 or 0..8:+1",
        range: "0..8:+1",
        quantity: LimitValueType::Count { least: 0, most: MOST_LISTED_DEVICES, too_large: "too large: at most 10000" },
    },
    LimitProperties {
        kind: LimitKind::Memory,
        label: "memory",
        singular: "memory",
        help: "memory per device",
        flag: "--memory",
        field: "memory_bytes",
        example: "16GiB",
        few: "8GiB,16GiB or 8GiB..64GiB:x2",
        range: "8GiB..64GiB:x2",
        quantity: LimitValueType::Bytes,
    },
    LimitProperties {
        kind: LimitKind::Microbatches,
        label: "microbatches",
        singular: "microbatch",
        help: "microbatches in a batch; they bound the replicas of a stage and share the cost of the all-reduce",
        flag: "--microbatches",
        field: "microbatches",
        example: "1920",
        few: "8,16,32 or 8..64:x2",
        range: "8..512:x2",
        quantity: LimitValueType::Count { least: 1, most: MOST_MICROBATCHES, too_large: "too large: at most 1000000" },
    },
    LimitProperties {
        kind: LimitKind::Bandwidth,
        label: "bandwidth",
        singular: "bandwidth",
        help: "bandwidth between any two devices",
        flag: "--bandwidth",
        field: "bandwidth_bytes_per_s",
        example: "25GB/s",
        few: "25GB/s,50GB/s or 25GB/s..100GB/s:x2",
        range: "25GB/s..100GB/s:x2",
        quantity: LimitValueType::BytesPerSecond,
    },
    LimitProperties {
        kind: LimitKind::Batch,
        label: "batch",
        singular: "batch",
        help: "samples in a batch, over all devices",
        flag: "--batch",
        field: "batch",
        example: "128",
        few: "8,16,32 or 8..64:x2",
        range: "8..512:x2",
        quantity: LimitValueType::Count { least: 1, most: MOST_BATCH, too_large: "too large: at most 10000000" },
    },
    LimitProperties {
        kind: LimitKind::Flops,
        label: "flops",
        singular: "flops",
        help: "operations per second of a device; one multiply-add is one operation",
        flag: "--flops",
        field: "flops_per_s",
        example: "10e12",
        few: "10T,20T or 10T..80T:x2",
        range: "10T..80T:x2",
        quantity: LimitValueType::PerSecond,
    },
];

/// Least bare number that is in base units on a screen too.
const BARE: f64 = 1e6;

impl LimitKind {
    /// Number of kinds.
    pub(crate) const COUNT: usize = TABLE.len();

    /// All limits, in display order.
    pub const ALL: [LimitKind; LimitKind::COUNT] = {
        let mut all = [LimitKind::Devices; LimitKind::COUNT];
        let mut at = 0;
        while at < all.len() {
            assert!(TABLE[at].kind as usize == at, "a row stands at the place of its kind");
            all[at] = TABLE[at].kind;
            at += 1;
        }
        all
    };

    /// Limits of pipelines with replicas (Piper's profile).
    pub const PIPELINE: [LimitKind; 4] =
        [LimitKind::Devices, LimitKind::Memory, LimitKind::Microbatches, LimitKind::Bandwidth];

    /// Limits of device placement: accelerators, CPUs, and the accelerators' memory.
    pub const PLACEMENT: [LimitKind; 3] = [LimitKind::Devices, LimitKind::Cpus, LimitKind::Memory];

    /// Limits of device placements whose accelerators are of several kinds, each with a memory of its own.
    pub const OF_KINDS: [LimitKind; 2] = [LimitKind::Devices, LimitKind::Cpus];

    /// Limits of pipelines over machines, planned for a whole batch (layer-wise profiles).
    pub const LAYERS: [LimitKind; 3] = [LimitKind::Devices, LimitKind::Batch, LimitKind::Memory];

    /// Limits of operators that are split over all devices.
    pub const OPERATORS: [LimitKind; 4] =
        [LimitKind::Devices, LimitKind::Flops, LimitKind::Bandwidth, LimitKind::Memory];

    fn row(self) -> &'static LimitProperties {
        &TABLE[self as usize]
    }

    /// Name in the panel and the tables.
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// Noun for one unit of it.
    pub fn singular(self) -> &'static str {
        self.row().singular
    }

    /// Help text of one line.
    pub fn help(self) -> &'static str {
        self.row().help
    }

    /// Flag on the command line.
    pub fn flag(self) -> &'static str {
        self.row().flag
    }

    /// Field in a plan document.
    pub fn field(self) -> &'static str {
        self.row().field
    }

    /// Example of a value.
    pub fn example(self) -> &'static str {
        self.row().example
    }

    /// Example of several values, as a list and as a range.
    pub fn example_of_several(self) -> &'static str {
        self.row().few
    }

    /// Example of a range.
    pub fn example_of_range(self) -> &'static str {
        self.row().range
    }

    /// True if it is a count: its values are whole numbers.
    pub fn is_count(self) -> bool {
        self.counted_in().is_some()
    }

    /// Minimum and maximum of a count; `None` for sizes and rates.
    pub fn counted_in(self) -> Option<(u32, u32)> {
        match self.row().quantity {
            LimitValueType::Count { least, most, .. } => Some((least, most)),
            LimitValueType::Bytes | LimitValueType::BytesPerSecond | LimitValueType::PerSecond => None,
        }
    }

    /// Prints a value of this limit. Infinity means unlimited.
    pub fn format(self, value: f64) -> String {
        match self.row().quantity {
            LimitValueType::Count { .. } => format!("{value}"),
            _ if value == f64::INFINITY => "unlimited".into(),
            LimitValueType::Bytes => units::bytes_exact(value),
            LimitValueType::BytesPerSecond => units::bandwidth_exact(value),
            LimitValueType::PerSecond => units::flops_exact(value),
        }
    }

    /// Value with its noun, for a list of limits: `64 devices`, `1 CPU`, `8 GiB`, `batch 128`.
    pub fn counted(self, value: f64) -> String {
        let text = self.format(value);
        match self {
            LimitKind::Batch => format!("batch {text}"),
            _ if self.is_count() => format!("{text} {}", if value == 1.0 { self.singular() } else { self.label() }),
            _ if value == f64::INFINITY => format!("no {} limit", self.label()),
            _ => text,
        }
    }

    /// Reads a value that replaces another one on a screen. A small bare number has the unit of that one.
    ///
    /// # Errors
    /// [`UnitError`] with an example.
    pub fn parse_beside(self, text: &str, now: f64) -> Result<f64, UnitError> {
        let shown = self.format(now);
        let unit = shown.split_once(' ').map(|(_, unit)| unit).filter(|_| self.has_unit());
        let bare = text.trim().parse::<f64>().is_ok_and(|value| value > 0.0 && value < BARE);
        match unit.filter(|_| bare) {
            Some(unit) => self.parse(&format!("{} {unit}", text.trim())),
            None => self.parse(text),
        }
    }

    /// True if values are shown in bytes, or in bytes per second.
    fn has_unit(self) -> bool {
        matches!(self, LimitKind::Memory | LimitKind::Bandwidth)
    }

    /// Text that [`parses`](LimitKind::parse) back to the same number.
    pub fn exact(self, value: f64) -> String {
        let text = self.format(value);
        if self.parse(&text) == Ok(value) { text } else { format!("{value}") }
    }

    /// Reads a value of this limit. Bare numbers are in base units. Memory may be `unlimited`, which is infinite.
    ///
    /// # Errors
    /// [`UnitError`] with an example.
    pub fn parse(self, text: &str) -> Result<f64, UnitError> {
        match self.row().quantity {
            LimitValueType::Count { least: 0, .. } if text.trim() == "0" => Ok(0.0),
            LimitValueType::Count { most, too_large, .. } => match units::parse_count(text) {
                Ok(value) if value <= most => Ok(f64::from(value)),
                Ok(_) => Err(UnitError::new(text, too_large)),
                Err(_) if units::is_larger(text, f64::from(most)) => Err(UnitError::new(text, too_large)),
                Err(error) => Err(error),
            },
            LimitValueType::Bytes if text.trim() == "unlimited" => Ok(f64::INFINITY),
            LimitValueType::Bytes => units::parse_bytes(text),
            LimitValueType::BytesPerSecond => units::parse_bandwidth(text),
            LimitValueType::PerSecond => units::parse_flops(text),
        }
    }
}
