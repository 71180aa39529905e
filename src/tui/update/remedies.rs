//! Study of remedies where no layout of a model fits, and taking one.

use std::sync::Arc;

use crate::{
    cluster::{GivenLimits, LimitKind},
    family::dial,
    planner::{Problem, Search},
    study::remedies::{self, InputChange, PlanInputs, RemedyResult, TrainedFigures, least_sensible},
    tui::{
        action::Action,
        effect::Effects,
        model::{Focus, Model, Tone},
        remedies::Remedies,
        shown::ShownRun,
        studies::StudyKind,
        study_job::Finding,
    },
};

/// Dial of the hardware.
const HARDWARE: &str = "hardware";

impl Model {
    /// Limits that were stated, but for memory, which other hardware brings, and machines, which follow from devices.
    pub(in crate::tui) fn stated_limits(&self) -> GivenLimits {
        let mut stated = self.session().limits(&GivenLimits::default());
        stated.set(LimitKind::Memory, None::<f64>);
        stated.machines = None;
        stated
    }

    /// Inputs of a run, for a study of their changes.
    pub(in crate::tui) fn plan_inputs(&self, shown: &ShownRun) -> PlanInputs {
        PlanInputs {
            planner: self.session.current_planner(),
            problem: Problem {
                workload: Arc::clone(&shown.workload),
                limits: shown.limits.clone(),
                options: shown.options.clone(),
            },
            stated: self.stated_limits(),
            defaults: self.session.defaults.clone(),
            hardware: self.session.prices.keys().cloned().collect(),
        }
    }

    /// Looks for remedies of a result without a plan.
    pub(super) fn look_for_remedies(&mut self, shown: &Arc<ShownRun>) -> Effects {
        self.planning.cancel_study(StudyKind::Remedies);
        if std::mem::take(&mut self.planning.remedies.opening) {
            return self.look_for_sensible_devices(shown);
        }
        let infeasible = shown.outcome.infeasible.clone().filter(|_| shown.outcome.plan.is_none());
        let Some(infeasible) = infeasible.filter(|_| shown.workload.training().is_some()) else {
            self.planning.remedies = Remedies::default();
            return vec![];
        };
        self.planning.remedies = Remedies { of: Some(Arc::clone(shown)), ..Remedies::default() };
        if self.views.history.tries.is_empty() {
            let on = self.hardware().unwrap_or_default();
            self.views.history.refused = Some(format!("{} {on} hold no layout", shown.limits.devices));
        }
        let inputs = self.plan_inputs(shown);
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            let mut tell = |tried: RemedyResult| {
                found(Box::new(move |model: &mut Model| model.planning.remedies.tried.push(tried)));
            };
            remedies::of(&inputs, &infeasible, search, &mut tell);
            if !search.cancelled() {
                found(Box::new(|model: &mut Model| model.planning.remedies.done = true));
            }
        };
        vec![self.begin_study(StudyKind::Remedies, Box::new(work))]
    }

    /// Remedies of the result on the screen, if it has no plan.
    pub(in crate::tui) fn remedies(&self) -> Option<&Remedies> {
        let of = self.planning.remedies.of.as_ref()?;
        self.planning.shown.as_ref().filter(|shown| Arc::ptr_eq(shown, of)).map(|_| &self.planning.remedies)
    }

    /// True if keys go to the remedies.
    pub(in crate::tui) fn remedies_heard(&self) -> bool {
        self.focus == Focus::View && self.view.uses().plan && self.remedies().is_some_and(|own| own.count() > 0)
    }

    /// Performs an action on the remedies; `None` if it is none of theirs.
    pub(in crate::tui) fn act_on_remedies(&mut self, action: Action) -> Option<Effects> {
        let own = &mut self.planning.remedies;
        let last = own.count().saturating_sub(1);
        own.selected = match action {
            Action::Up => own.selected.saturating_sub(1),
            Action::Down => (own.selected + 1).min(last),
            Action::First | Action::PageUp => 0,
            Action::Last | Action::PageDown => last,
            Action::Edit => {
                let change = own.rows().nth(own.selected).map(|remedy| remedy.change.clone())?;
                return Some(self.take_change(change));
            }
            _ => return None,
        };
        Some(vec![])
    }

    /// Changes an input, and plans.
    pub(in crate::tui) fn take_change(&mut self, change: InputChange) -> Effects {
        match change {
            InputChange::Limit(kind, value) => self.set_limits(self.session.limits.with(kind, value)),
            InputChange::Hardware(id, devices) => self.take_hardware(id, devices),
            InputChange::Dial(id, value) => self.take_dial(id, &value),
            InputChange::Option(spec, value) => self.set_option(spec, value),
        }
    }

    fn take_dial(&mut self, id: &str, value: &str) -> Effects {
        match dial::turned(&self.session.workload, id, value) {
            Ok(workload) => self.take_turned(workload),
            Err(error) => {
                self.message = Some((Tone::Refused, error.to_string()));
                vec![]
            }
        }
    }

    /// Id of the hardware in force.
    pub(in crate::tui) fn hardware(&self) -> Option<String> {
        self.session.dials.iter().find(|dial| dial.id == HARDWARE).map(|dial| dial.value.clone())
    }

    /// Plans for other hardware, and for a number of devices if one is given.
    pub(in crate::tui) fn take_hardware(&mut self, id: &str, devices: Option<u32>) -> Effects {
        let mut effects = vec![];
        if self.hardware().as_deref() != Some(id) {
            effects = self.take_dial(HARDWARE, id);
            if self.hardware().as_deref() != Some(id) {
                return effects;
            }
        }
        if let Some(devices) = devices {
            let limits = self.session.limits.with(LimitKind::Devices, f64::from(devices));
            effects.append(&mut self.set_limits(limits));
        }
        effects
    }

    /// Plans on the fewest devices that make sense, after the fewest that hold a layout were planned because nobody
    /// asked for a number.
    pub(super) fn look_for_sensible_devices(&mut self, shown: &Arc<ShownRun>) -> Effects {
        let Some((plan, _)) = shown.plan() else { return vec![] };
        let seconds = shown.outcome.objective;
        let figures = seconds.and_then(|seconds| TrainedFigures::of(&shown.workload, &shown.limits, plan, seconds));
        let machine = shown.workload.training().map_or(1, |profile| profile.accelerator.machine());
        let Some(least) = figures else { return vec![] };
        let inputs = self.plan_inputs(shown);
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            let sensible = least_sensible(&least, machine, &mut |devices| inputs.on_devices(devices, search));
            let Some(sensible) = sensible.filter(|_| !search.cancelled()) else { return };
            let before = inputs.problem.limits.clone();
            found(Box::new(move |model: &mut Model| {
                // The next frame plans for it, unless the user has turned something meanwhile.
                if model.session.limits == before {
                    model.planning.remedies.sensible = Some((least.devices, sensible.devices));
                }
            }));
        };
        vec![self.begin_study(StudyKind::Remedies, Box::new(work))]
    }

    /// Plans on the number of devices that was found to make sense, once.
    pub(super) fn take_sensible_devices(&mut self) -> Effects {
        let Some((least, devices)) = self.planning.remedies.sensible.take() else { return vec![] };
        let limits = self.session.limits.with(LimitKind::Devices, f64::from(devices));
        let effects = self.set_limits(limits);
        self.session.first_limits.devices = devices;
        let told = format!("{least} devices are the fewest that hold a layout, {devices} the fewest that make sense");
        self.message = Some((Tone::Done, told));
        effects
    }
}
