//! What binds, what would help, what is next best: on workloads built so that the answer is known, and every figure
//! against a re-plan of its own.

use std::{sync::Arc, time::Duration};

use crate::common::random_piper::{Flavour, Random, assemble, edges, workload};
use plantui::{
    cluster::{GivenLimits, LimitKind, Limits},
    family,
    planner::{Options, Planner, Problem, Search, joint::Joint, piper::Piper},
    run,
    study::explain::{
        Cause, CauseKind, Certainty, Change, ExplainedPlan, Explanation, NOTICEABLE, PlanBottleneck, Topic,
    },
    workload::{
        DegreeProfile, Mode, Workload, builtin,
        piper::{NodeProfile, RECOMPUTE, VANILLA},
    },
};

/// A chain of nodes; `modes` gives for every node, by tensor degree, its modes as (id, seconds, bytes, parameters).
type Offer = (u32, &'static [(&'static str, f64, f64, f64)]);

fn chain(edge_bytes: f64, offers: &[&[Offer]]) -> Arc<Workload> {
    let n = offers.len();
    let nodes = offers.iter().enumerate().map(|(v, degrees)| NodeProfile {
        degrees: degrees
            .iter()
            .map(|&(degree, modes)| DegreeProfile {
                degree,
                modes: modes
                    .iter()
                    .map(|&(id, time_s, memory_b, parameters)| Mode {
                        id: id.into(),
                        time_s,
                        forward_s: None,
                        parameters,
                        memory_a: 0.0,
                        memory_b,
                        sync_in: vec![0.0; usize::from(v > 0)],
                        sync_out: vec![0.0; usize::from(v + 1 < n)],
                    })
                    .collect(),
            })
            .collect(),
    });
    let edges = (1..n as u32).map(|v| (v - 1, v)).collect();
    Arc::new(assemble(edges, vec![edge_bytes; n - 1], nodes.collect()))
}

fn limits(devices: u32, memory_bytes: f64, microbatches: u32, bandwidth_bytes_per_s: f64) -> Limits {
    Limits {
        devices,
        memory_bytes: Some(memory_bytes),
        microbatches,
        bandwidth_bytes_per_s: Some(bandwidth_bytes_per_s),
        ..Limits::NEUTRAL
    }
}

fn base(workload: &Arc<Workload>, limits: Limits, settings: &[&str]) -> Option<ExplainedPlan> {
    let options = Options::parse("piper", Piper.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::clone(workload), limits, options };
    let (outcome, score) = run::plan(&Piper, &problem, &Search::default()).unwrap();
    ExplainedPlan::new(&Piper, &problem, &outcome, score.as_ref())
}

fn explained(base: &ExplainedPlan) -> Explanation {
    let mut explanation = Explanation::default();
    for question in base.questions() {
        explanation.add(base.replan(&question, None, &Search::default()).expect("nobody cancels"));
    }
    explanation
}

