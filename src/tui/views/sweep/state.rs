//! State of the Sweep view: limit, lines, results so far, cursor.
//!
//! A sweep starts when the view is opened or by a key, never by itself, and runs on its own threads. It depends on
//! workload, planner, options and limits. When those change it stops, and its results stay visible, marked as old. The
//! swept limit is no such dependency: applying a value from the chart leaves the chart as it is.

use std::sync::Arc;

use crate::{
    cluster::{LimitKind, Limits},
    planner::{OptionKind, OptionSpec, Options},
    study::{
        explain::limits_of,
        sweep::{
            LimitValues, PointResult, Sweep,
            around::{RangeWidth, values_around},
            chart::{Chart, ChartLine, ChartPoint, Scale},
        },
    },
    tui::model::{Model, Session},
    workload::Workload,
};

/// Maximum number of values of a second limit.
const MOST_UP: usize = 9;

/// Inputs of a sweep.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    workload: Arc<Workload>,
    planner: usize,
    options: Options,
    /// Without the swept limits.
    limits: Limits,
    seed: u64,
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

    /// True if work is distributed over the swept limit.
    pub(in crate::tui) fn scales(&self) -> bool {
        self.kind == LimitKind::Devices && self.second.is_none()
    }

    /// Axis of the figure.
    pub(in crate::tui) fn y_scale(&self) -> &Scale {
        &self.chart.y
    }

    /// Value of the shown plan, as a goal for others.
    pub(in crate::tui) fn goal(&self, model: &Model) -> Option<f64> {
        let shown = model.planning.shown.as_ref()?.score.as_ref().filter(|score| score.is_valid())?;
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

impl Session {
    pub(super) fn sweep_axes(&self) -> &'static [LimitKind] {
        limits_of(self.current_planner(), &self.workload)
    }

    pub(super) fn line_sets(&self) -> Vec<Lines> {
        let few = |spec: &&OptionSpec| matches!(spec.kind, OptionKind::Flag { .. } | OptionKind::Choice { .. });
        let options = self.specs().iter().filter(few).map(Lines::Option);
        [Lines::One, Lines::Planners].into_iter().chain(options).collect()
    }

    /// Inputs of a sweep that starts now.
    pub(super) fn basis(&self, kind: LimitKind, second: Option<LimitKind>) -> Basis {
        Basis {
            workload: self.workload.clone(),
            planner: self.planner,
            options: self.options[self.planner].clone(),
            limits: second.map_or_else(|| self.limits.clone(), |second| self.limits.with(second, 1.0)).with(kind, 1.0),
            seed: self.seed,
        }
    }

    /// Values of the second limit: fewer than of the first, so that cells stay visible.
    pub(super) fn up_the_map(&self, kind: LimitKind) -> Vec<f64> {
        let all = values_around(kind, self.limits.get(kind), RangeWidth::Wide);
        let now = self.limits.get(kind);
        let at = all.iter().position(|value| *value == now).unwrap_or(all.len() / 2);
        let step = all.len().div_ceil(MOST_UP).max(1);
        (0..all.len()).filter(|place| place.abs_diff(at).is_multiple_of(step)).map(|place| all[place]).collect()
    }
}

impl Model {
    /// Swept limit: one that the planner supports.
    pub(in crate::tui) fn sweep_axis(&self) -> LimitKind {
        let kinds = self.session.sweep_axes();
        kinds[self.views.sweep.axis % kinds.len()]
    }

    pub(super) fn lines(&self) -> Lines {
        let sets = self.session.line_sets();
        sets[self.views.sweep.lines % sets.len()]
    }

    /// Example of a typed range for the swept limit.
    pub(in crate::tui) fn sweep_range_example(&self) -> &'static str {
        self.sweep_axis().example_of_range()
    }

    /// Name of the set of lines on the screen.
    pub(in crate::tui) fn lines_title(&self) -> String {
        match self.lines() {
            Lines::One => self.session.current_planner().info().name.to_string(),
            Lines::Planners => "every planner".into(),
            Lines::Option(spec) => format!("{} by {}", self.session.current_planner().info().name, spec.label),
        }
    }

    /// Second limit, if requested.
    pub(super) fn sweep_second(&self) -> Option<LimitKind> {
        let kinds = self.session.sweep_axes();
        let place = self.views.sweep.second % kinds.len();
        (place > 0).then(|| kinds[(self.views.sweep.axis + place) % kinds.len()])
    }

    /// True if the shown sweep has other inputs than those at the left.
    pub(in crate::tui) fn sweep_stale(&self) -> bool {
        self.views.sweep.swept.as_ref().is_some_and(|swept| swept.basis != self.session.basis(swept.kind, swept.second))
    }
}
