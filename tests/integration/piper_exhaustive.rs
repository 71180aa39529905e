//! Piper against trying every plan, on hundreds of small random workloads.

use crate::common::{
    every_plan::{EveryPlan, Modes, Rules},
    random_piper::{Flavour, Random, edges, workload},
};
use plantui::{
    cluster::Limits,
    planner::{Options, Outcome, Planner, Problem, Search, Status, piper::Piper},
    run,
    workload::{Profile, Workload},
};
use std::sync::Arc;

/// How a random case turned out, counted so that no kind goes untested.
#[derive(Debug, Default)]
struct Tally {
    infeasible: usize,
    tight: usize,
    loose: usize,
    named_memory: usize,
    named_devices: usize,
    greedy_worse: usize,
    several_stages: usize,
    stages_as_asked: usize,
    several_replicas: usize,
    fewer_replicas: usize,
    split_tensors: usize,
    rounded_on: usize,
    rounded_on_slower: usize,
}

fn options(rules: Rules, knapsack: &str) -> Options {
    let recompute = match rules.modes {
        Modes::Any => "auto",
        Modes::Never => "never",
        Modes::Always => "always",
        Modes::AllOrNone => "all-or-none",
    };
    let settings = [
        format!("data_parallel={}", rules.data_parallel),
        format!("tensor_parallel={}", rules.tensor_parallel),
        format!("recompute={recompute}"),
        format!("knapsack={knapsack}"),
        format!("stages={}", rules.stages.unwrap_or(0)),
        format!("most_replicas={}", rules.most_replicas.unwrap_or(0)),
        format!("warmup={}", if rules.cumulative { "cumulative" } else { "published" }),
    ];
    Options::parse("piper", Piper.options(), settings.iter().map(String::as_str)).unwrap()
}

fn plan(workload: &Arc<Workload>, limits: &Limits, options: &Options) -> Outcome {
    let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options: options.clone() };
    run::plan(&Piper, &problem, &Search::default()).unwrap().0
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// The memory that an infeasible outcome names is enough, and a little less is not; likewise the devices.
fn repairs_hold(
    workload: &Arc<Workload>,
    limits: &Limits,
    rules: Rules,
    every: &EveryPlan<'_>,
    outcome: &Outcome,
    tally: &mut Tally,
    context: &str,
) {
    let infeasible = outcome.infeasible.as_ref().expect("an infeasible outcome says why");
    let options = options(rules, "exact");
    let least = every.least_memory(rules);
    match (infeasible.smallest_memory_bytes, least) {
        (Some(named), Some(least)) => {
            tally.named_memory += 1;
            assert!(close(named, least), "{context}: names {named} bytes, {least} would do");
            let at = |memory_bytes| {
                plan(workload, &Limits { memory_bytes: Some(memory_bytes), ..limits.clone() }, &options).status
            };
            assert_ne!(at(named), Status::Infeasible, "{context}: {named} bytes");
            assert_eq!(at(named * (1.0 - 1e-6)), Status::Infeasible, "{context}: less than {named} bytes");
        }
        (named, least) => assert_eq!(named, least, "{context}"),
    }
    let with = |devices| plan(workload, &Limits { devices, ..limits.clone() }, &options).status;
    match infeasible.fewest_devices {
        Some(named) => {
            tally.named_devices += 1;
            assert!(named > limits.devices, "{context}: {named} devices are there already");
            assert_ne!(with(named), Status::Infeasible, "{context}: {named} devices");
            assert_eq!(with(named - 1), Status::Infeasible, "{context}: {} devices", named - 1);
        }
        None => assert_eq!(with(10_000), Status::Infeasible, "{context}: 10000 devices"),
    }
}

/// One workload under one set of rules and one memory limit.
fn compare(
    workload: &Arc<Workload>,
    limits: &Limits,
    rules: Rules,
    every: &EveryPlan<'_>,
    tally: &mut Tally,
    context: &str,
) {
    let context = format!("{context}, {limits:?}, {rules:?}");
    let exact = plan(workload, limits, &options(rules, "exact"));
    let Some((value, _)) = every.best(limits.memory_limit(), rules) else {
        tally.infeasible += 1;
        assert_eq!(exact.status, Status::Infeasible, "{context}");
        repairs_hold(workload, limits, rules, every, &exact, tally, &context);
        return;
    };
    let free = every.best(f64::INFINITY, rules).expect("more memory leaves the plan that is there").0;
    if free < value {
        tally.tight += 1;
    } else {
        tally.loose += 1;
    }
    assert_eq!(exact.status, Status::Optimal, "{context}: {value} is possible");
    let objective = exact.objective.unwrap();
    assert!(close(objective, value), "{context}: finds {objective}, {value} is possible");
    assert_eq!(exact.lower_bound, exact.objective, "{context}");
    let stages = &exact.plan.as_ref().unwrap().stages;
    assert!(rules.stages.is_none_or(|count| stages.len() == count), "{context}: has {} stages", stages.len());
    let replicas: u32 = stages.iter().map(|stage| stage.data_parallel).sum();
    assert!(rules.most_replicas.is_none_or(|most| replicas as usize <= most), "{context}: has {replicas} replicas");
    tally.fewer_replicas += usize::from(rules.most_replicas == Some(replicas as usize));
    tally.stages_as_asked += usize::from(rules.stages.is_some());
    tally.several_stages += usize::from(stages.len() > 1);
    tally.several_replicas += usize::from(stages.iter().any(|stage| stage.data_parallel > 1));
    if rules.cumulative {
        let published = every.best(limits.memory_limit(), Rules { cumulative: false, ..rules });
        tally.rounded_on += 1;
        tally.rounded_on_slower += usize::from(published.is_some_and(|published| published.0 < value));
    }
    tally.split_tensors += usize::from(stages.iter().any(|stage| stage.tensor_parallel > 1));
    let greedy = plan(workload, limits, &options(rules, "greedy"));
    let by_ratio = greedy.objective.unwrap_or_else(|| panic!("{context}: greedy finds no plan"));
    assert!(by_ratio >= value * (1.0 - 1e-9), "{context}: greedy {by_ratio}, best {value}");
    tally.greedy_worse += usize::from(by_ratio > value * (1.0 + 1e-9));
}

