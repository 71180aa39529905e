//! What must hold of every Piper plan, whatever the workload: order of limits, scale, names, threads, cancelling, and
//! the odd ends of the input.

use crate::common::random_piper::{Flavour, Random, assemble, edges, workload};
use plantui::{
    cluster::{LimitKind, Limits},
    graph::Dag,
    planner::{
        Options, Outcome, Planner, Problem, Search, Status,
        equal_partition::EqualPartition,
        piper::{MOST_SETS, Piper},
    },
    run,
    workload::{DegreeProfile, Mode, Node, PiperProfile, Profile, Workload, piper::NodeProfile},
};
use std::{
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

const MODES: [&str; 4] = ["auto", "never", "always", "all-or-none"];

fn problem(workload: &Workload, limits: Limits, settings: &[&str]) -> Problem {
    let options = Options::parse("piper", Piper.options(), settings.iter().copied()).unwrap();
    Problem { workload: Arc::new(workload.clone()), limits, options }
}

/// Plans, and checks the plan independently.
fn plan(problem: &Problem) -> Outcome {
    run::plan(&Piper, problem, &Search::default()).unwrap().0
}

/// The objective; infinite where nothing is feasible.
fn objective(problem: &Problem) -> f64 {
    let outcome = plan(problem);
    assert!(matches!(outcome.status, Status::Optimal | Status::Infeasible), "{:?}", outcome.status);
    outcome.objective.unwrap_or(f64::INFINITY)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn piper(workload: &mut Workload) -> &mut PiperProfile {
    let Profile::Piper(profile) = &mut workload.profile else { panic!("every workload here has a Piper profile") };
    profile
}

fn each_mode(workload: &mut Workload, change: impl Fn(&mut Mode)) {
    let nodes = &mut piper(workload).nodes;
    nodes.iter_mut().flat_map(|node| &mut node.degrees).flat_map(|degree| &mut degree.modes).for_each(change);
}

/// A random workload of up to fourteen nodes (in a chain; else up to seven) under limits that mostly bind.
fn random_problem(seed: u64) -> (Workload, Limits, Vec<String>) {
    let mut random = Random(seed);
    let n = 1 + random.below(14);
    let flavour = Flavour {
        whole: random.chance(50),
        uniform: random.chance(60),
        all_recompute: random.chance(60),
        most_modes: 3,
    };
    // Graphs of loose nodes have too many sets for a quick test.
    let n = if random.chance(60) { n } else { n.min(7) };
    let edges = if n > 7 { chain(n) } else { edges(&mut random, n) };
    let workload = workload(&mut random, n, edges, flavour);
    let limits = Limits {
        cpus: 0,
        devices: 1 + random.below(12) as u32,
        memory_bytes: Some(10.0 + random.below(100) as f64),
        microbatches: random.pick(&[1, 4, 6, 12, 30]),
        bandwidth_bytes_per_s: Some(random.pick(&[0.5, 4.0, 50.0])),
        ..Limits::NEUTRAL
    };
    let settings = vec![
        format!("recompute={}", random.pick(&MODES)),
        format!("data_parallel={}", random.chance(80)),
        format!("tensor_parallel={}", random.chance(80)),
    ];
    (workload, limits, settings)
}

fn chain(n: usize) -> Vec<(u32, u32)> {
    (1..n as u32).map(|v| (v - 1, v)).collect()
}

/// `count` chains of `length` nodes side by side, every node alike.
fn parallel_chains(count: usize, length: usize, seed: u64) -> Workload {
    let mut random = Random(seed);
    let edges: Vec<(u32, u32)> =
        (0..count * length).filter(|v| v % length + 1 < length).map(|v| (v as u32, v as u32 + 1)).collect();
    let flavour = Flavour { whole: false, uniform: true, all_recompute: true, most_modes: 2 };
    workload(&mut random, count * length, edges, flavour)
}

fn as_str(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

#[test]
fn more_of_anything_is_never_worse() {
    let (mut feasible, mut better) = (0, 0);
    for seed in 0..150 {
        let (workload, limits, settings) = random_problem(seed);
        let settings = as_str(&settings);
        let before = objective(&problem(&workload, limits.clone(), &settings));
        feasible += usize::from(before.is_finite());
        for (kind, more) in [
            (LimitKind::Devices, f64::from(limits.devices + 1)),
            (LimitKind::Devices, f64::from(limits.devices * 3)),
            (LimitKind::Memory, limits.memory_limit() * 1.2),
            (LimitKind::Memory, 1e6),
            (LimitKind::Bandwidth, limits.bandwidth() * 3.0),
        ] {
            let after = objective(&problem(&workload, limits.with(kind, more), &settings));
            assert!(
                after <= before * (1.0 + 1e-9),
                "seed {seed}, {limits:?}, {settings:?}, {kind:?} {more}: {before} becomes {after}"
            );
            better += usize::from(after < before);
        }
    }
    assert!(feasible > 50 && feasible < 145 && better > 120, "{feasible} feasible, {better} better");
}

#[test]
fn the_objective_scales_with_time_and_not_with_the_unit_of_bytes() {
    for seed in 0..80 {
        let (workload, limits, settings) = random_problem(seed);
        let settings = as_str(&settings);
        let before = objective(&problem(&workload, limits.clone(), &settings));
        for factor in [1e-6, 0.37, 2.0, 1e6] {
            let mut slower = workload.clone();
            each_mode(&mut slower, |mode| mode.time_s *= factor);
            let bandwidth = limits.bandwidth() / factor;
            let limits = limits.with(LimitKind::Bandwidth, bandwidth);
            let after = objective(&problem(&slower, limits, &settings));
            assert!(close(after, before * factor), "seed {seed}, times {factor}: {before} becomes {after}");
        }
        // A power of two keeps every sum exact, so what just fits still fits.
        let unit = 1024.0;
        let mut finer = workload.clone();
        each_mode(&mut finer, |mode| {
            for bytes in [&mut mode.parameters, &mut mode.memory_a, &mut mode.memory_b] {
                *bytes *= unit;
            }
            mode.sync_in.iter_mut().chain(&mut mode.sync_out).for_each(|bytes| *bytes *= unit);
        });
        piper(&mut finer).edge_bytes.iter_mut().for_each(|bytes| *bytes *= unit);
        let limits = limits
            .with(LimitKind::Memory, limits.memory_limit() * unit)
            .with(LimitKind::Bandwidth, limits.bandwidth() * unit);
        let after = objective(&problem(&finer, limits, &settings));
        assert!(close(after, before), "seed {seed}, finer bytes: {before} becomes {after}");
    }
}

/// The same workload with nodes and edges in another order.
fn shuffled(workload: &Workload, random: &mut Random) -> Workload {
    let permutation = |random: &mut Random, n: usize| -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, random.below(i + 1));
        }
        order
    };
    let profile = workload.piper().unwrap();
    let n = workload.nodes.len();
    // new place -> old place
    let node_order = permutation(random, n);
    let edge_order = permutation(random, profile.edge_bytes.len());
    let mut place = vec![0; n];
    for (new, &old) in node_order.iter().enumerate() {
        place[old] = new as u32;
    }
    let edge = |&old: &usize| {
        let (u, v) = workload.dag.edges()[old];
        (place[u as usize], place[v as usize])
    };
    let edges: Vec<(u32, u32)> = edge_order.iter().map(edge).collect();
    let edge_bytes = edge_order.iter().map(|&old| profile.edge_bytes[old]).collect();
    let dag = Dag::new(n, edges.clone()).unwrap();
    // Sync sizes run in the order of a node's edges, which is that of the file.
    let moved = |old_edges: &[u32], new_edges: &[u32], sync: &[f64]| -> Vec<f64> {
        let old = |&new: &u32| edge_order[new as usize] as u32;
        new_edges.iter().map(|new| sync[old_edges.iter().position(|&e| e == old(new)).unwrap()]).collect()
    };
    let node = |(new, &old): (usize, &usize)| {
        let mode = |mode: &Mode| Mode {
            sync_in: moved(workload.dag.in_edges(old), dag.in_edges(new), &mode.sync_in),
            sync_out: moved(workload.dag.out_edges(old), dag.out_edges(new), &mode.sync_out),
            ..mode.clone()
        };
        let degree = |degree: &DegreeProfile| DegreeProfile {
            degree: degree.degree,
            modes: degree.modes.iter().map(mode).collect(),
        };
        NodeProfile { degrees: profile.nodes[old].degrees.iter().map(degree).collect() }
    };
    let nodes = node_order.iter().enumerate().map(node).collect();
    assemble(edges, edge_bytes, nodes)
}

