//! Topology of devices: a directed graph of devices, switches, NICs and host bridges.
//!
//! * [`Topology`]: the graph, its machines, and the sources of its figures
//! * [`Route`], [`PairMatrix`]: the widest path between two devices, and the bandwidth of every pair alone
//! * [`Collectives`]: rings, trees and hierarchical all-reduces on the real routes
//! * [`Halves`]: the narrowest cut into two equal halves
//! * [`named`], [`PRESETS`], [`TORI`]: `4xdgx-h100`, `2xdgx-1+eth-25g`, `tpu-v4-4x4x4`
//! * [`read()`]: plantui's JSON, a CSV matrix, and the output of `nvidia-smi topo -m`, `p2pBandwidthLatencyTest`,
//!   nvbandwidth, `rocm-smi`, `amd-smi` and nccl-tests
//! * [`Spec`]: text form of a topology, including several machines of a file
//! * [`Topology::json`]: a topology as JSON that reads back; `plantui::export::topology` makes pictures of it
//!
//! A topology has two views. The pair matrix gives the bandwidth of two devices when no other device sends; it does not
//! model sharing. The links view gives the channels of each route; transfers over one channel share it.

mod collectives;
mod compose;
mod flow;
mod graph;
mod halves;
mod presets;
mod published;
mod read;
mod rings;
mod routes;
mod rule;
mod sketch;
mod spec;
mod ways;
mod wired;

pub use collectives::{Collective, CollectiveAlgorithm, CollectiveOperation, Collectives};
pub use compose::{MachineNetwork, NETWORKS, NameError, joined_copies, named, of_machines};
pub use graph::{Duplex, FigureSource, Hop, Link, Topology, TopologyProblem, Vertex, VertexKind};
pub use halves::Halves;
pub use presets::{PRESETS, Preset, TORI, Torus};
pub use published::{PUBLISHED, PublishedCluster, find_published};
#[cfg(feature = "schema")]
pub(crate) use read::schema;
pub use read::{SCHEMA, TopologyFormat, read};
pub use rings::Ring;
pub use routes::{PairMatrix, Route, Routes};
pub use rule::LinkRule;
pub use spec::{AssumedBandwidths, Spec, gigabytes, pcie};
pub use wired::PlanTopology;
