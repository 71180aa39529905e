//! The integer programs solved with HiGHS against trying everything, against our own searches, and against the published
//! figures. `cargo test --release --features milp --test integration milp`.

use std::{collections::BTreeMap, path::Path, sync::Mutex, time::Duration};

use crate::common::{
    latency_input::read_input,
    random_placement::{RandomPlacement, numbers},
    reference,
};
use plantui::{
    family::check,
    planner::{
        self, Options, Problem, Search, Status,
        placement::{
            PlacementLimits,
            ip::{self, Best, Contiguity, Objective, Question},
            latency,
            milp::{MARGIN, latency as milp_latency, throughput},
        },
    },
    workload::placement::PlacementProfile,
};

const LATENCY_ALONE: milp_latency::LatencyMilpSettings = milp_latency::LatencyMilpSettings { first: None };

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2.0 * MARGIN * a.abs().max(b.abs()).max(1.0)
}

/// Every other graph as a training graph: the later half of a topological order backward, most of it in the class of the
/// forward node that it mirrors. No edge leads from the backward to the forward pass.
fn with_training(mut case: RandomPlacement, seed: u64) -> RandomPlacement {
    let mut draw = numbers(seed ^ 0x7e57);
    let order: Vec<usize> = case.dag.topological_order().iter().map(|&v| v as usize).collect();
    if draw(2) == 0 {
        let mut nodes = std::mem::take(&mut case.profile.nodes);
        for at in order.len().div_ceil(2)..order.len() {
            let (mirrored, colour) = (order.len() - 1 - at, 100 + at as i64);
            nodes[order[at]].backward = true;
            if draw(4) > 0 {
                nodes[order[at]].colour_class = Some(colour);
                nodes[order[mirrored]].colour_class = Some(colour);
            }
        }
        case.profile = PlacementProfile::from(nodes);
    }
    case
}

/// HiGHS alone, and our own search, on one question; every claim of the one held against the other.
fn agree(question: &Question<'_>, place: &str, seen: &mut BTreeMap<&str, usize>) {
    let own = ip::search(
        question,
        &ip::IpSettings { rounds: 2, walks: 2, steps: 2000, proofs: 2, branches: 100_000 },
        &Search::default(),
        &|_, _| {},
    );
    let published = Mutex::new(vec![]);
    let handle = Search::default();
    let best: Best = throughput::search(question, &throughput::MilpSettings::ALONE, &handle, &|value, split| {
        published.lock().unwrap().push((value, split.clone()));
    });
    let place = format!("{place}: {best:?}, our own {own:?}");
    let Some((value, split)) = &own.split else {
        assert_eq!((own.status, best.status, &best.split), (Status::Infeasible, Status::Infeasible, &None), "{place}");
        *seen.entry("infeasible").or_default() += 1;
        return;
    };
    assert_eq!((own.status, best.status), (Status::Optimal, Status::Optimal), "{place}");
    let (found, found_split) = best.split.clone().expect("an optimum has a split");
    assert!(close(*value, found), "{place}");
    assert!(best.lower_bound <= found, "{place}");
    assert!(handle.progress().bound.is_none_or(|bound| bound <= value * (1.0 + 1e-9) + 1e-9), "{place}");
    let published = published.into_inner().unwrap();
    assert!(published.windows(2).all(|pair| pair[1].0 < pair[0].0), "{place}");
    assert_eq!(published.last(), Some(&(found, found_split.clone())), "{place}");
    if question.objective == Objective::MaxLoad {
        let score = found_split.score(question.dag, question.profile);
        assert!(close(score.max_load, found), "{place}");
    }
    let devices = question.limits.accelerators + question.limits.cpus;
    *seen.entry(if split.devices.len() < devices as usize { "fewer devices" } else { "all devices" }).or_default() += 1;
}

