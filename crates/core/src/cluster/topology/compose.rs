//! Topologies by name: `dgx-1`, `4xdgx-h100`, `2xdgx-1+eth-25g`, `tpu-v4-4x4x4`.
//!
//! Machines are joined by their NICs: NICs at the same position share a leaf switch (a rail). If there are several
//! rails, a spine joins the leaves at full bandwidth, so that every device reaches every other. `+NETWORK` replaces the
//! NICs by one per machine, which all its devices share.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{
    graph::{Duplex, FigureSource, Link, Topology, TopologyProblem, VertexKind},
    presets::{GB, NVLINK_S, PCIE_S, PRESETS, Ports, Preset, TORI},
    published::{self, PublishedCluster},
    sketch::{NETWORK_S, TopologyBuilder},
    spec::{AssumedBandwidths, Spec},
};
use crate::{
    cluster::machines::{MOST_MACHINES, Machines},
    text::printable,
};

/// Network between machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineNetwork {
    /// Id after the `+`.
    pub id: &'static str,
    /// Description.
    pub title: &'static str,
    /// Bytes per second of a port, per direction.
    pub bandwidth: f64,
}

/// All networks, by speed.
pub static NETWORKS: [MachineNetwork; 8] = [
    MachineNetwork { id: "eth-1g", title: "Ethernet, 1 Gb/s", bandwidth: 0.125 * GB },
    MachineNetwork { id: "eth-10g", title: "Ethernet, 10 Gb/s", bandwidth: 1.25 * GB },
    MachineNetwork { id: "eth-25g", title: "Ethernet, 25 Gb/s", bandwidth: 3.125 * GB },
    MachineNetwork { id: "eth-100g", title: "Ethernet, 100 Gb/s", bandwidth: 12.5 * GB },
    MachineNetwork { id: "ib-edr", title: "InfiniBand EDR, 100 Gb/s", bandwidth: 12.5 * GB },
    MachineNetwork { id: "ib-hdr", title: "InfiniBand HDR, 200 Gb/s", bandwidth: 25.0 * GB },
    MachineNetwork { id: "ib-ndr", title: "InfiniBand NDR, 400 Gb/s", bandwidth: 50.0 * GB },
    MachineNetwork { id: "ib-xdr", title: "InfiniBand XDR, 800 Gb/s", bandwidth: 100.0 * GB },
];

const NETWORK_SOURCE: &str = "unit conversion of the line rate";

/// Reason why a name is not a topology.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NameError {
    /// No preset has this name.
    #[error(
        "there is no topology `{name}`, neither a file nor a preset; presets: {known}, and shapes such as \
        tpu-v4-4x4x4; 2xdgx-a100 is two machines, 2xdgx-1+eth-25g two machines with one NIC each"
    )]
    Unknown {
        /// Name as written.
        name: String,
        /// Known presets.
        known: String,
    },
    /// No network has this name.
    #[error("there is no network `{name}`; networks: {known}")]
    Network {
        /// Name as written.
        name: String,
        /// Known networks.
        known: String,
    },
    /// Invalid number of machines.
    #[error(
        "{0} machines are not supported; write from 1 to {MOST_MACHINES}, or name --hardware and --fabric, which take any number of devices"
    )]
    Machines(String),
    /// Invalid shape of a torus.
    #[error("`{name}` is not a shape of {id}, which has {axes} axes: write {example}")]
    Shape {
        /// Shape as written.
        name: String,
        /// Kind of torus.
        id: &'static str,
        /// Number of axes.
        axes: usize,
        /// Example of a shape.
        example: &'static str,
    },
    /// The topology is complete and cannot be extended.
    #[error("{0} states its machines and its network: leave the number of machines and the network out")]
    Alone(String),
    /// The links of a preset are known.
    #[error("`{0}` is a preset with known links; nvlink, pcie and nic are for tables without bandwidths")]
    Stated(String),
    /// The speed of the network between machines is not stated.
    #[error("does not state the speed of the NICs between its machines; write {0}+ib-ndr, or another network of \
        {known}", known = NETWORKS.map(|network| network.id).join(", "))]
    NoNetwork(String),
    /// The topology is too large.
    #[error("`{name}` {problem}")]
    Large {
        /// Name as written.
        name: String,
        /// Problem.
        problem: TopologyProblem,
    },
}

