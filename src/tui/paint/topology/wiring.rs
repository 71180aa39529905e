//! Part of a topology for one picture: the devices of a machine and their connections, or all machines with one bundle
//! between each two. `O(links)`.

use std::collections::BTreeMap;

use crate::cluster::topology::{Topology, VertexKind};

/// Line between two vertices. Columns are numbered first, then hubs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tui) struct Wire {
    pub ends: [usize; 2],
    /// Load time relative to that of the fullest link of all.
    pub share: f64,
}

/// Columns, hubs and wires.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::tui) struct Wiring {
    /// Names of the columns in the top row.
    pub columns: Vec<String>,
    /// Devices of each column.
    pub devices: Vec<Vec<u32>>,
    /// Switches, bridges and NICs.
    pub hubs: Vec<String>,
    pub wires: Vec<Wire>,
}

impl Wiring {
    /// One machine; `shares` is by link.
    pub(super) fn of_machine(topology: &Topology, shares: &[f64], machine: usize) -> Wiring {
        let mut wiring = Wiring::default();
        let mut places: BTreeMap<u32, usize> = BTreeMap::new();
        for device in (0..topology.devices()).filter(|&device| topology.machine_of(device) == machine) {
            places.insert(topology.vertex_of(device), wiring.columns.len());
            wiring.columns.push(topology.device_name(device).to_string());
            wiring.devices.push(vec![device as u32]);
        }
        let Some(first) = places.keys().next() else { return wiring };
        let (vertices, own) = (topology.vertices(), topology.vertices()[*first as usize].machine);
        let alone = topology.machines().sizes().len() < 2;
        for (at, vertex) in (0..).zip(vertices).filter(|(_, vertex)| vertex.kind != VertexKind::Device) {
            if alone || (vertex.machine.is_some() && vertex.machine == own) {
                places.insert(at, wiring.columns.len() + wiring.hubs.len());
                // The machine's name is shown elsewhere.
                let name = vertex.name.split_once('.').map_or(vertex.name.as_str(), |(_, name)| name);
                wiring.hubs.push(name.to_string());
            }
        }
        wiring.join(topology, shares, &|vertex| places.get(&vertex).copied());
        wiring
    }

    /// All machines, and one hub for all vertices between them.
    pub(super) fn of_machines(topology: &Topology, shares: &[f64]) -> Wiring {
        let machines = topology.machines();
        let count = machines.sizes().len();
        let mut wiring = Wiring { hubs: vec!["network".into()], ..Wiring::default() };
        for (machine, &size) in machines.sizes().iter().enumerate() {
            let first = machines.first_of(machine);
            wiring.columns.push(format!("machine {}", machine + 1));
            wiring.devices.push((first..first + u32::from(size)).collect());
        }
        let known: BTreeMap<u32, usize> =
            (0..topology.devices()).map(|device| (topology.vertex_of(device), topology.machine_of(device))).collect();
        let own: BTreeMap<Option<u32>, usize> =
            known.iter().map(|(&vertex, &machine)| (topology.vertices()[vertex as usize].machine, machine)).collect();
        let place = |vertex: u32| {
            let machine = topology.vertices()[vertex as usize].machine;
            let own = machine.and_then(|_| own.get(&machine)).copied();
            Some(known.get(&vertex).copied().or(own).unwrap_or(count))
        };
        wiring.join(topology, shares, &place);
        wiring
    }

    /// Adds links whose ends have places: one wire between two places, as full as its fullest link.
    fn join(&mut self, topology: &Topology, shares: &[f64], place: &dyn Fn(u32) -> Option<usize>) {
        let mut wires: BTreeMap<[usize; 2], f64> = BTreeMap::new();
        for (link, &share) in topology.links().iter().zip(shares) {
            let (Some(from), Some(to)) = (place(link.from), place(link.to)) else { continue };
            if from != to {
                let most = wires.entry([from.min(to), from.max(to)]).or_default();
                *most = most.max(share);
            }
        }
        self.wires = wires.into_iter().map(|(ends, share)| Wire { ends, share }).collect();
    }

    /// Number of wires that end at a column or hub.
    pub(super) fn degree(&self, end: usize) -> usize {
        self.wires.iter().filter(|wire| wire.ends.contains(&end)).count()
    }

    /// The same with loaded wires only.
    pub(super) fn loaded(&self) -> Wiring {
        let wires = self.wires.iter().copied().filter(|wire| wire.share > 0.0).collect();
        Wiring { wires, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::topology::named;

    #[test]
    fn a_machine_has_its_own_links_and_machines_one_bundle_each() {
        let topology = named("2xdgx-a100").unwrap();
        let shares = vec![0.5; topology.links().len()];
        let machine = Wiring::of_machine(&topology, &shares, 1);
        assert_eq!((machine.columns.len(), machine.columns[0].as_str()), (8, "gpu8"));
        assert!(machine.hubs.iter().any(|hub| hub == "nvswitch") && machine.hubs.iter().any(|hub| hub == "nic7"));
        // Eight to the switch, eight to the NICs.
        assert_eq!(machine.wires.len(), 16);
        let all = Wiring::of_machines(&topology, &shares);
        assert_eq!((all.columns.len(), all.hubs.len()), (2, 1));
        let ends: Vec<[usize; 2]> = all.wires.iter().map(|wire| wire.ends).collect();
        assert_eq!(ends, [[0, 2], [1, 2]]);
        assert!(Wiring::of_machine(&topology, &vec![0.0; shares.len()], 0).loaded().wires.is_empty());
    }

    #[test]
    fn every_link_of_a_single_machine_is_a_wire() {
        let topology = named("dgx-1").unwrap();
        let wiring = Wiring::of_machine(&topology, &vec![1.0; topology.links().len()], 0);
        assert_eq!(wiring.wires.len(), topology.links().len());
    }
}
