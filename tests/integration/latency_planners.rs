//! The planners for latency and the independent check of what they find: against trying everything on small random graphs,
//! against the published programs on their inputs, and against the timeline.

use std::{path::Path, sync::Arc};

use crate::common::{
    random_placement::{RandomPlacement, naive_piece_latency, naive_slot_latency, numbers},
    reference,
};
use plantui::{
    cluster::{GivenLimits, Limits},
    export::split,
    family::{self, check},
    plan::{Measure, Plan, Score, Stage, Violation},
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    simulate::{EventKind, Schedule, SimulatorSettings, simulate},
    workload::{Choice, NodeIndex, Workload, load},
};

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

/// Runs a planner, whose plan [`planner::run`] has checked, and simulates it.
fn run(workload: &Arc<Workload>, limits: &Limits, id: &str, settings: &[&str]) -> (Outcome, Option<Score>) {
    let planner = planner::find(id).unwrap();
    planner.can_plan(workload).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    let search = Search::default();
    let (outcome, score) = run::plan(planner, &problem, &search).unwrap();
    if let (Some(plan), Some(value)) = (&outcome.plan, outcome.objective) {
        let best = search.progress().best;
        let same = best.is_some_and(|best| close(best, value, 1e-12));
        assert!(same, "{id} published {best:?} and not its result {value}");
        plays(workload, limits, plan, value);
    }
    (outcome, score)
}

/// The timeline of a plan lasts as long as its latency, and every part does one thing after the other.
fn plays(workload: &Workload, limits: &Limits, plan: &Plan, latency: f64) {
    let pipeline = family::pipeline(workload, limits, plan, &SimulatorSettings::default());
    assert_eq!(pipeline.schedule(Schedule::GPipe), Schedule::SingleSample);
    let timeline = simulate(&pipeline, Schedule::GPipe);
    assert!(close(timeline.iteration_s * 1e3, latency, 1e-12), "{} s is not {latency} ms", timeline.iteration_s);
    let last = timeline.events.iter().map(|event| event.end_s).fold(0.0, f64::max);
    assert!(close(last * 1e3, latency, 1e-9));
    let run = pipeline.single_sample.as_ref().unwrap();
    let computed = timeline.events.iter().filter(|event| event.kind == EventKind::Forward).count();
    assert_eq!(computed, run.sample.parts.len());
    assert_eq!(run.sample.parts.iter().map(|part| part.nodes.len()).sum::<usize>(), workload.nodes.len());
    for (stage, &rows) in timeline.replicas.iter().enumerate() {
        for row in 0..rows {
            let events = timeline.row(stage, row);
            for kind in [EventKind::Forward, EventKind::ToHost, EventKind::FromHost] {
                let of_kind: Vec<_> = events.iter().filter(|event| event.kind == kind).collect();
                assert!(of_kind.windows(2).all(|pair| pair[0].end_s <= pair[1].start_s * (1.0 + 1e-12) + 1e-15));
            }
        }
    }
}

fn stage(nodes: Vec<usize>, choice: Choice, device: u32) -> Stage {
    let choices = vec![choice; nodes.len()];
    Stage { nodes: NodeIndex::list(nodes), choices, data_parallel: 1, tensor_parallel: 1, devices: vec![device] }
}

/// The plan of an assignment to slots, in the order of the slots.
fn slot_plan(case: &RandomPlacement, subgraphs: usize, slots: &[u32]) -> Plan {
    let mut plan = Plan { measure: Measure::Latency { subgraphs: Some(subgraphs as u32) }, ..Plan::default() };
    let members = |slot: u32| (0..slots.len()).filter(|&v| slots[v] == slot).collect::<Vec<_>>();
    for slot in 1..=(case.accelerators * subgraphs) as u32 {
        plan.stages.push(stage(members(slot), Choice::Accelerator, (slot - 1) / subgraphs as u32));
    }
    plan.stages.push(stage(members(0), Choice::Cpu, case.accelerators as u32));
    plan.stages.retain(|stage| !stage.nodes.is_empty());
    plan
}

