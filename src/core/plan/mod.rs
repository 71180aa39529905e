//! The answer: which nodes form a stage, on how many devices, in which mode.
//!
//! A [`Plan`] is plain data over node indices. [`crate::family`] recomputes its objective from the workload alone and says what
//! is wrong with it; [`document`] is the JSON in which it leaves and comes back.

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

/// A pipeline stage. `nodes` and `choices` run in parallel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its nodes, ascending.
    pub nodes: Vec<NodeIndex>,
    /// For each node how it runs, out of what its profile offers.
    pub choices: Vec<Choice>,
    /// Replicas of the stage, d.
    pub data_parallel: u32,
    /// Ways each tensor is split, t.
    pub tensor_parallel: u32,
    /// The devices it runs on, replica by replica; `d · t` of them.
    pub devices: Vec<u32>,
}

impl Stage {
    /// Devices the stage takes: d · t.
    pub fn device_count(&self) -> u32 {
        self.data_parallel.saturating_mul(self.tensor_parallel)
    }

    /// How many of its nodes compute their activations again in the backward pass.
    pub fn recomputed(&self) -> usize {
        self.choices.iter().filter(|choice| choice.recomputes()).count()
    }

    /// Whether it is on CPUs, as stages of device placements may be.
    pub fn on_cpus(&self) -> bool {
        self.choices.first() == Some(&Choice::Cpu)
    }

    /// Positions of nodes that follow one another with one choice, in order.
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

/// What the stages of a plan follow from, where their nodes do not say it all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Basis {
    /// From nothing else: a stage is its nodes, with a choice for each.
    #[default]
    Nodes,
    /// From the states of a layer-wise profile ([`crate::workload::states`]), which a pipeline is cut between: the last
    /// state of every stage.
    States(Vec<u32>),
    /// From how a model is trained.
    Configuration(Box<Configuration>),
}

/// A pipeline: stages in the order data flows through them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// From the stage with the network's sources to the one with its sinks.
    pub stages: Vec<Stage>,
    /// What the plan is scored by.
    pub measure: Measure,
    /// What the stages follow from.
    pub basis: Basis,
    /// What its devices are devices of, where that is known: then transfers take the routes between them.
    pub topology: Option<Arc<Topology>>,
    /// How it runs, where whoever made it says so; else 1F1B, unless asked otherwise.
    pub execution: Option<Execution>,
}

impl Plan {
    /// Whether all stages have as many replicas: then all rules of the warm-up are one.
    pub fn has_even_replicas(&self) -> bool {
        self.stages.windows(2).all(|pair| pair[0].data_parallel == pair[1].data_parallel)
    }

    /// The last state of every stage, where it is a plan over states.
    pub fn last_states(&self) -> Option<&[u32]> {
        if let Basis::States(last) = &self.basis { Some(last) } else { None }
    }

    /// How the model is trained, where the stages follow from that.
    pub fn configuration(&self) -> Option<&Configuration> {
        if let Basis::Configuration(configuration) = &self.basis { Some(configuration) } else { None }
    }

    /// Whether a node of some stage computes its activations again in the backward pass.
    pub fn recomputes(&self) -> bool {
        self.stages.iter().any(|stage| stage.recomputed() > 0)
    }

    /// The devices of all stages, one after the other.
    pub fn devices(&self) -> impl Iterator<Item = u32> + '_ {
        self.stages.iter().flat_map(|stage| stage.devices.iter().copied())
    }

    /// The same plan on these devices of a topology, handed out to its stages one after the other.
    #[must_use]
    pub fn on(mut self, topology: &Arc<Topology>, devices: &[usize]) -> Self {
        let mut next = devices.iter().map(|&device| device as u32);
        for stage in &mut self.stages {
            stage.devices = next.by_ref().take(stage.device_count() as usize).collect();
        }
        self.topology = Some(Arc::clone(topology));
        self
    }

    /// Devices all stages take together. Where a latency is measured, stages may share one.
    pub fn devices_used(&self) -> u32 {
        if let Measure::Latency { .. } = self.measure {
            let devices: std::collections::BTreeSet<u32> =
                self.stages.iter().flat_map(|stage| stage.devices.iter().copied()).collect();
            return devices.len() as u32;
        }
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.device_count()))
    }

    /// Numbers the devices 0, 1, 2, .. through the stages in order. A plan with more devices than any planner may use
    /// comes from a file and is not valid; it stays without numbers.
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

    /// Numbers the devices of a placement's stages by their kinds: accelerators from 0, the CPUs behind so many of them.
    /// Where a latency is measured CPUs are one place, with one number.
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

    /// The same placement where there are other many accelerators: CPUs are numbered behind these, so theirs move along.
    /// Numbers that are not behind them stay, for the check to tell.
    #[must_use]
    pub fn with_cpus_behind(mut self, accelerators: u32, now: u32) -> Self {
        for stage in self.stages.iter_mut().filter(|stage| stage.on_cpus()) {
            for device in stage.devices.iter_mut().filter(|device| **device >= accelerators) {
                *device = (*device - accelerators).saturating_add(now);
            }
        }
        self
    }

    /// The same placement scored by something else. Where that knows no subgraphs, those of an accelerator are one stage.
    #[must_use]
    pub fn measured_by(&self, measure: Measure) -> Plan {
        let mut plan = Plan { measure, execution: self.execution, ..Plan::default() };
        for stage in &self.stages {
            let joins = |known: &&mut Stage| !stage.devices.is_empty() && known.devices == stage.devices;
            let home = match measure {
                Measure::Latency { subgraphs: Some(_) } | Measure::TimePerSample | Measure::IterationTime => None,
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

    /// The stage that holds a node.
    pub fn stage_of(&self, node: NodeIndex) -> Option<usize> {
        self.stages.iter().position(|stage| stage.nodes.binary_search(&node).is_ok())
    }
}
