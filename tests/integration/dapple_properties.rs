//! What must hold of DAPPLE's best plan whatever the network: more of anything never hurts, times scale, names mean nothing.

use crate::common::random_layers::{Dice, limits, problem, text, workload};
use plantui::{
    cluster::Limits,
    planner::{self, OptionValue, Problem, Search},
    run, workload,
};

/// The proven best speed-up; 0 where nothing fits.
fn best(problem: &Problem) -> f64 {
    let (outcome, _) = run::plan(planner::find("dapple").unwrap(), problem, &Search::default()).unwrap();
    assert!(outcome.plan.is_none() || outcome.proven_among.is_none());
    outcome.lower_bound.unwrap_or(0.0)
}

/// A small problem that is solved exactly.
fn random(seed: u64) -> (Problem, Dice) {
    let mut dice = Dice::new(seed + 500);
    let layers = 3 + dice.below(4) as usize;
    let network = workload(&mut dice, layers);
    let machines = dice.pick::<&[u16]>(&[&[3], &[2, 2], &[2, 1], &[1, 1, 1]]);
    let limits = limits(machines, dice.pick(&[4, 16, 64]), dice.pick(&[1e12, 4e8, 2e8]));
    let settings = [("profile_batch", 4.0), ("optimizer_memory_scaling", 2.0)];
    (problem(planner::find("dapple").unwrap(), network, limits, &settings), dice)
}

fn at_least(more: f64, less: f64, what: &str) {
    assert!(more >= less * (1.0 - 1e-9), "{what}: {more} after {less}");
}

#[test]
fn more_memory_or_bandwidth_never_hurts() {
    for seed in 0..120 {
        let (problem, mut dice) = random(seed);
        let before = best(&problem);
        let mut roomy = problem.clone();
        roomy.limits.memory_bytes = Some(roomy.limits.memory() * (1.0 + dice.below(4) as f64));
        at_least(best(&roomy), before, &format!("seed {seed}, memory"));
        let mut fast = problem.clone();
        for link in ["nvlink_bandwidth", "ethernet_bandwidth", "all_reduce_bandwidth"] {
            fast.options.set(link, OptionValue::Number(problem.options.number(link) * 2.0));
        }
        at_least(best(&fast), before, &format!("seed {seed}, bandwidth"));
    }
}

#[test]
fn one_more_machine_or_device_never_hurts() {
    for seed in 0..120 {
        let (problem, mut dice) = random(seed);
        let before = best(&problem);
        let mut sizes = problem.limits.machines.sizes().to_vec();
        sizes.push(1 + dice.below(2) as u16);
        let more = limits(&sizes, problem.limits.samples(), problem.limits.memory_limit());
        at_least(best(&Problem { limits: more, ..problem.clone() }), before, &format!("seed {seed}, {sizes:?}"));
    }
}

/// Times of a profile multiplied by `times`, bytes as they are; bandwidths divided by it keep the plan.
#[test]
fn a_profile_that_takes_longer_over_links_that_are_slower_is_the_same_problem() {
    for seed in 0..60 {
        let (problem, mut dice) = random(seed);
        let times = dice.pick(&[0.5, 2.0, 4.0]);
        let mut slow = (*problem.workload).clone();
        let workload::Profile::Layers(profile) = &mut slow.profile else { panic!("layers") };
        for node in &mut profile.nodes {
            node.forward_ms *= times;
            node.backward_ms *= times;
        }
        let mut slow = Problem { workload: slow.into(), ..problem.clone() };
        for link in ["nvlink_bandwidth", "ethernet_bandwidth", "all_reduce_bandwidth"] {
            slow.options.set(link, OptionValue::Number(problem.options.number(link) / times));
        }
        let (before, after) = (best(&problem), best(&slow));
        assert!((before - after).abs() <= 1e-9 * before, "seed {seed}: {before}, {after} with times by {times}");
    }
}

#[test]
fn names_and_the_order_of_lines_change_nothing() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed + 900);
        let written = text(&mut dice, 5);
        // Nodes keep their place as sources come first; ids become others and edges are listed from the last on.
        let renamed = |word: &str| word.replace("node", "n_");
        let nodes = written.lines().filter(|line| line.starts_with("node"));
        let edges: Vec<&str> = written.lines().filter(|line| line.starts_with('\t')).collect();
        let mut lines: Vec<String> = nodes.rev().map(renamed).collect();
        // The published importer starts at the first source of the file, so that one stays first.
        if let Some(input) = lines.iter().position(|line| line.contains("Input")) {
            let input = lines.remove(input);
            lines.insert(0, input);
        }
        lines.extend(edges.iter().rev().map(|line| renamed(line)));
        let load = |text: &str| workload::load_bytes(text.as_bytes(), "random.txt", "random").unwrap();
        let limits: Limits = limits(&[2, 2], 16, 4e8);
        let solve = |text: &str| best(&problem(planner::find("dapple").unwrap(), load(text), limits.clone(), &[]));
        let (before, after) = (solve(&written), solve(&lines.join("\n")));
        assert!((before - after).abs() <= 1e-9 * before, "seed {seed}: {before}, {after} renamed");
    }
}
