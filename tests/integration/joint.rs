//! Joint against exhaustion on small networks, against published-style figures, and against other planners in the simulator.

use std::sync::Arc;

use plantui::{
    cluster::Limits,
    family,
    graph::Dag,
    plan::{Measure, Plan, Stage},
    planner::{self, OptionValue, Options, Outcome, Problem, Search, Status},
    run as runs,
    simulate::{Schedule, SimulatorSettings, length_unless},
    workload::{
        self, Choice, DegreeProfile, Mode, NodeIndex, Workload,
        piper::{NodeProfile, RECOMPUTE, VANILLA},
    },
};

use crate::common::{
    random_piper::{Random, assemble},
    reference,
};

fn simulated(workload: &Workload, limits: &Limits, plan: &Plan) -> f64 {
    let pipeline = family::pipeline(workload, limits, plan, &SimulatorSettings::default());
    length_unless(&pipeline, Schedule::OneForwardOneBackward, &|| false).unwrap()
}

fn run(id: &str, workload: &Arc<Workload>, limits: Limits, settings: &[&str]) -> Outcome {
    let planner = planner::find(id).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::clone(workload), limits, options };
    runs::plan(planner, &problem, &Search::default()).unwrap().0
}

/// A chain in which some nodes also feed later ones.
pub(crate) fn network(random: &mut Random) -> Workload {
    let n = 2 + random.below(4);
    let mut edges: Vec<(u32, u32)> = (1..n as u32).map(|v| (v - 1, v)).collect();
    if random.chance(40) && n > 2 {
        edges.push((0, 2 + random.below(n - 2) as u32));
    }
    let bytes: Vec<f64> = edges.iter().map(|_| random.amount(3, random.0.is_multiple_of(2))).collect();
    let dag = Dag::new(n, edges.clone()).unwrap();
    let alike = random.chance(50);
    let first = [1.0 + random.amount(4, false), random.amount(5, true), 1.0 + random.amount(3, true)];
    let nodes = (0..n).map(|v| {
        let [time, a, b] = match alike {
            true => first,
            false => [1.0 + random.amount(4, false), random.amount(5, true), 1.0 + random.amount(3, true)],
        };
        let recomputes = random.chance(80);
        let degree = |t: u32, random: &mut Random| {
            let share = 1.0 / (f64::from(t) * 0.9);
            let mode = |id: &str, time: f64, a: f64, b: f64| Mode {
                id: id.into(),
                time_s: time,
                forward_s: None,
                parameters: b / 2.0,
                memory_a: a,
                memory_b: b,
                sync_in: vec![f64::from(t) - 1.0; dag.in_degree(v)],
                sync_out: vec![0.0; dag.out_degree(v)],
            };
            let mut modes = vec![mode(VANILLA, time * share, a / f64::from(t), b / f64::from(t))];
            if recomputes {
                let more = if alike { 1.0 / 3.0 } else { 0.1 + random.amount(1, false) };
                modes.push(mode(RECOMPUTE, time * share * (1.0 + more), 0.5 / f64::from(t), (b + 0.25) / f64::from(t)));
            }
            DegreeProfile { degree: t, modes }
        };
        NodeProfile { degrees: vec![degree(1, random), degree(2, random)] }
    });
    let nodes = nodes.collect();
    assemble(edges, bytes, nodes)
}

/// The least simulated time of all plans with one degree, one number of replicas and runs of nodes as stages.
fn exhaustion(workload: &Workload, limits: &Limits) -> Option<f64> {
    let n = workload.nodes.len();
    let profile = workload.piper().unwrap();
    let mut best: Option<f64> = None;
    for t in [1, 2] {
        for d in (1..=limits.devices).filter(|d| limits.microbatches.is_multiple_of(*d)) {
            for cuts in 0..1u32 << (n - 1) {
                let stages = cuts.count_ones() + 1;
                if stages * d * t > limits.devices || stages * d > limits.microbatches {
                    continue;
                }
                for again in 0..1u32 << n {
                    let plan = plan_of(profile, n, t, d, cuts, again);
                    let Some(plan) = plan else { continue };
                    if fits(workload, limits, &plan) {
                        let seconds = simulated(workload, limits, &plan);
                        best = Some(best.map_or(seconds, |best| best.min(seconds)));
                    }
                }
            }
        }
    }
    best
}

