//! Changes that make a run fit in memory, each alone: the fastest one of every kind.
//!
//! A kind is recomputation, a smaller micro-batch, division of the state over replicas, other degrees, or offload of the
//! optimizer. If no change is enough, each is tried with full recomputation. A few dozen predictions.

use super::{Calibration, Estimate, Fits};
use crate::workload::training::{
    Accelerator,
    expert_settings::ExpertOverlap,
    model::{Attention, Model},
    run::{AttentionKernel, Layout, Modules, Recompute, Stack, TrainingRun},
};

/// Largest factor by which a degree is raised.
const MOST: u32 = 8;

/// Change that makes a run fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// Flags of `plantui estimate` that make the change.
    pub flags: String,
    /// Iteration time with the change, seconds.
    pub iteration_s: f64,
    /// Bytes on the fullest rank with the change, without the reserve.
    pub memory_bytes: f64,
    /// `Yes`, or `Close` if nothing fits with the error of the memory model.
    pub fits: Fits,
}

/// Changes that make a run fit, fastest first; none if it fits or nothing helps.
pub fn remedies(
    model: &Model,
    run: &TrainingRun,
    accelerator: &Accelerator,
    devices: u64,
    calibration: Option<&Calibration>,
) -> Vec<Remedy> {
    let predict = |(flags, run): &(String, TrainingRun)| {
        let estimate = Estimate::of(model, run, accelerator, devices, calibration).ok()?;
        let Estimate { iteration_s, memory_bytes, fits, .. } = estimate;
        Some(Remedy { flags: flags.clone(), iteration_s, memory_bytes, fits })
    };
    let now = predict(&(String::new(), run.clone())).map_or(Fits::No, |now| now.fits);
    if now == Fits::Yes {
        return vec![];
    }
    let full = TrainingRun { recompute: Recompute::Full, ..run.clone() };
    for (base, flags) in [(run, ""), (&full, "--recompute full ")] {
        let kinds = kinds(model, base);
        for wanted in [Fits::Yes, Fits::Close] {
            if wanted == now {
                continue;
            }
            let best = |kind: &Vec<(String, TrainingRun)>| {
                let fit = kind.iter().filter_map(predict).filter(|remedy| remedy.fits == wanted);
                fit.min_by(|a, b| a.iteration_s.total_cmp(&b.iteration_s))
            };
            let mut found: Vec<Remedy> = kinds.iter().filter_map(best).collect();
            found.sort_by(|a, b| a.iteration_s.total_cmp(&b.iteration_s));
            if !found.is_empty() {
                found.iter_mut().for_each(|remedy| remedy.flags.insert_str(0, flags));
                return found;
            }
        }
    }
    vec![]
}

/// Single changes of a run by kind, each with its flags.
fn kinds(model: &Model, run: &TrainingRun) -> Vec<Vec<(String, TrainingRun)>> {
    let mut recompute = vec![];
    if run.recompute == Recompute::None {
        let sets = module_sets(model, run).into_iter().chain([Recompute::Full]);
        recompute.extend(sets.map(|set| (format!("--recompute {set}"), TrainingRun { recompute: set, ..run.clone() })));
    } else if run.recompute != Recompute::Full {
        recompute.push(("--recompute full".into(), TrainingRun { recompute: Recompute::Full, ..run.clone() }));
    }
    let with = |layout: Layout| (format!("--parallel {}", degrees(&layout)), TrainingRun { layout, ..run.clone() });
    let layout = run.layout;
    let smaller = (0..layout.micro_batch.ilog2()).map(|power| layout.micro_batch >> (power + 1));
    let smaller = smaller.filter(|&size| size > 0).map(|micro_batch| with(Layout { micro_batch, ..layout })).collect();
    let zero = run.settings.zero();
    let mut divided = vec![];
    for stage in zero + 1..=3 {
        let mut settings = run.settings.clone();
        if settings.set("zero", &stage.to_string()).is_ok() {
            divided.push((format!("--set zero={stage}"), TrainingRun { settings, ..run.clone() }));
        }
    }
    let mut others = vec![];
    // On a topology, the links of other groups are not known here.
    let powers = if run.links.is_some() { 0 } else { MOST.ilog2() };
    for power in 1..=powers {
        let by = 1 << power;
        if !layout.data.is_multiple_of(by) {
            break;
        }
        let rest = Layout { data: layout.data / by, ..layout };
        others.extend([
            with(Layout { tensor: layout.tensor * by, ..rest }),
            with(Layout { pipeline: layout.pipeline * by, ..rest }),
            with(Layout { context: layout.context * by, ..rest }),
        ]);
    }
    if model.has_experts() {
        let more = (1..=powers).map(|power| with(Layout { expert: layout.expert << power, ..layout }));
        others.extend(more);
    }
    let mut away = vec![];
    if !run.settings.optimizer_offload {
        let mut settings = run.settings.clone();
        settings.optimizer_offload = true;
        away.push(("--set optimizer_offload=true".into(), TrainingRun { settings, ..run.clone() }));
    }
    vec![recompute, smaller, divided, others, away]
}

/// Degrees of a layout other than 1, without those that follow from the devices.
fn degrees(layout: &Layout) -> String {
    let all = [
        ("tp", layout.tensor),
        ("pp", layout.pipeline),
        ("vp", layout.virtual_stages),
        ("cp", layout.context),
        ("ep", layout.expert),
        ("etp", layout.expert_tensor),
        ("mbs", layout.micro_batch),
    ];
    let named: Vec<String> =
        all.iter().filter(|(_, degree)| *degree > 1).map(|(name, degree)| format!("{name}={degree}")).collect();
    if named.is_empty() { "mbs=1".into() } else { named.join(",") }
}

/// Sets of modules that the software can recompute in every layer, each with those before it: cheap ones first.
pub fn module_sets(model: &Model, run: &TrainingRun) -> Vec<Recompute> {
    match run.stack {
        Stack::Torchtitan => return vec![Recompute::Selective(Modules::OPERATORS)],
        // Its Megatron-Core recomputes the attention core alone.
        Stack::Nemo24 => return vec![],
        Stack::Megatron2025 | Stack::Plain => {}
    }
    let kinds = &model.kinds;
    let experts = kinds.iter().any(|kind| kind.experts().is_some());
    let dense = kinds.iter().any(|kind| kind.experts().is_none());
    let latent = kinds.iter().any(|kind| matches!(kind.attention, Attention::Latent { .. }));
    // Fused attention keeps no scores, so that recomputing them saves nothing.
    let unfused = run.settings.attention == AttentionKernel::Unfused;
    let mut all = if unfused { Modules::CORE_ATTENTION } else { Modules::NONE };
    let mut sets = vec![];
    for (useful, module) in [
        (experts, Modules::MOE_ACTIVATION),
        (true, Modules::NORM),
        (latent, Modules::LATENT_PROJECTION),
        (dense, Modules::MLP),
        // Neither CUDA graphs nor the overlap of microbatches run with it.
        (experts && !run.settings.cuda_graph && run.settings.ep_overlap != ExpertOverlap::Batch, Modules::MOE),
    ] {
        if useful {
            all = all.and(module);
            sets.push(Recompute::Selective(all));
        }
    }
    sets
}
