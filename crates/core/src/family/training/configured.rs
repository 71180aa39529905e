//! Converts a configuration to the stages of a plan and to a run, and back.
//!
//! A stage of the plan holds the nodes of all its virtual stages. Its replicas are the data- and context-parallel ranks
//! together, which reduce its gradients. `O(layers)`.

use super::split::StageSplit;
use crate::workload::training::run::{Recompute, TrainingRun, ZeroBubble};
use crate::{
    plan::{Basis, Configuration, Execution, Measure, Plan, Schedule, Stage},
    workload::{Choice, NodeIndex, TrainingProfile, training::Layout},
};

impl TrainingProfile {
    /// Converts a configuration to a run of `batch` sequences.
    pub fn run(&self, configuration: &Configuration, batch: u32) -> TrainingRun {
        let mut settings = self.settings.clone();
        settings.sequence_parallel = configuration.sequence_parallel;
        settings.distributed_optimizer = configuration.distributed_optimizer;
        // Overlap requires sequence parallelism.
        settings.tp_overlap &= settings.sequence_parallel;
        TrainingRun {
            layout: configuration.layout,
            global_batch: u64::from(batch),
            sequence: self.sequence,
            precision: self.precision,
            recompute: configuration.recompute,
            stack: self.stack,
            settings,
            layers: configuration.layers.clone(),
            head_alone: configuration.head_alone,
            zero_bubble: configuration.zero_bubble,
            links: None,
        }
    }

    /// Configuration of a layout with the settings of the profile.
    pub fn configuration(&self, layout: Layout, recompute: Recompute) -> Configuration {
        Configuration {
            layout,
            recompute,
            sequence_parallel: self.settings.sequence_parallel,
            distributed_optimizer: self.settings.distributed_optimizer,
            layers: vec![],
            head_alone: false,
            zero_bubble: None,
        }
    }
}

/// Schedule in the simulator.
pub fn schedule_of(zero_bubble: ZeroBubble) -> Schedule {
    match zero_bubble {
        ZeroBubble::H1 => Schedule::ZeroBubbleH1,
        ZeroBubble::V => Schedule::ZeroBubbleV,
        ZeroBubble::Interleaved => Schedule::InterleavedZeroBubble,
    }
}

/// Plan of a run; `None` if its layout has no split of the model's layers.
pub fn plan_of_run(profile: &TrainingProfile, run: &TrainingRun) -> Option<Plan> {
    let configuration = Configuration {
        layers: run.layers.clone(),
        head_alone: run.head_alone,
        zero_bubble: run.zero_bubble,
        sequence_parallel: run.settings.sequence_parallel,
        distributed_optimizer: run.settings.distributed_optimizer,
        ..profile.configuration(run.layout, run.recompute)
    };
    let split = split(profile, &configuration)?;
    Some(plan(profile, configuration, &split))
}

/// Plan of a configuration with this split of the layers.
pub fn plan(profile: &TrainingProfile, configuration: Configuration, split: &StageSplit) -> Plan {
    let layout = &configuration.layout;
    let stage = |index: usize| {
        let (mut nodes, mut choices) = (vec![], vec![]);
        let mut add = |node: usize, again: bool| {
            nodes.push(NodeIndex::new(node));
            choices.push(Choice::of_layer(again));
        };
        if index == 0 {
            add(0, false);
        }
        for chunk in split.chunks(index) {
            chunk.clone().enumerate().for_each(|(place, layer)| add(layer + 1, configuration.recompute.repeats(place)));
        }
        if index == split.last() {
            add(profile.nodes() - 1, false);
        }
        let data_parallel = layout.data.saturating_mul(layout.context);
        Stage { nodes, choices, data_parallel, tensor_parallel: layout.tensor, devices: vec![] }
    };
    let stages = (0..split.stages()).map(stage).collect();
    let execution = configuration.zero_bubble.map(|schedule| {
        let virtual_stages = configuration.layout.virtual_stages;
        Execution { virtual_stages, ..schedule_of(schedule).into() }
    });
    let measure = Measure::IterationTime;
    let plan =
        Plan { stages, measure, basis: Basis::Configuration(configuration.into()), execution, ..Plan::default() };
    plan.with_consecutive_devices()
}

/// Split of the layers in a configuration, if it is valid.
pub fn split(profile: &TrainingProfile, configuration: &Configuration) -> Option<StageSplit> {
    let placed =
        |split: StageSplit| if configuration.zero_bubble == Some(ZeroBubble::V) { split.folded() } else { split };
    if configuration.layers.is_empty() {
        return StageSplit::even(profile.model.layers.len(), &configuration.layout).map(placed);
    }
    let counts: Vec<usize> = configuration.layers.iter().map(|&count| count as usize).collect();
    let layout = &configuration.layout;
    let whole = counts.len() == layout.pipeline as usize * layout.virtual_stages as usize
        && counts.iter().sum::<usize>() == profile.model.layers.len();
    whole.then(|| placed(StageSplit::of(&counts, layout.pipeline as usize).with_head_alone(configuration.head_alone)))
}

/// Configuration of a plan: its own, or the one inferred from handwritten stages.
pub fn of_plan(profile: &TrainingProfile, plan: &Plan) -> Configuration {
    if let Some(configuration) = plan.configuration() {
        return configuration.clone();
    }
    let zero_bubble =
        plan.execution.and_then(|own| ZeroBubble::find(own.schedule.id())).filter(|_| plan.stages.len() > 1);
    let first = plan.stages.first();
    let pipeline = plan.stages.len() as u32;
    let layout = Layout {
        tensor: first.map_or(1, |stage| stage.tensor_parallel),
        pipeline,
        data: first.map_or(1, |stage| stage.data_parallel),
        ..Layout::ONE
    };
    let is_layer = |node: &&NodeIndex| profile.layer_of(**node).is_some();
    let counts = plan.stages.iter().map(|stage| stage.nodes.iter().filter(is_layer).count() as u32);
    let again = |stage: &Stage| stage.recomputed() as u32;
    let (least, most) = plan.stages.iter().map(again).fold((u32::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    let layers: Vec<u32> = counts.collect();
    let recompute = match most {
        0 => Recompute::None,
        most if least == *layers.iter().min().unwrap_or(&0) && most == *layers.iter().max().unwrap_or(&0) => {
            Recompute::Full
        }
        most => Recompute::Layers(most),
    };
    let mut configuration = profile.configuration(layout, recompute);
    // The parts of a stage cannot be inferred from its nodes.
    configuration.zero_bubble = zero_bubble.filter(|schedule| *schedule == ZeroBubble::H1);
    let even = StageSplit::even(profile.model.layers.len(), &configuration.layout);
    let as_even = even.is_some_and(|even| (0..even.stages()).all(|i| layers.get(i) == Some(&(even.layers(i) as u32))));
    configuration.layers = if as_even { vec![] } else { layers };
    configuration
}
