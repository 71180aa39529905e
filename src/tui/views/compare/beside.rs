//! Two plans stage by stage: stages with most nodes in common share a line, and every difference has a sign.
//!
//! ```text
//! Piper  20.20 ms/sample  38.79 s            │ Equal partition  25.57 ms/sample  49.10 s  +26.6%
//! stage  nodes DP × TP      time    memory   │ stage  nodes DP × TP      time    memory  border
//! 1          3   4 × 1  19.90 ms  7.41 GiB   │ 1        ▲ 4 ≠ 8 × 1 ▼12.1 ms ▲7.9 GiB  +1
//! ```

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    cells::StageCells,
    compared::Compared,
    state::{Key, Side},
};
use crate::{
    study::{
        columns::Column,
        side_by_side::{self, Difference, difference},
    },
    tui::{
        action::Action,
        marks::Marks,
        model::{Hit, Model},
        paint::{
            area::rows,
            text::{clip, fit, fit_right},
        },
        theme::{Role, Theme},
    },
};

/// Widths of one plan's columns, cells: stage, nodes, degrees, time, memory. All but the first include their sign.
const STAGE: usize = 7;
const NODES: usize = 7;
const DEGREES: usize = 9;
const TIME: usize = 10;
const MEMORY: usize = 11;
const BORDER: usize = 8;
/// Gap between the plans, cells.
const BETWEEN: usize = 3;

/// Columns that fit.
#[derive(Clone, Copy)]
struct Columns {
    nodes: bool,
    memory: bool,
    border: bool,
    words: usize,
}

impl Columns {
    fn new(width: usize) -> Self {
        let mut columns = Columns { nodes: false, memory: false, border: false, words: 0 };
        let fits = |columns: Columns| 2 * columns.half() + BETWEEN + columns.border() <= width;
        for add in [
            |c: Columns| Columns { nodes: true, ..c },
            |c: Columns| Columns { border: true, ..c },
            |c: Columns| Columns { memory: true, ..c },
        ] {
            let more = add(columns);
            if fits(more) {
                columns = more;
            }
        }
        let left = width.saturating_sub(2 * columns.half() + BETWEEN + columns.border());
        columns.words = if left >= 24 { left.min(60) } else { 0 };
        columns
    }

    fn half(self) -> usize {
        let optional = |there: bool, width: usize| if there { width } else { 0 };
        STAGE + DEGREES + TIME + optional(self.nodes, NODES) + optional(self.memory, MEMORY)
    }

    fn border(self) -> usize {
        if self.border { BORDER } else { 0 }
    }
}

/// One of the two plans.
struct Half<'a> {
    name: &'a str,
    compared: &'a Compared,
}

/// Draws two plans, if both exist. Returns the first visible row.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, side: Side) -> Option<usize> {
    let lines = model.rows_of(side)?;
    let theme = &model.appearance.theme;
    let columns = Columns::new(area.width as usize);
    let half = |key: Key| model.compared(key).map(|compared| Half { name: model.compared_name(key), compared });
    let (first, second) = (half(side.first)?, half(side.second)?);
    let mut text = totals(&first, &second, area.width as usize, theme);
    text.push(titles(columns, first.compared.shown.names.nodes_head(NODES), theme));
    let top = text.len() as u16;
    let visible = area.height.saturating_sub(top + 1) as usize;
    let from = side.top.min(lines.len().saturating_sub(visible));
    text.extend(lines.iter().skip(from).take(visible).map(|row| row_line(*row, &first, &second, columns, theme)));
    frame.render_widget(Paragraph::new(text), rows(area, 0, area.height.saturating_sub(1)));
    let seen = (from + visible).min(lines.len());
    let key = |action: Action| model.appearance.keymap.of_action(action).unwrap_or_default();
    let keys = format!("{} swaps  {} closes", key(Action::Mark), key(Action::SideBySide));
    let told =
        format!("{keys}   rows {} to {seen} of {}   ▲ more  ▼ less  ≠ other degrees or modes", from + 1, lines.len());
    frame.render_widget(
        Span::styled(clip(&told, area.width as usize), theme.fg(Role::Muted)),
        rows(area, area.height.saturating_sub(1), 1),
    );
    marks.hits.push((area, Hit::ViewArea));
    Some(from)
}

/// Line of figures for each plan, the second with its differences.
fn totals(first: &Half<'_>, second: &Half<'_>, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let figures = [Column::Time, Column::Objective, Column::Memory, Column::Devices, Column::Throughput, Column::Idle];
    let name_width = first.name.chars().count().max(second.name.chars().count()).min(width / 3);
    let line = |sign: &'static str, half: &Half<'_>, against: Option<&Half<'_>>| {
        let mut spans = vec![
            Span::styled(format!("{sign} "), theme.bold(Role::Accent)),
            Span::styled(fit(half.name, name_width), theme.bold(Role::Text)),
        ];
        let mut used = name_width + 2;
        for column in figures {
            let cell = column.cell(&half.compared.entry);
            let more = against.and_then(|other| change(column, other, half)).unwrap_or_default();
            let unit = match column {
                Column::Time => " per iteration",
                Column::Memory => " peak",
                Column::Devices => " devices",
                Column::Throughput => " samples/s",
                Column::Idle => " idle",
                _ => "",
            };
            let text = format!("  {cell}{unit}{more}");
            used += text.chars().count();
            if used > width {
                break;
            }
            spans.push(Span::raw(text));
        }
        Line::from(spans)
    };
    vec![line("A", first, None), line("B", second, Some(first)), Line::default()]
}

