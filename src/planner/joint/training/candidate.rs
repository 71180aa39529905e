//! One configuration: what recomputation it needs to fit, its time in closed form, and a bound on its simulated time.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use crate::{
    cluster::{Limits, topology::Topology},
    family::training::{
        AttentionKernel, Fits, Layout, Recompute, Run,
        check::{self, Refusal},
        iteration::{Costs, StageTime},
        links, memory, program,
        run::GroupLinks,
        split::StageSplit,
        truth,
    },
    plan::Configuration,
    workload::TrainingProfile,
};

/// A configuration that an engine takes and that fits.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) configuration: Configuration,
    pub(super) split: StageSplit,
    /// By the closed form, seconds.
    pub(super) closed_s: f64,
    /// No simulation is shorter, seconds.
    pub(super) bound_s: f64,
    /// On the fullest device, the reserve included.
    pub(super) memory_bytes: f64,
}

/// What configurations are held against.
pub(super) struct Bench<'a> {
    pub(super) profile: &'a TrainingProfile,
    pub(super) batch: u32,
    pub(super) memory_bytes: f64,
    /// Whether the error of the memory model must fit as well.
    pub(super) with_error: bool,
    /// The routes between devices, where they are known; ranks sit on its devices in order.
    pub(super) topology: Option<&'a Arc<Topology>>,
    /// What the groups of a layout attain on it.
    pub(super) links: RefCell<BTreeMap<[u32; 5], Option<GroupLinks>>>,
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
        }
    }

    /// The configuration as a run on the devices in order.
    fn run(&self, configuration: &Configuration) -> Run {
        let mut run = self.profile.run(configuration, self.batch);
        if let Some(topology) = self.topology {
            let Layout { tensor, pipeline, context, expert, data, .. } = run.layout;
            let mut known = self.links.borrow_mut();
            let found = known.entry([tensor, pipeline, context, expert, data]).or_insert_with(|| {
                let devices: Vec<usize> = (0..run.layout.devices() as usize).collect();
                links(topology, &devices, &run)
            });
            run.links.clone_from(found);
        }
        run
    }

    /// Whether a run's fullest device holds what it must, with the error of the memory model where that counts.
    pub(super) fn fits(&self, run: &Run, split: &StageSplit) -> bool {
        let bytes = self.fullest(run, split);
        match self.with_error {
            true => self.fit(run, bytes) == Fits::Yes,
            false => bytes <= self.memory_bytes,
        }
    }

    /// How a run with so many bytes on its fullest device fits.
    pub(super) fn fit(&self, run: &Run, bytes: f64) -> Fits {
        let TrainingProfile { model, accelerator, constants, .. } = self.profile;
        Fits::of(bytes, self.memory_bytes, truth::memory_error(model, run, accelerator, constants))
    }

    /// The configuration as a run, if an engine takes it.
    pub(super) fn taken(&self, configuration: &Configuration) -> Result<(Run, StageSplit), Refusal> {
        let run = self.run(configuration);
        let devices = configuration.layout.devices();
        let split = check::check(&self.profile.model, &run, &self.profile.accelerator, devices)?;
        Ok((run, split))
    }

    /// Bytes of the fullest device. Where stages are alike those between the second and the last hold less than the second.
    pub(super) fn fullest(&self, run: &Run, split: &StageSplit) -> f64 {
        let model = &self.profile.model;
        let last = split.stages() - 1;
        let of = |stage: usize| memory::of_stage(model, run, split, stage).total();
        let most = if model.kinds.len() == 1 && run.layers.is_empty() {
            [0, 1, last].into_iter().filter(|stage| *stage <= last).map(of).fold(0.0, f64::max)
        } else {
            (0..=last).map(of).fold(0.0, f64::max)
        };
        most + run.settings.reserve_bytes
    }

    /// The fewest layers of each virtual stage that must recompute for it to fit; `None` where all are not enough.
    /// Memory falls with every layer more, and time grows.
    pub(super) fn least_layers(&self, run: &Run, split: &StageSplit) -> Option<Recompute> {
        let most = (0..split.stages()).flat_map(|stage| split.chunks(stage)).map(ExactSizeIterator::len).max()? as u32;
        let fits = |recompute| self.fits(&Run { recompute, ..run.clone() }, split);
        if !fits(Recompute::Full) {
            return None;
        }
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(Recompute::Layers(middle)) { high = middle } else { low = middle + 1 }
        }
        Some(if low == most { Recompute::Full } else { Recompute::Layers(low) })
    }

    /// Times and memory of a run that an engine takes.
    pub(super) fn candidate(&self, run: &Run, split: &StageSplit) -> Candidate {
        let profile = self.profile;
        let costs = Costs::of(&profile.model, run, &profile.accelerator, &profile.constants, split);
        Candidate {
            configuration: Configuration {
                layout: run.layout,
                recompute: run.recompute,
                sequence_parallel: run.settings.sequence_parallel,
                distributed_optimizer: run.settings.distributed_optimizer,
                layers: run.layers.clone(),
                zero_bubble: run.zero_bubble,
            },
            split: split.clone(),
            closed_s: costs.terms().iteration,
            bound_s: bound(&costs, run.zero_bubble.is_some()),
            memory_bytes: self.fullest(run, split),
        }
    }

    /// The simulated time, seconds.
    pub(super) fn simulated(&self, candidate: &Candidate) -> f64 {
        let profile = self.profile;
        let run = self.run(&candidate.configuration);
        let costs = Costs::of(&profile.model, &run, &profile.accelerator, &profile.constants, &candidate.split);
        let held = memory::stages(&profile.model, &run, &candidate.split);
        program::iteration(&profile.model, &run, &costs, &held)
    }

    /// Whether attention's scores are kept, so that computing them again saves memory.
    pub(super) fn keeps_scores(&self) -> bool {
        self.profile.settings.attention == AttentionKernel::Unfused
    }
}

