//! Hardware presets: figures of an accelerator and its links, each with its source.
//!
//! Figures are the vendor's nominal ones. The model FLOP utilisation (MFU), the fraction of the peak that a training
//! run attains, is an assumption and marked as one. Links are per direction and per device.

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

const fn figure(value: f64, source: &'static str) -> SourcedFigure {
    SourcedFigure { value, source }
}

const V100_SHEET: &str = "nominal: NVIDIA V100 data sheet, SXM2 32 GB";
const A100_SHEET: &str = "nominal: NVIDIA A100 data sheet, SXM, without sparsity";
const H100_SHEET: &str = "nominal: NVIDIA H100 data sheet, SXM, without sparsity";
const H200_SHEET: &str = "nominal: NVIDIA H200 data sheet, SXM, without sparsity";
const B200_SHEET: &str = "nominal: NVIDIA HGX B200 data sheet, without sparsity, per device";
const HDR: SourcedFigure = figure(25e9, "nominal: one 200 Gb/s HDR InfiniBand port per device");
const NDR: SourcedFigure = figure(50e9, "nominal: one 400 Gb/s NDR InfiniBand port per device");
const A100_MFU: SourcedFigure = figure(0.50, "fitted: Piper's published BERT-32 profile runs at 50.0% of the peak");
const HOPPER_MFU: SourcedFigure = figure(0.45, "assumed: with faster arithmetic memory and links limit more");

const NVLINK_25: SourcedFigure = figure(25e9, "nominal: NVLink 2, 3 and 4, 25 GB/s a link and direction");
const NVLINK_50: SourcedFigure = figure(50e9, "nominal: NVLink 5, 50 GB/s a link and direction");
const GB200_SHEET: &str = "nominal: NVIDIA GB200 NVL72 data sheet, without sparsity, per device";
const B300_SHEET: &str = "nominal: NVIDIA HGX B300 data sheet, without sparsity, per device";
const GB300_SHEET: &str = "nominal: NVIDIA GB300 NVL72 data sheet, without sparsity, per device";
const XDR: SourcedFigure = figure(100e9, "nominal: one 800 Gb/s XDR InfiniBand port per device");

const PRESETS: [Hardware; 9] = [
    Hardware {
        id: "v100",
        name: "NVIDIA V100 SXM2 32 GB",
        peak_flops: figure(125e12, V100_SHEET),
        mfu: figure(0.40, "assumed: first generation of tensor cores"),
        memory_bytes: figure(32.0 * GIB, V100_SHEET),
        memory_bandwidth: figure(900e9, V100_SHEET),
        nvlink: NVLINK_25,
        intra_node_link: figure(150e9, "nominal: six NVLink 2 links"),
        inter_node_link: figure(25e9, "assumed: one 200 Gb/s HDR InfiniBand port per device"),
    },
    Hardware {
        id: "a100-40",
        name: "NVIDIA A100 SXM4 40 GB",
        peak_flops: figure(312e12, A100_SHEET),
        mfu: A100_MFU,
        memory_bytes: figure(40.0 * GIB, A100_SHEET),
        memory_bandwidth: figure(1555e9, A100_SHEET),
        nvlink: NVLINK_25,
        intra_node_link: figure(300e9, "nominal: twelve NVLink 3 links"),
        inter_node_link: HDR,
    },
    Hardware {
        id: "a100-80",
        name: "NVIDIA A100 SXM4 80 GB",
        peak_flops: figure(312e12, A100_SHEET),
        mfu: A100_MFU,
        memory_bytes: figure(80.0 * GIB, A100_SHEET),
        memory_bandwidth: figure(2039e9, A100_SHEET),
        nvlink: NVLINK_25,
        intra_node_link: figure(300e9, "nominal: twelve NVLink 3 links"),
        inter_node_link: HDR,
    },
    Hardware {
        id: "h100",
        name: "NVIDIA H100 SXM5 80 GB",
        peak_flops: figure(989e12, H100_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(80.0 * GIB, H100_SHEET),
        memory_bandwidth: figure(3350e9, H100_SHEET),
        nvlink: NVLINK_25,
        intra_node_link: figure(450e9, "nominal: eighteen NVLink 4 links"),
        inter_node_link: NDR,
    },
    Hardware {
        id: "h200",
        name: "NVIDIA H200 SXM5 141 GB",
        peak_flops: figure(989e12, H200_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(141.0 * GIB, H200_SHEET),
        memory_bandwidth: figure(4800e9, H200_SHEET),
        nvlink: NVLINK_25,
        intra_node_link: figure(450e9, "nominal: eighteen NVLink 4 links"),
        inter_node_link: NDR,
    },
    Hardware {
        id: "b200",
        name: "NVIDIA B200 180 GB",
        peak_flops: figure(2250e12, B200_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(180.0 * GIB, B200_SHEET),
        memory_bandwidth: figure(8000e9, B200_SHEET),
        nvlink: NVLINK_50,
        intra_node_link: figure(900e9, "nominal: eighteen NVLink 5 links"),
        inter_node_link: NDR,
    },
    Hardware {
        id: "gb200",
        name: "NVIDIA GB200 186 GB",
        peak_flops: figure(2500e12, GB200_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(186.0 * GIB, GB200_SHEET),
        memory_bandwidth: figure(8000e9, GB200_SHEET),
        nvlink: NVLINK_50,
        intra_node_link: figure(900e9, "nominal: eighteen NVLink 5 links"),
        inter_node_link: NDR,
    },
    Hardware {
        id: "b300",
        name: "NVIDIA B300 270 GB",
        peak_flops: figure(2250e12, B300_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(270.0 * GIB, B300_SHEET),
        memory_bandwidth: figure(8000e9, B300_SHEET),
        nvlink: NVLINK_50,
        intra_node_link: figure(900e9, "nominal: eighteen NVLink 5 links"),
        inter_node_link: XDR,
    },
    Hardware {
        id: "gb300",
        name: "NVIDIA GB300 279 GB",
        peak_flops: figure(2500e12, GB300_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(279.0 * GIB, GB300_SHEET),
        memory_bandwidth: figure(8000e9, GB300_SHEET),
        nvlink: NVLINK_50,
        intra_node_link: figure(900e9, "nominal: eighteen NVLink 5 links"),
        inter_node_link: XDR,
    },
];

/// All presets, oldest first.
pub fn all() -> &'static [Hardware] {
    &PRESETS
}

/// Preset with this id, in either case. `a100` is the one with 80 GiB.
pub fn find(id: &str) -> Option<&'static Hardware> {
    let id = if id.eq_ignore_ascii_case("a100") { "a100-80" } else { id };
    all().iter().find(|hardware| hardware.id.eq_ignore_ascii_case(id))
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
        assert_eq!(find("abacus"), None);
        assert_eq!(named_in("#  Rank  0 on n1 device 0 [0x1b] NVIDIA H100 80GB HBM3\n"), Some("h100"));
        assert_eq!(named_in("Device: 0, NVIDIA A100-SXM4-40GB, pciBusID: 7"), Some("a100-40"));
        assert_eq!(named_in("Device 0: NVIDIA H100 PCIe"), None);
        for hardware in all() {
            assert_eq!(find(hardware.id), Some(hardware));
        }
    }

    #[test]
    fn every_figure_says_where_it_comes_from() {
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
}
