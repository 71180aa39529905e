//! From a plan to what is simulated: stages with times, transfers between them, memory.
//!
//! The costs are those of Piper's cost model (Tarnawski et al., NeurIPS 2021, section 4), taken apart again into things
//! that happen: where the planner's objective charges a stage `p / d` of compute for every sample, here one of `d`
//! replicas computes for `p` seconds; where it charges both ends of an edge for both directions, here the edge is one
//! transfer forward and one back. `O(nodes + edges)` time and memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{LinkModel, MemoryParts, Settings, single_sample, single_sample::SampleRun};
use crate::{
    cluster::Limits,
    plan::{
        Measure, NodeScore, Plan, check,
        layer_costs::{self, LayerStage},
    },
    units,
    workload::{
        LayerProfile, Mode, OperatorProfile, PlacementProfile, Profile, Workload,
        piper::{PiperProfile, VANILLA},
        placement::{CPU, SECONDS},
    },
};

/// One stage of the pipeline, as one of its replicas sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineStage {
    /// Forward of one microbatch on one replica, seconds.
    pub forward_s: f64,
    /// Backward of one microbatch on one replica, recomputation included, seconds.
    pub backward_s: f64,
    /// The part of the backward that computes activations again, seconds.
    pub recompute_s: f64,
    /// Replicas; microbatch m runs on replica m mod replicas.
    pub replicas: u32,
    /// Devices that work on one replica in lockstep (the tensor-parallel degree); 0 counts as 1.
    pub devices: u32,
    /// Gradient all-reduce of the whole batch, seconds; 0 for one replica.
    pub all_reduce_s: f64,
    /// Bytes on each device whatever is in flight.
    pub fixed_bytes: f64,
    /// What is known of the fixed bytes: their weights, gradients, optimizer state and buffers. `state` and `activations` of
    /// it are not read.
    pub parts: MemoryParts,
    /// Bytes on each device for every microbatch in flight.
    pub activation_bytes: f64,
    /// Forwards before the first backward under 1F1B, where the plan says; must fall from stage to stage, and stages with it
    /// have one replica.
    pub warm_up: Option<u32>,
}

/// Data that goes from one stage to a later one in the forward pass, and back as gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// The earlier stage.
    pub from: usize,
    /// The later stage.
    pub to: usize,
    /// Time of one microbatch's activations, and of its gradients, seconds.
    pub seconds: f64,
    /// Bytes of one microbatch's activations, and of its gradients.
    pub bytes: f64,
}

/// One operator of a stage that works through its operators once, one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Node index.
    pub node: usize,
    /// Its forward pass with all it waits for, seconds.
    pub forward_s: f64,
    /// Its backward pass with all it waits for, seconds.
    pub backward_s: f64,
}

/// What is simulated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// Stages in order.
    pub stages: Vec<PipelineStage>,
    /// Transfers between stages; at most one for each pair.
    pub transfers: Vec<Transfer>,
    /// Microbatches in the batch.
    pub microbatches: u32,
    /// Samples in a microbatch; 0 where a microbatch counts as one.
    pub samples: f64,
    /// Where there is one stage and one microbatch, the operators that make up its time; else empty. Their events carry the
    /// position in this list for a microbatch.
    pub steps: Vec<Step>,
    /// What was assumed.
    pub notes: Vec<String>,
    /// How it is played.
    pub settings: Settings,
    /// Whether [`Settings::forward_share`] parts the time of any node: the profile gives one time for both passes.
    pub assumes_forward_share: bool,
    /// By stage, then device: the machine that holds it. Empty where the plan is not laid out over machines.
    pub machines: Vec<Vec<u32>>,
    /// Of a plan for latency: the run of its one sample, which no schedule changes. Then there are no transfers between
    /// stages, since tensors go through the host, and the replicas of a stage are the rows that its parts need.
    pub single_sample: Option<SampleRun>,
}

impl Pipeline {
    /// The pipeline of a valid plan (one that [`crate::plan::check`] accepts). Of a plan that breaks rules it takes what
    /// can be read: nodes without a known mode cost nothing, edges that go backwards are left out.
    pub fn from_plan(workload: &Workload, limits: &Limits, plan: &Plan, settings: &Settings) -> Pipeline {
        let pipeline = match &workload.profile {
            Profile::Piper(profile) => Pipeline::with_modes(workload, profile, limits, plan, settings),
            Profile::Layers(profile) => layered(workload, profile, limits, plan, settings),
            Profile::Operators(_) => split_operators(workload, limits, plan),
            Profile::Placement(profile) => match plan.measure {
                Measure::Latency { .. } => single_sample::pipeline(workload, profile, plan),
                _ => placed(workload, profile, limits, plan),
            },
        };
        Pipeline { settings: *settings, machines: machines(limits, plan), ..pipeline }
    }

