//! Figures and laws that are known of pipeline schedules: closed forms, bounds, bubbles, memory.

use crate::simulate::simulated::{
    Random, assert_sound, chain, close, random_pipeline, random_settings, stage, transfer,
};
use plantui::simulate::{
    EventKind, LinkModel, PathKind, Pipeline, PipelineStage, Schedule, SimulatorSettings, critical_path, simulate,
};

fn uniform(stages: usize, microbatches: u32) -> Pipeline {
    chain(vec![stage(1.0, 2.0); stages], &vec![0.0; stages - 1], microbatches)
}

fn with(pipeline: &Pipeline, settings: SimulatorSettings) -> Pipeline {
    Pipeline { settings, ..pipeline.clone() }
}

fn no_overlap() -> SimulatorSettings {
    SimulatorSettings { overlap: false, ..SimulatorSettings::default() }
}

fn time(pipeline: &Pipeline, schedule: Schedule) -> f64 {
    simulate(pipeline, schedule).iteration_s
}

/// Idle time of the first device in units of one microbatch's forward and backward.
fn bubble_s(pipeline: &Pipeline, schedule: Schedule) -> f64 {
    let timeline = simulate(pipeline, schedule);
    timeline.iteration_s - timeline.busy_s[0]
}

#[test]
fn latency_is_hidden_by_more_warm_up_only() {
    // Four stages of 2 + 4 seconds and transfers of 1: with four microbatches in flight each period is 30 / 4 seconds.
    let pipeline = |m| chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], m);
    let period = |schedule| (time(&pipeline(192), schedule) - time(&pipeline(64), schedule)) / 128.0;
    assert_eq!(period(Schedule::OneForwardOneBackward), 7.5);
    assert_eq!(period(Schedule::EagerOneForwardOneBackward), 6.0);
    let more = SimulatorSettings { extra_warm_up: Some(1), ..SimulatorSettings::default() };
    let one_more = with(&pipeline(192), more);
    assert!(time(&one_more, Schedule::EagerOneForwardOneBackward) < time(&pipeline(192), Schedule::ALL[0]));
    let none = SimulatorSettings { extra_warm_up: Some(0), ..SimulatorSettings::default() };
    let same = with(&pipeline(192), none);
    assert_eq!(time(&same, Schedule::EagerOneForwardOneBackward), time(&pipeline(192), Schedule::ALL[0]));
}

#[test]
fn sixty_four_microbatches_take_the_known_times() {
    let pipeline = chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], 64);
    assert_eq!(time(&pipeline, Schedule::OneForwardOneBackward), 502.0);
    assert_eq!(time(&pipeline, Schedule::GPipe), 408.0);
    let waiting = with(&pipeline, no_overlap());
    assert_eq!(time(&waiting, Schedule::OneForwardOneBackward), 661.0);
    assert_eq!(time(&waiting, Schedule::GPipe), 662.0);
}

#[test]
fn without_overlap_both_ends_pay_for_a_transfer() {
    let mut random = Random(29);
    for _ in 0..300 {
        let count = 1 + random.below(6) as usize;
        let stages: Vec<PipelineStage> = (0..count).map(|_| stage(random.time(), random.time())).collect();
        let links: Vec<f64> = (1..count).map(|_| random.time()).collect();
        let m = 1 + random.below(30) as u32;
        let pipeline = with(&chain(stages, &links, m), no_overlap());
        for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe, Schedule::ZeroBubbleH1] {
            let iteration_s = time(&pipeline, schedule);
            for (s, stage) in pipeline.stages.iter().enumerate() {
                let before = s.checked_sub(1).map_or(0.0, |s| links[s]);
                let after = links.get(s).copied().unwrap_or(0.0);
                let bound = f64::from(m) * (stage.forward_s + stage.backward_s + 2.0 * (before + after));
                assert!(iteration_s >= bound * (1.0 - 1e-11), "{iteration_s} {bound}");
            }
        }
    }
}

