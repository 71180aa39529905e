//! Networks too large to search: converted ones too have a plan before the search begins, and what cannot fit is told as
//! such before anything is searched.

use std::{sync::Arc, time::Duration};

use plantui::{
    cluster::GivenLimits,
    family,
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    workload::{Workload, load_bytes},
};
use serde_json::{Value, json};

fn draw(node: usize, salt: usize) -> f64 {
    1.0 + ((node * 7919 + salt * 104_729) % 1009) as f64 / 100.0
}

fn loaded(file: &Value) -> Arc<Workload> {
    Arc::new(load_bytes(file.to_string().as_bytes(), "chain.json", "chain").unwrap())
}

/// Piper's profile of a chain: 1 to 11 ms and as many MB of activations for each node, which recomputation saves.
fn pipeline(nodes: usize, devices: u32, memory: f64) -> Arc<Workload> {
    let node = |id: usize| {
        let side = |other: Option<usize>| -> Value {
            Value::Object(other.into_iter().map(|other| (other.to_string(), json!(0))).collect())
        };
        let (before, behind) = (side(id.checked_sub(1)), side(Some(id + 1).filter(|&next| next < nodes)));
        let mode = |name: &str, seconds: f64, a: f64| {
            json!({"id": name, "timePerSample": seconds, "parameterSize": 1e6, "memoryUsageA": a, "memoryUsageB": 4e6,
                   "syncTimeFw": before, "syncTimeBw": behind})
        };
        let (seconds, bytes) = (draw(id, 1) * 1e-3, draw(id, 2) * 1e6);
        let modes = [mode("vanilla", seconds, bytes), mode("activation recomp", 1.3 * seconds, bytes / 20.0)];
        json!({"id": id, "TMPCs": {"1": modes}})
    };
    let edge = |id: usize| json!({"sourceId": id, "destId": id + 1, "communicationCost": 1e6});
    loaded(&json!({"maxDevices": devices, "maxMemoryPerDevice": memory, "bandwidth": 25e9, "mbsInBatch": 1024,
        "nodes": (0..nodes).map(node).collect::<Vec<_>>(), "edges": (0..nodes - 1).map(edge).collect::<Vec<_>>()}))
}

/// A chain of operators to be placed.
fn operators(nodes: usize, devices: u32, memory: f64) -> Arc<Workload> {
    let node = |id: usize| {
        json!({"id": id, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": draw(id, 1), "isBackwardNode": 0,
               "size": draw(id, 2)})
    };
    let edge = |id: usize| json!({"sourceId": id, "destId": id + 1, "cost": 0.1});
    loaded(&json!({"maxSizePerFPGA": memory, "maxFPGAs": devices, "maxCPUs": 0,
        "nodes": (0..nodes).map(node).collect::<Vec<_>>(), "edges": (0..nodes - 1).map(edge).collect::<Vec<_>>()}))
}

fn problem(planner: &str, workload: &Arc<Workload>, settings: &[&str]) -> Problem {
    let limits = family::resolve(workload, &GivenLimits::default()).unwrap();
    let declared = planner::find(planner).unwrap().options();
    let options = Options::parse(planner, declared, settings.iter().copied()).unwrap();
    Problem { workload: Arc::clone(workload), limits, options }
}

fn planned(planner: &str, problem: &Problem, deadline: Option<Duration>) -> Outcome {
    let search = Search::new(deadline, 0);
    let (outcome, score) = run::plan(planner::find(planner).unwrap(), problem, &search).unwrap();
    assert!(outcome.plan.is_none() || score.unwrap().is_valid(), "{planner}");
    outcome
}

#[test]
fn converted_networks_have_a_plan_before_their_search_begins() {
    // Among a thousand devices no route may be looked for that nothing goes over. Equal work does not fit: the
    // first stages would hold too many microbatches.
    let (pipeline, operators) = (pipeline(2_500, 1_000, 4e8), operators(3_000, 12, 1e5));
    let asked = [
        ("parmesan", &pipeline, vec![]),
        ("parmesan", &operators, vec!["stages=7"]),
        ("placement-dp", &pipeline, vec![]),
        ("piper", &operators, vec![]),
        ("piper", &operators, vec!["stages=5"]),
        ("equal-partition", &operators, vec![]),
        ("parmesan", &operators, vec![]),
    ];
    for (planner, workload, settings) in asked {
        let outcome = planned(planner, &problem(planner, workload, &settings), Some(Duration::ZERO));
        let what = format!("{planner} {settings:?}: {:?}", outcome.infeasible);
        let plan = outcome.plan.expect(&what);
        assert_ne!(outcome.status, Status::Optimal, "{what}");
        assert!(plan.stages.len() > 1, "{what}");
        if let [stages] = settings[..] {
            assert_eq!(format!("stages={}", plan.stages.len()), stages);
        }
    }
}

#[test]
fn what_cannot_fit_is_told_before_anything_is_searched() {
    let workload = pipeline(5_000, 64, 2e8);
    let outcome = planned("piper", &problem("piper", &workload, &[]), None);
    assert_eq!(outcome.status, Status::Infeasible);
    let told = outcome.infeasible.unwrap().explanation;
    assert!(told.contains("64 devices with 200 MB each") && told.contains("activations in flight"), "{told}");
    assert!(outcome.statistics.counts.is_empty(), "no set was enumerated");
}

#[test]
fn joint_cuts_between_any_nodes_where_its_runs_of_nodes_are_too_coarse() {
    // Ten nodes together, as it searches among, do not fit where hundreds of microbatches are in flight.
    let outcome = planned("joint", &problem("joint", &pipeline(2_500, 1_000, 2.8e8), &[]), Some(Duration::ZERO));
    let plan = outcome.plan.expect("single nodes fit");
    assert!(plan.stages.iter().any(|stage| stage.nodes.len() < 10) && plan.stages.len() > 250);
    assert!(outcome.lower_bound.is_none() && outcome.status != Status::Optimal, "nothing is proven of it");
}
