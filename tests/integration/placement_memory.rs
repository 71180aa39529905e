//! What fits the memory of an accelerator where sizes are fractions of a byte: the check and all planners of device
//! placement must judge tenths as they judge the same sizes in whole bytes, of which every sum is exact.

use std::sync::Arc;

use crate::common::random_placement::{RandomPlacement, numbers};
use plantui::{
    cluster::Limits,
    family,
    plan::{Measure, Plan, Stage},
    planner::{self, Options, Outcome, Problem, Search},
    run,
    workload::{Choice, NodeIndex, Workload},
};

/// The planners that leave nothing to a program of somebody else or to a file.
const PLANNERS: [(&str, &[&str]); 10] = [
    ("placement-dp", &[]),
    ("placement-dpl", &[]),
    ("placement-pipedream", &[]),
    ("placement-ip", &[]),
    ("placement-ip", &["contiguity=contiguous"]),
    ("placement-local-search", &["restarts=3"]),
    ("placement-one", &[]),
    ("placement-multilevel", &["restarts=3"]),
    ("placement-latency-greedy", &[]),
    ("placement-latency-dp", &[]),
];

/// A graph, its limits, and the sizes of its nodes in tenths of what they are said to be.
struct Case {
    tenths: Vec<u32>,
    memory_tenths: u32,
    /// The sizes in bytes, a tenth each of what they are in the other.
    fractions: (Arc<Workload>, Limits),
    whole: (Arc<Workload>, Limits),
}

impl Case {
    /// Four to seven nodes on two or three accelerators, whose memory is just what some of the nodes sum to.
    fn new(seed: u64) -> Self {
        let mut draw = numbers(seed ^ 0x5eed);
        let mut graph = RandomPlacement::sized(seed, 4 + draw(4));
        let tenths: Vec<u32> = (0..graph.dag.len()).map(|_| [1, 2, 3, 7][draw(4)]).collect();
        let total: u32 = tenths.iter().sum();
        graph.accelerators = 2 + draw(2);
        // Never so little that nothing ever fits: an equal share, and the largest.
        let share = total.div_ceil(graph.accelerators as u32).max(7);
        let memory_tenths = loop {
            let sum: u32 = tenths.iter().filter(|_| draw(3) > 0).sum();
            if sum >= share {
                break sum;
            }
            if draw(8) == 0 {
                break share;
            }
        };
        let cpus = u32::from(draw(3) == 0);
        let mut sized = |unit: &dyn Fn(u32) -> f64| {
            for (node, &tenths) in graph.profile.nodes.iter_mut().zip(&tenths) {
                node.size_bytes = unit(tenths);
                node.supported = true;
            }
            graph.memory_bytes = unit(memory_tenths);
            let (workload, limits) = graph.workload();
            (workload, Limits { cpus, ..limits })
        };
        let fractions = sized(&|tenths| f64::from(tenths) / 10.0);
        let whole = sized(&f64::from);
        Case { tenths, memory_tenths, fractions, whole }
    }
}

/// Runs a planner; a claim that the check does not confirm is a fault.
fn planned((workload, limits): &(Arc<Workload>, Limits), id: &str, settings: &[&str], search: &Search) -> Outcome {
    let planner = planner::find(id).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    run::plan(planner, &problem, search).unwrap_or_else(|fault| panic!("{id}: {fault}")).0
}

