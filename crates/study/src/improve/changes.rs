//! Single changes of a run that a flag of its engine makes, each predicted.
//!
//! A change is another recomputation, micro-batch or setting, or one degree that is doubled or halved with another that
//! makes up for it. A few dozen predictions, which are independent.

use rayon::prelude::*;

use plantui_core::{
    family::training::{Estimate, Fits, remedy},
    workload::training::{Dispatcher, ExpertOverlap, Layout, Recompute, TrainingRun, TrainingSettings},
};

use super::{ExistingRun, Reach};

/// Change of a run, with its prediction.
#[derive(Debug, Clone)]
pub struct SingleChange {
    /// The change: `TP 8 -> 4, PP 2 -> 4`.
    pub what: String,
    /// Run with the change.
    pub run: TrainingRun,
    /// Its prediction.
    pub estimate: Estimate,
}

type Degree = (&'static str, fn(&mut Layout) -> &mut u32);

/// Degrees that divide the devices.
const DEGREES: [Degree; 4] = [
    ("TP", |layout| &mut layout.tensor),
    ("PP", |layout| &mut layout.pipeline),
    ("CP", |layout| &mut layout.context),
    ("DP", |layout| &mut layout.data),
];

impl ExistingRun<'_> {
    /// Changes within reach, fastest first. Those that do not fit are left out, unless the run itself does not fit and
    /// the change lowers its memory.
    pub fn changes(&self, reach: Reach) -> Vec<SingleChange> {
        let all = self.candidates(reach);
        let predict = |(what, run): (String, TrainingRun)| {
            let estimate = Estimate::of(self.model, &run, self.accelerator, self.devices, None).ok()?;
            (estimate.fits != Fits::No).then_some(SingleChange { what, run, estimate })
        };
        let mut found: Vec<SingleChange> = all.into_par_iter().filter_map(predict).collect();
        found.sort_by(|a, b| a.estimate.iteration_s.total_cmp(&b.estimate.iteration_s));
        found
    }

    /// Fewest changes that make a run fit, fastest first: a single one, or one upon full recomputation.
    pub fn fitting(&self, reach: Reach) -> Vec<SingleChange> {
        let single = self.changes(reach);
        if !single.is_empty() || self.run.recompute == Recompute::Full {
            return single;
        }
        let full = TrainingRun { recompute: Recompute::Full, ..self.run.clone() };
        let mut both = ExistingRun { run: &full, ..*self }.changes(reach);
        let before = format!("recompute {} -> full, ", self.run.recompute);
        both.iter_mut().for_each(|change| change.what.insert_str(0, &before));
        both
    }

    fn candidates(&self, reach: Reach) -> Vec<(String, TrainingRun)> {
        let run = self.run;
        let mut all = vec![];
        let named = |recompute: Recompute| recompute.to_string();
        let sets = remedy::module_sets(self.model, run);
        for recompute in [Recompute::None, Recompute::SELECTIVE, Recompute::Full].into_iter().chain(sets) {
            if recompute != run.recompute {
                let what = format!("recompute {} -> {}", named(run.recompute), named(recompute));
                all.push((what, TrainingRun { recompute, ..run.clone() }));
            }
        }
        let size = run.layout.micro_batch;
        for micro_batch in [size * 2, size / 2] {
            if micro_batch > 0 {
                let layout = Layout { micro_batch, ..run.layout };
                all.push((format!("micro-batch {size} -> {micro_batch}"), TrainingRun { layout, ..run.clone() }));
            }
        }
        self.add_layouts(&mut all, reach);
        self.add_settings(&mut all);
        all
    }

    /// One degree up and another down.
    fn add_layouts(&self, all: &mut Vec<(String, TrainingRun)>, reach: Reach) {
        let run = self.run;
        let varies = |name: &str| match name {
            "TP" => reach.tensor,
            "PP" => reach.pipeline,
            "CP" => reach == Reach::ALL,
            _ => true,
        };
        for (up, of_up) in DEGREES.into_iter().filter(|(name, _)| varies(name)) {
            for (down, of_down) in DEGREES.into_iter().filter(|(name, _)| varies(name) && *name != up) {
                let mut layout = run.layout;
                let before = (*of_up(&mut layout), *of_down(&mut layout));
                if !before.1.is_multiple_of(2) {
                    continue;
                }
                *of_up(&mut layout) *= 2;
                *of_down(&mut layout) /= 2;
                if layout.pipeline == 1 {
                    layout.virtual_stages = 1;
                }
                if layout.expert_tensor > 1 && layout.expert_tensor == run.layout.tensor {
                    layout.expert_tensor = layout.tensor;
                }
                let what = format!("{down} {} -> {}, {up} {} -> {}", before.1, before.1 / 2, before.0, before.0 * 2);
                all.push((what, TrainingRun { layout, layers: vec![], head_alone: false, ..run.clone() }));
            }
        }
        if run.layout.pipeline > 1 && reach.virtual_stages {
            let own = run.layout.virtual_stages;
            let layers = u32::try_from(self.model.layers.len()).unwrap_or(u32::MAX);
            let divides = |count: &u32| layers.is_multiple_of(run.layout.pipeline * count) && *count != own;
            for virtual_stages in (1..=layers / run.layout.pipeline).filter(divides) {
                let layout = Layout { virtual_stages, ..run.layout };
                let what = format!("virtual stages {own} -> {virtual_stages}");
                all.push((what, TrainingRun { layout, layers: vec![], head_alone: false, ..run.clone() }));
            }
        }
        if self.model.has_experts() {
            let own = run.layout.expert;
            for expert in [own * 2, own / 2] {
                if expert > 0 {
                    let layout = Layout { expert, ..run.layout };
                    all.push((format!("EP {own} -> {expert}"), TrainingRun { layout, ..run.clone() }));
                }
            }
            if run.layout.expert_tensor > 1 {
                let layout = Layout { expert_tensor: 1, ..run.layout };
                let what = format!("expert TP {} -> 1", run.layout.expert_tensor);
                all.push((what, TrainingRun { layout, ..run.clone() }));
            }
        }
    }

    fn add_settings(&self, all: &mut Vec<(String, TrainingRun)>) {
        let run = self.run;
        let mut with = |what: &str, change: &dyn Fn(&mut TrainingSettings)| {
            let mut settings = run.settings.clone();
            change(&mut settings);
            if settings != run.settings {
                all.push((what.into(), TrainingRun { settings, ..run.clone() }));
            }
        };
        let own = &run.settings;
        if own.adapter.is_none() {
            for stage in 1..=3u32 {
                // A pipeline keeps gradients and weights whole.
                if run.layout.pipeline == 1 || stage == 1 {
                    with(&format!("ZeRO {} -> {stage}", own.zero()), &|settings| {
                        // Each stage is a valid value.
                        let _ = settings.set("zero", &stage.to_string());
                    });
                }
            }
        }
        if run.layout.tensor > 1 {
            with("sequence parallelism on", &|settings| settings.sequence_parallel = true);
            with("tensor-parallel transfers overlap", &|settings| {
                settings.sequence_parallel = true;
                settings.tp_overlap = true;
            });
        }
        with("gradient reduction overlaps", &|settings| settings.dp_overlap = true);
        with("gradients in 16 bits", &|settings| settings.gradient_bytes = 2);
        with("one kernel for the cross-entropy", &|settings| settings.fused_cross_entropy = true);
        with("norms and activations in one kernel each", &|settings| settings.fused_elementwise = true);
        if own.optimizer_offload {
            with("no offload of the optimizer", &|settings| settings.optimizer_offload = false);
        } else {
            with("optimizer on the host", &|settings| settings.optimizer_offload = true);
        }
        if self.model.has_experts() && run.layout.expert > 1 {
            with("dispatcher deepep", &|settings| settings.dispatcher = Dispatcher::DeepEp);
            with("another microbatch overlaps the experts' exchange", &|settings| {
                settings.ep_overlap = ExpertOverlap::Batch;
            });
        }
    }
}
