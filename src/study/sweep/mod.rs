//! Sweeps: how a plan's worth changes with one or two limits, for one or more planners or settings of them.
//!
//! A [`Sweep`] is a list of [`Point`]s: workload, line ([`Series`]), limits. [`run`](run::run) answers them in parallel, in the order of
//! interest (`order`), and hands over each [`Answer`] when it is there, so that a sweep can be watched, stopped and taken
//! up again. Points that differ in nothing but devices are one run of a planner that can answer several at once
//! ([`Planner::answers_many`](crate::planner::Planner::answers_many)); this, not the order
//! of interest, decides what runs together.

mod answer;
pub mod around;
pub mod chart;
pub(crate) mod order;
pub mod papers;
pub(crate) mod range;
pub mod reading;
pub mod run;
mod series;
mod suits;

use std::sync::Arc;

use crate::{
    cluster::{GivenLimits, LimitKind, Limits, MissingLimit},
    family,
    planner::OptionSpec,
    workload::Workload,
};

pub use answer::{Answer, Figure, Objective, Simulated};
pub use range::Values;
pub use series::{Series, SeriesError};
pub use suits::Unheeded;

/// More points than this are a slip of the keyboard.
pub const MOST_POINTS: usize = 100_000;

/// A question: one workload under one set of limits, planned in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Which of the sweep's workloads.
    pub workload: usize,
    /// Which of its series.
    pub series: usize,
    /// Under which limits.
    pub limits: Limits,
}

/// All questions.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// What is planned.
    pub workloads: Vec<Arc<Workload>>,
    /// How.
    pub series: Vec<Series>,
    /// The option of the planners that the chart runs along, in place of a limit: a number that differs from series to
    /// series.
    pub along: Option<&'static OptionSpec>,
    /// The limits that vary, the one along the chart first unless an option is; two axes at most.
    pub axes: Vec<LimitKind>,
    /// The points: by workload, then by the second axis, the first axis, and the series.
    pub points: Vec<Point>,
    /// Whether every point is planned by itself, so that its seconds are those of a single plan.
    pub alone: bool,
}

impl Sweep {
    /// Every workload under every combination of limits, planned in every way. `values` are the limits given, in the
    /// order in which they become axes; those with one value are no axis.
    ///
    /// # Errors
    /// A limit that neither the workload's file nor `values` gives, with the workload's source.
    pub fn grid(
        workloads: Vec<Arc<Workload>>,
        series: Vec<Series>,
        values: &[Values],
        rest: &GivenLimits,
    ) -> Result<Self, (String, MissingLimit)> {
        let mut points = vec![];
        for (place, workload) in workloads.iter().enumerate() {
            // What a topology says of limits counts where nothing else does.
            let wired = |series: &Series| series.wiring.as_ref().map_or_else(|| rest.clone(), |wiring| rest.or(wiring));
            let all = series.iter().map(|series| combinations(workload, values, &wired(series)));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            for at in 0..all.first().map_or(0, Vec::len) {
                points.extend((0..all.len()).map(|s| Point { workload: place, series: s, limits: all[s][at].clone() }));
            }
        }
        let axes = values.iter().filter(|values| values.is_axis()).map(|values| values.kind).collect();
        Ok(Sweep { workloads, series, along: None, axes, points, alone: false })
    }

    /// What tables call a workload: its name, or where two share one, where it came from.
    pub fn workload_label(&self, place: usize) -> String {
        let workload = &self.workloads[place];
        let shared = self.workloads.iter().filter(|other| other.name == workload.name).count() > 1;
        if shared { workload.source.clone() } else { workload.name.clone() }
    }

    /// What the axes are called, the one along the chart first.
    pub fn axis_labels(&self) -> Vec<&'static str> {
        self.along.map(|spec| spec.label).into_iter().chain(self.axes.iter().map(|kind| kind.label())).collect()
    }

    /// Where a point lies on the axes, that along the chart first.
    pub fn coordinates(&self, point: &Point) -> Vec<f64> {
        let along = self.along.map(|spec| self.series[point.series].options.number(spec.name));
        along.into_iter().chain(self.axes.iter().map(|&kind| point.limits.get(kind))).collect()
    }
}

/// The limits of a workload for every combination of values; the first list varies fastest.
fn combinations(
    workload: &Workload,
    values: &[Values],
    rest: &GivenLimits,
) -> Result<Vec<Limits>, (String, MissingLimit)> {
    let mut all = vec![rest.clone()];
    for Values { kind, values } in values.iter().rev() {
        let with = |mut overrides: GivenLimits, value: f64| {
            overrides.set(*kind, Some(value));
            overrides
        };
        all = all.iter().flat_map(|overrides| values.iter().map(|&value| with(overrides.clone(), value))).collect();
    }
    let resolved = all.iter().map(|overrides| family::resolve(workload, overrides));
    resolved.map(|limits| limits.map_err(|missing| (workload.source.clone(), missing))).collect()
}
