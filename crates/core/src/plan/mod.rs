//! Plans as data: the nodes of each stage, their modes, and their devices.
//!
//! A [`Plan`] is plain data over node indices. [`crate::family`] recomputes its objective from the workload alone and
//! lists its violations. [`document`] is its JSON form.

pub mod configuration;
pub mod document;
mod execution;
pub mod figures;
mod measure;
pub mod runner;
mod score;
pub(crate) mod single_sample;
mod speedup;
mod violation;

use std::sync::Arc;

use crate::{
    cluster::{MOST_DEVICES, topology::Topology},
    workload::{Choice, NodeIndex},
};

pub use configuration::Configuration;
pub use execution::{Execution, Schedule, WarmUp, interleaved_round};
pub use measure::Measure;
pub use score::{NodeScore, SampleTimes, Score, StageScore};
pub use single_sample::SingleSample;
pub use speedup::{Length, SpeedupModel};
pub use violation::Violation;

/// Pipeline stage. `nodes` and `choices` have equal lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Nodes of the stage, ascending.
    pub nodes: Vec<NodeIndex>,
    /// Mode of each node, one of those that its profile offers.
    pub choices: Vec<Choice>,
    /// Replicas of the stage, d.
    pub data_parallel: u32,
    /// Ways each tensor is split, t.
    pub tensor_parallel: u32,
    /// Devices of the stage, replica by replica; `d · t` of them.
    pub devices: Vec<u32>,
}

impl Stage {
    /// Number of devices of the stage: d · t.
    pub fn device_count(&self) -> u32 {
        self.data_parallel.saturating_mul(self.tensor_parallel)
    }

    /// Number of nodes that recompute their activations in the backward pass.
    pub fn recomputed(&self) -> usize {
        self.choices.iter().filter(|choice| choice.recomputes()).count()
    }

    /// True if the stage is on CPUs, as in device placements.
    pub fn on_cpus(&self) -> bool {
        self.choices.first() == Some(&Choice::Cpu)
    }

    /// Ranges of consecutive positions with the same choice, in order.
    pub fn runs_of_a_choice(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        let runs = self.choices.chunk_by(|a, b| a == b).map(|run| {
            let range = start..start + run.len();
            start = range.end;
            range
        });
        runs.collect()
    }
}

/// Source of a plan's stages, if their nodes do not determine them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Basis {
    /// No other source: a stage is its nodes, with a choice for each.
    #[default]
    Nodes,
    /// States of a layer-wise profile ([`crate::workload::states`]), between which a pipeline is cut: the last state of
    /// every stage.
    States(Vec<u32>),
    /// Training configuration of a model.
    Configuration(Box<Configuration>),
}

/// Pipeline: stages in the order of the data flow.
///
/// ```
/// use plantui_core::{plan::{Plan, Stage}, workload::{Choice, NodeIndex}};
///
/// let stage = |first: usize, last: usize| Stage {
///     nodes: (first..last).map(NodeIndex::new).collect(),
///     choices: vec![Choice::Keep; last - first],
///     data_parallel: 4,
///     tensor_parallel: 2,
///     devices: vec![],
/// };
/// let plan = Plan { stages: vec![stage(0, 20), stage(20, 37)], ..Plan::default() }.with_consecutive_devices();
/// assert_eq!(plan.devices_used(), 16);
/// assert_eq!(plan.stage_of(NodeIndex::new(36)), Some(1));
/// assert!(plan.has_even_replicas());
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Stages, from the one with the network's sources to the one with its sinks.
    pub stages: Vec<Stage>,
    /// Measure that scores the plan.
    pub measure: Measure,
    /// Source of the stages.
    pub basis: Basis,
    /// Topology that the device numbers refer to, if known. Transfers then take its routes.
    pub topology: Option<Arc<Topology>>,
    /// Schedule that the plan was made for, if any. Otherwise it runs 1F1B, unless another is requested.
    pub execution: Option<Execution>,
}

impl Plan {
    /// True if all stages have the same number of replicas. All warm-up rules then agree.
    pub fn has_even_replicas(&self) -> bool {
        self.stages.windows(2).all(|pair| pair[0].data_parallel == pair[1].data_parallel)
    }

    /// Last state of every stage, if the plan is over states.
    pub fn last_states(&self) -> Option<&[u32]> {
        if let Basis::States(last) = &self.basis { Some(last) } else { None }
    }

