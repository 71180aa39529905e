//! Plan in the form that engines use: stages of whole layers.

use plantui_core::{
    cluster::Limits,
    family::{self, layers::costs},
    plan::{Measure, Plan},
    units,
    workload::{
        NodeIndex, Workload,
        layering::{LayerPosition, Layering},
    },
};

/// Stage of whole layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutStage {
    /// Kinds of its layers, first to last.
    pub layers: Vec<LayerPosition>,
    /// For each layer, true if it recomputes its activations.
    pub recompute: Vec<bool>,
    /// Replicas.
    pub data_parallel: u32,
    /// Tensor-parallel degree.
    pub tensor_parallel: u32,
}

/// Plan of whole layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerCut {
    /// Stages, first to last; none is empty.
    pub stages: Vec<CutStage>,
    /// Microbatches per iteration, over all replicas.
    pub microbatches: u32,
    /// Samples per microbatch, from the user, the plan or the workload; `None` if none of them states it.
    pub micro_batch_size: Option<u32>,
}

impl CutStage {
    /// Devices of the stage.
    pub fn devices(&self) -> u32 {
        self.data_parallel * self.tensor_parallel
    }

    /// Number of counted layers: blocks, or nodes if no layers repeat.
    pub fn blocks(&self) -> usize {
        self.layers.iter().filter(|kind| counted(**kind)).count()
    }

    /// Number of counted layers that recompute, and number of counted layers.
    pub fn recomputed(&self) -> (usize, usize) {
        let some = self.layers.iter().zip(&self.recompute).filter(|(kind, recompute)| counted(**kind) && **recompute);
        (some.count(), self.blocks())
    }
}

fn counted(kind: LayerPosition) -> bool {
    matches!(kind, LayerPosition::Block(_) | LayerPosition::Single)
}

