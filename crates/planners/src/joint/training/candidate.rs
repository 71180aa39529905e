//! Evaluates one configuration: the recomputation that it needs to fit, its closed-form time and a bound on its
//! simulated time.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use plantui_core::{
    cluster::{Limits, topology::Topology},
    family::training::{
        AttentionKernel, Fits, Layout, Recompute, TrainingRun,
        check::{self, Refusal},
        iteration::{self, IterationCosts},
        links,
        memory::{self, MemoryModel},
        program,
        run::GroupLinks,
        split::StageSplit,
        truth,
    },
    plan::Configuration,
    workload::TrainingProfile,
};

/// Configuration that fits and that the engine accepts.
#[derive(Debug, Clone)]
pub(super) struct LayoutCandidate {
    pub(super) configuration: Configuration,
    pub(super) split: StageSplit,
    /// Iteration time by the closed form, seconds.
    pub(super) closed_s: f64,
    /// Lower bound on the simulated time, seconds.
    pub(super) bound_s: f64,
    /// Bytes on the fullest device, including the reserve.
    pub(super) memory_bytes: f64,
}

/// Model, limits and topology that configurations are evaluated with.
pub(super) struct Bench<'a> {
    pub(super) profile: &'a TrainingProfile,
    pub(super) batch: u32,
    pub(super) memory_bytes: f64,
    /// True if the error of the memory model must fit as well.
    pub(super) with_error: bool,
    /// Routes between devices, if known. Ranks are on its devices in order.
    pub(super) topology: Option<&'a Arc<Topology>>,
    /// Bandwidths of the groups of a layout on the topology.
    pub(super) links: RefCell<BTreeMap<[u32; 6], Option<GroupLinks>>>,
    /// Seconds of all layers for one microbatch, by the degrees on which they depend.
    layers: RefCell<BTreeMap<([u32; 7], bool), f64>>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(profile: &'a TrainingProfile, limits: &'a Limits, headroom: f64) -> Self {
        Bench {
            profile,
            batch: limits.samples(),
            memory_bytes: limits.memory() * (1.0 - headroom),
            with_error: true,
            topology: limits.topology.as_ref().map(|wired| &wired.topology),
            links: RefCell::default(),
            layers: RefCell::default(),
        }
    }

    /// Run of the configuration on the devices in order.
    fn run(&self, configuration: &Configuration) -> TrainingRun {
        let mut run = self.profile.run(configuration, self.batch);
        if let Some(topology) = self.topology {
            let Layout { tensor, pipeline, context, expert, expert_tensor, data, .. } = run.layout;
            let mut known = self.links.borrow_mut();
            let found = known.entry([tensor, pipeline, context, expert, expert_tensor, data]).or_insert_with(|| {
                let devices: Vec<usize> = (0..run.layout.devices() as usize).collect();
                links(topology, &devices, &run)
            });
            run.links.clone_from(found);
        }
        run
    }

    /// Lower bound on the iteration time of a layout with any split and any recomputation, seconds: the layers' work on
    /// their mean stage.
    pub(super) fn least_time(&self, layout: &Layout, sequence_parallel: bool) -> f64 {
        let profile = self.profile;
        let Layout { tensor, pipeline, context, expert, expert_tensor, data, micro_batch, .. } = *layout;
        // On a topology, links depend on all degrees. Otherwise a layer does not see the other stages and replicas.
        let [p, d] = if self.topology.is_some() { [pipeline, data] } else { [0; 2] };
        let key = ([tensor, context, expert, expert_tensor, micro_batch, p, d], sequence_parallel);
        let known = self.layers.borrow().get(&key).copied();
        let each = known.unwrap_or_else(|| {
            let mut configuration = profile.configuration(*layout, Recompute::None);
            configuration.sequence_parallel = sequence_parallel;
            let run = self.run(&configuration);
            let seconds = iteration::layers_s(&profile.model, &run, &profile.accelerator, &profile.constants);
            self.layers.borrow_mut().insert(key, seconds);
            seconds
        });
        let microbatches = f64::from(self.batch) / f64::from(data) / f64::from(micro_batch);
        microbatches * each / f64::from(pipeline) + profile.constants.fixed_s
    }

    /// True if a run fits its fullest device, including the error of the memory model if `with_error`.
    pub(super) fn fits(&self, run: &TrainingRun, split: &StageSplit) -> bool {
        // One stage that is too full is enough, and the ends are the fullest.
        let (memory, last) = (MemoryModel::new(&self.profile.model, run), split.stages() - 1);
        let mut most = 0.0f64;
        for stage in [0, last].into_iter().chain(1..last) {
            most = most.max(memory.of_stage(split, stage).total() + run.settings.reserve_bytes);
            if most > self.memory_bytes {
                return false;
            }
        }
        !self.with_error || self.fit(run, most) == Fits::Yes
    }

    /// Class of fit for a run with these bytes on its fullest device.
    pub(super) fn fit(&self, run: &TrainingRun, bytes: f64) -> Fits {
        if bytes > self.memory_bytes {
            return Fits::No;
        }
        let TrainingProfile { model, accelerator, constants, .. } = self.profile;
        Fits::of(bytes, self.memory_bytes, truth::memory_error(model, run, accelerator, constants))
    }

    /// Run and split of the configuration, if the engine accepts it.
    pub(super) fn taken(&self, configuration: &Configuration) -> Result<(TrainingRun, StageSplit), Refusal> {
        let run = self.run(configuration);
        let devices = configuration.layout.devices();
        let split = check::check(&self.profile.model, &run, &self.profile.accelerator, devices)?;
        Ok((run, split))
    }

    /// Bytes of the fullest device. With equal stages, those between the second and the last hold less than the second.
    pub(super) fn fullest(&self, run: &TrainingRun, split: &StageSplit) -> f64 {
        let model = &self.profile.model;
        let last = split.stages() - 1;
        let memory = MemoryModel::new(model, run);
        let of = |stage: usize| memory.of_stage(split, stage).total();
        let most = if model.kinds.len() == 1 && run.layers.is_empty() {
            [0, 1, last].into_iter().filter(|stage| *stage <= last).map(of).fold(0.0, f64::max)
        } else {
            (0..=last).map(of).fold(0.0, f64::max)
        };
        most + run.settings.reserve_bytes
    }

    /// Fewest layers of each virtual stage that must recompute for the run to fit, if it fits with all of them. Memory
    /// falls and time grows with every layer.
    pub(super) fn least_layers(&self, run: &TrainingRun, split: &StageSplit) -> Option<Recompute> {
        let most = (0..split.stages()).flat_map(|stage| split.chunks(stage)).map(ExactSizeIterator::len).max()? as u32;
        let fits = |recompute| self.fits(&TrainingRun { recompute, ..run.clone() }, split);
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(Recompute::Layers(middle)) { high = middle } else { low = middle + 1 }
        }
        Some(if low == most { Recompute::Full } else { Recompute::Layers(low) })
    }

    /// Times and memory of a run that the engine accepts.
    pub(super) fn candidate(&self, run: &TrainingRun, split: &StageSplit) -> LayoutCandidate {
        let profile = self.profile;
        let costs = IterationCosts::of(&profile.model, run, &profile.accelerator, &profile.constants, split);
        LayoutCandidate {
            configuration: Configuration {
                layout: run.layout,
                recompute: run.recompute,
                sequence_parallel: run.settings.sequence_parallel,
                distributed_optimizer: run.settings.distributed_optimizer,
                layers: run.layers.clone(),
                head_alone: run.head_alone,
                zero_bubble: run.zero_bubble,
            },
            split: split.clone(),
            closed_s: costs.terms().iteration,
            bound_s: bound(&costs, run.zero_bubble.is_some()),
            memory_bytes: self.fullest(run, split),
        }
    }

    /// Simulated iteration time, seconds.
    pub(super) fn simulated(&self, candidate: &LayoutCandidate) -> f64 {
        let profile = self.profile;
        let run = self.run(&candidate.configuration);
        let costs =
            IterationCosts::of(&profile.model, &run, &profile.accelerator, &profile.constants, &candidate.split);
        let held = memory::stages(&profile.model, &run, &candidate.split);
        program::iteration(&profile.model, &run, &costs, &held)
    }

    /// True if attention scores are kept, so that recomputing them saves memory.
    pub(super) fn keeps_scores(&self) -> bool {
        self.profile.settings.attention == AttentionKernel::Unfused
    }
}