/// Topology with this name, in either case.
///
/// # Errors
/// [`NameError`] with an example.
pub fn named(text: &str) -> Result<Topology, NameError> {
    let lower = text.trim().to_ascii_lowercase();
    let Spec { machines, base, network, assumed } = Spec::parse(&lower, &|_| false);
    if assumed != AssumedBandwidths::default() {
        return Err(NameError::Stated(base));
    }
    let alone = machines.is_none() && network.is_none();
    if let Some(cluster) = published::find_published(&base) {
        return if alone { Ok(published_cluster(cluster)) } else { Err(NameError::Alone(cluster.id.into())) };
    }
    let large = |problem| NameError::Large { name: printable(text), problem };
    for torus in &TORI {
        let Some(shape) = base.strip_prefix(torus.id).and_then(|rest| rest.strip_prefix('-')) else { continue };
        if !alone {
            return Err(NameError::Alone(base.clone()));
        }
        let lengths: Option<Vec<u32>> = shape.split('x').map(|n| n.parse().ok().filter(|n| *n > 0)).collect();
        let total = |lengths: &[u32]| lengths.iter().try_fold(1u32, |all, &n| all.checked_mul(n));
        let lengths = lengths.filter(|lengths| lengths.len() == torus.axes);
        let Some((lengths, devices)) = lengths.and_then(|lengths| total(&lengths).map(|all| (lengths, all))) else {
            let (id, axes, example) = (torus.id, torus.axes, torus.example);
            return Err(NameError::Shape { name: printable(shape), id, axes, example });
        };
        if devices > crate::cluster::MOST_LISTED_DEVICES {
            return Err(large(TopologyProblem::TooManyDevices(devices as usize)));
        }
        let mut sketch = TopologyBuilder::default();
        torus.wire(&mut sketch, &lengths);
        let mut topology = sketch.topology(&lower).map_err(large)?;
        topology.relay = true;
        topology.title = format!("{}, {shape}", torus.title);
        topology.memory_bytes = Some(torus.memory_bytes);
        topology.sources = vec![FigureSource { figure: torus.source.0.into(), source: torus.source.1.into() }];
        topology.notes = vec![format!(
            "an axis wraps around if its length is a multiple of {}; devices forward data",
            torus.wraps_at
        )];
        return Ok(topology);
    }
    let preset = PRESETS
        .iter()
        .find(|preset| preset.id == base)
        .ok_or_else(|| NameError::Unknown { name: printable(text), known: preset_ids() })?;
    let machines = machines.as_deref().map_or(Ok(1), counted)?;
    let network = network.as_deref().map(network_of).transpose()?;
    composed(&lower, preset, machines, network).map_err(large)
}

/// Reads a number of machines.
fn counted(text: &str) -> Result<usize, NameError> {
    let count = text.parse().ok().filter(|count| (1..=MOST_MACHINES).contains(count));
    count.ok_or_else(|| NameError::Machines(text.into()))
}

fn network_of(id: &str) -> Result<&'static MachineNetwork, NameError> {
    NETWORKS
        .iter()
        .find(|network| network.id.eq_ignore_ascii_case(id))
        .ok_or_else(|| NameError::Network { name: printable(id), known: NETWORKS.map(|network| network.id).join(", ") })
}

/// Ids of all presets, as a list.
fn preset_ids() -> String {
    let clusters = published::PUBLISHED.iter().map(|cluster| cluster.id);
    PRESETS.iter().map(|preset| preset.id).chain(clusters).collect::<Vec<_>>().join(", ")
}

