//! The best plan that an engine can run unchanged, against trying all of them; what is exported of it is the plan itself.

use crate::common::{
    engine_rules,
    random_piper::{Flavour, Random, edges, workload},
};
use plantui::{
    cluster::{GivenLimits, LimitKind, Limits, Machines},
    export::engine::{self, Engine},
    family::{self, check},
    plan::{
        Plan, Stage,
        runner::{RecomputeRule, Runner},
    },
    planner::{Options, Outcome, Planner, Problem, Search, Status, equal_partition::EqualPartition, piper::Piper},
    run,
    workload::{
        Choice, NodeIndex, Workload, builtin,
        layering::{LayerKind, Layering},
        piper::recomputes,
    },
};
use std::sync::Arc;

/// What a plan for an engine is asked to be.
#[derive(Debug, Clone, Copy)]
struct Asked {
    runner: Runner,
    recompute: &'static str,
    data_parallel: bool,
    stages: usize,
}

fn planned(workload: &Arc<Workload>, limits: &Limits, asked: Asked) -> Outcome {
    let settings = [
        "engine_feasible=true".to_string(),
        format!("engine={}", asked.runner.id()),
        format!("recompute={}", asked.recompute),
        format!("data_parallel={}", asked.data_parallel),
        format!("stages={}", asked.stages),
    ];
    let options = Options::parse("piper", Piper.options(), settings.iter().map(String::as_str)).unwrap();
    let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options };
    run::plan(&Piper, &problem, &Search::default()).unwrap().0
}

/// The layers as the engine sees them.
fn layers(workload: &Workload, runner: Runner) -> Layering {
    let layering = Layering::of(workload, None).unwrap();
    if runner.merges_ends() { layering.with_merged_ends() } else { layering }
}

/// Every way to cut the layers into stages.
fn cuts(layers: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1u32 << (layers - 1)).map(move |mask| (1..layers).filter(|at| mask >> (at - 1) & 1 == 1).collect())
}

/// By layer: whether it recomputes, every way that the engine knows for these stages.
fn ways(layering: &Layering, bounds: &[usize], asked: Asked) -> Vec<Vec<bool>> {
    let count = layering.layers.len();
    let block = |layer: usize| layering.layers[layer].nodes.iter().any(|v| !layering.at_ends[v.index()]);
    let first = |most: usize| -> Vec<bool> {
        let mut ways = vec![];
        for stage in bounds.windows(2) {
            let mut place = 0;
            for layer in stage[0]..stage[1] {
                ways.push(block(layer) && place < most);
                place += usize::from(block(layer));
            }
        }
        ways
    };
    let (none, all) = (first(0), first(count));
    match (asked.recompute, asked.runner.recompute()) {
        ("never", _) => vec![none],
        ("always", RecomputeRule::AllOrNone | RecomputeRule::Count) => vec![none, all],
        (_, RecomputeRule::AllOrNone) => vec![none, all],
        (_, RecomputeRule::Count) => (0..=count).map(first).collect(),
        (_, RecomputeRule::PerLayer) => (0..1u32 << count)
            .map(|mask| (0..count).map(|layer| mask >> layer & 1 == 1).collect::<Vec<bool>>())
            .filter(|way| way.iter().enumerate().all(|(layer, again)| !again || block(layer)))
            .collect(),
    }
}

