//! Schedules as values: PyTorch's own orders, published bubbles and memory, files, and what breaks a schedule.

use std::process::Command;

use plantui::{
    cluster::Limits,
    export::formats,
    family::{
        self,
        training::{Layout, Recompute, configured},
    },
    plan::interleaved_round,
    schedule::{ExplicitSchedule, GivenSchedule, csv, validate},
    simulate::{Pipeline, PipelineStage, Schedule, SimulatorSettings, Transfer, simulate},
    workload::{TrainingProfile, Workload, WorkloadFormat, training::ExpertOverlap},
};

use crate::common::engine_rules;

/// Orders of PyTorch 2.15 (`distributed/pipelining/schedules.py`): ranks, virtual stages of each, microbatches, and the
/// actions of every rank.
type TorchOrder = (Schedule, (u32, u32, u32), &'static [&'static str]);

#[rustfmt::skip]
const TORCH: [TorchOrder; 6] = [
    (
        Schedule::Interleaved,
        (4, 2, 10),
        &[
            "0F0,0F1,0F2,0F3,0F4,4F0,4F1,4F2,4F3,4F4,0F5,0F6,4B0,0F7,4B1,0F8,4B2,0F9,4B3,4F5,4B4,4F6,0B0,4F7,0B1,4F8,0B2,4F9,0B3,0B4,4B5,4B6,4B7,4B8,4B9,0B5,0B6,0B7,0B8,0B9",
            "1F0,1F1,1F2,1F3,1F4,5F0,5F1,5F2,5F3,5F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,1F8,5B4,1F9,1B0,5F5,1B1,5F6,1B2,5F7,1B3,5F8,1B4,5F9,5B5,5B6,5B7,5B8,5B9,1B5,1B6,1B7,1B8,1B9",
            "2F0,2F1,2F2,2F3,2F4,6F0,6F1,6F2,6B0,6F3,6B1,6F4,6B2,2F5,6B3,2F6,6B4,2F7,2B0,2F8,2B1,2F9,2B2,6F5,2B3,6F6,2B4,6F7,6B5,6F8,6B6,6F9,6B7,6B8,6B9,2B5,2B6,2B7,2B8,2B9",
            "3F0,3F1,3F2,3F3,3F4,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,7F4,7B4,3F5,3B0,3F6,3B1,3F7,3B2,3F8,3B3,3F9,3B4,7F5,7B5,7F6,7B6,7F7,7B7,7F8,7B8,7F9,7B9,3B5,3B6,3B7,3B8,3B9",
        ],
    ),
    (
        Schedule::Interleaved,
        (2, 3, 4),
        &[
            "0F0,0F1,2F0,2F1,4F0,4F1,0F2,4B0,0F3,4B1,2F2,2B0,2F3,2B1,4F2,0B0,4F3,0B1,4B2,4B3,2B2,2B3,0B2,0B3",
            "1F0,1F1,3F0,3F1,5F0,5B0,5F1,5B1,1F2,3B0,1F3,3B1,3F2,1B0,3F3,1B1,5F2,5B2,5F3,5B3,3B2,3B3,1B2,1B3",
        ],
    ),
    (
        Schedule::ZeroBubbleV,
        (3, 2, 6),
        &[
            "0F0,0F1,0F2,0F3,0F4,5F0,5I0,5W0,5F1,5I1,5W1,5F2,5I2,5W2,0F5,0I0,0W0,5F3,5I3,5W3,0I1,0W1,5F4,5I4,5W4,0I2,0W2,5F5,5I5,5W5,0I3,0W3,0I4,0W4,0I5,0W5",
            "1F0,1F1,1F2,4F0,1F3,4F1,4I0,4W0,4F2,4I1,4W1,1F4,1I0,1W0,4F3,4I2,4W2,1F5,1I1,1W1,4F4,4I3,4W3,1I2,1W2,4F5,4I4,4W4,1I3,4I5,1I4,1W3,1I5,1W4,4W5,1W5",
            "2F0,3F0,2F1,3F1,2F2,3F2,3I0,3W0,2F3,2I0,2W0,3F3,3I1,3W1,2F4,2I1,2W1,3F4,3I2,3W2,2F5,2I2,2W2,3F5,3I3,3W3,2I3,3I4,2I4,3I5,2I5,2W3,3W4,3W5,2W4,2W5",
        ],
    ),
    (
        Schedule::InterleavedZeroBubble,
        (2, 2, 4),
        &[
            "0F0,0F1,2F0,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,2I3,2W3,0I2,0W2,0I3,0W3",
            "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,3W2,1I2,3W3,1I3,1W2,1W3",
        ],
    ),
    (
        Schedule::LoopedBfs,
        (3, 2, 3),
        &[
            "0F0,0F1,0F2,3F0,3F1,3F2,3B2,3B1,3B0,0B2,0B1,0B0",
            "1F0,1F1,1F2,4F0,4F1,4F2,4B2,4B1,4B0,1B2,1B1,1B0",
            "2F0,2F1,2F2,5F0,5F1,5F2,5B2,5B1,5B0,2B2,2B1,2B0",
        ],
    ),
    (
        Schedule::DualPipeV,
        (2, 2, 5),
        &[
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,(0F4;3B2)OVERLAP_F_B,(3F3;0B1)OVERLAP_F_B,3B3,(3F4;0B2)OVERLAP_F_B,3B4,0I3,0W3,0I4,0W4",
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,(1F4;2B2)OVERLAP_F_B,(2F4;1B2)OVERLAP_F_B,2B3,1B3,2I4,1I4,2W4,1W4",
        ],
    ),
];