#[test]
fn the_search_finds_what_trying_everything_finds() {
    let (mut accelerated, mut limited, mut refused) = (0, 0, 0);
    for seed in 0..201u64 {
        let mut case = RandomPlacement::new(seed);
        // Every third asks for two subgraphs on each of two accelerators.
        let subgraphs = if seed % 3 == 0 { 2 } else { 1 };
        if subgraphs == 2 {
            case.accelerators = 2;
        }
        let (workload, limits) = case.workload();
        let (mut best, mut roomy) = (f64::INFINITY, f64::INFINITY);
        let mut slots = vec![0u32; case.dag.len()];
        for turn in 0u64.. {
            let naive = naive_slot_latency(&case, subgraphs, &slots, case.memory_bytes);
            best = best.min(naive.unwrap_or(f64::INFINITY));
            roomy = roomy.min(naive_slot_latency(&case, subgraphs, &slots, f64::INFINITY).unwrap_or(f64::INFINITY));
            if turn % 29 == seed % 29 {
                let score = check(&workload, &limits, &slot_plan(&case, subgraphs, &slots));
                assert_eq!(score.is_valid(), naive.is_some(), "seed {seed}: {slots:?}: {:?}", score.violations);
                let same = naive.is_none_or(|naive| close(score.value, naive, 1e-12));
                assert!(same, "seed {seed}: {slots:?}: {} not {naive:?}", score.value);
                refused += usize::from(naive.is_none());
            }
            let last = (case.accelerators * subgraphs) as u32;
            let Some(digit) = slots.iter().position(|&slot| slot < last) else { break };
            slots[digit] += 1;
            slots[..digit].fill(0);
        }
        let settings = [format!("subgraphs={subgraphs}"), "rounds=1".to_string()];
        let (outcome, _) =
            run(&workload, &limits, "placement-latency-ip", &settings.iter().map(String::as_str).collect::<Vec<_>>());
        let value = outcome.objective.unwrap();
        assert!(close(value, best, 1e-9), "seed {seed}: {value} not {best}");
        assert_eq!(outcome.status, Status::Optimal, "seed {seed}");
        assert!(close(outcome.lower_bound.unwrap(), best, 1e-9), "seed {seed}");
        for id in ["placement-latency-greedy", "placement-latency-dp"] {
            // With one subgraph each, what any planner finds is one of the assignments that were tried.
            let other = run(&workload, &limits, id, &[]).0;
            let worse = other.objective.is_none_or(|other| other >= best * (1.0 - 1e-9));
            assert!(worse || subgraphs > 1, "seed {seed}: {id} {:?} below {best}", other.objective);
            assert!(other.objective.is_some() || other.infeasible.is_some_and(|story| !story.explanation.is_empty()));
        }
        let plan = outcome.plan.unwrap();
        accelerated += usize::from(plan.stages.iter().any(|stage| stage.choices[0] == Choice::Accelerator));
        limited += usize::from(best > roomy);
    }
    assert!(accelerated > 120 && limited > 40 && refused > 1000, "{accelerated}, {limited}, {refused} test little");
}