#[test]
fn one_forward_one_backward_keeps_its_period() {
    // With w + 1 microbatches in flight a stage cannot go faster than one round trip behind it over their number.
    let mut random = Random(31);
    for _ in 0..100 {
        let count = 1 + random.below(6) as usize;
        let stages: Vec<PipelineStage> = (0..count).map(|_| stage(random.time(), random.time())).collect();
        let links: Vec<f64> = (1..count).map(|_| random.time()).collect();
        let pipeline = |m| chain(stages.clone(), &links, m);
        let (short, long) = (200, 1400);
        let taken = time(&pipeline(long), Schedule::ALL[0]) - time(&pipeline(short), Schedule::ALL[0]);
        let period = taken / f64::from(long - short);
        for s in 0..count {
            let compute: f64 = stages[s..].iter().map(|stage| stage.forward_s + stage.backward_s).sum();
            let sent: f64 = links[s..].iter().sum();
            let bound = (compute + 2.0 * sent) / (count - s) as f64;
            assert!(period >= bound * (1.0 - 1e-2) - 1e-9, "{period} {bound}");
        }
    }
}

#[test]
fn waiting_for_devices_never_gets_stuck() {
    let mut random = Random(37);
    let mut runs = 0;
    for _ in 0..1500 {
        let mut pipeline = random_pipeline(&mut random);
        pipeline.settings = SimulatorSettings { overlap: false, ..random_settings(&mut random) };
        for schedule in pipeline.playable() {
            runs += 1;
            let timeline = simulate(&pipeline, schedule);
            let done = timeline.events.iter().filter(|e| e.kind == EventKind::Forward).count();
            let slices = if schedule == Schedule::Seq1F1B { pipeline.settings.sequence_slices } else { 1 };
            let parts = (pipeline.virtual_stages(schedule) * slices) as usize;
            assert_eq!(
                done,
                pipeline.stages.len() * parts * pipeline.microbatches as usize,
                "{schedule:?} {pipeline:?}"
            );
        }
    }
    assert!(runs > 6000, "{runs}");
}

#[test]
fn ties_are_decided_by_the_plan_and_not_by_how_it_is_listed() {
    // Whole seconds make many ties. Transfers listed in another order and machines numbered otherwise are the same plan.
    let mut random = Random(67);
    let mut runs = 0;
    for _ in 0..300 {
        let mut pipeline = random_pipeline(&mut random);
        pipeline.settings = random_settings(&mut random);
        if !pipeline.settings.overlap || pipeline.settings.links != LinkModel::Private {
            pipeline
                .stages
                .iter_mut()
                .for_each(|s| (s.forward_s, s.backward_s) = (s.forward_s.ceil(), s.backward_s.ceil()));
            pipeline.transfers.iter_mut().for_each(|transfer| transfer.seconds = transfer.seconds.ceil());
            let mut devices = 0;
            let width = 1 + random.below(4) as u32;
            if random.below(2) == 0 {
                let machines = pipeline.stages.iter().map(|stage| {
                    let first = devices;
                    devices += stage.replicas * stage.devices;
                    (first..devices).map(|device| device / width).collect()
                });
                pipeline.machines = machines.collect();
            }
            let mut listed = pipeline.clone();
            listed.transfers.reverse();
            listed.machines.iter_mut().flatten().for_each(|machine| *machine = 100 - *machine);
            for schedule in pipeline.playable() {
                runs += 1;
                assert_eq!(simulate(&listed, schedule), simulate(&pipeline, schedule), "{schedule:?} {pipeline:?}");
            }
        }
    }
    assert!(runs > 1000, "{runs}");
}

#[test]
fn the_earlier_stage_sends_first() {
    // Stage 1 computes microbatch 1 while stage 2 computes microbatch 0, both until 3 s. Then stage 1 sends first, and stage 2,
    // which receives that, sends on only afterwards.
    let pipeline = with(&chain(vec![stage(1.0, 1.0); 3], &[1.0; 2], 2), no_overlap());
    let timeline = simulate(&pipeline, Schedule::Inference);
    let sent = |from, to, m| {
        let sends = timeline.row(from, 0).iter().filter(|e| e.kind == EventKind::SendActivation { to, part: 0 });
        sends.clone().find(|e| e.microbatch == m).unwrap().start_s
    };
    assert_eq!((sent(0, 1, 0), sent(0, 1, 1)), (1.0, 3.0));
    assert_eq!(sent(1, 2, 0), 4.0);
}

