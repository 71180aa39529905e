//! With which columns and words nodes, edges and stages of a family are shown, whatever shows them.

use std::collections::BTreeMap;

use crate::{
    cluster::Limits,
    plan::{Plan, Stage, document::PredictionPart},
    units,
    workload::{Choice, NodeIndex, Workload, piper::VANILLA},
};

/// How much an edge or a link carries: as the profile states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(f64),
    /// Time on a link, seconds.
    Seconds(f64),
}

impl Amount {
    /// Without its unit; those of one workload have the same.
    pub fn value(self) -> f64 {
        match self {
            Amount::Bytes(value) | Amount::Seconds(value) => value,
        }
    }

    /// Another value of the same kind.
    #[must_use]
    pub fn with(self, value: f64) -> Amount {
        match self {
            Amount::Bytes(_) => Amount::Bytes(value),
            Amount::Seconds(_) => Amount::Seconds(value),
        }
    }

    /// With its unit.
    pub fn text(self) -> String {
        match self {
            Amount::Bytes(bytes) => units::bytes(bytes),
            Amount::Seconds(seconds) => units::seconds(seconds),
        }
    }
}

/// What goes from one stage to another for one sample or microbatch, forward and backward pass together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// The stage that produces.
    pub from: usize,
    /// The stage that reads.
    pub to: usize,
    /// How much.
    pub amount: Amount,
}

/// The sums of what pairs of stages send one another.
pub(super) fn flows(sums: BTreeMap<(usize, usize), f64>, amount: fn(f64) -> Amount) -> Vec<Flow> {
    sums.into_iter().map(|((from, to), sum)| Flow { from, to, amount: amount(sum) }).collect()
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

/// Runs of three or more nodes of one kind and about one cost: seconds, and parameters that must be equal.
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

/// What is said of a node beside its row.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// A sentence.
    Line(String),
    /// A row of a table of five columns: degree, mode, time, parameters, memory.
    Row {
        /// Whether these are the titles.
        title: bool,
        /// The columns.
        cells: [String; 5],
    },
}

/// What is said instead of a time on accelerators that cannot run a node.
pub const CPU_ONLY: &str = "CPU only";

/// A node's name without the number at its end.
pub(crate) fn kind(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare = bare.trim_end_matches([' ', '_', '-', '.', '#', '/']);
    if bare.is_empty() { name } else { bare }
}

/// What a plan is worth in one of its family's own figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The value with its unit: `51.6 %`.
    pub value: String,
    /// What it is, for a line below the value: `MFU`.
    pub name: String,
    /// What it is, where it stands before the value in a line; empty where the value says it.
    pub short: &'static str,
}

/// What there is to say of a choice beside a name: nothing of what is done where nobody asks for more.
fn remark(choice: &Choice) -> String {
    let plain = matches!(choice, Choice::Keep) || choice.mode() == Some(VANILLA);
    if plain { String::new() } else { choice.told() }
}

/// The words and columns of a family.
pub trait Describe {
    /// Titles and widths of the columns after a node's name.
    fn columns(&self) -> &'static [(&'static str, usize)];

    /// The values of a row, those of one node or of a group. Like layers show what each of them costs, a class its sum.
    fn cells(&self, members: &[NodeIndex]) -> Vec<String>;

    /// Nodes by row of a list.
    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>>;

    /// What a row of several nodes is called.
    fn group_label(&self, workload: &Workload, members: &[NodeIndex]) -> String {
        format!("{} × {}", members.len(), kind(&workload.nodes[members[0]].label()))
    }

    /// What nodes are, in words: layers of a network, unless they are smaller.
    fn nouns(&self) -> &'static str {
        "layers"
    }

    /// What bars compare: how long a node takes, seconds (on an accelerator, if one can run it); for operators, whose
    /// profile has no times, their operations.
    fn weight(&self, node: NodeIndex) -> f64;

    /// What that is, and how it is told.
    fn weight_told(&self) -> (&'static str, fn(f64) -> String) {
        ("time", units::seconds)
    }

    /// Whether all devices share one stage, whose order of work is the only one.
    fn one_stage(&self) -> bool {
        false
    }

    /// Everything else the profile says of a node.
    fn details(&self, node: NodeIndex) -> Vec<Detail>;

    /// The whole in one line; may be empty.
    fn facts(&self) -> String {
        String::new()
    }

    /// What an edge carries.
    fn edge(&self, workload: &Workload, edge: usize) -> Amount;

    /// What the figure of an edge is.
    fn edge_title(&self) -> &'static str {
        "per microbatch"
    }

    /// What the stages of a plan send one another, by pair. `O((nodes + edges) log stages)`.
    fn flows(&self, workload: &Workload, plan: &Plan) -> Vec<Flow>;

    /// What those figures are of.
    fn flows_of(&self) -> &'static str {
        "activations of a microbatch"
    }

    /// What is simulated of a plan, in words: `32 microbatches`.
    fn batch(&self, limits: &Limits) -> String {
        format!("{} microbatches", limits.microbatches)
    }

    /// How many parts a batch has whose time a plan may be measured by: microbatches, or samples.
    fn parts_of_a_batch(&self, limits: &Limits) -> u32 {
        limits.microbatches
    }

    /// What the times of a stage are of: a sample of the profile, a microbatch on each replica, a step of all operators.
    fn times_of(&self) -> &'static str {
        "sample"
    }

    /// What a plan is worth in the family's own figures, a line each, the plan itself in few words first: throughput,
    /// utilisation, how far to trust them. Empty where the measure says all.
    fn plan_facts(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Vec<String> {
        let _ = (workload, limits, plan);
        vec![]
    }

    /// The same for programs, where the family predicts more than the simulated time.
    fn prediction(&self, limits: &Limits, plan: &Plan) -> Option<PredictionPart> {
        let _ = (limits, plan);
        None
    }

    /// Whether there are such predictions of plans of this kind.
    fn predicts(&self) -> bool {
        false
    }

    /// The same as single figures for a line of them, a value and what it is, the most wanted first. Empty where the
    /// simulated time says all.
    fn plan_figures(&self, limits: &Limits, plan: &Plan) -> Vec<Figure> {
        let _ = (limits, plan);
        vec![]
    }

    /// What has a row of its own inside a stage, as places in its list of nodes: single nodes, and runs of three or more
    /// that are alike.
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

    /// What such a row of several nodes is called, and a remark.
    fn stage_group_label(&self, workload: &Workload, stage: &Stage, places: &[usize]) -> (String, String) {
        let name = workload.nodes[stage.nodes[places[0]]].label();
        (format!("{} × {}", places.len(), kind(&name)), remark(&stage.choices[places[0]]))
    }

    /// The remark of a single node of a stage, by its place.
    fn node_remark(&self, stage: &Stage, place: usize) -> String {
        remark(&stage.choices[place])
    }

    /// Whether a node is of the backward pass.
    fn is_backward(&self, node: NodeIndex) -> bool {
        let _ = node;
        false
    }

    /// Whether a plan is one configuration, from which all stages follow.
    fn plans_are_configurations(&self) -> bool {
        false
    }

    /// Whether a node is counted among the layers: what stands before the first and after the last is not.
    fn is_layer(&self, node: NodeIndex) -> bool {
        let _ = node;
        true
    }

    /// Whether a stage is one device, and is called as the device is.
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
