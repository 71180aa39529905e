//! Straight pipelines of the published DAPPLE planner against its recurrence as published: every way to every set, none left out.

use std::collections::BTreeMap;

use crate::common::random_layers::{Dice, workload};
use plantui::{
    cluster::Machines,
    plan::SpeedupModel,
    planner::{
        Search,
        dapple::hpgo::{
            Faults, HpgoModel, Kind, candidates,
            placement::{self, Devices},
        },
    },
    workload::states::States,
};

/// Seconds a byte takes between two sets.
fn per_byte(model: &HpgoModel<'_>, from: Devices, to: Devices) -> f64 {
    model.links().transfer_per_byte(&model.machines, &placement::ids(from), &placement::ids(to))
}

/// The bottleneck of the pipeline with a stage on each device that the recurrence ends with.
fn published(model: &HpgoModel<'_>) -> Option<f64> {
    let first = placement::next_of_fresh(&model.machines, 1)?;
    // By last state, then occupied set: the bottleneck and the last stage's devices.
    let init = |j: usize| BTreeMap::from([(first, (model.compute_s(0, j), first))]);
    let mut row: Vec<BTreeMap<Devices, (f64, Devices)>> = (0..model.states()).map(init).collect();
    for _ in 1..model.devices {
        let end = |j: usize| {
            let mut cells: BTreeMap<Devices, (f64, Devices)> = BTreeMap::new();
            let mut before: Vec<usize> = model.before_backwards(j).collect();
            before.reverse();
            for k in before {
                for (&occupied, &(block_s, last)) in &row[k] {
                    for next in placement::next(&model.machines, occupied, 1) {
                        let sent = 2.0 * model.output_bytes(k) * per_byte(model, last, next);
                        let new = (block_s.max(model.compute_s(k + 1, j)).max(sent), next);
                        let known = cells.entry(occupied | next).or_insert(new);
                        if new.0 < known.0 {
                            *known = new;
                        }
                    }
                }
            }
            cells
        };
        row = (0..model.states()).map(end).collect();
    }
    row[model.states() - 1].values().map(|&(block_s, _)| block_s).reduce(f64::min)
}

#[test]
fn straight_pipelines_are_those_of_the_recurrence() {
    let mut found = 0;
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let layers = 5 + dice.below(9) as usize;
        let workload = workload(&mut dice, layers);
        let states = States::of(&workload, workload.layers().unwrap()).unwrap();
        let machines = Machines::new(dice.pick(&[&[2, 2][..], &[1, 2, 1], &[3, 2], &[2, 1, 2], &[4]])).unwrap();
        let batch = dice.pick(&[1, 16, 512]);
        let model = HpgoModel::new(&states, machines, batch, 16e9, SpeedupModel::default(), Faults::KEPT);
        if (model.devices as usize) > model.states() {
            continue;
        }
        let all = candidates(&model, &Search::default());
        let ours = all.plans.iter().find(|plan| plan.kind == Kind::Straight(model.devices));
        let block_s = ours.map(|plan| {
            let computed = plan.stages.iter().map(|stage| model.compute_s(stage.from, stage.to));
            let sent = plan
                .stages
                .windows(2)
                .map(|pair| 2.0 * model.output_bytes(pair[0].to) * per_byte(&model, pair[0].devices, pair[1].devices));
            computed.chain(sent).fold(f64::NEG_INFINITY, f64::max)
        });
        // Below a millisecond the published program gives up.
        let expected = published(&model).filter(|&block_s| block_s >= 1e-3);
        assert_eq!(block_s, expected, "seed {seed}");
        found += usize::from(ours.is_some());
    }
    assert!(found > 200, "{found}");
}