#[test]
fn without_transfers_overlap_changes_nothing() {
    let mut random = Random(41);
    for _ in 0..200 {
        let mut pipeline = random_pipeline(&mut random);
        pipeline.transfers.iter_mut().for_each(|transfer| transfer.seconds = 0.0);
        for settings in [
            no_overlap(),
            SimulatorSettings { links: LinkModel::Exclusive, ..SimulatorSettings::default() },
            SimulatorSettings { links: LinkModel::Shared, ..no_overlap() },
        ] {
            let waiting = with(&pipeline, settings);
            for schedule in pipeline.playable() {
                assert_eq!(
                    time(&waiting, schedule),
                    time(&pipeline, schedule),
                    "{schedule:?} {settings:?} {pipeline:?}"
                );
            }
        }
    }
}

#[test]
fn links_of_one_replica_each_are_never_shared() {
    // A replica sends one thing at a time in each direction, so between two single replicas there is nothing to wait for.
    let mut random = Random(43);
    for _ in 0..200 {
        let count = 1 + random.below(5) as usize;
        let stages: Vec<PipelineStage> = (0..count).map(|_| stage(random.time(), random.time())).collect();
        let links: Vec<f64> = (1..count).map(|_| random.time()).collect();
        let pipeline = chain(stages, &links, random.below(20) as u32);
        for links in [LinkModel::Exclusive, LinkModel::Shared] {
            let settings = SimulatorSettings { links, ..SimulatorSettings::default() };
            for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe, Schedule::ZeroBubbleH1] {
                assert_eq!(time(&with(&pipeline, settings), schedule), time(&pipeline, schedule));
            }
        }
    }
}

#[test]
fn replicas_of_a_stage_wait_for_a_common_link() {
    // Two replicas finish together; the second transfer waits 4 seconds, or both take 8.
    let sender = PipelineStage { replicas: 2, ..stage(1.0, 0.0) };
    let pipeline = Pipeline { microbatches: 2, ..chain(vec![sender.clone(), sender], &[4.0], 2) };
    let arrivals = |links| {
        let timeline = simulate(
            &with(&pipeline, SimulatorSettings { links, ..SimulatorSettings::default() }),
            Schedule::Inference,
        );
        let sends = timeline.events.iter().filter(|e| e.kind.lane() == 1).map(|e| (e.start_s, e.end_s));
        sends.collect::<Vec<_>>()
    };
    assert_eq!(arrivals(LinkModel::Private), [(1.0, 5.0), (1.0, 5.0)]);
    assert_eq!(arrivals(LinkModel::Exclusive), [(1.0, 5.0), (5.0, 9.0)]);
    assert_eq!(arrivals(LinkModel::Shared), [(1.0, 9.0), (1.0, 9.0)]);
}

#[test]
fn ports_of_machines_are_shared_by_all_stages_on_them() {
    // Stages 1 and 2 on machine 0 both send to stage 3 on machine 1, through one port.
    let pipeline = Pipeline {
        transfers: vec![transfer(0, 2, 4.0), transfer(1, 2, 4.0)],
        machines: vec![vec![0], vec![0], vec![1]],
        settings: SimulatorSettings { links: LinkModel::Exclusive, ..SimulatorSettings::default() },
        ..chain(vec![stage(1.0, 1.0); 3], &[], 1)
    };
    let starts = |pipeline: &Pipeline| simulate(pipeline, Schedule::Inference).row(2, 0)[0].start_s;
    assert_eq!(starts(&pipeline), 9.0);
    assert_eq!(starts(&Pipeline { machines: vec![vec![0], vec![2], vec![1]], ..pipeline.clone() }), 9.0);
    assert_eq!(starts(&Pipeline { machines: vec![vec![1], vec![1], vec![1]], ..pipeline.clone() }), 5.0);
    assert_eq!(starts(&Pipeline { machines: vec![], ..pipeline }), 5.0);
}

