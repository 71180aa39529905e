//! Rules that a plan may break, each shown as one sentence with its figures.

use std::fmt;

use crate::{units, workload::NodeIndex};

/// Rule that a plan breaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// No stages.
    Empty,
    /// The workload's profile cannot score pipeline stages.
    NoProfile,
    /// The workload's profile cannot compute the plan's measure.
    UnknownMeasure {
        /// Measure of the plan.
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
    /// Node index out of range.
    UnknownNode {
        /// The index.
        node: NodeIndex,
        /// The stage, from 1.
        stage: usize,
    },
    /// Degree of 0.
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
    /// More replicas in total than microbatches.
    TooManyReplicas {
        /// Sum of all replicas.
        replicas: u32,
        /// Microbatches in a batch.
        microbatches: u32,
    },
    /// More devices than available.
    TooManyDevices {
        /// Devices of the plan.
        used: u32,
        /// Devices available.
        devices: u32,
    },
    /// The plan cannot run its own schedule.
    Schedule {
        /// Id of the schedule.
        schedule: &'static str,
        /// Requirement that the plan lacks.
        needs: String,
    },
    /// More CPUs than available.
    TooManyCpus {
        /// CPUs of the plan.
        used: u32,
        /// CPUs available.
        cpus: u32,
    },
    /// Nodes of one colour class are on two devices.
    TornClass {
        /// The class.
        class: i64,
        /// Label of one of its nodes.
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
        /// Problem of the list.
        problem: String,
    },
    /// The node has no such mode at the stage's tensor degree.
    UnknownChoice {
        /// The stage, from 1.
        stage: usize,
        /// Label of the node.
        node: String,
        /// Requested mode.
        choice: String,
        /// The stage's tensor degree.
        tensor_parallel: u32,
    },
    /// Several stages, although operators are split over one set of devices.
    SeveralStages {
        /// Number of stages.
        stages: usize,
    },
    /// Impossible split of an operator.
    BadSplit {
        /// Label of the operator.
        node: String,
        /// Requested split.
        split: String,
        /// Problem of the split.
        problem: String,
    },
    /// Number of choices differs from the number of nodes.
    ChoiceCount {
        /// The stage, from 1.
        stage: usize,
        /// Nodes in it.
        nodes: usize,
        /// Choices in it.
        choices: usize,
    },
    /// Edge from a later to an earlier stage.
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
    /// More subgraphs on an accelerator than allowed.
    TooManySubgraphs {
        /// The accelerator's number.
        device: u32,
        /// Stages on it.
        used: usize,
        /// Maximum number of stages.
        most: u32,
    },
    /// Parts of the plan wait for one another in a cycle.
    Circle {
        /// Labels of the parts, each waiting for the next.
        parts: Vec<String>,
    },
    /// The stages on one device need more memory than it has.
    SharedMemory {
        /// The stages, from 1.
        stages: Vec<usize>,
        /// Needed bytes.
        needed_bytes: f64,
        /// Bytes of a device.
        limit_bytes: f64,
    },
    /// A training engine refuses the configuration.
    Refused {
        /// Rule of the engine, with the repair.
        rule: String,
    },
    /// A stage differs from what the configuration implies.
    NotConfigured {
        /// The stage, from 1.
        stage: usize,
        /// Difference.
        problem: String,
    },
    /// A stage needs more memory than a device has.
    OutOfMemory {
        /// The stage, from 1.
        stage: usize,
        /// Needed bytes.
        needed_bytes: f64,
        /// Bytes of a device.
        limit_bytes: f64,
    },
}

impl Violation {
    /// Stages that the violation concerns, from 1. None if it concerns the whole plan.
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

/// Number of parts of a cycle that a message names.
const PARTS_SHOWN: usize = 6;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Empty => write!(f, "the plan has no stages"),
            Violation::NoProfile => write!(f, "the workload has no costs for pipeline stages"),
            Violation::UnknownMeasure { name } => {
                write!(f, "the plan is measured by {name}, which this workload does not have")
            }
            Violation::Unassigned { node } => write!(f, "{node} is not in any stage"),
            Violation::Repeated { node, stage } => write!(f, "stage {stage}: {node} is already in an earlier stage"),
            Violation::UnknownNode { node, stage } => write!(f, "stage {stage}: there is no node {node}"),
            Violation::ZeroDegree { stage } => {
                write!(f, "stage {stage}: data and tensor parallel degrees must be at least 1")
            }
            Violation::Indivisible { stage, data_parallel, microbatches } => {
                write!(f, "stage {stage}: {data_parallel} replicas do not divide {microbatches} microbatches")
            }
            Violation::TooManyReplicas { replicas, microbatches } => {
                write!(f, "{replicas} replicas in total, but only {microbatches} microbatches in a batch")
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
                write!(f, "these wait for one another in a cycle: {shown}{more}")
            }
            Violation::SharedMemory { stages, needed_bytes, limit_bytes } => {
                let (last, others) = stages.split_last().map_or((&0, &stages[..]), |both| both);
                let others: Vec<String> = others.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "stages {} and {last} share a device and need {} on it, the limit is {}: {} too much",
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
