//! Between what DAPPLE cuts a network: all states where branches allow few enough of them, one order of the layers where they
//! do not, and what is proven then.

use std::{fmt::Write, thread, time::Duration};

use crate::common::random_layers::{Dice, limits, problem};
use plantui::{
    cluster::Limits,
    family::{self, check},
    plan::{Plan, Stage},
    planner::{self, OptionError, OptionValue, Problem, Search, Status, dapple::hpgo::placement},
    run,
    workload::{self, Choice, NodeIndex, Workload, states::States},
};

fn layer(text: &mut String, i: usize, dice: &mut Dice) {
    let (forward, backward) = (1 + dice.below(20), 1 + dice.below(40));
    let (activation, parameters) = (dice.below(20) * 1_000_000, dice.pick(&[0, 1, 10, 100]) * 1_000_000);
    writeln!(
        text,
        "node{i} -- layer{i} -- forward_compute_time={forward}, backward_compute_time={backward}, activation_size={activation}, parameter_size={parameters}"
    )
    .unwrap();
}

fn load(text: &str) -> Workload {
    workload::load_bytes(text.as_bytes(), "random.txt", "random").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A layer, `width` layers side by side, and one that needs them all.
fn fan(width: usize) -> Workload {
    let (mut text, mut dice) = (String::new(), Dice::new(3));
    (0..width + 2).for_each(|i| layer(&mut text, i, &mut dice));
    for i in 1..=width {
        writeln!(text, "\tnode0 -- node{i}\n\tnode{i} -- node{}", width + 1).unwrap();
    }
    load(&text)
}

/// A network in which every layer but the first needs one or two earlier ones.
fn branching(dice: &mut Dice, layers: usize) -> Workload {
    let mut text = String::new();
    (0..layers).for_each(|i| layer(&mut text, i, dice));
    for i in 1..layers {
        let first = dice.below(i as u64);
        writeln!(text, "\tnode{first} -- node{i}").unwrap();
        let second = dice.below(i as u64);
        if second != first {
            writeln!(text, "\tnode{second} -- node{i}").unwrap();
        }
    }
    load(&text)
}

fn with_states(mut problem: Problem, states: &'static str) -> Problem {
    problem.options.set("states", OptionValue::Choice(states));
    problem
}

#[test]
fn too_many_branches_are_cut_along_one_order_unless_antichains_are_asked_for() {
    for id in ["dapple", "dapple-hpgo"] {
        let planner = planner::find(id).unwrap();
        let problem = |states| with_states(problem(planner, fan(13), limits(&[2, 2], 16, 1e12), &[]), states);
        let (auto, _) = run::plan(planner, &problem("auto"), &Search::default()).unwrap();
        let (order, _) = run::plan(planner, &problem("order"), &Search::default()).unwrap();
        assert!(auto.plan.is_some() && auto.objective == order.objective, "{id}");
        assert!(auto.notes.iter().any(|note| note.contains("more than 4096 states") && note.contains("one order")));
        assert!(order.notes.iter().any(|note| note.starts_with("the network is cut along one order")));
        if id == "dapple" {
            assert!(auto.lower_bound.is_some() && auto.proven_among.as_deref() == Some("plans along one order"));
        }
        planner.check_options(&problem("auto")).unwrap();
        planner.check_options(&problem("order")).unwrap();
        let Err(OptionError::Unsuited { why, repair, .. }) = planner.check_options(&problem("antichains")) else {
            panic!("{id} takes antichains")
        };
        assert!(why.contains("4096") && repair.contains("states=order"), "{why}: {repair}");
        let (refused, _) = run::plan(planner, &problem("antichains"), &Search::default()).unwrap();
        assert!(refused.plan.is_none() && refused.infeasible.is_some());
    }
}

#[test]
fn few_branches_are_cut_everywhere() {
    let planner = planner::find("dapple").unwrap();
    let problem = |states| with_states(problem(planner, fan(4), limits(&[2, 2], 16, 1e12), &[]), states);
    let (auto, _) = run::plan(planner, &problem("auto"), &Search::default()).unwrap();
    let (all, _) = run::plan(planner, &problem("antichains"), &Search::default()).unwrap();
    let (order, _) = run::plan(planner, &problem("order"), &Search::default()).unwrap();
    assert_eq!(auto.plan, all.plan);
    assert!(auto.status == Status::Optimal && auto.proven_among.is_none());
    assert_eq!(order.proven_among.as_deref(), Some("plans along one order"));
    assert!(order.objective <= all.objective);
}

#[test]
fn a_chain_has_one_order_and_so_nothing_is_left_to_prove() {
    let planner = planner::find("dapple").unwrap();
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        // A chain with skips.
        let chain = crate::common::random_layers::workload(&mut dice, 6);
        let problem = |states| with_states(problem(planner, chain.clone(), limits(&[2, 2], 16, 1e12), &[]), states);
        let (order, _) = run::plan(planner, &problem("order"), &Search::default()).unwrap();
        let (all, _) = run::plan(planner, &problem("antichains"), &Search::default()).unwrap();
        assert_eq!((order.objective, order.lower_bound), (all.objective, all.lower_bound), "seed {seed}");
        assert_eq!((order.status, order.proven_among.clone()), (all.status, None), "seed {seed}");
        assert!(!order.notes.iter().any(|note| note.contains("one order")), "seed {seed}");
    }
}

