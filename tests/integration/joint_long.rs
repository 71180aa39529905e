//! Joint on long networks whose nodes are all unlike: an answer at any deadline, and bounds that hold.

use std::{sync::Arc, time::Duration};

use plantui::{
    cluster::GivenLimits,
    family,
    planner::{Options, Outcome, Planner, Problem, Search, Status, joint::Joint},
    run,
    workload::load_bytes,
};
use serde_json::{Value, json};

/// A chain of nodes of which no two cost alike; recomputation saves nearly all activations.
fn chain(nodes: usize, devices: u32, memory: f64) -> Problem {
    let draw = |node: usize, salt: usize| 1.0 + ((node * 7919 + salt * 104_729) % 1009) as f64 / 100.0;
    let node = |id: usize| {
        let (seconds, bytes) = (draw(id, 1) * 1e-3, draw(id, 2) * 1e6);
        let before = id.checked_sub(1).map(|before| (before.to_string(), json!(0)));
        let behind = Some((id + 1).to_string()).filter(|_| id + 1 < nodes).map(|behind| (behind, json!(0)));
        let [before, behind] = [before, behind].map(|side| Value::Object(side.into_iter().collect()));
        let mode = |name: &str, time: f64, a: f64| {
            json!({"id": name, "timePerSample": time, "parameterSize": 1e6, "memoryUsageA": a, "memoryUsageB": 4e6,
                   "syncTimeFw": before, "syncTimeBw": behind})
        };
        let again = seconds * (1.2 + draw(id, 3) / 100.0);
        let modes = [mode("vanilla", seconds, bytes), mode("activation recomp", again, bytes / 20.0)];
        json!({"id": id, "TMPCs": {"1": modes}})
    };
    let edge = |id: usize| json!({"sourceId": id, "destId": id + 1, "communicationCost": 1e6});
    let file = json!({"maxDevices": devices, "maxMemoryPerDevice": memory, "bandwidth": 25e9, "mbsInBatch": 64,
        "nodes": (0..nodes).map(node).collect::<Vec<_>>(), "edges": (0..nodes - 1).map(edge).collect::<Vec<_>>()});
    let workload = Arc::new(load_bytes(file.to_string().as_bytes(), "chain.json", "chain").unwrap());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    Problem { workload, limits, options: Options::defaults(Joint.options()) }
}

fn planned(problem: &Problem, deadline: Option<Duration>) -> Outcome {
    let (outcome, score) = run::plan(&Joint, problem, &Search::new(deadline, 0)).unwrap();
    assert!(outcome.plan.is_none() || score.unwrap().is_valid());
    outcome
}

#[test]
fn a_long_chain_has_a_plan_before_its_search_begins() {
    let outcome = planned(&chain(3000, 64, 8e9), Some(Duration::ZERO));
    let plan = outcome.plan.expect("a first plan takes no search");
    assert!(plan.stages.len() > 1 && plan.recomputes(), "{} stages", plan.stages.len());
    assert_ne!(outcome.status, Status::Optimal, "nothing was searched");
}

#[test]
fn bounds_hold_and_are_close_where_all_nodes_are_unlike() {
    for memory in [1.5e9, 3e9] {
        let outcome = planned(&chain(700, 16, memory), None);
        let (value, lower) = (outcome.objective.unwrap(), outcome.lower_bound.unwrap());
        assert!(lower <= value && value - lower < 0.05 * value, "{memory}: {value} and {lower}");
        // Whatever a shorter search finds is no better than the bound says.
        let other = planned(&chain(700, 16, memory), Some(Duration::ZERO));
        assert!(other.objective.is_none_or(|other| other >= lower), "{memory}: {other:?} below {lower}");
    }
}
