//! Clusters by name: the three of DAPPLE's evaluation (Fan et al., PPoPP 2021, section 6.1).
//!
//! The published program has only the links of 25 Gb/s Ethernet. The figures of configuration C are the same, scaled by
//! the line rates (25 to 10).

use crate::cluster::{
    links::{Links, PUBLISHED_LINKS},
    machines::Machines,
};

/// Cluster of the evaluation, with the three published speeds of its links.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedCluster {
    /// Id for `--topology`.
    pub id: &'static str,
    /// Description.
    pub name: &'static str,
    /// Number of devices of each machine.
    pub machines: Machines,
    /// Speeds of its links.
    pub links: Links,
    /// Bytes of memory per device.
    pub memory_bytes: f64,
}

/// All published clusters.
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

/// Cluster with this id, in either case.
pub fn find_published(id: &str) -> Option<&'static PublishedCluster> {
    PUBLISHED.iter().find(|cluster| cluster.id.eq_ignore_ascii_case(id))
}
