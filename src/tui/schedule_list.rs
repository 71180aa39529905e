//! List of the schedules that the shown plan can run, with their time and memory, and of those that it cannot run.

use std::sync::Arc;

use super::simulated::Simulated;
use crate::{
    simulate::Schedule,
    study::schedules::{ScheduleFigures, ScheduleRow},
};

/// State of the list. Its order is fixed, so that no row moves when figures arrive.
#[derive(Debug, Clone)]
pub(super) struct ScheduleList {
    /// Simulated plan of the rows.
    pub(super) of: Arc<Simulated>,
    /// Schedules: first those that the plan can run.
    pub(super) rows: Vec<ListedSchedule>,
    /// Index of the selected row.
    pub(super) cursor: usize,
    /// Figures, or why there are none; `None` while they are simulated.
    pub(super) figures: Option<Result<Vec<ScheduleRow>, String>>,
}

/// Row of the list.
#[derive(Debug, Clone)]
pub(super) struct ListedSchedule {
    /// The schedule.
    pub(super) schedule: Schedule,
    /// Why the plan cannot run it.
    pub(super) refused: Option<String>,
    /// Repair that lets it run.
    pub(super) repair: Option<String>,
}

impl ScheduleList {
    /// List for a plan. `own` is a schedule of the user's, from a file or an edit.
    pub(super) fn new(of: Arc<Simulated>, own: Option<Schedule>) -> Self {
        let row = |schedule: Schedule| ListedSchedule {
            schedule,
            refused: of.pipeline.refusal(schedule),
            repair: of.pipeline.repair(schedule),
        };
        let mut rows: Vec<ListedSchedule> = own.into_iter().chain(Schedule::ALL).map(row).collect();
        rows.sort_by_key(|row| row.refused.is_some());
        let cursor = rows.iter().position(|row| row.schedule == of.schedule()).unwrap_or(0);
        ScheduleList { of, rows, cursor, figures: None }
    }

    /// Schedules with figures of training.
    pub(super) fn simulated(&self) -> Vec<Schedule> {
        let able = self.rows.iter().filter(|row| row.refused.is_none() && row.schedule.has_backward());
        able.map(|row| row.schedule).collect()
    }

    /// Figures of a row, if they are known.
    pub(super) fn of(&self, row: &ListedSchedule) -> Option<(&ScheduleRow, ScheduleFigures)> {
        let rows = self.figures.as_ref()?.as_ref().ok()?;
        let found = rows.iter().find(|known| known.id == row.schedule.id())?;
        Some((found, found.figures?))
    }

    /// Shortest iteration among the rows, seconds.
    pub(super) fn fastest(&self) -> Option<f64> {
        let figures = self.rows.iter().filter_map(|row| Some(self.of(row)?.1.iteration_s));
        figures.min_by(f64::total_cmp)
    }
}
