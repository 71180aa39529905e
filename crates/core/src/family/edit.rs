//! Hand edits: one small change of a plan, such as moving a node to the next stage or adding a replica.
//!
//! An [`Edit`] is data. [`apply`] makes a new plan from it, or gives the reason for refusal in a sentence.
//! [`check`](crate::family::check()) can score every new plan. A new plan may break limits, so that the user sees by
//! how much a stage exceeds them. An edit that leaves no pipeline at all (a backward edge, a mode that a node does not
//! offer, an empty stage) is refused. The effect of an edit depends on the profile:
//!
//! | | Piper's profile | device placement | layer-wise profile | operators |
//! |---|---|---|---|---|
//! | boundary, move | keeps edges forward | colour classes stay whole | by states if the length counts them | refused |
//! | replicas | divide the microbatches | refused | one device more or less | refused |
//! | tensor degree | what all nodes offer | refused | refused | refused |
//! | choice | the node's next mode | refused | the whole stage recomputes or not | the next split |
//! | merge | degrees of the first | kind of the first | devices of both | refused |
//! | split | both keep the degrees | a free device of the kind | the devices are divided | refused |
//!
//! A plan of a training workload is one configuration for all stages, and an edit changes it as a whole
//! (`training_edit`).
//!
//! Consecutive device numbers 0, 1, 2, .. stay consecutive. Otherwise a growing stage takes the smallest free numbers
//! and a shrinking one releases its last, so that an edit and its inverse cancel. `O(nodes + edges)` per edit.

mod choices;
mod cut;
mod degrees;
mod moves;
mod states;

use thiserror::Error;

use super::training_edit;
use crate::{
    cluster::Limits,
    plan::{Basis, Measure, Plan, Stage},
    workload::{Choice, NodeIndex, Profile, Workload},
};

/// One change of a plan. Stages are indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Moves the boundary behind a stage (before it, for the last) by one node.
    Boundary {
        /// Stage whose boundary moves.
        stage: usize,
        /// True towards the last stage: the node moves from the later stage to the earlier one.
        forwards: bool,
    },
    /// Moves nodes of one stage to another.
    Move {
        /// Nodes to move.
        nodes: Vec<NodeIndex>,
        /// Target stage.
        to: usize,
    },
    /// Changes the number of replicas.
    DataParallel {
        /// Stage to change.
        stage: usize,
        /// True for more replicas.
        up: bool,
    },
    /// Changes the tensor-parallel degree.
    TensorParallel {
        /// Stage to change.
        stage: usize,
        /// True for a larger degree.
        up: bool,
    },
    /// Takes the next or previous of the modes or splits that nodes offer, cyclically.
    Choice {
        /// Nodes of one stage. If they differ, all follow the first.
        nodes: Vec<NodeIndex>,
        /// True for the next.
        forwards: bool,
    },
    /// Merges a stage with the one behind it.
    Merge {
        /// Earlier stage.
        stage: usize,
    },
    /// Splits a stage in two.
    Split {
        /// Stage to split.
        stage: usize,
        /// First node of the second part.
        at: NodeIndex,
    },
}

/// Result of an edit.
#[derive(Debug, Clone, PartialEq)]
pub struct EditResult {
    /// New plan.
    pub plan: Plan,
    /// Description of the edit, in a few words.
    pub what: String,
}

/// Reason for refusing an edit, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EditError(pub String);

type Result<T> = std::result::Result<T, EditError>;

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(EditError(why.into()))
}

/// Applies an edit.
///
/// # Errors
/// [`EditError`] if the edit would leave no plan, would change nothing, or does not apply to plans of this workload.
pub fn apply(workload: &Workload, limits: &Limits, plan: &Plan, edit: &Edit) -> Result<EditResult> {
    if let Some(profile) = workload.training() {
        return training_edit::apply(profile, limits, plan, edit);
    }
    let desk = EditContext::new(workload, limits, plan)?;
    match edit {
        Edit::Boundary { stage, forwards } => desk.boundary(*stage, *forwards),
        Edit::Move { nodes, to } => desk.move_nodes(nodes, *to),
        Edit::DataParallel { stage, up } => desk.data_parallel(*stage, *up),
        Edit::TensorParallel { stage, up } => desk.tensor_parallel(*stage, *up),
        Edit::Choice { nodes, forwards } => desk.choose(nodes, *forwards),
        Edit::Merge { stage } => desk.merge(*stage),
        Edit::Split { stage, at } => desk.split(*stage, *at),
    }
}

/// Refusal for a training workload's stages, which follow from one configuration.
const WHOLE: &str = "a layout is changed as a whole";
/// Reason why a stage on one of several kinds of devices has no degrees and no mode of its own.
const ALL_STAGES: &str = "all stages share replicas and micro-batch: change the number of devices of a kind instead";

