//! Table of all schedules of a plan (`--schedule all`).

use schemars::JsonSchema;
use serde::Serialize;

use super::report::{self, line};
use crate::schemas::DocumentSchema;
use crate::{
    study::schedules::{self, ScheduleFigures, ScheduleRow},
    units,
};

/// Schedules of one plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PlanSchedules {
    /// Planner or file of the plan.
    pub(super) id: String,
    /// Name for people.
    pub(super) name: String,
    /// Rows, the fastest first.
    pub(super) schedules: Vec<ScheduleRow>,
}

/// Time and memory of every schedule of some plans.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SchedulesDocument {
    pub(super) schema: &'static str,
    pub(super) workload: String,
    /// Memory of a device, bytes, if it is limited.
    pub(super) memory_limit_bytes: Option<f64>,
    pub(super) plans: Vec<PlanSchedules>,
}

impl SchedulesDocument {
    /// Document for plans of a workload. `limit` is the memory of a device, bytes; infinite without one.
    pub(super) fn new(workload: &str, limit: f64, plans: Vec<PlanSchedules>) -> Self {
        let memory_limit_bytes = limit.is_finite().then_some(limit);
        SchedulesDocument { schema: "plantui.schedules/1", workload: workload.into(), memory_limit_bytes, plans }
    }
}

/// Appends the tables. `limit` is the memory of a device, bytes.
pub(super) fn tables(text: &mut String, plans: &[PlanSchedules], limit: f64) {
    for PlanSchedules { name, schedules, .. } in plans {
        line(text, format_args!(""));
        line(text, format_args!("{name}"));
        let fastest =
            schedules.iter().filter_map(|row| row.figures).map(|own| own.iteration_s).fold(f64::INFINITY, f64::min);
        let head = ["schedule", "iteration", "slower", "samples/s", "idle", "peak memory", "fits", "front", "engines"];
        let mut rows = vec![head.map(String::from).to_vec()];
        rows.extend(schedules.iter().filter_map(|row| Some(cells(row, row.figures.as_ref()?, fastest, limit))));
        report::table(text, &rows);
        for (reason, names) in refusals(schedules) {
            line(text, format_args!("not simulated: {}: {reason}", names.join(", ")));
        }
    }
    let mut told = vec!["front *: it fits, and no other that fits takes less of both time and memory".to_string()];
    let all = plans.iter().flat_map(|plan| &plan.schedules).cloned().collect::<Vec<_>>();
    told.extend(schedules::assumptions(&all).into_iter().map(String::from));
    report::notes(text, &told);
}

/// Reasons why schedules cannot run, with the names of those that share one.
fn refusals(schedules: &[ScheduleRow]) -> Vec<(String, Vec<&str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = vec![];
    for row in schedules {
        let Some(refused) = &row.refused else { continue };
        let mut reason = refused.strip_prefix(row.name).unwrap_or(refused).trim_start().to_string();
        reason.extend(row.repair.iter().flat_map(|repair| ["; ", repair.as_str()]));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(row.name),
            None => reasons.push((reason, vec![row.name])),
        }
    }
    reasons
}

fn cells(row: &ScheduleRow, own: &ScheduleFigures, fastest: f64, limit: f64) -> Vec<String> {
    let parts = if row.virtual_stages > 1 { format!(" V={}", row.virtual_stages) } else { String::new() };
    vec![
        format!("{}{parts}", row.name),
        units::seconds(own.iteration_s),
        units::percent(own.iteration_s / fastest - 1.0),
        units::rate(own.samples_per_s),
        units::percent(own.idle),
        units::bytes_beside(own.peak_memory_bytes, limit),
        own.fits.map_or("-", |fits| if fits { "yes" } else { "no" }).into(),
        if own.on_front { "*" } else { "" }.into(),
        row.engines.join(" "),
    ]
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<SchedulesDocument>("plantui.schedules/1")
}
