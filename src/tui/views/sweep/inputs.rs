//! Inputs of a sweep that starts now: limits, lines and their values.

use super::state::{Basis, Lines};
use crate::{
    cluster::LimitKind,
    plan::Measure,
    planner::{OptionKind, OptionSpec},
    study::{
        explain::limits_of,
        sweep::around::{RangeWidth, values_around},
    },
    tui::model::{Model, Session},
};

/// Maximum number of values of a second limit.
const MOST_UP: usize = 9;

impl Session {
    pub(super) fn sweep_axes(&self) -> &'static [LimitKind] {
        limits_of(self.current_planner(), &self.workload)
    }

    pub(super) fn line_sets(&self) -> Vec<Lines> {
        let few = |spec: &&OptionSpec| matches!(spec.kind, OptionKind::Flag { .. } | OptionKind::Choice { .. });
        let options = self.specs().iter().filter(few).map(Lines::Option);
        let several = (self.lines_of_planners().len() > 1).then_some(Lines::Planners);
        [Lines::One].into_iter().chain(several).chain(options).collect()
    }

    /// Planners whose plans have the objective of the planner in force. Iteration times count as times per sample.
    pub(super) fn lines_of_planners(&self) -> Vec<usize> {
        let like = |planner: usize| match self.objective_of(planner) {
            name if name == Measure::IterationTime.name() => Measure::TimePerSample.name(),
            name => name,
        };
        // Its own line is the first.
        let others = (0..self.planners.len()).filter(|&i| i != self.planner);
        std::iter::once(self.planner)
            .chain(others)
            .filter(|&i| self.refusals[i].is_none() && (self.stands_alone(i) || i == self.planner))
            .filter(|&i| like(i) == like(self.planner))
            .collect()
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
            Lines::Planners => "planners of one objective".into(),
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
