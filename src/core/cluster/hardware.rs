//! Hardware presets: what one accelerator can do and how it is connected, each figure with where it comes from.
//!
//! Figures are the vendor's nominal ones; what a training run attains of the peak is the model FLOP utilisation (MFU),
//! which is an assumption and says so. Links are given per direction and per device.

/// One figure and its source: a data sheet, or the word `assumed` with the reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The value in base units (FLOP/s, bytes, bytes per second) or a share.
    pub value: f64,
    /// Where it comes from.
    pub source: &'static str,
}

/// An accelerator and its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hardware {
    /// What the command line calls it: `a100-80`.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// Peak dense 16-bit matrix FLOP/s.
    pub peak_flops: Figure,
    /// Share of the peak that training attains at tensor degree 1.
    pub mfu: Figure,
    /// Bytes of device memory.
    pub memory_bytes: Figure,
    /// Bytes per second to device memory.
    pub memory_bandwidth: Figure,
    /// Bytes per second, per direction, to the other devices of the node.
    pub intra_node_link: Figure,
    /// Bytes per second, per direction and device, to other nodes.
    pub inter_node_link: Figure,
}

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

const fn figure(value: f64, source: &'static str) -> Figure {
    Figure { value, source }
}

const V100_SHEET: &str = "nominal: NVIDIA V100 data sheet, SXM2 32 GB";
const A100_SHEET: &str = "nominal: NVIDIA A100 data sheet, SXM, without sparsity";
const H100_SHEET: &str = "nominal: NVIDIA H100 data sheet, SXM, without sparsity";
const H200_SHEET: &str = "nominal: NVIDIA H200 data sheet, SXM, without sparsity";
const B200_SHEET: &str = "nominal: NVIDIA HGX B200 data sheet, without sparsity, per device";
const HDR: Figure = figure(25e9, "nominal: one 200 Gb/s HDR InfiniBand port per device");
const NDR: Figure = figure(50e9, "nominal: one 400 Gb/s NDR InfiniBand port per device");
const A100_MFU: Figure = figure(0.50, "fitted: Piper's published BERT-32 profile runs at 50.0% of the peak");
const HOPPER_MFU: Figure = figure(0.45, "assumed: faster arithmetic waits more for memory and links");

const PRESETS: [Hardware; 6] = [
    Hardware {
        id: "v100",
        name: "NVIDIA V100 SXM2 32 GB",
        peak_flops: figure(125e12, V100_SHEET),
        mfu: figure(0.40, "assumed: first generation of tensor cores"),
        memory_bytes: figure(32.0 * GIB, V100_SHEET),
        memory_bandwidth: figure(900e9, V100_SHEET),
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
        intra_node_link: figure(450e9, "nominal: eighteen NVLink 4 links"),
        inter_node_link: NDR,
    },
    Hardware {
        id: "h200",
        name: "NVIDIA H200 SXM5 141 GB",
        peak_flops: figure(989e12, H200_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(141e9, H200_SHEET),
        memory_bandwidth: figure(4800e9, H200_SHEET),
        intra_node_link: figure(450e9, "nominal: eighteen NVLink 4 links"),
        inter_node_link: NDR,
    },
    Hardware {
        id: "b200",
        name: "NVIDIA B200 180 GB",
        peak_flops: figure(2250e12, B200_SHEET),
        mfu: HOPPER_MFU,
        memory_bytes: figure(180e9, B200_SHEET),
        memory_bandwidth: figure(8000e9, B200_SHEET),
        intra_node_link: figure(900e9, "nominal: eighteen NVLink 5 links"),
        inter_node_link: NDR,
    },
];

/// All presets, oldest first.
pub fn all() -> &'static [Hardware] {
    &PRESETS
}

/// The preset with this id, in either case.
pub fn find(id: &str) -> Option<&'static Hardware> {
    all().iter().find(|hardware| hardware.id.eq_ignore_ascii_case(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_id_in_either_case() {
        assert_eq!(find("A100-80").map(|h| h.name), Some("NVIDIA A100 SXM4 80 GB"));
        assert_eq!(find("abacus"), None);
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
