//! Estimate of a run: time, throughput, utilisation, parts of the time, memory, and reliability.

use super::{
    calibrate::Calibration,
    check::{self, Refusal},
    iteration::{IterationCosts, IterationTerms, StageTime},
    layer::PassTime,
    memory::{self, StageMemory},
    program,
    split::StageSplit,
    truth::{self, Trust},
};
use crate::workload::training::{
    constants::Constants,
    expert_settings::{Dispatcher, ExpertOverlap, Imbalance},
    hardware::Accelerator,
    model::Model,
    run::{Modules, TrainingRun},
};

/// Result of comparing a run's memory with the device's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// Fits even if memory is underestimated by the error of the memory model.
    Yes,
    /// Fits as predicted, but not with that error.
    Close,
    /// Does not fit as predicted.
    No,
}

impl Fits {
    /// Word in reports.
    pub fn id(self) -> &'static str {
        match self {
            Fits::Yes => "yes",
            Fits::Close => "close",
            Fits::No => "no",
        }
    }

    /// Compares predicted bytes, the reserve included, with a limit, given the relative error of the memory model.
    pub fn of(bytes: f64, limit: f64, error: f64) -> Self {
        match bytes {
            bytes if bytes * (1.0 + error) <= limit => Fits::Yes,
            bytes if bytes <= limit => Fits::Close,
            _ => Fits::No,
        }
    }

    /// Words with the excess: `no, over by 7.0 GiB`.
    pub fn with_excess(self, bytes: f64, limit: f64) -> String {
        match self {
            Fits::No => format!("no, over by {}", crate::units::bytes(bytes - limit)),
            fits => fits.id().into(),
        }
    }
}

/// Estimate of one pipeline stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageEstimate {
    /// Number of layers of the stage.
    pub layers: usize,
    /// Forward of a microbatch, seconds.
    pub forward_s: f64,
    /// Backward of a microbatch with recomputation, seconds.
    pub backward_s: f64,
    /// Maximum number of microbatches in flight, in units of whole stages.
    pub in_flight: f64,
    /// Memory at that time.
    pub memory: StageMemory,
}

/// Predicted run.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Iteration time, seconds: in closed form for even splits, from the simulator for given splits.
    pub iteration_s: f64,
    /// Iteration time from the simulator, seconds.
    pub simulated_s: f64,
    /// Parts of the time on the mean rank: name and seconds. They sum to `iteration_s`.
    pub parts: Vec<(&'static str, f64)>,
    /// Terms of the closed form.
    pub terms: IterationTerms,
    /// Tokens of the batch per second.
    pub tokens_per_s: f64,
    /// Tokens of the batch per second and device.
    pub tokens_per_s_per_device: f64,
    /// Model operations per second and device.
    pub model_flops_per_s_per_device: f64,
    /// Model operations as a fraction of the peak in the run's precision.
    pub mfu: f64,
    /// Like `mfu`, but includes recomputed operations.
    pub hfu: f64,
    /// Fraction of the iteration in which the mean rank waits during warm-up and drain.
    pub bubble: f64,
    /// Bytes on the fullest rank, without the reserve.
    pub memory_bytes: f64,
    /// Estimates by stage.
    pub stages: Vec<StageEstimate>,
    /// Result of the memory check, with the reserve.
    pub fits: Fits,
    /// Memory of a device, bytes.
    pub limit_bytes: f64,
    /// Published runs behind the prediction.
    pub trust: Trust,
    /// Reason why the utilisation is implausible, if it is.
    pub implausible: Option<String>,
    /// Assumptions.
    pub assumptions: Vec<String>,
}

impl Estimate {
    /// Predicts a run.
    ///
    /// # Errors
    /// [`Refusal`] if an engine refuses it.
    pub fn of(
        model: &Model,
        run: &TrainingRun,
        accelerator: &Accelerator,
        devices: u64,
        calibration: Option<&Calibration>,
    ) -> Result<Self, Refusal> {
        let shipped = Constants::shipped(accelerator.generation, run.stack);
        Estimate::under(model, run, accelerator, devices, &shipped, calibration)
    }

