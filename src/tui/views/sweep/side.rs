//! Beside a wide chart: every point of the selected line in figures, and an interpretation of the curves.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::state::Swept;
use crate::{
    study::sweep::reading,
    tui::{
        model::Model,
        paint::{
            area::{rows, scrolled},
            text::{fit, fit_right, wrap},
        },
        theme::Role,
        widget::scrollbar::scrollbar,
    },
    units,
};

/// Title of the gain from twice as much of the limit, by the step from the value before.
const PER_DOUBLING: &str = "per 2x";

/// Width including the rule at the left, cells.
pub(super) const WIDTH: u16 = 44;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) {
    let theme = &model.appearance.theme;
    for y in area.y..area.bottom() {
        frame.buffer_mut()[(area.x, y)].set_symbol("│").set_style(theme.fg(Role::Border));
    }
    let area = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
    let chart = &swept.chart;
    let Some(line) = chart.lines.get(model.views.sweep.line) else { return };
    let told: Vec<String> = reading::sentences(chart, model.views.sweep.line, swept.scales())
        .iter()
        .flat_map(|sentence| wrap(sentence, area.width as usize))
        .collect();
    let below = (told.len() as u16 + 2).min(area.height / 2);
    frame.render_widget(Span::styled(line.label.clone(), theme.bold(Role::Text)), rows(area, 0, 1));
    let heads = [(chart.x_title(), 13), ("value", 12), (PER_DOUBLING, 8), ("idle", 8)];
    let head: String = heads.iter().map(|(title, width)| fit_right(title, *width)).collect();
    frame.render_widget(Span::styled(head, theme.fg(Role::Muted)), rows(area, 1, 1));
    let visible = (area.height.saturating_sub(2 + below) as usize).min(chart.places.len());
    let list = rows(area, 2, visible as u16);
    let first = scrolled(model.views.sweep.cursor, visible, chart.places.len());
    let mut before: Option<(f64, f64)> = None;
    let more = reading::more_is_better(chart);
    for (place, &x) in chart.places.iter().enumerate() {
        let read = swept.read(model.views.sweep.line, place);
        let value = read.and_then(|(_, mark, _)| mark.y);
        let gain = value.zip(before).map(|(value, (from, before))| {
            let gain = if more { value / before } else { before / value };
            // Steps differ: 64, 96, 128.
            if x > from && from > 0.0 { gain.powf(1.0 / (x / from).log2()) } else { gain }
        });
        before = value.map(|value| (x, value)).or(before);
        if place < first || place >= first + visible {
            continue;
        }
        let idle = read.and_then(|(_, _, answer)| answer.simulated.as_ref()).map(|s| units::percent(s.idle));
        let selected = place == model.views.sweep.cursor;
        let style = if selected { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
        let cell = |text: Option<String>, width: usize, style: Style| {
            Span::styled(fit_right(&text.unwrap_or_else(|| "-".into()), width), style)
        };
        let spans = vec![
            cell(Some(chart.show_x(x)), heads[0].1, style),
            cell(value.map(|y| chart.show_y_tick(y)), heads[1].1, style),
            cell(gain.map(|gain| format!("{gain:.2}x")), heads[2].1, theme.fg(Role::Muted)),
            cell(idle, heads[3].1, theme.fg(Role::Muted)),
        ];
        let place = Rect { y: list.y + (place - first) as u16, height: 1, ..list };
        frame.render_widget(Line::from(spans), place);
        if selected {
            frame.buffer_mut().set_style(place, theme.selected());
        }
    }
    scrollbar(frame, list, theme, (first, visible, chart.places.len()));
    let said = rows(area, 3 + visible as u16, below.saturating_sub(1));
    if told.is_empty() || said.height < 2 {
        return;
    }
    frame.render_widget(
        Span::styled(fit("What it says", area.width as usize), theme.bold(Role::Text)),
        rows(said, 0, 1),
    );
    for (at, text) in told.iter().take(said.height as usize - 1).enumerate() {
        frame.render_widget(Span::styled(text.clone(), theme.fg(Role::Text)), rows(said, 1 + at as u16, 1));
    }
}
