//! Machines that `--topology` supports by name, with the sources of their figures.
//!
//! Bandwidths are nominal and per direction unless the source says *measured*. Devices on an NVLink switch are limited
//! by their ports, never by pairs. Latencies are those of TACCL's profiles (Shah et al., NSDI 2023): 0.3 µs in a
//! machine and 2.6 µs between machines. For PCIe and for links between TPUs, 1 µs per pair is assumed.

use super::{
    graph::{Duplex, FigureSource, Link, VertexKind},
    sketch::TopologyBuilder,
};
use crate::cluster::hardware;

/// Bytes per second in a gigabyte per second.
pub(super) const GB: f64 = 1e9;
/// Latency between two devices on NVLink in seconds, half of it on each side of a switch.
pub(super) const NVLINK_S: f64 = 0.3e-6;
/// Latency of one link of a PCIe path, seconds.
pub(super) const PCIE_S: f64 = 0.5e-6;
/// Latency between two TPUs, seconds.
const TORUS_S: f64 = 1e-6;

/// Machine by name.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Id for `--topology`.
    pub id: &'static str,
    /// Description.
    pub title: &'static str,
    /// Stated figures and their sources.
    pub sources: &'static [(&'static str, &'static str)],
    /// Number of devices of one machine.
    pub devices: u32,
    /// Wiring of one machine: adds its vertices and links, and returns the ports of its NICs.
    pub(super) wire: fn(&mut TopologyBuilder) -> Ports,
    /// Hardware preset of its devices; empty if there is none.
    hardware: &'static str,
    /// Bytes of memory per device; 0 if the hardware preset gives it.
    memory_bytes: f64,
}

/// NICs of a machine: their network, the vertices that each is attached to, and the link to them.
pub(super) struct Ports {
    pub(super) network: &'static str,
    pub(super) nics: Vec<Vec<u32>>,
    /// PCIe link from a vertex to its NIC: bandwidth and type.
    pub(super) plug: (f64, &'static str),
}

impl Preset {
    /// Bytes of memory per device.
    pub fn memory_bytes(&self) -> f64 {
        let sheet = hardware::find(self.hardware).filter(|_| self.memory_bytes == 0.0);
        sheet.map_or(self.memory_bytes, |hardware| hardware.memory_bytes.value)
    }

    /// Hardware preset of its devices, if there is one.
    pub fn hardware(&self) -> Option<&'static str> {
        Some(self.hardware).filter(|id| !id.is_empty())
    }

    /// Sources of its figures.
    pub fn sources(&self) -> Vec<FigureSource> {
        let source = |&(figure, source): &(&str, &str)| FigureSource { figure: figure.into(), source: source.into() };
        self.sources.iter().map(source).collect()
    }
}

/// Number of NVLinks between the V100 of a DGX-1, in NVIDIA's numbering.
pub(super) const DGX_1_NVLINKS: [[u8; 8]; 8] = [
    [0, 1, 1, 2, 2, 0, 0, 0],
    [1, 0, 2, 1, 0, 2, 0, 0],
    [1, 2, 0, 2, 0, 0, 1, 0],
    [2, 1, 2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 1, 1, 2],
    [0, 2, 0, 0, 1, 0, 2, 1],
    [0, 0, 1, 0, 1, 2, 0, 2],
    [0, 0, 0, 1, 2, 1, 2, 0],
];

const DGX_1_PCIE: (&str, &str) = (
    "PCIe 3 x16 12 GB/s, QPI between sockets 6 GB/s (Broadwell): the route of pairs without NVLink",
    "NVIDIA/nccl, src/graph/topo.h (PCI_BW, QPI_BW)",
);

