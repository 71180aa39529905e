//! DAPPLE against trying everything: all cuts, replicas, places and recomputations of small problems, each plan measured by
//! the independent check.

use crate::common::random_layers::{Dice, limits, problem, workload};
use plantui::{
    cluster::Limits,
    family::{self, check, layers::costs},
    plan::{Measure, Plan, Stage},
    planner::{self, OptionValue, Problem, Search, Status, dapple::hpgo::placement},
    run,
    simulate::{Schedule, SimulatorSettings, simulate},
    workload::{
        Choice, Workload,
        states::{States, planned_nodes},
    },
};

/// Every plan of a problem, shown one by one.
struct Every<'a> {
    workload: &'a Workload,
    states: States,
    limits: Limits,
    measure: Measure,
    /// What stages may choose; if it is nothing, they recompute where they would not fit otherwise.
    choices: &'a [Choice],
    /// Only plans with so many stages.
    stages: Option<usize>,
    /// Best valid speed-up, and how many plans were tried.
    best: Option<f64>,
    tried: usize,
}

impl Every<'_> {
    /// Adds stages from a state on, on devices that are free, then scores.
    fn from(&mut self, state: usize, occupied: placement::Devices, plan: &mut Plan) {
        let last = self.states.len() - 1;
        if state > last {
            if self.stages.is_some_and(|asked| asked != plan.stages.len()) {
                return;
            }
            self.tried += 1;
            if self.choices.is_empty() {
                plan.stages.iter_mut().for_each(|stage| stage.choices.fill(Choice::Keep));
                let kept = check(self.workload, &self.limits, plan);
                for (stage, kept) in plan.stages.iter_mut().zip(&kept.stages) {
                    if kept.memory_bytes > self.limits.memory() {
                        stage.choices.fill(Choice::Recompute);
                    }
                }
            }
            let score = check(self.workload, &self.limits, plan);
            if score.is_valid() && self.best.is_none_or(|best| score.value > best) {
                self.best = Some(score.value);
            }
            return;
        }
        let free = self.limits.devices - occupied.count();
        for to in state..=last {
            for need in 1..=free {
                for devices in placement::next(&self.limits.machines, occupied, need) {
                    for choice in if self.choices.is_empty() { &[Choice::Keep] } else { self.choices } {
                        let nodes = self.states.nodes(state, to);
                        plan.stages.push(Stage {
                            choices: vec![choice.clone(); nodes.len()],
                            nodes,
                            data_parallel: need,
                            tensor_parallel: 1,
                            devices: placement::ids(devices),
                        });
                        self.from(to + 1, occupied | devices, plan);
                        plan.stages.pop();
                    }
                }
            }
        }
    }
}

/// The best of all plans, and their number.
fn best_of_all(problem: &Problem, measure: Measure, choices: &[Choice], stages: Option<usize>) -> (Option<f64>, usize) {
    let workload = &*problem.workload;
    let states = States::of(workload, workload.layers().unwrap()).unwrap();
    let mut every =
        Every { workload, states, limits: problem.limits.clone(), measure, choices, stages, best: None, tried: 0 };
    let mut plan = Plan { measure: every.measure, ..Plan::default() };
    every.from(0, placement::Devices::default(), &mut plan);
    (every.best, every.tried)
}

