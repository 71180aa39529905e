//! Grid of hardware and numbers of devices.

use crate::study::remedies::TrainedFigures;

/// Figures of a plan in one cell, or why there is none.
pub(super) type CellResult = Result<CellFigures, String>;

/// Figures of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct CellFigures {
    /// Figures of its plan.
    pub figures: TrainedFigures,
    /// Layout in short: `TP 4 CP 2 PP 4 DP 2`.
    pub layout: String,
}

/// Grid of plans.
#[derive(Debug, Clone, Default)]
pub(in crate::tui) struct HardwareGrid {
    /// All that the plans share, in one text: other settings make another grid.
    pub key: String,
    /// Ids of the rows.
    pub rows: Vec<&'static str>,
    /// Devices of the columns.
    pub columns: Vec<u32>,
    /// Cells, row by row; `None` while one is planned.
    pub cells: Vec<Option<CellResult>>,
}

impl HardwareGrid {
    /// Cell of a row and a column.
    pub(super) fn cell(&self, row: usize, column: usize) -> Option<&CellResult> {
        self.cells.get(row * self.columns.len() + column)?.as_ref()
    }
}

/// State of the view.
#[derive(Debug)]
pub(in crate::tui) struct State {
    pub grid: HardwareGrid,
    /// Selected row and column.
    pub cursor: (usize, usize),
    /// Tokens to train on, for days and cost.
    pub tokens: f64,
    /// Days within which it is to be done, if asked for.
    pub within: Option<f64>,
}

impl Default for State {
    fn default() -> Self {
        State { grid: HardwareGrid::default(), cursor: (0, 0), tokens: 1e12, within: None }
    }
}

impl State {
    /// True if a training of some days ends later than asked for.
    pub(super) fn late(&self, days: Option<f64>) -> bool {
        days.zip(self.within).is_some_and(|(days, within)| days > within)
    }
}
