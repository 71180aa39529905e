//! Words and columns of operator graphs placed on accelerators and CPUs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    family::describe::{Amount, CPU_ONLY, Describe, Detail, StageTraffic, flows, stages_of},
    plan::{Plan, Stage},
    units,
    workload::{NodeIndex, PlacementNode, PlacementProfile, Workload, placement::SECONDS},
};

impl Describe for PlacementProfile {
    fn columns(&self) -> &'static [(&'static str, usize)] {
        &[("pass", 9), ("class", 6), ("accelerator", 12), ("CPU", 10), ("size", 10), ("transfer", 10)]
    }

    fn cells(&self, members: &[NodeIndex]) -> Vec<String> {
        let nodes: Vec<_> = members.iter().map(|&i| &self.nodes[i]).collect();
        let sum = |of: &dyn Fn(&PlacementNode) -> f64| nodes.iter().map(|node| of(node)).sum::<f64>();
        let pass = match (nodes.iter().any(|n| !n.backward), nodes.iter().any(|n| n.backward)) {
            (true, true) => "both",
            (false, true) => "backward",
            _ => "forward",
        };
        let supported = nodes.iter().all(|node| node.supported);
        let accelerator = units::seconds(sum(&|node| node.accelerator_time) * SECONDS);
        vec![
            pass.to_string(),
            nodes[0].colour_class.map_or("-".into(), |class| class.to_string()),
            if supported { accelerator } else { CPU_ONLY.to_string() },
            units::seconds(sum(&|node| node.cpu_time) * SECONDS),
            units::bytes(sum(&|node| node.size_bytes)),
            units::seconds(sum(&|node| node.transfer) * SECONDS),
        ]
    }

    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>> {
        let places = classes(self, workload.indices());
        places.into_iter().map(|class| class.into_iter().map(NodeIndex::new).collect()).collect()
    }

    // The first node's name is more informative than the number of the class, which has a column.
    fn group_label(&self, workload: &Workload, members: &[NodeIndex]) -> String {
        format!("{} + {} more", workload.nodes[members[0]].numbered(), members.len() - 1)
    }

    fn nouns(&self) -> &'static str {
        "nodes"
    }

    fn weight(&self, node: NodeIndex) -> f64 {
        let cost = &self.nodes[node];
        cost.compute(!cost.supported) * SECONDS
    }

    fn details(&self, node: NodeIndex) -> Vec<Detail> {
        let cost = &self.nodes[node];
        let pass = if cost.backward { "backward" } else { "forward" };
        let layer = cost.layer.map(|layer| format!(", layer {layer}")).unwrap_or_default();
        let class = match cost.colour_class {
            None => "no colour class: the node is placed on its own".to_string(),
            Some(class) => match self.nodes.iter().filter(|other| other.colour_class == Some(class)).count() - 1 {
                0 => format!("colour class {class}, no other node in it"),
                others => {
                    let others = units::counted(others, "other node");
                    format!("colour class {class}: on one device with {others}")
                }
            },
        };
        let cpu = units::seconds(cost.cpu_time * SECONDS);
        let accelerator = units::seconds(cost.accelerator_time * SECONDS);
        let times = match cost.supported {
            true if cost.accelerator_time > 0.0 => {
                let ratio = units::number(cost.cpu_time / cost.accelerator_time);
                format!("{accelerator} on an accelerator, {cpu} on a CPU ({ratio}x)")
            }
            true => format!("{accelerator} on an accelerator, {cpu} on a CPU"),
            false => format!("{cpu} on a CPU; an accelerator cannot run it"),
        };
        let size = units::bytes(cost.size_bytes);
        let transfer = units::seconds(cost.transfer * SECONDS);
        vec![
            Detail::Line(format!("{pass} pass{layer}; {class}")),
            Detail::Line(times),
            Detail::Line(format!("{size} on an accelerator; {transfer} to send its output over the link, once")),
        ]
    }

    fn facts(&self) -> String {
        let backward = self.nodes.iter().filter(|node| node.backward).count();
        let free = self.nodes.iter().filter(|node| node.colour_class.is_none()).count();
        let classes: BTreeSet<i64> = self.nodes.iter().filter_map(|node| node.colour_class).collect();
        let bound = self.nodes.iter().filter(|node| !node.supported).count();
        let mut facts = vec![format!("{} forward, {backward} backward", self.nodes.len() - backward)];
        facts.push(match free {
            0 => format!("{} colour classes", classes.len()),
            free => format!("{} colour classes, {free} nodes without", classes.len()),
        });
        facts.push(match bound {
            0 => "accelerators can run every node".to_string(),
            1 => "1 node needs a CPU".to_string(),
            bound => format!("{bound} nodes need a CPU"),
        });
        if !self.kinds.is_empty() {
            facts.push(self.kinds_text());
        }
        facts.join(" · ")
    }

    fn edge(&self, workload: &Workload, edge: usize) -> Amount {
        Amount::Seconds(self.nodes[workload.edge(edge).0].transfer * SECONDS)
    }

    fn edge_title(&self) -> &'static str {
        "transfer"
    }

    fn flows(&self, workload: &Workload, plan: &Plan) -> Vec<StageTraffic> {
        let stage_of = stages_of(workload, plan);
        let mut sums: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (node, cost) in NodeIndex::enumerate(&self.nodes) {
            let readers: BTreeSet<_> = workload.successors(node).filter_map(|v| stage_of[v.index()]).collect();
            for to in readers {
                if let Some(from) = stage_of[node.index()].filter(|&from| from != to) {
                    *sums.entry((from, to)).or_default() += cost.transfer * SECONDS;
                }
            }
        }
        flows(sums, Amount::Seconds)
    }

    // Only this profile has nodes of both passes.
    fn flows_of(&self) -> &'static str {
        if self.nodes.iter().any(|node| node.backward) { "both passes of a sample" } else { "of a sample" }
    }

    fn stage_groups(&self, _workload: &Workload, stage: &Stage) -> Vec<Vec<usize>> {
        classes(self, stage.nodes.iter().copied())
    }

    fn stage_group_label(&self, _workload: &Workload, stage: &Stage, places: &[usize]) -> (String, String) {
        let class = self.nodes[stage.nodes[places[0]]].colour_class.unwrap_or_default();
        (format!("class {class}"), format!("{} nodes", places.len()))
    }

    // The row above shows the kind of device, but not the pass.
    fn node_remark(&self, stage: &Stage, place: usize) -> String {
        if self.is_backward(stage.nodes[place]) { "backward".into() } else { String::new() }
    }

    fn is_backward(&self, node: NodeIndex) -> bool {
        self.nodes.get(node.index()).is_some_and(|cost| cost.backward)
    }

    fn stage_kind(&self, stage: &Stage) -> Option<&str> {
        self.kind_on(stage).map(|kind| kind.id.as_str())
    }

    fn stages_are_devices(&self) -> bool {
        true
    }
}

/// Colour classes in the order of their first nodes, as positions in the list. A node without a class is alone.
fn classes(profile: &PlacementProfile, nodes: impl Iterator<Item = NodeIndex>) -> Vec<Vec<usize>> {
    let mut place: BTreeMap<i64, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = vec![];
    for (i, node) in nodes.enumerate() {
        let class = profile.nodes.get(node.index()).and_then(|cost| cost.colour_class);
        let at = class.map_or(groups.len(), |class| *place.entry(class).or_insert(groups.len()));
        if at == groups.len() {
            groups.push(vec![]);
        }
        groups[at].push(i);
    }
    groups
}
