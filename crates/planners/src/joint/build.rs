//! Converts a split to a plan and simulates it.

use super::{line::UnitLine, search::LineSplit, table::DegreeTable};
use plantui_core::{
    cluster::Limits,
    family,
    plan::{Measure, Plan, Stage},
    simulate::{Setup, length_unless},
    workload::{Choice, NodeIndex, PiperProfile, Workload},
};

/// Plan of a split; `None` if a stage does not fit.
pub(super) fn plan(
    profile: &PiperProfile,
    line: &UnitLine,
    microbatches: u32,
    split: &LineSplit,
    tables: &[DegreeTable<'_>],
) -> Option<Plan> {
    let table = &tables[split.table];
    let (costs, count) = (table.costs, split.begins.len());
    let mut stages = Vec::with_capacity(count);
    for (s, &a) in split.begins.iter().enumerate() {
        let b = split.begins.get(s + 1).copied().unwrap_or(costs.len());
        let in_flight = split.kind.in_flight(count, count - 1 - s, microbatches / split.d);
        let again = match split.again.get(s) {
            Some(weighed) => weighed.clone(),
            None => table.recomputing(a, b, in_flight)?,
        };
        let mut nodes: Vec<usize> = line.units[a..b].iter().flatten().copied().collect();
        nodes.sort_unstable();
        let choice = |&node: &usize| {
            let ways = costs.ways[node];
            let way = if again.binary_search(&node).is_ok() { ways.small.unwrap_or(ways.fast) } else { ways.fast };
            profile.nodes[node].modes(costs.t).map(|modes| Choice::Mode(modes[way].id.clone()))
        };
        let choices = nodes.iter().map(choice).collect::<Option<_>>()?;
        let nodes = NodeIndex::list(nodes);
        stages.push(Stage { nodes, choices, data_parallel: split.d, tensor_parallel: costs.t, devices: vec![] });
    }
    let plan =
        Plan { stages, measure: Measure::IterationTime, execution: Some(split.kind.execution()), ..Plan::default() };
    Some(plan.with_consecutive_devices())
}

/// Simulated iteration time of a plan in seconds; `None` if stopped.
pub(super) fn simulated(workload: &Workload, limits: &Limits, plan: &Plan, stopped: &dyn Fn() -> bool) -> Option<f64> {
    let setup = Setup::default().of(plan);
    let mut pipeline = family::pipeline(workload, limits, plan, &setup.settings);
    pipeline.machines.clear();
    length_unless(&pipeline.of_one_replica(), setup.schedule, stopped)
}
