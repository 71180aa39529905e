//! A training plan in the field's own figures: throughput, utilisation, trust.

use super::{Estimate, configured};
use crate::{cluster::Limits, plan::Plan, units, workload::TrainingProfile};

/// What is predicted of a plan's configuration; `None` where an engine refuses it.
pub(super) fn estimate(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Option<Estimate> {
    let configuration = configured::of_plan(profile, plan);
    let run = profile.run(&configuration, limits.batch);
    let devices = configuration.layout.devices();
    Estimate::under(&profile.model, &run, &profile.accelerator, devices, &profile.constants, None).ok()
}

/// The lines: the configuration, what it attains, how far such predictions were off.
pub(super) fn lines(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Vec<String> {
    let configuration = configured::of_plan(profile, plan);
    let mut lines = vec![configuration.to_string()];
    let Some(estimate) = estimate(profile, limits, plan) else { return lines };
    // Rates are of the simulated iteration, which is the plan's value.
    let scale = estimate.iteration_s / estimate.simulated_s;
    lines.push(format!(
        "{:.0} tokens/s per device   {:.0} TFLOP/s   MFU {}   HFU {}",
        estimate.tokens_per_s_per_device * scale,
        estimate.model_flops_per_s_per_device * scale / 1e12,
        units::percent(estimate.mfu * scale),
        units::percent(estimate.hfu * scale),
    ));
    lines.push(match estimate.trust {
        Some(class) => format!(
            "off by {} on {} such published runs, {} at worst: {}",
            units::percent(class.mean_error),
            class.runs,
            units::percent(class.worst_error),
            class.class
        ),
        None => "no published run is like this".into(),
    });
    lines
}