/// Change of a figure from the first to the second plan, in words; `None` if equal or not comparable.
fn change(column: Column, first: &Half<'_>, second: &Half<'_>) -> Option<String> {
    let (before, after) = (column.figure(&first.compared.entry)?, column.figure(&second.compared.entry)?);
    let of = |half: &Half<'_>| half.compared.entry.score.as_ref().map(|score| score.measure);
    if column == Column::Objective && of(first) != of(second) {
        return None;
    }
    match column {
        Column::Idle => None,
        Column::Devices => Some(after - before).filter(|d| *d != 0.0).map(|d| format!(" ({d:+})")),
        _ if before == 0.0 => None,
        _ => Some(after / before - 1.0).filter(|c| c.abs() >= 5e-4).map(|c| format!(" ({:+.1}%)", 100.0 * c)),
    }
}

fn titles(columns: Columns, nodes: &'static str, theme: &Theme) -> Line<'static> {
    let half = || {
        let mut text = fit("stage", STAGE);
        if columns.nodes {
            text += &fit_right(nodes, NODES);
        }
        text += &fit_right("DP × TP", DEGREES);
        text += &fit_right("time", TIME);
        if columns.memory {
            text += &fit_right("memory", MEMORY);
        }
        text
    };
    let border = if columns.border { fit_right("border", BORDER) } else { String::new() };
    Line::styled(format!("{} │ {}{border}", half(), half()), theme.fg(Role::Muted))
}

fn row_line(
    row: side_by_side::StagePair,
    first: &Half<'_>,
    second: &Half<'_>,
    columns: Columns,
    theme: &Theme,
) -> Line<'static> {
    use side_by_side::StagePair;
    let empty = |home: Option<usize>, names: &Half<'_>| {
        let text = home.map_or("-".into(), |stage| format!("in {}", names.compared.shown.names.caption(stage)));
        vec![Span::styled(fit(&text, columns.half()), theme.fg(Role::Muted))]
    };
    let between = Span::styled(" │ ", theme.fg(Role::Border));
    match row {
        StagePair::Both(i, j) => {
            let different = compared(first, i, second, j);
            let mut spans = stage_spans(first, i, None, columns, theme);
            spans.push(between);
            spans.extend(stage_spans(second, j, Some(&different), columns, theme));
            if columns.border {
                let border = if different.border == 0 { String::new() } else { format!("{:+}", different.border) };
                spans.push(Span::styled(fit_right(&border, BORDER), theme.fg(Role::Warning)));
            }
            if columns.words > 0 {
                let words = clip(&in_words(&different, first.compared.shown.names.nodes), columns.words - 2);
                spans.push(Span::styled(format!("  {words}"), theme.fg(Role::Muted)));
            }
            Line::from(spans)
        }
        StagePair::First(i, home) => {
            let mut spans = stage_spans(first, i, None, columns, theme);
            spans.push(between);
            spans.extend(empty(home, second));
            Line::from(spans)
        }
        StagePair::Second(j, home) => {
            let mut spans = empty(home, first);
            spans.push(between);
            spans.extend(stage_spans(second, j, None, columns, theme));
            Line::from(spans)
        }
    }
}

fn compared(first: &Half<'_>, i: usize, second: &Half<'_>, j: usize) -> Difference {
    match (first.compared.shown.plan(), second.compared.shown.plan()) {
        (Some((a, scored)), Some((b, other))) => difference((a, scored, i), (b, other, j)),
        _ => Difference::default(),
    }
}

/// Cells of a stage, with signs at differences.
fn stage_spans(
    half: &Half<'_>,
    stage: usize,
    different: Option<&Difference>,
    columns: Columns,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let Some(words) = StageCells::of(&half.compared.shown, stage) else { return vec![] };
    let none = Difference::default();
    let different = different.unwrap_or(&none);
    let arrow = |change: f64| match change {
        change if change > 0.0 => "▲",
        change if change < 0.0 => "▼",
        _ => "",
    };
    let cell = |sign: &str, text: String, width: usize| {
        let style = if sign.is_empty() { theme.fg(Role::Text) } else { theme.bold(Role::Warning) };
        Span::styled(fit_right(&format!("{sign}{text}"), width), style)
    };
    let mut spans = vec![Span::raw(fit(&words.name, STAGE))];
    if columns.nodes {
        let sign = match (different.gained, different.lost, different.modes) {
            (0, 0, 0) => "",
            (0, 0, _) => "≠",
            (gained, lost, _) if gained > lost => "▲",
            (gained, lost, _) if gained < lost => "▼",
            _ => "≠",
        };
        spans.push(cell(sign, words.nodes, NODES));
    }
    spans.push(cell(if different.degrees { "≠" } else { "" }, words.degrees, DEGREES));
    spans.push(cell(arrow(different.load_s), words.time, TIME));
    if columns.memory {
        spans.push(cell(arrow(different.memory_bytes), words.memory, MEMORY));
    }
    spans
}

/// Differences in words, if they fit: `+1 −2 nodes, 3 other modes, +4 devices`.
fn in_words(different: &Difference, nodes: &str) -> String {
    if different.is_none() {
        return "alike".into();
    }
    let mut words = vec![];
    match (different.gained, different.lost) {
        (0, 0) => {}
        (gained, 0) => words.push(format!("+{gained} {nodes}")),
        (0, lost) => words.push(format!("−{lost} {nodes}")),
        (gained, lost) => words.push(format!("+{gained} −{lost} {nodes}")),
    }
    if different.modes > 0 {
        words.push(format!("{} in other modes", different.modes));
    }
    if different.devices != 0 {
        words.push(format!("{:+} devices", different.devices));
    }
    words.join(", ")
}
