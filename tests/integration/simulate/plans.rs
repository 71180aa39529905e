//! Facts that hold for every simulated schedule.

use std::{path::Path, sync::Arc};

use crate::common::reference;
use crate::simulate::simulated::{
    Random, assert_sound, chain, close, random_pipeline, random_settings, stage, transfer,
};
use plantui::{
    cluster::{GivenLimits, LimitKind},
    family,
    planner::{self, Options, Problem, Search},
    run,
    simulate::{EventKind, MOST_EVENTS, Pipeline, PipelineStage, Schedule, SimulatorSettings, simulate},
    workload::load,
};

#[test]
fn random_pipelines_are_sound() {
    let mut random = Random(11);
    let mut simulated = std::collections::BTreeMap::new();
    for _ in 0..600 {
        let mut pipeline = random_pipeline(&mut random);
        for settings in [SimulatorSettings::default(), random_settings(&mut random)] {
            pipeline.settings = settings;
            for schedule in pipeline.playable() {
                *simulated.entry(schedule.id()).or_insert(0) += 1;
                assert_sound(&pipeline, schedule, &simulate(&pipeline, schedule));
            }
        }
    }
    assert!(Schedule::ALL.iter().all(|schedule| simulated[schedule.id()] > 150), "{simulated:?}");
}

#[test]
fn gpipe_without_communication_has_a_closed_form() {
    let mut random = Random(3);
    for _ in 0..300 {
        let stages: Vec<PipelineStage> = (0..=random.below(8)).map(|_| stage(random.time(), random.time())).collect();
        let m = 1 + random.below(30) as u32;
        let sum: f64 = stages.iter().map(|s| s.forward_s + s.backward_s).sum();
        let longest = |time: fn(&PipelineStage) -> f64| stages.iter().map(time).fold(0.0, f64::max);
        let expected = sum + f64::from(m - 1) * (longest(|s| s.forward_s) + longest(|s| s.backward_s));
        let links = vec![0.0; stages.len() - 1];
        let timeline = simulate(&chain(stages, &links, m), Schedule::GPipe);
        assert!(close(timeline.iteration_s, expected), "{} {expected}", timeline.iteration_s);
    }
}

#[test]
fn uniform_stages_have_the_textbook_time_and_bubble() {
    for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe] {
        for (s, m) in [(1, 1), (1, 7), (4, 1), (4, 3), (4, 64), (9, 20)] {
            let pipeline = chain(vec![stage(0.5, 1.25); s as usize], &vec![0.0; s as usize - 1], m);
            let timeline = simulate(&pipeline, schedule);
            assert_eq!(timeline.iteration_s, f64::from(m + s - 1) * 1.75, "{schedule:?} {s} {m}");
            assert!(close(timeline.idle, f64::from(s - 1) / f64::from(m + s - 1)));
            assert!(close(timeline.samples_per_s, f64::from(m) / timeline.iteration_s));
        }
    }
}

#[test]
fn latency_is_not_hidden_by_one_forward_one_backward() {
    // Four stages of 2 + 4 seconds and transfers of 1: four microbatches in flight at the first stage go round in 30
    // seconds, so the batch needs 7.5 seconds a microbatch although every stage works only 6.
    let pipeline = |m| chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], m);
    let time = |m, schedule| simulate(&pipeline(m), schedule).iteration_s;
    assert_eq!(time(64, Schedule::OneForwardOneBackward), 502.0);
    assert_eq!(time(64, Schedule::GPipe), 408.0);
    let one = Schedule::OneForwardOneBackward;
    assert_eq!((time(128, one) - time(64, one)) / 64.0, 7.5);
}

#[test]
fn no_schedule_beats_the_lower_bound() {
    let mut random = Random(5);
    for _ in 0..300 {
        let count = 1 + random.below(6) as usize;
        let stages: Vec<PipelineStage> = (0..count).map(|_| stage(random.time(), random.time())).collect();
        let links: Vec<f64> = (1..count).map(|_| random.time()).collect();
        let m = 1 + random.below(30) as u32;
        let pipeline = chain(stages, &links, m);
        for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe, Schedule::EagerOneForwardOneBackward] {
            let iteration_s = simulate(&pipeline, schedule).iteration_s;
            let mut before = 0.0;
            for (s, stage) in pipeline.stages.iter().enumerate() {
                let own = stage.forward_s + stage.backward_s;
                let bound = f64::from(m) * own + before;
                assert!(iteration_s >= bound * (1.0 - 1e-11), "{iteration_s} {bound}");
                before += own + 2.0 * links.get(s).copied().unwrap_or(0.0);
            }
        }
    }
}

#[test]
fn nothing_gets_faster_when_something_gets_slower() {
    let mut random = Random(17);
    for _ in 0..400 {
        let pipeline = random_pipeline(&mut random);
        let mut slower = pipeline.clone();
        let s = random.below(slower.stages.len() as u64) as usize;
        match random.below(4) {
            0 => slower.stages[s].forward_s += random.time(),
            1 => slower.stages[s].backward_s += random.time(),
            2 => slower.stages[s].all_reduce_s += random.time(),
            _ => slower.transfers.iter_mut().for_each(|t| t.seconds += 0.5),
        }
        for schedule in pipeline.playable() {
            let (before, after) = (simulate(&pipeline, schedule), simulate(&slower, schedule));
            assert!(after.iteration_s >= before.iteration_s * (1.0 - 1e-11));
        }
    }
}

