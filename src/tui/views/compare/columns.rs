//! Columns of Compare's table: which ones fit, and their texts. `O(plans · columns)`.

use ratatui::text::Span;
use unicode_width::UnicodeWidthStr;

use super::{
    compared::Compared,
    pictures,
    state::{Key, Row},
    table::{GUTTER, NAME, SHOWN},
};
use crate::{
    study::{columns::Column, compare::ComparedPlan},
    tui::{
        model::Model,
        theme::{Role, Theme},
    },
};

/// Columns to draw, with their widths.
pub(super) struct Columns {
    pub(super) name: usize,
    /// Widths of the strip of stages, and of the bar of times with the difference in words, cells; 0 if they do not
    /// fit.
    pub(super) strip: usize,
    pub(super) bar: usize,
    /// Minimum and maximum simulated time on the table, seconds: of iterations, then of single samples.
    times: [(f64, f64); 2],
    pub(super) columns: Vec<(Column, usize)>,
    /// True if idle time and memory have a bar before their figures; then the largest idle share.
    meters: bool,
    most_idle: f64,
    /// Columns that do not fit.
    pub(super) hidden: Vec<Column>,
    /// True if all objectives are times per sample, which the title then says once.
    pub(super) each: bool,
}

/// Title of a column, shortened so that more columns fit.
pub(super) fn head_of(column: Column, each: bool) -> &'static str {
    match column {
        Column::Objective if each => "obj/sample",
        Column::Memory => "peak",
        Column::Devices => "dev",
        Column::Throughput => "samp/s",
        Column::Predicted => "model",
        other => other.title(),
    }
}

/// Objective as a time, if it is per sample.
pub(super) fn per_sample(entry: &ComparedPlan) -> Option<String> {
    Column::Objective.cell(entry).strip_suffix("/sample").map(str::to_string)
}

/// Text of a column for a plan, without a unit that the title has.
pub(super) fn cell(column: Column, compared: &Compared, each: bool) -> String {
    match column {
        Column::Objective if each => per_sample(&compared.entry).unwrap_or_else(|| column.cell(&compared.entry)),
        _ => column.cell(&compared.entry),
    }
}

impl Columns {
    pub(super) fn new(model: &Model, all: &[Row], width: usize) -> Self {
        let keys: Vec<Key> =
            all.iter().filter_map(|row| if let Row::Plan(key) = row { Some(*key) } else { None }).collect();
        let sort = model.views.compare.sort;
        let measured = keys.iter().filter_map(|key| model.compared(*key)).filter(|c| c.entry.value().is_some());
        let each = measured.map(|c| per_sample(&c.entry)).all(|text| text.is_some());
        let needed = |column: Column| {
            let cells = keys.iter().filter_map(|key| model.compared(*key)).map(|c| cell(column, c, each).width());
            // The sort sign follows the title.
            let title = head_of(column, each).width() + if column == sort { 2 } else { 0 };
            cells.max().unwrap_or(1).max(title) + 2
        };
        let longest = keys.iter().map(|key| model.compared_name(*key).width() + SHOWN.width()).max().unwrap_or(0);
        // Drop a figure rather than cut a name; the full name is below the table.
        let reserved = longest.clamp(NAME.0, NAME.1.min(width / 4).max(NAME.0));
        // The difference from the best in words stays where there is something to compare.
        let words = if keys.len() > 1 && width >= WITH_WORDS { pictures::GAP + pictures::WORDS } else { 0 };
        let mut used = GUTTER + reserved + needed(sort) + words;
        let mut columns = vec![];
        for column in Column::ALL {
            if column == sort {
                columns.push((column, needed(column)));
            } else if used + needed(column) <= width {
                used += needed(column);
                columns.push((column, needed(column)));
            }
        }
        // The remaining width goes to the names, then to the pictures.
        let left = width.saturating_sub(used - reserved - words);
        let name = longest.clamp(NAME.0, NAME.1).min(left.saturating_sub(words));
        let metered = columns.iter().filter(|(column, _)| is_metered(*column)).count() * pictures::METERED;
        let meters = metered > 0 && left - name >= metered + ENOUGH;
        let (strip, bar) = pictures::widths(left - name - if meters { metered } else { 0 });
        let valid = |key: &&Key| model.compared(**key).is_some_and(|compared| compared.entry.value().is_some());
        let times = [false, true].map(|alone| {
            let time = |key: &Key| {
                let entry = &model.compared(*key)?.entry;
                let simulated = entry.simulated.as_ref().filter(|_| entry.runs_alone() == alone);
                simulated.map(|simulated| simulated.iteration_s)
            };
            let best = keys.iter().filter(valid).filter_map(time).fold(f64::INFINITY, f64::min);
            (best, keys.iter().filter_map(time).fold(0.0, f64::max))
        });
        let seen = |column: &Column| columns.iter().any(|(other, _)| other == column);
        let hidden = Column::ALL.into_iter().filter(|column| !seen(column)).collect();
        let idle = |key: &Key| Column::Idle.figure(&model.compared(*key)?.entry);
        let most_idle = keys.iter().filter_map(idle).fold(0.0, f64::max);
        Columns { name, strip, bar, times, hidden, columns, each, meters, most_idle }
    }
}

/// Minimum width of a table with the difference from the best, cells.
const WITH_WORDS: usize = 76;

/// Minimum width of the pictures before bars for idle time and memory are added, cells.
const ENOUGH: usize = 52;

fn is_metered(column: Column) -> bool {
    matches!(column, Column::Idle | Column::Memory)
}

impl Columns {
    /// Minimum and maximum time among plans comparable with this one, seconds.
    pub(super) fn times(&self, entry: &ComparedPlan) -> (f64, f64) {
        self.times[usize::from(entry.runs_alone())]
    }

    /// Width of the bar before a column's figures, cells.
    pub(super) fn meter(&self, column: Column) -> usize {
        if self.meters && is_metered(column) { pictures::METERED } else { 0 }
    }
}

/// Bar before a figure: idle time relative to the largest, memory relative to the limit.
pub(super) fn meter(column: Column, compared: &Compared, columns: &Columns, theme: &Theme) -> Vec<Span<'static>> {
    let figure = column.figure(&compared.entry).unwrap_or(0.0);
    let whole = if column == Column::Idle { columns.most_idle } else { compared.memory_limit() };
    let role = if column == Column::Idle { Role::Warning } else { Role::Activations };
    pictures::meter(figure / whole.max(f64::MIN_POSITIVE), theme.fg(role))
}