pub(crate) fn plan_of(
    profile: &workload::PiperProfile,
    n: usize,
    t: u32,
    d: u32,
    cuts: u32,
    again: u32,
) -> Option<Plan> {
    let mut stages: Vec<Stage> = vec![];
    for v in 0..n {
        if v == 0 || cuts >> (v - 1) & 1 == 1 {
            let (nodes, choices, devices) = (vec![], vec![], vec![]);
            stages.push(Stage { nodes, choices, data_parallel: d, tensor_parallel: t, devices });
        }
        let modes = profile.nodes[v].modes(t)?;
        let mode = modes.get((again >> v & 1) as usize)?;
        let stage = stages.last_mut()?;
        stage.nodes.push(NodeIndex::new(v));
        stage.choices.push(Choice::Mode(mode.id.clone()));
    }
    Some(Plan { stages, measure: Measure::IterationTime, ..Plan::default() })
}

fn fits(workload: &Workload, limits: &Limits, plan: &Plan) -> bool {
    let profile = workload.piper().unwrap();
    plan.stages.iter().rev().zip(1..).all(|(stage, in_flight)| {
        let bytes = stage.nodes.iter().zip(&stage.choices).map(|(&v, choice)| {
            let mode =
                profile.nodes[v].modes(stage.tensor_parallel).unwrap().iter().find(|m| choice.is_mode(&m.id)).unwrap();
            mode.memory_a * f64::from(in_flight) + mode.memory_b
        });
        bytes.sum::<f64>() <= limits.memory_limit()
    })
}

fn held_against_exhaustion(seed: u64, count: usize) {
    let mut random = Random(seed);
    let (mut planned, mut exact) = (0, 0);
    for case in 0..count {
        let workload = Arc::new(network(&mut random));
        let limits = Limits {
            devices: 1 + random.below(6) as u32,
            microbatches: [1, 2, 4, 6, 12][random.below(5)],
            memory_bytes: Some(4.0 + random.amount(20, false)),
            bandwidth_bytes_per_s: Some([1.0, 5.0, 1000.0][random.below(3)]),
            ..Limits::NEUTRAL
        };
        let outcome = run("joint", &workload, limits.clone(), &["gap=0.01"]);
        let best = exhaustion(&workload, &limits);
        let Some(best) = best else {
            assert_eq!(outcome.status, Status::Infeasible, "case {case}: {outcome:?}");
            continue;
        };
        let value = outcome.objective.unwrap_or_else(|| panic!("case {case}: {best} exists: {outcome:?}"));
        assert!(outcome.lower_bound.unwrap() <= best * (1.0 + 1e-9), "case {case}: {best} {outcome:?}");
        assert!(value >= best * (1.0 - 1e-9) && value <= best * 1.007, "case {case}: {value} {best}");
        planned += 1;
        exact += usize::from(value <= best * (1.0 + 1e-9));
    }
    assert!(planned * 2 > count, "{planned} of {count} could be planned");
    assert!(exact * 100 >= planned * 97, "{exact} of {planned} are the best");
}

#[test]
fn small_networks_as_by_exhaustion() {
    held_against_exhaustion(11, 60);
}

#[test]
#[ignore = "takes a while"]
fn five_hundred_small_networks_as_by_exhaustion() {
    held_against_exhaustion(12, 500);
}

/// A cell of the table of figures.
struct Cell {
    input: &'static str,
    limits: [f64; 3],
    joint_s: Option<f64>,
    lower_s: Option<f64>,
    equal_s: Option<f64>,
    engine_s: Option<f64>,
}