fn random_rules(random: &mut Random) -> Rules {
    Rules {
        data_parallel: random.chance(75),
        tensor_parallel: random.chance(75),
        modes: random.pick(&[Modes::Any, Modes::Any, Modes::Never, Modes::Always, Modes::AllOrNone]),
        stages: random.chance(40).then(|| 1 + random.below(4)),
        most_replicas: random.chance(30).then(|| 1 + random.below(5)),
        cumulative: random.chance(30),
    }
}

/// Memory limits of all kinds for one workload: one with which nothing fits, amounts that some stage needs exactly or
/// nearly, and plenty.
fn memory_limits(random: &mut Random, every: &EveryPlan<'_>, rules: Rules) -> Vec<f64> {
    let steps = every.memory_steps();
    let mut limits = vec![1e9];
    if let Some(least) = every.least_memory(rules) {
        limits.push(least);
        limits.push(least * 0.9 + 1e-6);
        let above: Vec<f64> = steps.iter().copied().filter(|&step| step >= least).collect();
        limits.push(above[random.below(above.len())]);
        limits.push(above[random.below(above.len().min(12))] * random.pick(&[1.0, 1.0, 1.001, 0.999]));
    }
    limits.retain(|&bytes| bytes > 0.0);
    limits
}

/// Whatever Piper may choose.
const EVERYTHING: Rules = Rules {
    data_parallel: true,
    tensor_parallel: true,
    modes: Modes::Any,
    stages: None,
    most_replicas: None,
    cumulative: false,
};

#[test]
fn finds_the_best_of_all_plans() {
    let all = EVERYTHING;
    let mut tally = Tally::default();
    for seed in 0..600 {
        let mut random = Random(seed);
        let n = 1 + random.below(7);
        let flavour = Flavour {
            whole: random.chance(60),
            uniform: random.chance(60),
            all_recompute: random.chance(50),
            most_modes: if n > 5 { 2 } else { 3 },
        };
        let edges = edges(&mut random, n);
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let limits = Limits {
            cpus: 0,
            devices: 1 + random.below(5) as u32,
            memory_bytes: Some(f64::INFINITY),
            microbatches: random.pick(&[1, 2, 3, 4, 6, 7, 12, 24]),
            bandwidth_bytes_per_s: Some(random.pick(&[0.5, 2.0, 8.0, 1e6])),
            ..Limits::NEUTRAL
        };
        let every = EveryPlan::new(&workload, &limits);
        for rules in [all, random_rules(&mut random), random_rules(&mut random)] {
            for memory_bytes in memory_limits(&mut random, &every, rules) {
                let limits = Limits { memory_bytes: Some(memory_bytes), ..limits.clone() };
                compare(&workload, &limits, rules, &every, &mut tally, &format!("seed {seed}"));
            }
        }
    }
    println!("{tally:?}");
    assert!(tally.rounded_on > 500, "{tally:?}");
    assert!(tally.stages_as_asked > 300 && tally.fewer_replicas > 200, "{tally:?}");
    assert!(tally.infeasible > 500 && tally.tight > 500 && tally.loose > 500, "{tally:?}");
    assert!(tally.named_memory > 300 && tally.named_devices > 100 && tally.greedy_worse > 20, "{tally:?}");
    assert!(tally.several_stages > 300 && tally.several_replicas > 300 && tally.split_tensors > 100, "{tally:?}");
}