    /// Predicts a run with other constants than the shipped ones.
    ///
    /// # Errors
    /// [`Refusal`] if an engine refuses it.
    pub fn under(
        model: &Model,
        run: &TrainingRun,
        accelerator: &Accelerator,
        devices: u64,
        constants: &Constants,
        calibration: Option<&Calibration>,
    ) -> Result<Self, Refusal> {
        let constants = calibration.map_or(*constants, |calibration| calibration.apply(constants));
        let factor = calibration.map_or(1.0, |calibration| calibration.memory);
        let split = check::check(model, run, accelerator, devices)?;
        let costs = IterationCosts::of(model, run, accelerator, &constants, &split);
        let held: Vec<StageMemory> =
            memory::stages(model, run, &split).iter().map(|stage| scaled(stage, factor)).collect();
        let terms = costs.terms();
        let simulated_s = program::iteration(model, run, &costs, &held);
        let as_even = || StageSplit::even(model.layers.len(), &run.layout).as_ref() == Some(&split);
        let divides = StageSplit::is_even(model.layers.len(), &run.layout);
        let even = run.zero_bubble.is_none() && divides && (run.layers.is_empty() || as_even());
        let iteration_s = if even { terms.iteration } else { simulated_s };
        let stages = costs.stages.iter().zip(&held).enumerate().map(|(index, (time, &memory))| StageEstimate {
            layers: split.layers(index),
            forward_s: time.forward_s(),
            backward_s: time.backward_s(),
            in_flight: memory::in_flight(run, index),
            memory,
        });
        let peak = match run.precision.bits() {
            32 => Some(accelerator.peak_32),
            8 => accelerator.peak_8,
            4 => accelerator.peak_4,
            _ => None,
        };
        let peak = peak.unwrap_or(accelerator.peak_16);
        let sequence = run.sequence as f64;
        let batch = run.global_batch as f64;
        let frozen = run.settings.adapter.is_some();
        let of_model = if frozen { model.frozen_flops(sequence) } else { model.training_flops(sequence) };
        let flops = batch * of_model / (iteration_s * devices as f64);
        let again = batch * again_flops(model, run, &costs) / (iteration_s * devices as f64);
        let tokens_per_s = batch * sequence / iteration_s;
        let trust = Trust::of(model, run, accelerator, &constants);
        let memory_bytes = memory::fullest(&held);
        let (whole, limit_bytes) = (memory_bytes + run.settings.reserve_bytes, accelerator.memory_bytes);
        Ok(Estimate {
            iteration_s,
            simulated_s,
            parts: parts(&costs, &terms, iteration_s, even),
            tokens_per_s,
            tokens_per_s_per_device: tokens_per_s / devices as f64,
            model_flops_per_s_per_device: flops,
            mfu: flops / peak,
            hfu: (flops + again) / peak,
            bubble: bubble(&costs, &terms, iteration_s, even),
            memory_bytes,
            fits: Fits::of(whole, limit_bytes, trust.memory_error()),
            limit_bytes,
            trust,
            implausible: truth::implausible((flops + again) / peak, run, accelerator, &constants),
            assumptions: assumptions(model, run, accelerator, calibration, (even, &terms, &costs)),
            stages: stages.collect(),
            terms,
        })
    }
}

fn scaled(stage: &StageMemory, factor: f64) -> StageMemory {
    StageMemory {
        weights: stage.weights * factor,
        gradients: stage.gradients * factor,
        optimizer: stage.optimizer * factor,
        activations: stage.activations * factor,
        work: stage.work * factor,
    }
}

/// Operations per sequence that recomputation adds: in proportion to the time of products and attention that run again.
fn again_flops(model: &Model, run: &TrainingRun, costs: &IterationCosts) -> f64 {
    let sequence = run.sequence as f64;
    let forward: f64 =
        model.layers.iter().map(|&kind| model.layer_flops(&model.kinds[usize::from(kind)], sequence)).sum();
    let time = |of: fn(&StageTime) -> &PassTime| -> f64 {
        costs.stages.iter().map(|stage| of(stage).gemm + of(stage).attention).sum()
    };
    let once = time(|stage| &stage.forward);
    if once > 0.0 { forward * time(|stage| &stage.again) / once } else { 0.0 }
}

