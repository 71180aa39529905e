//! What a plan of operators hands over and which operators leave devices idle, told from the plan.

use std::{path::Path, sync::Arc};

use plantui::{
    cluster::GivenLimits,
    family::{self, operators::usage::of},
    planner::{self, Options, Problem, Search},
    run,
    workload::{self, NodeIndex},
};

#[test]
fn handovers_and_idle_devices_are_those_of_the_score() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/alexnet-operators.json");
    let workload = Arc::new(workload::load(&path).unwrap());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let pase = planner::find("pase").unwrap();
    let problem =
        Problem { workload: workload.clone(), limits: limits.clone(), options: Options::defaults(pase.options()) };
    let (outcome, score) = run::plan(pase, &problem, &Search::default()).unwrap();
    let (mut plan, score) = (outcome.plan.unwrap(), score.unwrap());
    let used = of(&workload, &limits, &plan).unwrap();
    let handed: f64 = used.edges.iter().map(|edge| edge.seconds).sum();
    let counted = score.stages[0].communication_s;
    assert!(handed > 0.0 && (handed - counted).abs() <= 1e-12 * counted, "{handed} {counted}");
    assert!(used.edges.is_sorted_by(|a, b| a.seconds >= b.seconds));
    assert_eq!(used.step_s, score.stages[0].load_s);
    let loss = workload.indices().find(|&node| workload.nodes[node].name.as_deref() == Some("loss")).unwrap();
    let idle: Vec<(NodeIndex, f64)> = used.idle.iter().map(|idle| (idle.node, idle.pieces)).collect();
    assert_eq!((used.devices, idle), (8, vec![(loss, 2.0)]));
    // A plan that breaks a rule uses nothing.
    plan.stages[0].choices.pop();
    assert_eq!(of(&workload, &limits, &plan), None);
    assert_eq!(of(&workload::builtin(), &limits, &plan), None);
}