#[test]
fn nothing_beats_what_the_planner_proves() {
    let planner = planner::find("dapple").unwrap();
    let (mut proven, mut infeasible, mut several, mut recomputing, mut tried) = (0, 0, 0, 0, 0);
    for seed in 0..600u64 {
        let mut dice = Dice::new(seed + 1);
        let (layers, machines): (usize, &[u16]) = dice.pick::<(usize, &[u16])>(&[
            (6, &[3]),
            (4, &[2, 2]),
            (5, &[2, 1]),
            (4, &[1, 1, 1, 1]),
            (6, &[1, 2]),
            (3, &[4]),
        ]);
        let workload = workload(&mut dice, layers);
        let memory = dice.pick(&[1e12, 4e8, 2e8, 1e8, 5e7]);
        let limits = limits(machines, dice.pick(&[4, 16, 64]), memory);
        let settings =
            [("profile_batch", 4.0), ("micro_batch", dice.pick(&[1.0, 2.0])), ("optimizer_memory_scaling", 2.0)];
        let mut problem = problem(planner, workload, limits, &settings);
        let (recompute, choices) = dice.pick::<(&str, &[Choice])>(&[
            ("never", &[Choice::Keep]),
            ("auto", &[Choice::Keep, Choice::Recompute]),
            ("always", &[Choice::Recompute]),
        ]);
        problem.options.set("recompute", OptionValue::Choice(recompute));
        problem.options.set("whole_samples", OptionValue::Flag(dice.below(3) == 0));
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        let measure = outcome
            .plan
            .as_ref()
            .map_or_else(|| family::of(&problem.workload).measures(&json(&problem))[0], |plan| plan.measure);
        let (best, count) = best_of_all(&problem, measure, choices, None);
        tried += count;
        match (best, outcome.lower_bound) {
            (None, None) => {
                assert_eq!(outcome.status, Status::Infeasible, "seed {seed}");
                infeasible += 1;
            }
            (Some(best), Some(bound)) => {
                assert!((best - bound).abs() <= 1e-9 * best, "seed {seed}: {bound}, but {best} is possible");
                proven += 1;
                let plan = outcome.plan.as_ref().unwrap();
                several += usize::from(plan.stages.len() > 1);
                recomputing += usize::from(plan.stages.iter().any(|stage| stage.recomputed() > 0));
                assert!(score.unwrap().value <= best * (1.0 + 1e-9), "seed {seed}");
            }
            other => panic!(
                "seed {seed}: {other:?}, {} states, {recompute}, {:?}, {}, of {count}: {:?}",
                outcome.statistics.counts[0].1,
                problem.limits,
                outcome.notes.join(", "),
                outcome.plan
            ),
        }
    }
    println!(
        "{proven} proven, {infeasible} infeasible, {several} with several stages, {recomputing} recompute; {tried} plans"
    );
    assert!(proven >= 300 && infeasible > 5 && several > 50 && recomputing > 50);
}

/// With more stages behind it a stage may have to recompute. Then its backward pass is longer and hides more of the all-reduces
/// behind it, so that by the formula the plan with more stages may be the better one: so it is for the first network here, as
/// for one of a million drawn at random.
#[test]
fn stages_behind_count_where_they_decide_what_recomputes() {
    let planner = planner::find("dapple").unwrap();
    // By layer: forward and backward milliseconds, megabytes of activations and of parameters.
    type Layers = [[u64; 4]; 4];
    let first: (Layers, u32, f64) = ([[1, 11, 0, 3000], [1, 1, 1, 3000], [3, 1, 3, 1000], [1, 4, 3, 0]], 8, 4e6);
    let drawn = (0..400).map(|seed| {
        let mut dice = Dice::new(seed + 90_000);
        let mut layer =
            || [dice.pick(&[0, 1, 3, 10]), 1 + dice.pick(&[0, 1, 3, 10]), dice.below(4), dice.pick(&[0, 1, 3000])];
        let layers = [layer(), layer(), layer(), layer()];
        (layers, dice.pick(&[8, 16]), dice.pick(&[2e6, 4e6, 8e6, 1.6e7]))
    });
    let (mut recomputing, mut keeping) = (0, 0);
    for (layers, batch, memory) in std::iter::once(first).chain(drawn) {
        let mut text: String = (0..4)
            .map(|i| {
                let [forward, backward, activation, parameters] = layers[i];
                format!(
                    "node{i} -- layer{i} -- forward_compute_time={forward}, backward_compute_time={backward}, \
                     activation_size={activation}000000, parameter_size={parameters}000000\n"
                )
            })
            .collect();
        text.extend((1..4).map(|i| format!("\tnode{} -- node{i}\n", i - 1)));
        let workload = plantui::workload::load_bytes(text.as_bytes(), "four.txt", "four").unwrap();
        let settings = [("profile_batch", 1.0), ("micro_batch", 1.0), ("optimizer_memory_scaling", 1e-4)];
        let problem = problem(planner, workload, limits(&[5], batch, memory), &settings);
        let (outcome, _) = run::plan(planner, &problem, &Search::default()).unwrap();
        let Some(plan) = &outcome.plan else { continue };
        let best = best_of_all(&problem, plan.measure, &[], None).0.unwrap();
        let bound = outcome.lower_bound.unwrap();
        assert!((best - bound).abs() <= 1e-9 * best, "{text}: {bound}, {best} is possible");
        let recomputes = plan.stages.iter().any(|stage| stage.recomputed() > 0);
        *(if recomputes { &mut recomputing } else { &mut keeping }) += 1;
    }
    assert!(recomputing > 50 && keeping > 200, "{recomputing} recompute, {keeping} do not");
}

