//! Converts a profile by tensor degree and mode to a layer-wise profile.

use super::{Conversion, ConversionError, with_profile};
use crate::{
    units,
    workload::{
        choice::Choice,
        formats::WorkloadFormat,
        layer_profile::{LayerNode, LayerProfile, MILLISECONDS},
        piper::VANILLA,
        profiled::{Profile, Workload},
    },
};

/// Bytes per parameter that Piper's all-reduce moves in each direction.
const BYTES_PER_PARAMETER: f64 = 2.0;

/// Converts a workload to a layer-wise profile and states the assumptions.
///
/// # Errors
/// Reason why the workload has no layers that can be written.
pub fn to_layers(workload: &Workload) -> Result<Conversion, ConversionError> {
    let members = workload.indices().map(|node| vec![node]).collect();
    let profile = match &workload.profile {
        Profile::Layers(_) => {
            let choices = vec![Choice::Keep; workload.nodes.len()];
            return Ok(Conversion { workload: workload.clone(), members, choices, assumptions: vec![] });
        }
        Profile::Piper(profile) => profile,
        _ => return Err(ConversionError::NoLayers),
    };
    let mut shared = false;
    let mut nodes = Vec::with_capacity(workload.nodes.len());
    let mut choices = Vec::with_capacity(workload.nodes.len());
    for (v, node) in profile.nodes.iter().enumerate() {
        let label = workload.nodes[v].label();
        let modes = node.modes(1).unwrap_or_default();
        let mode = modes.iter().find(|mode| mode.id == VANILLA).or(modes.first());
        let mode = mode.ok_or_else(|| ConversionError::NoPlainMode(label.to_string()))?;
        shared |= mode.forward_s.is_none();
        let forward_s = mode.forward_s.unwrap_or(mode.time_s / 3.0).clamp(0.0, mode.time_s);
        let output = workload.dag.out_edges(v).iter().map(|&e| profile.edge_bytes[e as usize]).fold(0.0, f64::max);
        choices.push(Choice::Mode(mode.id.clone()));
        nodes.push(LayerNode {
            id: format!("node{}", workload.nodes[v].id),
            forward_ms: forward_s / MILLISECONDS,
            backward_ms: (mode.time_s - forward_s) / MILLISECONDS,
            activation_bytes: vec![output],
            parameter_bytes: mode.parameters * BYTES_PER_PARAMETER,
            stage: None,
        });
    }
    let samples = workload.recipe.and_then(|recipe| recipe.micro_batch);
    let microbatch = match samples {
        Some(samples) => format!("one microbatch, which has {}", units::counted(samples as usize, "sample")),
        None => "one microbatch, which is taken as one sample".into(),
    };
    let mut notes = vec![
        format!("every node is taken in its plain mode at tensor degree 1, for a batch of {microbatch}"),
        "a node puts out what its largest edge carries; a parameter is two bytes".to_string(),
    ];
    if shared {
        notes.push("forward is a third of the time where the profile gives only the sum".into());
    }
    let profile = LayerProfile::new(nodes);
    let profile = match samples {
        Some(samples) => profile.of_batch(samples),
        None => profile,
    };
    let layers = with_profile(workload, WorkloadFormat::PipeDream, Profile::Layers(profile), workload.limits.clone());
    Ok(Conversion { workload: layers, members, choices, assumptions: notes })
}
