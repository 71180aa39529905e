//! Joint's plans for engines: they leave as the engine's own files unchanged, and nothing that the engine runs is faster.

use std::sync::Arc;

use plantui::{
    cluster::Limits,
    family,
    plan::runner::Runner,
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    simulate::{Schedule, Settings, length_unless},
    workload::{self, Workload},
};

use crate::{common::random_piper::Random, engine_plans::leaves_unchanged};

fn planned(id: &str, workload: &Arc<Workload>, limits: Limits, settings: &[String]) -> Outcome {
    let planner = planner::find(id).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().map(String::as_str)).unwrap();
    run::plan(planner, &Problem { workload: Arc::clone(workload), limits, options }, &Search::default()).unwrap().0
}

fn limits(random: &mut Random) -> Limits {
    Limits {
        devices: [4, 8, 16, 24, 32, 64, 128][random.below(7)],
        microbatches: [8, 32, 48, 64, 96, 480][random.below(6)],
        memory_bytes: (3.0 + random.amount(20, false)) * f64::from(1 << 30),
        bandwidth_bytes_per_s: 25e9,
        ..Limits::NEUTRAL
    }
}

/// So many random problems for each of some engines.
fn keep_the_rules(seed: u64, count: usize, runners: &[Runner]) {
    let workload = Arc::new(workload::builtin());
    let mut random = Random(seed);
    let mut planned_for = 0;
    for case in 0..count {
        let limits = limits(&mut random);
        for &runner in runners {
            let settings = ["space=engine".to_string(), format!("engine={}", runner.id())];
            let outcome = planned("joint", &workload, limits, &settings);
            let told = format!("case {case}, {runner:?}, {limits:?}");
            let Some(plan) = outcome.plan else {
                assert_eq!(outcome.status, Status::Infeasible, "{told}");
                continue;
            };
            planned_for += 1;
            leaves_unchanged(&workload, &limits, &plan, runner, &told);
            assert!(plan.devices_used() <= 8 || plan.devices_used().is_multiple_of(8), "{told}");
            assert!(outcome.lower_bound.unwrap() <= outcome.objective.unwrap(), "{told}");
        }
    }
    assert!(planned_for * 2 > count * runners.len(), "{planned_for}");
}

#[test]
fn plans_for_engines_leave_unchanged() {
    keep_the_rules(21, 6, &Runner::ALL);
}

#[test]
#[ignore = "takes a while"]
fn a_thousand_plans_for_megatron_keep_its_rules() {
    keep_the_rules(22, 1000, &[Runner::Megatron]);
}

#[test]
fn no_slower_than_pipers_plan_for_the_engine() {
    let workload = Arc::new(workload::builtin());
    for (devices, microbatches, gib) in [(8, 64, 10), (16, 32, 8), (64, 128, 4)] {
        let limits = Limits {
            devices,
            microbatches,
            memory_bytes: f64::from(gib) * f64::from(1 << 30),
            bandwidth_bytes_per_s: 25e9,
            ..Limits::NEUTRAL
        };
        let free = planned("joint", &workload, limits, &[]).objective.unwrap();
        for runner in Runner::ALL {
            let settings = ["engine_feasible=true".to_string(), format!("engine={}", runner.id())];
            let other = planned("piper", &workload, limits, &settings).plan;
            let settings = ["space=engine".to_string(), format!("engine={}", runner.id())];
            let own = planned("joint", &workload, limits, &settings);
            let told = format!("{devices} devices, {gib} GiB, {runner:?}");
            assert_eq!(own.plan.is_some(), other.is_some(), "{told}");
            let (Some(other), Some(value)) = (other, own.objective) else { continue };
            let pipeline = family::pipeline(&workload, &limits, &other, &Settings::default());
            let seconds = length_unless(&pipeline, Schedule::OneForwardOneBackward, &|| false).unwrap();
            assert!(
                value <= seconds * 1.001 && value >= free * 0.999,
                "{told}: {value}, Piper's {seconds}, free {free}"
            );
            assert!(own.lower_bound.unwrap() <= seconds * (1.0 + 1e-9), "{told}");
        }
    }
}

#[test]
fn what_would_do_for_an_engine_does() {
    let workload = Arc::new(workload::builtin());
    let tight = Limits {
        devices: 4,
        microbatches: 32,
        memory_bytes: 2.0 * f64::from(1 << 30),
        bandwidth_bytes_per_s: 25e9,
        ..Limits::NEUTRAL
    };
    for runner in [Runner::Megatron, Runner::Torch, Runner::TorchTitan] {
        let settings = ["space=engine".to_string(), format!("engine={}", runner.id())];
        let story = planned("joint", &workload, tight, &settings).infeasible.unwrap();
        let bytes = story.smallest_memory_bytes.unwrap();
        let with = |limits: Limits| planned("joint", &workload, limits, &settings).plan.is_some();
        assert!(with(Limits { memory_bytes: bytes, ..tight }), "{runner:?}: {}", story.explanation);
        assert!(!with(Limits { memory_bytes: bytes * 0.999, ..tight }), "{runner:?}: {}", story.explanation);
        if let Some(devices) = story.fewest_devices {
            assert!(with(Limits { devices, ..tight }), "{runner:?}: {}", story.explanation);
        }
    }
}
