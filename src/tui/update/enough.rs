//! Devices for a model whose file and flags state none: if the assumed number holds no layout, the fewest that do.

use crate::{
    cluster::LimitKind,
    tui::{
        effect::Effects,
        model::{Model, Tone},
        shown::ShownRun,
    },
};

impl Model {
    /// Plans on the fewest devices that hold a layout, after a plan without one on a number that nobody asked for.
    pub(super) fn take_enough_devices(&mut self, shown: &ShownRun) -> Effects {
        let session = &self.session;
        let stated = session.asked_limits.devices().or(session.workload.limits.devices()).is_some();
        let changed = shown.limits != session.limits || session.limits.devices != session.first_limits.devices;
        let enough = shown.outcome.infeasible.as_ref().and_then(|own| own.fewest_devices);
        let enough = enough.filter(|more| *more > session.limits.devices);
        let Some(enough) = enough.filter(|_| !stated && !changed && session.workload.training().is_some()) else {
            return vec![];
        };
        let assumed = session.limits.devices;
        let effects = self.set_limits(session.limits.with(LimitKind::Devices, f64::from(enough)));
        self.session.first_limits.devices = enough;
        self.planning.remedies.opening = true;
        self.message =
            Some((Tone::Done, format!("{assumed} devices hold no layout: planned for {enough}, the fewest that do")));
        effects
    }
}
