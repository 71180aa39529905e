//! The least of a limit for a goal, held against asking every value there is.

use std::sync::Arc;

use crate::common::random_piper::{Flavour, Random, edges, workload as random};
use plantui::{
    cluster::{LimitKind, Limits},
    family,
    planner::{self, Options, Planner, Problem, Search},
    run,
    simulate::Schedule,
    study::seek::{Goal, SeekCertainty, SeekMethod, SeekProblem, SeekQuery, SeekResult, seek},
    units::GIB,
    workload,
};

fn problem(planner: &dyn Planner, workload: workload::Workload, limits: Limits) -> Problem {
    Problem { workload: Arc::new(workload), limits, options: Options::defaults(planner.options()) }
}

fn ask(planner: &'static dyn Planner, problem: &Problem, question: &SeekQuery) -> SeekResult {
    let asked = SeekProblem { planner, problem, setup: Schedule::OneForwardOneBackward.into(), each: None };
    seek(&asked, question, &Search::default(), &mut |_| ())
}

fn question(problem: &Problem, planner: &dyn Planner, least: LimitKind, goal: &str) -> SeekQuery {
    let measure = planner.measure(&problem.workload, &problem.options);
    SeekQuery { least, goal: Goal::parse(goal, measure).unwrap(), among: None }
}

/// The planner's value with one limit changed; infinite without a plan.
fn value(planner: &dyn Planner, problem: &Problem, kind: LimitKind, value: f64) -> f64 {
    let limits = problem.limits.with(kind, value);
    let (outcome, _) = run::plan(planner, &Problem { limits, ..problem.clone() }, &Search::default()).unwrap();
    outcome.objective.unwrap_or(f64::INFINITY)
}

fn small(seed: u64) -> Problem {
    let mut dice = Random(seed);
    let nodes = 3 + dice.below(4);
    let edges = edges(&mut dice, nodes);
    let flavour = Flavour { whole: dice.chance(50), uniform: false, all_recompute: false, most_modes: 3 };
    let workload = random(&mut dice, nodes, edges, flavour);
    let limits = Limits {
        devices: 1 + dice.below(8) as u32,
        memory_bytes: Some([20.0, 60.0, 200.0][dice.below(3)]),
        microbatches: [4, 6, 12][dice.below(3)],
        bandwidth_bytes_per_s: Some([0.5, 4.0, 64.0][dice.below(3)]),
        ..Limits::NEUTRAL
    };
    problem(planner::find("piper").unwrap(), workload, limits)
}

#[test]
fn the_fewest_devices_are_those_that_every_count_tried_in_turn_finds() {
    let (mut found, mut beyond) = (0, 0);
    for seed in 0..24 {
        for id in ["piper", "equal-partition"] {
            let planner = planner::find(id).unwrap();
            let problem = Problem { options: Options::defaults(planner.options()), ..small(seed) };
            let most = (problem.limits.devices * 16).max(64);
            let values: Vec<f64> =
                (1..=most).map(|count| value(planner, &problem, LimitKind::Devices, f64::from(count))).collect();
            let Some(best) = values.last().filter(|best| best.is_finite()) else { continue };
            for factor in [1.0, 1.5, 3.0, 0.9] {
                let goal = format!("time_per_sample<={}s", best * factor);
                let question = question(&problem, planner, LimitKind::Devices, &goal);
                let sought = ask(planner, &problem, &question);
                let fewest =
                    values.iter().position(|&value| question.goal.is_reached_by(value)).map(|at| at as f64 + 1.0);
                assert_eq!(sought.answer, fewest, "seed {seed}, {id}, {goal}: {:?}", sought.curve);
                assert_eq!(
                    (&sought.method, &sought.certainty),
                    (&SeekMethod::Bisection, &SeekCertainty::Proven),
                    "seed {seed}"
                );
                let below = fewest.map_or(f64::from(most), |fewest| fewest - 1.0);
                assert_eq!(sought.below, Some(below).filter(|below| *below > 0.0), "seed {seed}, {id}, {goal}");
                match fewest {
                    Some(_) => found += 1,
                    None => beyond += 1,
                }
            }
        }
    }
    assert!(found > 40 && beyond > 10, "{found} {beyond}");
}