#[test]
fn nothing_with_as_many_stages_beats_what_the_planner_proves() {
    let planner = planner::find("dapple").unwrap();
    let (mut proven, mut infeasible, mut worse) = (0, 0, 0);
    for seed in 0..200u64 {
        let mut dice = Dice::new(seed + 7000);
        let (layers, machines): (usize, &[u16]) =
            dice.pick::<(usize, &[u16])>(&[(5, &[3]), (4, &[2, 2]), (5, &[2, 1]), (4, &[1, 1, 1]), (3, &[4])]);
        let workload = workload(&mut dice, layers);
        let limits = limits(machines, dice.pick(&[4, 16, 64]), dice.pick(&[1e12, 4e8, 2e8]));
        let settings = [("profile_batch", 4.0), ("optimizer_memory_scaling", 2.0)];
        let mut problem = problem(planner, workload, limits.clone(), &settings);
        problem.options.set("whole_samples", OptionValue::Flag(dice.below(3) == 0));
        let free = run::plan(planner, &problem, &Search::default()).unwrap().0;
        let mut most: Option<f64> = None;
        for stages in 1..=limits.devices as usize + 1 {
            problem.options.set("stages", OptionValue::Number(stages as f64));
            let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
            let plan = outcome.plan.as_ref();
            let measure =
                plan.map_or_else(|| family::of(&problem.workload).measures(&json(&problem))[0], |p| p.measure);
            let (best, _) = best_of_all(&problem, measure, &[Choice::Keep, Choice::Recompute], Some(stages));
            match (best, outcome.lower_bound) {
                (None, None) => {
                    assert_eq!(outcome.status, Status::Infeasible, "seed {seed}, {stages} stages");
                    infeasible += 1;
                }
                (Some(best), Some(bound)) => {
                    assert!(
                        (best - bound).abs() <= 1e-9 * best,
                        "seed {seed}, {stages} stages: {bound}, {best} is possible"
                    );
                    assert_eq!(plan.map(|plan| plan.stages.len()), Some(stages), "seed {seed}");
                    assert!(score.is_some_and(|score| score.is_valid()), "seed {seed}");
                    proven += 1;
                    most = Some(most.unwrap_or(0.0).max(bound));
                    worse += usize::from(free.lower_bound.is_some_and(|all| bound < all * (1.0 - 1e-9)));
                }
                other => panic!("seed {seed}, {stages} stages: {other:?}"),
            }
        }
        // The best with any number of stages is the best of all numbers.
        let (one, all) = (most.unwrap_or(0.0), free.lower_bound.unwrap_or(0.0));
        assert!((one - all).abs() <= 1e-9 * all, "seed {seed}: {one} with a number of stages, {all} without");
    }
    println!("{proven} proven, {worse} of them worse than with any number of stages, {infeasible} infeasible");
    assert!(proven > 400 && worse > 200 && infeasible > 100);
}

/// Times and bytes of every magnitude from 1 to 1e30: what is small still counts where it decides.
#[test]
fn what_is_small_counts_beside_what_is_large() {
    let planner = planner::find("dapple").unwrap();
    let mut several = 0;
    for seed in 0..300u64 {
        let mut dice = Dice::new(seed + 90_000);
        let (layers, machines): (usize, &[u16]) =
            dice.pick::<(usize, &[u16])>(&[(5, &[3]), (4, &[2, 2]), (5, &[2, 1]), (4, &[1, 1, 1]), (3, &[4])]);
        let mut workload = workload(&mut dice, layers);
        let plantui::workload::Profile::Layers(profile) = &mut workload.profile else { panic!("made above") };
        let kind = dice.below(4);
        for node in &mut profile.nodes {
            let far = dice.pick(&[1.0, 1.0, 1e8, 1e18, 1e30]) / 7.0;
            match kind {
                0 => node.parameter_bytes *= far,
                1 => node.activation_bytes.iter_mut().for_each(|bytes| *bytes *= far),
                2 => (node.forward_ms, node.backward_ms) = (node.forward_ms * far, node.backward_ms * far),
                _ => (node.forward_ms, node.parameter_bytes) = (node.forward_ms * far, node.parameter_bytes / far),
            }
        }
        let limits = limits(machines, dice.pick(&[4, 16, 64]), 1e45);
        let settings = [("profile_batch", 4.0), ("optimizer_memory_scaling", 2.0)];
        let problem = problem(planner, workload, limits, &settings);
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        let (plan, value) = (outcome.plan.unwrap(), score.unwrap().value);
        let (best, _) = best_of_all(&problem, plan.measure, &[Choice::Keep, Choice::Recompute], None);
        let (best, bound) = (best.unwrap(), outcome.lower_bound.unwrap());
        assert!((best - bound).abs() <= 1e-9 * best, "seed {seed}: {bound}, but {best} is possible");
        assert!(value <= best * (1.0 + 1e-9), "seed {seed}: {value}, but {best} is possible");
        several += usize::from(plan.stages.len() > 1);
        // What the published planner claims is confirmed, with its faults and without them.
        let published = planner::find("dapple-hpgo").unwrap();
        for faithful in [true, false] {
            let mut options = plantui::planner::Options::defaults(published.options());
            options.set("faithful", OptionValue::Flag(faithful));
            let problem = Problem { options, ..problem.clone() };
            run::plan(published, &problem, &Search::default()).unwrap();
        }
    }
    assert!(several > 30, "{several}");
}

