//! Sweeps: figures of a plan as one or two limits change, for one or more planners or settings.
//!
//! A [`Sweep`] is a list of [`SweepPoint`]s: workload, line ([`Series`]), limits. [`run`](run::run) answers them in
//! parallel, in the order of interest (`order`). It reports each [`PointResult`] at once, so a sweep can be watched,
//! stopped and resumed. Points that differ only in devices are one run if the planner can answer several at once
//! ([`Planner::answers_many`](plantui_planners::Planner::answers_many)); this takes precedence over the order of
//! interest.

mod answer;
pub mod around;
pub mod chart;
mod compatibility;
pub(crate) mod order;
pub mod papers;
pub(crate) mod range;
pub mod reading;
pub mod run;
mod series;

use std::sync::Arc;

use plantui_core::{
    cluster::{GivenLimits, LimitError, LimitKind, Limits},
    family,
    workload::Workload,
};
use plantui_planners::OptionSpec;

pub use answer::{ChartFigure, PointObjective, PointResult, PointSimulation};
pub use compatibility::IgnoredLimit;
pub use range::LimitValues;
pub use series::{Series, SeriesError};

/// Most points; more are a typing error.
pub const MOST_POINTS: usize = 100_000;

/// Problem of a sweep: one workload under one set of limits, planned with one series.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// Index of its workload.
    pub workload: usize,
    /// Index of its series.
    pub series: usize,
    /// Limits of the point.
    pub limits: Limits,
}

/// Sweep with all its points.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Workloads to plan.
    pub workloads: Vec<Arc<Workload>>,
    /// Planners with their options.
    pub series: Vec<Series>,
    /// Planner option along the chart, which replaces a limit: a number that differs between series.
    pub along: Option<&'static OptionSpec>,
    /// Limits that vary, at most two. The first is along the chart unless an option is.
    pub axes: Vec<LimitKind>,
    /// Points: by workload, then by the second axis, the first axis, and the series.
    pub points: Vec<SweepPoint>,
    /// True if every point is planned separately, so its seconds are those of a single plan.
    pub alone: bool,
}

impl Sweep {
    /// Combines every workload with every combination of limits and every series. `values` are the given limits in the
    /// order of the axes; limits with one value are not axes.
    ///
    /// # Errors
    /// Limit that neither the workload's file nor `values` states, with the workload's source.
    pub fn grid(
        workloads: Vec<Arc<Workload>>,
        series: Vec<Series>,
        values: &[LimitValues],
        rest: &GivenLimits,
    ) -> Result<Self, (String, LimitError)> {
        let mut points = vec![];
        for (place, workload) in workloads.iter().enumerate() {
            // A topology's limits apply only where nothing else states them.
            let wired = |series: &Series| series.wiring.as_ref().map_or_else(|| rest.clone(), |wiring| rest.or(wiring));
            let all = series.iter().map(|series| combinations(workload, values, &wired(series)));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            for at in 0..all.first().map_or(0, Vec::len) {
                points.extend((0..all.len()).map(|s| SweepPoint {
                    workload: place,
                    series: s,
                    limits: all[s][at].clone(),
                }));
            }
        }
        let axes = values.iter().filter(|values| values.is_axis()).map(|values| values.kind).collect();
        Ok(Sweep { workloads, series, along: None, axes, points, alone: false })
    }

    /// Workload's name in tables: its own, its source if two workloads share a name, or both if they share the source too.
    pub fn workload_label(&self, place: usize) -> String {
        let Workload { name, source, .. } = self.workloads[place].as_ref();
        let alone = |same: fn(&Workload) -> &String, own: &String| {
            self.workloads.iter().filter(|other| same(other) == own).count() == 1
        };
        if alone(|other| &other.name, name) {
            name.clone()
        } else if alone(|other| &other.source, source) {
            source.clone()
        } else {
            format!("{name} ({source})")
        }
    }

    /// Names of the axes, the one along the chart first.
    pub fn axis_labels(&self) -> Vec<&'static str> {
        self.along.map(|spec| spec.label).into_iter().chain(self.axes.iter().map(|kind| kind.label())).collect()
    }

    /// Coordinates of a point on the axes, the one along the chart first.
    pub fn coordinates(&self, point: &SweepPoint) -> Vec<f64> {
        let along = self.along.map(|spec| self.series[point.series].options.number(spec.name));
        along.into_iter().chain(self.axes.iter().map(|&kind| point.limits.get(kind))).collect()
    }
}

/// Limits of a workload for every combination of values; the first list varies fastest.
fn combinations(
    workload: &Workload,
    values: &[LimitValues],
    rest: &GivenLimits,
) -> Result<Vec<Limits>, (String, LimitError)> {
    let mut all = vec![rest.clone()];
    for LimitValues { kind, values } in values.iter().rev() {
        let with = |mut overrides: GivenLimits, value: f64| {
            overrides.set(*kind, Some(value));
            overrides
        };
        all = all.iter().flat_map(|overrides| values.iter().map(|&value| with(overrides.clone(), value))).collect();
    }
    let resolved = all.iter().map(|overrides| family::resolve(workload, overrides));
    resolved.map(|limits| limits.map_err(|missing| (workload.source.clone(), missing))).collect()
}
