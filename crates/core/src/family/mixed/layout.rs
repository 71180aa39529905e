//! Plans of stages on kinds of devices, and back.
//!
//! Devices are counted through, kind by kind, so a stage's devices tell its kind. Within a kind, stages with larger tensor
//! degrees come first, so that each tensor group is in one machine. `O(layers + devices)`.

use rustc_hash::FxHashMap;

use super::iteration::{KindPipeline, KindStage};
use crate::{
    cluster::Limits,
    plan::{Measure, Plan, Stage, Violation},
    workload::{
        Choice, NodeIndex,
        mixed::{LayerMode, MixedProfile, Reductions, TimeRule},
    },
};

/// Plan of a pipeline.
pub fn plan(profile: &MixedProfile, pipeline: &KindPipeline) -> Plan {
    let stage = |own: &KindStage| {
        let mode = LayerMode { micro_batch: pipeline.micro_batch, recompute: own.recompute };
        Stage {
            nodes: own.layers.clone().map(NodeIndex::new).collect(),
            choices: vec![Choice::Layer(mode); own.layers.len()],
            data_parallel: pipeline.data,
            tensor_parallel: own.tensor,
            devices: vec![],
        }
    };
    let mut stages: Vec<Stage> = pipeline.stages.iter().map(stage).collect();
    let mut order: Vec<usize> = (0..stages.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(pipeline.stages[index].tensor));
    let mut next: Vec<u32> = (0..profile.kinds.len()).map(|kind| profile.first_device(kind)).collect();
    for index in order {
        let first = &mut next[pipeline.stages[index].kind];
        let count = stages[index].device_count();
        stages[index].devices = (*first..*first + count).collect();
        *first += count;
    }
    Plan { stages, measure: Measure::PipelineTime, ..Plan::default() }
}

/// Kind of a stage: that of its first device.
pub fn kind_of(profile: &MixedProfile, stage: &Stage) -> Option<usize> {
    stage.devices.first().and_then(|&device| profile.kind_of(device))
}

/// Devices that no stage has for another stage like this one, tensor groups in one machine; fewer if there are not enough.
pub fn free_devices(profile: &MixedProfile, plan: &Plan, stage: &Stage) -> Vec<u32> {
    let Some(kind) = kind_of(profile, stage) else { return vec![] };
    let (first, count) = (profile.first_device(kind), profile.kinds[kind].count);
    let taken: std::collections::BTreeSet<u32> = plan.devices().collect();
    let all: Vec<u32> = (first..first + count).collect();
    let free = all
        .chunks_exact(stage.tensor_parallel.max(1) as usize)
        .filter(|group| group.iter().all(|device| !taken.contains(device)));
    free.take(stage.data_parallel as usize).flatten().copied().collect()
}

/// Mode of a stage's layers, if all have the same.
fn mode_of(stage: &Stage) -> Option<LayerMode> {
    let first = stage.choices.first()?.layer_mode()?;
    stage.choices.iter().all(|choice| choice.layer_mode() == Some(first)).then_some(first)
}

/// Pipeline of a plan.
///
/// # Errors
/// Rules that the plan breaks, so that it is no such pipeline.
pub fn pipeline(profile: &MixedProfile, limits: &Limits, plan: &Plan) -> Result<KindPipeline, Vec<Violation>> {
    let mut broken = vec![];
    let rule = |rule: String| Violation::Refused { rule };
    let (mut stages, mut first) = (vec![], 0);
    let mut taken = FxHashMap::default();
    let micro_batch = plan.stages.first().and_then(mode_of).map_or(1, |mode| mode.micro_batch);
    let data = plan.stages.first().map_or(1, |stage| stage.data_parallel);
    for (index, stage) in plan.stages.iter().enumerate() {
        let number = index + 1;
        let end = first + stage.nodes.len();
        if stage.nodes.is_empty() || !stage.nodes.iter().map(|node| node.index()).eq(first..end) {
            broken.push(rule(format!("stage {number} must hold the layers that follow those of the stage before it")));
        }
        if stage.data_parallel != data || data == 0 {
            let own = stage.data_parallel;
            broken.push(rule(format!("stage {number} has {own} replicas and stage 1 has {data}: all need as many")));
        }
        let mode = mode_of(stage);
        if mode.is_none_or(|mode| mode.micro_batch != micro_batch) {
            broken.push(rule(format!("all layers of stage {number} need one mode, with the micro-batch of stage 1")));
        }
        let kind = kind_of(profile, stage);
        devices(profile, stage, index, &mut taken, &mut broken);
        if let (Some(kind), Some(mode)) = (kind, mode) {
            stages.push(KindStage {
                layers: first..end,
                kind,
                tensor: stage.tensor_parallel,
                recompute: mode.recompute,
            });
        }
        first = end;
    }
    let samples = micro_batch.saturating_mul(data).max(1);
    if profile.rule == TimeRule::Stages && !limits.samples().is_multiple_of(samples) {
        let batch = limits.samples();
        broken
            .push(rule(format!("{data} replicas with microbatches of {micro_batch} do not divide a batch of {batch}")));
    }
    let used = plan.devices_used();
    if used > limits.devices {
        broken.push(Violation::TooManyDevices { used, devices: limits.devices });
    }
    match broken.is_empty() {
        true => Ok(KindPipeline { stages, data, micro_batch, batch: limits.samples() }),
        false => Err(broken),
    }
}

/// Checks that the devices of a stage exist, are of one kind and used once, and that each tensor group is in one machine, as
/// is a stage that fills machines evenly. `taken`: the stages of the devices so far.
fn devices(
    profile: &MixedProfile,
    stage: &Stage,
    index: usize,
    taken: &mut FxHashMap<u32, usize>,
    broken: &mut Vec<Violation>,
) {
    let mut refuse = |problem: String| broken.push(Violation::DeviceList { stage: index + 1, problem });
    if stage.devices.len() != stage.device_count() as usize {
        let (d, t) = (stage.data_parallel, stage.tensor_parallel);
        return refuse(format!("lists {} devices for {d} x {t}", stage.devices.len()));
    }
    let kind = kind_of(profile, stage);
    for &device in &stage.devices {
        let own = profile.kind_of(device);
        let name = |kind: Option<usize>| kind.map_or("", |kind| &profile.kinds[kind].id);
        if own.is_none() {
            return refuse(format!("device {device} does not exist: there are {}, counted from 0", profile.devices()));
        }
        if own != kind {
            return refuse(format!("device {device} is of {}, and its first device of {}", name(own), name(kind)));
        }
        if let Some(before) = taken.insert(device, index) {
            return refuse(format!("device {device} is already used by stage {}", before + 1));
        }
    }
    let Some(kind) = kind else { return };
    let (start, machine) = (profile.first_device(kind), profile.kinds[kind].machine.max(1));
    let in_one = |devices: &[u32], size: u32| {
        devices.iter().all(|device| (device - start) / size == (devices[0] - start) / size)
    };
    for group in stage.devices.chunks(stage.tensor_parallel.max(1) as usize) {
        if !in_one(group, machine) {
            return refuse(format!("the tensor group of device {} is in two machines", group[0]));
        }
    }
    let rings = match &profile.links.reductions {
        Reductions::Rings(rings) => rings.get(&(kind, stage.tensor_parallel)).map(|ring| ring.machine),
        Reductions::Messages { .. } => None,
    };
    if let Some(size) = rings.filter(|size| size.is_multiple_of(stage.device_count()) && !in_one(&stage.devices, *size))
    {
        let count = stage.device_count();
        refuse(format!("its {count} devices fill machines of {size} evenly, and are in several"));
    }
}
