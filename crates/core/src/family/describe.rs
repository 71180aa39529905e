//! Columns and words for a family's nodes, edges and stages, for every kind of display.

use std::collections::BTreeMap;

use crate::{
    cluster::Limits,
    plan::{Plan, Stage, document::PredictionPart},
    units,
    workload::{Choice, NodeIndex, Workload, piper::VANILLA},
};

/// Load of an edge or a link, as the profile states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(f64),
    /// Time on a link, seconds.
    Seconds(f64),
}

impl Amount {
    /// Value without its unit. All amounts of one workload have the same unit.
    pub fn value(self) -> f64 {
        match self {
            Amount::Bytes(value) | Amount::Seconds(value) => value,
        }
    }

    /// Another amount of the same kind.
    #[must_use]
    pub fn with(self, value: f64) -> Amount {
        match self {
            Amount::Bytes(_) => Amount::Bytes(value),
            Amount::Seconds(_) => Amount::Seconds(value),
        }
    }

    /// Value with its unit, binary or decimal as that of a memory limit in bytes.
    pub fn text_beside(self, limit: f64) -> String {
        match self {
            Amount::Bytes(bytes) => units::bytes_like(bytes, limit),
            Amount::Seconds(seconds) => units::seconds(seconds),
        }
    }

    /// Value with its unit.
    pub fn text(self) -> String {
        match self {
            Amount::Bytes(bytes) => units::bytes(bytes),
            Amount::Seconds(seconds) => units::seconds(seconds),
        }
    }
}

/// Traffic from one stage to another for one sample or microbatch, forward and backward pass together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTraffic {
    /// Producing stage.
    pub from: usize,
    /// Reading stage.
    pub to: usize,
    /// Size of the traffic.
    pub amount: Amount,
}

/// Flows from the sums of traffic between pairs of stages.
pub(super) fn flows(sums: BTreeMap<(usize, usize), f64>, amount: fn(f64) -> Amount) -> Vec<StageTraffic> {
    sums.into_iter().map(|((from, to), sum)| StageTraffic { from, to, amount: amount(sum) }).collect()
}

/// By node: the stage that holds it.
pub(super) fn stages_of(workload: &Workload, plan: &Plan) -> Vec<Option<usize>> {
    let mut stage_of = vec![None; workload.nodes.len()];
    for (i, stage) in plan.stages.iter().enumerate() {
        for &node in &stage.nodes {
            if let Some(slot) = stage_of.get_mut(node.index()) {
                *slot = Some(i);
            }
        }
    }
    stage_of
}

/// Runs of three or more nodes of one kind with similar costs. A cost is seconds, and parameters that must be equal.
pub(super) fn runs(workload: &Workload, cost: &dyn Fn(NodeIndex) -> Option<(f64, f64)>) -> Vec<Vec<NodeIndex>> {
    // Measured layers of one kind differ by a few percent.
    let near = |a: f64, b: f64| (a - b).abs() <= 0.05 * a.max(b);
    let alike = |a: NodeIndex, b: NodeIndex| {
        let same = match (cost(a), cost(b)) {
            (Some((a_s, a_parameters)), Some((b_s, b_parameters))) => a_parameters == b_parameters && near(a_s, b_s),
            _ => false,
        };
        same && kind(&workload.nodes[a].label()) == kind(&workload.nodes[b].label())
    };
    let mut runs = vec![];
    let mut rest = workload.indices().peekable();
    while let Some(first) = rest.next() {
        let mut run = vec![first];
        run.extend(std::iter::from_fn(|| rest.next_if(|&node| alike(first, node))));
        if run.len() >= 3 {
            runs.push(run);
        } else {
            runs.extend(run.into_iter().map(|node| vec![node]));
        }
    }
    runs
}

/// Detail of a node, shown beside its row.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// Sentence.
    Line(String),
    /// Row of a table of five columns: degree, mode, time, parameters, memory.
    Row {
        /// True for the row of titles.
        title: bool,
        /// Text of the columns.
        cells: [String; 5],
    },
}

/// Replaces the time for accelerators that cannot run a node.
pub const CPU_ONLY: &str = "CPU only";

/// Name of a node without the number at its end.
pub(crate) fn kind(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare = bare.trim_end_matches([' ', '_', '-', '.', '#', '/']);
    if bare.is_empty() { name } else { bare }
}

/// Value of a plan in one of its family's own figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyFigure {
    /// Value with its unit: `51.6 %`.
    pub value: String,
    /// Name for a line below the value: `MFU`.
    pub name: String,
    /// Name before the value in a line; empty if the value is clear without it.
    pub short: &'static str,
}

/// Remark on a choice, beside a name. Empty for the default choice.
fn remark(choice: &Choice) -> String {
    let plain = matches!(choice, Choice::Keep) || choice.mode() == Some(VANILLA);
    if plain { String::new() } else { choice.label() }
}

