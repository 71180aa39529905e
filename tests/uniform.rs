//! The best plan with whole layers and the same degrees everywhere, against trying all of them.

mod common;

use common::random_piper::{Flavour, Random, edges, workload};
use plantui::{
    cluster::{Limits, Overrides},
    plan::{Plan, Stage, check::check},
    planner::{self, Options, Planner, Problem, Search, Status, equal_partition::EqualPartition, piper::Piper},
    study::uniform::{Settings, best},
    workload::{Workload, builtin, layering::Layering, piper::RECOMPUTE},
};
use std::sync::Arc;

const ALL: Settings = Settings { recompute: &[false, true], tensor_parallel: true };

/// Every way to cut the layers into stages.
fn cuts(layers: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1u32 << (layers - 1)).map(move |mask| (1..layers).filter(|at| mask >> (at - 1) & 1 == 1).collect())
}

/// The least value of any plan with the same degrees on every stage, by the independent check alone.
fn by_trying(workload: &Workload, limits: &Limits, layering: &Layering) -> Option<f64> {
    let profile = workload.piper().unwrap();
    let mut least: Option<f64> = None;
    for cut in cuts(layering.layers.len()) {
        let bounds: Vec<usize> = std::iter::once(0).chain(cut).chain([layering.layers.len()]).collect();
        for t in profile.degrees() {
            for d in 1..=limits.devices {
                for recompute in [false, true] {
                    let stage = |range: &[usize]| {
                        let mut nodes: Vec<usize> =
                            layering.layers[range[0]..range[1]].iter().flat_map(|l| l.nodes.clone()).collect();
                        nodes.sort_unstable();
                        let choice = |&v: &usize| {
                            let modes = profile.nodes[v].modes(t).unwrap_or_default();
                            let wanted = modes.iter().find(|mode| (mode.id == RECOMPUTE) == recompute);
                            wanted.or(modes.first()).map(|mode| mode.id.clone()).unwrap_or_default()
                        };
                        let choices = nodes.iter().map(choice).collect();
                        Stage { choices, nodes, data_parallel: d, tensor_parallel: t, devices: vec![] }
                    };
                    let stages = bounds.windows(2).map(stage).collect();
                    let plan = Plan { stages, ..Plan::default() }.with_consecutive_devices();
                    let score = check(workload, limits, &plan);
                    if score.is_valid() {
                        least = Some(least.map_or(score.value, |known| known.min(score.value)));
                    }
                }
            }
        }
    }
    least
}

#[test]
fn nothing_uniform_is_better_on_random_workloads() {
    let (mut feasible, mut infeasible, mut boundaries, mut several) = (0, 0, 0, 0);
    for seed in 0..400 {
        let mut random = Random(seed);
        let n = 1 + random.below(6);
        let flavour =
            Flavour { whole: random.chance(60), uniform: false, all_recompute: random.chance(50), most_modes: 2 };
        let edges = edges(&mut random, n);
        let workload = workload(&mut random, n, edges, flavour);
        let most = random.pick(&[40, 150]);
        let overrides = Overrides {
            devices: Some(1 + random.below(6) as u32),
            memory_bytes: Some(1.0 + random.amount(most, true)),
            microbatches: Some(random.pick(&[1, 2, 3, 4, 6, 12])),
            bandwidth_bytes_per_s: Some(random.pick(&[0.5, 2.0, 8.0, 1e6])),
            ..Overrides::default()
        };
        let limits = Limits::resolve(&workload, &overrides).unwrap();
        let layering = Layering::of(&workload, None).unwrap();
        let outcome = best(&workload, &limits, &layering, &ALL, &Search::default());
        let expected = by_trying(&workload, &limits, &layering);
        match (outcome.status, expected) {
            (Status::Infeasible, None) => {
                infeasible += 1;
                let Some(named) = outcome.infeasible.unwrap().smallest_memory_bytes else { continue };
                let at = |memory_bytes| {
                    best(&workload, &Limits { memory_bytes, ..limits }, &layering, &ALL, &Search::default()).status
                };
                assert_eq!(at(named), Status::Optimal, "seed {seed}: {named} bytes");
                assert_eq!(at(named * (1.0 - 1e-6)), Status::Infeasible, "seed {seed}: less than {named} bytes");
                boundaries += 1;
            }
            (Status::Optimal, Some(expected)) => {
                let plan = outcome.plan.unwrap();
                let score = check(&workload, &limits, &plan);
                assert!(score.is_valid(), "seed {seed}: {:?}", score.violations);
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
                assert!(close(score.value, expected), "seed {seed}: {} against {expected}", score.value);
                assert!(close(outcome.objective.unwrap(), score.value), "seed {seed}");
                feasible += 1;
                several += usize::from(plan.stages.len() > 1 && plan.stages[0].data_parallel > 1);
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(feasible > 100 && boundaries > 10 && several > 10, "{feasible} {infeasible} {boundaries} {several}");
}

#[test]
fn it_lies_between_piper_and_the_equal_partition() {
    let workload = Arc::new(builtin());
    for (devices, memory) in [(8, 8), (64, 8), (64, 16), (128, 4), (512, 2)] {
        let overrides = Overrides {
            devices: Some(devices),
            memory_bytes: Some(f64::from(memory) * 1024f64.powi(3)),
            ..Default::default()
        };
        let limits = Limits::resolve(&workload, &overrides).unwrap();
        let layering = Layering::of(&workload, None).unwrap();
        let ours = best(&workload, &limits, &layering, &ALL, &Search::default());
        let of = |planner: &dyn Planner| {
            let options = Options::defaults(planner.options());
            let problem = Problem { workload: Arc::clone(&workload), limits, options };
            planner::run(planner, &problem, &Search::default()).0.objective
        };
        let (piper, equal) = (of(&Piper), of(&EqualPartition));
        match ours.objective {
            Some(value) => {
                assert!(piper.unwrap() <= value * (1.0 + 1e-9), "{devices} {memory}");
                assert!(equal.is_none_or(|equal| value <= equal * (1.0 + 1e-9)), "{devices} {memory}");
            }
            None => {
                assert_eq!(equal, None, "{devices} {memory}");
                assert!(ours.infeasible.unwrap().smallest_memory_bytes.unwrap() > limits.memory_bytes);
            }
        }
    }
}