/// Pipeline of equal stages: forward 1 s, backward 2 s, half of it for the weights, 1 byte for a microbatch, nothing to
/// send.
fn equal(ranks: u32, parts: u32, microbatches: u32) -> Pipeline {
    let stage = PipelineStage {
        forward_s: 1.0,
        backward_s: 2.0,
        activation_bytes: 1.0,
        replicas: 1,
        ..PipelineStage::default()
    };
    let transfer = |from| Transfer { from, to: from + 1, seconds: 0.0, bytes: 0.0 };
    Pipeline {
        stages: vec![stage; ranks as usize],
        transfers: (0..ranks as usize - 1).map(transfer).collect(),
        microbatches,
        settings: SimulatorSettings { virtual_stages: parts, ..SimulatorSettings::default() },
        ..Pipeline::default()
    }
}

fn rows(schedule: &ExplicitSchedule) -> Vec<String> {
    let row =
        |steps: &Vec<plantui::schedule::Step>| steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    schedule.ranks.iter().map(row).collect()
}

#[test]
fn built_in_orders_are_pytorchs() {
    for (schedule, (ranks, parts, microbatches), torch) in TORCH {
        let pipeline = equal(ranks, parts, microbatches);
        let own = pipeline.explicit(schedule).unwrap_or_else(|| panic!("{:?}", pipeline.refusal(schedule)));
        assert_eq!(rows(&own), torch, "{schedule:?}");
    }
}

/// Seconds of an iteration and bytes of the fullest rank.
fn figures(pipeline: &Pipeline, schedule: Schedule) -> (f64, f64) {
    assert_eq!(pipeline.refusal(schedule), None);
    let timeline = simulate(pipeline, schedule);
    (timeline.iteration_s, timeline.peak_memory())
}

#[test]
fn bubbles_and_memory_are_the_published_ones() {
    // F = 1, B = 2 with W = 1, F and B together 3.
    for (ranks, microbatches) in [(4u32, 10u32), (4, 12), (8, 20), (8, 64)] {
        let (p, work) = (f64::from(ranks), 3.0 * f64::from(microbatches));
        let plain = equal(ranks, 1, microbatches);
        let halves = equal(ranks, 2, microbatches);
        // (PP / 2 - 1) (F&B + B - 3 W), activations of PP + 1 microbatches (DeepSeek-AI, 2024, table 2).
        assert_eq!(figures(&plain, Schedule::DualPipe), (work + (p / 2.0 - 1.0) * 2.0, p + 1.0));
        // The same with 2 PP half stages, and PP + 1/2 microbatches.
        assert_eq!(figures(&plain, Schedule::DualPipeV), (work + (p - 1.0) * (1.5 + 1.0 - 1.5), p + 0.5));
        // (PP - 1) (F + B) and PP microbatches; the pairs of the combined schedule hold one more.
        assert_eq!(figures(&plain, Schedule::OneForwardOneBackward), (work + (p - 1.0) * 3.0, p));
        // One chunk more than interleaved 1F1B: 2 (PP - 1) + (V - 1) G + 2 of V, in rounds of G microbatches.
        let round = f64::from(interleaved_round(ranks, microbatches).unwrap());
        let held = (2.0 * (p - 1.0) + round + 2.0) / 2.0;
        assert_eq!(figures(&halves, Schedule::Combined), (work + (p - 1.0) * 3.0 / 2.0, held));
        // (PP - 1) (F + B - W) as long as the first and last passes stand apart; 2 PP - 1 microbatches for ZB-2p.
        assert_eq!(figures(&plain, Schedule::ZeroBubbleH1), (work + (p - 1.0), p));
        assert_eq!(figures(&plain, Schedule::ZeroBubble2p).1, 2.0 * p - 1.0);
        // (PP - 1) (F + B) / V, with all microbatches held.
        assert_eq!(figures(&halves, Schedule::LoopedBfs), (work + (p - 1.0) * 3.0 / 2.0, f64::from(microbatches)));
        // (PP - 1) (F + B) / K and PP + K - 1 slices, if all slices take as long.
        let slices = SimulatorSettings { sequence_slices: 4, ..SimulatorSettings::default() };
        let sliced = Pipeline { settings: slices, ..plain.clone() };
        assert_eq!(figures(&sliced, Schedule::Seq1F1B), (work + (p - 1.0) * 3.0 / 4.0, (p + 3.0) / 4.0));
    }
}