fn causes(base: &ExplainedPlan) -> Vec<Cause> {
    explained(base).causes(base)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

const HEAVY: Offer = (1, &[(VANILLA, 1.0, 10.0, 0.0), (RECOMPUTE, 1.5, 2.0, 0.0)]);
const LIGHT: Offer = (1, &[(VANILLA, 1.0, 1.0, 0.0)]);

#[test]
fn memory_that_forces_recomputation_is_found() {
    let workload = chain(0.0, &[[HEAVY].as_slice(); 4]);
    let base = base(&workload, limits(4, 4.0, 4, 1e9), &[]).unwrap();
    assert!(close(base.value(), 1.5));
    let causes = causes(&base);
    let memory = causes.iter().find(|cause| cause.kind == CauseKind::Memory).expect("memory binds");
    assert!(close(memory.gain, 1.0 / 3.0) && memory.certainty == Certainty::Exact, "{memory:?}");
    assert!(memory.how.contains("forces recomputation: 4 of 4 layers recompute, none without the limit"), "{memory:?}");
    assert!(!causes.iter().any(|cause| matches!(cause.kind, CauseKind::Links | CauseKind::Degrees)), "{causes:?}");
}

#[test]
fn memory_that_forbids_replicas_is_found() {
    // Of unlike nodes four replicas of the whole take as long as the average; with room for one node each, the slowest
    // node decides.
    const SLOW: Offer = (1, &[(VANILLA, 5.0, 3.0, 0.0)]);
    const QUICK: Offer = (1, &[(VANILLA, 1.0, 3.0, 0.0)]);
    let workload = chain(0.0, &[&[SLOW], &[QUICK], &[QUICK], &[QUICK]]);
    let base = base(&workload, limits(4, 4.0, 4, 1e9), &[]).unwrap();
    assert!(close(base.value(), 5.0));
    let memory = causes(&base).into_iter().find(|cause| cause.kind == CauseKind::Memory).expect("memory binds");
    assert!(close(memory.value, 2.0), "{memory:?}");
    assert!(memory.how.contains("limits data parallelism") && !memory.how.contains("recompute"), "{memory:?}");
}

#[test]
fn too_few_divisors_are_found() {
    const SIX: Offer = (1, &[(VANILLA, 6.0, 1.0, 0.0)]);
    let workload = chain(0.0, &[&[SIX]]);
    let seven = base(&workload, limits(6, 100.0, 7, 1e9), &[]).unwrap();
    assert!(close(seven.value(), 6.0));
    let causes = causes(&seven);
    let divisors = causes.iter().find(|cause| cause.kind == CauseKind::Divisors).expect("seven is a prime");
    assert!(close(divisors.value, 1.0) && divisors.how.contains("must divide 7 microbatches"), "{divisors:?}");
    assert!(divisors.how.contains("stage 1 would have 6"), "{divisors:?}");
    // Six replicas divide twelve: then only devices are left.
    let twelve = base(&workload, limits(6, 100.0, 12, 1e9), &[]).unwrap();
    let kinds: Vec<CauseKind> = self::causes(&twelve).iter().map(|cause| cause.kind).collect();
    assert_eq!(kinds, [CauseKind::Devices]);
}

#[test]
fn a_degree_that_is_not_offered_is_found_with_its_node() {
    const BOTH: [Offer; 2] = [(1, &[(VANILLA, 4.0, 1.0, 0.0)]), (2, &[(VANILLA, 2.0, 1.0, 0.0)])];
    const ONE: [Offer; 1] = [(1, &[(VANILLA, 4.0, 1.0, 0.0)])];
    let workload = chain(0.0, &[&BOTH, &ONE]);
    let lacking = base(&workload, limits(4, 100.0, 4, 1e9), &["data_parallel=false"]).unwrap();
    assert!(close(lacking.value(), 4.0));
    let causes = causes(&lacking);
    let degrees = causes.iter().find(|cause| cause.kind == CauseKind::Degrees).expect("node 1 lacks degree 2");
    assert!(close(degrees.value, 2.0) && degrees.certainty == Certainty::AtMost, "{degrees:?}");
    assert!(degrees.how.starts_with("node 1 has no mode at tensor degree 2"), "{degrees:?}");
    // Where every node offers every degree, nobody asks.
    let whole = chain(0.0, &[&BOTH, &BOTH]);
    let whole = base(&whole, limits(4, 100.0, 4, 1e9), &["data_parallel=false"]).unwrap();
    assert!(whole.questions().iter().all(|question| question.change != Change::EveryDegree));
}

#[test]
fn slow_links_are_found_and_more_devices_are_not_blamed() {
    const NODE: Offer = (1, &[(VANILLA, 1.0, 1.0, 8.0)]);
    let workload = chain(1.0, &[&[NODE], &[NODE]]);
    // Two stages pay 2 s for the edge, two replicas 8 s for the all-reduce: one device alone is best.
    let base = base(&workload, limits(2, 100.0, 2, 1.0), &[]).unwrap();
    assert!(close(base.value(), 2.0));
    let causes = causes(&base);
    let kinds: Vec<CauseKind> = causes.iter().map(|cause| cause.kind).collect();
    assert_eq!(kinds, [CauseKind::Links], "{causes:?}");
    assert!(
        close(causes[0].value, 1.0) && causes[0].how == "communication forbids better stage boundaries",
        "{causes:?}"
    );
}

#[test]
fn devices_bind_where_nothing_else_does() {
    let workload = chain(0.0, &[[LIGHT].as_slice(); 4]);
    let base = base(&workload, limits(2, 100.0, 4, 1e9), &[]).unwrap();
    let explanation = explained(&base);
    let causes = explanation.causes(&base);
    assert!(causes.len() == 1 && causes[0].kind == CauseKind::Devices && close(causes[0].gain, 0.5), "{causes:?}");
    assert_eq!(explanation.free(&base), ["memory", "bandwidth"]);
    let bottleneck = PlanBottleneck::of(&workload, &base.plan, &base.score, None).unwrap();
    assert_eq!((bottleneck.parts.len(), bottleneck.parts[0].name), (1, "compute"));
}

/// The problem of a question, put together without the study's help.
fn asked(base: &ExplainedPlan, change: &Change) -> Option<Problem> {
    let mut problem = base.problem.clone();
    match change {
        Change::Limit(LimitKind::Devices, value) => problem.limits.devices = *value as u32,
        Change::Limit(LimitKind::Memory, value) => problem.limits.memory_bytes = Some(*value),
        Change::Limit(LimitKind::Microbatches, value) => problem.limits.microbatches = *value as u32,
        Change::Limit(LimitKind::Bandwidth, value) => problem.limits.bandwidth_bytes_per_s = Some(*value),
        Change::Option(spec, value) => {
            let setting = format!("{}={}", spec.name, value.text());
            problem.options = Options::parse("piper", Piper.options(), [setting.as_str()]).unwrap();
        }
        _ => return None,
    }
    Some(problem)
}

#[test]
fn every_gain_is_that_of_a_plan_of_its_own() {
    let (mut held, mut none) = (0, 0);
    for seed in 0..40 {
        let mut random = Random(seed);
        let n = 2 + random.below(5);
        let flavour = Flavour { whole: random.chance(50), uniform: true, all_recompute: true, most_modes: 2 };
        let edges = edges(&mut random, n);
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let (memory, microbatches) = (10.0 + random.amount(30, true), random.pick(&[2, 4, 6, 7]));
        let bandwidth = random.pick(&[2.0, 1e6]);
        let Some(base) = base(&workload, limits(1 + random.below(5) as u32, memory, microbatches, bandwidth), &[])
        else {
            continue;
        };
        if base.value() == 0.0 {
            continue;
        }
        for answer in explained(&base).answers() {
            let Some(problem) = asked(&base, &answer.question.change) else { continue };
            let alone = run::plan(&Piper, &problem, &Search::default()).unwrap().0;
            assert_eq!(answer.value.is_some(), alone.plan.is_some(), "seed {seed}: {answer:?}");
            let Some(value) = alone.objective else {
                none += 1;
                continue;
            };
            let gain = 1.0 - value / base.value();
            assert!((answer.gain().unwrap() - gain).abs() < 1e-8, "seed {seed}: {gain} of {answer:?}");
            held += 1;
        }
    }
    assert!(held > 300 && none > 20, "{held} {none}");
}

#[test]
fn lists_are_sorted_and_complete() {
    let workload = Arc::new(builtin());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let base = base(&workload, limits, &[]).unwrap();
    let explanation = explained(&base);
    let (help, next_best) = (explanation.help(), explanation.next_best());
    let binds = explanation.answers().iter().filter(|answer| matches!(answer.question.topic, Topic::Binds(_))).count();
    assert_eq!(help.len() + next_best.len() + binds, explanation.answers().len());
    for list in [&help, &next_best] {
        assert!(list.is_sorted_by(|a, b| a.gain().unwrap_or(-9.0) >= b.gain().unwrap_or(-9.0)));
    }
    assert!(next_best.iter().all(|answer| answer.gain().is_none_or(|gain| gain <= NOTICEABLE)));
    let fewer = next_best.iter().find(|answer| answer.label == format!("{} stages", base.plan.stages.len() - 1));
    let fewer = fewer.expect("another number of stages is tried").plan.as_ref().expect("there is such a plan");
    assert_eq!(fewer.stages.len(), base.plan.stages.len() - 1);
    let engines = next_best.iter().find(|answer| answer.question.change == Change::EngineFeasible).unwrap();
    let engine_plan = engines.plan.as_ref().unwrap();
    assert!(engine_plan.stages.iter().all(|stage| stage.data_parallel == engine_plan.stages[0].data_parallel));
    assert!(engines.gain().unwrap() < 0.0);
}

#[test]
fn a_search_that_is_cut_short_never_makes_more_look_worse() {
    let workload = Arc::new(builtin());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let base = base(&workload, limits, &[]).unwrap();
    let more = base.questions().into_iter().find(|q| q.change == Change::Limit(LimitKind::Devices, 72.0)).unwrap();
    let answer = base.replan(&more, Some(Duration::ZERO), &Search::default()).unwrap();
    assert_eq!((answer.value, answer.certainty), (Some(base.value()), Certainty::AtLeast));
    assert_eq!(answer.difference().as_deref(), Some("0.0% at least"));
    let stopped = Search::default();
    stopped.cancel();
    assert!(base.replan(&more, None, &stopped).is_none());
}

/// Filling, transfers, all-reduce, and the steady state: together they are the difference.
#[test]
fn parts_of_a_batch_add_up_to_what_a_change_is_worth() {
    let workload = Arc::new(builtin());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let problem = Problem { workload, limits, options: Options::defaults(Joint.options()) };
    let (outcome, score) = run::plan(&Joint, &problem, &Search::default()).unwrap();
    let base = ExplainedPlan::new(&Joint, &problem, &outcome, score.as_ref()).unwrap();
    let (mut told, mut degrees) = (0, 0);
    for question in base.questions() {
        let degree = matches!(&question.change, Change::Option(spec, _) if spec.name == "tensor_degree");
        let sized = matches!(question.change, Change::Limit(LimitKind::Microbatches, _));
        let answer = base.replan(&question, None, &Search::default()).unwrap();
        let Some(value) = answer.value else { continue };
        degrees += usize::from(degree && question.topic == Topic::NextBest && answer.gain() <= Some(1e-9));
        let sum: f64 = answer.parts.iter().map(|(_, seconds)| seconds).sum();
        let difference = value - base.value();
        if sized {
            assert!(answer.parts.is_empty(), "batches of another size: {}", answer.label);
        } else {
            // Six parts, each of which is told from a thousandth of the batch on.
            assert!((sum - difference).abs() <= 6e-3 * base.value(), "{}: {sum} of {difference}", answer.label);
            told += usize::from(difference.abs() > 0.01 * base.value() && !answer.parts.is_empty());
        }
        assert!(answer.parts.is_sorted_by(|a, b| a.1.abs() >= b.1.abs()), "{:?}", answer.parts);
    }
    assert!(told > 5 && degrees > 0, "{told} {degrees}");
}
