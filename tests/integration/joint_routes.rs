//! Joint on the routes of a topology: no plan on any of its devices goes below the bound, and the plan is as fast as it says.

use std::sync::Arc;

use plantui::{
    cluster::{
        Limits,
        topology::{self, PlanTopology, Topology},
    },
    family,
    plan::{Execution, Plan},
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    workload::{Profile, Workload},
};

use crate::{
    common::random_piper::Random,
    joint::{network, plan_of},
};

/// A figure of the random networks in bytes: links carry gigabytes per second.
const BYTES: f64 = 1e9;

/// A random network whose transfers matter beside links of gigabytes per second.
fn scaled(random: &mut Random) -> Workload {
    let mut workload = network(random);
    if let Profile::Piper(profile) = &mut workload.profile {
        profile.edge_bytes.iter_mut().for_each(|bytes| *bytes *= BYTES);
        for mode in profile.nodes.iter_mut().flat_map(|node| &mut node.degrees).flat_map(|degree| &mut degree.modes) {
            [&mut mode.parameters, &mut mode.memory_a, &mut mode.memory_b].into_iter().for_each(|own| *own *= BYTES);
            mode.sync_in.iter_mut().chain(&mut mode.sync_out).for_each(|bytes| *bytes *= BYTES);
        }
    }
    workload
}

/// A preset, or direct links of random widths between every two devices.
fn random_topology(random: &mut Random) -> PlanTopology {
    if random.chance(40) {
        let name = random.pick(&["dgx-1", "2xdgx-1+eth-25g", "pcie3-8"]);
        return PlanTopology { topology: Arc::new(topology::named(name).unwrap()), file: None };
    }
    let n = 2 + random.below(5);
    let pairs: Vec<f64> = (0..n * n).map(|_| random.pick(&[0.5, 1.0, 2.0, 8.0, 300.0])).collect();
    // Both directions alike.
    let width = |i: usize, j: usize| if i == j { 0.0 } else { pairs[i.max(j) * n + i.min(j)] };
    let row = |i: usize| (0..n).map(|j| width(i, j).to_string()).collect::<Vec<_>>().join(",");
    let text = (0..n).map(row).collect::<Vec<_>>().join("\n");
    let source = "random.csv";
    PlanTopology::of_text(&text, source, &PlanTopology::spec(source)).unwrap()
}

fn shuffled(random: &mut Random, count: usize) -> Vec<usize> {
    let mut devices: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        devices.swap(i, random.below(i + 1));
    }
    devices
}

fn planned(workload: &Arc<Workload>, limits: &Limits, settings: &[&str]) -> Outcome {
    let planner = planner::find("joint").unwrap();
    let options = Options::parse("joint", planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options };
    run::plan(planner, &problem, &Search::default()).unwrap().0
}

/// The least time of all plans with one degree and one number of replicas, each with its parts on the devices in order and in
/// some random orders.
fn least(random: &mut Random, workload: &Workload, limits: &Limits, topology: &Arc<Topology>) -> Option<(f64, Plan)> {
    let n = workload.nodes.len();
    let profile = workload.piper().unwrap();
    let mut best: Option<(f64, Plan)> = None;
    for (t, d) in [1, 2].into_iter().flat_map(|t| (1..=limits.devices).map(move |d| (t, d))) {
        if !limits.microbatches.is_multiple_of(d) {
            continue;
        }
        for cuts in 0..1u32 << (n - 1) {
            let stages = cuts.count_ones() + 1;
            if stages * d * t > limits.devices || stages * d > limits.microbatches {
                continue;
            }
            for again in 0..1u32 << n {
                let Some(plan) = plan_of(profile, n, t, d, cuts, again) else { continue };
                let plan = Plan { execution: Some(Execution::default()), ..plan };
                let used = plan.devices_used() as usize;
                for turn in 0..3 {
                    let mut devices = if turn == 0 {
                        (0..topology.devices()).collect()
                    } else {
                        shuffled(random, topology.devices())
                    };
                    devices.truncate(used);
                    let placed = plan.clone().on(topology, &devices);
                    let score = family::check(workload, limits, &placed);
                    if score.is_valid() && best.as_ref().is_none_or(|(value, _)| score.value < *value) {
                        best = Some((score.value, placed));
                    }
                }
            }
        }
    }
    best
}

fn held_against_routes(seed: u64, count: usize) {
    let mut random = Random(seed);
    let (mut planned_for, mut as_fast, mut closed) = (0, 0, 0);
    for case in 0..count {
        let workload = Arc::new(scaled(&mut random));
        let wired = random_topology(&mut random);
        let topology = Arc::clone(&wired.topology);
        let limits = Limits {
            devices: (1 + random.below(6)).min(topology.devices()) as u32,
            microbatches: random.pick(&[1, 2, 4, 6]),
            memory_bytes: Some((4.0 + random.amount(20, false)) * BYTES),
            bandwidth_bytes_per_s: Some(BYTES),
            topology: Some(wired),
            ..Limits::NEUTRAL
        };
        let outcome = planned(&workload, &limits, &["gap=0.01"]);
        let told = format!("case {case} on {}, {} devices", topology.name, limits.devices);
        let Some((best, plan)) = least(&mut random, &workload, &limits, &topology) else {
            assert_eq!(outcome.status, Status::Infeasible, "{told}");
            continue;
        };
        let value = outcome.objective.unwrap_or_else(|| panic!("{told}: {best} exists: {outcome:?}"));
        let bound = outcome.lower_bound.unwrap_or(0.0);
        assert!(bound <= best * (1.0 + 1e-9), "{told}: bound {bound}, {best} is possible: {plan:?}");
        assert!(bound <= value * (1.0 + 1e-9), "{told}: {value} below its bound {bound}");
        let own = outcome.plan.unwrap();
        assert!(own.topology.is_some(), "{told}: not mapped");
        assert!((family::check(&workload, &limits, &own).value - value).abs() <= 1e-9 * value, "{told}");
        planned_for += 1;
        as_fast += usize::from(value <= best * 1.02);
        closed += usize::from(value <= bound * 1.02);
    }
    println!("{planned_for} planned, {as_fast} within 2 % of the best tried, {closed} within 2 % of the bound");
    assert!(planned_for * 2 > count, "{planned_for} of {count} could be planned");
    assert!(as_fast * 10 >= planned_for * 9, "{as_fast} of {planned_for} are within 2 % of the best that was tried");
}

#[test]
fn no_plan_on_any_devices_goes_below_the_bound() {
    held_against_routes(32, 500);
}
