//! Layout by rule of thumb: tensor parallelism fills the machine, then the fewest stages that fit, the rest replicas.
//!
//! It is what many people would run without a planner, so a plan is measured against it. A handful of predictions.

use plantui_core::{
    family::training::{Estimate, Fits, check::takes_tensor, truth},
    workload::{
        TrainingProfile,
        training::{Layout, Recompute, TrainingRun},
    },
};

use super::predict;

/// Most shards of a tensor, and most parts of the experts.
const MOST: u32 = 8;
/// Most stages.
const STAGES: u32 = 64;

/// Run by rule of thumb on all devices, with its prediction; `None` if no such run fits. `memory_bytes` is that of a
/// device, the reserve included.
pub fn rule_of_thumb(
    profile: &TrainingProfile,
    devices: u32,
    batch: u32,
    memory_bytes: f64,
) -> Option<(TrainingRun, Estimate)> {
    let powers = |most: u32| (0..u32::BITS).rev().map(|bits| 1u32 << bits).filter(move |own| *own <= most);
    let machine = profile.accelerator.domain.clamp(1, MOST);
    let experts = if profile.model.has_experts() { MOST } else { 1 };
    let divides = |own: &u32| devices.is_multiple_of(*own) && takes_tensor(&profile.model, profile.stack, *own);
    let tensor = powers(machine).find(divides)?;
    let rest = devices / tensor;
    let stages: Vec<u32> = (1..=rest.min(STAGES)).filter(|stages| rest.is_multiple_of(*stages)).collect();
    let runs = |recompute: Recompute| {
        stages.iter().filter_map(move |&pipeline| {
            // The largest expert degree that the engine runs.
            powers(experts).find_map(|expert| {
                let layout = Layout { tensor, pipeline, data: rest / pipeline, expert, ..Layout::ONE };
                let run = profile.run(&profile.configuration(layout, recompute), batch);
                predict(profile, &run).map(|estimate| (run, estimate))
            })
        })
    };
    // With the error of the memory model, as planners take it; without it if nothing else fits.
    let fits = |(run, own): &(TrainingRun, Estimate), kind: Fits| {
        let error = truth::memory_error(&profile.model, run, &profile.accelerator, &profile.constants);
        let fit = Fits::of(own.memory_bytes + profile.settings.reserve_bytes, memory_bytes, error);
        fit == kind
    };
    let all = || [Recompute::None, Recompute::Full].into_iter().flat_map(runs);
    [Fits::Yes, Fits::Close].into_iter().find_map(|kind| all().find(|own| fits(own, kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::load;

    #[test]
    fn tensors_fill_the_machine_and_stages_are_as_few_as_fit() {
        let workload = load(std::path::Path::new("llama-3-70b")).unwrap();
        let profile = workload.training().unwrap();
        let gib = f64::from(1 << 30);
        let (run, estimate) = rule_of_thumb(profile, 64, 128, 80.0 * gib).unwrap();
        let layout = run.layout;
        assert_eq!((layout.tensor, layout.pipeline, layout.data), (8, 2, 4));
        assert!((14.5..15.5).contains(&estimate.simulated_s), "{}", estimate.simulated_s);
        // Half of the memory takes more stages.
        let (run, _) = rule_of_thumb(profile, 64, 128, 48.0 * gib).unwrap();
        assert!(run.layout.pipeline > 2, "{:?}", run.layout);
        assert!(rule_of_thumb(profile, 1, 128, 80.0 * gib).is_none());
    }
}
