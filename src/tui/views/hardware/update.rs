//! Plans of the grid, and actions on its cells.

use std::sync::Arc;

use super::state::{CellFigures, CellResult, HardwareGrid};
use crate::{
    cluster::{LimitKind, Limits},
    family::{self, dial},
    planner::{Outcome, Problem, Search},
    run,
    study::remedies::TrainedFigures,
    tui::{
        action::Action,
        effect::Effects,
        layout_bar::degrees,
        model::{Model, Tone},
        studies::StudyKind,
        study_job::Finding,
    },
    units,
    workload::Workload,
};

/// Rows beside the hardware in force and what has a price.
const USUAL: [&str; 7] = ["a100-80", "h100", "h200", "b200", "gb200", "gb300", "mi300x"];
/// Most rows.
const MOST: usize = 8;
/// Dial of the hardware.
const DIAL: &str = "hardware";

impl Model {
    /// Performs an action of the view.
    pub(super) fn act_in_hardware(&mut self, action: Action) -> Effects {
        let (row, column) = self.views.hardware.cursor;
        let grid = &self.views.hardware.grid;
        let [rows, columns] = [grid.rows.len(), grid.columns.len()].map(|count| count.saturating_sub(1));
        self.views.hardware.cursor = match action {
            Action::Up => (row.saturating_sub(1), column),
            Action::Down => ((row + 1).min(rows), column),
            Action::First | Action::PageUp => (0, column),
            Action::Last | Action::PageDown => (rows, column),
            Action::CursorLeft => (row, column.saturating_sub(1)),
            Action::CursorRight => (row, (column + 1).min(columns)),
            Action::Preview => return self.take_cell(),
            Action::SweepAgain => {
                self.views.hardware.grid = HardwareGrid::default();
                return self.fill_hardware();
            }
            _ => return vec![],
        };
        vec![]
    }

    /// Selects a cell, or takes the selected one.
    pub(super) fn click_in_hardware(&mut self, cell: usize) -> Effects {
        let columns = self.views.hardware.grid.columns.len().max(1);
        let clicked = (cell / columns, cell % columns);
        if std::mem::replace(&mut self.views.hardware.cursor, clicked) == clicked { self.take_cell() } else { vec![] }
    }

    /// Plans for the hardware and the devices of the selected cell.
    fn take_cell(&mut self) -> Effects {
        let ((row, column), grid) = (self.views.hardware.cursor, &self.views.hardware.grid);
        let (Some(&id), Some(&devices)) = (grid.rows.get(row), grid.columns.get(column)) else { return vec![] };
        if let Some(Err(reason)) = grid.cell(row, column) {
            self.message = Some((Tone::Refused, format!("{devices} {id}: {reason}")));
            return vec![];
        }
        let effects = self.take_hardware(id, Some(devices));
        self.message = Some((Tone::Done, format!("{devices} {id}")));
        effects
    }

    /// Everything but hardware, memory and devices, in one text.
    fn hardware_key(&self) -> String {
        let dials = self.session.dials.iter().filter(|dial| dial.id != DIAL).map(|dial| dial.value.as_str());
        let dials: Vec<&str> = dials.collect();
        let options = &self.session.options[self.session.planner];
        format!("{} {dials:?} {:?} {options:?}", self.session.workload.name, self.session.limits.samples())
    }

