//! Strip of the stages over the simulated iteration, in the space below a list.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use super::{
    area::rows,
    axis::Axis,
    shades::Shades,
    strip::{self, Rows, Strip},
};
use crate::{
    tui::{
        simulated::Simulated,
        theme::{Role, Theme},
    },
    units,
};

/// Draws the strip if it fits; `selected` is the stage with a highlighted name.
pub(in crate::tui) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    (shades, theme): (&Shades, &Theme),
    (simulated, selected): (Option<&Simulated>, usize),
) {
    let Some(simulated) = simulated.filter(|simulated| simulated.timeline.iteration_s > 0.0) else { return };
    let stages = simulated.timeline.replicas.len();
    let longest = (0..stages).map(|stage| simulated.shown.names.short(stage).chars().count()).max().unwrap_or(0);
    let names = strip::names_width(longest);
    if area.height < 6 || area.width <= names || stages == 0 {
        return;
    }
    let batch = simulated.timeline.iteration_s;
    let axis = Axis::of(simulated.steady.as_ref(), batch, area.width - names);
    let strip = Strip { simulated, shades, theme, axis, playhead_s: None };
    let title = Line::from(vec![
        Span::styled("Iteration  ", theme.bold(Role::Text)),
        Span::styled(format!("{}, simulated", units::seconds(batch)), theme.fg(Role::Muted)),
    ]);
    let left = (title.width() as u16 + 2).min(area.width);
    frame.render_widget(title, rows(area, 0, 1));
    strip.draw_legend(frame.buffer_mut(), Rect { x: area.x + left, width: area.width - left, ..rows(area, 0, 1) });
    let layout = Rows::new(stages, area.height - 2);
    let lines = rows(area, 1, layout.height(stages).min(area.height - 2));
    let columns = Rect { x: lines.x + names, width: lines.width - names, ..lines };
    strip.draw(frame.buffer_mut(), columns, layout);
    strip.draw_names(frame.buffer_mut(), Rect { width: names, ..lines }, layout, (Some(selected), None));
    let phases = Rect { y: lines.bottom(), height: 1, ..columns };
    strip.draw_phases(frame.buffer_mut(), phases, None);
}