/// Waiting time during warm-up and drain, as a fraction. For a simulated time it is the remainder beside the slowest
/// stage's own work.
fn bubble(costs: &IterationCosts, terms: &IterationTerms, iteration_s: f64, even: bool) -> f64 {
    let seconds = if even { terms.bubble * costs.growth } else { rest(costs, terms, iteration_s) };
    (seconds / iteration_s).max(0.0)
}

/// Seconds of a simulated iteration that neither belong to the slowest stage nor come after the batch.
fn rest(costs: &IterationCosts, terms: &IterationTerms, iteration_s: f64) -> f64 {
    let known: f64 = busy(costs, terms).iter().map(|(_, seconds)| seconds).sum();
    let after = terms.p2p + terms.imbalance + terms.reduction.data_parallel + terms.reduction.optimizer;
    (iteration_s - costs.fixed - (known + after) * costs.growth).max(0.0)
}

/// Busy time of the mean rank by part.
fn busy(costs: &IterationCosts, terms: &IterationTerms) -> Vec<(&'static str, f64)> {
    let p = costs.stages.len() as f64;
    let layers = &terms.layers;
    vec![
        ("gemm", layers.gemm),
        ("attention", layers.attention),
        ("elementwise", layers.elementwise + layers.cast + terms.embedding / p),
        ("tensor_parallel", layers.tensor_parallel),
        ("context_parallel", layers.context_parallel),
        ("expert_parallel", layers.expert_parallel),
        ("expert_imbalance", layers.routing),
        ("launches", layers.launches),
        ("offload", layers.offload),
        ("head", terms.head / p),
    ]
}

fn parts(costs: &IterationCosts, terms: &IterationTerms, iteration_s: f64, even: bool) -> Vec<(&'static str, f64)> {
    let mut parts = busy(costs, terms);
    let bubble = if even { terms.bubble } else { rest(costs, terms, iteration_s) / costs.growth };
    parts.extend([
        ("bubble", bubble),
        ("imbalance", terms.imbalance),
        ("p2p", terms.p2p),
        ("data_parallel", terms.reduction.data_parallel),
        ("optimizer", terms.reduction.optimizer),
    ]);
    let sum: f64 = parts.iter().map(|(_, seconds)| seconds).sum();
    parts.push(("overhead", iteration_s - sum));
    parts
}

