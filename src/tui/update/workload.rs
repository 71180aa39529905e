//! Another workload, or another version of it.

use std::sync::Arc;

use crate::{
    cluster::LimitKind,
    family::dial,
    planner,
    tui::{
        changes::Changes,
        convergence::Convergence,
        model::{Model, View, natives, refusals},
        panel_rows::PanelRow,
        playing::Playing,
    },
    workload::{Workload, lint},
};

impl Model {
    /// Clears everything that depends on the plans of the last workload.
    pub(super) fn forget_results(&mut self) {
        if let Some(running) = self.planning.running.take() {
            running.search.cancel();
        }
        self.planning.forget_edits();
        self.planning.shown = None;
        self.simulation.simulated = None;
        self.simulation.playing = Playing::default();
        self.planning.convergence = Convergence::default();
        self.planning.changes = Changes::default();
        self.planning.forget_what_would_help();
        for view in View::ALL {
            view.behaviour().forget(self);
        }
    }

    /// Sets the workload and lints it. A planner that refuses it is replaced by another.
    pub(super) fn set_workload(&mut self, workload: Arc<Workload>) {
        let row = self.panel_row();
        self.session.refusals = refusals(self.session.planners, &workload);
        self.session.natives = natives(self.session.planners, &workload);
        self.session.findings = lint::lint(&workload);
        self.session.dials = dial::dials(&workload);
        self.session.workload = workload;
        if self.view.is_of_models() && self.session.workload.training().is_none() {
            self.view = View::Compare;
        }
        self.session.last_for.retain(|&(_, planner)| self.session.refusals[planner].is_none());
        if self.session.refusals[self.session.planner].is_some() {
            self.choose_native();
        }
        self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        // Drop a typed value whose row no longer exists.
        if self.panel.editing.as_ref().is_some_and(|editing| !self.panel_rows().contains(&editing.row)) {
            self.panel.editing = None;
        }
        self.planning.generation += 1;
    }

    /// Switches to a planner that needs no conversion, if there is one and the planner in force needs it.
    pub(super) fn choose_native(&mut self) {
        if !self.session.is_native(self.session.planner) {
            let opens = planner::opens_with(&self.session.workload).map(|planner| planner.info().id);
            let able = (0..self.session.planners.len()).filter(|&i| self.session.refusals[i].is_none());
            let best = able.min_by_key(|&i| Some(self.session.planners[i].info().id) != opens);
            let row = self.panel_row();
            self.session.planner = best.unwrap_or(self.session.planner);
            self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        }
    }
}
