//! Joint's plans for engines: they leave as the engine's own files unchanged, and nothing that the engine runs is faster.

use std::sync::Arc;

use plantui::{
    cluster::Limits,
    export::engine::{self, Engine},
    plan::{Plan, runner::Runner},
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    simulate::Schedule,
    workload::{
        self, Choice, DegreeProfile, Mode, Workload,
        layering::Layering,
        piper::{NodeProfile, RECOMPUTE, TRANSFORMER_LAYER, VANILLA},
    },
};

use crate::common::{
    engine_rules,
    random_piper::{Random, assemble},
};

fn engine_of(runner: Runner) -> Vec<Engine> {
    match runner {
        Runner::Any => vec![Engine::Megatron, Engine::DeepSpeed, Engine::Torch, Engine::TorchTitan, Engine::Galvatron],
        _ => Engine::ALL.into_iter().filter(|engine| engine.runner() == Some(runner)).collect(),
    }
}

/// The export needs no other plan, and the written files keep the rules of the engine.
fn leaves_unchanged(workload: &Workload, limits: &Limits, plan: &Plan, runner: Runner, told: &str) {
    let numbered = Layering::of(workload, None).unwrap().blocks() > 0;
    for engine in engine_of(runner).into_iter().filter(|_| numbered) {
        let settings = engine::EngineSettings { micro_batch_size: Some(2), ..engine::EngineSettings::default() };
        let exported = engine::export(engine, workload, limits, plan, &settings)
            .unwrap_or_else(|error| panic!("{told}, {engine:?}: {error}"));
        assert!(exported.losses.is_empty() && exported.plan == *plan, "{told}, {engine:?}: {:?}", exported.losses);
        assert!(!exported.text.contains("not expressed") && !exported.text.contains("nearest"), "{told}");
        match engine {
            Engine::Megatron => drop(engine_rules::megatron(&exported.text)),
            Engine::TorchTitan => drop(engine_rules::torchtitan(&exported.text)),
            Engine::Galvatron => drop(engine_rules::galvatron(&exported.text)),
            _ => {}
        }
    }
}

fn planned(id: &str, workload: &Arc<Workload>, limits: Limits, settings: &[String]) -> Outcome {
    let planner = planner::find(id).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().map(String::as_str)).unwrap();
    run::plan(planner, &Problem { workload: Arc::clone(workload), limits, options }, &Search::default()).unwrap().0
}

