//! Conversions between profiles, so that a planner of one family can plan a workload of another.
//!
//! [`to_placement`], [`to_piper`] and [`to_layers`] are explicit and lossy. [`Conversion::assumptions`] lists what they
//! omit or assume, a sentence each; every result that rests on them carries them. [`text`] writes a converted workload
//! as a file. All are `O((nodes + edges) · log nodes)`.
//!
//! A conversion states which original nodes each new node represents, so that a plan can be mapped back and scored on
//! the original. An objective on the converted workload is not a result for the original.

mod text;
mod to_layers;
mod to_piper;
mod to_placement;

use super::choice::Choice;
use crate::cluster::GivenLimits;
use thiserror::Error;

use super::{
    formats::WorkloadFormat,
    node_index::NodeIndex,
    profiled::{Profile, Workload},
};

pub use text::text;
pub use to_layers::to_layers;
pub use to_piper::to_piper;
pub use to_placement::{ModeRule, to_placement};

/// Reason why a workload cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConversionError {
    /// The profile has no forward and backward times.
    #[error("only a profile by tensor degree and mode tells forward and backward times of layers")]
    NoLayers,
    /// The workload is not a device placement.
    #[error("it has no transfers and sizes of a device placement to convert")]
    NoPlacement,
    /// The profile is not by tensor degree.
    #[error("it has no times and memory by tensor degree to convert")]
    NoDegrees,
    /// A node does not run on a single device.
    #[error("{0} has no mode at tensor degree 1, and an accelerator is one device")]
    NoPlainMode(String),
    /// The accelerators are not alike.
    #[error("its accelerators are of several kinds, and the stages of a pipeline are on devices that are alike")]
    UnequalAccelerators,
    /// A node runs only on CPUs.
    #[error("{0} cannot run on an accelerator, and stages run on nothing else")]
    NoAccelerator(String),
}

/// Direction of a conversion for planners of the other kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversionDirection {
    /// Converts a pipeline of nodes with modes to a device placement, each node in one of its modes: [`to_placement`].
    ToPlacement,
    /// Converts a device placement to a pipeline: [`to_piper`].
    ToPipeline,
}

impl ConversionDirection {
    /// Direction for this workload, if it can be converted.
    pub fn of(workload: &Workload) -> Option<ConversionDirection> {
        match &workload.profile {
            Profile::Piper(_) => Some(ConversionDirection::ToPlacement),
            Profile::Placement(profile) if profile.kinds.is_empty() => Some(ConversionDirection::ToPipeline),
            Profile::Placement(_)
            | Profile::Operators(_)
            | Profile::Layers(_)
            | Profile::Training(_)
            | Profile::Mixed(_) => None,
        }
    }
}

/// Converted workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// New workload. Its ids are those of the first original nodes.
    pub workload: Workload,
    /// Original nodes by new node, ascending.
    pub members: Vec<Vec<NodeIndex>>,
    /// Choice of a plan by original node.
    pub choices: Vec<Choice>,
    /// Assumptions and omissions, a sentence each.
    pub assumptions: Vec<String>,
}

/// Copy of the workload with the stage of every node in its profile. `None` if the profile has no field for it: only
/// layer-wise profiles have one.
pub fn with_stages(workload: &Workload, stage_of: impl Fn(NodeIndex) -> Option<u32>) -> Option<Workload> {
    let mut profile = workload.layers()?.clone();
    for (node, layer) in workload.indices().zip(&mut profile.nodes) {
        layer.stage = stage_of(node);
    }
    Some(with_profile(workload, workload.format, Profile::Layers(profile), workload.limits.clone()))
}

/// Same workload with another profile. Does not copy the old profile, which may be large.
fn with_profile(workload: &Workload, format: WorkloadFormat, profile: Profile, limits: GivenLimits) -> Workload {
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
