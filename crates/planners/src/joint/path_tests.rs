//! Random pipelines under every schedule: no path is longer than the simulated batch, and nothing is held that is not counted.

use super::{
    interleave::Chain,
    kind::{ScheduleKind, ScheduleRequest},
    line::StageCost,
    paths::{self, Frame},
};
use plantui_core::plan::Schedule;
use plantui_core::random::SplitMix;
use plantui_core::simulate::{Pipeline, PipelineStage, SimulatorSettings, Transfer, simulate};

fn kinds() -> Vec<ScheduleKind> {
    let all = ScheduleRequest { schedule: None, parts: None }.kinds(&|_| true);
    all.into_iter().filter(|&kind| kind != ScheduleKind::ONE).collect()
}

/// A chain of stages that a schedule can run, recomputing here and there.
fn pipeline(random: &mut SplitMix, kind: ScheduleKind) -> Pipeline {
    let count = 2 + random.below(6);
    let microbatches = count as u32 * [1, 2, 3, 7][random.below(4)];
    let microbatches = if kind.runs(count, microbatches) { microbatches } else { 2 * microbatches };
    let odd = if kind.runs(count, microbatches + 1) { random.below(2) as u32 } else { 0 };
    let [sent, reduced] = [0.0, 0.3, 3.0].map(|most| [most, most * 10.0])[random.below(3)];
    let stage = |random: &mut SplitMix| {
        let forward_s = 0.1 + random.unit();
        let (plain, recompute_s) = (forward_s * (1.0 + 2.0 * random.unit()), forward_s * random.below(2) as f64);
        PipelineStage {
            forward_s,
            backward_s: plain + recompute_s,
            recompute_s,
            all_reduce_s: reduced * random.unit(),
            activation_bytes: 1.0,
            replicas: 1,
            ..PipelineStage::default()
        }
    };
    // Schedules with one part on each stage also run what sends past the next stage.
    let skips = kind.parts == 1 && random.below(2) == 0;
    let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
    let mut transfers = vec![];
    for (from, to) in pairs {
        if to == from + 1 || (skips && random.below(3) == 0) {
            transfers.push(Transfer { from, to, seconds: sent * random.unit(), bytes: 1.0 });
        }
    }
    Pipeline {
        stages: (0..count).map(|_| stage(random)).collect(),
        transfers,
        microbatches: microbatches + odd,
        settings: SimulatorSettings { virtual_stages: kind.parts, ..SimulatorSettings::default() },
        ..Pipeline::default()
    }
}

fn bound(pipeline: &Pipeline, kind: ScheduleKind, halves: bool) -> f64 {
    let sum = |wanted: &dyn Fn(&Transfer) -> bool| -> f64 {
        pipeline.transfers.iter().filter(|send| wanted(send)).map(|send| send.seconds).sum()
    };
    let stage = |(s, stage): (usize, &PipelineStage)| StageCost {
        forward: stage.forward_s,
        backward: stage.backward_s,
        again: stage.recompute_s,
        send: sum(&|send| send.from == s && send.to == s + 1),
        sends: sum(&|send| send.from == s),
        returns: sum(&|send| send.to == s),
        parameters: stage.all_reduce_s,
    };
    let stages: Vec<StageCost> = pipeline.stages.iter().enumerate().map(stage).collect();
    let frame = Frame {
        kind,
        stages: stages.len(),
        microbatches: pipeline.microbatches,
        forward: stages.iter().map(|stage| stage.forward).sum(),
        backward: stages.iter().map(|stage| stage.backward).sum(),
        sends: 0.0,
        halves,
    };
    paths::pipeline(&frame, &stages, 1.0)
}

/// Holds so many pipelines of every kind; the gaps that the bounds leave.
fn hold(seed: u64, each: usize) -> Vec<f64> {
    let mut random = SplitMix::new(seed);
    let mut gaps = vec![];
    for kind in kinds() {
        for _ in 0..each {
            let pipeline = pipeline(&mut random, kind);
            let timeline = simulate(&pipeline, kind.schedule);
            let (time, own) = (timeline.iteration_s, bound(&pipeline, kind, false));
            assert!(time > 0.0 && own <= time * (1.0 + 1e-9), "{kind:?} {own} {time} {pipeline:?}");
            assert!(bound(&pipeline, kind, true) <= time * (1.0 + 1e-9), "{kind:?} {time} {pipeline:?}");
            let count = pipeline.stages.len();
            for (s, held) in timeline.peak_memory_bytes.iter().enumerate() {
                let counted = kind.in_flight(count, count - 1 - s, pipeline.microbatches);
                assert!((held - counted).abs() <= 1e-9, "{kind:?} stage {s}: {held} {counted} {pipeline:?}");
            }
            gaps.push(1.0 - own / time);
        }
    }
    gaps.sort_by(f64::total_cmp);
    gaps
}

#[test]
fn interleaved_batches_take_what_is_simulated() {
    let mut random = SplitMix::new(11);
    let interleaved: Vec<ScheduleKind> =
        kinds().into_iter().filter(|kind| kind.schedule == Schedule::Interleaved).collect();
    for case in 0..400 {
        let kind = interleaved[case % interleaved.len()];
        let pipeline = pipeline(&mut random, kind);
        let stage = |stage: &PipelineStage| [stage.forward_s, stage.backward_s, stage.all_reduce_s];
        let stages: Vec<[f64; 3]> = pipeline.stages.iter().map(stage).collect();
        let sends: Vec<f64> = pipeline.transfers.iter().map(|send| send.seconds).collect();
        let (parts, microbatches) = (kind.parts as usize, pipeline.microbatches as usize);
        let own = Chain { parts, microbatches, stages: &stages, sends: &sends }.seconds();
        let simulated = simulate(&pipeline, kind.schedule).iteration_s;
        assert!((own - simulated).abs() <= 1e-9 * simulated, "{kind:?} {own} {simulated} {pipeline:?}");
    }
}

#[test]
fn no_path_is_longer_than_the_batch() {
    let gaps = hold(7, 300);
    // Bounds that are never near would hold as well.
    assert!(gaps[gaps.len() / 2] < 0.15, "{}", gaps[gaps.len() / 2]);
}

#[test]
#[ignore = "takes a while"]
fn no_path_is_longer_than_the_batch_in_200_000_pipelines() {
    hold(8, 200_000 / kinds().len());
}
