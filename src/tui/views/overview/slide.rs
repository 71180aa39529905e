//! Slide of a plan for a talk: title, layout, figures, map and strip in large type, without tabs, keys and panel.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use super::figures;
use crate::{
    family,
    tui::{
        model::Model,
        paint::{
            area::rows,
            atlas::Atlas,
            axis::Axis,
            map::Map,
            map_layout::MapLayout,
            shades::Shades,
            strip::{self, Rows, Strip},
        },
        theme::Role,
    },
};

/// Size of a slide, cells: 16 by 9, as a cell is twice as high as wide.
pub(in crate::tui) const SIZE: (u16, u16) = (96, 27);
/// Most rows of the strip.
const STRIP: u16 = 10;

/// Draws the slide into an area without borders. Returns the area of the line for the layout.
pub(in crate::tui) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model) -> Rect {
    let theme = &model.appearance.theme;
    let muted = theme.fg(Role::Muted);
    let inner = Rect { x: area.x + 4, y: area.y + 2, width: area.width - 8, height: area.height - 3 };
    let layout_line = rows(inner, 2, 1);
    let Some(shown) = &model.planning.shown else { return layout_line };
    let workload = &shown.workload;
    let on = match workload.training() {
        Some(profile) => format!("{} {}", shown.limits.devices, profile.accelerator.id),
        None => format!("{} devices", shown.limits.devices),
    };
    let batch = family::of(workload).batch(&shown.limits);
    let title = Line::from(vec![
        Span::styled(format!("{} on {on}", workload.name), theme.bold(Role::Text)),
        Span::styled(format!("   {batch}   planner: {}", shown.planner.name), muted),
    ]);
    frame.render_widget(title, rows(inner, 0, 1));
    let simulated = model.simulation.simulated.as_deref();
    figures::draw(frame, rows(inner, 5, 2), model, shown, simulated);
    let shades = Shades::new(theme, model.appearance.depth);
    let stages = simulated.map_or(1, |simulated| simulated.timeline.replicas.len()).max(1);
    let most = Rows::new(stages, STRIP).height(stages);
    let room = inner.height.saturating_sub(8 + 1 + most + 1);
    let mut y = 8;
    if let Some(layout) = MapLayout::new(&Atlas::of(shown, simulated), inner.width, room) {
        let map = Map::plain(&layout, (&shades, theme), &shown.places);
        map.draw(frame.buffer_mut(), rows(inner, y, layout.rows));
        y += layout.rows + 1;
    }
    let Some(simulated) = simulated else { return layout_line };
    let batch_s = simulated.timeline.iteration_s;
    let longest = (0..stages).map(|stage| shown.names.short(stage).chars().count()).max().unwrap_or(0);
    let names = strip::names_width(longest);
    let layout = Rows::new(stages, inner.height.saturating_sub(y + 2).min(STRIP));
    let lines = rows(inner, y, layout.height(stages));
    let columns = Rect { x: lines.x + names, width: lines.width - names, ..lines };
    let axis = Axis::of(simulated.steady.as_ref(), batch_s, columns.width);
    let strip = Strip { simulated, shades: &shades, theme, axis, playhead_s: None };
    let limiting = simulated.limiting().filter(|_| stages > 1);
    strip.draw(frame.buffer_mut(), columns, layout);
    strip.draw_names(frame.buffer_mut(), Rect { width: names, ..lines }, layout, (None, limiting));
    strip.draw_phases(frame.buffer_mut(), Rect { y: lines.bottom(), height: 1, ..columns }, None);
    let last = rows(inner, inner.height.saturating_sub(1), 1);
    frame.render_widget(Span::styled("plantui", muted), last);
    strip.draw_legend(frame.buffer_mut(), last);
    layout_line
}
