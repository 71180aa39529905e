//! How devices are wired: a directed graph of devices, switches, NICs and host bridges.
//!
//! * [`Topology`]: the graph, its machines, and where its figures come from
//! * [`Route`], [`PairMatrix`]: the widest way between two devices, and what every pair attains by itself
//! * [`Collectives`]: rings, trees and hierarchical all-reduces on the real routes
//! * [`Halves`]: the narrowest cut into two equal halves
//! * [`named`], [`PRESETS`], [`TORI`]: `4xdgx-h100`, `2xdgx-1+eth-25g`, `tpu-v4-4x4x4`
//! * [`read()`]: our JSON, a CSV matrix, and what `nvidia-smi topo -m`, `p2pBandwidthLatencyTest`, nvbandwidth, `rocm-smi`,
//!   `amd-smi` and nccl-tests print
//! * [`Spec`]: a topology as it is asked for, several machines of a file among them
//! * [`Topology::json`]: a topology as JSON that reads back; pictures of it are made in `plantui::export::topology`
//!
//! There are two views of one topology. The pair matrix says what two devices attain when nobody else sends, and knows
//! nothing of sharing. The links view says which channels each route takes; whoever sends over one channel shares it.

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

pub use collectives::{Algorithm, Collective, Collectives, Operation};
pub use compose::{NETWORKS, NameError, Network, joined_copies, named, of_machines};
pub use graph::{Duplex, Hop, Link, Problem, Source, Topology, Vertex, VertexKind};
pub use halves::Halves;
pub use presets::{PRESETS, Preset, TORI, Torus};
pub use published::{PUBLISHED, PublishedCluster, find_published};
pub use read::{Format, SCHEMA, read};
pub use rings::Ring;
pub use routes::{PairMatrix, Route, Routes};
pub use rule::LinkRule;
pub use spec::{Assumed, Spec, gigabytes, pcie};
pub use wired::Wired;
