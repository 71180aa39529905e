//! Caption of the tour, over the lower end of the screen, and its keys.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};

use crate::tui::{
    demo::{self, Demo},
    frame::{bordered, inside},
    model::Model,
    paint::text::wrap,
    theme::Role,
};

/// Maximum width of a caption, cells.
const WIDTH: u16 = 96;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, demo: &Demo) {
    let theme = &model.appearance.theme;
    let width = area.width.saturating_sub(4).min(WIDTH);
    let lines = wrap(&demo::caption(demo.shown(), &model.appearance.keymap), width.saturating_sub(6) as usize);
    let height = (lines.len() as u16 + 2).min(area.height.saturating_sub(2));
    let x = area.x + (area.width - width) / 2;
    let place = Rect { x, y: area.bottom().saturating_sub(height + 1), width, height }.intersection(area);
    frame.render_widget(Clear, place);
    frame.buffer_mut().set_style(place, theme.base());
    let title = format!(" tour, {} of {}{} ", demo.step + 1, demo.steps.len(), if demo.held { ", held" } else { "" });
    frame.render_widget(bordered(theme, true).title(Span::styled(title, theme.bold(Role::Focus))), place);
    let text: Vec<Line<'_>> = lines.into_iter().map(|line| Line::styled(line, theme.bold(Role::Text))).collect();
    let inner = inside(place);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    frame.render_widget(Paragraph::new(text), inner);
    let bottom = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    frame.render_widget(Clear, bottom);
    frame.buffer_mut().set_style(bottom, theme.base());
    let space = if demo.held { " goes on   " } else { " pauses the tour   " };
    let keys = [(" Space", space), ("any other key", " ends it")];
    let spans: Vec<Span<'_>> = keys
        .into_iter()
        .flat_map(|(key, word)| {
            [Span::styled(key, theme.bold(Role::Accent)), Span::styled(word, theme.fg(Role::Muted))]
        })
        .collect();
    frame.render_widget(Line::from(spans), bottom);
}