#[test]
fn names_and_order_do_not_matter() {
    for seed in 0..120 {
        let (workload, limits, settings) = random_problem(seed);
        let settings = as_str(&settings);
        let before = objective(&problem(&workload, limits.clone(), &settings));
        let mut random = Random(seed ^ 0x5eed);
        let mut renamed = workload.clone();
        for node in &mut renamed.nodes {
            *node = Node { id: plantui::workload::NodeId(-3 * node.id.0 + 1000), name: Some("layer".into()) };
        }
        assert_eq!(objective(&problem(&renamed, limits.clone(), &settings)), before, "seed {seed}, renamed");
        let after = objective(&problem(&shuffled(&workload, &mut random), limits.clone(), &settings));
        assert!(close(after, before), "seed {seed}, {limits:?}, {settings:?}, shuffled: {before} becomes {after}");
    }
}

/// A table for each number of stages, each filled by walks over thousands of sets.
#[test]
fn the_number_of_stages_of_the_best_plan_leads_to_it_on_wide_networks() {
    for (seed, memory_bytes) in [(0, 400.0), (1, 400.0), (2, 1e9)] {
        let limits = Limits {
            devices: 4,
            microbatches: 4,
            memory_bytes: Some(memory_bytes),
            bandwidth_bytes_per_s: Some(20.0),
            ..Limits::NEUTRAL
        };
        let wide = parallel_chains(4, 6, seed);
        let free = plan(&problem(&wide, limits.clone(), &[]));
        assert_eq!(free.status, Status::Optimal, "seed {seed}");
        let stages = format!("stages={}", free.plan.unwrap().stages.len());
        let given = plan(&problem(&wide, limits, &[&stages]));
        assert!(close(given.objective.unwrap(), free.objective.unwrap()), "seed {seed}, {stages}: {given:?}");
    }
}

