//! Steps of a limit that lead to no plan: memory stops at the least that works, devices step over what holds nothing.

use crate::{
    cluster::{LimitKind, Limits},
    family,
    tui::{
        effect::Effects,
        model::{Model, Tone},
        panel_rows::PanelRow,
        shown::ShownRun,
    },
    units,
};

/// Most numbers of devices that are stepped over.
const OVER: usize = 4;

/// Step of a limit whose plan is awaited.
#[derive(Debug, Clone)]
pub(in crate::tui) struct LimitStep {
    /// The limit.
    kind: LimitKind,
    /// True for a step up.
    up: bool,
    /// True for a large step.
    large: bool,
    /// Limits of the last plan.
    before: Limits,
    /// Needs of the values that were stepped over, in words.
    over: Vec<String>,
}

impl Model {
    /// Devices of a machine that is rented as a whole, for a model to be trained.
    pub(in crate::tui) fn machine(&self) -> Option<f64> {
        Some(self.session.workload.training()?.accelerator.machine().into())
    }

    /// Value of a limit in a text that replaces the present one.
    ///
    /// # Errors
    /// Sentence with the values that are possible.
    pub(in crate::tui) fn read_limit(&self, kind: LimitKind, text: &str) -> Result<f64, String> {
        let value = kind.parse_beside(text, self.session.limits.get(kind)).map_err(|error| error.to_string())?;
        if kind == LimitKind::Devices {
            family::fits(&self.session.workload, value as u32).map_err(|error| error.to_string())?;
        }
        Ok(value)
    }

    /// Next value of a limit. Devices of a model are whole machines; a large step is one device.
    fn next_limit(&self, kind: LimitKind, up: bool, large: bool) -> f64 {
        let most = f64::from(family::of(&self.session.workload).most_devices());
        let value = self.session.limits.get(kind);
        let Some(machine) = self.machine().filter(|_| kind == LimitKind::Devices) else {
            let next = kind.step(value, up, large);
            return if kind == LimitKind::Devices { next.min(most) } else { next };
        };
        match (up, large) {
            (_, true) => kind.step(value, up, false),
            // Parts of a machine are halves.
            (true, false) if value < machine => (value * 2.0).min(machine),
            (false, false) if value <= machine => (value / 2.0).floor().max(1.0),
            (true, false) => kind.step((value / machine).floor() * machine + machine - 1.0, true, false),
            (false, false) => (value / machine).ceil() * machine - machine,
        }
    }

    /// True if the selected row of the panel steps by machines.
    pub(in crate::tui) fn steps_machines(&self) -> bool {
        self.panel_row() == Some(PanelRow::Limit(LimitKind::Devices)) && self.session.workload.training().is_some()
    }

    /// Steps a limit, and remembers where from.
    pub(in crate::tui) fn step_limit(&mut self, kind: LimitKind, up: bool, large: bool) -> Effects {
        let value = self.next_limit(kind, up, large);
        let shown = self.planning.shown.as_ref().filter(|shown| shown.outcome.plan.is_some());
        let before = shown.map(|shown| shown.limits.clone());
        let effects = self.set_limits(self.session.limits.with(kind, value));
        let planned = !effects.is_empty() && !self.edited();
        self.planning.step =
            before.filter(|_| planned).map(|before| LimitStep { kind, up, large, before, over: vec![] });
        effects
    }

    /// Answers a step that led to no plan; `None` if its result is to be shown.
    pub(super) fn answer_step(&mut self, shown: &ShownRun) -> Option<Effects> {
        let step = self.planning.step.take()?;
        let kind = step.kind;
        let asked = self.session.limits.get(kind);
        if shown.limits != self.session.limits {
            return None;
        }
        let Some(infeasible) = shown.outcome.infeasible.as_ref().filter(|_| shown.outcome.plan.is_none()) else {
            if let Some(first) = step.over.first() {
                self.message = Some((Tone::Done, format!("stepped over {}: {first}", step.over.len())));
            }
            return None;
        };
        let before = step.before.get(kind);
        match kind {
            LimitKind::Memory if !step.up => {
                let least = self.fitting_in(shown, kind).filter(|least| *least > asked && *least <= before)?;
                let effects = self.set_limits(step.before.with(kind, least));
                let told = format!("{} of memory is the least that holds a plan", kind.format(least));
                self.message = Some((Tone::Refused, told));
                Some(effects)
            }
            LimitKind::Devices => {
                let needs = infeasible.smallest_memory_bytes.map_or("have no layout".to_string(), |bytes| {
                    let limit = shown.limits.memory_limit();
                    format!("need {} of {}", units::bytes_beside(bytes, limit), units::bytes_exact(limit))
                });
                let mut over = step.over.clone();
                over.push(format!("{asked} devices {needs}"));
                let next = self.next_limit(kind, step.up, step.large);
                let trained = self.session.workload.training().is_some();
                #[allow(clippy::float_cmp, reason = "a step that stays where it is")]
                if trained && over.len() < OVER && next != asked {
                    let effects = self.set_limits(self.session.limits.with(kind, next));
                    self.planning.step = Some(LimitStep { over, ..step });
                    return Some(effects);
                }
                let effects = self.set_limits(step.before);
                let fewer = if step.up { "more" } else { "fewer" };
                let noun = if trained && !step.large { "whole machines" } else { "devices" };
                self.message = Some((Tone::Refused, format!("no {fewer} {noun} hold a plan: {}", over[0])));
                Some(effects)
            }
            _ => None,
        }
    }
}