    /// The pipeline of a plan whose nodes have modes.
    fn with_modes(
        workload: &Workload,
        profile: &PiperProfile,
        limits: &Limits,
        plan: &Plan,
        settings: &Settings,
    ) -> Pipeline {
        let bandwidth = limits.bandwidth_bytes_per_s;
        let mut told = Told::default();
        // The stage and the chosen mode of every node.
        let mut placed: Vec<Option<(usize, &Mode)>> = vec![None; workload.nodes.len()];
        let mut stages = Vec::with_capacity(plan.stages.len());
        for (index, planned) in plan.stages.iter().enumerate() {
            let mut stage = PipelineStage {
                replicas: planned.data_parallel.max(1),
                devices: planned.tensor_parallel.max(1),
                ..PipelineStage::default()
            };
            let (mut forward, mut backward, mut recompute) = (vec![], vec![], vec![]);
            let mut parameters = vec![];
            for (&node, choice) in planned.nodes.iter().zip(&planned.choices) {
                let modes = profile.nodes.get(node).and_then(|n| n.modes(planned.tensor_parallel)).unwrap_or_default();
                let Some(mode) = modes.iter().find(|m| m.id == *choice) else { continue };
                let forward_s = forward_time(mode, modes, settings, &mut told);
                let plain = plain(mode, modes);
                forward.push(forward_s);
                backward.push(mode.time_s - forward_s);
                recompute.push((mode.time_s - plain.time_s).clamp(0.0, mode.time_s - forward_s));
                stage.fixed_bytes += mode.memory_b;
                // What a mode that recomputes keeps on top is the room to recompute in.
                stage.parts.buffers += (mode.memory_b - plain.memory_b).max(0.0);
                stage.activation_bytes += mode.memory_a;
                parameters.push(mode.parameters);
                placed[node] = Some((index, mode));
            }
            [stage.forward_s, stage.backward_s, stage.recompute_s] = [forward, backward, recompute].map(total);
            let d = f64::from(stage.replicas);
            stage.all_reduce_s = 4.0 * (d - 1.0) * total(parameters) / d / bandwidth;
            stages.push(stage);
        }
        let transfers = transfers(workload, &profile.edge_bytes, &placed, bandwidth);
        let mut notes = told.notes(&stages, settings);
        if !transfers.is_empty() {
            notes.push(transfer_note(settings));
        }
        Pipeline {
            stages,
            transfers,
            microbatches: limits.microbatches,
            notes,
            assumes_forward_share: told.from_share,
            ..Pipeline::default()
        }
    }
}

/// The pipeline of a plan over machines: all devices of a stage work on each microbatch together, each on its samples, and
/// enough microbatches are in flight to hide that a transfer takes its turn between two stages.
fn layered(workload: &Workload, profile: &LayerProfile, limits: &Limits, plan: &Plan, settings: &Settings) -> Pipeline {
    let overlap = if settings.overlap { "overlap" } else { "do not overlap" };
    let Measure::Speedup(model) = plan.measure else { return Pipeline::default() };
    let microbatches = layer_costs::microbatches(&model, limits, plan);
    let costs = layer_costs::stages(workload, profile, limits, plan, &model);
    let stage = |(i, cost): (usize, &LayerStage)| PipelineStage {
        forward_s: cost.forward_s,
        backward_s: cost.backward_s,
        recompute_s: cost.recompute_s,
        replicas: 1,
        devices: plan.stages[i].device_count().max(1),
        all_reduce_s: cost.all_reduce_s,
        fixed_bytes: cost.weight_bytes + cost.working_bytes,
        parts: MemoryParts {
            // The scaling counts the weights themselves and what training keeps besides.
            weights: cost.weight_bytes / model.optimizer_memory_scaling.max(1.0),
            buffers: cost.working_bytes,
            ..MemoryParts::default()
        },
        activation_bytes: cost.activation_bytes,
        warm_up: Some(2 * (costs.len() - 1 - i) as u32),
    };
    // A cut that sends nothing still lets one stage begin after the other.
    let transfer = |(from, cost): (usize, &LayerStage)| Transfer {
        from,
        to: from + 1,
        seconds: cost.send_s,
        bytes: cost.send_bytes,
    };
    let notes = vec![
        "all devices of a stage compute a microbatch together, each on its share of the samples".to_string(),
        format!("outputs that a later stage needs are passed on from stage to stage; transfers {overlap} with compute"),
        "a stage's gradients are all-reduced once a batch, after its last backward".to_string(),
    ];
    Pipeline {
        stages: costs.iter().enumerate().map(stage).collect(),
        transfers: costs.iter().enumerate().take(costs.len().saturating_sub(1)).map(transfer).collect(),
        microbatches,
        samples: f64::from(limits.batch) / f64::from(microbatches),
        notes,
        ..Pipeline::default()
    }
}