/// Wide networks begin with the best plan along some orders. Whatever order the nodes stand in, the plan is the best.
#[test]
fn a_wide_network_has_one_best_value_in_any_order() {
    let limits = Limits {
        devices: 4,
        microbatches: 4,
        memory_bytes: Some(90.0),
        bandwidth_bytes_per_s: Some(20.0),
        ..Limits::NEUTRAL
    };
    for seed in 0..2 {
        let wide = parallel_chains(4, 7, seed);
        let before = plan(&problem(&wide, limits.clone(), &[]));
        assert!(matches!(before.status, Status::Optimal | Status::Infeasible), "{before:?}");
        let after = plan(&problem(&shuffled(&wide, &mut Random(seed)), limits.clone(), &[]));
        assert_eq!((after.status, after.plan.is_some()), (before.status, before.plan.is_some()), "seed {seed}");
        if let (Some(before), Some(after)) = (before.objective, after.objective) {
            assert!(close(before, after), "seed {seed}: {before} becomes {after}");
        }
    }
}

#[test]
fn cancelling_ends_in_a_plan_or_in_none() {
    let workload = parallel_chains(4, 12, 3);
    for memory_bytes in [25.0, 120.0, 1e9] {
        let limits = Limits {
            cpus: 0,
            devices: 8,
            memory_bytes: Some(memory_bytes),
            microbatches: 24,
            bandwidth_bytes_per_s: Some(20.0),
            ..Limits::NEUTRAL
        };
        let problem = problem(&workload, limits, &[]);
        for wait in [0, 2, 10, 40, 120] {
            let search = Search::default();
            let other = search.clone();
            let stopper = thread::spawn(move || {
                thread::sleep(Duration::from_millis(wait));
                other.cancel();
            });
            let (outcome, _) = run::plan(&Piper, &problem, &search).unwrap();
            stopper.join().unwrap();
            let ended = matches!(outcome.status, Status::Cancelled | Status::Feasible | Status::Optimal);
            // With little memory there is no plan, which a run may prove before it is cancelled.
            let infeasible = outcome.status == Status::Infeasible && memory_bytes < 1e9;
            assert!(search.cancelled() && (ended || infeasible), "{memory_bytes} {wait}: {outcome:?}");
            let (bound, value) = (outcome.lower_bound.unwrap_or(0.0), outcome.objective.unwrap_or(f64::INFINITY));
            assert!(bound <= value * (1.0 + 1e-9), "bound {bound}, objective {value}");
        }
    }
}

#[test]
fn a_search_cancelled_before_it_begins_plans_nothing() {
    let (workload, limits, _) = random_problem(2);
    let search = Search::default();
    search.cancel();
    let (outcome, _) = run::plan(&Piper, &problem(&workload, limits, &[]), &search).unwrap();
    assert_eq!((outcome.status, outcome.plan), (Status::Cancelled, None));
}