#[test]
fn a_split_takes_what_the_published_definition_gives() {
    let (mut circles, mut torn) = (0, 0);
    for seed in 0..1500 {
        let case = RandomPlacement::sized(seed, 4 + seed as usize % 5);
        let (workload, limits) = case.workload();
        let mut draw = numbers(seed ^ 0x1234);
        let mut split: Vec<Vec<u32>> = vec![vec![]; 4];
        (0..case.dag.len() as u32).for_each(|v| split[draw(4)].push(v));
        let mut plan = Plan { measure: Measure::Latency { subgraphs: None }, ..Plan::default() };
        for (device, nodes) in split.iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
            let nodes = nodes.iter().map(|&v| v as usize).collect();
            plan.stages.push(stage(nodes, if device == 3 { Choice::Cpu } else { Choice::Accelerator }, device as u32));
        }
        let score = check(&workload, &limits, &plan);
        let whole =
            score.stages.iter().zip(&plan.stages).all(|(scored, stage)| scored.nodes.len() == stage.nodes.len());
        assert!(whole, "every node has its figures, whatever the plan breaks");
        let circle = score.violations.iter().any(|violation| matches!(violation, Violation::Circle { .. }));
        match naive_piece_latency(&case, &split[..3]) {
            Some(naive) => {
                assert!(!circle && close(score.value, naive, 1e-12), "seed {seed}: {} not {naive}", score.value);
                plays(&workload, &limits, &plan, naive);
                let critical: f64 = score.stages.iter().map(|s| s.sample.unwrap().critical_s).sum();
                assert!(close(critical * 1e3, naive, 1e-9), "seed {seed}: the critical path takes {critical} s");
                let sample = family::placement::single_sample::of(&case.dag, &case.profile, &plan, false).unwrap();
                torn += usize::from(
                    sample.parts.iter().filter(|part| plan.stages[part.stage].choices[0] != Choice::Cpu).count() > 3,
                );
            }
            None => {
                assert!(circle && score.value.is_infinite(), "seed {seed}: {:?}", score.violations);
                circles += 1;
            }
        }
        let size = |nodes: &Vec<u32>| nodes.iter().map(|&v| case.profile.nodes[v as usize].size_bytes).sum::<f64>();
        let heavy = split[..3].iter().filter(|nodes| size(nodes) > case.memory_bytes).count();
        let told = score.violations.iter().filter(|v| matches!(v, Violation::OutOfMemory { .. })).count();
        assert_eq!(told, heavy, "seed {seed}");
    }
    assert!(circles > 20 && torn > 20, "{circles} circles and {torn} torn sets do not test much");
}

