//! Repairs a limit that makes every plan infeasible.

use crate::{
    cluster::LimitKind,
    tui::{
        action::Action,
        effect::Effects,
        model::{Model, Tone},
        shown::ShownRun,
    },
    units,
};

impl Model {
    /// Value of a limit that the planner says makes a plan feasible, if none is now.
    pub(in crate::tui) fn fitting(&self, kind: LimitKind) -> Option<f64> {
        self.fitting_in(self.planning.shown.as_ref()?, kind)
    }

    /// The same, as a result without a plan says.
    pub(super) fn fitting_in(&self, shown: &ShownRun, kind: LimitKind) -> Option<f64> {
        let infeasible = shown.outcome.infeasible.as_ref()?;
        match kind {
            LimitKind::Memory => {
                infeasible.smallest_memory_bytes.map(|bytes| units::bytes_up(bytes, self.session.limits.memory_limit()))
            }
            LimitKind::Devices => infeasible.fewest_devices.map(f64::from),
            _ => None,
        }
    }

    /// Sets the limit to that value.
    pub(in crate::tui) fn fit(&mut self, kind: LimitKind) -> Effects {
        match self.fitting(kind) {
            Some(value) => self.set_limits(self.session.limits.with(kind, value)),
            None => {
                let ask = self.appearance.keymap.of_action(Action::Ask);
                let ask = ask.map_or_else(String::new, |key| format!("; {key} finds the least value"));
                let verb = if kind == LimitKind::Devices { "are" } else { "is" };
                self.message = Some((Tone::Refused, format!("{} {verb} enough for a plan{ask}", kind.label())));
                vec![]
            }
        }
    }
}