#[test]
fn a_large_network_has_a_plan_and_a_bound_before_the_search_begins() {
    let limits = Limits {
        cpus: 0,
        devices: 64,
        microbatches: 96,
        memory_bytes: Some(100_000.0),
        bandwidth_bytes_per_s: Some(20.0),
        ..Limits::NEUTRAL
    };
    let flavour = Flavour { whole: false, uniform: true, all_recompute: true, most_modes: 2 };
    let long = workload(&mut Random(9), 8_000, chain(8_000), flavour);
    let asked: [(&dyn Planner, &[&str]); 5] = [
        (&Piper, &[]),
        (&Piper, &["stages=5"]),
        (&Piper, &["data_parallel=false", "knapsack=greedy"]),
        (&EqualPartition, &[]),
        (&EqualPartition, &["tensor_parallel=false"]),
    ];
    for (planner, settings) in asked {
        let options = Options::parse(planner.info().id, planner.options(), settings.iter().copied()).unwrap();
        let problem = Problem { workload: Arc::new(long.clone()), limits: limits.clone(), options };
        // The deadline only ends what would never end.
        let search = Search::new(Some(Duration::from_secs(60)), 0);
        let watched = search.clone();
        let stopper = thread::spawn(move || {
            while watched.incumbent().is_none() && !watched.cancelled() {
                thread::sleep(Duration::from_millis(5));
            }
            watched.cancel();
        });
        let (outcome, score) = run::plan(planner, &problem, &search).unwrap();
        stopper.join().unwrap();
        let what = format!("{} {settings:?}", planner.info().id);
        let (bound, value) = (outcome.lower_bound.expect(&what), outcome.objective.expect(&what));
        // The first equal partition may have few stages; Piper's first plan is good.
        let worst = if planner.info().id == "piper" { 3.0 * bound } else { f64::INFINITY };
        assert!(0.0 < bound && bound <= value * (1.0 + 1e-9) && value <= worst, "{what}: {bound}, {value}");
        assert!(score.is_some_and(|score| score.is_valid()) && !search.deadline_passed(), "{what}");
        if settings.contains(&"stages=5") {
            assert_eq!(outcome.plan.expect(&what).stages.len(), 5);
        }
    }
}

/// Parts without an edge between them, each two chains of eight nodes that lead to one node.
fn parallel_forks(parts: u32, seed: u64) -> Workload {
    let edges = |part: u32| {
        let first = 17 * part;
        (0..16).map(move |v| (first + v, if v % 8 == 7 { first + 16 } else { first + v + 1 }))
    };
    let flavour = Flavour { whole: false, uniform: true, all_recompute: true, most_modes: 2 };
    workload(&mut Random(seed), 17 * parts as usize, (0..parts).flat_map(edges).collect(), flavour)
}

#[test]
fn too_many_sets_give_a_valid_plan_and_say_so() {
    // Of the chains that is known at once, of the forks only once they are enumerated: a plan over some sets is there by then.
    for workload in [parallel_chains(20, 3, 5), parallel_forks(3, 5)] {
        let limits = Limits {
            cpus: 0,
            devices: 6,
            memory_bytes: Some(1e4),
            microbatches: 12,
            bandwidth_bytes_per_s: Some(20.0),
            ..Limits::NEUTRAL
        };
        let outcome = plan(&problem(&workload, limits.clone(), &[]));
        assert_eq!(outcome.status, Status::Feasible);
        assert!(outcome.notes.iter().any(|note| note.contains(&MOST_SETS.to_string())), "{:?}", outcome.notes);
        assert!(outcome.lower_bound.unwrap() <= outcome.objective.unwrap());
        let more = plan(&problem(&workload, limits.with(LimitKind::Devices, 12.0), &[]));
        assert!(more.objective.unwrap() <= outcome.objective.unwrap());
    }
}

/// A chain whose nodes take 1 s, 2 s, .. at degree 1, hold 1 byte for each microbatch in flight and have 1 parameter.
fn simple(n: usize, edges: &[(u32, u32)]) -> Workload {
    let node = |v: usize| NodeProfile {
        degrees: vec![DegreeProfile {
            degree: 1,
            modes: vec![Mode {
                id: "vanilla".into(),
                time_s: (v + 1) as f64,
                forward_s: None,
                parameters: 1.0,
                memory_a: 1.0,
                memory_b: 0.0,
                sync_in: vec![0.0; edges.iter().filter(|edge| edge.1 as usize == v).count()],
                sync_out: vec![0.0; edges.iter().filter(|edge| edge.0 as usize == v).count()],
            }],
        }],
    };
    let nodes = (0..n).map(node).collect();
    assemble(edges.to_vec(), vec![1.0; edges.len()], nodes)
}