#[test]
fn bubbles_are_the_known_ones() {
    for (s, m) in [(2, 4), (4, 8), (4, 32), (8, 16)] {
        let pipeline = uniform(s, m);
        let steps = s as f64 - 1.0;
        for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe] {
            let timeline = simulate(&pipeline, schedule);
            assert!(close(timeline.idle, steps / (f64::from(m) + steps)), "{schedule:?}");
        }
        let plain = bubble_s(&pipeline, Schedule::OneForwardOneBackward);
        assert_eq!(plain, 3.0 * steps);
        for v in [1, 2, 3, 4] {
            let parted = with(&pipeline, SimulatorSettings { virtual_stages: v, ..SimulatorSettings::default() });
            let bubble = bubble_s(&parted, Schedule::Interleaved);
            assert!(close(bubble, plain / f64::from(v)), "{s} stages, {v} parts: {bubble} {plain}");
        }
        // Forward, both halves of the backward: one second each.
        assert_eq!(bubble_s(&pipeline, Schedule::ZeroBubbleH1), plain / 3.0, "{s} {m}");
    }
}

#[test]
fn zero_bubble_v_leaves_the_fill_only() {
    // With equal times no device waits once it has begun, given as many microbatches as two pipelines are long.
    for s in [2, 3, 4, 8] {
        for m in [2 * s as u32, 5 * s as u32] {
            let pipeline = uniform(s, m);
            let timeline = simulate(&pipeline, Schedule::ZeroBubbleV);
            for stage in 0..s {
                let row = timeline.row(stage, 0).iter().filter(|e| e.kind.lane() == 0).collect::<Vec<_>>();
                let span = row.last().unwrap().end_s - row[0].start_s;
                assert!(close(span, timeline.busy_s[stage]), "{s} stages, {m}: stage {stage} {span}");
            }
            assert!(timeline.iteration_s < time(&pipeline, Schedule::ZeroBubbleH1));
        }
    }
}

#[test]
fn memory_has_its_known_order() {
    for (s, m) in [(4, 16), (8, 32)] {
        let pipeline = uniform(s, m);
        let in_flight = |schedule, stage: usize| (simulate(&pipeline, schedule).peak_memory_bytes[stage] - 10.0) / 3.0;
        for stage in 0..s {
            assert_eq!(in_flight(Schedule::GPipe, stage), f64::from(m));
            assert_eq!(in_flight(Schedule::OneForwardOneBackward, stage), (s - stage) as f64);
            assert_eq!(in_flight(Schedule::EagerOneForwardOneBackward, stage), (2 * (s - stage) - 1) as f64);
            // Both zero-bubble schedules: what 1F1B keeps on its first stage.
            assert_eq!(in_flight(Schedule::ZeroBubbleH1, stage), s as f64);
            assert!(
                close(in_flight(Schedule::ZeroBubbleV, stage), s as f64),
                "{}",
                in_flight(Schedule::ZeroBubbleV, stage)
            );
            assert_eq!(in_flight(Schedule::Inference, stage), 1.0);
        }
        // Interleaving in two parts: half of 2 (S − 1) + S and one more parts of the model on the first stage.
        assert_eq!(in_flight(Schedule::Interleaved, 0), (2 * (s - 1) + s + 1) as f64 / 2.0);
    }
}