impl LayerCut {
    /// Converts a plan to stages of whole layers.
    ///
    /// # Errors
    /// Obstacles, a sentence each. Parts that take no time may be in any stage: engines do not count them.
    pub fn of(workload: &Workload, limits: &Limits, layering: &Layering, plan: &Plan) -> Result<Self, Vec<String>> {
        let mut problems = vec![];
        let mut stage_of_layer = Vec::with_capacity(layering.layers.len());
        for layer in &layering.layers {
            let mut homes: Vec<usize> = layer
                .nodes
                .iter()
                .filter(|&&v| layer.nodes.len() == 1 || !is_idle(workload, plan, v))
                .filter_map(|&v| plan.stage_of(v))
                .collect();
            if homes.is_empty() {
                homes.extend(layer.nodes.iter().filter_map(|&v| plan.stage_of(v)).max());
            }
            homes.sort_unstable();
            homes.dedup();
            if let [first, .., last] = homes[..] {
                let (name, first, last) = (title(layer.kind), first + 1, last + 1);
                problems.push(format!("{name} is on stages {first} to {last}; the engine cuts between layers only"));
            }
            stage_of_layer.push(homes.last().copied().unwrap_or(0));
        }
        if let Some(at) = (1..stage_of_layer.len()).find(|&i| stage_of_layer[i] < stage_of_layer[i - 1]) {
            let (layer, stage) = (title(layering.layers[at].kind), stage_of_layer[at] + 1);
            problems
                .push(format!("{layer} is on stage {stage}, before the layer that precedes it; stages are contiguous"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut stages = vec![];
        for (i, stage) in plan.stages.iter().enumerate() {
            let own: Vec<usize> = (0..layering.layers.len()).filter(|&layer| stage_of_layer[layer] == i).collect();
            if own.is_empty() {
                problems.push(format!("stage {} holds no whole layer", i + 1));
                continue;
            }
            let recomputes = |&layer: &usize| {
                // Nodes before or after the blocks do not recompute with the block they were joined to.
                let joined = |v: &&NodeIndex| counted(layering.layers[layer].kind) && layering.at_ends[v.index()];
                let of = |v: &NodeIndex| stage.nodes.binary_search(v).is_ok_and(|at| stage.choices[at].recomputes());
                layering.layers[layer].nodes.iter().filter(|v| !joined(v)).any(of)
            };
            stages.push(CutStage {
                layers: own.iter().map(|&layer| layering.layers[layer].kind).collect(),
                recompute: own.iter().map(recomputes).collect(),
                data_parallel: stage.data_parallel,
                tensor_parallel: stage.tensor_parallel,
            });
        }
        let microbatches = limits.microbatches;
        if problems.is_empty() { Ok(LayerCut { stages, microbatches, micro_batch_size: None }) } else { Err(problems) }
    }

    /// Sets the samples per microbatch: `requested`, else what a plan of a batch in samples implies, else the
    /// workload's `profiled`. (In DAPPLE's plans all replicas of a stage share a microbatch, and each replica gets a
    /// microbatch of its own here.)
    ///
    /// Returns a sentence about the part that an engine cannot express: it takes whole samples only.
    pub fn set_microbatches(
        &mut self,
        limits: &Limits,
        plan: &Plan,
        requested: Option<u32>,
        profiled: Option<u32>,
    ) -> Option<String> {
        self.micro_batch_size = requested.or(profiled);
        let Measure::Speedup(model) = plan.measure else { return None };
        let (batch, replicas) = (limits.samples(), self.data_parallel());
        let planned = f64::from(batch) / f64::from(costs::microbatches(&model, limits, plan).saturating_mul(replicas));
        let largest = requested.unwrap_or(planned.floor().max(1.0) as u32);
        let fits = |size: u32| batch.is_multiple_of(size.saturating_mul(replicas));
        let size = (1..=largest).rev().find(|&size| fits(size)).unwrap_or(1);
        self.micro_batch_size = Some(size);
        self.microbatches = (batch / size).max(replicas);
        let told = || format!("a microbatch is {} samples on each of {replicas} replicas", units::number(planned));
        match requested {
            _ if !fits(size) => {
                Some(format!("a batch of {batch} samples is not a whole number for each of {replicas} replicas"))
            }
            Some(requested) if requested != size => {
                Some(format!("microbatches of {requested} samples do not divide the batch; the export uses {size}"))
            }
            None if f64::from(size) != planned => Some(format!("{}; the export uses {size}", told())),
            _ => None,
        }
    }

    /// Replicas of the first stage; of every stage if the engine treats all alike.
    pub fn data_parallel(&self) -> u32 {
        self.stages[0].data_parallel
    }

    /// Tensor degree of the first stage.
    pub fn tensor_parallel(&self) -> u32 {
        self.stages[0].tensor_parallel
    }

    /// Devices of all stages.
    pub fn devices(&self) -> u32 {
        self.stages.iter().map(CutStage::devices).sum()
    }
}

/// Plan in which the first `most` counted layers of every stage recompute and the others do not. `None` if nodes have
/// no modes, or a node lacks a mode for this tensor degree.
pub(super) fn recomputing(workload: &Workload, layering: &Layering, plan: &Plan, most: usize) -> Option<Plan> {
    let family = family::of(workload);
    if family.tensor_degrees().is_empty() {
        return None;
    }
    let mut plan = plan.clone();
    for stage in &mut plan.stages {
        let mut own: Vec<usize> = stage.nodes.iter().map(|v| layering.layer_of[v.index()]).collect();
        own.retain(|&layer| counted(layering.layers[layer].kind));
        own.sort_unstable();
        own.dedup();
        for (node, choice) in stage.nodes.iter().zip(&mut stage.choices) {
            let Ok(place) = own.binary_search(&layering.layer_of[node.index()]) else { continue };
            let again = place < most && !layering.at_ends[node.index()];
            let mode = family.mode_at(*node, stage.tensor_parallel, again)?;
            // A node without the wanted mode, such as a mask, keeps its mode.
            if mode.recomputes() == again {
                *choice = mode;
            }
        }
    }
    Some(plan)
}

/// True if a node takes no time on its stage.
fn is_idle(workload: &Workload, plan: &Plan, v: NodeIndex) -> bool {
    let Some(stage) = plan.stage_of(v).map(|stage| &plan.stages[stage]) else { return true };
    family::of(workload).takes_no_time(v, stage.tensor_parallel)
}

/// Name of a layer for people.
pub(super) fn title(kind: LayerPosition) -> String {
    match kind {
        LayerPosition::First => "nodes before the first block".into(),
        LayerPosition::Block(number) => format!("block {number}"),
        LayerPosition::Last => "nodes after the last block".into(),
        LayerPosition::Single => "a node".into(),
    }
}