fn composed(
    name: &str,
    preset: &Preset,
    machines: usize,
    network: Option<&MachineNetwork>,
) -> Result<Topology, TopologyProblem> {
    let mut sketch = TopologyBuilder::new(machines > 1);
    // NICs of the machines by rail.
    let mut rails: Vec<Vec<u32>> = vec![];
    let mut own = "";
    for machine in 0..machines as u32 {
        sketch.enter(Some(machine));
        let Ports { network: brought, mut nics, plug } = (preset.wire)(&mut sketch);
        own = brought;
        if machines == 1 {
            break;
        }
        if network.is_some() {
            // The one NIC is attached to the host bridge. Without a bridge it is attached to all devices, whose own
            // links are wider.
            nics = vec![sketch.host().map_or_else(|| nics.concat(), |host| vec![host])];
        }
        rails.resize(nics.len(), vec![]);
        for (rail, plugged) in nics.iter().enumerate() {
            let nic = sketch.vertex(VertexKind::Nic, &format!("nic{rail}"));
            for &vertex in plugged {
                sketch.join(vertex, nic, plug.0, PCIE_S, Duplex::Full, plug.1);
            }
            rails[rail].push(nic);
        }
    }
    sketch.enter(None);
    let network = network.or_else(|| NETWORKS.iter().find(|network| network.id == own));
    let network = network.unwrap_or(&NETWORKS[0]);
    sketch.network(&rails, network.bandwidth, network.title);
    let mut topology = sketch.topology(name)?;
    topology.memory_bytes = Some(preset.memory_bytes());
    topology.hardware = preset.hardware().map(String::from);
    topology.alike = true;
    topology.sources = preset.sources();
    topology.title = match machines {
        1 => preset.title.into(),
        _ => format!("{machines} x {}, {} between them", preset.title, network.title),
    };
    if machines > 1 {
        let figure = format!("{}: {}", network.title, crate::units::bandwidth_exact(network.bandwidth));
        topology.sources.push(FigureSource { figure, source: NETWORK_SOURCE.into() });
    }
    if rails.len() > 1 {
        topology
            .notes
            .push("rails: NICs of the same index share a leaf switch; a spine joins the leaves at full speed".into());
    }
    Ok(topology)
}

