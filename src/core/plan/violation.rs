//! The rules that a plan may break, each told in one sentence with the figures that matter.

use std::fmt;

use crate::{units, workload::NodeIndex};

/// A rule that a plan breaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// No stage at all.
    Empty,
    /// The workload's profile cannot score pipeline stages.
    NoProfile,
    /// Plans of this workload cannot be measured by what the plan says.
    UnknownMeasure {
        /// What the plan says.
        name: &'static str,
    },
    /// A node is in no stage.
    Unassigned {
        /// Label of the node.
        node: String,
    },
    /// A node is in two stages.
    Repeated {
        /// Label of the node.
        node: String,
        /// The second stage, from 1.
        stage: usize,
    },
    /// An index that is no node.
    UnknownNode {
        /// The index.
        node: NodeIndex,
        /// The stage, from 1.
        stage: usize,
    },
    /// A degree of 0.
    ZeroDegree {
        /// The stage, from 1.
        stage: usize,
    },
    /// Replicas that do not divide the microbatches.
    Indivisible {
        /// The stage, from 1.
        stage: usize,
        /// Its replicas.
        data_parallel: u32,
        /// Microbatches in a batch.
        microbatches: u32,
    },
    /// More replicas in all than microbatches.
    TooManyReplicas {
        /// Sum of all replicas.
        replicas: u32,
        /// Microbatches in a batch.
        microbatches: u32,
    },
    /// More devices than there are.
    TooManyDevices {
        /// Devices the plan takes.
        used: u32,
        /// Devices there are.
        devices: u32,
    },
    /// The schedule that the plan says it runs cannot be run by it.
    Schedule {
        /// Id of the schedule.
        schedule: &'static str,
        /// What it needs that the plan has not.
        needs: String,
    },
    /// More CPUs than there are.
    TooManyCpus {
        /// CPUs the plan takes.
        used: u32,
        /// CPUs there are.
        cpus: u32,
    },
    /// Nodes of one colour class are on two devices.
    TornClass {
        /// The class.
        class: i64,
        /// Label of a node of it.
        node: String,
        /// That node's stage, from 1.
        stage: usize,
        /// The stage of the class's other nodes, from 1.
        other: usize,
    },
    /// The stage's device list does not fit its degrees.
    DeviceList {
        /// The stage, from 1.
        stage: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The node has no such mode at the stage's tensor degree.
    UnknownChoice {
        /// The stage, from 1.
        stage: usize,
        /// Label of the node.
        node: String,
        /// The mode asked for.
        choice: String,
        /// The stage's tensor degree.
        tensor_parallel: u32,
    },
    /// Operators are split over one set of devices, so there is one stage.
    SeveralStages {
        /// Stages there are.
        stages: usize,
    },
    /// An operator cannot be split so.
    BadSplit {
        /// Label of the operator.
        node: String,
        /// The split asked for.
        split: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A choice is missing, or there is one too many.
    ChoiceCount {
        /// The stage, from 1.
        stage: usize,
        /// Nodes in it.
        nodes: usize,
        /// Choices in it.
        choices: usize,
    },
    /// An edge from a later to an earlier stage.
    Backwards {
        /// Label of the edge's source.
        from: String,
        /// Label of its destination.
        to: String,
        /// The source's stage, from 1.
        from_stage: usize,
        /// The destination's stage, from 1.
        to_stage: usize,
    },
    /// More subgraphs on an accelerator than it may run.
    TooManySubgraphs {
        /// The accelerator's number.
        device: u32,
        /// Stages on it.
        used: usize,
        /// Most of them.
        most: u32,
    },
    /// Parts of the plan wait for one another, so that none can start.
    Circle {
        /// What they are called, each waiting for the next.
        parts: Vec<String>,
    },
    /// The stages on one device need more memory than it has.
    SharedMemory {
        /// The stages, from 1.
        stages: Vec<usize>,
        /// Bytes they need.
        needed_bytes: f64,
        /// Bytes a device has.
        limit_bytes: f64,
    },
    /// A training engine refuses the configuration.
    Refused {
        /// Its rule, and what would do.
        rule: String,
    },
    /// A stage is not what the configuration makes of it.
    NotConfigured {
        /// The stage, from 1.
        stage: usize,
        /// What differs.
        problem: String,
    },
    /// A stage needs more memory than a device has.
    OutOfMemory {
        /// The stage, from 1.
        stage: usize,
        /// Bytes it needs.
        needed_bytes: f64,
        /// Bytes a device has.
        limit_bytes: f64,
    },
}

impl Violation {
    /// The stages it speaks of, from 1; none where it speaks of the whole plan.
    pub fn stages(&self) -> Vec<usize> {
        match self {
            Violation::Repeated { stage, .. }
            | Violation::UnknownNode { stage, .. }
            | Violation::ZeroDegree { stage }
            | Violation::Indivisible { stage, .. }
            | Violation::TornClass { stage, .. }
            | Violation::DeviceList { stage, .. }
            | Violation::UnknownChoice { stage, .. }
            | Violation::ChoiceCount { stage, .. }
            | Violation::NotConfigured { stage, .. }
            | Violation::OutOfMemory { stage, .. } => vec![*stage],
            Violation::Backwards { from_stage, to_stage, .. } => vec![*to_stage, *from_stage],
            Violation::SharedMemory { stages, .. } => stages.clone(),
            _ => vec![],
        }
    }
}

/// Parts of a circle that a message names.
const PARTS_SHOWN: usize = 6;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Empty => write!(f, "the plan has no stages"),
            Violation::NoProfile => write!(f, "the workload's profile has no costs for pipeline stages"),
            Violation::UnknownMeasure { name } => {
                write!(f, "the plan is measured by {name}, which this workload's profile does not tell")
            }
            Violation::Unassigned { node } => write!(f, "{node} is in no stage"),
            Violation::Repeated { node, stage } => write!(f, "stage {stage}: {node} is in an earlier stage already"),
            Violation::UnknownNode { node, stage } => write!(f, "stage {stage}: there is no node {node}"),
            Violation::ZeroDegree { stage } => {
                write!(f, "stage {stage}: data and tensor parallel degrees must be at least 1")
            }
            Violation::Indivisible { stage, data_parallel, microbatches } => {
                write!(f, "stage {stage}: {data_parallel} replicas do not divide {microbatches} microbatches")
            }
            Violation::TooManyReplicas { replicas, microbatches } => {
                write!(f, "{replicas} replicas in all, but only {microbatches} microbatches in a batch")
            }
            Violation::TooManyDevices { used, devices } => {
                write!(f, "uses {used} devices, but there are only {devices}")
            }
            Violation::Schedule { schedule, needs } => {
                write!(f, "is made for the schedule {schedule}, which needs {needs}")
            }
            Violation::TooManyCpus { used, cpus } => write!(f, "uses {used} CPUs, but there are only {cpus}"),
            Violation::TornClass { class, node, stage, other } => {
                write!(f, "stage {stage}: {node} belongs to colour class {class}, which is on stage {other}")
            }
            Violation::DeviceList { stage, problem } => write!(f, "stage {stage}: {problem}"),
            Violation::UnknownChoice { stage, node, choice, tensor_parallel } => {
                write!(f, "stage {stage}: {node} has no mode `{choice}` at tensor degree {tensor_parallel}")
            }
            Violation::SeveralStages { stages } => {
                write!(f, "has {stages} stages, but operators are split over one set of devices: it needs 1")
            }
            Violation::BadSplit { node, split, problem } => write!(f, "{node}: the split `{split}` {problem}"),
            Violation::ChoiceCount { stage, nodes, choices } => {
                write!(f, "stage {stage}: {choices} choices for {nodes} nodes")
            }
            Violation::Backwards { from, to, from_stage, to_stage } => {
                write!(f, "the edge {from} -> {to} goes back from stage {from_stage} to stage {to_stage}")
            }
            Violation::TooManySubgraphs { device, used, most } => {
                write!(f, "accelerator {device} runs {used} subgraphs, but only {most} are allowed")
            }
            Violation::Circle { parts } => {
                let shown = parts[..parts.len().min(PARTS_SHOWN)].join(", ");
                let more = parts.len().saturating_sub(PARTS_SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(f, "these wait for one another, so that none can start: {shown}{more}")
            }
            Violation::SharedMemory { stages, needed_bytes, limit_bytes } => {
                let (last, others) = stages.split_last().map_or((&0, &stages[..]), |both| both);
                let others: Vec<String> = others.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "stages {} and {last} share a device and need {} there, the limit is {}: {} too much",
                    others.join(", "),
                    units::bytes_like(*needed_bytes, *limit_bytes),
                    units::bytes_exact(*limit_bytes),
                    units::bytes_like(needed_bytes - limit_bytes, *limit_bytes)
                )
            }
            Violation::Refused { rule } => f.write_str(rule),
            Violation::NotConfigured { stage, problem } => {
                write!(f, "stage {stage}: {problem}; the configuration says otherwise")
            }
            Violation::OutOfMemory { stage, needed_bytes, limit_bytes } => {
                write!(
                    f,
                    "stage {stage} needs {} per device, the limit is {}: {} too much",
                    units::bytes_like(*needed_bytes, *limit_bytes),
                    units::bytes_exact(*limit_bytes),
                    units::bytes_like(needed_bytes - limit_bytes, *limit_bytes)
                )
            }
        }
    }
}
