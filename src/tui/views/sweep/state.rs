//! The Sweep view's state: which limit, which lines, what is answered so far, and where the cursor is.
//!
//! A sweep begins when the view is opened or a key is pressed, never by itself, and runs on threads of its own. It belongs to
//! the workload, planner, options and limits it was begun with; when those change it ends, and what it found stays to be
//! seen, marked as old. The limit it runs along is not one of them: taking a value from the chart leaves the chart as it is.

use std::sync::Arc;

use crate::{
    cluster::{LimitKind, Limits},
    planner::{OptionKind, OptionSpec, Options},
    study::{
        explain::limits_of,
        sweep::{
            Answer, Sweep, Values,
            around::{Reach, around},
            chart::{Chart, Line, Mark, Scale},
        },
    },
    tui::model::Model,
    workload::Workload,
};

/// Values of a second limit at the most.
const MOST_UP: usize = 9;

/// What a sweep was begun with.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    workload: Arc<Workload>,
    planner: usize,
    options: Options,
    /// With the limit along the chart left out.
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

/// A sweep with its answers so far.
#[derive(Debug)]
pub(in crate::tui) struct Swept {
    pub(super) basis: Basis,
    /// Along which limit.
    pub(in crate::tui) kind: LimitKind,
    /// The limit up the map, where there are two.
    pub(in crate::tui) second: Option<LimitKind>,
    /// What is asked.
    pub(in crate::tui) sweep: Arc<Sweep>,
    /// What is answered, as the points lie.
    pub(in crate::tui) answers: Vec<Option<Answer>>,
    /// The answers as lines.
    pub(in crate::tui) chart: Chart,
}

/// The state of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct SweepState {
    /// The sweep that is shown.
    pub(in crate::tui) swept: Option<Swept>,
    /// Along which of the planner's limits.
    pub(super) axis: usize,
    /// How close the values of the limit lie.
    pub(super) reach: Reach,
    /// Values that were typed, in place of those around the one in force.
    pub(super) typed: Option<Values>,
    /// How many places further in the list of the planner's limits the second one is; 0: there is none.
    pub(super) second: usize,
    /// Which axes are logarithmic against what their values suggest: 0 none, 1 that of the figure, 2 both, 3 that along.
    pub(super) scales: u8,
    /// Which set of lines.
    pub(super) lines: usize,
    /// What is drawn of the plans, by place in [`Figure::ALL`].
    pub(super) figure: usize,
    /// Whether the sweep ended before its last point because something at the left was changed.
    pub(super) cut_short: bool,
    /// The place along the chart that is read.
    pub(in crate::tui) cursor: usize,
    /// The line that is read.
    pub(in crate::tui) line: usize,
}

impl Swept {
    /// The line and the mark under the cursor, if that point is answered.
    pub(in crate::tui) fn read(&self, line: usize, place: usize) -> Option<(&Line, &Mark, &Answer)> {
        let line = self.chart.lines.get(line)?;
        let x = *self.chart.places.get(place)?;
        let mark = line.marks.iter().find(|mark| mark.x == x)?;
        Some((line, mark, self.answers[mark.place].as_ref()?))
    }

    /// Whether the planner of a line heeds the limit along the chart.
    pub(in crate::tui) fn heeds(&self, line: usize) -> bool {
        let label = self.chart.lines.get(line).map(|line| &line.label);
        let series = self.sweep.series.iter().position(|series| Some(&series.label) == label);
        // A single line is not called after its series: the limit is one of its planner's then.
        series.is_none_or(|series| self.sweep.heeds(series, self.kind))
    }

    /// Whether the limit along is something that work is spread over.
    pub(in crate::tui) fn scales(&self) -> bool {
        self.kind == LimitKind::Devices && self.second.is_none()
    }

    /// The axis of the figure.
    pub(in crate::tui) fn y_scale(&self) -> &Scale {
        &self.chart.y
    }

    /// What a plan must be worth to be as good as the one that is shown.
    pub(in crate::tui) fn goal(&self, model: &Model) -> Option<f64> {
        let shown = model.shown.as_ref()?.score.as_ref().filter(|score| score.is_valid())?;
        let objective = self.chart.objective.as_ref()?;
        (shown.measure.name() == objective.0).then_some(shown.value)
    }

    /// Points answered, and all.
    pub(in crate::tui) fn counts(&self) -> (usize, usize) {
        (self.answers.iter().flatten().count(), self.answers.len())
    }
}

/// What the lines of a chart are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lines {
    /// The planner in force.
    One,
    /// Every planner with its objective.
    Planners,
    /// The planner in force with each value of an option.
    Option(&'static OptionSpec),
}

impl Model {
    /// The limit along the chart: one that the planner heeds.
    pub(in crate::tui) fn sweep_axis(&self) -> LimitKind {
        let kinds = self.sweep_axes();
        kinds[self.views.sweep.axis % kinds.len()]
    }

    pub(super) fn sweep_axes(&self) -> &'static [LimitKind] {
        limits_of(self.current_planner(), &self.workload)
    }

    pub(super) fn lines(&self) -> Lines {
        let sets = self.line_sets();
        sets[self.views.sweep.lines % sets.len()]
    }

    pub(super) fn line_sets(&self) -> Vec<Lines> {
        let few = |spec: &&OptionSpec| matches!(spec.kind, OptionKind::Flag { .. } | OptionKind::Choice { .. });
        let options = self.specs().iter().filter(few).map(Lines::Option);
        [Lines::One, Lines::Planners].into_iter().chain(options).collect()
    }

    /// A range as one might type it for the limit along the chart.
    pub(in crate::tui) fn sweep_range_example(&self) -> &'static str {
        self.sweep_axis().example_of_range()
    }

    /// What the lines are, for people.
    pub(in crate::tui) fn lines_title(&self) -> String {
        match self.lines() {
            Lines::One => self.current_planner().info().name.to_string(),
            Lines::Planners => "every planner".into(),
            Lines::Option(spec) => format!("{} by {}", self.current_planner().info().name, spec.label),
        }
    }

    /// The limit up the map, if one is asked for.
    pub(super) fn sweep_second(&self) -> Option<LimitKind> {
        let kinds = self.sweep_axes();
        let place = self.views.sweep.second % kinds.len();
        (place > 0).then(|| kinds[(self.views.sweep.axis + place) % kinds.len()])
    }

    /// What a sweep begun now would rest on.
    pub(super) fn basis(&self, kind: LimitKind, second: Option<LimitKind>) -> Basis {
        Basis {
            workload: self.workload.clone(),
            planner: self.planner,
            options: self.options[self.planner].clone(),
            limits: second.map_or_else(|| self.limits.clone(), |second| self.limits.with(second, 1.0)).with(kind, 1.0),
            seed: self.seed,
        }
    }

    /// Whether what the view shows belongs to something else than what stands at the left.
    pub(in crate::tui) fn sweep_stale(&self) -> bool {
        self.views.sweep.swept.as_ref().is_some_and(|swept| swept.basis != self.basis(swept.kind, swept.second))
    }

    /// Values of the second limit: fewer than along, so that cells are seen.
    pub(super) fn up_the_map(&self, kind: LimitKind) -> Vec<f64> {
        let all = around(kind, self.limits.get(kind), Reach::Wide);
        let now = self.limits.get(kind);
        let at = all.iter().position(|value| *value == now).unwrap_or(all.len() / 2);
        let step = all.len().div_ceil(MOST_UP).max(1);
        (0..all.len()).filter(|place| place.abs_diff(at).is_multiple_of(step)).map(|place| all[place]).collect()
    }
}
