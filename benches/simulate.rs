//! Speed of the simulator. Events are counted as operations and transfers, simulated or skipped.

use plantui::{
    cluster::topology::named,
    simulate::{LinkModel, Pipeline, PipelineStage, Schedule, SimulatorSettings, Transfer, critical_path, simulate},
};

fn main() {
    divan::main();
}

/// Stages of nearly equal length, as planners make them, each with the given replicas.
fn pipeline(stages: usize, replicas: u32, microbatches: u32) -> Pipeline {
    let stage = |i: usize| PipelineStage {
        forward_s: 0.01 * (1.0 + (i * 7 % 13) as f64 / 1000.0),
        backward_s: 0.02 * (1.0 + (i * 5 % 11) as f64 / 1000.0),
        replicas,
        devices: 1,
        all_reduce_s: 0.1,
        fixed_bytes: 1e9,
        activation_bytes: 1e8,
        ..PipelineStage::default()
    };
    let transfer = |from| Transfer { from, to: from + 1, seconds: 0.001, bytes: 25e6 };
    Pipeline {
        stages: (0..stages).map(stage).collect(),
        transfers: (0..stages - 1).map(transfer).collect(),
        microbatches,
        ..Pipeline::default()
    }
}

/// Number of events of a timeline that keeps them all.
fn events(pipeline: &Pipeline, schedule: Schedule) -> usize {
    simulate(pipeline, schedule).events.len()
}

#[divan::bench(args = [(64, 1, 2000), (32, 8, 1920), (64, 1, 1_000_000)])]
fn one_forward_one_backward(bencher: divan::Bencher<'_, '_>, (stages, replicas, microbatches): (usize, u32, u32)) {
    let pipeline = pipeline(stages, replicas, microbatches);
    bencher.bench(|| simulate(&pipeline, Schedule::OneForwardOneBackward));
}

#[divan::bench(args = [(64, 1, 2000), (64, 1, 1_000_000)])]
fn gpipe(bencher: divan::Bencher<'_, '_>, (stages, replicas, microbatches): (usize, u32, u32)) {
    let pipeline = pipeline(stages, replicas, microbatches);
    bencher.bench(|| simulate(&pipeline, Schedule::GPipe));
}

/// 64 stages and 1984 microbatches, which is a multiple of 64, in every schedule.
#[divan::bench(args = Schedule::ALL)]
fn schedules(bencher: divan::Bencher<'_, '_>, schedule: Schedule) {
    let pipeline = pipeline(64, 1, 1984);
    bencher.bench(|| simulate(&pipeline, schedule));
}

/// Simulation with contention: exclusive or shared links, or no overlap. Events are counted, so items are events per
/// second.
#[divan::bench(args = [(LinkModel::Private, false), (LinkModel::Exclusive, true), (LinkModel::Shared, true), (LinkModel::Shared, false)])]
fn contended(bencher: divan::Bencher<'_, '_>, (links, overlap): (LinkModel, bool)) {
    let settings = SimulatorSettings { links, overlap, ..SimulatorSettings::default() };
    let pipeline = Pipeline { settings, ..pipeline(64, 1, 2000) };
    let count = events(&pipeline, Schedule::OneForwardOneBackward);
    bencher
        .counter(divan::counter::ItemsCount::new(count))
        .bench(|| simulate(&pipeline, Schedule::OneForwardOneBackward));
}

/// Simulation on the routes of eight machines of eight devices with one NIC each: every pair of replicas has its own
/// time and links.
#[divan::bench(args = LinkModel::ALL)]
fn mapped(bencher: divan::Bencher<'_, '_>, links: LinkModel) {
    let settings = SimulatorSettings { links, ..SimulatorSettings::default() };
    let topology = named("8xdgx-1+eth-25g").expect("a preset");
    // Stages span two machines each, so most boundaries cross a NIC.
    let devices: Vec<usize> = (0..64).map(|part| part % 8 * 8 + part / 8).collect();
    let pipeline = Pipeline { settings, ..pipeline(8, 8, 1920) }.on(&topology, &devices);
    let count = events(&pipeline, Schedule::OneForwardOneBackward);
    bencher
        .counter(divan::counter::ItemsCount::new(count))
        .bench(|| simulate(&pipeline, Schedule::OneForwardOneBackward));
}

/// Events per second without skipping.
#[divan::bench]
fn played_in_full(bencher: divan::Bencher<'_, '_>) {
    let pipeline = pipeline(64, 1, 2000);
    let count = events(&pipeline, Schedule::OneForwardOneBackward);
    bencher
        .counter(divan::counter::ItemsCount::new(count))
        .bench(|| simulate(&pipeline, Schedule::OneForwardOneBackward));
}

#[divan::bench]
fn critical_path_of_half_a_million_events(bencher: divan::Bencher<'_, '_>) {
    let pipeline = pipeline(64, 1, 2000);
    let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
    bencher.bench(|| critical_path(&pipeline, Schedule::OneForwardOneBackward, &timeline));
}