/// Lower bound on the simulated time under 1F1B, plain or interleaved, or a zero-bubble schedule, seconds.
///
/// Stage `i` runs `m` microbatches in sequence, `m (f + b)` in all. It begins when the first microbatch has passed one
/// virtual stage of every stage before it, `Σ f / v`. When it has ended, the last microbatch's gradients go back
/// through them, `Σ b / v`, and the first stage reduces its gradients. Alternatively stage `i` reduces its own. The
/// optimizer step follows either. A forward and a backward pass that run side by side save a part of both, at most in
/// every microbatch. If gradients of the weights are delayed (`apart`), the last work of a stage may be on
/// them, and no earlier stage waits for it. Then only the stage's own work and reduction count.
pub(super) fn bound(costs: &IterationCosts, apart: bool) -> f64 {
    let (m, v) = (costs.microbatches as f64, f64::from(costs.virtual_stages));
    let waits = costs.transfer * v / 2.0;
    let (mut before, mut behind, mut longest) = (0.0, 0.0, 0f64);
    let first = costs.reductions.first().map_or(0.0, |reduction| reduction.data_parallel);
    for (stage, reduction) in costs.stages.iter().zip(&costs.reductions) {
        let (forward, backward) = (stage.forward_s() + waits, stage.backward_s() + waits);
        let work = forward + backward - stage.saved;
        let back = if apart { 0.0 } else { behind + first };
        let after = f64::max(back, reduction.data_parallel);
        longest = longest.max(before + m * work + after);
        before += forward / v;
        behind += backward / v;
    }
    let step = costs.reductions.iter().map(|reduction| reduction.optimizer).fold(0.0, f64::max);
    (longest + step) * costs.growth + costs.fixed
}

/// The same bound for any split of the layers over as many stages: the slowest stage takes at least the mean.
pub(super) fn bound_of_any_split(costs: &IterationCosts) -> f64 {
    let waits = costs.transfer * f64::from(costs.virtual_stages);
    let whole: f64 = costs.stages.iter().map(|stage| stage.total() - stage.saved).sum();
    let mean = whole / costs.stages.len() as f64 + waits;
    costs.microbatches as f64 * mean * costs.growth + costs.fixed
}
