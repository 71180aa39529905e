//! Clusters by name: the three of DAPPLE's evaluation (Fan et al., PPoPP 2021, section 6.1).
//!
//! The published program knows the links of 25 Gb/s Ethernet only; those of configuration C are the same figures, divided as
//! the line rates are (25 to 10).

use crate::cluster::{Links, Machines, PUBLISHED_LINKS};

/// A cluster of the evaluation, with the three speeds that its links are published with.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedCluster {
    /// What `--topology` calls it.
    pub id: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Devices of each machine.
    pub machines: Machines,
    /// Speeds of its links.
    pub links: Links,
    /// Bytes of memory per device.
    pub memory_bytes: f64,
}

/// All of them.
pub static PUBLISHED: [PublishedCluster; 3] = [
    PublishedCluster {
        id: "dapple-a",
        name: "2 servers with 8 V100 on NVLink each, 25 Gb/s Ethernet between them",
        machines: Machines::fixed(&[8; 2]),
        links: PUBLISHED_LINKS,
        memory_bytes: 16e9,
    },
    PublishedCluster {
        id: "dapple-b",
        name: "16 servers with one V100 each, 25 Gb/s Ethernet",
        machines: Machines::fixed(&[1; 16]),
        links: PUBLISHED_LINKS,
        memory_bytes: 16e9,
    },
    PublishedCluster {
        id: "dapple-c",
        name: "16 servers with one V100 each, 10 Gb/s Ethernet",
        machines: Machines::fixed(&[1; 16]),
        links: Links { in_machine: 25e9, between_machines: 0.4e9, all_reduce: 1.2e9 },
        memory_bytes: 16e9,
    },
];

/// The preset of this id.
pub fn find_published(id: &str) -> Option<&'static PublishedCluster> {
    PUBLISHED.iter().find(|cluster| cluster.id.eq_ignore_ascii_case(id))
}