#[test]
fn what_a_schedule_cannot_play_is_refused_in_one_sentence() {
    let refusal = |pipeline: &Pipeline, schedule| pipeline.refusal(schedule).unwrap_or_default();
    // Two rounds of five are as good as two of four; of eleven there are none.
    assert_eq!(refusal(&uniform(4, 10), Schedule::Interleaved), "");
    let pipeline = uniform(4, 11);
    assert_eq!(
        refusal(&pipeline, Schedule::Interleaved),
        "interleaved 1F1B over 4 stages cannot divide 11 microbatches into equal rounds of at least 4 per replica"
    );
    assert_eq!(refusal(&pipeline, Schedule::ZeroBubbleV), "");
    let mut unequal = uniform(3, 12);
    unequal.stages[1].replicas = 2;
    assert!(refusal(&unequal, Schedule::ZeroBubbleV).ends_with("stage 1 has 1 and stage 2 has 2"));
    let mut skipping = uniform(3, 12);
    skipping.transfers.push(transfer(0, 2, 1.0));
    assert!(refusal(&skipping, Schedule::Interleaved).ends_with("stage 1 also sends to stage 3"));
    assert!(refusal(&uniform(1, 4), Schedule::ZeroBubbleV).ends_with("at least two stages"));
    let long = with(&uniform(16, 1_000_000), SimulatorSettings { links: LinkModel::Shared, ..no_overlap() });
    assert!(refusal(&long, Schedule::GPipe).starts_with("with transfers that wait"));
    // And what would do is said where there is such.
    let repair = |pipeline: &Pipeline, schedule| pipeline.repair(schedule).unwrap_or_default();
    assert_eq!(repair(&pipeline, Schedule::Interleaved), "10 or 12 microbatches work");
    assert_eq!(pipeline.repair(Schedule::ZeroBubbleV), None);
    for m in [8, 12] {
        assert_eq!(refusal(&uniform(4, m), Schedule::Interleaved), "");
    }
    assert!(repair(&unequal, Schedule::ZeroBubbleV).contains("same data-parallel degree"));
    assert!(repair(&skipping, Schedule::ZeroBubbleV).starts_with("merge stages 2 to 3"));
    assert!(repair(&uniform(1, 4), Schedule::ZeroBubbleV).contains("split"));
    assert!(repair(&long, Schedule::GPipe).starts_with("private links"));
    assert_eq!(refusal(&with(&long, SimulatorSettings::default()), Schedule::GPipe), "");
    assert_eq!(simulate(&skipping, Schedule::Interleaved).events, []);
    assert_eq!(skipping.schedule(Schedule::Interleaved), Schedule::OneForwardOneBackward);
    use Schedule::{EagerOneForwardOneBackward, GPipe, Inference, OneForwardOneBackward, ZeroBubbleH1};
    let whole = [OneForwardOneBackward, GPipe, EagerOneForwardOneBackward, ZeroBubbleH1, Inference];
    assert_eq!(skipping.playable(), whole);
}

#[test]
fn buckets_hide_the_all_reduce_behind_the_last_backward() {
    let reducing = PipelineStage { all_reduce_s: 2.0, replicas: 2, ..stage(1.0, 4.0) };
    let pipeline = Pipeline { microbatches: 2, stages: vec![reducing], ..Pipeline::default() };
    let of =
        |buckets| with(&pipeline, SimulatorSettings { buckets, optimizer_step_s: 0.5, ..SimulatorSettings::default() });
    assert_eq!(time(&of(1), Schedule::ALL[0]), 7.5);
    // The first of two begins two seconds before the backward ends.
    assert_eq!(time(&of(2), Schedule::ALL[0]), 6.5);
    assert_eq!(time(&of(4), Schedule::ALL[0]), 6.0);
    let timeline = simulate(&of(2), Schedule::ALL[0]);
    let reduces: Vec<f64> =
        timeline.row(0, 0).iter().filter(|e| e.kind == EventKind::AllReduce).map(|e| e.start_s).collect();
    assert_eq!(reduces, [3.0, 5.0]);
    let steps = timeline.events.iter().filter(|e| e.kind == EventKind::OptimizerStep).map(|e| e.start_s);
    assert_eq!(steps.collect::<Vec<_>>(), [6.0, 6.0]);
    // More buckets never hurt, and recomputation makes no gradients.
    let recomputing = PipelineStage { recompute_s: 2.0, ..pipeline.stages[0].clone() };
    let pipeline = Pipeline { stages: vec![recomputing], ..of(2) };
    let timeline = simulate(&pipeline, Schedule::ALL[0]);
    let first = timeline.row(0, 0).iter().find(|e| e.kind == EventKind::AllReduce).unwrap();
    assert_eq!(first.start_s, 4.0);
}

