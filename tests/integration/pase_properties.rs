//! What must hold of least costs whatever the graph.

use crate::common::random_operators::random_operators;
use plantui::{
    planner::{
        Search,
        pase::{
            PaseSettings,
            model::PaseModel,
            order::Order,
            solve::{Method, solve},
        },
    },
    workload::{OperatorProfile, operators::CostRules},
};

fn least(profile: &OperatorProfile, settings: &PaseSettings) -> f64 {
    let model = PaseModel::new(profile, settings).unwrap();
    let method = Method { order: Order::MinDegree, bounds: true };
    let found = solve(&model.pairwise, vec![0; model.spaces.len()], method, &Search::default(), |_, _| {});
    assert!(found.proven);
    found.cost
}

fn settings(devices: u32) -> PaseSettings {
    PaseSettings { devices, cutoff: 1, flops_per_s: 100.0, bandwidth_bytes_per_s: 16.0, rules: CostRules::default() }
}

const TOLERANCE_FACTOR: f64 = 1.0 + 1e-12;

#[test]
fn more_devices_never_hurt() {
    for seed in 0..100 {
        let profile = random_operators(seed, 12);
        let mut before = f64::INFINITY;
        for devices in 1..=12 {
            let cost = least(&profile, &settings(devices));
            assert!(cost <= before * TOLERANCE_FACTOR, "seed {seed}, {devices} devices: {cost} after {before}");
            before = cost;
        }
    }
}

#[test]
fn flops_and_bandwidth_count_by_their_ratio() {
    for seed in 100..200 {
        let profile = random_operators(seed, 12);
        let plain = settings(8);
        let both = PaseSettings { flops_per_s: 400.0, bandwidth_bytes_per_s: 64.0, ..plain };
        assert_eq!(least(&profile, &plain), least(&profile, &both), "seed {seed}");
        // The least of linear functions of the ratio rises and bends down.
        let at = |flops_per_s| least(&profile, &PaseSettings { flops_per_s, ..plain });
        let (low, middle, high) = (at(50.0), at(100.0), at(150.0));
        assert!(low <= middle * TOLERANCE_FACTOR && middle <= high * TOLERANCE_FACTOR, "seed {seed}");
        assert!((low + high) / 2.0 <= middle * TOLERANCE_FACTOR, "seed {seed}: {low} {middle} {high}");
    }
}

#[test]
fn narrower_searches_and_stricter_rules_cost_more() {
    for seed in 200..300 {
        let profile = random_operators(seed, 12);
        let plain = settings(6);
        let cost = least(&profile, &plain);
        assert!(least(&profile, &PaseSettings { cutoff: 2, ..plain }) >= cost / TOLERANCE_FACTOR, "seed {seed}");
        let all = CostRules { parallel_edges: true, ..plain.rules };
        assert!(least(&profile, &PaseSettings { rules: all, ..plain }) >= cost / TOLERANCE_FACTOR, "seed {seed}");
    }
}