/// Joins copies of the machines of a topology by a network, at the NICs that it lists, else at one NIC per machine.
///
/// # Errors
/// [`NameError`] with an example.
pub fn joined_copies(spec: &Spec, read: &Topology) -> Result<Topology, NameError> {
    let copies = spec.machines.as_deref().map_or(Ok(1), counted)?;
    let network = spec.network.as_deref().map(network_of).transpose()?;
    let own = read.machines().sizes().len();
    if own > 1 && read.apart().is_none() {
        return Err(NameError::Alone(spec.base.clone()));
    }
    let machines = copies * own;
    if machines == 1 {
        return Ok(read.clone());
    }
    if machines > MOST_MACHINES {
        return Err(NameError::Machines(machines.to_string()));
    }
    let mut sketch = TopologyBuilder::new(true);
    // NICs of the machines by rail.
    let mut rails: Vec<Vec<u32>> = vec![];
    let mut listed = true;
    let mut port = network.map(|network| network.bandwidth).or(spec.assumed.nic);
    for machine in 0..machines {
        sketch.enter(Some(machine as u32));
        let within = |vertex: u32| own == 1 || read.vertices()[vertex as usize].machine == Some((machine % own) as u32);
        let mut places: BTreeMap<u32, u32> = BTreeMap::new();
        let of_kind = |kind: VertexKind| {
            (0..read.vertices().len() as u32).filter(move |&v| read.vertices()[v as usize].kind == kind)
        };
        for vertex in of_kind(VertexKind::Device).filter(|&vertex| within(vertex)) {
            places.insert(vertex, sketch.devices(1)[0]);
        }
        for kind in [VertexKind::Switch, VertexKind::Host, VertexKind::Nic] {
            for vertex in of_kind(kind).filter(|&vertex| within(vertex)) {
                let name = &read.vertices()[vertex as usize].name;
                let bare = if own > 1 { name.split_once('.').map_or(&**name, |(_, bare)| bare) } else { name };
                places.insert(vertex, sketch.vertex(kind, bare));
            }
        }
        for link in read.links() {
            if let (Some(&from), Some(&to)) = (places.get(&link.from), places.get(&link.to)) {
                sketch.link(Link { from, to, ..link.clone() });
            }
        }
        let mut nics: Vec<u32> = of_kind(VertexKind::Nic).filter_map(|nic| places.get(&nic).copied()).collect();
        if nics.is_empty() {
            listed = false;
            let nic = sketch.vertex(VertexKind::Nic, "nic0");
            let devices = of_kind(VertexKind::Device).filter_map(|device| places.get(&device).copied());
            let plugged: Vec<u32> = sketch.host().map_or_else(|| devices.collect(), |host| vec![host]);
            let Some(port) = port else { return Err(NameError::NoNetwork(spec.to_string())) };
            plugged.iter().for_each(|&vertex| sketch.join(vertex, nic, port, PCIE_S, Duplex::Full, "PCIe"));
            nics = vec![nic];
        }
        rails.resize(rails.len().max(nics.len()), vec![]);
        rails.iter_mut().zip(nics).for_each(|(rail, nic)| rail.push(nic));
    }
    let Some(bandwidth) = port.take() else { return Err(NameError::NoNetwork(spec.to_string())) };
    let title = network.map_or("network", |network| network.title);
    sketch.enter(None);
    sketch.network(&rails, bandwidth, title);
    let stem = |path: &str| {
        std::path::Path::new(path).file_stem().map_or(path.into(), |stem| stem.to_string_lossy().into_owned())
    };
    let name = Spec { base: stem(&spec.base), assumed: AssumedBandwidths::default(), ..spec.clone() }.to_string();
    let large = |problem| NameError::Large { name: name.clone(), problem };
    let mut topology = sketch.topology(&name).map_err(large)?;
    topology.memory_bytes = read.memory_bytes;
    topology.hardware.clone_from(&read.hardware);
    topology.relay = read.relay;
    topology.alike = own == 1;
    topology.sources.clone_from(&read.sources);
    topology.notes.clone_from(&read.notes);
    topology.title = format!("{machines} machines of {}, {title} between them", read.name);
    let rate = crate::units::bandwidth_exact(bandwidth);
    let from = if network.is_some() { "the line rate" } else { "as the hardware has them" };
    topology.notes.push(match listed {
        true => {
            format!("the listed NICs join the machines, {rate} each ({from}); NICs of the same index share a switch")
        }
        false => format!("no NIC is listed: one of {rate} joins each machine ({from}), which all its devices share"),
    });
    Ok(topology)
}

/// Machines with one NIC each and a switch that joins devices at the speed of their ports. Empty `machines` count as
/// one machine with one device.
pub fn of_machines(machines: &Machines, in_machine: f64, between: f64) -> Topology {
    let one = Machines::one(1);
    let machines = if machines.is_empty() { &one } else { machines };
    let mut sketch = TopologyBuilder::new(true);
    let mut nics = vec![];
    for (machine, &size) in (0..).zip(machines.sizes()) {
        sketch.enter(Some(machine));
        let devices = sketch.devices(u32::from(size));
        let nic = sketch.vertex(VertexKind::Nic, "nic0");
        if size > 1 {
            let switch = sketch.vertex(VertexKind::Switch, "nvlink");
            for &device in &devices {
                sketch.join(device, switch, in_machine, NVLINK_S / 2.0, Duplex::Full, "NVLink");
            }
        }
        for &device in &devices {
            sketch.join(device, nic, in_machine, PCIE_S, Duplex::Full, "PCIe");
        }
        nics.push(nic);
    }
    sketch.enter(None);
    let switch = sketch.vertex(VertexKind::Switch, "switch");
    for nic in nics {
        sketch.join(nic, switch, between, NETWORK_S / 2.0, Duplex::Full, "Ethernet");
    }
    let name = format!("machines of {machines}");
    let mut topology = sketch.topology(&name).unwrap_or_else(|_| Topology::lonely());
    topology.alike = machines.sizes().windows(2).all(|pair| pair[0] == pair[1]);
    topology
}

