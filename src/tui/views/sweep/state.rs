//! State of the Sweep view: limit, lines, results so far, cursor.
//!
//! A sweep starts when the view is opened or by a key, never by itself, and runs on its own threads. It depends on
//! workload, planner, options and limits. When those change it stops, and its results stay visible, marked as old. The
//! swept limit is no such dependency: applying a value from the chart leaves the chart as it is.

use std::sync::Arc;

use crate::{
    cluster::{LimitKind, Limits},
    planner::{OptionSpec, Options},
    study::sweep::{
        ChartFigure, LimitValues, PointResult, Sweep,
        around::RangeWidth,
        chart::{Chart, ChartLine, ChartPoint, Scale},
    },
    tui::shown::ShownRun,
    workload::Workload,
};

/// Inputs of a sweep.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    /// Workload.
    pub(super) workload: Arc<Workload>,
    /// Index of the planner.
    pub(super) planner: usize,
    /// Options of the planner.
    pub(super) options: Options,
    /// Without the swept limits.
    pub(super) limits: Limits,
    /// Seed of every search.
    pub(super) seed: u64,
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.workload, &other.workload)
            && (self.planner, &self.options, &self.limits, self.seed)
                == (other.planner, &other.options, &other.limits, other.seed)
    }
}

/// Sweep with its results so far.
#[derive(Debug)]
pub(in crate::tui) struct Swept {
    pub(super) basis: Basis,
    /// Swept limit.
    pub(in crate::tui) kind: LimitKind,
    /// Second limit, along the vertical axis of the map, if any.
    pub(in crate::tui) second: Option<LimitKind>,
    /// Points to compute.
    pub(in crate::tui) sweep: Arc<Sweep>,
    /// Results, in the order of the points.
    pub(in crate::tui) answers: Vec<Option<PointResult>>,
    /// Results as lines.
    pub(in crate::tui) chart: Chart,
}

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct SweepState {
    /// Sweep on the screen.
    pub(in crate::tui) swept: Option<Swept>,
    /// Index of the swept limit among those of the planner.
    pub(super) axis: usize,
    /// Spacing of the values.
    pub(super) reach: RangeWidth,
    /// Typed values, instead of those around the value in force.
    pub(super) typed: Option<LimitValues>,
    /// Offset of the second limit from the first among the planner's limits; 0: none.
    pub(super) second: usize,
    /// Axes with the opposite of their default scale: 0 none, 1 vertical, 2 both, 3 horizontal.
    pub(super) scales: u8,
    /// Index of the set of lines.
    pub(super) lines: usize,
    /// Index in `ChartFigure::ALL` of the drawn figure.
    pub(super) figure: usize,
    /// True if a change at the left stopped the sweep before its last point.
    pub(super) cut_short: bool,
    /// Index of the point under the cursor.
    pub(in crate::tui) cursor: usize,
    /// Index of the selected line.
    pub(in crate::tui) line: usize,
}

/// State of the view, by the name that all views share.
pub(in crate::tui) type State = SweepState;

impl Swept {
    /// Line, mark and result under the cursor, if that point has one.
    pub(in crate::tui) fn read(&self, line: usize, place: usize) -> Option<(&ChartLine, &ChartPoint, &PointResult)> {
        let line = self.chart.lines.get(line)?;
        let x = *self.chart.places.get(place)?;
        let mark = line.marks.iter().find(|mark| mark.x == x)?;
        Some((line, mark, self.answers[mark.place].as_ref()?))
    }

    /// True if the planner of a line supports the swept limit.
    pub(in crate::tui) fn heeds(&self, line: usize) -> bool {
        let label = self.chart.lines.get(line).map(|line| &line.label);
        let series = self.sweep.series.iter().position(|series| Some(&series.label) == label);
        // A single line is not named after its series, and its planner then supports the limit.
        series.is_none_or(|series| self.sweep.supports(series, self.kind))
    }

    /// True if work is distributed over the swept limit, and the figure tells its speed.
    pub(in crate::tui) fn scales(&self) -> bool {
        let speed =
            [ChartFigure::Objective, ChartFigure::Iteration, ChartFigure::Throughput].contains(&self.chart.figure);
        speed && self.kind == LimitKind::Devices && self.second.is_none()
    }

    /// Axis of the figure.
    pub(in crate::tui) fn y_scale(&self) -> &Scale {
        &self.chart.y
    }

    /// Value of the shown plan, as a goal for others.
    pub(in crate::tui) fn goal(&self, shown: Option<&ShownRun>) -> Option<f64> {
        let shown = shown?.score.as_ref().filter(|score| score.is_valid())?;
        let objective = self.chart.objective.as_ref()?;
        (shown.measure.name() == objective.0).then_some(shown.value)
    }

    /// Number of points with a result, and of all points.
    pub(in crate::tui) fn counts(&self) -> (usize, usize) {
        (self.answers.iter().flatten().count(), self.answers.len())
    }
}

/// Set of lines in a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lines {
    /// The planner in force.
    One,
    /// Every planner with the same objective.
    Planners,
    /// The planner in force with each value of an option.
    Option(&'static OptionSpec),
}