/// The pipeline of a device placement: a stage is a device. A tensor goes once to every device that needs it and takes
/// its transfer's time; edges that go back to an earlier device are left out, as are those within the backward pass, whose
/// gradients the transfers of the forward pass bring back.
fn placed(workload: &Workload, profile: &PlacementProfile, limits: &Limits, plan: &Plan) -> Pipeline {
    let mut stage_of = vec![usize::MAX; workload.nodes.len()];
    let mut stages = vec![];
    for (index, planned) in plan.stages.iter().enumerate() {
        let mut stage = PipelineStage { replicas: 1, devices: 1, ..PipelineStage::default() };
        let (mut forward, mut backward) = (vec![], vec![]);
        for (&node, choice) in planned.nodes.iter().zip(&planned.choices) {
            let Some(cost) = profile.nodes.get(node) else { continue };
            let time_s = SECONDS * if choice == CPU { cost.cpu_time } else { cost.accelerator_time };
            if cost.backward { &mut backward } else { &mut forward }.push(time_s);
            if choice != CPU {
                stage.fixed_bytes += cost.size_bytes;
            }
            stage_of[node] = index;
        }
        [stage.forward_s, stage.backward_s] = [forward, backward].map(total);
        stages.push(stage);
    }
    let mut seconds: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for (u, cost) in profile.nodes.iter().enumerate().filter(|(_, cost)| !cost.backward) {
        let from = stage_of[u];
        let heads = workload.dag.successors(u).filter(|&v| !profile.nodes[v].backward).map(|v| stage_of[v]);
        for to in heads.filter(|&to| to != usize::MAX && to > from).collect::<BTreeSet<_>>() {
            seconds.entry((from, to)).or_default().push(SECONDS * cost.transfer);
        }
    }
    // The file states transfers as times and tells no bytes.
    let transfer =
        |((from, to), seconds): ((usize, usize), Vec<f64>)| Transfer { from, to, seconds: total(seconds), bytes: 0.0 };
    let notes = vec![
        "the file's times are taken as milliseconds".to_string(),
        format!(
            "{} microbatches are shown; a device holds its nodes' sizes and nothing more in flight",
            limits.microbatches
        ),
        "tensors go forward to later devices only, and their gradients take as long on the way back".to_string(),
    ];
    let transfers = seconds.into_iter().map(transfer).collect();
    Pipeline { stages, transfers, microbatches: limits.microbatches, notes, ..Pipeline::default() }
}

/// Operators split over one set of devices: one stage that works through them one after the other, once.
fn split_operators(workload: &Workload, limits: &Limits, plan: &Plan) -> Pipeline {
    let score = check::check(workload, limits, plan);
    let (Some(stage), Some(scored)) = (plan.stages.first(), score.stages.first()) else { return Pipeline::default() };
    let step = |(&node, cost): (&usize, &NodeScore)| {
        // A third of compute and of its all-reduces is forward; what is received forward goes back as a gradient.
        let forward_s = (cost.compute_s + cost.sync_s) / 3.0 + cost.communication_s / 2.0;
        Step { node, forward_s, backward_s: cost.compute_s + cost.sync_s + cost.communication_s - forward_s }
    };
    let steps: Vec<Step> = stage.nodes.iter().zip(&scored.nodes).map(step).collect();
    let stages = vec![PipelineStage {
        forward_s: steps.iter().map(|step| step.forward_s).sum(),
        backward_s: steps.iter().map(|step| step.backward_s).sum(),
        replicas: stage.data_parallel.max(1),
        devices: stage.tensor_parallel.max(1),
        all_reduce_s: 0.0,
        fixed_bytes: scored.memory_bytes,
        ..PipelineStage::default()
    }];
    let notes = vec![
        "operators run one after the other on all devices; nothing overlaps".to_string(),
        "a third of compute and all-reduces is forward, transfers are half forward and half backward".to_string(),
        "every operator's output is kept until the end of the step".to_string(),
    ];
    let samples = workload.operators().and_then(OperatorProfile::samples).unwrap_or_default();
    Pipeline { stages, microbatches: 1, samples, steps, notes, ..Pipeline::default() }
}

/// A sum that is the same in whatever order its parts are listed: times that differ by a rounding error would make, and
/// undo, ties.
fn total(mut parts: Vec<f64>) -> f64 {
    parts.sort_by(f64::total_cmp);
    parts.into_iter().sum()
}