fn assumptions(
    model: &Model,
    run: &TrainingRun,
    accelerator: &Accelerator,
    calibration: Option<&Calibration>,
    (even, terms, costs): (bool, &IterationTerms, &IterationCosts),
) -> Vec<String> {
    let mut sentences = model.remarks.clone();
    let layers = model.layers.len();
    match calibration {
        Some(c) => sentences.push(format!(
            "{}: compute x {:.3}, links x {:.3}, exposed data-parallel share x {:.3}, memory x {:.3}",
            c.summary(),
            c.compute,
            c.links,
            c.data_exposed,
            c.memory
        )),
        None => sentences.push("constants were fitted on published runs; `calibrate` fits them to yours".into()),
    }
    let (inside, joined_by) = (accelerator.domain, accelerator.joined_by);
    let ranks = "ranks are ordered tensor first, then context, data and pipeline";
    sentences.push(match run.links {
        None => format!("{ranks}; {joined_by} joins {inside} devices, and each device has one NIC"),
        Some(_) => format!("{ranks}; every group runs at the speed of its routes"),
    });
    sentences.push(
        "MFU refers to the dense peak in the run's precision; causal attention counts half of its operations".into(),
    );
    if !even {
        sentences.push(match run.zero_bubble {
            Some(schedule) => format!("the simulator times the schedule {}", schedule.id()),
            None => "the simulator times the given split".into(),
        });
        if run.layout.virtual_stages > 1 {
            sentences.push("the simulator assumes equal virtual stages within a stage".into());
        }
    } else if !layers.is_multiple_of((run.layout.pipeline * run.layout.virtual_stages) as usize) {
        sentences.push(
            "the first and last stage have one layer fewer: embedding and loss count as a layer of the \
            split"
                .into(),
        );
    }
    if run.modules() == Modules::CORE_ATTENTION && run.settings.attention != super::AttentionKernel::Unfused {
        sentences.push("selective recomputation changes nothing: fused attention recomputes its scores anyway".into());
    }
    if run.sequence > model.longest_sequence {
        let longest = model.longest_sequence;
        sentences.push(format!("the model was made for sequences up to {longest} tokens"));
    }
    if run.settings.tp_overlap && run.layout.tensor > 1 {
        let share = terms.layers.tensor_parallel / costs.tensor_transfers();
        sentences.push(format!(
            "tensor-parallel transfers overlap matrix products (tp_overlap); {} of their time is exposed",
            crate::units::percent(share)
        ));
    }
    if run.layout.context > 1 {
        let how = match run.settings.context_style {
            super::ContextStyle::Ring => "passes keys and values around a ring".to_string(),
            super::ContextStyle::AllGather => "gathers keys and values before attention".into(),
            super::ContextStyle::AllToAll => "exchanges parts of the sequence for heads".into(),
            super::ContextStyle::Hierarchical => {
                let [inside, between] = run.layout.context_hierarchy(accelerator.domain);
                format!("exchanges heads over {inside} ranks and passes keys and values between {between}")
            }
        };
        sentences.push(format!(
            "context parallelism {how} ({}); each rank has an early and a late chunk of the sequence, so that the causal \
            mask is balanced",
            run.settings.context_style.id()
        ));
    }
    if model.kinds.iter().any(|kind| kind.mixer.is_some_and(|mixer| mixer.heads > 0)) {
        sentences.push(
            "the recurrence of layers with a state runs at the rate of attention; no published run tests that".into(),
        );
    }
    sentences.extend(of_experts(model, run, accelerator));
    sentences.extend(truth::weaknesses(model, run, accelerator));
    sentences
}

/// Settings that were changed, but that a model without experts does not use, a sentence each.
pub(super) fn unused_settings(model: &Model, run: &TrainingRun) -> Vec<String> {
    let shipped = run.stack.settings();
    let names = ["dispatcher", "cuda_graph", "imbalance", "release"].into_iter().filter(|_| !model.has_experts());
    let changed = names.filter(|name| run.settings.text(name) != shipped.text(name));
    changed.map(|name| format!("{name} is not used: the model has no experts")).collect()
}

/// Assumptions on mixtures of experts.
fn of_experts(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
    let settings = &run.settings;
    if !model.has_experts() {
        return unused_settings(model, run);
    }
    let mut sentences = vec![];
    if run.layout.expert > 1 {
        let copies = match settings.dispatcher {
            Dispatcher::AllToAll => "one copy to each of its experts",
            Dispatcher::DeepEp | Dispatcher::HybridEp => "one copy to each NVLink domain with one of its experts",
        };
        let overlap = match settings.ep_overlap {
            ExpertOverlap::None => "nothing overlaps that",
            ExpertOverlap::Shared => "the shared expert overlaps that",
            ExpertOverlap::Batch => "another microbatch overlaps that between warm-up and drain",
        };
        let dispatcher = settings.text("dispatcher");
        sentences.push(format!("the dispatcher {dispatcher} sends a token in {copies}; {overlap}"));
    }
    sentences.push(match &settings.imbalance {
        Imbalance::Balanced => "every rank of experts has the same load, as in benchmarks (--imbalance)".into(),
        Imbalance::Random => "every token chooses its experts at random (--imbalance)".into(),
        Imbalance::Factor(factor) => {
            format!("the busiest rank of experts has {factor} times the mean load, or as much as all ranks together")
        }
        Imbalance::Capacity(factor) => format!(
            "every expert is padded to {factor} times its mean load; tokens beyond that are dropped, but count as work"
        ),
        Imbalance::Counts(lists) => format!(
            "the load of the ranks of experts is that of {}, the mean over all (--imbalance)",
            crate::units::counted(lists.len(), "list of counts")
        ),
    });
    if settings.launches_from_graphs(accelerator.generation) {
        sentences.push("CUDA graphs launch the kernels: the host never makes them wait".into());
    }
    sentences
}
