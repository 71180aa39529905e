//! PaSE against every configuration of small random graphs, and its costs against the independent check.

use std::sync::Arc;

use crate::common::{
    random_operators::{loaded, random_operators},
    random_placement::numbers,
};
use plantui::{
    cluster::Limits,
    family::check,
    plan::{Measure, Plan, Stage},
    planner::{
        self, Options, Problem, Search, Status,
        pase::{
            PaseSettings,
            bounds::Bounds,
            memory,
            model::PaseModel,
            order::Order,
            solve::{Method, solve},
        },
    },
    run,
    workload::{
        Choice, NodeIndex, OperatorProfile, Workload,
        operators::{BatchNorm, CostRules, InputSpec, Operator, OperatorKind, Source},
    },
};

/// Combinations that are gone through for one graph.
const MOST_COMBINATIONS: usize = 40_000;

/// A graph with settings under which every combination can be tried.
struct Case {
    profile: OperatorProfile,
    settings: PaseSettings,
    model: PaseModel,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut draw = numbers(seed + 1000);
        let profile = random_operators(seed, 7);
        let rules = CostRules {
            parallel_edges: draw(2) == 0,
            batch_norm: if draw(2) == 0 { BatchNorm::Published } else { BatchNorm::PerChannel },
        };
        let mut settings = PaseSettings {
            devices: 2 + draw(11) as u32,
            cutoff: profile.cutoff,
            flops_per_s: 10f64.powi(draw(4) as i32),
            bandwidth_bytes_per_s: 8.0 * (1 + draw(20)) as f64,
            rules,
        };
        loop {
            let model = PaseModel::new(&profile, &settings).unwrap();
            let combinations = model.spaces.iter().fold(1usize, |product, space| product.saturating_mul(space.len()));
            if combinations <= MOST_COMBINATIONS {
                return Case { profile, settings, model };
            }
            settings.devices -= 1;
        }
    }

    /// Every combination of labels.
    fn each(&self, mut look: impl FnMut(&[usize])) {
        let sizes: Vec<usize> = self.model.spaces.iter().map(|space| space.len()).collect();
        let mut labels = vec![0; sizes.len()];
        loop {
            look(&labels);
            let Some(at) = (0..sizes.len()).find(|&at| labels[at] + 1 < sizes[at]) else { return };
            labels[at] += 1;
            labels[..at].fill(0);
        }
    }

    fn minimum(&self, allowed: impl Fn(&[usize]) -> bool) -> Option<f64> {
        let mut least: Option<f64> = None;
        self.each(|labels| {
            if allowed(labels) {
                let cost = self.model.pairwise.cost(labels);
                least = Some(least.map_or(cost, |least| least.min(cost)));
            }
        });
        least
    }

    fn limits(&self, memory_bytes: f64) -> Limits {
        let PaseSettings { devices, flops_per_s, bandwidth_bytes_per_s, .. } = self.settings;
        Limits {
            devices,
            flops_per_s: Some(flops_per_s),
            bandwidth_bytes_per_s: Some(bandwidth_bytes_per_s),
            memory_bytes: Some(memory_bytes),
            ..Limits::NEUTRAL
        }
    }

    fn plan(&self, labels: &[usize]) -> Plan {
        let choices = labels
            .iter()
            .enumerate()
            .map(|(node, &label)| self.profile.operators[node].split(self.model.spaces[node].get(label)))
            .map(Choice::Split);
        let stage = Stage {
            nodes: NodeIndex::first(labels.len()).collect(),
            choices: choices.collect(),
            data_parallel: 1,
            tensor_parallel: self.settings.devices,
            devices: (0..self.settings.devices).collect(),
        };
        Plan { stages: vec![stage], measure: Measure::OperatorCost(self.settings.rules), ..Plan::default() }
    }

    fn problem(&self, workload: &Arc<Workload>, memory_bytes: f64) -> Problem {
        let CostRules { parallel_edges, batch_norm } = self.settings.rules;
        let options = [
            if parallel_edges { "parallel_edges=all" } else { "parallel_edges=last" },
            if batch_norm == BatchNorm::PerChannel { "batch_norm=per-channel" } else { "batch_norm=published" },
        ];
        let pase = planner::find("pase").unwrap();
        let options = Options::parse("pase", pase.options(), options).unwrap();
        Problem { workload: workload.clone(), limits: self.limits(memory_bytes), options }
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

#[test]
fn every_method_finds_the_least_of_all_combinations() {
    let mut parallel = 0;
    for seed in 0..400 {
        let case = Case::new(seed);
        let least = case.minimum(|_| true).unwrap();
        for (order, bounds) in [
            (Order::MinDegree, true),
            (Order::MinDegree, false),
            (Order::BreadthFirst, true),
            (Order::BreadthFirst, false),
        ] {
            let start = vec![0; case.model.spaces.len()];
            let found = solve(&case.model.pairwise, start, Method { order, bounds }, &Search::default(), |_, _| {});
            assert!(close(found.cost, least), "seed {seed} {order:?} {bounds}: {} instead of {least}", found.cost);
            assert!(found.proven && found.lower == found.cost, "seed {seed} {order:?} {bounds}");
            assert!(close(case.model.pairwise.cost(&found.labels), found.cost), "seed {seed}");
        }
        parallel += usize::from(case.profile.links().iter().any(|link| link.slots.len() > 1));
    }
    assert!(parallel > 50, "{parallel} graphs have parallel edges");
}

#[test]
fn bounds_hold_after_every_sweep_and_keep_a_best_labelling() {
    for seed in 400..600 {
        let case = Case::new(seed);
        let least = case.minimum(|_| true).unwrap();
        let mut bounds = Bounds::new(case.model.pairwise.clone(), vec![0; case.model.spaces.len()]);
        for sweep in 0..20 {
            bounds.sweep(&Search::default());
            let (lower, upper) = (bounds.lower, bounds.upper);
            assert!(lower <= least * (1.0 + 1e-12) && upper >= least * (1.0 - 1e-12), "seed {seed}: {lower} {upper}");
            let mut left = None;
            case.each(|labels| {
                let alive = labels.iter().zip(&bounds.alive).all(|(&label, alive)| alive.contains(&(label as u32)));
                if alive && left.is_none() && close(case.model.pairwise.cost(labels), least) {
                    left = Some(());
                }
            });
            assert!(left.is_some(), "seed {seed}: sweep {sweep} deleted every best labelling");
            if sweep == 2 {
                break;
            }
        }
    }
}

#[test]
fn the_check_measures_what_the_search_adds_up() {
    for seed in 0..400 {
        let case = Case::new(seed);
        let workload = loaded(&case.profile);
        assert_eq!(workload.operators(), Some(&case.profile), "seed {seed}: reading gives what was written");
        let mut draw = numbers(seed + 7);
        for _ in 0..20 {
            let labels: Vec<usize> = case.model.spaces.iter().map(|space| draw(space.len())).collect();
            let score = check(&workload, &case.limits(f64::MAX), &case.plan(&labels));
            assert!(score.is_valid(), "seed {seed}: {}", score.violations[0]);
            let cost = case.model.pairwise.cost(&labels);
            assert!(close(score.value, cost), "seed {seed}: checked {}, searched {cost}", score.value);
            let stage = &score.stages[0];
            let parts = stage.compute_s + stage.communication_s + stage.sync_s;
            assert!((parts - stage.load_s).abs() <= 1e-9 * parts, "seed {seed}");
            let bytes = case.profile.operators.iter().zip(&case.model.spaces).zip(&labels);
            let bytes: f64 = bytes.map(|((operator, space), &label)| memory::bytes(operator, space.get(label))).sum();
            assert!(close(bytes, stage.memory_bytes), "seed {seed}: {bytes} {}", stage.memory_bytes);
        }
    }
}

#[test]
fn what_fits_into_memory_is_the_least_of_all_that_fits() {
    let pase = planner::find("pase").unwrap();
    let mut limited = 0;
    for seed in 0..150 {
        let case = Case::new(seed);
        let workload = Arc::new(loaded(&case.profile));
        let bytes = |labels: &[usize]| -> f64 {
            let each = case.profile.operators.iter().zip(&case.model.spaces).zip(labels);
            each.map(|((operator, space), &label)| memory::bytes(operator, space.get(label))).sum()
        };
        let (mut least, mut most) = (f64::INFINITY, 0f64);
        case.each(|labels| {
            let bytes = bytes(labels);
            (least, most) = (least.min(bytes), most.max(bytes));
        });
        if least == 0.0 {
            // Nothing but views.
            continue;
        }
        let (outcome, _) = run::plan(pase, &case.problem(&workload, least * 0.99), &Search::default()).unwrap();
        assert_eq!(outcome.status, Status::Infeasible, "seed {seed}");
        let smallest = outcome.infeasible.unwrap().smallest_memory_bytes.unwrap();
        assert!(close(smallest, least), "seed {seed}: {smallest} {least}");
        for share in [0.0, 0.3, 0.7] {
            let limit = least * (1.0 + 1e-9) + share * (most - least);
            let best = case.minimum(|labels| bytes(labels) <= limit).unwrap();
            let (outcome, score) = run::plan(pase, &case.problem(&workload, limit), &Search::default()).unwrap();
            let (value, lower) = (outcome.objective.unwrap(), outcome.lower_bound.unwrap_or(0.0));
            assert!(score.unwrap().peak_memory_bytes() <= limit, "seed {seed}");
            assert_eq!(outcome.status, Status::Optimal, "seed {seed}");
            assert!(close(value, best) && lower == value, "seed {seed}: {lower} {best} {value}");
            limited += 1;
        }
    }
    assert!(limited > 300, "{limited} limited plans");
}

/// PaSE on a workload with a search that was cancelled before it began.
fn stopped(problem: &Problem) -> planner::Outcome {
    let search = Search::default();
    search.cancel();
    let outcome = planner::find("pase").unwrap().plan(problem, &search);
    assert_eq!(outcome.status, Status::Cancelled);
    outcome
}

#[test]
fn before_any_search_there_are_a_plan_and_a_bound_that_holds() {
    for seed in 0..60 {
        let case = Case::new(seed);
        let workload = Arc::new(loaded(&case.profile));
        let outcome = stopped(&case.problem(&workload, f64::MAX));
        let score = check(&workload, &case.limits(f64::MAX), outcome.plan.as_ref().unwrap());
        assert!(score.is_valid() && close(score.value, outcome.objective.unwrap()), "seed {seed}");
        let least = case.minimum(|_| true).unwrap();
        assert!(outcome.lower_bound.unwrap() <= least * (1.0 + 1e-9), "seed {seed}: bound above {least}");
    }
}

#[test]
fn a_chain_of_twenty_thousand_operators_has_a_plan_before_any_search() {
    let mut operators: Vec<Operator> = vec![];
    for node in 0..20_000 {
        let input = match node {
            0 => InputSpec::outside(vec![64, 8]),
            _ => InputSpec::output(&operators, Source { node: NodeIndex::new(node - 1), output: 0 }).unwrap(),
        };
        operators
            .push(Operator::new(OperatorKind::Dense { units: 8 + node as u64 % 8, pointwise: 0 }, &[input]).unwrap());
    }
    let workload = Arc::new(loaded(&OperatorProfile { operators, cutoff: 1 }));
    let limits = Limits { devices: 8, flops_per_s: Some(1e12), bandwidth_bytes_per_s: Some(1e10), ..Limits::NEUTRAL };
    let options = Options::defaults(planner::find("pase").unwrap().options());
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    let outcome = stopped(&problem);
    assert!(check(&workload, &limits, outcome.plan.as_ref().unwrap()).is_valid());
    let (found, score) = run::plan(planner::find("pase").unwrap(), &problem, &Search::default()).unwrap();
    assert_eq!(found.status, Status::Optimal);
    assert!(score.unwrap().value <= outcome.objective.unwrap());
}
