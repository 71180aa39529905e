//! Networks too large to search: converted ones too have a plan before the search begins, and what cannot fit is told as
//! such before anything is searched.

use std::{sync::Arc, thread, time::Duration};

use plantui::{
    cluster::{GivenLimits, LimitKind, Machines},
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

/// Who follows whom in a chain.
fn chain(nodes: usize) -> Vec<(usize, usize)> {
    (1..nodes).map(|to| (to - 1, to)).collect()
}

/// One node before all others.
fn star(nodes: usize) -> Vec<(usize, usize)> {
    (1..nodes).map(|to| (0, to)).collect()
}

/// Every node before all later ones.
fn complete(nodes: usize) -> Vec<(usize, usize)> {
    (1..nodes).flat_map(|to| (0..to).map(move |from| (from, to))).collect()
}

/// Piper's profile of a chain: 1 to 11 ms and as many MB of activations for each node, which recomputation saves.
fn pipeline(nodes: usize, devices: u32, memory: f64) -> Arc<Workload> {
    pipeline_of(nodes, &chain(nodes), devices, memory)
}

fn pipeline_of(nodes: usize, edges: &[(usize, usize)], devices: u32, memory: f64) -> Arc<Workload> {
    let mut sides = vec![[serde_json::Map::new(), serde_json::Map::new()]; nodes];
    for &(from, to) in edges {
        sides[to][0].insert(from.to_string(), json!(0));
        sides[from][1].insert(to.to_string(), json!(0));
    }
    let node = |(id, [before, behind]): (usize, [serde_json::Map<String, Value>; 2])| {
        let mode = |name: &str, seconds: f64, a: f64| {
            json!({"id": name, "timePerSample": seconds, "parameterSize": 1e6, "memoryUsageA": a, "memoryUsageB": 4e6,
                   "syncTimeFw": before, "syncTimeBw": behind})
        };
        let (seconds, bytes) = (draw(id, 1) * 1e-3, draw(id, 2) * 1e6);
        let modes = [mode("vanilla", seconds, bytes), mode("activation recomp", 1.3 * seconds, bytes / 20.0)];
        json!({"id": id, "TMPCs": {"1": modes}})
    };
    let edge = |&(from, to): &(usize, usize)| json!({"sourceId": from, "destId": to, "communicationCost": 1e6});
    let nodes: Vec<Value> = sides.into_iter().enumerate().map(node).collect();
    loaded(&json!({"maxDevices": devices, "maxMemoryPerDevice": memory, "bandwidth": 25e9, "mbsInBatch": 1024,
        "nodes": nodes, "edges": edges.iter().map(edge).collect::<Vec<_>>()}))
}

/// A chain of operators to be placed.
fn operators(nodes: usize, devices: u32, memory: f64) -> Arc<Workload> {
    operators_of(nodes, &chain(nodes), devices, memory)
}

fn operators_of(nodes: usize, edges: &[(usize, usize)], devices: u32, memory: f64) -> Arc<Workload> {
    let node = |id: usize| {
        json!({"id": id, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": draw(id, 1), "isBackwardNode": 0,
               "size": draw(id, 2)})
    };
    let edge = |&(from, to): &(usize, usize)| json!({"sourceId": from, "destId": to, "cost": 0.1});
    loaded(&json!({"maxSizePerFPGA": memory, "maxFPGAs": devices, "maxCPUs": 0,
        "nodes": (0..nodes).map(node).collect::<Vec<_>>(), "edges": edges.iter().map(edge).collect::<Vec<_>>()}))
}

/// PipeDream's profile of layers.
fn layers_of(nodes: usize, edges: &[(usize, usize)]) -> Arc<Workload> {
    let node = |id: usize| {
        let (forward, bytes) = (draw(id, 1), 1e6 * draw(id, 2));
        let times = format!("forward_compute_time={forward}, backward_compute_time={}", 2.0 * forward);
        format!("node{id} -- L{id} -- {times}, activation_size={bytes}, parameter_size=4e6\n")
    };
    let edge = |&(from, to): &(usize, usize)| format!("\tnode{from} -- node{to}\n");
    let text: String = (0..nodes).map(node).chain(edges.iter().map(edge)).collect();
    Arc::new(load_bytes(text.as_bytes(), "graph.txt", "graph").unwrap())
}

fn problem(planner: &str, workload: &Arc<Workload>, settings: &[&str]) -> Problem {
    let given = GivenLimits::default();
    let given = match workload.layers() {
        Some(_) => given.with(LimitKind::Batch, 64u32).on(Machines::parse("2x4").ok()).with(LimitKind::Memory, 1e15),
        None => given,
    };
    let limits = family::resolve(workload, &given).unwrap();
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

/// What a search that is stopped as soon as it has a plan ends with; the deadline only ends what would never end.
fn first_plan(planner: &str, problem: &Problem) -> Outcome {
    let search = Search::new(Some(Duration::from_secs(60)), 0);
    let watched = search.clone();
    thread::scope(|scope| {
        let searching = scope.spawn(move || run::plan(planner::find(planner).unwrap(), problem, &search).unwrap());
        while watched.incumbent().is_none() && !searching.is_finished() {
            thread::sleep(Duration::from_millis(5));
        }
        watched.cancel();
        let (outcome, score) = searching.join().unwrap();
        assert!(!watched.deadline_passed() && (outcome.plan.is_none() || score.unwrap().is_valid()), "{planner}");
        outcome
    })
}

#[test]
fn converted_networks_have_a_plan_before_their_search_begins() {
    // Among a thousand devices no route may be looked for that nothing goes over.
    let (pipeline, operators) = (pipeline(2_500, 1_000, 4e10), operators(3_000, 12, 1e5));
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
fn networks_as_wide_as_long_have_a_plan_for_thousands_of_devices() {
    // What is done again for every edge of a node, or for every pair of devices, takes minutes here.
    let nodes = 20_000;
    let behind = (1..nodes - 1).map(|from| (from, nodes - 1));
    let edges: Vec<(usize, usize)> = star(nodes - 1).into_iter().chain(behind).collect();
    let workload = pipeline_of(nodes, &edges, 4_096, 1e15);
    for planner in ["piper", "joint", "equal-partition", "parmesan"] {
        let outcome = first_plan(planner, &problem(planner, &workload, &[]));
        let plan = outcome.plan.unwrap_or_else(|| panic!("{planner}: {:?}", outcome.infeasible));
        assert_eq!(plan.stages.iter().map(|stage| stage.nodes.len()).sum::<usize>(), nodes, "{planner}");
    }
}

#[test]
fn the_memory_named_for_a_long_chain_suffices() {
    let workload = pipeline(600, 64, 2e7);
    let mut problem = problem("piper", &workload, &[]);
    let outcome = planned("piper", &problem, None);
    assert_eq!(outcome.status, Status::Infeasible);
    let infeasible = outcome.infeasible.unwrap();
    assert!(infeasible.explanation.contains("64 devices of 20 MB"), "{}", infeasible.explanation);
    problem.limits.memory_bytes = infeasible.smallest_memory_bytes;
    assert!(planned("piper", &problem, Some(Duration::from_secs(60))).plan.is_some());
}

#[test]
fn joint_cuts_between_any_nodes_where_its_runs_of_nodes_are_too_coarse() {
    // Ten nodes together, as it searches among, do not fit where hundreds of microbatches are in flight.
    let outcome = planned("joint", &problem("joint", &pipeline(2_500, 1_000, 2.8e8), &[]), Some(Duration::ZERO));
    let plan = outcome.plan.expect("single nodes fit");
    assert!(plan.stages.iter().any(|stage| stage.nodes.len() < 10) && plan.stages.len() > 250);
    assert!(outcome.lower_bound.is_none() && outcome.status != Status::Optimal, "nothing is proven of it");
}

/// Every planner that takes a network, but for the one that wants a file beside it.
fn takers(workload: &Workload) -> impl Iterator<Item = &'static str> {
    let takes = |planner: &&&dyn planner::Planner| planner.can_plan(workload).is_ok();
    let ids: Vec<&str> = planner::all().iter().filter(takes).map(|planner| planner.info().id).collect();
    ids.into_iter().filter(|id| *id != "placement-expert")
}

#[test]
fn every_planner_has_a_plan_of_stars_and_of_long_chains_at_once() {
    type Edges = fn(usize) -> Vec<(usize, usize)>;
    let shapes: [(usize, Edges); 2] = [(4_000, star), (30_000, chain)];
    let (mut asked, mut lacking) = (0, vec![]);
    for (nodes, edges) in shapes {
        let edges = edges(nodes);
        for workload in
            [pipeline_of(nodes, &edges, 8, 1e15), operators_of(nodes, &edges, 8, 1e15), layers_of(nodes, &edges)]
        {
            for planner in takers(&workload) {
                let problem = problem(planner, &workload, &[]);
                // These two look at the graph's sets or at its order before they have one.
                let looks_first = ["piper", "equal-partition"].contains(&planner);
                let outcome = if looks_first {
                    first_plan(planner, &problem)
                } else {
                    planned(planner, &problem, Some(Duration::ZERO))
                };
                if outcome.plan.is_none() {
                    lacking.push(format!("{planner} on {nodes} of {}: {:?}", workload.name, outcome.infeasible));
                }
                asked += 1;
            }
        }
    }
    assert!(lacking.is_empty() && asked > 40, "{asked} {lacking:#?}");
}

#[test]
fn dapple_has_a_plan_at_once_where_memory_asks_for_many_stages() {
    // 10,000 layers of 4 MB on 512 devices of 2 GB: no sixteen stages hold the weights and what the optimizer keeps of them.
    let workload = layers_of(10_000, &chain(10_000));
    let mut problem = problem("dapple", &workload, &[]);
    let given = GivenLimits::default().with(LimitKind::Batch, 512u32).with(LimitKind::Memory, 2e9);
    problem.limits = family::resolve(&workload, &given.on(Machines::parse("64x8").ok())).unwrap();
    let outcome = planned("dapple", &problem, Some(Duration::ZERO));
    assert!(outcome.plan.unwrap().stages.len() > 16);
}

#[test]
fn parmesan_searches_complete_graphs_to_the_end() {
    // 180,000 edges, all but 599 of which have another path along them.
    let (nodes, edges) = (600, complete(600));
    for workload in
        [pipeline_of(nodes, &edges, 8, 1e15), operators_of(nodes, &edges, 8, 1e15), layers_of(nodes, &edges)]
    {
        let outcome = planned("parmesan", &problem("parmesan", &workload, &[]), None);
        assert_eq!(outcome.status, Status::Feasible, "{}", workload.name);
        assert!(outcome.plan.is_some());
    }
}