    /// Training configuration, if the stages follow from one.
    pub fn configuration(&self) -> Option<&Configuration> {
        if let Basis::Configuration(configuration) = &self.basis { Some(configuration) } else { None }
    }

    /// True if a node of some stage recomputes its activations in the backward pass.
    pub fn recomputes(&self) -> bool {
        self.stages.iter().any(|stage| stage.recomputed() > 0)
    }

    /// Devices of all stages, one after the other.
    pub fn devices(&self) -> impl Iterator<Item = u32> + '_ {
        self.stages.iter().flat_map(|stage| stage.devices.iter().copied())
    }

    /// Moves the plan to these devices of a topology, assigned to its stages in order.
    #[must_use]
    pub fn on(mut self, topology: &Arc<Topology>, devices: &[usize]) -> Self {
        let mut next = devices.iter().map(|&device| device as u32);
        for stage in &mut self.stages {
            stage.devices = next.by_ref().take(stage.device_count() as usize).collect();
        }
        self.topology = Some(Arc::clone(topology));
        self
    }

    /// Number of devices of all stages together. In a plan measured by latency, stages may share a device.
    pub fn devices_used(&self) -> u32 {
        if let Measure::Latency { .. } = self.measure {
            let devices: std::collections::BTreeSet<u32> =
                self.stages.iter().flat_map(|stage| stage.devices.iter().copied()).collect();
            return devices.len() as u32;
        }
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.device_count()))
    }

    /// Numbers the devices 0, 1, 2, .. through the stages in order. A plan with more devices than any planner may use
    /// comes from a file and is not valid. It stays without numbers.
    #[must_use]
    pub fn with_consecutive_devices(mut self) -> Self {
        if self.devices_used() > MOST_DEVICES {
            return self;
        }
        let mut next = 0;
        for stage in &mut self.stages {
            let count = stage.device_count();
            stage.devices = (next..next + count).collect();
            next += count;
        }
        self
    }

    /// Numbers the devices of a placement's stages by kind: accelerators from 0, CPUs from `accelerators`. In a plan
    /// measured by latency, all CPUs share one number.
    #[must_use]
    pub fn with_devices_by_kind(mut self, accelerators: u32) -> Self {
        let (mut next, mut next_cpu) = (0u32, accelerators);
        for stage in &mut self.stages {
            let cpu = stage.on_cpus();
            let number = if cpu { &mut next_cpu } else { &mut next };
            stage.devices = vec![*number];
            if !(cpu && matches!(self.measure, Measure::Latency { .. })) {
                *number = number.saturating_add(1);
            }
        }
        self
    }

    /// Renumbers the CPUs of a placement for a new number of accelerators, `now`. A CPU number below the old number of
    /// accelerators stays, and the check then reports it.
    #[must_use]
    pub fn with_cpus_behind(mut self, accelerators: u32, now: u32) -> Self {
        for stage in self.stages.iter_mut().filter(|stage| stage.on_cpus()) {
            for device in stage.devices.iter_mut().filter(|device| **device >= accelerators) {
                *device = (*device - accelerators).saturating_add(now);
            }
        }
        self
    }

    /// The same placement with another measure. If that measure has no subgraphs, the subgraphs of an accelerator
    /// become one stage.
    #[must_use]
    pub fn measured_by(&self, measure: Measure) -> Plan {
        let mut plan = Plan { measure, execution: self.execution, ..Plan::default() };
        for stage in &self.stages {
            let joins = |known: &&mut Stage| !stage.devices.is_empty() && known.devices == stage.devices;
            let home = match measure {
                Measure::Latency { subgraphs: Some(_) }
                | Measure::TimePerSample
                | Measure::IterationTime
                | Measure::PipelineTime
                | Measure::IterationCost => None,
                _ => plan.stages.iter_mut().find(joins),
            };
            let Some(home) = home else {
                plan.stages.push(stage.clone());
                continue;
            };
            let pairs = |stage: &mut Stage| {
                std::mem::take(&mut stage.nodes).into_iter().zip(std::mem::take(&mut stage.choices))
            };
            let mut both: Vec<(NodeIndex, Choice)> = pairs(home).chain(pairs(&mut stage.clone())).collect();
            both.sort();
            (home.nodes, home.choices) = both.into_iter().unzip();
        }
        plan
    }

    /// Index of the stage that holds a node.
    pub fn stage_of(&self, node: NodeIndex) -> Option<usize> {
        self.stages.iter().position(|stage| stage.nodes.binary_search(&node).is_ok())
    }
}