/// All machines, oldest first.
pub static PRESETS: [Preset; 11] = [
    Preset {
        id: "dgx-1-p100",
        title: "NVIDIA DGX-1, 8 P100 in a hybrid cube mesh of NVLink 1",
        sources: &[
            ("NVLink 1: 20 GB/s a link, 4 links a device, one to a neighbour", "Dell HPC guide (measured 18.3 of 20)"),
            DGX_1_PCIE,
            ("4 InfiniBand EDR ports, 12.5 GB/s each, one for two devices", "unit conversion of 100 Gb/s"),
        ],
        devices: 8,
        wire: |sketch| dgx_1(sketch, 20.0 * GB, "NVLink 1", true),
        hardware: "",
        memory_bytes: 16e9,
    },
    Preset {
        id: "dgx-1",
        title: "NVIDIA DGX-1, 8 V100 in a hybrid cube mesh of NVLink 2",
        sources: &[
            ("pairs with one and with two NVLinks", "`nvidia-smi topo -m` in microsoft/sccl, tests/test_topologies.py"),
            ("NVLink 2: 25 GB/s a link", "Dell HPC guide (measured 47.9 of 50 on two links)"),
            DGX_1_PCIE,
            ("4 InfiniBand EDR ports, 12.5 GB/s each, one for two devices", "unit conversion of 100 Gb/s"),
        ],
        devices: 8,
        wire: |sketch| dgx_1(sketch, 25.0 * GB, "NVLink 2", false),
        hardware: "v100",
        memory_bytes: 16e9,
    },
    Preset {
        id: "v100-4",
        title: "4 V100 SXM2, each joined to each by two NVLink 2",
        sources: &[("two links a pair, 50 GB/s (measured 47.9)", "Dell HPC guide, PowerEdge C4140")],
        devices: 4,
        wire: |sketch| {
            let devices = sketch.devices(4);
            for a in 0..4 {
                for b in a + 1..4 {
                    sketch.join(devices[a], devices[b], 50.0 * GB, NVLINK_S, Duplex::Full, "2 x NVLink 2");
                }
            }
            Ports { network: "ib-edr", nics: vec![devices], plug: (12.0 * GB, "PCIe 3 x16") }
        },
        hardware: "v100",
        memory_bytes: 16e9,
    },
    Preset {
        id: "dgx-2",
        title: "NVIDIA DGX-2, 16 V100 on NVSwitch",
        sources: &[
            (
                "6 NVLink 2 a device to the switches, 150 GB/s a port",
                "microsoft/taccl, topo-dgx2-1MB.json (measured 125)",
            ),
            ("every pair has all six links", "NVIDIA/nccl-tests, issue 78 (NV6 between all)"),
            ("8 InfiniBand EDR ports, 12.5 GB/s each, one for two devices", "assumed: from memory of the data sheet"),
        ],
        devices: 16,
        wire: |sketch| {
            let devices = switched(sketch, 16, 150.0 * GB, "6 x NVLink 2");
            let pairs = devices.chunks(2).map(<[u32]>::to_vec).collect();
            Ports { network: "ib-edr", nics: pairs, plug: (12.0 * GB, "PCIe 3 x16") }
        },
        hardware: "v100",
        memory_bytes: 0.0,
    },
    Preset {
        id: "dgx-a100",
        title: "NVIDIA DGX A100, 8 A100 on NVSwitch",
        sources: &[
            ("12 NVLink 3 a device, 300 GB/s a port", "NVIDIA/nccl, issue 1505 (NV12); microsoft/sccl, nvidia.py"),
            ("measured: 195 GB/s send and receive", "li-plus/playground, nccl.md"),
            ("8 InfiniBand HDR ports, 25 GB/s each, one a device, rails", "unit conversion; the count is from memory"),
        ],
        devices: 8,
        wire: |sketch| boxed(sketch, 300.0 * GB, "12 x NVLink 3", "ib-hdr", (31.5 * GB, "PCIe 4 x16")),
        hardware: "a100-80",
        memory_bytes: 0.0,
    },
    Preset {
        id: "dgx-h100",
        title: "NVIDIA DGX H100, 8 H100 on NVSwitch",
        sources: &[
            ("18 NVLink 4 a device, 25 GB/s a link and direction, 450 GB/s a port", "open-mpi/hwloc, issue 574"),
            ("measured: 371 to 377 GB/s writes between devices", "NVIDIA/nccl, issue 1264"),
            (
                "8 InfiniBand NDR ports (ConnectX-7), 50 GB/s each, one a device, rails",
                "NVIDIA DGX H100 guide, page 19",
            ),
        ],
        devices: 8,
        wire: |sketch| boxed(sketch, 450.0 * GB, "18 x NVLink 4", "ib-ndr", (PCIE_5, "PCIe 5 x16")),
        hardware: "h100",
        memory_bytes: 0.0,
    },
    Preset {
        id: "dgx-h200",
        title: "NVIDIA DGX H200, 8 H200 on NVSwitch",
        sources: &[("links as in a DGX H100", "NVIDIA DGX H100/H200 guide")],
        devices: 8,
        wire: |sketch| boxed(sketch, 450.0 * GB, "18 x NVLink 4", "ib-ndr", (PCIE_5, "PCIe 5 x16")),
        hardware: "h200",
        memory_bytes: 0.0,
    },
    Preset {
        id: "hgx-b200",
        title: "NVIDIA HGX B200, 8 B200 on NVSwitch",
        sources: &[
            ("18 NVLink 5 a device, 50 GB/s a link, 900 GB/s a port", "NV18 in public dumps of `nvidia-smi topo -m`"),
            ("NCCL assumes 40.1 GB/s a link", "NVIDIA/nccl, src/graph/topo.h"),
            ("8 InfiniBand NDR ports, 50 GB/s each, one a device, rails", "assumed as in a DGX H100"),
        ],
        devices: 8,
        wire: |sketch| boxed(sketch, 900.0 * GB, "18 x NVLink 5", "ib-ndr", (PCIE_5, "PCIe 5 x16")),
        hardware: "b200",
        memory_bytes: 0.0,
    },
    Preset {
        id: "pcie3-8",
        title: "8 devices on PCIe 3 without direct access, every transfer through the host",
        sources: &[
            (
                "measured: 11.4 GB/s between devices of different pairs, the same both ways at once (half duplex)",
                "public micro-benchmark of 8 TITAN RTX (index entry 1424345504)",
            ),
            ("devices of one pair (0 and 1, 2 and 3, ..) measured 9.9 GB/s, taken as 11.4", "the same"),
        ],
        devices: 8,
        wire: |sketch| hosted(sketch, 8, 11.4 * GB, Duplex::Half, "PCIe 3 x16"),
        hardware: "",
        memory_bytes: 24e9,
    },
    Preset {
        id: "pcie4-6",
        title: "6 devices on PCIe 4, transfers through the host",
        sources: &[(
            "measured: 20 to 22 GB/s through the host, 9.7 to 10.2 with direct access",
            "NVIDIA/nccl, issue 814",
        )],
        devices: 6,
        wire: |sketch| hosted(sketch, 6, 20.0 * GB, Duplex::Full, "PCIe 4 x16"),
        hardware: "",
        memory_bytes: 24e9,
    },
    Preset {
        id: "a6000-2",
        title: "2 RTX A6000 on an NVLink bridge",
        sources: &[("4 links of 14.06 GB/s, 56.25 GB/s each way", "siboehm/bench (measured 52.2)")],
        devices: 2,
        wire: |sketch| {
            let devices = sketch.devices(2);
            sketch.join(devices[0], devices[1], 56.25 * GB, NVLINK_S, Duplex::Full, "4 x NVLink 3");
            Ports { network: "eth-10g", nics: vec![devices], plug: (20.0 * GB, "PCIe 4 x16") }
        },
        hardware: "",
        memory_bytes: 48e9,
    },
];