/// Chains on enough devices that stages have different replicas, with as little memory as that a microbatch more in flight
/// counts.
#[test]
fn finds_the_best_of_all_plans_where_warm_ups_are_rounded_on() {
    let mut tally = Tally::default();
    for seed in 0..120 {
        let mut random = Random(seed);
        let n = 3 + random.below(2);
        let flavour = Flavour {
            whole: random.chance(60),
            uniform: random.chance(60),
            all_recompute: random.chance(50),
            most_modes: 2,
        };
        let edges = (1..n as u32).map(|v| (v - 1, v)).collect();
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let limits = Limits {
            cpus: 0,
            devices: 4 + random.below(4) as u32,
            memory_bytes: Some(f64::INFINITY),
            microbatches: random.pick(&[4, 6, 8, 12]),
            bandwidth_bytes_per_s: Some(random.pick(&[8.0, 1e6])),
            ..Limits::NEUTRAL
        };
        let every = EveryPlan::new(&workload, &limits);
        let free = Rules { cumulative: true, ..EVERYTHING };
        for rules in [free, Rules { cumulative: true, ..random_rules(&mut random) }] {
            for memory_bytes in memory_limits(&mut random, &every, rules) {
                let limits = Limits { memory_bytes: Some(memory_bytes), ..limits.clone() };
                compare(&workload, &limits, rules, &every, &mut tally, &format!("rounded on, seed {seed}"));
            }
        }
    }
    println!("{tally:?}");
    assert!(tally.rounded_on > 300 && tally.rounded_on_slower > 5, "{tally:?}");
}

/// Enough sets that inner sets are walked through rather than tried in turn, that levels are shared out among threads,
/// and that chains of sets give a first plan.
#[test]
fn finds_the_best_of_all_plans_of_wide_graphs() {
    let mut tally = Tally::default();
    for seed in 0..3 {
        let mut random = Random(seed);
        let n = 11;
        let flavour = Flavour { whole: seed % 2 == 0, uniform: seed % 3 != 0, all_recompute: true, most_modes: 2 };
        let edges = if random.chance(50) { vec![] } else { vec![(4, 2)] };
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let limits = Limits {
            cpus: 0,
            devices: 2,
            memory_bytes: Some(f64::INFINITY),
            microbatches: random.pick(&[2, 4]),
            bandwidth_bytes_per_s: Some(2.0),
            ..Limits::NEUTRAL
        };
        let every = EveryPlan::new(&workload, &limits);
        for modes in [Modes::Any, Modes::AllOrNone] {
            let rules = Rules {
                data_parallel: true,
                tensor_parallel: true,
                modes,
                stages: None,
                most_replicas: None,
                cumulative: false,
            };
            for memory_bytes in memory_limits(&mut random, &every, rules) {
                let limits = Limits { memory_bytes: Some(memory_bytes), ..limits.clone() };
                compare(&workload, &limits, rules, &every, &mut tally, &format!("wide seed {seed}"));
            }
        }
    }
    assert!(tally.infeasible > 2 && tally.tight > 2 && tally.loose > 2, "{tally:?}");
}

/// Files exclude a degree or a mode by giving it an absurd figure; the small figures beside it still count.
#[test]
fn absurd_figures_hide_nothing() {
    let mut tally = Tally::default();
    for seed in 0..600 {
        let mut random = Random(seed);
        let n = 2 + random.below(4);
        let flavour =
            Flavour { whole: random.chance(50), uniform: random.chance(70), all_recompute: false, most_modes: 2 };
        let edges = edges(&mut random, n);
        let mut workload = workload(&mut random, n, edges, flavour);
        let Profile::Piper(profile) = &mut workload.profile else { panic!("made above") };
        let absurd = random.pick(&[1e15, 1e18, 1e30, 1e60]);
        // What shuts out a mode; what shuts out a cut.
        let kind = if seed < 300 { random.below(4) } else { 4 + random.below(4) };
        let absurd = if kind >= 4 { random.pick(&[1e8, 1e18, 1e30]) } else { absurd };
        for node in &mut profile.nodes {
            for mode in node.degrees.iter_mut().flat_map(|degree| &mut degree.modes) {
                if random.chance(25) {
                    match kind {
                        0 => mode.time_s = absurd,
                        1 => mode.memory_a = absurd,
                        2 => mode.memory_b = absurd,
                        3 => (mode.time_s, mode.memory_b) = (absurd, absurd),
                        4 => mode.parameters *= absurd,
                        5 => mode.sync_in.iter_mut().chain(&mut mode.sync_out).for_each(|bytes| *bytes *= absurd),
                        _ => {}
                    }
                }
            }
        }
        for bytes in profile.edge_bytes.iter_mut().filter(|_| kind >= 6) {
            *bytes = if random.chance(40) { absurd / 7.0 } else { *bytes };
        }
        let workload = Arc::new(workload);
        let limits = Limits {
            cpus: 0,
            devices: 1 + random.below(4) as u32,
            memory_bytes: Some(f64::INFINITY),
            microbatches: random.pick(&[2, 4, 6]),
            bandwidth_bytes_per_s: Some(2.0),
            ..Limits::NEUTRAL
        };
        let every = EveryPlan::new(&workload, &limits);
        let rules = EVERYTHING;
        // Beside an absurd limit a few bytes are within rounding, and nothing is claimed.
        for memory_bytes in memory_limits(&mut random, &every, rules).into_iter().filter(|&bytes| bytes < 1e10) {
            let limits = Limits { memory_bytes: Some(memory_bytes), ..limits.clone() };
            compare(&workload, &limits, rules, &every, &mut tally, &format!("absurd seed {seed}"));
        }
    }
    assert!(tally.infeasible > 50 && tally.tight > 50 && tally.loose > 50, "{tally:?}");
}