#[test]
fn recomputation_is_a_slice_of_its_own() {
    let recomputing = PipelineStage { recompute_s: 1.0, ..stage(1.0, 3.0) };
    let pipeline = chain(vec![recomputing; 2], &[0.5], 2);
    for schedule in [Schedule::OneForwardOneBackward, Schedule::ZeroBubbleH1] {
        let timeline = simulate(&pipeline, schedule);
        let row = timeline.row(1, 0);
        for event in row.iter().filter(|e| e.kind == EventKind::Recompute) {
            let backward = row.iter().find(|e| e.kind == EventKind::Backward && e.microbatch == event.microbatch);
            assert_eq!((event.end_s - event.start_s, event.end_s), (1.0, backward.unwrap().start_s));
        }
        assert_eq!(row.iter().filter(|e| e.kind == EventKind::Recompute).count(), 2);
        let path = critical_path(&pipeline, schedule, &timeline);
        assert!(path.by_kind().iter().any(|&(kind, seconds)| kind == PathKind::Recompute && seconds > 0.0));
    }
}

#[test]
fn the_critical_path_tells_what_binds() {
    // One stage three times as slow as the others: all but the fill and the drain is on it.
    let mut pipeline = uniform(4, 32);
    pipeline.stages[2] = stage(3.0, 6.0);
    let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
    let path = critical_path(&pipeline, Schedule::OneForwardOneBackward, &timeline);
    assert_eq!(path.by_stage()[0].0, 2);
    assert_eq!(path.by_stage()[0].1, 32.0 * 9.0);
    assert!(
        path.summary().starts_with("backward 66.") && path.summary().contains("most on stage 3: 98.0%"),
        "{}",
        path.summary()
    );
    // Slow links: the way there and back is what counts.
    let slow = chain(vec![stage(1.0, 1.0); 4], &[10.0; 3], 8);
    let timeline = simulate(&slow, Schedule::OneForwardOneBackward);
    let path = critical_path(&slow, Schedule::OneForwardOneBackward, &timeline);
    assert_eq!(path.by_kind()[0].0, PathKind::Transfer);
    // Batches whose middle is not kept: the end of the path, and it says so.
    let long = chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], 1_000_000);
    let timeline = simulate(&long, Schedule::OneForwardOneBackward);
    let path = critical_path(&long, Schedule::OneForwardOneBackward, &timeline);
    assert!(path.from_s > 0.0 && path.summary().contains("of the last"), "{}", path.summary());
}

#[test]
fn slower_things_never_make_a_fixed_order_faster() {
    // A max-plus system: true for every schedule while transfers wait for nobody; not asserted elsewhere, since it is false.
    let mut random = Random(47);
    for _ in 0..500 {
        let pipeline = random_pipeline(&mut random);
        let mut slower = pipeline.clone();
        let s = random.below(slower.stages.len() as u64) as usize;
        match random.below(3) {
            0 => slower.stages[s].forward_s += random.time(),
            1 => slower.stages[s].backward_s += random.time(),
            _ => slower.transfers.iter_mut().for_each(|transfer| transfer.seconds += random.time()),
        }
        for schedule in pipeline.playable() {
            let (before, after) = (time(&pipeline, schedule), time(&slower, schedule));
            assert!(after >= before * (1.0 - 1e-11), "{schedule:?} {before} {after}");
        }
    }
}

#[test]
fn without_overlap_shorter_transfers_may_take_longer() {
    // Graham's anomaly: why the law above is asserted for a fixed order alone. Were there none, it could be asserted for all.
    let mut random = Random(59);
    let mut anomalies = 0;
    for _ in 0..2500 {
        let count = 2 + random.below(5) as usize;
        let whole = |random: &mut Random| 1.0 + random.below(9) as f64;
        let stages: Vec<PipelineStage> = (0..count).map(|_| stage(whole(&mut random), whole(&mut random))).collect();
        let links: Vec<f64> = (1..count).map(|_| whole(&mut random)).collect();
        let mut shorter = links.clone();
        let one = random.below(links.len() as u64) as usize;
        shorter[one] = (shorter[one] - whole(&mut random) / 2.0).max(0.0);
        let m = 2 + random.below(12) as u32;
        for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe] {
            let simulated = |links: &[f64]| time(&with(&chain(stages.clone(), links, m), no_overlap()), schedule);
            anomalies += u32::from(simulated(&shorter) > simulated(&links) * (1.0 + 1e-9));
        }
    }
    assert!((1..100).contains(&anomalies), "{anomalies}");
}

