//! Words and columns of profiled layers.

use std::collections::BTreeMap;

use crate::{
    cluster::Limits,
    family::describe::{Amount, Describe, Detail, StageTraffic, flows, runs, stages_of},
    plan::Plan,
    units,
    workload::{LayerProfile, NodeIndex, Workload, layer_profile::MILLISECONDS},
};

impl Describe for LayerProfile {
    fn columns(&self) -> &'static [(&'static str, usize)] {
        &[("forward", 11), ("backward", 11), ("output", 11), ("parameters", 11)]
    }

    fn cells(&self, members: &[NodeIndex]) -> Vec<String> {
        let cost = &self.nodes[members[0]];
        vec![
            units::seconds(cost.forward_ms * MILLISECONDS),
            units::seconds(cost.backward_ms * MILLISECONDS),
            units::bytes(cost.activation()),
            units::bytes(cost.parameter_bytes),
        ]
    }

    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>> {
        runs(workload, &|node| Some((self.nodes[node].seconds(), self.nodes[node].parameter_bytes)))
    }

    fn weight(&self, node: NodeIndex) -> f64 {
        self.nodes[node].seconds()
    }

    fn details(&self, node: NodeIndex) -> Vec<Detail> {
        let cost = &self.nodes[node];
        let time = format!(
            "{} forward, {} backward, for the batch that was profiled",
            units::seconds(cost.forward_ms * MILLISECONDS),
            units::seconds(cost.backward_ms * MILLISECONDS)
        );
        let outputs = match cost.activation_bytes.len() {
            1 => String::new(),
            count => format!(" in {count} tensors"),
        };
        let stage = cost.stage.map(|stage| format!("; on stage {stage} in the file")).unwrap_or_default();
        let (out, own) = (units::bytes(cost.activation()), units::bytes(cost.parameter_bytes));
        let sizes = format!("output {out}{outputs}, parameters {own}{stage}");
        vec![Detail::Line(time), Detail::Line(sizes)]
    }

    fn edge(&self, workload: &Workload, edge: usize) -> Amount {
        Amount::Bytes(self.nodes[workload.edge(edge).0].activation())
    }

    fn flows(&self, workload: &Workload, plan: &Plan) -> Vec<StageTraffic> {
        let stage_of = stages_of(workload, plan);
        let mut sums: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        // An output goes from stage to stage until the last one that needs it.
        for (node, cost) in NodeIndex::enumerate(&self.nodes) {
            let last = workload.successors(node).filter_map(|v| stage_of[v.index()]).max();
            if let (Some(from), Some(last)) = (stage_of[node.index()], last) {
                for stage in from..last {
                    *sums.entry((stage, stage + 1)).or_default() += cost.activation();
                }
            }
        }
        flows(sums, Amount::Bytes)
    }

    fn flows_of(&self) -> &'static str {
        "activations of the profiled batch"
    }

    fn batch(&self, limits: &Limits) -> String {
        format!("batches of {} samples", limits.samples())
    }
}