#[test]
fn empty_and_timeless_pipelines_are_harmless() {
    let broken = PipelineStage { forward_s: f64::NAN, backward_s: -1.0, ..PipelineStage::default() };
    let pipelines = [
        Pipeline::default(),
        Pipeline { microbatches: 5, ..Pipeline::default() },
        chain(vec![stage(1.0, 2.0); 2], &[1.0], 0),
        chain(vec![stage(0.0, 0.0); 3], &[0.0; 2], 4),
        chain(vec![broken; 2], &[f64::INFINITY], 4),
        Pipeline {
            transfers: vec![transfer(1, 0, 1.0), transfer(0, 9, 1.0)],
            ..chain(vec![stage(1.0, 1.0); 2], &[], 2)
        },
    ];
    for pipeline in &pipelines {
        for schedule in pipeline.playable() {
            let timeline = simulate(pipeline, schedule);
            assert!(timeline.iteration_s.is_finite() && timeline.idle.is_finite());
            assert!(timeline.samples_per_s.is_finite() && timeline.peak_memory().is_finite());
        }
    }
}

#[test]
fn batches_too_long_to_draw_are_still_exact() {
    let m = 1_000_000;
    let pipeline = chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], m);
    let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
    assert_eq!(timeline.iteration_s, 502.0 + 7.5 * f64::from(m - 64));
    assert_eq!(timeline.busy_s[0], 6e6);
    assert_eq!(timeline.peak_memory_bytes, [22.0, 19.0, 16.0, 13.0]);
    assert!(timeline.events.len() <= MOST_EVENTS);
    let left_out = timeline.left_out.clone().unwrap();
    assert_eq!(left_out.start, m - left_out.end);
    for (s, steps) in timeline.memory.iter().enumerate() {
        assert_eq!(steps.iter().map(|step| step.1).fold(0.0, f64::max), timeline.peak_memory_bytes[s]);
        assert!(steps.is_sorted_by(|a, b| a.0 < b.0) && steps.last().unwrap().1 == 10.0);
        let forwards: Vec<u32> =
            timeline.row(s, 0).iter().filter(|e| e.kind == EventKind::Forward).map(|e| e.microbatch).collect();
        assert!(forwards.into_iter().eq((0..left_out.start).chain(left_out.end..m)));
    }
    let last = timeline.events.iter().map(|e| e.end_s).fold(0.0, f64::max);
    assert_eq!(last, timeline.iteration_s);
    let apart = chain(vec![stage(2.0, 4.0), stage(3.0, 1.0), stage(1.0, 5.0)], &[0.0; 2], m);
    let timeline = simulate(&apart, Schedule::GPipe);
    assert_eq!(timeline.iteration_s, 16.0 + f64::from(m - 1) * 8.0);
    assert_eq!(timeline.peak_memory(), 10.0 + 3.0 * f64::from(m));
}

#[test]
fn a_stage_takes_the_same_time_in_whatever_order_its_nodes_are_listed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/bert32a100.json");
    let workload = Arc::new(load(&file).unwrap());
    let planner = planner::find("piper").unwrap();
    let overrides =
        GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Memory, 8.0 * f64::from(1 << 30));
    let limits = family::resolve(&workload, &overrides).unwrap();
    let options = Options::defaults(planner.options());
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    let plan = run::plan(planner, &problem, &Search::default()).unwrap().0.plan.unwrap();
    let mut listed = plan.clone();
    for stage in &mut listed.stages {
        stage.nodes.reverse();
        stage.choices.reverse();
    }
    let settings = SimulatorSettings { overlap: false, ..SimulatorSettings::default() };
    let pipelines = [&plan, &listed].map(|plan| family::pipeline(&workload, &limits, plan, &settings));
    for (a, b) in pipelines[0].stages.iter().zip(&pipelines[1].stages) {
        assert_eq!((a.forward_s, a.backward_s, a.all_reduce_s), (b.forward_s, b.backward_s, b.all_reduce_s));
    }
    let times = pipelines.each_ref().map(|pipeline| simulate(pipeline, Schedule::ALL[0]).iteration_s);
    assert_eq!(times[0], times[1]);
}

/// BERT-32 as published, planned by Piper: what the simulator makes of it agrees with the check.
#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn published_bert_plans_simulate_as_checked() {
    let folder = reference::root();
    let file = Path::new(&folder).join("piper/inputs/bert32a100.json");
    let workload = Arc::new(load(&file).unwrap());
    let planner = planner::find("piper").unwrap();
    for (devices, memory_gib) in [(8, 80.0), (64, 8.0), (512, 8.0)] {
        let overrides = GivenLimits::default()
            .with(LimitKind::Devices, devices)
            .with(LimitKind::Memory, memory_gib * f64::from(1 << 30));
        let limits = family::resolve(&workload, &overrides).unwrap();
        let options = Options::defaults(planner.options());
        let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        let (plan, score) = (outcome.plan.unwrap(), score.unwrap());
        let pipeline = family::pipeline(&workload, &limits, &plan, &SimulatorSettings::default());
        for schedule in pipeline.playable() {
            let timeline = simulate(&pipeline, schedule);
            assert_sound(&pipeline, schedule, &timeline);
            let compute = score.stages.iter().map(|s| s.compute_s).fold(0.0, f64::max);
            assert!(
                schedule == Schedule::Inference
                    || timeline.iteration_s >= compute * f64::from(limits.microbatches) * (1.0 - 1e-9)
            );
            if schedule == Schedule::OneForwardOneBackward {
                assert!(close(timeline.peak_memory(), score.peak_memory_bytes()));
            }
            println!(
                "{devices} devices, {memory_gib} GiB, {} stages, {}: planned {} s a batch, {}",
                plan.stages.len(),
                schedule.name(),
                score.slowest_s * f64::from(limits.microbatches),
                timeline.summary()
            );
        }
    }
}
