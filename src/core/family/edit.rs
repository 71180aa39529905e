//! Hand edits: one small change of a plan, such as a node that goes to the next stage or one replica more.
//!
//! An [`Edit`] is data; [`apply`] makes a new plan of it or says in a sentence why not. A new plan is always one that
//! [`check`](crate::family::check()) can score, but need not keep the limits: who edits wants to see by how much a stage no
//! longer fits. What would leave no pipeline at all (an edge that goes backwards, a node in a mode it does not offer, an
//! empty stage) is refused instead. What an edit means differs by profile:
//!
//! | | Piper's profile | device placement | layer-wise profile | operators |
//! |---|---|---|---|---|
//! | boundary, move | keeps edges forward | colour classes stay whole | by states where the length counts them | refused |
//! | replicas | divide the microbatches | refused | one device more or less | refused |
//! | tensor degree | what all nodes offer | refused | refused | refused |
//! | choice | the node's next mode | refused | the whole stage recomputes or not | the next split |
//! | merge | degrees of the first | kind of the first | devices of both | refused |
//! | split | both keep the degrees | a free device of the kind | the devices are shared out | refused |
//!
//! Plans of training workloads are one configuration for all stages, and so are their edits (`training_edit`).
//!
//! Device numbers stay 0, 1, 2, .. through the stages only if they were so before; else a stage that grows
//! takes the smallest free numbers and one that shrinks gives back its last, so that there and back is where it began.
//! `O(nodes + edges)` for each edit.

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
    /// The boundary behind a stage (before it, for the last) moves by one node.
    Boundary {
        /// The stage.
        stage: usize,
        /// Towards the last stage: the node comes from the later stage to the earlier one.
        forwards: bool,
    },
    /// Nodes of one stage go to another.
    Move {
        /// The nodes.
        nodes: Vec<NodeIndex>,
        /// The stage they go to.
        to: usize,
    },
    /// More or fewer replicas.
    DataParallel {
        /// The stage.
        stage: usize,
        /// Whether more.
        up: bool,
    },
    /// A larger or smaller tensor-parallel degree.
    TensorParallel {
        /// The stage.
        stage: usize,
        /// Whether larger.
        up: bool,
    },
    /// The next or previous of the modes or splits that nodes offer, going round.
    Choice {
        /// The nodes, of one stage; where they differ they follow the first.
        nodes: Vec<NodeIndex>,
        /// Whether the next.
        forwards: bool,
    },
    /// A stage and the one behind it become one.
    Merge {
        /// The earlier stage.
        stage: usize,
    },
    /// A stage becomes two.
    Split {
        /// The stage.
        stage: usize,
        /// The node with which the second part begins.
        at: NodeIndex,
    },
}

/// A plan after an edit.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    /// The new plan.
    pub plan: Plan,
    /// What was done, in a few words.
    pub what: String,
}

/// Why an edit cannot be done, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

type Result<T> = std::result::Result<T, Refused>;

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Refused(why.into()))
}

/// Does an edit.
///
/// # Errors
/// [`Refused`] if the edit would leave no plan, would change nothing, or means nothing for plans of this workload.
pub fn apply(workload: &Workload, limits: &Limits, plan: &Plan, edit: &Edit) -> Result<Edited> {
    if let Some(profile) = workload.training() {
        return training_edit::apply(profile, limits, plan, edit);
    }
    let desk = Desk::new(workload, limits, plan)?;
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

/// What is said of a training workload's stages, which follow from one configuration.
const WHOLE: &str = "a training configuration is changed as a whole";

/// A plan that is being edited, with what every edit asks for.
struct Desk<'a> {
    workload: &'a Workload,
    limits: &'a Limits,
    plan: &'a Plan,
    /// The stage of every node.
    stage_of: Vec<usize>,
    /// The place of every node in a topological order.
    place: Vec<usize>,
    /// Whether the stages' devices are numbered one after the other.
    consecutive: bool,
}

impl<'a> Desk<'a> {
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
        Ok(Desk { workload, limits, plan, stage_of, place, consecutive })
    }

    /// What messages call a node.
    fn label(&self, node: NodeIndex) -> String {
        self.workload.nodes[node].numbered()
    }

    /// What messages call nodes: the only one, or how many and the first and last of them.
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
        self.plan.stages.get(stage).ok_or_else(|| Refused(format!("there is no stage {}", stage + 1)))
    }

    /// The stage that all of these nodes are in.
    fn home(&self, nodes: &[NodeIndex]) -> Result<usize> {
        let mut stages = nodes.iter().map(|node| self.stage_of.get(node.index()).copied());
        let Some(Some(first)) = stages.next() else { return refuse("there is no such node") };
        if stages.all(|stage| stage == Some(first)) { Ok(first) } else { refuse("these nodes are not of one stage") }
    }

    /// Whether what comes of an edit is counted over the states of a layer-wise profile.
    fn counts_states(&self) -> bool {
        match self.plan.measure {
            Measure::Speedup(model) => matches!(model.length, crate::plan::Length::Published { .. }),
            _ => false,
        }
    }

    fn operators(&self) -> bool {
        matches!(self.workload.profile, Profile::Operators(_))
    }

    /// The new plan with devices numbered as they were.
    fn done(&self, mut plan: Plan, what: impl Into<String>) -> Result<Edited> {
        if self.consecutive {
            plan = plan.with_consecutive_devices();
        }
        if !self.counts_states() {
            // The nodes alone say what a stage is.
            if let Basis::States(_) = plan.basis {
                plan.basis = Basis::Nodes;
            }
        }
        Ok(Edited { plan, what: what.into() })
    }

    /// The smallest numbers of devices that no stage has, `count` of them; `first` and all after it are looked at.
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

/// Takes nodes with their choices out of a stage.
fn take(stage: &mut Stage, leaves: impl Fn(NodeIndex) -> bool) -> Vec<(NodeIndex, Choice)> {
    let nodes = std::mem::take(&mut stage.nodes);
    let pairs = nodes.into_iter().zip(std::mem::take(&mut stage.choices));
    let (gone, left): (Vec<_>, Vec<_>) = pairs.partition(|(node, _)| leaves(*node));
    (stage.nodes, stage.choices) = left.into_iter().unzip();
    gone
}
