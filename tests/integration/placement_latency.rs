//! Latency of single samples: the published evaluator and greedy on every published split and input, the evaluator and
//! the search against exhaustive enumeration on small random graphs, and what the search reaches on published inputs.

use crate::common::{
    latency_input::{read_input, read_split},
    random_placement::{RandomPlacement, naive_piece_latency, naive_slot_latency, numbers},
    reference,
};
use plantui::planner::{
    Search, Status,
    placement::latency::{Instance, LatencyError, LatencyProblem, LatencySettings, evaluate, greedy, search},
};
use std::{path::Path, sync::Mutex};

/// Input, algorithm, split file and latency, from the table of published figures.
fn figures() -> Vec<(String, String, String, f64)> {
    let table = include_str!("../figures/placement-latency.tsv");
    let row = |line: &str| {
        let field: Vec<&str> = line.split('\t').collect();
        (field[0].into(), field[1].into(), field[2].into(), field[3].parse().unwrap())
    };
    table.lines().filter(|line| !line.starts_with('#')).skip(1).map(row).collect()
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn greedy_meets_every_published_value() {
    let root = reference::root();
    let mut count = 0;
    for (input, _, _, published) in figures().iter().filter(|row| row.1 == "greedy") {
        let (file, accelerators, memory_bytes) = read_input(&root.join(input));
        let split = greedy(&file.dag, &file.profile, accelerators, memory_bytes);
        let schedule = evaluate(&file.dag, &file.profile, memory_bytes, &split).unwrap();
        assert!(close(schedule.latency, *published, 1e-9), "{input}: {} not {published}", schedule.latency);
        assert_eq!(schedule.memory_excess, []);
        count += 1;
    }
    assert_eq!(count, 8);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn every_published_split_has_its_published_latency() {
    let root = reference::root();
    let folder = root.join("../figures/placement-splits");
    let mut wrong = vec![];
    let mut count = 0;
    for (input, algorithm, split, published) in figures().iter().filter(|row| row.2 != "-") {
        let (file, _, memory_bytes) = read_input(&root.join(input));
        let nodes = read_split(&file, &folder.join(split));
        let schedule = evaluate(&file.dag, &file.profile, memory_bytes, &nodes).unwrap();
        // A solver's objective is as exact as its tolerances; the other programs print what they computed.
        let relative = if algorithm.ends_with("highs") { 1e-6 } else { 1e-9 };
        if !close(schedule.latency, *published, relative) {
            wrong.push(format!("{split}: {} not {published}", schedule.latency));
        }
        count += 1;
    }
    println!("latency of published splits: {} of {count}", count - wrong.len());
    assert!(count == 37 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn random_splits_have_the_latency_that_the_definition_gives() {
    let (mut circles, mut torn) = (0, 0);
    for seed in 0..1500 {
        let case = RandomPlacement::sized(seed, 4 + seed as usize % 5);
        let mut draw = numbers(seed ^ 0xabcd);
        let mut split = vec![vec![]; 3];
        for v in 0..case.dag.len() as u32 {
            let device = draw(4);
            if device < 3 {
                split[device].push(v);
            }
        }
        let naive = naive_piece_latency(&case, &split);
        match evaluate(&case.dag, &case.profile, case.memory_bytes, &split) {
            Ok(schedule) => {
                assert!(close(schedule.latency, naive.unwrap(), 1e-12), "seed {seed}: {schedule:?} not {naive:?}");
                let nodes: usize = schedule.pieces.iter().map(|piece| piece.nodes.len()).sum();
                assert_eq!(nodes + schedule.cpu.len(), case.dag.len());
                let last = schedule.pieces.iter().map(|piece| piece.finish).fold(0.0, f64::max);
                assert!(schedule.latency >= last);
                torn += usize::from(schedule.pieces.len() > 3);
                let size = |nodes: &Vec<u32>| nodes.iter().map(|&v| case.profile.nodes[v as usize].size_bytes).sum();
                let too_big = split.iter().map(size).filter(|&bytes: &f64| bytes > case.memory_bytes).count();
                assert_eq!(schedule.memory_excess.len(), too_big);
            }
            Err(LatencyError::Cycle(units)) => {
                assert!(naive.is_none() && units.len() > 1, "seed {seed}: {units:?}");
                circles += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(circles > 20 && torn > 20, "{circles} circles and {torn} torn sets do not test much");
}

/// Gives the case costs of every magnitude from 1 to 1e30, or tensors that must never be sent.
fn spread(case: &mut RandomPlacement, seed: u64) {
    let mut draw = numbers(seed + 4242);
    let everything = draw(2) == 0;
    for node in &mut case.profile.nodes {
        for cost in [&mut node.accelerator_time, &mut node.cpu_time, &mut node.transfer] {
            *cost = *cost / 7.0 * if everything { 10f64.powi(10 * draw(4) as i32) } else { 1.0 };
        }
        if !everything && draw(3) == 0 {
            node.transfer = [1e8, 1e18, 1e30][draw(3)];
        }
    }
}

#[test]
fn the_search_finds_the_optimum_of_small_graphs() {
    let (mut accelerated, mut limited) = (0, 0);
    for seed in 0..300u64 {
        let mut case = RandomPlacement::new(seed);
        if seed >= 220 {
            spread(&mut case, seed);
        }
        // Every third asks for two subgraphs on each of two accelerators.
        let (accelerators, subgraphs) = if seed % 3 == 0 { (2, 2) } else { (case.accelerators, 1) };
        case.accelerators = accelerators;
        let instance = Instance::new(&case.dag, &case.profile, accelerators, subgraphs, case.memory_bytes);
        let (mut best, mut roomy) = (f64::INFINITY, f64::INFINITY);
        let mut slots = vec![0u32; case.dag.len()];
        loop {
            let naive = naive_slot_latency(&case, subgraphs, &slots, case.memory_bytes);
            let scored = instance.schedule(&slots);
            match (naive, &scored) {
                (None, None) => {}
                (Some(naive), Some(scored)) => {
                    assert!(close(naive, scored.latency, 1e-12), "seed {seed}: {slots:?}: {scored:?} not {naive}");
                    if subgraphs == 1 {
                        let split = instance.split(&slots);
                        let pieces = evaluate(&case.dag, &case.profile, case.memory_bytes, &split).unwrap();
                        assert!(close(naive, pieces.latency, 1e-12), "seed {seed}: {slots:?}");
                    }
                    best = best.min(naive);
                }
                _ => panic!("seed {seed}: {slots:?}: {scored:?} not {naive:?}"),
            }
            if let Some(naive) = naive_slot_latency(&case, subgraphs, &slots, f64::INFINITY) {
                roomy = roomy.min(naive);
            }
            // The next number with one digit per node.
            let last = instance.slots() as u32 - 1;
            let Some(digit) = slots.iter().position(|&slot| slot < last) else { break };
            slots[digit] += 1;
            slots[..digit].fill(0);
        }
        let question = LatencyProblem {
            dag: &case.dag,
            profile: &case.profile,
            accelerators,
            subgraphs,
            memory_bytes: case.memory_bytes,
        };
        let settings = LatencySettings { orders: 4, rounds: 1, walks: 2, steps: 200, branches: 200_000 };
        let published = Mutex::new(vec![]);
        let found = search(&question, &settings, &[], &Search::default(), &|schedule| {
            published.lock().unwrap().push(schedule.latency);
        });
        assert!(close(found.schedule.latency, best, 1e-9), "seed {seed}: {} not {best}", found.schedule.latency);
        assert_eq!(found.status, Status::Optimal, "seed {seed}");
        assert!(found.lower_bound.unwrap() <= best * (1.0 + 1e-9), "seed {seed}: bound above {best}");
        let without_branching = LatencySettings { branches: 0, ..settings };
        let annealed = search(&question, &without_branching, &[], &Search::default(), &|_| ());
        assert!(annealed.lower_bound.unwrap() <= best * (1.0 + 1e-9), "seed {seed}: path bound above {best}");
        assert!(annealed.schedule.latency >= best * (1.0 - 1e-9), "seed {seed}");
        let published = published.into_inner().unwrap();
        assert!(published.is_sorted_by(|a, b| a > b) && published.last() == Some(&found.schedule.latency));
        accelerated += usize::from(found.split.iter().any(|nodes| !nodes.is_empty()));
        limited += usize::from(best > roomy);
    }
    assert!(accelerated > 150 && limited > 50, "{accelerated} accelerated, {limited} limited by memory");
}

#[test]
fn annealing_alone_finds_nearly_all_optima() {
    let mut missed = vec![];
    for seed in 0..200 {
        let case = RandomPlacement::new(seed);
        let question = LatencyProblem {
            dag: &case.dag,
            profile: &case.profile,
            accelerators: case.accelerators,
            subgraphs: 1,
            memory_bytes: case.memory_bytes,
        };
        let settings = LatencySettings { orders: 4, rounds: 2, walks: 2, steps: 4000, branches: 200_000 };
        let proven = search(&question, &settings, &[], &Search::default(), &|_| ()).schedule.latency;
        let without = LatencySettings { branches: 0, ..settings };
        let found = search(&question, &without, &[], &Search::default(), &|_| ()).schedule.latency;
        if !close(found, proven, 1e-9) {
            missed.push((seed, found, proven));
        }
    }
    assert!(missed.len() <= 4, "{missed:?}");
}

#[test]
fn the_result_follows_seed_and_settings_only() {
    let case = RandomPlacement::sized(3, 60);
    let question = LatencyProblem {
        dag: &case.dag,
        profile: &case.profile,
        accelerators: 3,
        subgraphs: 2,
        memory_bytes: case.memory_bytes,
    };
    let settings = LatencySettings { orders: 8, rounds: 2, walks: 3, steps: 2000, branches: 0 };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| search(&question, &settings, &[], &Search::new(None, 5), &|_| ()))
    };
    assert_eq!(run(1), run(4));
}

#[test]
fn a_cancelled_search_keeps_the_best_start() {
    let case = RandomPlacement::sized(4, 40);
    let question = LatencyProblem {
        dag: &case.dag,
        profile: &case.profile,
        accelerators: 2,
        subgraphs: 1,
        memory_bytes: case.memory_bytes,
    };
    let cancelled = Search::default();
    cancelled.cancel();
    let found = search(&question, &LatencySettings::default(), &[], &cancelled, &|_| ());
    assert_eq!(found.status, Status::Cancelled);
    assert!(found.lower_bound.is_some_and(|bound| bound > 0.0 && bound <= found.schedule.latency));
    assert_eq!(found.as_pieces.unwrap().latency, found.schedule.latency);
}

/// Latency and bound reached with the given settings on one published input.
fn reached(root: &Path, input: &str, settings: &LatencySettings) -> (f64, f64) {
    let (file, accelerators, memory_bytes) = read_input(&root.join(input));
    let question = LatencyProblem { dag: &file.dag, profile: &file.profile, accelerators, subgraphs: 1, memory_bytes };
    let found = search(&question, settings, &[], &Search::default(), &|_| ());
    let pieces = found.as_pieces.unwrap();
    assert_eq!(pieces.memory_excess, []);
    assert!(close(pieces.latency, found.schedule.latency, 1e-12), "{input}");
    (found.schedule.latency, found.lower_bound.unwrap())
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn a_second_subgraph_per_accelerator_never_hurts() {
    let root = reference::root();
    let (file, accelerators, memory_bytes) =
        read_input(&root.join("dnn-partitioning/latency-inputs/LayerGraphs/gnmt_inference.json"));
    let settings = LatencySettings { orders: 32, rounds: 2, walks: 2, steps: 5000, branches: 0 };
    let mut starts: Vec<Vec<Vec<u32>>> = vec![];
    let mut before = (f64::INFINITY, f64::INFINITY);
    for subgraphs in 1..=3 {
        let question = LatencyProblem { dag: &file.dag, profile: &file.profile, accelerators, subgraphs, memory_bytes };
        let one_subgraph_each = if subgraphs == 1 { &[] } else { &starts[..1] };
        let found = search(&question, &settings, one_subgraph_each, &Search::default(), &|_| ());
        let (latency, bound) = (found.schedule.latency, found.lower_bound.unwrap());
        println!("{subgraphs} subgraphs: {latency}, as pieces {:?}, bound {bound}", found.as_pieces.map(|s| s.latency));
        // The first start has one subgraph each, and a bound for more subgraphs holds for fewer.
        assert!(bound <= latency && (subgraphs == 1 || latency <= before.0) && bound <= before.1 * (1.0 + 1e-9));
        for run in &found.schedule.slots {
            let ahead = found.schedule.slots.iter().filter(|other| other.accelerator == run.accelerator);
            for other in ahead.take_while(|other| *other != run) {
                assert!(other.finish <= run.start, "{other:?} and {run:?} overlap");
            }
        }
        if subgraphs == 1 {
            before = (latency, bound);
        }
        starts.push(found.split);
    }
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn a_short_search_beats_the_best_published_latencies() {
    let root = reference::root();
    let settings = LatencySettings { orders: 64, rounds: 2, walks: 2, steps: 10_000, branches: 1000 };
    let mut wrong = vec![];
    let (mut count, mut below_greedy) = (0, 0);
    let figures = figures();
    for (input, _, _, best) in figures.iter().filter(|row| row.1 == "best") {
        let (latency, bound) = reached(&root, input, &settings);
        let greedy = figures.iter().find(|row| row.0 == *input && row.1 == "greedy").unwrap().3;
        println!("{input}: {latency:.3} (best published {best:.3}, greedy {greedy:.3}, bound {bound:.3})");
        if latency > best * (1.0 + 1e-9) || bound > latency * (1.0 + 1e-9) {
            wrong.push(format!("{input}: {latency}, published {best}, bound {bound}"));
        }
        count += 1;
        below_greedy += usize::from(latency < greedy * (1.0 - 1e-9));
    }
    assert!(count == 8 && wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(below_greedy >= 6, "below greedy on {below_greedy} inputs only");
}
