//! Parmesan on layer profiles: post-conditions of plans, properties of the search, and limits that cannot be met.

use std::sync::Arc;

use crate::{self as planner, Options, Outcome, Problem, Status};
use plantui_core::{
    cluster::{GivenLimits, LimitKind, Limits, topology::named},
    family,
    search::Search,
    workload::{NodeIndex, Workload, formats},
};

fn bert() -> Arc<Workload> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../inputs/bert32-layers.txt");
    Arc::new(formats::load(&path).unwrap())
}

fn problem(topology: &str, settings: &[&str], memory: f64) -> Problem {
    let wired = named(topology).unwrap();
    let workload = bert();
    let asked = GivenLimits::default()
        .with(LimitKind::Devices, wired.devices() as u32)
        .on(Some(wired.machines()))
        .with(LimitKind::Memory, memory)
        .with(LimitKind::Batch, 32);
    let limits: Limits = family::resolve(&workload, &asked).unwrap();
    let planner = planner::find("parmesan").unwrap();
    let topology = format!("topology={topology}");
    let all = [topology.as_str()].into_iter().chain(settings.iter().copied());
    let options = Options::parse("parmesan", planner.options(), all).unwrap();
    Problem { workload, limits, options }
}

fn planned(problem: &Problem) -> Outcome {
    let planner = planner::find("parmesan").unwrap();
    planner.check_options(problem).unwrap();
    planner.plan(problem, &Search::default())
}

fn simulated(outcome: &Outcome) -> f64 {
    outcome.statistics.counts.iter().find(|(name, _)| *name == "simulated_on_topology_s").unwrap().1
}

#[test]
fn plans_hold_and_are_mapped() {
    for topology in ["dgx-1", "2xv100-4+eth-25g", "dgx-a100"] {
        let problem = problem(topology, &[], 80e9);
        let outcome = planned(&problem);
        let (plan, mapping) = (outcome.plan.as_ref().unwrap(), outcome.mapping.as_ref().unwrap());
        assert_eq!(outcome.status, Status::Feasible);
        assert_eq!(mapping.topology, topology);
        let devices: Vec<u32> = plan.stages.iter().flat_map(|stage| stage.devices.iter().copied()).collect();
        assert_eq!(devices, mapping.devices, "{topology}");
        let mut nodes: Vec<NodeIndex> = plan.stages.iter().flat_map(|stage| stage.nodes.iter().copied()).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, problem.workload.indices().collect::<Vec<_>>(), "every node has one stage");
        for (u, v) in problem.workload.edges() {
            assert!(plan.stage_of(u) <= plan.stage_of(v), "{topology}: {u} {v}");
        }
        assert!(mapping.lower_bound_s <= mapping.communication_s * (1.0 + 1e-12));
        // One device after the other is no faster.
        let identity = planned(&problem_with(&problem, "mapping=identity"));
        assert!(simulated(&outcome) <= simulated(&identity) * (1.0 + 1e-9), "{topology}");
    }
}

fn problem_with(problem: &Problem, setting: &str) -> Problem {
    let planner = planner::find("parmesan").unwrap();
    let own: Vec<String> = problem
        .options
        .iter()
        .filter(|(name, _)| *name == "topology")
        .map(|(name, value)| format!("{name}={}", value.json().as_str().unwrap_or_default()))
        .chain([setting.to_string()])
        .collect();
    let options = Options::parse("parmesan", planner.options(), own.iter().map(String::as_str)).unwrap();
    Problem { options, ..problem.clone() }
}

#[test]
fn a_search_is_no_worse_than_any_of_its_points_and_says_what_it_ignores() {
    let search = planned(&problem("dgx-1", &["search_comm_coef=true", "comm_coef=3"], 80e9));
    assert!(search.notes.iter().any(|note| note.contains("comm_coef=3 is ignored")), "{:?}", search.notes);
    for coefficient in ["0", "0.5", "8"] {
        let point = planned(&problem("dgx-1", &[&format!("comm_coef={coefficient}")], 80e9));
        assert!(simulated(&search) <= simulated(&point) * (1.0 + 1e-9), "{coefficient}");
    }
    let both = planned(&problem("dgx-1", &["new_flow=both"], 80e9));
    for flow in ["true", "false"] {
        let one = planned(&problem("dgx-1", &[&format!("new_flow={flow}")], 80e9));
        assert!(simulated(&both) <= simulated(&one) * (1.0 + 1e-9), "{flow}");
    }
}

#[test]
fn threads_change_nothing() {
    let problem = problem("dgx-1", &["search_k=true"], 80e9);
    let plans = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let outcome = pool.install(|| planned(&problem));
        (outcome.plan, outcome.mapping, outcome.objective)
    });
    assert_eq!(plans[0], plans[1]);
}

#[test]
fn what_cannot_be_kept_is_told_with_what_would_do() {
    let outcome = planned(&problem("dgx-1", &[], 1e6));
    assert_eq!(outcome.status, Status::Infeasible);
    let story = outcome.infeasible.unwrap();
    let least = story.smallest_memory_bytes.unwrap();
    assert!(story.explanation.contains("would be enough"), "{}", story.explanation);
    assert!(planned(&problem("dgx-1", &[], least * (1.0 + 1e-9))).plan.is_some());
    let odd = planned(&problem("dgx-1", &["parallel_same_t=3", "parallel_degree=4"], 80e9));
    let told = odd.infeasible.unwrap().explanation;
    assert!(told.contains('4') && told.contains('3'), "{told}");
    let two = planned(&problem("dgx-1", &["stages=2"], 80e9));
    assert_eq!(two.plan.unwrap().stages.len(), 2);
}