#[test]
fn throughput_programs_agree_with_our_own_exact_search() {
    let mut seen = BTreeMap::new();
    for seed in 0..400 {
        let mut draw = numbers(seed ^ 0xc0de);
        let case = with_training(RandomPlacement::sized(seed, 3 + draw(6)), seed);
        let all: f64 = case.profile.nodes.iter().map(|node| node.size_bytes).sum();
        let memory_bytes = [all, case.memory_bytes, (all * 0.4).floor()][draw(3)];
        let limits = PlacementLimits { accelerators: draw(4) as u32, cpus: draw(3) as u32, memory_bytes };
        let (contiguity, objective) = match seed % 4 {
            0 => (Contiguity::Free, Objective::MaxLoad),
            1 => (Contiguity::Contiguous, Objective::MaxLoad),
            2 => (Contiguity::Free, Objective::SeparateMaxima),
            _ => (Contiguity::Contiguous, Objective::SeparateMaxima),
        };
        let question = Question { dag: &case.dag, profile: &case.profile, limits, contiguity, objective };
        agree(&question, &format!("seed {seed}, {limits:?}, {contiguity:?}, {objective:?}"), &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.values().all(|&count| count > 10) && seen.len() == 3, "{seen:?}");
}

#[test]
fn latency_programs_agree_with_our_own_exact_search() {
    let mut optimal = 0;
    for seed in 0..200 {
        let case = RandomPlacement::new(seed);
        let question = latency::Question {
            dag: &case.dag,
            profile: &case.profile,
            accelerators: case.accelerators,
            subgraphs: 1 + seed as usize % 2,
            memory_bytes: case.memory_bytes,
        };
        let settings = latency::LatencySettings { orders: 16, rounds: 2, walks: 2, steps: 2000, branches: 1_000_000 };
        let own = latency::search(&question, &settings, &[], &Search::default(), &|_| {});
        let best = milp_latency::search(&question, &LATENCY_ALONE, &[], &Search::default(), &|_| {});
        let place = format!("seed {seed}: {best:?}, our own {own:?}");
        assert_eq!(own.status, Status::Optimal, "{place}");
        // HiGHS' bound holds even where its solution is a circle of parts without any time, which nothing can run.
        assert!(best.lower_bound.is_some_and(|bound| bound <= own.schedule.latency * (1.0 + 1e-9)), "{place}");
        assert!(best.schedule.latency >= own.schedule.latency * (1.0 - 1e-9), "{place}");
        if best.status == Status::Optimal {
            assert!(close(best.schedule.latency, own.schedule.latency), "{place}");
            optimal += 1;
        }
    }
    println!("{optimal} of 200 proven");
    assert!(optimal > 190, "{optimal}");
}

/// A published throughput input.
fn published(root: &Path, input: &str, settings: &throughput::MilpSettings, handle: &Search) -> Best {
    let (file, accelerators, memory_bytes) =
        read_input(&root.join("dnn-partitioning/throughput-inputs/OperatorGraphs").join(input));
    let cpus = file.cpus.expect("published inputs have limits");
    let limits = PlacementLimits { accelerators: accelerators as u32, cpus, memory_bytes };
    let (contiguity, objective) = (Contiguity::Free, Objective::MaxLoad);
    let question = Question { dag: &file.dag, profile: &file.profile, limits, contiguity, objective };
    throughput::search(&question, settings, handle, &|_, _| {})
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn small_published_inputs_have_their_published_optimum() {
    let root = reference::root();
    for input in ["bert_l-3_inference.json", "bert_l-3_training.json"] {
        let rows = include_str!("../figures/placement-ip.tsv").lines().filter_map(|line| line.split_once('\t'));
        let known: f64 = rows.filter(|row| row.0.ends_with(input)).map(|row| row.1.parse::<f64>().unwrap()).sum();
        let best = published(&root, input, &throughput::MilpSettings::ALONE, &Search::default());
        assert_eq!(best.status, Status::Optimal, "{input}");
        assert!(best.split.as_ref().is_some_and(|(value, _)| close(*value, known)), "{input}: {best:?}");
    }
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn a_stopped_run_keeps_what_it_found_and_proved() {
    let root = reference::root();
    let handle = Search::new(Some(Duration::from_secs(3)), 0);
    let own = Some(ip::IpSettings { rounds: 1, walks: 1, steps: 1000, proofs: 1, branches: 100 });
    let settings = throughput::MilpSettings { first: own, beside: own };
    let best = published(&root, "bert_l-12_inference.json", &settings, &handle);
    assert_eq!(best.status, Status::Cancelled);
    let (value, _) = best.split.expect("our own search found one");
    assert!(0.0 < best.lower_bound && best.lower_bound < value);
    assert_eq!(handle.progress().bound, Some(best.lower_bound));
}

#[test]
fn both_planners_offer_highs_and_answer_the_same_with_it() {
    for id in ["placement-ip", "placement-latency-ip"] {
        let planner = planner::find(id).expect("the planner is there");
        assert!(planner.options().iter().any(|option| option.name == "solver"), "{id}");
        for seed in 0..20 {
            let (workload, mut limits) = RandomPlacement::new(seed).workload();
            limits.cpus = seed as u32 % 2;
            let run = |solver: &str| {
                let options = Options::parse(id, planner.options(), [solver]).unwrap();
                let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
                let outcome = planner.plan(&problem, &Search::default());
                if let Some(plan) = &outcome.plan {
                    let report = check(&workload, &limits, plan);
                    assert!(report.is_valid(), "{id} {solver} seed {seed}: {report:?}");
                }
                (outcome.status, outcome.objective)
            };
            assert_eq!(run("solver=own"), run("solver=highs"), "{id} seed {seed}");
        }
    }
}
