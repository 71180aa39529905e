//! Whether what a question is spared changes its answer: what others told, levels tried together, walks.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    bisection::allowed,
    model::PiperModel,
    probe::{Answer, Crew, Question},
    rest::Borders,
    settings::{OPTIONS, PiperSettings},
    sources::Heavier,
};
use crate::{
    cluster::GivenLimits,
    family,
    graph::{Enumeration, SuccessorSets},
    planner::{Options, Search, random::SplitMix},
    workload::formats::piper::read,
};

/// So many chains of so many nodes side by side on twelve devices; `memory` bytes on each are a little more than the whole
/// needs with everything recomputed.
fn branches(chains: usize, length: usize, memory: usize) -> String {
    let all = chains * length;
    let edges: Vec<(usize, usize)> = (0..all).filter(|v| v % length != length - 1).map(|v| (v, v + 1)).collect();
    network(all, &edges, memory)
}

/// The same behind a node that comes before all chains.
fn fan(chains: usize, length: usize, memory: usize) -> String {
    let all = 1 + chains * length;
    let edge = |v: usize| if v % length == 1 % length { (0, v) } else { (v - 1, v) };
    network(all, &(1..all).map(edge).collect::<Vec<_>>(), memory)
}

fn network(all: usize, edges: &[(usize, usize)], memory: usize) -> String {
    let mut random = SplitMix::new(7);
    let sync = |ids: Vec<usize>| {
        let all: Vec<String> = ids.iter().map(|id| format!("\"{id}\": 0")).collect();
        all.join(", ")
    };
    let node = |v: usize| {
        let (seconds, bytes) = (1.0 + random.unit(), (1e6 * (1.0 + random.unit())).round());
        let before = sync(edges.iter().filter(|edge| edge.1 == v).map(|edge| edge.0).collect());
        let after = sync(edges.iter().filter(|edge| edge.0 == v).map(|edge| edge.1).collect());
        let mode = |id: &str, t: f64, seconds: f64, bytes: f64| {
            format!(
                r#"{{"id": "{id}", "timePerSample": {}, "parameterSize": 0, "memoryUsageA": {}, "memoryUsageB": 100000, "syncTimeFw": {{{before}}}, "syncTimeBw": {{{after}}}}}"#,
                seconds / t,
                (bytes / t).round(),
            )
        };
        let modes = |t: f64| {
            [mode("vanilla", t, seconds, bytes), mode("activation recomp", t, 1.3 * seconds, 0.1 * bytes)].join(", ")
        };
        format!(r#"{{"id": {v}, "TMPCs": {{"1": [{}], "2": [{}]}}}}"#, modes(1.0), modes(1.9))
    };
    let nodes: Vec<String> = (0..all).map(node).collect();
    let edge = |&(from, to): &(usize, usize)| {
        format!(r#"{{"sourceId": {from}, "destId": {to}, "communicationCost": 100000}}"#)
    };
    let list: Vec<String> = edges.iter().map(edge).collect();
    format!(
        r#"{{"maxMemoryPerDevice": {memory}, "maxDevices": 12, "bandwidth": 1e6, "mbsInBatch": 12, "nodes": [{}], "edges": [{}]}}"#,
        nodes.join(", "),
        list.join(", ")
    )
}

/// Calls a test with a model of such a network, its settings and a question about it.
fn with(text: &str, test: impl FnOnce(&PiperModel<'_>, &PiperSettings, &Question<'_>)) {
    let workload = read(text, "branches.json", "branches").unwrap();
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let settings = PiperSettings::new(&Options::defaults(&OPTIONS));
    let Enumeration::Complete(sets) = SuccessorSets::enumerate(&workload.dag, 1000, &|| false) else { panic!() };
    let (profile, search) = (workload.piper().unwrap(), Search::default());
    let model = PiperModel::new(&workload, profile, &limits, &settings, sets, &search).unwrap();
    let question = Question {
        target: model.even_share(),
        devices: 12,
        most_replicas: settings.replicas(model.most_replicas),
        allowed: &allowed(&model),
        stages: None,
        progress: (0.0, 1.0),
    };
    test(&model, &settings, &question);
}

fn devices_of(crew: &mut Crew<'_, '_>, model: &PiperModel<'_>, question: &Question<'_>) -> Option<u32> {
    devices_in(&crew.ask(question, &Search::default()), model)
}

fn crew_of<'m, 'a>(model: &'m PiperModel<'a>, settings: &PiperSettings) -> Crew<'m, 'a> {
    Crew::new(model, settings, model.limits.memory(), &Search::default()).unwrap()
}

fn devices_in(answer: &Answer, model: &PiperModel<'_>) -> Option<u32> {
    match answer {
        Answer::Yes(stages) => Some(stages.iter().map(|stage| stage.d * model.degrees[stage.degree].t).sum()),
        _ => None,
    }
}

/// As halving would ask, and beyond.
const FACTORS: [f64; 11] = [1.0, 1.5, 1.25, 1.1, 1.2, 1.15, 1.18, 1.3, 1.22, 1.05, 1.4];

#[test]
fn what_other_loads_tell_changes_no_answer() {
    with(&branches(3, 7, 6_000_000), |model, settings, question| {
        assert!(model.sets.len() == 512, "{} sets", model.sets.len());
        let mut old = crew_of(model, settings);
        let answers = FACTORS.map(|factor| {
            let question = Question { target: factor * question.target, ..question.clone() };
            let fresh = devices_of(&mut crew_of(model, settings), model, &question);
            assert_eq!(devices_of(&mut old, model, &question), fresh, "{factor}");
            fresh
        });
        assert!(answers.contains(&None) && answers.iter().any(Option::is_some), "{answers:?}");
    });
}

/// Asks crews of so many threads, which try so many levels together and walk where more than so many inner sets are in a set's
/// windows, the same questions with these numbers of stages.
fn assert_same_answers(text: &str, stages: &[Option<usize>], ways: &[(usize, usize, usize)]) {
    with(text, |model, settings, question| {
        let crew = |&(threads, levels, many): &(usize, usize, usize)| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut crew = pool.install(|| crew_of(model, settings));
            crew.levels = levels;
            crew.workers.iter_mut().for_each(|worker| worker.many = many);
            (pool, crew)
        };
        let mut crews: Vec<_> = ways.iter().map(crew).collect();
        let mut answers = vec![];
        for (stages, factor) in stages.iter().flat_map(|&stages| FACTORS.map(|factor| (stages, factor))) {
            let question = Question { target: factor * question.target, stages, ..question.clone() };
            let ask = |(pool, crew): &mut (rayon::ThreadPool, Crew<'_, '_>)| {
                pool.install(|| crew.ask(&question, &Search::default()))
            };
            let told: Vec<Answer> = crews.iter_mut().map(ask).collect();
            let devices: Vec<Option<u32>> = told.iter().map(|answer| devices_in(answer, model)).collect();
            assert!(devices.iter().all(|&other| other == devices[0]), "{stages:?} {factor}: {devices:?}");
            for (at, &(threads, levels, many)) in ways.iter().enumerate() {
                // The same plan for any number of threads.
                let alone = ways.iter().position(|&way| way == (1, levels, many));
                assert!(alone.is_none_or(|alone| told[alone] == told[at]), "{stages:?} {factor} {threads} {levels}");
            }
            answers.push(devices[0]);
        }
        assert!(answers.contains(&None) && answers.iter().any(Option::is_some), "{answers:?}");
    });
}

#[test]
fn nobody_is_set_up_for_a_search_that_has_ended() {
    with(&branches(3, 7, 6_000_000), |model, settings, _| {
        let search = Search::default();
        search.cancel();
        assert!(Heavier::new(model, &search).is_none() && Borders::new(model, &search).is_none());
        assert!(Crew::new(model, settings, model.limits.memory(), &search).is_none());
    });
}

#[test]
fn levels_tried_together_change_no_answer() {
    const MANY: usize = usize::MAX;
    for text in [branches(1, 450, 60_000_000), branches(2, 10, 6_000_000), branches(3, 7, 6_000_000)] {
        let ways = [(1, 1, MANY), (3, 1, MANY), (1, 2, MANY), (1, 8, MANY), (2, 8, MANY), (5, 8, MANY)];
        assert_same_answers(&text, &[None, Some(3), Some(6)], &ways);
    }
}

#[test]
fn who_waits_for_another_is_told_when_the_search_ends() {
    with(&branches(1, 450, 60_000_000), |model, settings, question| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let ask = |search: &Search| {
            pool.install(|| {
                let mut crew = crew_of(model, settings);
                crew.ask(question, search)
            })
        };
        let whole = ask(&Search::default());
        for percent in 0..20 {
            let search = Search::default();
            let ended = AtomicBool::new(false);
            let answer = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let wait = || search.progress().fraction < f64::from(percent) / 100.0;
                    while wait() && !ended.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    search.cancel();
                });
                let answer = ask(&search);
                ended.store(true, Ordering::Relaxed);
                answer
            });
            assert!(answer == Answer::Cancelled || answer == whole, "{percent} %: {answer:?}");
        }
        let search = Search::default();
        search.cancel();
        assert_eq!(ask(&search), Answer::Cancelled);
    });
}

#[test]
fn walks_find_what_windows_hold() {
    let ways = [(1, 8, usize::MAX), (1, 8, 0), (2, 8, 0)];
    assert_same_answers(&fan(3, 6, 6_000_000), &[None, Some(2), Some(3), Some(4)], &ways);
}