/// Words and columns of a family.
pub trait Describe {
    /// Titles and widths of the columns after a node's name.
    fn columns(&self) -> &'static [(&'static str, usize)];

    /// Values of a row for one node or a group. Similar layers show the cost of each, a class its sum.
    fn cells(&self, members: &[NodeIndex]) -> Vec<String>;

    /// Nodes by row of a list.
    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>>;

    /// Label of a row of several nodes.
    fn group_label(&self, workload: &Workload, members: &[NodeIndex]) -> String {
        format!("{} × {}", members.len(), kind(&workload.nodes[members[0]].label()))
    }

    /// Noun for nodes: layers of a network, unless they are smaller.
    fn nouns(&self) -> &'static str {
        "layers"
    }

    /// Size of the workload in words: nodes and edges, `37 layers` and `67 edges`.
    fn size(&self, workload: &Workload) -> Vec<String> {
        let noun = self.nouns().trim_end_matches('s');
        vec![units::counted(workload.nodes.len(), noun), units::counted(workload.dag.edges().len(), "edge")]
    }

    /// Number of nodes that count as layers: all, unless the family has an embedding and a head beside its layers.
    fn layers(&self, nodes: &[NodeIndex]) -> usize {
        nodes.len()
    }

    /// Value that bars compare: seconds of a node (on an accelerator, if one can run it). For operators, whose profile
    /// has no times, the number of operations.
    fn weight(&self, node: NodeIndex) -> f64;

    /// Name and formatter of that value.
    fn weight_format(&self) -> (&'static str, fn(f64) -> String) {
        ("time", units::seconds)
    }

    /// True if all devices share one stage, which has only one order of work.
    fn one_stage(&self) -> bool {
        false
    }

    /// All other facts of a node in the profile.
    fn details(&self, node: NodeIndex) -> Vec<Detail>;

    /// Summary in one line; may be empty.
    fn facts(&self) -> String {
        String::new()
    }

    /// Load of an edge.
    fn edge(&self, workload: &Workload, edge: usize) -> Amount;

    /// Title of an edge's figure.
    fn edge_title(&self) -> &'static str {
        "per microbatch"
    }

    /// Traffic between the stages of a plan, by pair. `O((nodes + edges) log stages)`.
    fn flows(&self, workload: &Workload, plan: &Plan) -> Vec<StageTraffic>;

    /// Subject of those figures.
    fn flows_of(&self) -> &'static str {
        "activations of a microbatch"
    }

    /// Simulated batch of a plan, in words: `32 microbatches`.
    fn batch(&self, limits: &Limits) -> String {
        format!("{} microbatches", limits.microbatches)
    }

    /// Number of parts of a batch whose time may measure a plan: microbatches, or samples.
    fn parts_of_a_batch(&self, limits: &Limits) -> u32 {
        limits.microbatches
    }

    /// Unit of work for a stage's times: a sample of the profile, a microbatch on each replica, a step of all
    /// operators.
    fn times_of(&self) -> &'static str {
        "sample"
    }

    /// Plan in the family's own figures, one per line, with a short form of the plan first: throughput, utilisation,
    /// reliability. Empty if the measure suffices.
    fn plan_facts(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Vec<String> {
        let _ = (workload, limits, plan);
        vec![]
    }

    /// Same figures for programs, if the family predicts more than the simulated time.
    fn prediction(&self, limits: &Limits, plan: &Plan) -> Option<PredictionPart> {
        let _ = (limits, plan);
        None
    }

    /// True if the family has such predictions for its plans.
    fn predicts(&self) -> bool {
        false
    }

    /// Parts of an iteration that mixtures of experts add to their products, as shares of its time: name and share. Empty
    /// without experts.
    fn expert_shares(&self, _limits: &Limits, _plan: &Plan) -> Vec<(&'static str, f64)> {
        vec![]
    }

    /// Single figures for one line, the most important first. Empty if the simulated time suffices.
    fn plan_figures(&self, limits: &Limits, plan: &Plan) -> Vec<FamilyFigure> {
        let _ = (limits, plan);
        vec![]
    }

    /// Rows inside a stage, as positions in its list of nodes: single nodes, and runs of three or more similar ones.
    fn stage_groups(&self, workload: &Workload, stage: &Stage) -> Vec<Vec<usize>> {
        let name = |i: usize| workload.nodes[stage.nodes[i]].label();
        let alike = |a: usize, b: usize| kind(&name(a)) == kind(&name(b)) && stage.choices[a] == stage.choices[b];
        let mut groups = vec![];
        let mut first = 0;
        while first < stage.nodes.len() {
            let end = (first + 1..stage.nodes.len()).find(|&i| !alike(first, i)).unwrap_or(stage.nodes.len());
            if end - first >= 3 {
                groups.push((first..end).collect());
            } else {
                groups.extend((first..end).map(|i| vec![i]));
            }
            first = end;
        }
        groups
    }

    /// Label of such a row of several nodes, and a remark.
    fn stage_group_label(&self, workload: &Workload, stage: &Stage, places: &[usize]) -> (String, String) {
        let name = workload.nodes[stage.nodes[places[0]]].label();
        (format!("{} × {}", places.len(), kind(&name)), remark(&stage.choices[places[0]]))
    }

    /// Remark on a single node of a stage, by its position.
    fn node_remark(&self, stage: &Stage, place: usize) -> String {
        remark(&stage.choices[place])
    }

    /// True if a node belongs to the backward pass.
    fn is_backward(&self, node: NodeIndex) -> bool {
        let _ = node;
        false
    }

    /// True if a plan is one configuration, from which all stages follow.
    fn plans_are_configurations(&self) -> bool {
        false
    }

    /// True if a node counts as a layer. Nodes before the first and after the last layer do not.
    fn is_layer(&self, node: NodeIndex) -> bool {
        let _ = node;
        true
    }

    /// Name of the kind of device that a stage is on, where there are several.
    fn stage_kind(&self, stage: &Stage) -> Option<&str> {
        let _ = stage;
        None
    }

    /// True if a stage is one device, and has the name of the device.
    fn stages_are_devices(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_end_are_no_part_of_the_kind() {
        assert_eq!(kind("transformer 12"), "transformer");
        assert_eq!(kind("block.3"), "block");
        assert_eq!(kind("conv2d_4"), "conv2d");
        assert_eq!(kind("17"), "17");
    }
}
