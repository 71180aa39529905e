//! Words and columns of pipelines of layers with modes.

use std::collections::BTreeMap;

use crate::{
    family::describe::{Amount, Describe, Detail, StageTraffic, flows, runs, stages_of},
    plan::Plan,
    units,
    workload::{Choice, Mode, NodeIndex, PiperProfile, Workload},
};

impl Describe for PiperProfile {
    fn columns(&self) -> &'static [(&'static str, usize)] {
        &[("time", 11), ("param size", 11), ("memory", 11), ("degrees", 11)]
    }

    fn cells(&self, members: &[NodeIndex]) -> Vec<String> {
        let Some(mode) = first_mode(self, members[0]) else { return vec![] };
        let degrees = self.nodes[members[0]].degrees.iter().map(|d| d.degree.to_string());
        vec![
            units::seconds(mode.time_s),
            units::count_short(mode.parameters),
            units::bytes(mode.memory_a + mode.memory_b),
            degrees.collect::<Vec<_>>().join(","),
        ]
    }

    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>> {
        runs(workload, &|node| first_mode(self, node).map(|mode| (mode.time_s, mode.parameters)))
    }

    fn weight(&self, node: NodeIndex) -> f64 {
        first_mode(self, node).map_or(0.0, |mode| mode.time_s)
    }

    fn details(&self, node: NodeIndex) -> Vec<Detail> {
        let titles = ["t", "mode", "time", "param size", "memory for y microbatches in flight"];
        let mut lines = vec![Detail::Row { title: true, cells: titles.map(String::from) }];
        for degree in &self.nodes[node].degrees {
            for mode in &degree.modes {
                let memory = format!("{} · y + {}", units::bytes(mode.memory_a), units::bytes(mode.memory_b));
                let (time, parameters) = (units::seconds(mode.time_s), units::count_short(mode.parameters));
                let cells =
                    [degree.degree.to_string(), Choice::Mode(mode.id.clone()).label(), time, parameters, memory];
                lines.push(Detail::Row { title: false, cells });
            }
        }
        lines
    }

    fn edge(&self, _workload: &Workload, edge: usize) -> Amount {
        Amount::Bytes(self.edge_bytes[edge])
    }

    fn flows(&self, workload: &Workload, plan: &Plan) -> Vec<StageTraffic> {
        let stage_of = stages_of(workload, plan);
        let mut sums: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for ((u, v), &bytes) in workload.edges().zip(&self.edge_bytes) {
            if let (Some(from), Some(to)) = (stage_of[u.index()], stage_of[v.index()])
                && from != to
            {
                *sums.entry((from, to)).or_default() += bytes;
            }
        }
        flows(sums, Amount::Bytes)
    }
}

/// First mode in the file at the smallest degree: it represents the node by itself.
pub(super) fn first_mode(profile: &PiperProfile, node: NodeIndex) -> Option<&Mode> {
    profile.nodes.get(node.index())?.degrees.first()?.modes.first()
}