/// The first rank of ZB-2p never waits (zero bubble), nor does any other between its first and its last action.
#[test]
fn zb_2p_has_no_bubble_between_a_ranks_first_and_last_action() {
    let timeline = simulate(&equal(6, 1, 24), Schedule::ZeroBubble2p);
    for stage in 0..6 {
        let row: Vec<_> = timeline.row(stage, 0).iter().filter(|event| event.kind.lane() == 0).collect();
        let (start, end) = (row[0].start_s, row[row.len() - 1].end_s);
        assert_eq!(end - start, 72.0, "stage {stage}");
    }
}

/// A pair hides the exchange of tokens between experts, whether or not the plan's own schedule overlaps batches.
#[test]
fn pairs_of_a_mixture_of_experts_save_what_the_overlap_of_batches_saves() {
    let workload = plantui::workload::load("deepseek-v2-lite".as_ref()).expect("a published name");
    let profile = workload.training().expect("a model to be trained").clone();
    let pipeline = |overlap: ExpertOverlap, expert: u32| {
        let mut profile = profile.clone();
        profile.settings.ep_overlap = overlap;
        let layout = Layout { pipeline: 4, virtual_stages: 2, expert, data: 8, ..Layout::ONE };
        let configuration = profile.configuration(layout, Recompute::None);
        let split = configured::split(&profile, &configuration).expect("it divides");
        let plan = configured::plan(&profile, configuration, &split);
        let limits = Limits { devices: 32, batch: Some(256), ..Limits::NEUTRAL };
        family::pipeline(&workload_of(profile), &limits, &plan, &SimulatorSettings::default())
    };
    let (apart, overlapped) = (pipeline(ExpertOverlap::None, 8), pipeline(ExpertOverlap::Batch, 8));
    for (own, other) in apart.stages.iter().zip(&overlapped.stages) {
        assert_eq!(own.paired_saving_s, 0.0);
        assert!(own.listed_saving_s > 0.0 && (own.listed_saving_s / other.paired_saving_s - 1.0).abs() < 1e-9);
    }
    let seconds = |pipeline: &Pipeline, schedule: Schedule| simulate(pipeline, schedule).iteration_s;
    assert!(seconds(&apart, Schedule::Combined) < 0.99 * seconds(&apart, Schedule::Interleaved));
    // Without an exchange, nothing is hidden.
    assert!(pipeline(ExpertOverlap::None, 1).stages.iter().all(|stage| stage.listed_saving_s == 0.0));
}

fn workload_of(profile: TrainingProfile) -> Workload {
    profile.into_workload("model", "model", WorkloadFormat::HuggingFace, None)
}

/// A list of a very long batch would not fit into memory.
#[test]
fn a_list_has_at_most_four_million_passes() {
    let pipeline = equal(16, 2, 200_000);
    for schedule in [Schedule::LoopedBfs, Schedule::DualPipe, Schedule::Seq1F1B] {
        let refused = pipeline.refusal(schedule).unwrap();
        assert!(refused.contains("is played from a list, here of at most"), "{refused}");
        assert!(pipeline.repair(schedule).unwrap().ends_with("microbatches or fewer work"));
    }
    assert_eq!(pipeline.refusal(Schedule::Interleaved), None);
}

/// The middle of a long batch is not drawn, but counts.
#[test]
fn the_peak_of_a_long_batch_is_that_of_the_whole() {
    for schedule in [Schedule::DualPipe, Schedule::DualPipeV, Schedule::Seq1F1B, Schedule::InterleavedZeroBubble] {
        let (short, long) = (equal(16, 2, 64), equal(16, 2, 20_032));
        assert!(simulate(&long, schedule).left_out.is_some());
        assert_eq!(figures(&long, schedule).1, figures(&short, schedule).1, "{schedule:?}");
    }
}