static PLENTY: LazyLock<Limits> = LazyLock::new(|| Limits {
    cpus: 0,
    devices: 4,
    memory_bytes: Some(1e9),
    microbatches: 12,
    bandwidth_bytes_per_s: Some(1e12),
    ..Limits::NEUTRAL
});

#[test]
fn one_node_is_replicated_as_often_as_pays() {
    let workload = simple(1, &[]);
    let with = |bandwidth: f64| objective(&problem(&workload, PLENTY.with(LimitKind::Bandwidth, bandwidth), &[]));
    assert!((with(1e12) - 0.25).abs() < 1e-9);
    // All-reduce: 4 (d - 1) / d / 12 bytes for every sample, at a byte in 10 s.
    assert!(close(with(0.1), 1.0), "{}", with(0.1));
}

#[test]
fn graphs_without_edges_and_in_parts_are_planned() {
    // Times 1, 2, 3, 4 on two devices without replicas: 1 + 4 against 2 + 3 where nothing holds them together.
    let two = PLENTY.with(LimitKind::Devices, 2.0);
    let alone = ["data_parallel=false"];
    assert!(close(objective(&problem(&simple(4, &[]), two.clone(), &alone)), 5.0));
    let parts = simple(4, &[(0, 3), (1, 2)]);
    assert!((objective(&problem(&parts, two.clone(), &alone)) - 5.0).abs() < 1e-9);
    // In a chain only 1 + 2 + 3 against 4 is left.
    assert!((objective(&problem(&simple(4, &chain(4)), two.clone(), &alone)) - 6.0).abs() < 1e-9);
}

#[test]
fn nodes_that_take_no_time_and_hold_no_parameters_are_planned() {
    let mut idle = simple(5, &chain(5));
    each_mode(&mut idle, |mode| (mode.time_s, mode.parameters) = (0.0, 0.0));
    let outcome = plan(&problem(&idle, PLENTY.clone(), &[]));
    assert_eq!((outcome.status, outcome.objective), (Status::Optimal, Some(0.0)));
    // Memory for one node on each device: the cuts cost what crosses them, a byte each way on either side.
    let tight = Limits {
        cpus: 0,
        devices: 5,
        memory_bytes: Some(5.0),
        microbatches: 5,
        bandwidth_bytes_per_s: Some(2.0),
        ..Limits::NEUTRAL
    };
    each_mode(&mut idle, |mode| (mode.memory_a, mode.memory_b) = (0.0, 5.0));
    assert!(close(objective(&problem(&idle, tight, &[])), 2.0));
    let mut light = simple(3, &chain(3));
    each_mode(&mut light, |mode| mode.parameters = 0.0);
    // Without an all-reduce every device is a replica of everything.
    assert!(close(objective(&problem(&light, PLENTY.with(LimitKind::Bandwidth, 1e-3), &[])), 1.5));
}

#[test]
fn extreme_limits_are_kept() {
    let workload = simple(6, &chain(6));
    let total = 21.0;
    // One microbatch: one replica in all, so one stage. One device: the same.
    for limits in [PLENTY.with(LimitKind::Microbatches, 1.0), PLENTY.with(LimitKind::Devices, 1.0)] {
        let outcome = plan(&problem(&workload, limits, &[]));
        assert_eq!((outcome.status, outcome.objective), (Status::Optimal, Some(total)));
    }
    let most = PLENTY.with(LimitKind::Devices, 10_000.0).with(LimitKind::Microbatches, 10_000.0);
    let outcome = plan(&problem(&workload, most, &[]));
    assert!((outcome.objective.unwrap() - total / 10_000.0).abs() < 1e-6);
    assert_eq!(objective(&problem(&workload, PLENTY.with(LimitKind::Memory, 1e300), &[])), {
        objective(&problem(&workload, PLENTY.clone(), &[]))
    });
    // Bytes so dear that one stage on one device is best.
    assert_eq!(objective(&problem(&workload, PLENTY.with(LimitKind::Bandwidth, 1e-9), &[])), total);
    // Memory for nothing at all.
    let outcome = plan(&problem(&workload, PLENTY.with(LimitKind::Memory, 1e-9), &[]));
    assert_eq!(outcome.status, Status::Infeasible);
}
