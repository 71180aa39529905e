//! All schedules of one plan, side by side.
//!
//! The plan keeps its stages; only the order of its microbatches changes. Each schedule is simulated on its own, so the
//! table shows what a schedule takes in time and in memory. A schedule that no other beats in both is on the front.
//!
//! `O(s)` simulations for `s` schedules.

use plantui_core::{
    cluster::Limits,
    family::{self, mixed::layout},
    plan::{Plan, runner::Runner},
    search::Search,
    simulate::{Pipeline, Schedule, Setup},
    workload::{MixedProfile, Workload},
};
use rayon::prelude::*;
use serde::Serialize;

use crate::run::Simulation;

/// Row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleRow {
    /// Id of the schedule.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Virtual stages on each device.
    pub virtual_stages: u32,
    /// Ids of the engines whose files can request it by name.
    pub engines: Vec<&'static str>,
    /// Figures, if the plan can run under the schedule.
    pub figures: Option<ScheduleFigures>,
    /// Reason why it cannot.
    pub refused: Option<String>,
    /// Repair that lets it run.
    pub repair: Option<String>,
}

/// Simulated figures of a plan under one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleFigures {
    /// Iteration time, seconds.
    pub iteration_s: f64,
    /// Samples per second; microbatches if the workload does not state their size.
    pub samples_per_s: f64,
    /// Idle share of device time, 0 to 1.
    pub idle: f64,
    /// Peak memory over all devices, bytes.
    pub peak_memory_bytes: f64,
    /// True if the peak is within the limit; `None` without a limit.
    pub fits: Option<bool>,
    /// True if it fits, and no other that fits takes less time and no more memory, or less memory and no more time.
    pub on_front: bool,
}

/// Simulates a plan under every schedule of training, the fastest first; those that it cannot run come last.
///
/// # Errors
/// Reason why a simulation was given up, as a sentence.
pub fn all(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    setup: Setup,
    search: &Search,
) -> Result<Vec<ScheduleRow>, String> {
    let Some(pipeline) =
        family::pipeline_unless(workload, limits, plan, &setup.of(plan).settings, &|| search.cancelled())
    else {
        return Err(crate::run::no_routes(search));
    };
    let memory: Vec<f64> = plan.stages.iter().map(|stage| family::of(workload).memory_limit(limits, stage)).collect();
    let mut rows = of_pipeline(&pipeline, &of_training(), &memory, search)?;
    if workload.mixed().is_some_and(|profile| !runs_in_engines(profile, limits, plan)) {
        rows.iter_mut().for_each(|row| row.engines.clear());
    }
    Ok(rows)
}

/// True if engines can run a plan on several kinds of devices: that of a model, with one tensor degree and one rule of
/// recomputation.
fn runs_in_engines(profile: &MixedProfile, limits: &Limits, plan: &Plan) -> bool {
    let pipeline = layout::pipeline(profile, limits, plan);
    profile.model().is_some() && pipeline.is_ok_and(|pipeline| pipeline.is_uniform())
}

/// Built-in schedules of training, in display order.
pub fn of_training() -> Vec<Schedule> {
    Schedule::ALL.into_iter().filter(|schedule| schedule.has_backward()).collect()
}

/// The same for a pipeline and given schedules. `limits` is the memory of a device of each stage, bytes; stages without
/// one have the last.
///
/// # Errors
/// Reason why a simulation was given up, as a sentence.
pub fn of_pipeline(
    pipeline: &Pipeline,
    schedules: &[Schedule],
    limits: &[f64],
    search: &Search,
) -> Result<Vec<ScheduleRow>, String> {
    let limit_of = |stage: usize| limits.get(stage).or(limits.last()).copied().unwrap_or(f64::INFINITY);
    let limited = limits.iter().any(|limit| limit.is_finite());
    let rows: Result<Vec<ScheduleRow>, String> = schedules
        .par_iter()
        .map(|&schedule| {
            let refused = pipeline.refusal(schedule);
            let figures = match refused {
                Some(_) => None,
                None => {
                    // A plan with virtual stages runs 1F1B interleaved; the row of 1F1B shows it without.
                    let whole = Pipeline { interleaved: false, ..pipeline.clone() };
                    let timeline = Simulation::of(whole, schedule, search)?.timeline;
                    let fits = timeline.peak_memory_bytes.iter().enumerate().all(|(i, &bytes)| bytes <= limit_of(i));
                    Some(ScheduleFigures {
                        iteration_s: timeline.iteration_s,
                        samples_per_s: timeline.samples_per_s,
                        idle: timeline.idle,
                        peak_memory_bytes: timeline.peak_memory(),
                        fits: limited.then_some(fits),
                        on_front: false,
                    })
                }
            };
            let virtual_stages = pipeline.virtual_stages(schedule);
            let repair = pipeline.repair(schedule);
            let engines = Runner::running(schedule).map(Runner::id).collect();
            Ok(ScheduleRow {
                id: schedule.id(),
                name: schedule.name(),
                virtual_stages,
                engines,
                figures,
                refused,
                repair,
            })
        })
        .collect();
    let mut rows = rows?;
    rows.sort_by(|a, b| {
        let key = |row: &ScheduleRow| row.figures.map_or(f64::INFINITY, |figures| figures.iteration_s);
        key(a).total_cmp(&key(b))
    });
    let fits = |figures: &ScheduleFigures| figures.fits != Some(false);
    let all: Vec<ScheduleFigures> = rows.iter().filter_map(|row| row.figures).filter(fits).collect();
    for own in rows.iter_mut().filter_map(|row| row.figures.as_mut()) {
        own.on_front = fits(own) && !all.iter().any(|other| dominates(other, own));
    }
    Ok(rows)
}

/// Assumptions of the table, a sentence each.
pub fn assumptions(rows: &[ScheduleRow]) -> Vec<&'static str> {
    let there = |id: &[&str]| rows.iter().any(|row| row.figures.is_some() && id.contains(&row.id));
    let mut told = vec![
        "differences between schedules are simulated, not measured",
        "passes keep the plan's times; parts of a stage take equal shares of them, even if its layers cannot be divided so",
    ];
    if there(&["seq1f1b"]) {
        told.push("slices of a sequence take equal shares too, although attention gives later slices more work");
    }
    if there(&["combined-1f1b", "dualpipe", "dualpipe-v"]) {
        told.push(
            "passes of a pair take the sum of their times, less the exchange of tokens between experts that each hides",
        );
    }
    told
}

/// True if `a` is no worse in time and memory, and better in one. Times within 0.01 % count as equal.
fn dominates(a: &ScheduleFigures, b: &ScheduleFigures) -> bool {
    const SAME: f64 = 1e-4;
    let [time, memory] = [(a.iteration_s, b.iteration_s), (a.peak_memory_bytes, b.peak_memory_bytes)];
    let no_worse = |(a, b): (f64, f64)| a <= b * (1.0 + SAME);
    let better = |(a, b): (f64, f64)| a < b * (1.0 - SAME);
    no_worse(time) && no_worse(memory) && (better(time) || better(memory))
}
