//! One profile in the terms of another, so that a planner of one family can plan a workload of the other.
//!
//! [`to_placement`], [`to_piper`] and [`to_layers`] are explicit and lossy: what they leave out or make up stands in
//! [`Conversion::assumptions`], a sentence each, and goes wherever a result goes that rests on it. [`text`] writes a
//! converted workload as a file. All are `O((nodes + edges) · log nodes)`.
//!
//! A conversion tells which original nodes each new one stands for, so that a plan can be
//! carried back and scored on the original; what a planner reaches on the converted workload is no claim.

mod text;
mod to_layers;
mod to_piper;
mod to_placement;

use crate::{cluster::GivenLimits, workload::Choice};
use thiserror::Error;

use super::{Format, NodeIndex, Profile, Workload};

pub use text::text;
pub use to_layers::to_layers;
pub use to_piper::to_piper;
pub use to_placement::{Mode, to_placement};

/// Why a workload has no counterpart in other terms.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotConverted {
    /// Nothing tells forward and backward times.
    #[error("only a profile by tensor degree and mode tells forward and backward times of layers")]
    NoLayers,
    /// It is no device placement.
    #[error("it has no transfers and sizes of a device placement to convert")]
    NoPlacement,
    /// It is no profile by tensor degree.
    #[error("it has no times and memory by tensor degree to convert")]
    NoDegrees,
    /// A node does not run on one device alone.
    #[error("{0} has no mode at tensor degree 1, and an accelerator is one device")]
    NoPlainMode(String),
    /// A node runs on CPUs alone.
    #[error("{0} cannot run on an accelerator, and stages run on nothing else")]
    NoAccelerator(String),
}

/// Which way a workload goes for planners of the other kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A pipeline of nodes with modes becomes a device placement, every node in one of its modes: [`to_placement`].
    ToPlacement,
    /// A device placement becomes a pipeline: [`to_piper`].
    ToPipeline,
}

impl Way {
    /// The way of this workload, if it has a counterpart.
    pub fn of(workload: &Workload) -> Option<Way> {
        match &workload.profile {
            Profile::Piper(_) => Some(Way::ToPlacement),
            Profile::Placement(_) => Some(Way::ToPipeline),
            Profile::Operators(_) | Profile::Layers(_) | Profile::Training(_) => None,
        }
    }
}

/// A workload in other terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The new workload; its ids are those of the first original nodes.
    pub workload: Workload,
    /// By new node: the original nodes it stands for, ascending.
    pub members: Vec<Vec<NodeIndex>>,
    /// By original node: what a plan chooses for it.
    pub choices: Vec<Choice>,
    /// What was assumed and left out, a sentence each.
    pub assumptions: Vec<String>,
}

/// The workload with the stage of every node in its own profile; `None` where that has no place for it. Files of layers name
/// the stage of each.
pub fn with_stages(workload: &Workload, stage_of: impl Fn(NodeIndex) -> Option<u32>) -> Option<Workload> {
    let mut profile = workload.layers()?.clone();
    for (node, layer) in workload.indices().zip(&mut profile.nodes) {
        layer.stage = stage_of(node);
    }
    Some(with_profile(workload, workload.format, Profile::Layers(profile), workload.limits.clone()))
}

/// The same workload with another profile; nothing is copied of its own, which may be large.
fn with_profile(workload: &Workload, format: Format, profile: Profile, limits: GivenLimits) -> Workload {
    Workload {
        name: workload.name.clone(),
        source: workload.source.clone(),
        format,
        nodes: workload.nodes.clone(),
        dag: workload.dag.clone(),
        profile,
        limits,
        provenance: workload.provenance.clone(),
        recipe: workload.recipe,
        unknown_fields: workload.unknown_fields.clone(),
    }
}
