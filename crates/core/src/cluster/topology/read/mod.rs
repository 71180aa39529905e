//! Readers of topologies, by content: plantui's JSON, a CSV matrix, and the output of `nvidia-smi topo -m`,
//! `p2pBandwidthLatencyTest`, nvbandwidth, `rocm-smi`, `amd-smi` and nccl-tests.
//!
//! Known output of other programs is an error that names the program. In every form, devices that cannot reach one
//! another are an error. Every error has line and repair. `O(file)`, and for a matrix `O(devices²)`, time and memory.

mod csv;
mod json;
mod matrix;
mod nccl_tests;
mod nvbandwidth;
mod nvidia_smi;
mod p2p_test;
mod rocm_smi;

use super::{
    graph::{Topology, TopologyProblem},
    spec::AssumedBandwidths,
};
use crate::source::LoadError;

pub use json::SCHEMA;

/// Form of a topology's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyFormat {
    /// plantui's JSON, schema [`SCHEMA`].
    Json,
    /// Matrix of bandwidths, in GB/s.
    Csv,
    /// Output of `nvidia-smi topo -m`.
    NvidiaSmi,
    /// Output of NVIDIA's sample `p2pBandwidthLatencyTest`.
    P2pTest,
    /// Output of NVIDIA's `nvbandwidth`.
    Nvbandwidth,
    /// Output of `rocm-smi --showtopo` or `amd-smi topology`.
    RocmSmi,
    /// Output of nccl-tests.
    NcclTests,
}

impl TopologyFormat {
    /// Name of the form.
    pub fn name(self) -> &'static str {
        match self {
            TopologyFormat::Json => "topology JSON",
            TopologyFormat::Csv => "matrix of bandwidths",
            TopologyFormat::NvidiaSmi => "nvidia-smi topo -m",
            TopologyFormat::P2pTest => "p2pBandwidthLatencyTest",
            TopologyFormat::Nvbandwidth => "nvbandwidth",
            TopologyFormat::RocmSmi => "rocm-smi or amd-smi",
            TopologyFormat::NcclTests => "nccl-tests",
        }
    }

    /// True if it states bandwidths of links; else it states only their kind.
    pub fn has_bandwidths(self) -> bool {
        !matches!(self, TopologyFormat::NvidiaSmi | TopologyFormat::RocmSmi)
    }

    /// Form of a text, by its content.
    pub fn of(text: &str) -> TopologyFormat {
        let start = text.trim_start();
        if start.starts_with('{') {
            TopologyFormat::Json
        } else if text.contains("P2P=") {
            TopologyFormat::P2pTest
        } else if rocm_smi::is_of(text) {
            TopologyFormat::RocmSmi
        } else if text.lines().any(nvidia_smi::is_head) {
            TopologyFormat::NvidiaSmi
        } else if text.lines().any(|line| nvbandwidth::is_heading(line.trim())) {
            TopologyFormat::Nvbandwidth
        } else if text.lines().any(nccl_tests::is_head) {
            TopologyFormat::NcclTests
        } else {
            TopologyFormat::Csv
        }
    }
}

/// Name of the program that wrote a text, if its output is known and not supported, and the repair.
fn foreign(text: &str) -> Option<(&'static str, &'static str)> {
    let start = text.trim_start();
    if start.starts_with("<?xml") || start.starts_with("<system") || start.starts_with("<graphs") {
        let name = if text.contains("<graphs") { "NCCL's graph XML" } else { "NCCL's topology XML" };
        return Some((name, "give what `nvidia-smi topo -m` prints"));
    }
    // GPU 0: NVIDIA A100 (UUID: ..), and Link 0: 25 GB/s below it.
    let is_link = |line: &str| {
        let line = line.trim();
        line.starts_with("Link ") && line.ends_with("GB/s")
    };
    (start.starts_with("GPU 0:") && text.lines().any(is_link)).then_some((
        "nvidia-smi nvlink -s, which does not state where links lead",
        "give what `nvidia-smi topo -m` prints, with --nvlink-gbps for the speed stated here",
    ))
}

/// Reads a topology. `source` is the file's name in messages, `name` the topology's name if the text has none,
/// `assumed` the bandwidths of links if the text has none. Machines of several hosts are not joined yet.
///
/// # Errors
/// [`LoadError`] with the line and the repair.
pub fn read(text: &str, source: &str, name: &str, assumed: &AssumedBandwidths) -> Result<Topology, LoadError> {
    if text.trim().is_empty() {
        let repair =
            "give a JSON topology, a CSV matrix, or what `nvidia-smi topo -m` or p2pBandwidthLatencyTest prints";
        return Err(LoadError::file(source, "is empty", repair));
    }
    if let Some((program, repair)) = foreign(text) {
        return Err(LoadError::file(source, format!("is {program}, which plantui does not read"), repair));
    }
    let format = TopologyFormat::of(text);
    let mut read = match format {
        TopologyFormat::Json => json::read(text, source, name),
        TopologyFormat::Csv => csv::read(text, source, name),
        TopologyFormat::NvidiaSmi => nvidia_smi::read(text, source, name, assumed),
        TopologyFormat::P2pTest => p2p_test::read(text, source, name),
        TopologyFormat::Nvbandwidth => nvbandwidth::read(text, source, name),
        TopologyFormat::RocmSmi => rocm_smi::read(text, source, name, assumed),
        TopologyFormat::NcclTests => nccl_tests::read(text, source, name),
    }?;
    if matches!(format, TopologyFormat::P2pTest | TopologyFormat::Nvbandwidth | TopologyFormat::NcclTests) {
        read.hardware = crate::cluster::hardware::named_in(text).map(String::from);
    }
    Ok(read)
}

