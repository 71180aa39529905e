//! Table of `plan` for several numbers of devices: what time costs.
//!
//! The Pareto front of throughput and cost is marked: a row is on it if no other is both faster and cheaper. Without a price
//! the cost is device time. `O(n²)` for `n` rows.

use super::{
    cost::{PlanRate, TrainingCost},
    plan::CostedRun,
    report::{self, line},
};
use crate::units;

/// Table of the runs, one row for each, in their order.
pub(super) fn table(runs: &[CostedRun<'_>]) -> String {
    let mut text = String::new();
    let Some(first) = runs.first() else { return text };
    let workload = &first.run.problem.workload;
    let tokens = workload.training().map(|profile| profile.sequence as f64);
    line(&mut text, format_args!("{}: {}", report::about(workload), first.run.planner.info().name));
    text.push('\n');
    let rate = if tokens.is_some() { "tokens/s" } else { "samples/s" };
    let batches = runs.iter().any(|run| run.run.problem.limits.samples() != first.run.problem.limits.samples());
    let batch = batches.then_some("batch");
    let heads = ["", "devices"].into_iter().chain(batch).chain(["iteration", rate, "per device", "peak memory"]);
    let costs = first.cost.map(TrainingCost::heads).unwrap_or_default();
    let mut rows: Vec<Vec<String>> = vec![heads.map(String::from).chain(costs).chain(["plan".to_string()]).collect()];
    for costed in runs {
        let problem = &costed.run.problem;
        let limits = &problem.limits;
        let mut row = vec![if on_front(*costed, runs) { "*" } else { "" }.to_string()];
        row.push(limits.devices.to_string());
        row.extend(batches.then(|| limits.samples().to_string()));
        let simulated = costed.run.simulation.as_ref();
        match costed.rate().zip(simulated) {
            Some((PlanRate { samples_per_s, devices, .. }, simulation)) => {
                let rate = samples_per_s * tokens.unwrap_or(1.0);
                let each = units::number(rate / devices as f64);
                let timeline = &simulation.timeline;
                row.extend([units::seconds(timeline.iteration_s), units::number(rate), each]);
                row.push(units::bytes_beside(timeline.peak_memory(), limits.memory_limit()));
            }
            None => row.extend(["-"; 4].map(String::from)),
        }
        row.extend(costed.cost.map(|cost| cost.cells(costed.rate())).unwrap_or_default());
        row.push(match &costed.run.outcome.plan {
            Some(plan) => plan.configuration().map_or_else(
                || format!("{} on {}", report::counted(plan.stages.len(), "stage"), plan.devices_used()),
                ToString::to_string,
            ),
            None => "no plan".into(),
        });
        rows.push(row);
    }
    report::table(&mut text, &rows);
    text.push('\n');
    line(&mut text, format_args!("* no other row is both faster and cheaper{}", device_time(*first)));
    for costed in runs {
        let infeasible = costed.run.outcome.infeasible.as_ref();
        if let Some(infeasible) = infeasible {
            line(&mut text, format_args!("{}", infeasible.explanation));
        }
    }
    text
}

/// Note on the cost if there is no price.
fn device_time(first: CostedRun<'_>) -> &'static str {
    match first.cost {
        Some(cost) if cost.has_price() => "",
        _ if first.run.problem.workload.training().is_some() => " (in device time; --price gives money)",
        _ => " (in device time)",
    }
}

/// True if no other run is faster and cheaper, or as good in one and better in the other.
fn on_front(run: CostedRun<'_>, all: &[CostedRun<'_>]) -> bool {
    let figures = |rate: PlanRate| (rate.samples_per_s, rate.devices as f64 / rate.samples_per_s);
    let Some((rate, cost)) = run.rate().map(figures) else { return false };
    !all.iter()
        .filter_map(|other| other.rate().map(figures))
        .any(|(other, other_cost)| other >= rate && other_cost <= cost && (other > rate || other_cost < cost))
}