/// Whether the same but for the rounding of a few numbers.
fn same(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

#[test]
fn every_planner_plans_with_tenths_as_with_whole_bytes() {
    let (mut found, mut full) = (0, 0);
    for seed in 0..120 {
        let case = Case::new(seed);
        for (id, settings) in PLANNERS {
            let [fractions, whole] =
                [&case.fractions, &case.whole].map(|of| planned(of, id, settings, &Search::default()));
            let context = format!("seed {seed}, {id}: {:?} in {}", case.tenths, case.memory_tenths);
            assert_eq!(fractions.status, whole.status, "{context}: {fractions:?}, {whole:?}");
            assert!(same(fractions.objective, whole.objective), "{context}: {fractions:?}, {whole:?}");
            let Some(plan) = fractions.plan else { continue };
            found += 1;
            let held = |stage: &Stage| stage.nodes.iter().map(|node| case.tenths[node.index()]).sum::<u32>();
            let mut accelerators = plan.stages.iter().filter(|stage| stage.choices[0] == Choice::Accelerator);
            full += usize::from(accelerators.any(|stage| held(stage) == case.memory_tenths));
        }
    }
    assert!(found > 300 && full > 100, "{found} plans, {full} with a full accelerator");
}

#[test]
fn the_latency_search_plans_with_tenths_as_with_whole_bytes() {
    for seed in 0..25 {
        let case = Case::new(seed);
        for settings in [&["rounds=1"][..], &["rounds=1", "subgraphs=2"]] {
            let [fractions, whole] = [&case.fractions, &case.whole]
                .map(|of| planned(of, "placement-latency-ip", settings, &Search::default()));
            assert_eq!(fractions.status, whole.status, "seed {seed}: {fractions:?}, {whole:?}");
            assert!(same(fractions.objective, whole.objective), "seed {seed}: {fractions:?}, {whole:?}");
        }
    }
}

#[test]
fn the_check_judges_tenths_as_whole_bytes() {
    let (mut full, mut over) = (0, 0);
    for seed in 0..40 {
        let case = Case::new(seed);
        let (workload, limits) = &case.fractions;
        for bits in 0..1u32 << case.tenths.len() {
            let mut stages = vec![];
            for side in 0..2 {
                let nodes: Vec<usize> = (0..case.tenths.len()).filter(|&v| bits >> v & 1 == side).collect();
                if !nodes.is_empty() {
                    stages.push(Stage {
                        choices: vec![Choice::Accelerator; nodes.len()],
                        nodes: NodeIndex::list(nodes),
                        data_parallel: 1,
                        tensor_parallel: 1,
                        devices: vec![side],
                    });
                }
            }
            for measure in [Measure::MaxLoad, Measure::Latency { subgraphs: Some(1) }] {
                let plan = Plan { measure, stages: stages.clone(), ..Plan::default() };
                let score = family::check(workload, limits, &plan);
                let refused: Vec<String> = score.violations.iter().map(ToString::to_string).collect();
                for (i, stage) in stages.iter().enumerate() {
                    let held: u32 = stage.nodes.iter().map(|node| case.tenths[node.index()]).sum();
                    let told = refused.iter().any(|text| text.starts_with(&format!("stage {} needs", i + 1)));
                    assert_eq!(told, held > case.memory_tenths, "seed {seed}: {held} tenths, {refused:?}");
                    full += usize::from(held == case.memory_tenths);
                    over += usize::from(told);
                }
            }
        }
    }
    assert!(full > 50 && over > 50, "{full} full, {over} over");
}

#[test]
fn a_plan_that_a_stopped_search_has_is_not_refused_by_a_whole_one() {
    for seed in 0..120 {
        let case = Case::new(seed);
        for id in ["placement-multilevel", "placement-ip", "placement-dp"] {
            let stopped = Search::default();
            stopped.cancel();
            let first = planned(&case.fractions, id, &[], &stopped);
            let whole = planned(&case.fractions, id, &[], &Search::default());
            let Some(value) = first.objective else { continue };
            let found = whole.objective.unwrap_or_else(|| panic!("seed {seed}, {id}: {:?}", whole.infeasible));
            assert!(found <= value * (1.0 + 1e-12), "seed {seed}, {id}: {found} after {value}");
        }
    }
}

#[test]
fn the_memory_that_is_said_to_do_does() {
    let mut asked = 0;
    for seed in 0..200 {
        let mut case = Case::new(seed);
        case.fractions.1.cpus = 0;
        for share in [0.5, 0.8] {
            let (workload, limits) = &case.fractions;
            let tight = Limits { memory_bytes: limits.memory_bytes.map(|bytes| bytes * share), ..limits.clone() };
            for id in ["placement-dp", "placement-ip"] {
                let refused = planned(&(workload.clone(), tight.clone()), id, &[], &Search::default());
                let Some(bytes) = refused.infeasible.as_ref().and_then(|story| story.smallest_memory_bytes) else {
                    continue;
                };
                let roomy = |bytes| Limits { memory_bytes: Some(bytes), ..limits.clone() };
                let again = planned(&(workload.clone(), roomy(bytes)), id, &[], &Search::default());
                assert!(again.plan.is_some(), "seed {seed}, {id}: {bytes} B, {:?}", again.infeasible);
                let less = planned(&(workload.clone(), roomy(bytes - 1.0)), id, &[], &Search::default());
                assert!(less.plan.is_none(), "seed {seed}, {id}: less than {bytes} B does");
                let story = refused.infeasible.unwrap().explanation;
                assert!(!story.contains("no less"), "{story}");
                asked += 1;
            }
        }
    }
    assert!(asked > 50, "{asked}");
}