    /// Starts the plans of the grid, unless they are there.
    pub(in crate::tui) fn fill_hardware(&mut self) -> Effects {
        let key = self.hardware_key();
        if self.session.workload.training().is_none() || self.views.hardware.grid.key == key {
            return vec![];
        }
        let Some(now) = self.hardware() else { return vec![] };
        let own = known_ids().find(|id| *id == now);
        let priced = known_ids().filter(|id| self.session.prices.contains_key(*id));
        let mut rows: Vec<&'static str> = own.into_iter().chain(priced).chain(USUAL).collect();
        let mut seen = vec![];
        rows.retain(|id| {
            !seen.contains(id) && {
                seen.push(*id);
                true
            }
        });
        rows.retain(|id| *id == now || dial::turned(&self.session.workload, DIAL, id).is_ok());
        rows.truncate(MOST);
        // In the order of the table of hardware, so that older ones come first.
        rows.sort_by_key(|id| known_ids().position(|other| other == *id));
        let devices = self.session.limits.devices;
        let columns: Vec<u32> = [devices / 4, devices / 2, devices, devices * 2, devices * 4]
            .into_iter()
            .filter(|count| *count > 0 && (devices.is_multiple_of(4) || *count >= devices))
            .collect();
        let at = |row: Option<usize>, column: Option<usize>| (row.unwrap_or(0), column.unwrap_or(0));
        let cursor = at(rows.iter().position(|id| *id == now), columns.iter().position(|count| *count == devices));
        let cells = vec![None; rows.len() * columns.len()];
        self.views.hardware.cursor = cursor;
        self.views.hardware.grid =
            HardwareGrid { key: key.clone(), rows: rows.clone(), columns: columns.clone(), cells };
        // The row and the column of the cursor first.
        let mut order: Vec<(usize, usize)> =
            (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |column| (row, column))).collect();
        order.sort_by_key(|&(row, column)| {
            (row != cursor.0 && column != cursor.1, row.abs_diff(cursor.0) + column.abs_diff(cursor.1))
        });
        let planner = self.session.current_planner();
        let options = self.session.options[self.session.planner].clone();
        let kept = self.stated_limits();
        let (workload, defaults) = (Arc::clone(&self.session.workload), self.session.defaults.clone());
        let work = move |study: &Search, found: &mut dyn FnMut(Finding)| {
            for (row, column) in order {
                let plan = |id: &str, devices: u32| -> Option<CellResult> {
                    let workload = if *id == *now {
                        Arc::clone(&workload)
                    } else {
                        match dial::turned(&workload, DIAL, id) {
                            Ok(workload) => Arc::new(workload),
                            Err(error) => return Some(Err(error.to_string())),
                        }
                    };
                    let given = kept.clone().with(LimitKind::Devices, f64::from(devices));
                    let limits = match family::resolve(&workload, &given.or(&defaults.unstated_by(&workload.limits))) {
                        Ok(limits) => limits,
                        Err(missing) => return Some(Err(missing.to_string())),
                    };
                    let problem = Problem { workload, limits, options: options.clone() };
                    let (outcome, _) = run::plan(planner, &problem, study).ok()?;
                    (!study.cancelled()).then(|| figures(&problem.workload, &problem.limits, &outcome))
                };
                let Some(result) = plan(rows[row], columns[column]) else { return };
                let key = key.clone();
                found(Box::new(move |model: &mut Model| {
                    let grid = &mut model.views.hardware.grid;
                    let at = row * grid.columns.len() + column;
                    if grid.key == key
                        && let Some(cell) = grid.cells.get_mut(at)
                    {
                        *cell = Some(result);
                    }
                }));
            }
        };
        vec![self.begin_study(StudyKind::Hardware, Box::new(work))]
    }
}

/// Ids of the known hardware, older ones first.
fn known_ids() -> impl Iterator<Item = &'static str> {
    family::training::hardware::all().iter().map(|accelerator| accelerator.id)
}

/// Figures of a plan, or why there is none.
fn figures(workload: &Workload, limits: &Limits, outcome: &Outcome) -> CellResult {
    let plan = outcome.plan.as_ref().zip(outcome.objective);
    let Some((plan, seconds)) = plan else {
        let infeasible = outcome.infeasible.as_ref();
        return Err(match infeasible.and_then(|own| own.smallest_memory_bytes) {
            Some(bytes) => format!("needs {}", units::bytes_beside(bytes, limits.memory_limit())),
            None => "has no layout".into(),
        });
    };
    let figures = TrainedFigures::of(workload, limits, plan, seconds).ok_or("has no layout")?;
    let used = plan.devices_used();
    let on = if used < limits.devices { format!(" on {used}") } else { String::new() };
    Ok(CellFigures { layout: degrees(&figures.configuration.layout, "") + &on, figures })
}