#[test]
fn the_least_memory_is_that_of_a_plan_and_a_byte_less_does_not_do() {
    let planner = planner::find("piper").unwrap();
    let mut found = 0;
    for seed in 0..30 {
        let problem = small(seed);
        let free = value(planner, &problem, LimitKind::Memory, f64::INFINITY);
        if !free.is_finite() {
            continue;
        }
        for factor in [1.0, 1.3, 4.0] {
            let question =
                question(&problem, planner, LimitKind::Memory, &format!("time_per_sample<={}s", free * factor));
            let sought = ask(planner, &problem, &question);
            let Some(least) = sought.answer else { panic!("seed {seed}: {:?}", sought.certainty) };
            assert_eq!(sought.certainty, SeekCertainty::Proven, "seed {seed}");
            let holds = |memory| question.goal.is_reached_by(value(planner, &problem, LimitKind::Memory, memory));
            assert!(holds(least), "seed {seed}: {least}");
            if let Some(below) = sought.below {
                assert!(!holds(below), "seed {seed}: {below}");
                assert!((1..40).all(|part| !holds(below * f64::from(part) / 40.0)), "seed {seed}: {:?}", sought.curve);
                let run = sought.run.as_ref().unwrap();
                let peak = run.score.as_ref().unwrap().peak_memory_bytes();
                assert!((peak / least - 1.0).abs() < 1e-9, "seed {seed}: {peak} {least}");
                found += 1;
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn bandwidth_is_found_to_a_percent_and_what_fails_fails() {
    let planner = planner::find("piper").unwrap();
    let limits = family::resolve(&workload::builtin(), &Default::default()).unwrap();
    let problem = problem(planner, workload::builtin(), limits);
    let question = question(&problem, planner, LimitKind::Bandwidth, "time_per_sample<=21ms");
    let sought = ask(planner, &problem, &question);
    let (least, below) = (sought.answer.unwrap(), sought.below.unwrap());
    assert!(below < least && least / below <= 1.01 + 1e-9, "{below} {least}");
    let holds = |rate| question.goal.is_reached_by(value(planner, &problem, LimitKind::Bandwidth, rate));
    assert!(holds(least) && !holds(below));
    assert_eq!(sought.certainty, SeekCertainty::Proven);
}

#[test]
fn where_the_answer_is_not_monotone_every_value_below_it_was_asked() {
    let planner = planner::find("piper").unwrap();
    let limits = Limits { devices: 8, ..family::resolve(&workload::builtin(), &Default::default()).unwrap() };
    let problem = problem(planner, workload::builtin(), Limits { microbatches: 48, ..limits.clone() });
    for (least, goal) in [(LimitKind::Devices, "throughput>=4/s"), (LimitKind::Microbatches, "bubble<=30%")] {
        let question = question(&problem, planner, least, goal);
        let sought = ask(planner, &problem, &question);
        let answer = sought.answer.unwrap();
        let SeekMethod::Sweep(why) = &sought.method else { panic!("{goal} was halved") };
        assert!(why.contains("rise and fall"), "{why}");
        assert_eq!(sought.certainty, SeekCertainty::EveryValueTested);
        let below: Vec<f64> = sought.curve.iter().map(|step| step.value).filter(|&value| value < answer).collect();
        assert_eq!(below, (1..answer as u32).map(f64::from).collect::<Vec<_>>());
        assert!(sought.curve.iter().all(|step| step.value >= answer || !step.reaches_goal));
    }
}

#[test]
fn a_heuristic_is_swept_and_says_so() {
    let planner = planner::find("placement-local-search").unwrap();
    let text = include_str!("../../inputs/mistral-7b-latency.json");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.json");
    std::fs::write(&path, text).unwrap();
    let workload = workload::load(&path).unwrap();
    let limits = family::resolve(&workload, &Default::default()).unwrap();
    let problem = problem(planner, workload, Limits { devices: 3, memory_bytes: None, ..limits.clone() });
    let best = value(planner, &problem, LimitKind::Devices, 3.0);
    let question = question(&problem, planner, LimitKind::Devices, &format!("max_load<={best}"));
    let sought = ask(planner, &problem, &question);
    assert!(matches!(&sought.method, SeekMethod::Sweep(why) if why.contains("not proven")), "{:?}", sought.method);
    assert!(sought.answer.is_some_and(|count| count <= 3.0));
}

#[test]
fn the_best_that_is_reachable_is_told_where_the_goal_is_not() {
    let planner = planner::find("piper").unwrap();
    let limits = family::resolve(&workload::builtin(), &Default::default()).unwrap();
    let problem = problem(planner, workload::builtin(), limits);
    let question = question(&problem, planner, LimitKind::Memory, "time_per_sample<=1ms");
    let sought = ask(planner, &problem, &question);
    assert_eq!((sought.answer, &sought.certainty), (None, &SeekCertainty::Proven));
    let nearest = sought.nearest().unwrap();
    let free = value(planner, &problem, LimitKind::Memory, f64::INFINITY);
    assert!((nearest.figure.unwrap() / free - 1.0).abs() < 1e-9, "{:?} {free}", nearest.figure);
    assert!(sought.run.is_some() && sought.curve.len() <= 3 && nearest.value > 8.0 * GIB);
}

#[test]
fn values_to_choose_among_are_kept_to_and_a_stopped_walk_says_so() {
    let planner = planner::find("piper").unwrap();
    let limits = family::resolve(&workload::builtin(), &Default::default()).unwrap();
    let problem = problem(planner, workload::builtin(), limits);
    let mut question = question(&problem, planner, LimitKind::Devices, "time_per_sample<=25ms");
    question.among = Some(vec![8.0, 16.0, 32.0, 64.0, 128.0]);
    let sought = ask(planner, &problem, &question);
    assert_eq!((sought.answer, sought.below), (Some(64.0), Some(32.0)));
    let asked = SeekProblem { planner, problem: &problem, setup: Schedule::OneForwardOneBackward.into(), each: None };
    let search = Search::default();
    let stop = search.clone();
    let stopped = seek(&asked, &question, &search, &mut |_| stop.cancel());
    assert!(stopped.stopped && stopped.curve.len() == 1 && matches!(stopped.certainty, SeekCertainty::Open(_)));
}