fn cells() -> impl Iterator<Item = Cell> {
    include_str!("../figures/joint.tsv").lines().skip(2).map(|line| {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let number = |i: usize| fields.get(i).and_then(|field| field.parse::<f64>().ok());
        Cell {
            input: fields[0],
            limits: [1, 2, 3].map(|i| number(i).unwrap()),
            joint_s: number(4),
            lower_s: number(5),
            equal_s: number(7),
            engine_s: number(8),
        }
    })
}

#[test]
#[ignore = "needs the published inputs: PLANTUI_REFERENCE"]
fn no_slower_than_the_figures_and_the_gap_is_told() {
    let mut gaps = vec![];
    for cell in cells() {
        let workload = Arc::new(workload::load(&reference::root().join("joint").join(cell.input)).unwrap());
        let [devices, microbatches, gib] = cell.limits;
        let limits = Limits {
            devices: devices as u32,
            microbatches: microbatches as u32,
            memory_bytes: Some(gib * f64::from(1 << 30)),
            bandwidth_bytes_per_s: Some(workload.limits.bandwidth_bytes_per_s().unwrap()),
            ..Limits::NEUTRAL
        };
        let what = format!("{} K{devices} N{microbatches} {gib} GiB", cell.input);
        let outcome = run("joint", &workload, limits.clone(), &[]);
        let Some(known) = cell.joint_s else {
            assert_eq!(outcome.status, Status::Infeasible, "{what}");
            continue;
        };
        let value = outcome.objective.unwrap();
        assert!(value <= known * 1.002, "{what}: {value} {known}");
        for other in [cell.equal_s, cell.engine_s].into_iter().flatten() {
            assert!(value <= other * (1.0 + 1e-9), "{what}: {value}, another planner's plan takes {other}");
        }
        // Neither bound can be above a plan of the same space.
        assert!(cell.lower_s.unwrap() <= value * (1.0 + 1e-7) && outcome.lower_bound.unwrap() <= known * (1.0 + 1e-9));
        let gap = outcome.gap().unwrap();
        let chain = workload.dag.edges().len() + 1 == workload.nodes.len();
        assert!(gap <= if chain { 0.03 } else { 0.06 }, "{what}: {gap}");
        gaps.push(gap);
        let plan = outcome.plan.unwrap();
        assert!((simulated(&workload, &limits, &plan) - value).abs() <= 1e-9 * value, "{what}");
    }
    gaps.sort_by(f64::total_cmp);
    assert!(gaps[gaps.len() / 2] <= 0.006, "{}", gaps[gaps.len() / 2]);
}

#[test]
fn never_slower_than_plans_of_the_same_space() {
    let workload = Arc::new(workload::builtin());
    for (devices, microbatches, gib) in [(8, 64, 8), (16, 32, 8), (64, 128, 4), (32, 480, 8)] {
        let limits = Limits {
            devices,
            microbatches,
            memory_bytes: Some(f64::from(gib) * f64::from(1 << 30)),
            bandwidth_bytes_per_s: Some(25e9),
            ..Limits::NEUTRAL
        };
        let value = run("joint", &workload, limits.clone(), &[]).objective.unwrap();
        for (id, settings) in [("equal-partition", &[][..]), ("joint", &["space=engine"][..])] {
            if let Some(plan) = run(id, &workload, limits.clone(), settings).plan {
                let other = simulated(&workload, &limits, &plan);
                assert!(value <= other * (1.0 + 1e-9), "{id} on {devices}: {other} s, joint {value} s");
            }
        }
    }
}