fn limits(random: &mut Random) -> Limits {
    Limits {
        devices: [4, 8, 16, 24, 32, 64, 128][random.below(7)],
        microbatches: [8, 32, 48, 64, 96, 480][random.below(6)],
        memory_bytes: Some((3.0 + random.amount(20, false)) * f64::from(1 << 30)),
        bandwidth_bytes_per_s: Some(25e9),
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
            let outcome = planned("joint", &workload, limits.clone(), &settings);
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

/// A chain of repeated layers between an embedding and a head, of random costs.
pub(crate) fn transformer(random: &mut Random) -> Workload {
    let n = 6 + random.below(9);
    let edges: Vec<(u32, u32)> = (1..n as u32).map(|v| (v - 1, v)).collect();
    let bytes = edges.iter().map(|_| random.amount(3, false)).collect();
    let [time, activations, state] = [4, 6, 6].map(|most| 1.0 + random.amount(most, false));
    let nodes = (0..n).map(|v| {
        let at_end = v == 0 || v + 1 == n;
        let size = if at_end { random.amount(2, false) } else { 1.0 };
        let degree = |t: u32| {
            let share = size / f64::from(t);
            let mode = |id: &str, time: f64, memory_a: f64| Mode {
                id: id.into(),
                time_s: time * share * 1.1,
                forward_s: None,
                parameters: state * share,
                memory_a: memory_a * share,
                memory_b: state * share,
                sync_in: vec![0.0; usize::from(v > 0)],
                sync_out: vec![0.0; usize::from(v + 1 < n)],
            };
            let modes = vec![mode(VANILLA, time, activations), mode(RECOMPUTE, time * 4.0 / 3.0, activations / 10.0)];
            DegreeProfile { degree: t, modes }
        };
        NodeProfile { degrees: vec![degree(1), degree(2), degree(4)] }
    });
    let nodes = nodes.collect();
    let mut workload = assemble(edges, bytes, nodes);
    let last = n - 1;
    for (v, node) in workload.nodes.iter_mut().enumerate() {
        node.name = Some(match v {
            0 => "embedding".into(),
            _ if v == last => "head".into(),
            _ => TRANSFORMER_LAYER.into(),
        });
    }
    workload
}

#[test]
fn a_thousand_plans_for_megatron_keep_its_rules() {
    let mut random = Random(22);
    let (mut plans, mut interleaved, mut recomputing) = (0, 0, 0);
    let (mut case, mut told_last) = (0, String::new());
    while plans < 1000 {
        case += 1;
        assert!(case < 5000, "{plans} plans of {case} problems: {told_last}");
        let workload = Arc::new(transformer(&mut random));
        let limits = Limits {
            devices: [2, 4, 8, 16, 32][random.below(5)],
            microbatches: [4, 8, 12, 24, 48][random.below(5)],
            memory_bytes: Some(8.0 + random.amount(60, false)),
            bandwidth_bytes_per_s: Some([1.0, 10.0, 1000.0][random.below(3)]),
            ..Limits::NEUTRAL
        };
        let schedule = ["1f1b", "interleaved", "auto"][random.below(3)];
        let settings =
            ["space=engine", "engine=megatron", "gap=10", &format!("schedule={schedule}")].map(ToString::to_string);
        let outcome = planned("joint", &workload, limits.clone(), &settings);
        let told = format!("case {case}, {schedule}, {limits:?}");
        let Some(plan) = outcome.plan else {
            assert_eq!(outcome.status, Status::Infeasible, "{told}");
            told_last = outcome.infeasible.unwrap().explanation;
            continue;
        };
        plans += 1;
        leaves_unchanged(&workload, &limits, &plan, Runner::Megatron, &told);
        let own = plan.execution.unwrap();
        interleaved += usize::from(own.schedule == Schedule::Interleaved);
        let mut choices = plan.stages.iter().flat_map(|stage| &stage.choices);
        recomputing += usize::from(choices.any(Choice::recomputes));
        assert!([Schedule::OneForwardOneBackward, Schedule::Interleaved].contains(&own.schedule), "{told}");
        assert!(schedule != "1f1b" || own.schedule == Schedule::OneForwardOneBackward, "{told}");
        assert!(outcome.lower_bound.is_none_or(|lower| lower <= outcome.objective.unwrap()), "{told}");
    }
    assert!(interleaved > 150 && recomputing > 100, "{interleaved} {recomputing}");
}

#[test]
fn what_would_do_for_an_engine_does() {
    let workload = Arc::new(workload::builtin());
    let tight = Limits {
        devices: 4,
        microbatches: 32,
        memory_bytes: Some(2.0 * f64::from(1 << 30)),
        bandwidth_bytes_per_s: Some(25e9),
        ..Limits::NEUTRAL
    };
    for runner in [Runner::Megatron, Runner::Torch, Runner::TorchTitan] {
        let settings = ["space=engine".to_string(), format!("engine={}", runner.id())];
        let story = planned("joint", &workload, tight.clone(), &settings).infeasible.unwrap();
        let bytes = story.smallest_memory_bytes.unwrap();
        let with = |limits: Limits| planned("joint", &workload, limits, &settings).plan.is_some();
        assert!(with(Limits { memory_bytes: Some(bytes), ..tight.clone() }), "{runner:?}: {}", story.explanation);
        assert!(
            !with(Limits { memory_bytes: Some(bytes * 0.999), ..tight.clone() }),
            "{runner:?}: {}",
            story.explanation
        );
        if let Some(devices) = story.fewest_devices {
            assert!(with(Limits { devices, ..tight.clone() }), "{runner:?}: {}", story.explanation);
        }
    }
}