/// A chain of layers.
fn long_chain(layers: usize) -> Workload {
    let (mut text, mut dice) = (String::new(), Dice::new(7));
    (0..layers).for_each(|i| layer(&mut text, i, &mut dice));
    for i in 1..layers {
        writeln!(text, "\tnode{} -- node{i}", i - 1).unwrap();
    }
    load(&text)
}

#[test]
fn many_devices_and_states_are_searched_within_bounds() {
    for machines in [&[8; 8][..], &[8; 16]] {
        let planner = planner::find("dapple").unwrap();
        let problem = problem(planner, fan(10), limits(machines, 512, 2e9), &[]);
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        assert!(score.is_some_and(|score| score.is_valid()));
        let count = |asked: &str| outcome.statistics.counts.iter().find(|(name, _)| *name == asked).unwrap().1;
        assert!(count("states") > 1_000.0 && count("tried") > 0.0 && count("tried") < 3e8, "{outcome:?}");
        // Places are coarse: there is no proof, and a bound that is none.
        let devices: usize = machines.iter().map(|&size| usize::from(size)).sum();
        assert_eq!((outcome.status, outcome.lower_bound), (Status::Feasible, Some(devices as f64)));
    }
}

#[test]
fn a_long_chain_has_a_plan_and_a_bound_before_the_search_begins() {
    for (id, layers) in [("dapple", 2_000), ("dapple", 20_000), ("dapple-hpgo", 2_000), ("dapple-hpgo", 20_000)] {
        let planner = planner::find(id).unwrap();
        let problem = problem(planner, long_chain(layers), limits(&[4, 4, 8], 64, 1e15), &[]);
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
        assert!(!search.deadline_passed() && score.is_some_and(|score| score.is_valid()), "{id} {layers}");
        if id == "dapple-hpgo" && outcome.status == Status::Feasible {
            // The published planner went through all that it looks at, and proves nothing: some states, or all of them.
            assert!(outcome.lower_bound.is_none_or(|bound| bound == 16.0), "{:?}", outcome.lower_bound);
            continue;
        }
        let (bound, value) = (outcome.lower_bound.unwrap(), outcome.objective.unwrap());
        assert!(value <= bound && bound <= 3.0 * value, "{id} {layers}: {value} of at most {bound}");
    }
}

