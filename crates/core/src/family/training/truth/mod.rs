//! Errors of predictions with the shipped constants on published runs, by class of runs.
//!
//! The figures come from the truth table (`docs/src/background/truth.md`, `examples/truth_table.rs`); a test compares them. A run
//! outside all classes has no figure: every error is measured.

mod classes;
mod domain;
pub mod refit;
pub mod rows;
pub mod summary;

pub use classes::{CLASSES, MemoryErrors, RunClass};
pub use domain::Domain;

use crate::workload::training::{
    constants::Constants,
    expert_settings::{ExpertOverlap, Release},
    hardware::{Accelerator, Generation},
    model::Model,
    run::{Stack, TrainingRun},
};

/// Assumed error of the memory model if none was measured, relative.
pub const UNKNOWN_MEMORY_ERROR: f64 = 0.10;

/// Error of the memory model for a run, relative.
pub fn memory_error(model: &Model, run: &TrainingRun, accelerator: &Accelerator, constants: &Constants) -> f64 {
    let measured = CLASSES.into_iter().filter(|class| class.memory.is_some());
    // Most runs have no such class, so further checks are skipped.
    let of_kind = |class: &&RunClass| class.domain.may_hold(model, run, accelerator);
    let like = |class: &&RunClass| class.domain.differences(model, run, accelerator, constants).is_empty();
    let class = measured.filter(of_kind).find(like);
    class.and_then(|class| class.memory).map_or(UNKNOWN_MEMORY_ERROR, |memory| memory.band)
}

/// Evidence for a prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum Trust {
    /// Comparable published runs.
    Measured(&'static RunClass),
    /// No comparable published run: the differences from the nearest ones, a phrase each.
    Untested(Vec<String>),
}

impl Trust {
    /// Evidence for a run: its class, or the differences from the nearest class.
    pub fn of(model: &Model, run: &TrainingRun, accelerator: &Accelerator, constants: &Constants) -> Self {
        let all = CLASSES.map(|class| (class, class.domain.differences(model, run, accelerator, constants)));
        let nearest = all.into_iter().min_by_key(|(_, differences)| differences.len());
        match nearest {
            Some((class, differences)) if differences.is_empty() => Trust::Measured(class),
            Some((_, differences)) => Trust::Untested(differences),
            None => Trust::Untested(vec![]),
        }
    }

    /// Class of comparable published runs.
    pub fn class(&self) -> Option<&'static RunClass> {
        match self {
            Trust::Measured(class) => Some(class),
            Trust::Untested(_) => None,
        }
    }

    /// Differences from all published runs.
    pub fn differences(&self) -> &[String] {
        match self {
            Trust::Measured(_) => &[],
            Trust::Untested(differences) => differences,
        }
    }

    /// Error of the memory model, relative.
    pub fn memory_error(&self) -> f64 {
        self.class().and_then(|class| class.memory).map_or(UNKNOWN_MEMORY_ERROR, |memory| memory.band)
    }

    /// Evidence in a sentence.
    pub fn summary(&self) -> String {
        match self {
            Trust::Measured(class) => format!(
                "mean error {}, 9 of 10 within {} ({} published runs): {}",
                crate::units::percent(class.mean_error),
                crate::units::percent(class.band),
                class.runs,
                class.class
            ),
            Trust::Untested(differences) => {
                format!("no published run is comparable: {}", differences.join("; "))
            }
        }
    }
}

/// Largest plausible utilisation in 16 bits: no published run attains it.
const PLAUSIBLE: f64 = 0.75;

/// Reason why a utilisation with recomputation is implausible, with the likely cause; `None` if it is plausible.
pub fn implausible(
    utilisation: f64,
    run: &TrainingRun,
    accelerator: &Accelerator,
    constants: &Constants,
) -> Option<String> {
    if run.precision.bits() != 16 || utilisation <= PLAUSIBLE {
        return None;
    }
    let cause = if *constants != Constants::shipped(accelerator.generation, run.stack) {
        "the constants were changed or calibrated beyond what published runs reach"
    } else if !accelerator.is_preset() {
        "the figures of the hardware are not its data sheet's"
    } else {
        "the constants were fitted on different runs"
    };
    let [own, most] = [utilisation, PLAUSIBLE].map(crate::units::percent);
    Some(format!(
        "implausible: {own} of the peak, recomputation included; no published run in 16 bits exceeds {most}; likely \
        cause: {cause}"
    ))
}

/// Known weaknesses of the predictions that apply to a run.
pub fn weaknesses(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
    let mut sentences = vec![];
    if model.has_experts() {
        sentences.extend(weaknesses_of_experts(model, run, accelerator));
    }
    if run.layout.pipeline == 2 && run.layout.micro_batch >= 4 {
        sentences.push("in one data set two stages with large microbatches took up to twice the predicted time".into());
    }
    let small = model.parameters() < 10_000_000_000;
    if accelerator.generation == Generation::Blackwell && run.layout.tensor >= 8 && small {
        sentences.push("tensor degree 8 of small models on Blackwell was 16% slower than predicted".into());
    }
    sentences
}

fn weaknesses_of_experts(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
    let mut sentences = vec![];
    let layout = &run.layout;
    match run.settings.release {
        Some(release) => {
            let evidence = match release.is_published() {
                true => format!("as in published runs of releases near {release}"),
                false => "that of the nearest published one; published runs have 25.09 to 26.08".into(),
            };
            let factor = release.factor(accelerator.generation);
            sentences.push(format!("release {release} has a factor of {factor} on the time, {evidence}"));
        }
        None if run.stack == Stack::Megatron2025 => sentences.push(
            "equal runs of mixtures of experts differ by up to 99% between software releases: name yours (--set \
            release=26.02)"
                .into(),
        ),
        None => {}
    }
    let twice =
        |own: &Release| own.has_graphs(accelerator.generation) && run.settings.ep_overlap == ExpertOverlap::Batch;
    sentences.extend(run.settings.release.filter(twice).map(|release| {
        format!(
            "the factor of release {release} contains the overlap of its recipes, so that ep_overlap=batch counts twice: \
            leave one of the two out"
        )
    }));
    let chunks = u64::from(layout.pipeline) * u64::from(layout.virtual_stages);
    if accelerator.generation == Generation::Hopper && layout.virtual_stages >= 8 && chunks >= model.layers.len() as u64
    {
        sentences.push(
            "with virtual stages of one layer, one release on H100 took twice the time of another for the same run; \
            nothing explains it"
                .into(),
        );
    }
    if accelerator.id == "b200" && layout.expert_ranks() > u64::from(accelerator.domain) {
        sentences.push("experts across machines of B200 took longer in published runs; nothing explains it".into());
    }
    sentences
}