/// The mode that recomputes nothing.
fn plain<'a>(mode: &'a Mode, modes: &'a [Mode]) -> &'a Mode {
    let fastest = modes.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s)).unwrap_or(mode);
    modes.iter().find(|m| m.id == VANILLA).unwrap_or(fastest)
}

/// By stage, then device: its machine. Empty where there are no machines, or the plan names devices outside them.
fn machines(limits: &Limits, plan: &Plan) -> Vec<Vec<u32>> {
    let machine = |&device: &u32| limits.machines.machine_of(device).map(|machine| machine as u32);
    let stages = plan.stages.iter().map(|stage| stage.devices.iter().map(machine).collect::<Option<Vec<u32>>>());
    stages.collect::<Option<_>>().unwrap_or_default()
}

/// The forward part of a mode's time. Whatever a mode takes longer than the node's plain one is recomputation, and that
/// belongs to the backward pass.
fn forward_time(mode: &Mode, modes: &[Mode], settings: &Settings, told: &mut Told) -> f64 {
    let plain = plain(mode, modes);
    told.recomputed |= mode.time_s > plain.time_s;
    if let Some(forward_s) = mode.forward_s.or(plain.forward_s) {
        told.from_profile = true;
        return forward_s.clamp(0.0, mode.time_s);
    }
    told.from_share = true;
    (settings.forward_share.clamp(0.0, 1.0) * plain.time_s).min(mode.time_s)
}

/// One transfer for each pair of stages that share an edge, by pair. An edge carries its own bytes and what gathering the
/// tensor costs the end that asks for more.
fn transfers(
    workload: &Workload,
    edge_bytes: &[f64],
    placed: &[Option<(usize, &Mode)>],
    bandwidth: f64,
) -> Vec<Transfer> {
    let dag = &workload.dag;
    let mut bytes_of: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for source in 0..dag.len() {
        for (slot, &edge) in dag.out_edges(source).iter().enumerate() {
            let destination = dag.edges()[edge as usize].1 as usize;
            let (Some((from, producer)), Some((to, consumer))) = (placed[source], placed[destination]) else {
                continue;
            };
            if from >= to {
                continue;
            }
            let incoming = dag.in_edges(destination).iter().position(|&e| e == edge);
            let gathered = incoming.map_or(0.0, |i| consumer.sync_in[i]).max(producer.sync_out[slot]);
            bytes_of.entry((from, to)).or_default().push(edge_bytes[edge as usize] + gathered);
        }
    }
    let transfer = |((from, to), parts): ((usize, usize), Vec<f64>)| {
        let bytes = total(parts);
        Transfer { from, to, seconds: bytes / bandwidth, bytes }
    };
    bytes_of.into_iter().map(transfer).collect()
}

/// What had to be assumed about the nodes.
#[derive(Debug, Default)]
struct Told {
    from_profile: bool,
    from_share: bool,
    recomputed: bool,
}

impl Told {
    fn notes(&self, stages: &[PipelineStage], settings: &Settings) -> Vec<String> {
        let mut notes = vec![];
        if self.from_share {
            let share = units::percent(settings.forward_share.clamp(0.0, 1.0));
            let which = if self.from_profile { "where the profile gives only the sum" } else { "of every node" };
            notes.push(format!("forward is taken as {share} of forward plus backward time {which}"));
        }
        if self.recomputed {
            notes.push("what a recomputing mode takes longer than the plain one is spent in the backward pass".into());
        }
        if stages.iter().any(|s| s.replicas > 1) {
            notes.push("microbatch m runs on replica m mod d of a stage".into());
            notes.push(
                "a stage's replicas all-reduce 4 (d - 1) / d times its parameters once a batch, after its last backward"
                    .into(),
            );
        }
        if stages.iter().any(|s| s.devices > 1) {
            notes.push("communication of tensor parallelism inside a stage is part of its compute time".into());
        }
        notes
    }
}

/// How transfers go, in words.
fn transfer_note(settings: &Settings) -> String {
    let how = match (settings.overlap, settings.links) {
        (true, LinkModel::Private) => "at the full bandwidth each, and receives without limit",
        (true, _) => "as far as the links allow",
        (false, _) => {
            "while neither it nor the receiver computes; of those ready at once the earlier stage's goes first, then the \
             earlier microbatch's"
        }
    };
    let overlap =
        if settings.overlap { "transfers overlap with compute" } else { "transfers do not overlap with compute" };
    format!("{overlap}: a replica sends activations one after another and gradients one after another, {how}")
}