/// Error about the whole topology, as an error about the file.
fn refused(source: &str, problem: &TopologyProblem) -> LoadError {
    let told = problem.to_string();
    let (problem, repair) = told.rsplit_once("; ").unwrap_or((&told, ""));
    LoadError::file(source, problem, repair)
}

/// Returns the topology if all its devices reach one another.
fn joined(topology: Topology, source: &str) -> Result<Topology, LoadError> {
    topology.joined().map_err(|problem| refused(source, &problem))?;
    Ok(topology)
}

/// JSON Schema of plantui's own format.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> crate::schemas::DocumentSchema {
    json::schema()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{named, presets::DGX_1_NVLINKS},
        *,
    };

    fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
        super::read(text, source, name, &AssumedBandwidths::default())
    }

    fn error_text(text: &str) -> String {
        read(text, "t", "t").unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_reads_back() {
        for name in ["dgx-1", "2xdgx-a100", "tpu-v5e-4x4", "pcie3-8", "dapple-c"] {
            let topology = named(name).unwrap();
            let again = read(&topology.json(), "t", "t").unwrap();
            assert_eq!(again.json(), topology.json(), "{name}");
            assert_eq!(again.pair_matrix(), topology.pair_matrix(), "{name}");
            assert_eq!(
                (again.relay, again.memory_bytes, &again.name),
                (topology.relay, topology.memory_bytes, &topology.name)
            );
            assert_eq!((&again.sources, &again.notes), (&topology.sources, &topology.notes));
        }
    }

    #[test]
    fn our_json_by_hand() {
        let text = r#"{"schema": "plantui.topology/1", "memory": "16GB",
            "devices": [{"id": "a", "machine": "x"}, {"id": "b", "machine": "y"}],
            "switches": [{"id": "s"}],
            "links": [{"from": "a", "to": "s", "bandwidth": "25GB/s", "latency": "2us", "duplex": "half"},
                      {"from": "s", "to": "b", "bandwidth": 1e9}]}"#;
        let topology = read(text, "t.json", "t").unwrap();
        assert_eq!((topology.devices(), topology.route(0, 1).bandwidth), (2, 1e9));
        assert_eq!(topology.machines().sizes(), [1, 1]);
        assert_eq!((topology.memory_bytes, topology.route(0, 1).latency_s), (Some(16e9), 2e-6));
        for (wrong, right, says) in [
            ("plantui.topology/1", "plantui.plan/1", "plantui.topology/1"),
            ("\"to\": \"s\"", "\"to\": \"q\"", ":4: links[0].to is `q`, which is not the id of anything"),
            ("25GB/s", "-25GB/s", ":4: links[0].bandwidth"),
            ("1e9", "0", ":5: links[1].bandwidth is 0"),
            ("\"half\"", "\"quarter\"", "full, half or one-way"),
            ("{\"id\": \"s\"}", "{\"id\": \"s\"}, {\"id\": \"s\"}", "two vertices named `s`"),
            ("\"2us\"", "\"soon\"", ":4: links[0].latency"),
            ("\"from\": \"s\", \"to\": \"b\"", "\"from\": \"s\", \"to\": \"a\"", "a cannot reach b"),
            ("\"links\"", "\"lanks\"", "lanks"),
        ] {
            let error = error_text(&text.replace(wrong, right));
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn matrices() {
        let topology = read("# symmetric\n# machines 2x1\n# memory 16GB\n,a,b\na,-,25\nb,25,-\n", "t", "t").unwrap();
        assert_eq!((topology.device_name(1), topology.route(1, 0).bandwidth), ("b", 25e9));
        assert_eq!((topology.machines().sizes(), topology.memory_bytes), (&[1u16, 1][..], Some(16e9)));
        let one_way = read("0 10 12.5GB/s\n20 0 30\n1 2 0\n", "t", "t").unwrap();
        assert_eq!((one_way.route(0, 1).bandwidth, one_way.route(1, 0).bandwidth), (10e9, 20e9));
        assert_eq!(one_way.route(0, 2).bandwidth, 12.5e9);
        for (text, says) in [
            ("0,1,2\n1,0,2\n", "is not square: 2 rows of 3"),
            ("0,1\n1,0,2\n", "t:2: has 3 columns, and 2 before"),
            ("# symmetric\n0,1\n2,0\n", "t:3: row 2, column 1 is 2, and 1 in the other direction"),
            ("0,0\n1,0\n", "t:1: row 1, column 2 is 0"),
            ("0,1\n-4,0\n", "t:2: row 2, column 1 is -4"),
            ("0,x\n1,0\n", "t:1: row 1, column 2 is `x`"),
            ("# machines 3x1\n0,1\n1,0\n", "t:1: names 3 devices"),
            ("hello", "matrix"),
        ] {
            let error = error_text(text);
            assert!(error.contains(says), "{error} / {says}");
        }
    }

    fn topo(cells: impl Fn(usize, usize) -> String, count: usize) -> String {
        let head: Vec<String> = (0..count).map(|d| format!("\u{1b}[4mGPU{d}\u{1b}[0m")).collect();
        let mut text = format!("\t{}\tmlx5_0\tCPU Affinity\tNUMA Affinity\n", head.join("\t"));
        for a in 0..count {
            let row: Vec<String> = (0..count).map(|b| if a == b { " X ".into() } else { cells(a, b) }).collect();
            // The first half of the devices sits at the first processor, and so does the NIC.
            let (level, socket) = if 2 * a < count { ("PHB", 0) } else { ("SYS", 1) };
            text += &format!("GPU{a}\t{}\t{level}\t{}-19\t{socket}\n", row.join("\t"), 10 * socket);
        }
        text + "mlx5_0\tPHB\t X \n\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
    }

    #[test]
    fn nvidia_smi_on_a_dgx_1_is_the_preset() {
        let cells = |a: usize, b: usize| match DGX_1_NVLINKS[a][b] {
            0 => "SYS".to_string(),
            links => format!("NV{links}"),
        };
        let topology = read(&topo(cells, 8), "t", "t").unwrap();
        let preset = named("dgx-1").unwrap().pair_matrix();
        let matrix = topology.pair_matrix();
        for (a, links) in DGX_1_NVLINKS.iter().enumerate() {
            for b in (0..8).filter(|&b| b != a) {
                let expected = if links[b] == 0 { 10e9 } else { preset.at(a, b) };
                assert_eq!(matrix.at(a, b), expected, "{a} {b}");
            }
        }
        // As many links to all as no device has: through a switch, limited by ports.
        let switched = read(&topo(|_, _| "NV12".into(), 8), "t", "t").unwrap();
        assert!(switched.pair_matrix().uniform());
        assert_eq!(switched.route(0, 7).bandwidth, 300e9);
        let tree = read(&topo(|a, b| if a / 2 == b / 2 { "PIX" } else { "SYS" }.into(), 4), "t", "t").unwrap();
        assert_eq!((tree.route(0, 1).bandwidth, tree.route(1, 2).bandwidth), (12e9, 10e9));
        for (cells, says) in [
            (
                (|a, _| if a == 1 { "NV1" } else { "NV2" }.into()) as fn(usize, usize) -> String,
                "in the other direction",
            ),
            (|_, _| "NVX".into(), "t:2: GPU0 to GPU1 is `NVX`"),
        ] {
            let error = error_text(&topo(cells, 3));
            assert!(error.contains(says), "{error}");
        }
        let short = topo(|_, _| "SYS".into(), 3).replace("GPU2\t", "");
        assert!(error_text(&short).contains("GPU2"), "{}", error_text(&short));
    }

    const P2P: &str = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nP2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n\
        Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 740.05   9.93 \n     1   9.96 744.46 \n\
        Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n     0 740.05  48.35 \n     1  48.34 744.46 \n\
        Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 750.05  96.5 \n     1  96.4 754.46 \n\
        P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n     0   1.92   1.85 \n     1   1.86   1.89 \n\n   CPU     0      1 \n     0   4.1   3.9 \n     1   3.9   4.1 \n";

    #[test]
    fn measured_pairs() {
        let topology = read(P2P, "t", "t").unwrap();
        assert_eq!((topology.route(0, 1).bandwidth, topology.route(1, 0).bandwidth), (48.35e9, 48.34e9));
        assert!((topology.route(0, 1).latency_s - 1.85e-6).abs() < 1e-15);
        // Both directions at once no faster than one: they share.
        let half = read(&P2P.replace("96.5", "49.0").replace("96.4", "49.0"), "t", "t").unwrap();
        assert_eq!(half.links().len(), 1);
        assert_eq!(half.links()[0].duplex, super::super::Duplex::Half);
        let disabled = read(&P2P[..P2P.find("Unidirectional P2P=Enabled").unwrap()], "t", "t").unwrap();
        assert_eq!(disabled.route(0, 1).bandwidth, 9.93e9);
        assert!(
            error_text(&P2P.replace("48.35", "0.00")).contains("t:12: device 0 to 1 is 0"),
            "{}",
            error_text(&P2P.replace("48.35", "0.00"))
        );
        assert!(
            error_text(&P2P.replace(" 48.34 744.46", "")).contains("t:13:"),
            "{}",
            error_text(&P2P.replace(" 48.34 744.46", ""))
        );
        assert!(error_text("P2P=Enabled\n").contains("Unidirectional"));
    }
}