#[test]
fn neighbours_with_unequal_replicas_take_turns() {
    // Microbatches 0 and 2 on the first replica, 1 and 3 on the second; the only replica behind them is the bottleneck at
    // first and waits for no one, then both wait for it.
    let first = PipelineStage { replicas: 2, ..stage(2.0, 2.0) };
    let pipeline = chain(vec![first, stage(1.0, 1.0)], &[0.0], 4);
    let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
    let row = |stage, replica| -> Vec<(u32, f64, f64)> {
        let computed = timeline.row(stage, replica).iter().filter(|e| e.kind.lane() == 0);
        computed.map(|e| (e.microbatch, e.start_s, e.end_s)).collect()
    };
    assert_eq!(row(0, 0), [(0, 0.0, 2.0), (2, 2.0, 4.0), (0, 4.0, 6.0), (2, 8.0, 10.0)]);
    assert_eq!(row(0, 1), [(1, 0.0, 2.0), (3, 2.0, 4.0), (1, 6.0, 8.0), (3, 10.0, 12.0)]);
    assert_eq!(row(1, 0)[..4], [(0, 2.0, 3.0), (0, 3.0, 4.0), (1, 4.0, 5.0), (1, 5.0, 6.0)]);
    assert_eq!(timeline.iteration_s, 12.0);
    assert!(close(timeline.idle, 1.0 / 3.0), "{}", timeline.idle);
    assert_eq!(timeline.peak_memory_bytes, [16.0, 13.0]);
}

#[test]
fn a_skip_edge_holds_up_the_stage_that_it_leads_to() {
    // The skip edge is sent after the short one, arrives at 12, and its gradient at 25.
    let stages = vec![stage(1.0, 1.0); 3];
    let transfers = vec![transfer(0, 2, 10.0), transfer(0, 1, 1.0), transfer(1, 2, 1.0)];
    let pipeline = Pipeline { stages, transfers, microbatches: 1, ..Pipeline::default() };
    for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe, Schedule::EagerOneForwardOneBackward] {
        let timeline = simulate(&pipeline, schedule);
        let starts: Vec<f64> =
            (0..3).flat_map(|s| timeline.row(s, 0)).filter(|e| e.kind.lane() == 0).map(|e| e.start_s).collect();
        assert_eq!(starts, [0.0, 25.0, 2.0, 15.0, 12.0, 13.0], "{schedule:?}");
        assert_eq!(timeline.iteration_s, 26.0);
    }
}

#[test]
fn long_batches_keep_their_period_in_every_schedule() {
    for schedule in Schedule::ALL {
        let time = |m| time(&chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], m), schedule);
        let period = (time(8000) - time(4000)) / 4000.0;
        // Lists are shorter than what has a period.
        let long = if schedule.is_listed() { 80_000 } else { 400_000 };
        let far = time(long);
        assert!(close(far, time(4000) + f64::from(long - 4000) * period), "{schedule:?} {far} {period}");
    }
}

#[test]
fn contention_of_random_pipelines_is_sound() {
    let mut random = Random(53);
    for _ in 0..300 {
        let mut pipeline = random_pipeline(&mut random);
        for links in [LinkModel::Exclusive, LinkModel::Shared] {
            pipeline.settings =
                SimulatorSettings { links, overlap: random.below(2) == 0, ..random_settings(&mut random) };
            for schedule in pipeline.playable() {
                assert_sound(&pipeline, schedule, &simulate(&pipeline, schedule));
            }
        }
    }
}

#[test]
fn orders_with_several_parts_go_through_at_all_sizes() {
    for stages in 2..9usize {
        for microbatches in 1..20u32 {
            for virtual_stages in 1..5 {
                let settings = SimulatorSettings { virtual_stages, ..SimulatorSettings::default() };
                let pipeline = with(&uniform(stages, microbatches), settings);
                for schedule in [Schedule::Interleaved, Schedule::ZeroBubbleV] {
                    if pipeline.refusal(schedule).is_none() {
                        assert_sound(&pipeline, schedule, &simulate(&pipeline, schedule));
                    }
                }
            }
        }
    }
}
