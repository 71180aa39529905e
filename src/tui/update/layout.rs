//! Knobs of the layout: turned, freed, and what their values would cost.

use std::sync::Arc;

use crate::{
    planner::{OptionSpec, Outcome, Problem, Search},
    run,
    tui::{
        action::Action,
        effect::Effects,
        layout_bar::{AxisTrials, AxisValue, LayoutTitle},
        model::{Focus, Model, Tone},
        studies::StudyKind,
        study_job::Finding,
    },
    units,
};

/// Reason why there is no plan, without its value.
fn reason(outcome: &Outcome, limit: f64) -> String {
    let Some(infeasible) = &outcome.infeasible else { return "has no plan".into() };
    match infeasible.smallest_memory_bytes {
        Some(bytes) => format!("does not fit: {} of {}", units::bytes_beside(bytes, limit), units::bytes_exact(limit)),
        None => "has no layout".into(),
    }
}

impl Model {
    /// Options of the planner in force that it heeds for this workload.
    pub(in crate::tui) fn heeded(&self) -> Vec<&'static OptionSpec> {
        let ignored = self.session.current_planner().ignores(&self.session.workload);
        self.session.specs().iter().filter(|spec| !ignored.contains(&spec.name)).collect()
    }

    /// Title of the shown plan.
    pub(in crate::tui) fn layout_title(&self) -> LayoutTitle {
        let Some(shown) = &self.planning.shown else { return LayoutTitle::default() };
        let specs = if self.aside() { vec![] } else { self.heeded() };
        LayoutTitle::of(shown, &specs, &self.session.options[self.session.planner])
    }

    /// Knob with the focus.
    pub(in crate::tui) fn knob(&self) -> Option<AxisValue> {
        let title = self.layout_title();
        let knobs = title.knobs();
        knobs.get(self.layout.at.min(knobs.len().saturating_sub(1))).map(|value| (*value).clone())
    }

    /// Gives the keys to the next part of the screen, or to the one before: view, left panel, knobs.
    pub(in crate::tui) fn turn_focus(&mut self, forwards: bool) -> Effects {
        let knobs = !self.layout_title().knobs().is_empty();
        self.focus = match (self.focus, forwards) {
            (Focus::View, true) | (Focus::Layout, false) => Focus::Panel,
            (Focus::Panel, true) | (Focus::View, false) if knobs => Focus::Layout,
            (Focus::View, false) => Focus::Panel,
            _ => Focus::View,
        };
        self.try_axis()
    }

    /// Performs an action on the knobs. False if it is none of theirs.
    pub(in crate::tui) fn act_on_layout(&mut self, action: Action) -> Option<Effects> {
        let count = self.layout_title().knobs().len();
        match action {
            Action::Up | Action::First => self.layout.at = self.layout.at.saturating_sub(1),
            Action::Down | Action::Last => self.layout.at = (self.layout.at + 1).min(count.saturating_sub(1)),
            Action::Increase | Action::IncreaseLarge | Action::Edit => return Some(self.turn_axis(true)),
            Action::Decrease | Action::DecreaseLarge => return Some(self.turn_axis(false)),
            Action::Reset => return Some(self.free_axis()),
            _ => return None,
        }
        Some(self.try_axis())
    }

    fn turn_axis(&mut self, up: bool) -> Effects {
        let (Some(own), Some(shown)) = (self.knob(), self.planning.shown.clone()) else { return vec![] };
        let Some(spec) = self.heeded().into_iter().find(|spec| spec.name == own.axis.option()) else { return vec![] };
        let known = self.layout.trials.as_ref();
        let known = known.filter(|trials| trials.axis == own.axis && Arc::ptr_eq(&trials.of, &shown)).cloned();
        let trials = known.unwrap_or_else(|| self.trials(&own, spec, &shown));
        match trials.next(up) {
            Ok((trial, over)) => {
                let effects = self.set_option(spec, trial.value.clone());
                if !over.is_empty() {
                    self.message = Some((Tone::Done, format!("stepped over {}", over.join("; "))));
                }
                effects
            }
            Err(reason) => {
                self.message = Some((Tone::Refused, reason));
                vec![]
            }
        }
    }

    fn free_axis(&mut self) -> Effects {
        let Some(own) = self.knob() else { return vec![] };
        let Some(spec) = self.heeded().into_iter().find(|spec| spec.name == own.axis.option()) else { return vec![] };
        self.set_option(spec, spec.default_value())
    }

    fn trials(&self, own: &AxisValue, spec: &OptionSpec, shown: &Arc<crate::tui::shown::ShownRun>) -> AxisTrials {
        let now = self.session.option_value(spec);
        AxisTrials::new(Arc::clone(shown), own, spec, &now, self.session.limits.devices)
    }

    /// Plans with the other values of the knob that has the focus, beside the shown plan.
    pub(in crate::tui) fn try_axis(&mut self) -> Effects {
        let (Some(own), Some(shown)) = (self.knob(), self.planning.shown.clone()) else { return vec![] };
        let known = self.layout.trials.as_ref();
        let same = known.is_some_and(|trials| trials.axis == own.axis && Arc::ptr_eq(&trials.of, &shown));
        if self.focus != Focus::Layout || same || self.planning.planning() {
            return vec![];
        }
        let Some(spec) = self.heeded().into_iter().find(|spec| spec.name == own.axis.option()) else { return vec![] };
        let mut trials = self.trials(&own, spec, &shown);
        self.layout.trials = Some(trials.clone());
        let planner = self.session.current_planner();
        let problem = Problem {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            options: self.session.options[self.session.planner].clone(),
        };
        let work = move |study: &Search, found: &mut dyn FnMut(Finding)| {
            for trial in trials.all() {
                let mut problem = problem.clone();
                problem.options.set(spec.name, trial.value.clone());
                let planned = run::plan(planner, &problem, study);
                if study.cancelled() {
                    return;
                }
                let result = match planned {
                    Err(error) => Err(error.to_string()),
                    Ok((outcome, _)) => match (outcome.objective, &outcome.plan) {
                        (Some(seconds), Some(_)) => Ok(seconds),
                        _ => Err(reason(&outcome, problem.limits.memory_limit())),
                    },
                };
                let (axis, value) = (own.axis, trial.value.clone());
                found(Box::new(move |model: &mut Model| {
                    let Some(known) = model.layout.trials.as_mut().filter(|known| known.axis == axis) else { return };
                    if let Some(trial) = known.all().into_iter().find(|trial| trial.value == value) {
                        trial.result = Some(result);
                    }
                }));
            }
        };
        vec![self.begin_study(StudyKind::Axis, Box::new(work))]
    }
}