/// A time that no simulation of 1F1B, plain or interleaved, or of a zero-bubble schedule goes below, seconds.
///
/// Stage `i` runs `m` microbatches one after another, `m (f + b)` in all. It begins when the first microbatch has come
/// through one virtual stage of every stage before it, `Σ f / v`, and when it has ended, the last microbatch's gradients go
/// back through them, `Σ b / v`; then the first stage reduces its gradients. Or stage `i` reduces its own. The optimizer
/// steps after either. Where gradients of the weights are put off (`apart`) the last of a stage's work may be on them, which
/// no earlier stage waits for: then only the stage's own work and reduction count.
pub(super) fn bound(costs: &Costs, apart: bool) -> f64 {
    let (m, v) = (costs.microbatches as f64, f64::from(costs.virtual_stages));
    let waits = costs.transfer * v / 2.0;
    let (mut before, mut behind, mut longest) = (0.0, 0.0, 0f64);
    let first = costs.reductions.first().map_or(0.0, |reduction| reduction.data_parallel);
    for (stage, reduction) in costs.stages.iter().zip(&costs.reductions) {
        let (forward, backward) = (stage.forward_s() + waits, stage.backward_s() + waits);
        let back = if apart { 0.0 } else { behind + first };
        let after = f64::max(back, reduction.data_parallel);
        longest = longest.max(before + m * (forward + backward) + after);
        before += forward / v;
        behind += backward / v;
    }
    let step = costs.reductions.iter().map(|reduction| reduction.optimizer).fold(0.0, f64::max);
    (longest + step) * costs.growth + costs.fixed
}

/// The same for any split of the layers over as many stages: the slowest stage takes at least the mean.
pub(super) fn bound_of_any_split(costs: &Costs) -> f64 {
    let waits = costs.transfer * f64::from(costs.virtual_stages);
    let whole: f64 = costs.stages.iter().map(StageTime::total).sum();
    let mean = whole / costs.stages.len() as f64 + waits;
    costs.microbatches as f64 * mean * costs.growth + costs.fixed
}
