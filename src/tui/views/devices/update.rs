//! Rows and actions of Devices.

use std::sync::Arc;

use super::{
    fails::Failed,
    groups::{self, Groups},
    state::DeviceRow,
};
use crate::tui::{
    action::Action,
    effect::Effects,
    model::{Focus, Model, Tone, View},
    studies::StudyKind,
    study_job::Finding,
    widget::list::{moved, toggle},
};
use crate::{
    planner::Search,
    study::failure::{self, WayResult},
};

impl Model {
    /// Rows of the view, from the top.
    pub(crate) fn device_rows(&self) -> Vec<DeviceRow> {
        let Some(shown) = &self.planning.shown else { return vec![] };
        let Some((plan, _)) = shown.plan() else { return vec![] };
        let mut rows = vec![];
        for (i, stage) in plan.stages.iter().enumerate() {
            rows.push(DeviceRow::Stage(i));
            if self.views.devices.unfolded.contains(&i) {
                rows.extend(stage.devices.iter().map(|&device| DeviceRow::Device(i, device)));
            }
        }
        if !shown.names.unused.is_empty() {
            rows.push(DeviceRow::Unused);
        }
        rows
    }

    /// Performs an action of the view.
    pub(super) fn act_in_devices(&mut self, action: Action) {
        if self.views.devices.groups.is_some() {
            self.walk_groups(action);
            return;
        }
        let rows = self.device_rows();
        let state = &mut self.views.devices;
        match (action, rows.get(state.cursor)) {
            (Action::Toggle, Some(row)) => toggle(&mut state.unfolded, row.stage()),
            (Action::Toggle, None) => {}
            _ => state.cursor = moved(state.cursor, action, rows.len()),
        }
    }

    /// Shows the groups of devices or leaves them.
    pub(in crate::tui) fn toggle_groups(&mut self) {
        let there = std::mem::replace(&mut self.view, View::Devices) == View::Devices;
        let open = !(there && self.views.devices.groups.is_some());
        self.views.devices.groups = if open { self.groups_of_plan() } else { None };
        self.focus = Focus::View;
    }

    /// Groups of the plan on the screen, if it is one of a model to be trained.
    pub(super) fn groups_of_plan(&self) -> Option<Box<Groups>> {
        let shown = self.planning.shown.as_ref()?;
        let (plan, _) = shown.plan()?;
        Groups::of(shown, plan).map(Box::new)
    }

    /// Moves to another device: left and right to a neighbour, up and down to the next row.
    fn walk_groups(&mut self, action: Action) {
        let Some(shown) = self.planning.shown.clone() else { return };
        let Some((plan, _)) = shown.plan() else { return };
        let (last, row) = (plan.devices().count().saturating_sub(1), groups::row_width(&shown));
        if action == Action::Toggle {
            let device = plan.devices().nth(self.views.devices.rank);
            let on = |stage: &crate::plan::Stage| device.is_some_and(|device| stage.devices.contains(&device));
            let stage = plan.stages.iter().position(on);
            self.views.devices.groups = None;
            let row = self.device_rows().iter().position(|row| Some(row.stage()) == stage);
            self.views.devices.cursor = row.unwrap_or_default();
            return;
        }
        let rank = &mut self.views.devices.rank;
        *rank = match action {
            Action::CursorLeft => rank.saturating_sub(1),
            Action::CursorRight => *rank + 1,
            Action::Up => rank.checked_sub(row).unwrap_or(*rank),
            Action::Down if *rank + row <= last => *rank + row,
            Action::First | Action::PageUp => 0,
            Action::Last | Action::PageDown => last,
            _ => *rank,
        }
        .min(last);
    }

    /// Machine that fails, if it is of the plan on the screen.
    pub(super) fn failed(&self) -> Option<&Failed> {
        let failed = self.views.devices.failed.as_deref()?;
        self.planning.shown.as_ref().filter(|shown| Arc::ptr_eq(shown, &failed.of)).map(|_| failed)
    }

    /// Lets the machine of the selected device fail, or revives it.
    pub(in crate::tui) fn fail_machine(&mut self) -> Effects {
        let from = std::mem::replace(&mut self.view, View::Devices);
        let there = from == View::Devices;
        self.focus = Focus::View;
        let open = there && self.failed().is_some();
        self.views.devices.failed = None;
        let Some(shown) = self.planning.shown.clone().filter(|_| !open) else { return vec![] };
        let Some((plan, _)) = shown.plan() else { return vec![] };
        let (Some(profile), Some(seconds)) = (shown.workload.training(), shown.outcome.objective) else {
            return vec![];
        };
        let machine = profile.accelerator.machine();
        if plan.devices_used() <= machine {
            self.message = Some((Tone::Refused, "the plan runs on one machine: without it nothing is left".into()));
            return vec![];
        }
        let state = &self.views.devices;
        let overview = self.device_on_overview().filter(|_| from == View::Overview);
        let device = overview.or(match (&state.groups, self.device_rows().get(state.cursor)) {
            (Some(_), _) => plan.devices().nth(state.rank),
            (None, Some(&DeviceRow::Device(_, device))) => Some(device),
            (None, Some(&DeviceRow::Stage(stage))) => {
                plan.stages.get(stage).and_then(|own| own.devices.first().copied())
            }
            _ => None,
        });
        let number = device.unwrap_or(0) / machine;
        let devices = number * machine..(number + 1) * machine;
        let on = |stage: &crate::plan::Stage| stage.devices.iter().any(|device| devices.contains(device));
        let stage = plan.stages.iter().position(on).unwrap_or(0);
        let failed = Failed { machine: number, devices, of: Arc::clone(&shown), found: vec![], cursor: 0 };
        self.views.devices.failed = Some(Box::new(failed));
        let inputs = self.plan_inputs(&shown);
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            let Some((plan, _)) = shown.plan() else { return };
            let mut tell = |way: WayResult| {
                found(Box::new(move |model: &mut Model| {
                    if let Some(failed) = &mut model.views.devices.failed {
                        failed.found.push(way);
                    }
                }));
            };
            failure::ways_on(&inputs, (plan, seconds), (machine, stage), search, &mut tell);
        };
        vec![self.begin_study(StudyKind::Remedies, Box::new(work))]
    }

    /// Selects a way on.
    pub(super) fn select_way(&mut self, row: usize) {
        if let Some(failed) = &mut self.views.devices.failed {
            failed.cursor = row;
        }
    }

    /// Performs an action on the ways on.
    pub(super) fn act_on_failed(&mut self, action: Action) -> Effects {
        let Some(failed) = self.views.devices.failed.as_deref() else { return vec![] };
        let count = failed.ways().count();
        if action == Action::Toggle {
            let change = failed.ways().nth(failed.cursor).and_then(|way| way.change.clone());
            return match change {
                Some(change) => {
                    self.views.devices.failed = None;
                    self.take_change(change)
                }
                None => {
                    self.message = Some((Tone::Done, "this way keeps the plan that is on the screen".into()));
                    vec![]
                }
            };
        }
        let row = moved(failed.cursor, action, count);
        self.select_way(row);
        vec![]
    }
}