/// Topology of one of DAPPLE's clusters.
fn published_cluster(cluster: &PublishedCluster) -> Topology {
    let mut topology = of_machines(&cluster.machines, cluster.links.in_machine, cluster.links.all_reduce);
    topology.name = cluster.id.into();
    topology.title = cluster.name.into();
    topology.memory_bytes = Some(cluster.memory_bytes);
    topology.sources = vec![FigureSource {
        figure: "speed of NVLink, and of an all-reduce over Ethernet".into(),
        source: "the published program of DAPPLE (Fan et al., PPoPP 2021); 10 Gb/s in the ratio of the line rates"
            .into(),
    }];
    topology.notes = vec![
        "links between machines have the speed published for all-reduces; DAPPLE's planners take a third of it for a \
        single transfer"
            .into(),
    ];
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_joined_and_says_where_its_figures_come_from() {
        let names = PRESETS
            .iter()
            .flat_map(|preset| [preset.id.to_string(), format!("2x{}", preset.id), format!("3x{}+eth-25g", preset.id)]);
        let names = names.chain(TORI.iter().map(|torus| torus.example.to_string()));
        for name in names.chain(published::PUBLISHED.iter().map(|cluster| cluster.id.to_string())) {
            let topology = named(&name).unwrap();
            assert_eq!(topology.joined(), Ok(()), "{name}");
            assert!(!topology.sources.is_empty() && topology.memory_bytes.is_some_and(|bytes| bytes > 1e9), "{name}");
            let matrix = topology.pair_matrix();
            for a in 0..topology.devices() {
                for b in 0..a {
                    assert_eq!(matrix.at(a, b), matrix.at(b, a), "{name} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn machines_and_networks_are_composed() {
        let four = named("4xDGX-H100").unwrap();
        assert_eq!((four.devices(), four.machines().to_string().as_str()), (32, "4x8"));
        // The NIC of its own place, on its rail; another rail over the spine.
        let (same, other) = (four.route(0, 8), four.route(0, 13));
        assert_eq!((same.bandwidth, same.channels.len()), (50e9, 4));
        assert_eq!((other.bandwidth, other.channels.len()), (50e9, 6));
        assert!((same.latency_s - 3.6e-6).abs() < 1e-12, "{}", same.latency_s);
        let two = named("2xdgx-1+eth-25g").unwrap();
        assert_eq!(two.route(0, 15).bandwidth, 3.125e9);
        assert_eq!(two.route(3, 4).bandwidth, 6e9);
        for (name, told) in [
            ("dgx-9", "presets: dgx-1-p100"),
            ("0xdgx-1", "from 1 to 256"),
            ("999999999999xdgx-1", "from 1 to 256"),
            ("2xdgx-1+tokenring", "networks: eth-1g"),
            ("tpu-v4-4x4", "3 axes: write tpu-v4-4x4x4"),
            ("tpu-v4-4x0x4", "3 axes"),
            ("tpu-v4-100x100x100", "1000000 devices"),
            ("tpu-v4-99999x99999x99999", "3 axes"),
            ("2xdapple-a", "the number of machines"),
            ("", "neither a file nor a preset"),
        ] {
            let error = named(name).unwrap_err().to_string();
            assert!(error.contains(told), "{name}: {error}");
        }
    }

    #[test]
    fn a_torus_wraps_where_it_is_long_enough() {
        let torus = named("tpu-v4-4x4x2").unwrap();
        // Axes of 4 have a link back, the axis of 2 has none.
        assert_eq!(torus.links().len(), 32 + 32 + 16);
        assert_eq!(torus.route(0, 31).bandwidth, 50e9);
        assert_eq!(named("tpu-v5e-4x4").unwrap().links().len(), 24);
        assert_eq!(named("tpu-v5e-16x16").unwrap().links().len(), 512);
    }
}
