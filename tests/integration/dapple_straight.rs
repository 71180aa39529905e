//! Straight pipelines of the published DAPPLE planner against its recurrence as published: every way to every set, none left out.

use std::collections::BTreeMap;

use crate::common::random_layers::{Dice, text};
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
    workload::{load_bytes, states::States},
};

/// Seconds a byte takes between two sets.
fn per_byte(model: &HpgoModel<'_>, from: Devices, to: Devices) -> f64 {
    model.links().transfer_per_byte(&model.machines, &placement::ids(from), &placement::ids(to))
}

/// The bottleneck of a prefix, the devices of its last stage and the last states of all.
type Cell = (f64, Devices, Vec<usize>);

/// The pipelines of so many stages, as many side by side as there are devices for, that the recurrence ends with: their bottleneck
/// and the last states of their stages.
fn published(model: &HpgoModel<'_>, count: u32) -> Option<(f64, Vec<usize>)> {
    let pipelines = model.devices / count;
    let first = placement::next_of_fresh(&model.machines, pipelines)?;
    let compute_s = |from: usize, to: usize| model.compute_s(from, to) / f64::from(pipelines);
    // By last state, then occupied set.
    let init = |j: usize| BTreeMap::from([(first, (compute_s(0, j), first, vec![j]))]);
    let mut row: Vec<BTreeMap<Devices, Cell>> = (0..model.states()).map(init).collect();
    for _ in 1..count {
        let end = |j: usize| {
            let mut cells: BTreeMap<Devices, Cell> = BTreeMap::new();
            let mut before: Vec<usize> = model.before_backwards(j).collect();
            before.reverse();
            for k in before {
                for (&occupied, (block_s, last, ends)) in &row[k] {
                    for next in placement::next_of_each(&model.machines, occupied, 1, pipelines) {
                        let sent = 2.0 * model.output_bytes(k) * per_byte(model, *last, next);
                        let block_s = block_s.max(compute_s(k + 1, j)).max(sent);
                        if cells.get(&(occupied | next)).is_none_or(|known| block_s < known.0) {
                            let ends = ends.iter().copied().chain([j]).collect();
                            cells.insert(occupied | next, (block_s, next, ends));
                        }
                    }
                }
            }
            cells
        };
        row = (0..model.states()).map(end).collect();
    }
    let whole = row.pop()?.into_values().reduce(|best, other| if other.0 < best.0 { other } else { best })?;
    Some((whole.0, whole.2))
}

/// A layer that takes no time; other lines as they are.
fn without_time(line: &str) -> String {
    let layer = line.split_once("forward_compute_time=").zip(line.split_once(", activation_size"));
    let timeless = |((before, _), (_, after)): ((&str, &str), (&str, &str))| {
        format!("{before}forward_compute_time=0, backward_compute_time=0, activation_size{after}")
    };
    layer.map_or(line.to_string(), timeless)
}

#[test]
fn straight_pipelines_are_those_of_the_recurrence() {
    let mut plans = 0;
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let layers = 5 + dice.below(if seed < 400 { 9 } else { 30 }) as usize;
        let mut text = text(&mut dice, layers);
        if seed % 2 == 1 {
            text = text
                .lines()
                .map(|line| if dice.below(3) == 0 { without_time(line) } else { line.to_string() } + "\n")
                .collect();
        }
        let workload = load_bytes(text.as_bytes(), "random.txt", "random").unwrap();
        let states = States::of(&workload, workload.layers().unwrap()).unwrap();
        let machines = Machines::new(dice.pick(&[&[2, 2][..], &[1, 2, 1], &[3, 2], &[2, 1, 2], &[4]])).unwrap();
        let batch = dice.pick(&[1, 16, 512]);
        let model = HpgoModel::new(&states, machines, batch, 16e9, SpeedupModel::default(), Faults::KEPT);
        if (model.devices as usize) > model.states() {
            continue;
        }
        let all = candidates(&model, &Search::default());
        let two = (model.devices > 2 && model.devices.is_multiple_of(2)).then_some(2);
        for count in two.into_iter().chain([model.devices]) {
            let ours = all.plans.iter().find(|plan| plan.kind == Kind::Straight(count));
            let found = ours.map(|plan| {
                let pipelines = f64::from(plan.pipelines);
                let computed = plan.stages.iter().map(|stage| model.compute_s(stage.from, stage.to) / pipelines);
                let sent = plan.stages.windows(2).map(|pair| {
                    2.0 * model.output_bytes(pair[0].to) * per_byte(&model, pair[0].devices, pair[1].devices)
                });
                let ends = plan.stages.iter().map(|stage| stage.to).collect();
                (computed.chain(sent).fold(f64::NEG_INFINITY, f64::max), ends)
            });
            // Below a millisecond the published program gives up.
            let expected = published(&model, count).filter(|&(block_s, _)| block_s >= 1e-3);
            assert_eq!(found, expected, "seed {seed}, {count} stages");
            plans += usize::from(ours.is_some());
        }
    }
    assert!(plans > 600, "{plans}");
}

#[test]
fn there_is_none_where_too_few_states_follow_one_another() {
    let layer = |i: usize| {
        format!(
            "node{i} -- layer{i} -- forward_compute_time=3, backward_compute_time=4, activation_size=5e6, parameter_size=1e6\n"
        )
    };
    // A layer, eight side by side, and a last one.
    let mut text: String = (1..=10).map(layer).collect();
    (2..=9).for_each(|i| text += &format!("\tnode1 -- node{i}\n\tnode{i} -- node10\n"));
    let workload = load_bytes(text.as_bytes(), "wide.txt", "wide").unwrap();
    let states = States::of(&workload, workload.layers().unwrap()).unwrap();
    let longest = (0..states.len()).fold(vec![0; states.len()], |mut longest, j| {
        longest[j] = 1 + states.before(j).map(|k| longest[k]).max().unwrap_or(0);
        longest
    });
    let most = longest[states.len() - 1] as u32;
    assert!((most as usize) < states.len(), "{most} of {}", states.len());
    for devices in (2..=most + 2).chain([states.len() as u32]) {
        let machines = Machines::new(&[devices as u16]).unwrap();
        let model = HpgoModel::new(&states, machines, 512, 16e9, SpeedupModel::default(), Faults::KEPT);
        let all = candidates(&model, &Search::default());
        let there = all.plans.iter().any(|plan| plan.kind == Kind::Straight(devices));
        assert_eq!(
            (there, published(&model, devices).is_some()),
            (devices <= most, devices <= most),
            "{devices} devices"
        );
        assert!(all.missing.is_empty(), "{:?}", all.missing);
    }
}
