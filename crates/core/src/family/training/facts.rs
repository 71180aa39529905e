//! Training plan in the field's own figures: throughput, utilisation, reliability.

use super::{
    configured,
    estimate::{Estimate, Fits, unused_settings},
    truth, wiring,
};
use crate::{
    cluster::Limits,
    family::describe::FamilyFigure,
    plan::{
        Plan,
        document::{PredictionPart, TrustPart},
    },
    units,
    workload::TrainingProfile,
};

/// Estimate of a plan's configuration; `None` if an engine refuses it.
pub(super) fn estimate(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Option<Estimate> {
    let (configuration, run) = wiring::run_of(profile, plan, limits.samples());
    let devices = configuration.layout.devices();
    Estimate::under(&profile.model, &run, &profile.accelerator, devices, &profile.constants, None).ok()
}

/// Factor from rates of the predicted iteration to those of the simulated one, which is the plan's value.
fn of_simulated(estimate: &Estimate) -> f64 {
    estimate.iteration_s / estimate.simulated_s
}

/// Figures for programs.
pub(super) fn prediction(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Option<PredictionPart> {
    let estimate = estimate(profile, limits, plan)?;
    let scale = of_simulated(&estimate);
    Some(PredictionPart {
        tokens_per_s: estimate.tokens_per_s * scale,
        tokens_per_s_per_device: estimate.tokens_per_s_per_device * scale,
        model_flops_per_s_per_device: estimate.model_flops_per_s_per_device * scale,
        mfu: estimate.mfu * scale,
        hfu: estimate.hfu * scale,
        trust: estimate.trust.class().map(|class| TrustPart {
            class: class.class.into(),
            runs: class.runs,
            mean_error: class.mean_error,
            band: class.band,
            worst_error: class.worst_error,
        }),
        differs: estimate.trust.differences().to_vec(),
        fits: fits(limits, &estimate, profile).id().into(),
        implausible: estimate.implausible,
        cost: None,
    })
}

/// Figures for one line: throughput, utilisation, error of such predictions.
pub(super) fn figures(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Vec<FamilyFigure> {
    let Some(estimate) = estimate(profile, limits, plan) else { return vec![] };
    let scale = of_simulated(&estimate);
    let figure = |value: String, name: &str, short| FamilyFigure { value, name: name.into(), short };
    let tokens = units::number(estimate.tokens_per_s_per_device * scale);
    vec![
        figure(format!("{tokens} tokens/s"), "per device", "a device"),
        figure(units::percent(estimate.mfu * scale), "MFU", "MFU"),
        match estimate.trust.class() {
            Some(class) => FamilyFigure {
                value: format!("±{}", units::percent(class.band)),
                name: format!("on {} published runs", class.runs),
                short: "trust",
            },
            None => figure("untested".into(), "no comparable published run", "trust"),
        },
    ]
}

/// Shares of the time for dispatch, the busiest rank and launches, if there are experts.
pub(super) fn expert_shares(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Vec<(&'static str, f64)> {
    let Some(estimate) = estimate(profile, limits, plan).filter(|_| profile.model.has_experts()) else { return vec![] };
    let names = [("dispatch", "expert_parallel"), ("imbalance", "expert_imbalance"), ("launches", "launches")];
    let seconds =
        |part: &str| estimate.parts.iter().find(|(name, _)| *name == part).map_or(0.0, |(_, seconds)| *seconds);
    names.map(|(name, part)| (name, seconds(part) / estimate.iteration_s)).to_vec()
}

/// Lines: the configuration, its performance, the error of such predictions.
pub(super) fn lines(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Vec<String> {
    let configuration = configured::of_plan(profile, plan);
    let mut lines = vec![configuration.to_string()];
    let Some(estimate) = estimate(profile, limits, plan) else { return lines };
    let scale = of_simulated(&estimate);
    let bytes = estimate.memory_bytes + profile.settings.reserve_bytes;
    lines.push(format!(
        "{:.0} tokens/s per device   {:.0} TFLOP/s   MFU {}   HFU {}   fits: {}",
        estimate.tokens_per_s_per_device * scale,
        estimate.model_flops_per_s_per_device * scale / 1e12,
        units::percent(estimate.mfu * scale),
        units::percent(estimate.hfu * scale),
        fits(limits, &estimate, profile).with_excess(bytes, limits.memory_limit()),
    ));
    lines.push(estimate.trust.summary());
    lines.extend(estimate.implausible.clone());
    let (_, run) = wiring::run_of(profile, plan, limits.samples());
    lines.extend(unused_settings(&profile.model, &run));
    lines.extend(truth::weaknesses(&profile.model, &run, &profile.accelerator));
    lines
}

/// Evidence for the figures of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanEvidence {
    /// Memory check, with the error of the memory model.
    pub fits: Fits,
    /// True if published runs are like it, so that the error of the prediction is known.
    pub tested: bool,
}

/// Evidence for the figures of a plan; `None` if its configuration is not valid.
pub fn evidence(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Option<PlanEvidence> {
    let estimate = estimate(profile, limits, plan)?;
    Some(PlanEvidence { fits: fits(limits, &estimate, profile), tested: estimate.trust.class().is_some() })
}

/// Memory check of an estimate, with the error of the memory model.
fn fits(limits: &Limits, estimate: &Estimate, profile: &TrainingProfile) -> Fits {
    let bytes = estimate.memory_bytes + profile.settings.reserve_bytes;
    Fits::of(bytes, limits.memory_limit(), estimate.trust.memory_error())
}