/// Plan during an edit, with the data that edits share.
struct EditContext<'a> {
    workload: &'a Workload,
    limits: &'a Limits,
    plan: &'a Plan,
    /// Stage of every node.
    stage_of: Vec<usize>,
    /// Position of every node in a topological order.
    place: Vec<usize>,
    /// True if the stages' devices are numbered consecutively.
    consecutive: bool,
}

impl<'a> EditContext<'a> {
    fn new(workload: &'a Workload, limits: &'a Limits, plan: &'a Plan) -> Result<Self> {
        let mut stage_of = vec![usize::MAX; workload.nodes.len()];
        let mut whole = true;
        for (i, stage) in plan.stages.iter().enumerate() {
            whole &= stage.nodes.len() == stage.choices.len() && !stage.nodes.is_empty();
            for &node in &stage.nodes {
                match stage_of.get_mut(node.index()) {
                    Some(slot) if *slot == usize::MAX => *slot = i,
                    _ => whole = false,
                }
            }
        }
        if !whole || stage_of.contains(&usize::MAX) {
            return refuse("the plan does not hold every node once, so it cannot be edited");
        }
        let mut place = vec![0; workload.nodes.len()];
        for (at, node) in workload.topological_order().enumerate() {
            place[node.index()] = at;
        }
        let consecutive = workload.piper().is_some() && *plan == plan.clone().with_consecutive_devices();
        Ok(EditContext { workload, limits, plan, stage_of, place, consecutive })
    }

    /// Label of a node in messages.
    fn label(&self, node: NodeIndex) -> String {
        self.workload.nodes[node].numbered()
    }

    /// Label of nodes in messages: the only one, or their number with the first and last.
    fn labels(&self, nodes: &[NodeIndex]) -> String {
        let id = |node: NodeIndex| self.workload.nodes[node].id;
        match *nodes {
            [node] => self.label(node),
            [first, second] => format!("{} and {}", self.label(first), self.label(second)),
            [first, .., last] => format!("{} nodes, #{} to #{}", nodes.len(), id(first), id(last)),
            [] => "no node".into(),
        }
    }

    fn stage(&self, stage: usize) -> Result<&'a Stage> {
        self.plan.stages.get(stage).ok_or_else(|| EditError(format!("there is no stage {}", stage + 1)))
    }

    /// Stage that contains all of these nodes.
    fn home(&self, nodes: &[NodeIndex]) -> Result<usize> {
        let mut stages = nodes.iter().map(|node| self.stage_of.get(node.index()).copied());
        let Some(Some(first)) = stages.next() else { return refuse("there is no such node") };
        if stages.all(|stage| stage == Some(first)) { Ok(first) } else { refuse("these nodes are not of one stage") }
    }

    /// True if the plan's value is computed over the states of a layer-wise profile.
    fn counts_states(&self) -> bool {
        match self.plan.measure {
            Measure::Speedup(model) => matches!(model.length, crate::plan::Length::Published { .. }),
            _ => false,
        }
    }

    fn operators(&self) -> bool {
        matches!(self.workload.profile, Profile::Operators(_))
    }

    /// Edited plan, with consecutive device numbers if the old plan had them.
    fn done(&self, mut plan: Plan, what: impl Into<String>) -> Result<EditResult> {
        if self.consecutive {
            plan = plan.with_consecutive_devices();
        }
        if !self.counts_states() {
            // The nodes alone determine a stage.
            if let Basis::States(_) = plan.basis {
                plan.basis = Basis::Nodes;
            }
        }
        Ok(EditResult { plan, what: what.into() })
    }

    /// Smallest `count` device numbers from `first` on that no stage uses.
    fn free_devices(&self, first: u32, count: u32) -> Vec<u32> {
        let taken: std::collections::BTreeSet<u32> =
            self.plan.stages.iter().flat_map(|stage| stage.devices.iter().copied()).collect();
        (first..).filter(|device| !taken.contains(device)).take(count as usize).collect()
    }
}

/// Adds nodes with their choices to a stage, which stays sorted.
fn add(stage: &mut Stage, more: impl IntoIterator<Item = (NodeIndex, Choice)>) {
    let nodes = std::mem::take(&mut stage.nodes);
    let mut pairs: Vec<(NodeIndex, Choice)> = nodes.into_iter().zip(std::mem::take(&mut stage.choices)).collect();
    pairs.extend(more);
    pairs.sort();
    (stage.nodes, stage.choices) = pairs.into_iter().unzip();
}

/// Removes nodes with their choices from a stage.
fn take(stage: &mut Stage, leaves: impl Fn(NodeIndex) -> bool) -> Vec<(NodeIndex, Choice)> {
    let nodes = std::mem::take(&mut stage.nodes);
    let pairs = nodes.into_iter().zip(std::mem::take(&mut stage.choices));
    let (gone, left): (Vec<_>, Vec<_>) = pairs.partition(|(node, _)| leaves(*node));
    (stage.nodes, stage.choices) = left.into_iter().unzip();
    gone
}