#[test]
fn every_schedule_comes_back_from_its_file_with_the_same_time() {
    let pipeline = equal(4, 2, 16);
    for schedule in Schedule::ALL {
        let listed = pipeline.explicit(schedule).unwrap_or_else(|| panic!("{:?}", pipeline.refusal(schedule)));
        let text = formats::schedule_csv(&pipeline, schedule).unwrap();
        let read = csv::read(&text, "a.csv").unwrap_or_else(|error| panic!("{schedule:?}: {error}\n{text}"));
        assert_eq!(read.schedule, *listed, "{schedule:?}");
        if !schedule.has_backward() {
            continue;
        }
        let given = Schedule::Given(GivenSchedule::new(read.schedule));
        let (own, again) = (simulate(&pipeline, schedule), simulate(&pipeline, given));
        assert_eq!(pipeline.refusal(given), None);
        assert_eq!(own.iteration_s, again.iteration_s, "{schedule:?}");
        assert_eq!(own.peak_memory(), again.peak_memory(), "{schedule:?}");
        assert_eq!(own.idle, again.idle, "{schedule:?}");
    }
}

#[test]
fn files_of_one_forward_one_backward_are_legal_for_pytorch() {
    use Schedule::{EagerOneForwardOneBackward, GPipe, OneForwardOneBackward};
    for (ranks, microbatches) in [(2, 3), (4, 8), (5, 2), (8, 32)] {
        for schedule in [OneForwardOneBackward, GPipe, EagerOneForwardOneBackward] {
            let text = formats::schedule_csv(&equal(ranks, 1, microbatches), schedule).unwrap();
            assert_eq!(engine_rules::torch_schedule(&text), (ranks as usize, microbatches as usize));
        }
    }
    for (ranks, each, microbatches) in [(2, 2, 2), (2, 2, 6), (4, 2, 8), (3, 3, 9), (4, 5, 32)] {
        let text = formats::schedule_csv(&equal(ranks, each, microbatches), Schedule::Interleaved).unwrap();
        assert_eq!(engine_rules::torch_schedule(&text), ((ranks * each) as usize, microbatches as usize));
    }
}

/// A list that is changed at random either runs in the simulator or has a flaw, and never both.
#[test]
fn the_validator_and_the_simulator_agree_on_changed_schedules() {
    let pipeline = equal(3, 2, 6);
    let mut state = 3u64;
    let mut roll = |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % sides
    };
    let (mut runs, mut stuck) = (0, 0);
    for round in 0..400 {
        let schedule = [Schedule::OneForwardOneBackward, Schedule::ZeroBubbleV, Schedule::Interleaved][round % 3];
        let mut listed = (*pipeline.explicit(schedule).unwrap()).clone();
        for _ in 0..1 + roll(3) {
            let rank = roll(3);
            let steps = &mut listed.ranks[rank];
            let (from, to) = (roll(steps.len()), roll(steps.len()));
            let step = steps.remove(from);
            steps.insert(to, step);
        }
        let flaws = validate::flaws(&listed);
        let broken = flaws.iter().find(|flaw| flaw.kind.breaks());
        let actions = listed.actions().count();
        let given = Schedule::Given(GivenSchedule::new(listed));
        let timeline = simulate(&pipeline, given);
        let passes = timeline.events.iter().filter(|event| event.kind.lane() == 0).count();
        match broken {
            // Passes on a rank before their own forward pass are no deadlock for the simulator, which follows transfers.
            Some(flaw) if flaw.kind == validate::FlawKind::Deadlock => {
                assert!(passes < actions, "{flaw}");
                stuck += 1;
            }
            Some(_) => {}
            None => {
                assert_eq!(passes, actions);
                runs += 1;
            }
        }
    }
    assert!(runs > 20 && stuck > 20, "{runs} run, {stuck} stuck");
}

#[test]
fn a_schedule_of_a_file_is_played_and_refused_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_plantui")).args(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (model, plan, csv) = ("llama-3.1-8b", at("plan.json"), at("own.csv"));
    let made = run(&["plan", model, "--devices", "8", "--batch", "64", "--set", "stages=4", "--output", &plan]);
    assert_eq!(made.0, Some(0), "{}", made.2);
    let written = run(&["export", &plan, "--to", "torch-schedule", "--schedule", "dualpipe-v", "--output", &csv]);
    assert_eq!(written.0, Some(0), "{}", written.2);
    let line = |schedule: &str| {
        let (code, text, error) = run(&["simulate", model, &plan, "--schedule", schedule]);
        assert_eq!(code, Some(0), "{error}");
        let line = text.lines().find(|line| line.starts_with("simulated")).unwrap().to_string();
        line.split_once(": ").unwrap().1.to_string()
    };
    assert_eq!(line(&csv), line("dualpipe-v"));
    // Rank 0 waits for what rank 1 runs behind an action that waits for rank 0.
    std::fs::write(at("stuck.csv"), "0F0,0F1,0B1,0F2,0B0,0B2\n1F0,1B0,1F2,1B2,1F1,1B1\n").unwrap();
    let (code, _, error) = run(&["simulate", model, &plan, "--schedule", &at("stuck.csv")]);
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains("rank 0, step 2: deadlock: rank 0 waits at step 2 (0B1) for 1B1, step 5 of rank 1"),
        "{error}"
    );
}
