//! Layer profile as it was read, with the stage of every node: the format that PipeDream's tools and Parmesan's dry run
//! write.

use super::formats::ScoredPlan;
use plantui_core::workload::convert;

/// Text of the graph: every node's line with the plan's `stage_id`, from 0. The devices of a stage are not part of it;
/// the plan document has them. Empty unless the workload is a layer profile. `O(nodes + edges)`.
pub(crate) fn to_text(exported: &ScoredPlan<'_>) -> String {
    let ScoredPlan { workload, plan, .. } = exported;
    let mut stages = vec![0; workload.nodes.len()];
    for (stage, nodes) in (0..).zip(plan.stages.iter().map(|stage| &stage.nodes)) {
        for &node in nodes {
            stages[node.index()] = stage;
        }
    }
    let staged = convert::with_stages(workload, |node| Some(stages[node.index()]));
    let text = staged.map_or_else(String::new, |staged| convert::text(&staged));
    // PipeDream's own tools take nodes and edges only.
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::{
        cluster::Limits,
        plan::{Plan, Score, Stage},
        workload,
    };

    #[test]
    fn what_is_written_reads_back_with_its_stages() {
        let text = "node1 -- A -- forward_compute_time=1, backward_compute_time=2, activation_size=[8; 4], parameter_size=8\n\
                    node2 -- B -- forward_compute_time=1, backward_compute_time=1, activation_size=8, parameter_size=8 -- stage_id=7\n\
                    \tnode1 -- node2\n";
        let load = |text: &str| workload::load_bytes(text.as_bytes(), "graph.txt", "graph").unwrap();
        let workload = load(text);
        let stage =
            |node| Stage { nodes: vec![node], choices: vec![], data_parallel: 1, tensor_parallel: 1, devices: vec![] };
        let plan = Plan { stages: workload.indices().map(stage).collect(), ..Plan::default() };
        let (limits, score) = (Limits::NEUTRAL, Score::default());
        let written = to_text(&ScoredPlan { workload: &workload, limits: &limits, plan: &plan, score: &score });
        let again = load(&written);
        let stages: Vec<_> = again.layers().unwrap().nodes.iter().map(|node| node.stage).collect();
        assert_eq!(stages, [Some(0), Some(1)]);
        assert_eq!(again.dag, workload.dag);
        assert_eq!(again.layers().unwrap().nodes[0].activation_bytes, [8.0, 4.0]);
    }
}