#[test]
fn broken_rules_of_subgraphs_are_told() {
    let mut case = RandomPlacement::sized(5, 4);
    case.memory_bytes = 2.0;
    for node in &mut case.profile.nodes {
        (node.size_bytes, node.supported, node.colour_class) = (1.0, true, None);
    }
    case.profile.nodes[0].colour_class = Some(7);
    case.profile.nodes[3].colour_class = Some(7);
    case.dag = plantui::graph::Dag::new(4, vec![(0, 1), (1, 2), (2, 3)]).unwrap();
    let (workload, limits) = case.workload();
    let told = |subgraphs: Option<u32>, stages: &[(&[usize], &Choice, u32)]| -> String {
        let stages =
            stages.iter().map(|&(nodes, choice, device)| stage(nodes.to_vec(), choice.clone(), device)).collect();
        let score =
            check(&workload, &limits, &Plan { stages, measure: Measure::Latency { subgraphs }, ..Plan::default() });
        score.violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let (gpu, cpu) = (&Choice::Accelerator, &Choice::Cpu);
    // The class in two subgraphs of one accelerator is fine, on two accelerators it is not.
    assert_eq!(told(Some(2), &[(&[0], gpu, 0), (&[1, 2], gpu, 1), (&[3], gpu, 0)]), "");
    let torn = told(Some(2), &[(&[0], gpu, 0), (&[1, 2], gpu, 1), (&[3], gpu, 2)]);
    assert!(torn.contains("colour class 7, which is on stage 1"), "{torn}");
    assert!(told(None, &[(&[0], gpu, 0), (&[1, 2, 3], cpu, 3)]).contains("colour class 7"));
    let many = told(Some(1), &[(&[0], gpu, 0), (&[1, 2], gpu, 1), (&[3], gpu, 0)]);
    assert!(many.contains("accelerator 0 runs 2 subgraphs, but only 1 are allowed"), "{many}");
    let full = told(Some(2), &[(&[0], gpu, 0), (&[1, 2], cpu, 3), (&[3], gpu, 0)]);
    assert_eq!(full, "");
    let full = told(Some(2), &[(&[0, 1], gpu, 0), (&[2], cpu, 3), (&[3], gpu, 0)]);
    assert!(full.contains("stages 1 and 3 share a device and need 3 B on it, the limit is 2 B"), "{full}");
    let turned = told(Some(2), &[(&[3], gpu, 0), (&[0], gpu, 0), (&[1, 2], gpu, 1)]);
    assert!(turned.contains("these wait for one another in a cycle: node 13 on stage 1,"), "{turned}");
    let twice = told(None, &[(&[0, 3], gpu, 0), (&[1], gpu, 0), (&[2], cpu, 3)]);
    assert!(twice.contains("device 0 is already used by stage 1"), "{twice}");
    let unknown = told(None, &[(&[0, 3], gpu, 0), (&[1], gpu, 9), (&[2], cpu, 3)]);
    assert!(unknown.contains("device 9 is not an accelerator: there are 3, counted from 0"), "{unknown}");
    let mixed = told(None, &[(&[0, 3], gpu, 0), (&[1, 2], cpu, 0)]);
    assert!(mixed.contains("is on CPUs, but its device is the accelerator of stage 1"), "{mixed}");
    let used = told(None, &[(&[0], gpu, 0), (&[1], gpu, 1), (&[2], gpu, 2), (&[3], gpu, 3)]);
    assert!(used.contains("uses 4 devices, but there are only 3"), "{used}");
}

#[test]
fn a_plan_leaves_as_a_split_and_comes_back() {
    let mut circles = 0;
    for seed in 0..100 {
        let case = RandomPlacement::sized(seed, 12);
        let (workload, limits) = case.workload();
        for (id, settings) in [
            ("placement-latency-ip", &["rounds=0"][..]),
            ("placement-latency-ip", &["rounds=0", "subgraphs=2"]),
            ("placement-latency-greedy", &[]),
            ("placement-dp", &[]),
        ] {
            let (outcome, score) = run_unplayed(&workload, &limits, id, settings);
            let (Some(plan), Some(score)) = (outcome.plan, score) else { continue };
            let text = split::to_json(&workload, &limits, &plan);
            let back = family::read::read(&workload, &text, "split.json").unwrap();
            let again = check(&workload, &limits, &back.plan);
            let joined = plan.measure == Measure::Latency { subgraphs: Some(2) };
            // Subgraphs that can run in turn may wait for one another once they are joined: then nothing is claimed.
            let Some(claimed) = back.claims.value else {
                assert!(joined, "seed {seed}: {id} claims nothing");
                circles += 1;
                continue;
            };
            assert_eq!(again.violations, [], "seed {seed}: {id}");
            assert_eq!(again.measure.name(), score.measure.name());
            assert!(close(again.value, claimed, 1e-9), "seed {seed}: {id}: {} not {claimed}", again.value);
            assert!(joined || close(claimed, score.value, 1e-9), "seed {seed}: {id}: {claimed} not {}", score.value);
        }
    }
    assert!(circles < 20, "{circles} of 100 splits with two subgraphs each claim nothing");
}

/// Runs a planner of any objective.
fn run_unplayed(workload: &Arc<Workload>, limits: &Limits, id: &str, settings: &[&str]) -> (Outcome, Option<Score>) {
    let planner = planner::find(id).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    run::plan(planner, &problem, &Search::default()).unwrap()
}

#[test]
fn training_graphs_are_refused_where_one_inference_is_asked_for() {
    let mut case = RandomPlacement::sized(1, 5);
    case.profile.nodes[4].backward = true;
    let (workload, limits) = case.workload();
    let refused = planner::find("placement-latency-ip").unwrap().can_plan(&workload).unwrap_err().to_string();
    assert!(refused.contains("use the inference graph"), "{refused}");
    // The published evaluation makes no difference between the passes.
    for id in ["placement-latency-greedy", "placement-latency-dp"] {
        run(&workload, &limits, id, &[]);
    }
}

#[test]
fn a_stopped_search_has_a_plan() {
    let case = RandomPlacement::sized(7, 60);
    let (workload, limits) = case.workload();
    let planner = planner::find("placement-latency-ip").unwrap();
    let problem = Problem { workload, limits, options: Options::defaults(planner.options()) };
    let search = Search::default();
    search.cancel();
    let (outcome, score) = run::plan(planner, &problem, &search).unwrap();
    assert_eq!(outcome.status, Status::Cancelled);
    assert!(outcome.lower_bound.is_some_and(|bound| bound > 0.0 && Some(bound) <= outcome.objective));
    assert_eq!(score.unwrap().value, search.incumbent().unwrap().objective);
}

/// Input, algorithm, split file and latency, from the table of published figures.
fn figures() -> Vec<(String, String, String, f64)> {
    let table = include_str!("../figures/placement-latency.tsv");
    let row = |line: &str| {
        let field: Vec<&str> = line.split('\t').collect();
        (field[0].into(), field[1].into(), field[2].into(), field[3].parse().unwrap())
    };
    table.lines().filter(|line| !line.starts_with('#')).skip(1).map(row).collect()
}

fn published(root: &Path, input: &str) -> (Arc<Workload>, Limits) {
    let workload = load(&root.join(input)).unwrap_or_else(|error| panic!("{error}"));
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    (Arc::new(workload), limits)
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_greedy_planner_meets_every_published_value() {
    let root = reference::root();
    let mut count = 0;
    for (input, _, _, value) in figures().iter().filter(|row| row.1 == "greedy") {
        let (workload, limits) = published(&root, input);
        let (outcome, score) = run(&workload, &limits, "placement-latency-greedy", &[]);
        assert!(close(outcome.objective.unwrap(), *value, 1e-9), "{input}: {:?} not {value}", outcome.objective);
        assert!(close(score.unwrap().value, *value, 1e-9));
        count += 1;
    }
    assert_eq!(count, 8);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn published_splits_are_scored_as_published() {
    let root = reference::root();
    let folder = root.join("../figures/placement-splits");
    if !folder.is_dir() {
        println!("skipped published splits: {} is not there", folder.display());
        return;
    }
    let loads = include_str!("../figures/placement.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let loads = loads.map(|line| {
        let field: Vec<&str> = line.split('\t').collect();
        (field[0].to_string(), field[1].to_string(), field[5].to_string(), field[2].parse::<f64>().unwrap())
    });
    let mut wrong = vec![];
    for (measure, rows, expected) in
        [(Measure::MaxLoad, loads.collect(), 165), (Measure::Latency { subgraphs: None }, figures(), 37)]
    {
        let mut count = 0;
        for (input, algorithm, file, value) in rows.iter().filter(|row| row.2 != "-") {
            let (workload, limits) = published(&root, input);
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            let loaded = family::read::read(&workload, &text, file).unwrap_or_else(|error| panic!("{error}"));
            let plan = if loaded.plan.measure == measure { loaded.plan } else { loaded.plan.measured_by(measure) };
            let score = check(&workload, &limits, &plan);
            // Solvers' values are as exact as their tolerances.
            let relative = if algorithm.contains("highs") {
                1e-6
            } else if algorithm.starts_with("ip") {
                1e-8
            } else {
                1e-9
            };
            if !close(score.value, *value, relative) {
                wrong.push(format!("{file}: {} not {value}", score.value));
            }
            // Several programs heed no memory, and one lists every subgraph as an accelerator.
            let excused = |violation: &Violation| {
                matches!(violation, Violation::OutOfMemory { .. })
                    || (algorithm.starts_with("ip-q2") && matches!(violation, Violation::TooManyDevices { .. }))
            };
            wrong.extend(score.violations.iter().filter(|v| !excused(v)).map(|v| format!("{file}: {v}")));
            count += 1;
        }
        println!("{}: {count} published splits", measure.name());
        assert_eq!(count, expected);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_search_planner_is_no_worse_than_the_best_published() {
    let root = reference::root();
    let figures = figures();
    let (mut count, mut below_greedy) = (0, 0);
    for (input, _, _, best) in figures.iter().filter(|row| row.1 == "best") {
        let (workload, limits) = published(&root, input);
        let (outcome, _) = run(&workload, &limits, "placement-latency-ip", &["rounds=1"]);
        let (value, bound) = (outcome.objective.unwrap(), outcome.lower_bound.unwrap());
        println!("{input}: {value:.3}, bound {bound:.3} (best published {best:.3})");
        assert!(value <= best * (1.0 + 1e-9) && bound <= value * (1.0 + 1e-9), "{input}: {value}, bound {bound}");
        let greedy = figures.iter().find(|row| row.0 == *input && row.1 == "greedy").unwrap().3;
        count += 1;
        below_greedy += usize::from(value < greedy * (1.0 - 1e-9));
    }
    assert!(count == 8 && below_greedy >= 6, "below greedy on {below_greedy} of {count} inputs");
}