/// Bytes per second of PCIe 5 x16, nominal.
const PCIE_5: f64 = 63.0 * GB;

fn dgx_1(sketch: &mut TopologyBuilder, link: f64, what: &str, single: bool) -> Ports {
    let devices = sketch.devices(8);
    for a in 0..8 {
        for b in a + 1..8 {
            let links = if single { DGX_1_NVLINKS[a][b].min(1) } else { DGX_1_NVLINKS[a][b] };
            if links > 0 {
                let what = format!("{links} x {what}");
                sketch.join(devices[a], devices[b], f64::from(links) * link, NVLINK_S, Duplex::Full, &what);
            }
        }
    }
    let hosts: Vec<u32> = (0..2).map(|socket| sketch.vertex(VertexKind::Host, &format!("cpu{socket}"))).collect();
    sketch.join(hosts[0], hosts[1], 6.0 * GB, PCIE_S, Duplex::Full, "QPI");
    let switches: Vec<u32> = (0..4)
        .map(|number| {
            let switch = sketch.vertex(VertexKind::Switch, &format!("pcie{number}"));
            sketch.join(switch, hosts[number / 2], 12.0 * GB, PCIE_S, Duplex::Full, "PCIe 3 x16");
            for &device in &devices[2 * number..2 * number + 2] {
                sketch.join(device, switch, 12.0 * GB, PCIE_S, Duplex::Full, "PCIe 3 x16");
            }
            switch
        })
        .collect();
    Ports { network: "ib-edr", nics: switches.into_iter().map(|v| vec![v]).collect(), plug: (12.0 * GB, "PCIe 3 x16") }
}