/// Every plan that the engine runs, memory and machines aside.
fn every_plan(workload: &Workload, limits: &Limits, asked: Asked) -> Vec<Plan> {
    let profile = workload.piper().unwrap();
    let layering = layers(workload, asked.runner);
    let count = layering.layers.len();
    let mut plans = vec![];
    for cut in cuts(count) {
        let bounds: Vec<usize> = std::iter::once(0).chain(cut).chain([count]).collect();
        if asked.stages > 0 && bounds.len() - 1 != asked.stages {
            continue;
        }
        for way in ways(&layering, &bounds, asked) {
            for t in profile.degrees().into_iter().filter(|&t| profile.nodes.iter().all(|node| node.modes(t).is_some()))
            {
                let choice = |v: NodeIndex| {
                    let modes = profile.nodes[v].modes(t).unwrap();
                    let again = way[layering.layer_of[v.index()]] && !layering.at_ends[v.index()];
                    let kept = modes.iter().find(|mode| !recomputes(&mode.id)).unwrap_or(&modes[0]);
                    let found = modes.iter().find(|mode| recomputes(&mode.id) && again).unwrap_or(kept);
                    Choice::Mode(found.id.clone())
                };
                // What the engine is told must be what happens.
                let honest = (0..count).all(|layer| {
                    let nodes = layering.layers[layer].nodes.iter().filter(|v| !layering.at_ends[v.index()]);
                    nodes.clone().count() == 0 || nodes.clone().any(|&v| choice(v).recomputes()) == way[layer]
                });
                // Always: every node that has a mode to recompute does.
                let can = |v: NodeIndex| profile.nodes[v].modes(t).unwrap().iter().any(|mode| recomputes(&mode.id));
                let mut nodes = NodeIndex::first(profile.nodes.len());
                if !honest || (asked.recompute == "always" && nodes.any(|v| can(v) && !choice(v).recomputes())) {
                    continue;
                }
                for d in 1..=if asked.data_parallel { limits.devices } else { 1 } {
                    let stage = |range: &[usize]| {
                        let mut nodes: Vec<NodeIndex> =
                            layering.layers[range[0]..range[1]].iter().flat_map(|l| l.nodes.clone()).collect();
                        nodes.sort_unstable();
                        let choices = nodes.iter().map(|&v| choice(v)).collect();
                        Stage { choices, nodes, data_parallel: d, tensor_parallel: t, devices: vec![] }
                    };
                    let stages = bounds.windows(2).map(stage).collect();
                    plans.push(Plan { stages, ..Plan::default() });
                }
            }
        }
    }
    plans
}

fn whole_machines(plan: &Plan, limits: &Limits) -> bool {
    let size = limits.machines.sizes().first().map_or(8, |&size| u32::from(size));
    plan.devices_used() <= size || plan.devices_used().is_multiple_of(size)
}

/// The least value of any of them that keeps the limits, by the independent check alone.
fn least(plans: &[Plan], workload: &Workload, limits: &Limits) -> Option<f64> {
    let fits = plans.iter().filter(|plan| plan.devices_used() <= limits.devices && whole_machines(plan, limits));
    let scores = fits.map(|plan| check(workload, limits, &plan.clone().with_consecutive_devices()));
    scores.filter(plantui::plan::Score::is_valid).map(|score| score.value).reduce(f64::min)
}

/// Names by topological order: something in front, blocks of one or two nodes, something behind.
fn named(mut workload: Workload, random: &mut Random) -> Workload {
    let order: Vec<usize> = workload.dag.topological_order().iter().map(|&v| v as usize).collect();
    let n = order.len();
    let (front, behind) = if n >= 4 { (random.below(2), random.below(2)) } else { (0, 0) };
    let width = 1 + usize::from(n > 6 || random.chance(20));
    for (place, v) in order.into_iter().enumerate() {
        workload.nodes[v].name = Some(match place {
            place if place < front => "embedding".into(),
            place if place >= n - behind => "head".into(),
            place => format!("layers.{}.part", (place - front) / width),
        });
    }
    workload
}

fn random_limits(random: &mut Random) -> Limits {
    let machines = if random.chance(40) { Machines::even(3, 2) } else { Machines::NONE };
    Limits {
        devices: 1 + random.below(6) as u32,
        memory_bytes: Some(1.0 + random.amount(random.clone().pick(&[40, 150]), true)),
        microbatches: random.pick(&[1, 2, 3, 4, 6, 12]),
        bandwidth_bytes_per_s: Some(random.pick(&[0.5, 2.0, 8.0, 1e6])),
        machines,
        ..Limits::NEUTRAL
    }
}

