//! Findings about layer-wise profiles.

use super::{Findings, Severity, spread};
use crate::workload::{
    layer_profile::{Batch, LayerProfile},
    node_index::NodeIndex,
    profiled::Workload,
    states::{self, States, StatesError},
};

pub(super) fn lint(workload: &Workload, profile: &LayerProfile, findings: &mut Findings) {
    if workload.nodes.len() > 1 && workload.dag.edges().is_empty() {
        findings.add(
            "no-edges",
            Severity::Warning,
            &[],
            format!("has {} nodes and no edge", workload.nodes.len()),
            "edges come last in the file: it may have been cut off, and nothing says what runs after what",
        );
    }
    let (severity, taken) = match profile.batch {
        Batch::Stated(_) => (Severity::Note, None),
        Batch::BySizes(images) => (Severity::Note, Some(format!("its sizes are those of {images} images"))),
        Batch::Unknown(rows) => {
            let rows = rows.map_or_else(String::new, |rows| format!(" (linear layers put out {rows} rows)"));
            (Severity::Warning, Some(format!("times are taken as those of 1 sample{rows}")))
        }
    };
    if let Some(taken) = taken {
        findings.add(
            "no-profile-batch",
            severity,
            &[],
            format!("does not tell how many samples were measured at once: {taken}"),
            "taken for another number of samples, a batch takes as much longer or shorter and is cut elsewhere; --profile-batch N \
             says it, or a first line `# profile_batch=N`",
        );
    }
    findings.add(
        "weights-alone",
        Severity::Note,
        &[],
        "tells the bytes of parameters, and neither gradients nor an optimizer's state".into(),
        "memory counts parameters once unless optimizer_memory_scaling says how many times: 4 for Adam in one precision",
    );
    spread::layers(profile, findings);
    let kept = states::planned_nodes(workload);
    let is_kept = |v: NodeIndex| kept[v.index()];
    let costly = |v: NodeIndex| profile.nodes[v].seconds() > 0.0;
    let dropped: Vec<NodeIndex> = workload.indices().filter(|&v| !is_kept(v) && costly(v)).collect();
    if !dropped.is_empty() {
        findings.add(
            "dropped-time",
            Severity::Note,
            &dropped,
            "takes time, but inputs and __getitem__ results are not planned".into(),
            "the published importer drops these nodes, so their time is in no stage",
        );
    }
    let idle = |&v: &NodeIndex| is_kept(v) && !costly(v) && profile.nodes[v].parameter_bytes > 0.0;
    let idle: Vec<NodeIndex> = workload.indices().filter(idle).collect();
    if !idle.is_empty() {
        findings.add(
            "no-time",
            Severity::Warning,
            &idle,
            "has parameters, but takes no time".into(),
            "a stage of such layers looks free and attracts no devices",
        );
    }
    match States::cached(workload, profile, false, &|| false) {
        Err(error @ StatesError::Empty) => {
            findings.add("no-layers", Severity::Error, &[], error.to_string(), "there is nothing to plan");
        }
        Err(error @ (StatesError::TooMany(_) | StatesError::TooLarge(_) | StatesError::Stopped)) => {
            let why = "planners cut it along one order of its layers, and their proofs speak of that order only";
            findings.add("too-many-states", Severity::Warning, &[], error.to_string(), why);
        }
        Ok(states) => {
            let lost: Vec<NodeIndex> = states.left_out.iter().copied().filter(|&v| is_kept(v) && costly(v)).collect();
            if !lost.is_empty() {
                findings.add(
                    "unreached",
                    Severity::Warning,
                    &lost,
                    "cannot be reached from the first layer, and nothing that can be reached needs it".into(),
                    "the published planner's states leave it out, so its plans are worth more than they will take",
                );
            }
        }
    }
}
