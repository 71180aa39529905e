//! The bound never exceeds the simulated time, and needs little of it.

use super::{
    candidate::{Bench, bound, bound_of_any_split},
    space,
};
use crate::{
    Options, Planner,
    joint::{Joint, settings::JointSettings},
};
use plantui_core::{
    cluster::Limits,
    family::training::{Recompute, ZeroBubble, hardware, iteration::IterationCosts, published},
    workload::TrainingProfile,
};

#[test]
fn no_simulation_goes_below_the_bound() {
    let settings = JointSettings::new(&Options::defaults(Joint.options()));
    let (mut seen, mut near, mut apart) = (0, 0, 0);
    for (model, hardware, devices, batch) in
        [("llama-3.1-8b", "h100", 32, 64), ("deepseek-v2-lite", "b200", 16, 32), ("llama-3-70b", "a100-80", 48, 96)]
    {
        let Some(model) = published::find(model) else { panic!("{model} is published") };
        let profile = TrainingProfile::new(model, hardware::find(hardware).unwrap());
        let limits = Limits { batch: Some(batch), ..Limits::NEUTRAL };
        let bench = Bench::new(&profile, &limits, 0.0);
        let layouts = space::layouts(&profile, devices, batch, &settings);
        assert!(layouts.len() > 100, "{}", layouts.len());
        for layout in layouts.into_iter().step_by(11) {
            for (layout, zero_bubble) in ZeroBubble::ALL
                .into_iter()
                .filter_map(|schedule| Some((super::zero_bubble::layout(layout, schedule)?, schedule)))
            {
                let mut configuration = profile.configuration(layout, Recompute::None);
                configuration.zero_bubble = Some(zero_bubble);
                let Ok((run, split)) = bench.taken(&configuration) else { continue };
                let costs = IterationCosts::of(&profile.model, &run, &profile.accelerator, &profile.constants, &split);
                let simulated = bench.simulated(&bench.candidate(&run, &split));
                let bounds = [bound(&costs, true), bound_of_any_split(&costs)];
                assert!(
                    bounds.iter().all(|bound| *bound <= simulated * (1.0 + 1e-9)),
                    "{layout}: {bounds:?} {simulated}"
                );
                apart += 1;
            }
            let mut configuration = profile.configuration(layout, Recompute::None);
            let splits = std::iter::once(vec![]).chain(space::uneven(profile.model.layers.len(), &layout));
            for layers in splits.step_by(3) {
                configuration.layers = layers;
                let Ok((run, split)) = bench.taken(&configuration) else { continue };
                let costs = IterationCosts::of(&profile.model, &run, &profile.accelerator, &profile.constants, &split);
                let simulated = bench.simulated(&bench.candidate(&run, &split));
                let (bound, any) = (bound(&costs, false), bound_of_any_split(&costs));
                assert!(bound <= simulated * (1.0 + 1e-9), "{layout}: {bound} above {simulated}");
                assert!(any <= simulated * (1.0 + 1e-9), "{layout}: {any} above {simulated}");
                seen += 1;
                near += usize::from(bound > 0.97 * simulated);
            }
        }
    }
    assert!(apart > 20, "{apart} zero-bubble schedules");
    assert!(seen > 100 && near * 10 > seen * 8, "{near} of {seen} within 3%");
}
