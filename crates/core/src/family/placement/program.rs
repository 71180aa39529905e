//! Converts a device placement to the simulator's input.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cluster::Limits,
    family::program::total,
    plan::Plan,
    simulate::{Pipeline, PipelineStage, Transfer},
    workload::{Choice, PlacementProfile, Workload, placement::SECONDS},
};

/// Pipeline of a device placement: a stage is a device. A tensor goes once to every device that needs it and takes its
/// transfer's time. Edges back to an earlier device are omitted. So are those within the backward pass, whose gradients
/// return on the transfers of the forward pass.
pub(crate) fn pipeline(workload: &Workload, profile: &PlacementProfile, limits: &Limits, plan: &Plan) -> Pipeline {
    let mut stage_of = vec![usize::MAX; workload.nodes.len()];
    let mut stages = vec![];
    for (index, planned) in plan.stages.iter().enumerate() {
        let mut stage = PipelineStage { replicas: 1, devices: 1, ..PipelineStage::default() };
        let (mut forward, mut backward) = (vec![], vec![]);
        let speed = profile.speed_on(planned);
        for (&node, choice) in planned.nodes.iter().zip(&planned.choices) {
            let Some(cost) = profile.nodes.get(node.index()) else { continue };
            let time_s = SECONDS * cost.compute(*choice == Choice::Cpu) / speed;
            if cost.backward { &mut backward } else { &mut forward }.push(time_s);
            if *choice != Choice::Cpu {
                stage.fixed_bytes += cost.size_bytes;
            }
            stage_of[node.index()] = index;
        }
        [stage.forward_s, stage.backward_s] = [forward, backward].map(total);
        stages.push(stage);
    }
    let mut seconds: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for (u, cost) in profile.nodes.iter().enumerate().filter(|(_, cost)| !cost.backward) {
        let from = stage_of[u];
        let heads = workload.dag.successors(u).filter(|&v| !profile.nodes[v].backward).map(|v| stage_of[v]);
        for to in heads.filter(|&to| to != usize::MAX && to > from).collect::<BTreeSet<_>>() {
            seconds.entry((from, to)).or_default().push(SECONDS * cost.transfer);
        }
    }
    // The file states transfers as times, without bytes.
    let transfer =
        |((from, to), seconds): ((usize, usize), Vec<f64>)| Transfer { from, to, seconds: total(seconds), bytes: 0.0 };
    let notes = vec![
        "the file's times are read as milliseconds".to_string(),
        format!(
            "{} microbatches are shown; a device holds its nodes' sizes, whatever is in flight",
            limits.microbatches
        ),
        "tensors go to later devices only; their gradients take the same time on the way back".to_string(),
    ];
    let transfers = seconds.into_iter().map(transfer).collect();
    Pipeline { stages, transfers, microbatches: limits.microbatches, notes, ..Pipeline::default() }
}