/// Adds devices around one switch, which joins any two at the speed of their ports.
fn switched(sketch: &mut TopologyBuilder, devices: u32, port: f64, what: &str) -> Vec<u32> {
    let devices = sketch.devices(devices);
    let switch = sketch.vertex(VertexKind::Switch, "nvswitch");
    for &device in &devices {
        sketch.join(device, switch, port, NVLINK_S / 2.0, Duplex::Full, what);
    }
    devices
}

/// Adds eight devices around a switch, with one NIC each.
fn boxed(
    sketch: &mut TopologyBuilder,
    port: f64,
    what: &str,
    network: &'static str,
    plug: (f64, &'static str),
) -> Ports {
    let devices = switched(sketch, 8, port, what);
    Ports { network, nics: devices.into_iter().map(|device| vec![device]).collect(), plug }
}

/// Adds devices that reach one another only through the host.
fn hosted(sketch: &mut TopologyBuilder, devices: u32, bandwidth: f64, duplex: Duplex, what: &'static str) -> Ports {
    let devices = sketch.devices(devices);
    let host = sketch.vertex(VertexKind::Host, "cpu0");
    for &device in &devices {
        sketch.join(device, host, bandwidth, PCIE_S, duplex, what);
    }
    Ports { network: "eth-10g", nics: vec![vec![host]], plug: (bandwidth, what) }
}

/// Kind of torus of TPUs.
#[derive(Debug, Clone, Copy)]
pub struct Torus {
    /// Id for `--topology`, before the shape: `tpu-v4-4x4x4`.
    pub id: &'static str,
    /// Description.
    pub title: &'static str,
    /// Number of axes.
    pub axes: usize,
    /// Bytes per second of a link, per direction.
    pub link: f64,
    /// An axis has a link back from its last device to its first if its length is a multiple of this.
    pub wraps_at: u32,
    /// Bytes of memory per device.
    pub memory_bytes: f64,
    /// Stated figure and its source.
    pub source: (&'static str, &'static str),
    /// Example of a shape.
    pub example: &'static str,
}

/// All kinds of torus.
pub static TORI: [Torus; 4] = [
    Torus {
        id: "tpu-v4",
        title: "TPU v4, a torus of three axes",
        axes: 3,
        link: 50.0 * GB,
        wraps_at: 4,
        memory_bytes: 32e9,
        source: ("6 links of 50 GB/s each way", "glennklockwood.com, TPUv4"),
        example: "tpu-v4-4x4x4",
    },
    Torus {
        id: "tpu-v5p",
        title: "TPU v5p, a torus of three axes",
        axes: 3,
        link: 100.0 * GB,
        wraps_at: 4,
        memory_bytes: 95e9,
        source: ("1200 GB/s both ways a device, 6 links, so 100 GB/s each way", "Google Cloud, TPU v5p"),
        example: "tpu-v5p-4x4x4",
    },
    Torus {
        id: "tpu-v5e",
        title: "TPU v5e, a torus of two axes",
        axes: 2,
        link: 50.0 * GB,
        wraps_at: 16,
        memory_bytes: 16e9,
        source: (
            "1600 Gb/s a device, 4 links: 50 GB/s, taken as each way",
            "Google Cloud, TPU v5e (direction not stated)",
        ),
        example: "tpu-v5e-4x4",
    },
    Torus {
        id: "tpu-v6e",
        title: "TPU v6e, a torus of two axes",
        axes: 2,
        link: 100.0 * GB,
        wraps_at: 16,
        memory_bytes: 32e9,
        source: (
            "3200 Gb/s a device, 4 links: 100 GB/s, taken as each way",
            "Google Cloud, TPU v6e (direction not stated)",
        ),
        example: "tpu-v6e-4x4",
    },
];

impl Torus {
    /// Adds the devices of a torus of this shape. The last axis varies fastest.
    pub(super) fn wire(&self, sketch: &mut TopologyBuilder, shape: &[u32]) {
        let devices = sketch.devices(shape.iter().product());
        let mut stride = devices.len();
        for &length in shape {
            stride /= length as usize;
            for (number, &device) in devices.iter().enumerate() {
                let place = (number / stride) as u32 % length;
                let next = if place + 1 < length {
                    number + stride
                } else if length.is_multiple_of(self.wraps_at) && length > 2 {
                    number - (length as usize - 1) * stride
                } else {
                    continue;
                };
                sketch.link(Link {
                    from: device,
                    to: devices[next],
                    bandwidth: self.link,
                    latency_s: TORUS_S,
                    duplex: Duplex::Full,
                    what: "ICI".into(),
                });
            }
        }
    }
}