/// The options as the plan JSON carries them.
fn json(problem: &Problem) -> std::collections::BTreeMap<String, serde_json::Value> {
    problem.options.iter().map(|(name, value)| (name.to_string(), value.json())).collect()
}

/// Without links to wait for, the formula is what the simulator measures: exactly where the pivot is the last stage,
/// mostly so elsewhere. (There the paper's formula leaves out that a pivot waits for the stages behind it at the batch's
/// beginning and end, and lets the last stages' all-reduces start a little late.)
#[test]
fn the_simulator_confirms_the_formula() {
    let (mut exact, mut count, mut worst) = (0, 0, 0.0f64);
    for seed in 0..300u64 {
        let mut dice = Dice::new(seed + 1000);
        let workload = workload(&mut dice, 6);
        let limits = limits(&[8], dice.pick(&[8, 32, 128]), 1e15);
        let kept = planned_nodes(&workload);
        let total: f64 = workload
            .layers()
            .unwrap()
            .nodes
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .map(|(n, _)| n.seconds())
            .sum();
        let planner = planner::find("dapple").unwrap();
        let settings = [("nvlink_bandwidth", 1e18), ("profile_batch", 4.0)];
        let problem = problem(planner, workload, limits.clone(), &settings);
        let measure = family::of(&problem.workload).measures(&json(&problem))[0];
        // A random pipeline of three stages.
        let states = States::of(&problem.workload, problem.workload.layers().unwrap()).unwrap();
        let last = states.len() - 1;
        let cut = 1 + dice.below(last as u64 - 2) as usize;
        let mut device = 0;
        let stages = [(0, 0), (1, cut), (cut + 1, last)].map(|(from, to)| {
            let nodes = states.nodes(from, to);
            let count = 1 + dice.below(2) as u32;
            device += count;
            Stage {
                choices: vec![Choice::Keep; nodes.len()],
                nodes,
                data_parallel: count,
                tensor_parallel: 1,
                devices: (device - count..device).collect(),
            }
        });
        let plan = Plan { stages: stages.to_vec(), measure, ..Plan::default() };
        let score = check(&problem.workload, &limits, &plan);
        assert!(score.is_valid(), "{:?}", score.violations);
        let Measure::Speedup(model) = measure else { panic!("a speed-up") };
        let formula_s = total * model.scale(limits.samples()) / score.value;
        let pipeline = family::pipeline(&problem.workload, &limits, &plan, &SimulatorSettings::default());
        let simulated_s = simulate(&pipeline, Schedule::OneForwardOneBackward).iteration_s;
        let difference = simulated_s / formula_s - 1.0;
        let costs = costs::stages(&problem.workload, problem.workload.layers().unwrap(), &limits, &plan, &model);
        let slowest = costs.iter().map(|cost| cost.forward_s + cost.backward_s).fold(0.0, f64::max);
        if costs[2].forward_s + costs[2].backward_s == slowest {
            assert!(difference.abs() < 1e-6, "seed {seed}: the formula says {formula_s}, simulated {simulated_s}");
        }
        exact += usize::from(difference.abs() < 1e-6);
        count += 1;
        worst = worst.max(difference.abs());
    }
    println!("{exact} of {count} exact, at most {worst} apart");
    assert!(exact * 10 >= count * 6 && worst < 0.5, "{exact} of {count} exact, at most {worst} apart");
}