fn engine_of(runner: Runner) -> Vec<Engine> {
    match runner {
        Runner::Any => vec![Engine::Megatron, Engine::DeepSpeed, Engine::Torch, Engine::TorchTitan, Engine::Galvatron],
        _ => Engine::ALL.into_iter().filter(|engine| engine.runner() == Some(runner)).collect(),
    }
}

/// Exporting needs no other plan, and what is written keeps the engine's rules.
pub(crate) fn leaves_unchanged(workload: &Workload, limits: &Limits, plan: &Plan, runner: Runner, told: &str) {
    let numbered = Layering::of(workload, None).unwrap().blocks() > 0;
    for engine in engine_of(runner).into_iter().filter(|_| numbered) {
        let settings =
            engine::EngineSettings { exact: true, micro_batch_size: Some(2), ..engine::EngineSettings::default() };
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

#[test]
fn nothing_that_the_engine_runs_is_better() {
    let (mut feasible, mut boundaries, mut several, mut partly, mut more) = (0, 0, 0, 0, 0);
    for seed in 0..500 {
        let mut random = Random(seed);
        let n = 1 + random.below(7);
        let flavour = Flavour {
            whole: random.chance(60),
            uniform: random.chance(50),
            all_recompute: random.chance(70),
            most_modes: if random.chance(80) { 2 } else { 3 },
        };
        let edges = edges(&mut random, n);
        let random_workload = workload(&mut random, n, edges, flavour);
        let workload = Arc::new(if random.chance(85) { named(random_workload, &mut random) } else { random_workload });
        let limits = random_limits(&mut random);
        let asked = Asked {
            runner: random.pick(&Runner::ALL),
            recompute: random.pick(&["auto", "auto", "auto", "never", "always"]),
            data_parallel: random.chance(85),
            stages: if random.chance(25) { 1 + random.below(3) } else { 0 },
        };
        let told = format!("seed {seed}, {asked:?}, {limits:?}");
        let outcome = planned(&workload, &limits, asked);
        if asked.runner.counts_blocks() && Layering::of(&workload, None).unwrap().blocks() == 0 {
            let story = outcome.infeasible.unwrap();
            assert!(story.explanation.contains("repeat"), "{told}: {}", story.explanation);
            continue;
        }
        if asked.stages > workload.nodes.len() {
            assert_eq!(outcome.status, Status::Infeasible);
            continue;
        }
        let plans = every_plan(&workload, &limits, asked);
        match (outcome.status, least(&plans, &workload, &limits)) {
            (Status::Infeasible, None) => {
                let story = outcome.infeasible.unwrap();
                if let Some(named) = story.smallest_memory_bytes {
                    let at = |memory_bytes| {
                        planned(&workload, &Limits { memory_bytes: Some(memory_bytes), ..limits.clone() }, asked).status
                    };
                    assert_eq!(at(named), Status::Optimal, "{told}: {named} bytes");
                    assert_eq!(at(named * (1.0 - 1e-6)), Status::Infeasible, "{told}: less than {named} bytes");
                    boundaries += 1;
                }
                if let Some(named) = story.fewest_devices {
                    let with = |devices| planned(&workload, &Limits { devices, ..limits.clone() }, asked).status;
                    assert_eq!(with(named), Status::Optimal, "{told}: {named} devices");
                    assert_eq!(with(named - 1), Status::Infeasible, "{told}: {} devices", named - 1);
                    more += 1;
                }
            }
            (Status::Optimal, Some(expected)) => {
                let plan = outcome.plan.unwrap();
                let score = check(&workload, &limits, &plan);
                assert!(score.is_valid(), "{told}: {:?}", score.violations);
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
                assert!(close(score.value, expected), "{told}: {} against {expected}", score.value);
                assert_eq!(outcome.lower_bound, outcome.objective, "{told}");
                assert!(whole_machines(&plan, &limits), "{told}: {} devices", plan.devices_used());
                leaves_unchanged(&workload, &limits, &plan, asked.runner, &told);
                feasible += 1;
                several += usize::from(plan.stages.len() > 1 && plan.stages[0].data_parallel > 1);
                let choices = || plan.stages.iter().flat_map(|stage| &stage.choices);
                let some = choices().any(Choice::recomputes) && !choices().all(Choice::recomputes);
                partly += usize::from(some);
            }
            other => panic!("{told}: {other:?}"),
        }
    }
    println!("{feasible} {boundaries} {more} {several} {partly}");
    assert!(feasible > 100 && boundaries > 10 && more > 5 && several > 5 && partly > 10);
}

/// The published network's own sizes, where recomputing part of the layers pays.
#[test]
fn plans_for_engines_leave_unchanged() {
    let workload = Arc::new(builtin());
    for (devices, memory) in [(8, 10), (64, 8), (24, 16), (128, 4)] {
        let overrides = GivenLimits::default()
            .with(LimitKind::Devices, devices)
            .with(LimitKind::Memory, f64::from(memory) * 1024f64.powi(3));
        let limits = family::resolve(&workload, &overrides).unwrap();
        let mut values = vec![];
        for runner in Runner::ALL {
            let asked = Asked { runner, recompute: "auto", data_parallel: true, stages: 0 };
            let outcome = planned(&workload, &limits, asked);
            assert_eq!(outcome.status, Status::Optimal, "{devices} {memory} {runner:?}");
            let plan = outcome.plan.unwrap();
            let told = format!("{devices} devices, {memory} GiB, {runner:?}");
            leaves_unchanged(&workload, &limits, &plan, runner, &told);
            assert!(plan.devices_used() <= 8 || plan.devices_used().is_multiple_of(8), "{told}");
            values.push((runner, outcome.objective.unwrap()));
        }
        let of = |wanted: Runner| values.iter().find(|(runner, _)| *runner == wanted).unwrap().1;
        assert!(of(Runner::Megatron) <= of(Runner::Any) * (1.0 + 1e-9), "{values:?}");
        assert!(of(Runner::Torch) <= of(Runner::Megatron) * (1.0 + 1e-9), "{values:?}");
        assert_eq!(of(Runner::Torch), of(Runner::DeepSpeed));
    }
}

#[test]
fn they_lie_behind_pipers_best() {
    let workload = Arc::new(builtin());
    for (devices, memory) in [(8, 8), (64, 8), (64, 16), (128, 4), (512, 2)] {
        let overrides = GivenLimits::default()
            .with(LimitKind::Devices, devices)
            .with(LimitKind::Memory, f64::from(memory) * 1024f64.powi(3));
        let limits = family::resolve(&workload, &overrides).unwrap();
        let asked = Asked { runner: Runner::Any, recompute: "auto", data_parallel: true, stages: 0 };
        let ours = planned(&workload, &limits, asked);
        let of = |planner: &dyn Planner| {
            let options = Options::defaults(planner.options());
            let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
            run::plan(planner, &problem, &Search::default()).unwrap().0.objective
        };
        let (piper, equal) = (of(&Piper), of(&EqualPartition));
        match ours.objective {
            Some(value) => assert!(piper.unwrap() <= value * (1.0 + 1e-9), "{devices} {memory} {equal:?}"),
            None => assert!(ours.infeasible.unwrap().smallest_memory_bytes.unwrap() > limits.memory_limit()),
        }
    }
}

#[test]
fn an_engine_that_is_named_is_heeded_alone() {
    let workload = Arc::new(builtin());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let options = |settings: &[&str]| Options::parse("piper", Piper.options(), settings.iter().copied()).unwrap();
    let run = |settings: &[&str]| {
        let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options: options(settings) };
        run::plan(&Piper, &problem, &Search::default()).unwrap().0
    };
    let (named, both) = (run(&["engine=megatron"]), run(&["engine=megatron", "engine_feasible=true"]));
    assert_eq!(named.plan, both.plan);
    assert!(named.notes.iter().any(|note| note.contains("planned for Megatron-LM")), "{:?}", named.notes);
    let layering = Layering::of(&workload, None).unwrap();
    assert!(layering.layers.iter().any(|layer| layer.kind == LayerKind::First));
}
