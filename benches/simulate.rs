//! How fast a batch is simulated.

use plantui::simulate::{Pipeline, PipelineStage, Schedule, Transfer, simulate};

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
        warm_up: None,
    };
    let transfer = |from| Transfer { from, to: from + 1, seconds: 0.001, bytes: 25e6 };
    Pipeline {
        stages: (0..stages).map(stage).collect(),
        transfers: (0..stages - 1).map(transfer).collect(),
        microbatches,
        ..Pipeline::default()
    }
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