#[test]
fn options_narrow_the_space_and_say_what_cannot_be() {
    let workload = Arc::new(workload::builtin());
    let limits = Limits {
        devices: 16,
        microbatches: 64,
        memory_bytes: Some(8.0 * f64::from(1 << 30)),
        bandwidth_bytes_per_s: Some(25e9),
        ..Limits::NEUTRAL
    };
    let free = run("joint", &workload, limits.clone(), &[]).objective.unwrap();
    for settings in [
        &["tensor_parallel=false"][..],
        &["data_parallel=false"],
        &["recompute=never"],
        &["recompute=always"],
        &["recompute=all-or-none"],
        &["stages=8"],
        &["headroom=20"],
    ] {
        let outcome = run("joint", &workload, limits.clone(), settings);
        let Some(value) = outcome.objective else {
            assert_eq!(outcome.status, Status::Infeasible, "{settings:?}");
            continue;
        };
        assert!(value >= free * 0.9985, "{settings:?}: {value} {free}");
        let plan = outcome.plan.unwrap();
        let choices = || plan.stages.iter().flat_map(|stage| &stage.choices);
        match settings[0] {
            "tensor_parallel=false" => assert!(plan.stages.iter().all(|stage| stage.tensor_parallel == 1)),
            "data_parallel=false" => assert!(plan.stages.iter().all(|stage| stage.data_parallel == 1)),
            "recompute=never" => assert!(choices().all(|choice| choice.is_mode(VANILLA))),
            "recompute=always" => assert!(choices().all(|choice| choice.is_mode(RECOMPUTE))),
            "stages=8" => assert_eq!(plan.stages.len(), 8),
            _ => {}
        }
    }
    let tight = Limits { memory_bytes: Some(f64::from(1 << 30)), devices: 2, ..limits.clone() };
    let outcome = run("joint", &workload, tight.clone(), &[]);
    let story = outcome.infeasible.unwrap();
    let (bytes, devices) = (story.smallest_memory_bytes.unwrap(), story.fewest_devices);
    let enough = Limits { memory_bytes: Some(bytes), ..tight.clone() };
    assert!(run("joint", &workload, enough, &[]).plan.is_some(), "{}", story.explanation);
    let short = Limits { memory_bytes: Some(bytes * 0.999), ..tight.clone() };
    assert!(run("joint", &workload, short, &[]).plan.is_none());
    if let Some(devices) = devices {
        assert!(run("joint", &workload, Limits { devices, ..tight.clone() }, &[]).plan.is_some());
        assert!(run("joint", &workload, Limits { devices: devices - 1, ..tight.clone() }, &[]).plan.is_none());
    }
}

#[test]
fn a_plan_file_is_held_against_a_batch_worked_out_anew() {
    let workload = Arc::new(workload::builtin());
    let limits = Limits {
        devices: 8,
        microbatches: 24,
        memory_bytes: Some(16.0 * f64::from(1 << 30)),
        bandwidth_bytes_per_s: Some(25e9),
        ..Limits::NEUTRAL
    };
    let planner = planner::find("joint").unwrap();
    let mut options = Options::defaults(planner.options());
    options.set("stages", OptionValue::Number(4.0));
    let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
    let outcome = planner.plan(&problem, &Search::default());
    let plan = outcome.plan.unwrap();
    let score = family::check(&workload, &limits, &plan);
    assert!((score.value - outcome.objective.unwrap()).abs() <= 1e-9 * score.value);
    // Replicas that differ between stages are worked out as well, and as simulated.
    for replicas in [[2, 1, 1, 1], [1, 2, 1, 1], [3, 1, 2, 1], [1, 1, 1, 4]] {
        let mut uneven = plan.clone();
        for (stage, d) in uneven.stages.iter_mut().zip(replicas) {
            (stage.data_parallel, stage.tensor_parallel) = (d, 1);
        }
        let roomy = Limits { devices: 16, memory_bytes: Some(1e15), ..limits.clone() };
        let score = family::check(&workload, &roomy, &uneven.with_consecutive_devices());
        let mut uneven = plan.clone();
        for (stage, d) in uneven.stages.iter_mut().zip(replicas) {
            (stage.data_parallel, stage.tensor_parallel) = (d, 1);
        }
        let simulated = simulated(&workload, &roomy, &uneven);
        assert!(score.is_valid(), "{:?}", score.violations);
        assert!((score.value - simulated).abs() <= 1e-9 * simulated, "{replicas:?}: {} {simulated}", score.value);
    }
}