#[test]
fn some_states_of_many_are_the_same_states() {
    let workload = long_chain(300);
    let profile = workload.layers().unwrap();
    for all in [States::of(&workload, profile).unwrap(), States::along_order(&workload, profile).unwrap()] {
        let few = all.thinned(7);
        assert_eq!((few.len(), few.number(6), few.is_chain()), (7, 299, true));
        for state in 0..few.len() {
            let number = few.number(state) as usize;
            assert_eq!(few.covered(state), all.covered(number));
            assert_eq!(
                (few.compute_s[state], few.output_bytes[state]),
                (all.compute_s[number], all.output_bytes[number])
            );
            assert_eq!(few.before(state).collect::<Vec<_>>(), (0..state).collect::<Vec<_>>());
            assert_eq!(few.nodes(0, state), all.nodes(0, number));
            assert!(few.is_cut(state));
        }
        assert_eq!(all.thinned(300).len(), 300);
    }
    // Branches do not matter along an order, and the sums are the same as those over sets.
    let (order, sets) = (States::along_order(&fan(4), fan(4).layers().unwrap()), long_chain(5));
    assert_eq!(order.unwrap().output_bytes.len(), 6);
    let (a, b) = (States::of(&sets, sets.layers().unwrap()), States::along_order(&sets, sets.layers().unwrap()));
    assert_eq!(a.unwrap().activation_bytes, b.unwrap().activation_bytes);
}

/// The best plan of all that cut a network into sets closed under what they need.
struct Every<'a> {
    workload: &'a Workload,
    limits: Limits,
    needs: Vec<u32>,
    best: f64,
}

impl Every<'_> {
    fn from(&mut self, done: u32, occupied: placement::Devices, plan: &mut Plan) {
        let n = self.needs.len();
        let all = (1u32 << n) - 1;
        if done == all {
            let score = check(self.workload, &self.limits, plan);
            if score.is_valid() {
                self.best = self.best.max(score.value);
            }
            return;
        }
        let free = self.limits.devices - occupied.count();
        for set in 1..=all {
            let after = done | set;
            let closed = (0..n).all(|v| after >> v & 1 == 0 || self.needs[v] & !after == 0);
            if set & done != 0 || !closed {
                continue;
            }
            let nodes: Vec<usize> = (0..n).filter(|v| set >> v & 1 == 1).collect();
            for need in 1..=free {
                for devices in placement::next(&self.limits.machines, occupied, need) {
                    plan.stages.push(Stage {
                        choices: vec![Choice::Keep; nodes.len()],
                        nodes: NodeIndex::list(nodes.iter().copied()),
                        data_parallel: need,
                        tensor_parallel: 1,
                        devices: placement::ids(devices),
                    });
                    self.from(after, occupied | devices, plan);
                    plan.stages.pop();
                }
            }
        }
    }
}

#[test]
fn no_cut_of_a_branching_network_beats_what_is_proven() {
    let planner = planner::find("dapple").unwrap();
    let (mut several, mut branches) = (0, 0);
    for seed in 0..150 {
        let mut dice = Dice::new(seed + 77);
        let layers = 3 + dice.below(3) as usize;
        let network = branching(&mut dice, layers);
        let machines = dice.pick::<&[u16]>(&[&[3], &[2, 1], &[1, 1, 1]]);
        let limits = limits(machines, dice.pick(&[4, 16, 64]), dice.pick(&[1e12, 3e8]));
        let settings = [("profile_batch", 4.0), ("optimizer_memory_scaling", 2.0)];
        let mut problem = problem(planner, network, limits.clone(), &settings);
        problem.options.set("recompute", OptionValue::Choice("never"));
        let (outcome, _) = run::plan(planner, &problem, &Search::default()).unwrap();
        let workload = &*problem.workload;
        let needs = (0..layers).map(|v| workload.dag.predecessors(v).fold(0, |set, u| set | 1 << u)).collect();
        let options = problem.options.iter().map(|(name, value)| (name.to_string(), value.json())).collect();
        let measure = family::of(workload).measures(&options)[0];
        let mut every = Every { workload, limits, needs, best: 0.0 };
        every.from(0, placement::Devices::default(), &mut Plan { measure, ..Plan::default() });
        let bound = outcome.lower_bound.unwrap_or(0.0);
        assert!((every.best - bound).abs() <= 1e-9 * bound, "seed {seed}: {bound}, but {} is possible", every.best);
        several += usize::from(outcome.plan.is_some_and(|plan| plan.stages.len() > 1));
        branches += usize::from(!States::of(workload, workload.layers().unwrap()).unwrap().one_order);
    }
    assert!(several > 50 && branches > 80, "{several} with several stages, {branches} branch");
}
