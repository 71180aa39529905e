//! Ways on if a machine fails; it is crossed out on the map above them.
//!
//! ```text
//! If machine 5 fails  replica 2 of stage 3
//! ..
//!   way on                          layout              iteration   slower   idle     memory  what moves
//! ▌ plan anew for 56                TP 4 CP 2 PP 7        16.73 s    16.1%      0   56.2 GiB  every shard
//! ```

use std::sync::Arc;

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    study::failure::{WayOn, WayResult},
    tui::{
        layout_bar::degrees,
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::rows,
            atlas::Atlas,
            map::Map,
            map_layout::MapLayout,
            shades::Shades,
            text::{clip, fit, fit_right, fitting, wrap},
        },
        shown::ShownRun,
        theme::Role,
    },
    units,
};

/// Time of a restart, seconds.
const RESTART_S: f64 = 600.0;
/// Columns with their widths.
const COLUMNS: [(&str, usize); 7] =
    [("way on", 34), ("iteration", 11), ("slower", 9), ("memory", 11), ("idle", 6), ("layout", 26), ("what moves", 29)];

/// Machine that fails.
#[derive(Debug)]
pub(in crate::tui) struct Failed {
    /// Its number, and its devices.
    pub machine: u32,
    pub devices: std::ops::Range<u32>,
    /// Plan that it is taken from.
    pub of: Arc<ShownRun>,
    /// Results so far.
    pub found: Vec<WayResult>,
    /// Selected way.
    pub cursor: usize,
}

impl Failed {
    /// Ways that run.
    pub(super) fn ways(&self) -> impl Iterator<Item = &WayOn> {
        self.found.iter().filter_map(|found| match found {
            WayResult::Way(way) => Some(way.as_ref()),
            WayResult::Refused(_) => None,
        })
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, failed: &Failed) {
    let theme = &model.appearance.theme;
    let (text, muted) = (theme.fg(Role::Text), theme.fg(Role::Muted));
    let shown = &failed.of;
    let Some((plan, _)) = shown.plan() else { return };
    let on: Vec<String> = (plan.stages.iter().enumerate())
        .filter(|(_, stage)| stage.devices.iter().any(|device| failed.devices.contains(device)))
        .map(|(i, _)| shown.names.long(i).to_string())
        .collect();
    let title = Line::from(vec![
        Span::styled(format!("If machine {} fails  ", failed.machine), theme.bold(Role::Bad)),
        Span::styled(format!("part of {}: without it all replicas wait", on.join(", ")), muted),
    ]);
    frame.render_widget(title, rows(area, 0, 1));
    let refused: Vec<&str> = (failed.found.iter())
        .filter_map(|found| if let WayResult::Refused(why) = found { Some(why.as_str()) } else { None })
        .collect();
    let list = failed.ways().count() as u16 + 2;
    let told = 4 + refused.len() as u16;
    let room = area.height.saturating_sub(2 + list + told);
    let mut y = 2;
    if let Some(layout) =
        MapLayout::new(&Atlas::of(shown, model.simulation.of(shown).map(AsRef::as_ref)), area.width, room)
            .filter(|layout| layout.rows <= room)
    {
        let shades = Shades::new(theme, model.appearance.depth);
        let broken: Vec<u32> = failed.devices.clone().collect();
        let map = Map { failed: &broken, ..Map::plain(&layout, (&shades, theme), &shown.places) };
        map.draw(frame.buffer_mut(), rows(area, y, layout.rows));
        y += layout.rows + 1;
    }
    let columns = fitting(&COLUMNS, 2, area.width);
    let aligned = |name: &str, value: &str, width: usize| match name {
        "way on" => fit(value, width),
        "layout" | "what moves" => fit(&format!("  {}", clip(value, width - 3)), width),
        _ => fit_right(value, width),
    };
    let head: String = columns.iter().map(|(name, width)| aligned(name, name, *width)).collect();
    frame.render_widget(Span::styled(format!("  {head}"), muted), rows(area, y, 1));
    y += 1;
    let now = failed.ways().next().map_or(0.0, |way| way.iteration_s);
    for (row, way) in failed.ways().enumerate() {
        let line = rows(area, y, 1);
        let slower = way.iteration_s / now - 1.0;
        let cell = |name: &str| match name {
            "way on" => way.what.clone(),
            "iteration" => units::seconds(way.iteration_s),
            "slower" => units::percent(slower.max(0.0)),
            "memory" => units::bytes(way.memory_bytes),
            "idle" => way.idle.to_string(),
            "layout" => degrees(&way.configuration.layout, " "),
            _ => way.moves.to_string(),
        };
        let mut spans = vec![Span::styled(if row == failed.cursor { "▌ " } else { "  " }, theme.fg(Role::Focus))];
        spans.extend(columns.iter().map(|(name, width)| {
            let style = match *name {
                "iteration" => theme.bold(Role::Text),
                "slower" if slower > 0.01 => theme.fg(Role::Warning),
                _ => text,
            };
            Span::styled(aligned(name, &cell(name), *width), style)
        }));
        frame.render_widget(Line::from(spans), line);
        if row == failed.cursor && model.focus == Focus::View {
            frame.buffer_mut().set_style(line, theme.selected());
        }
        marks.hits.push((line, Hit::ListRow(row)));
        y += 1;
    }
    y += 1;
    let mut lines = vec![];
    for why in refused {
        lines.push((format!("{}{}", why[..1].to_uppercase(), &why[1..]), text));
    }
    lines.extend(worth_it(failed, now).map(|told| (told, text)));
    for (told, style) in lines {
        for line in wrap(&told, area.width.into()) {
            frame.render_widget(Span::styled(line, style), rows(area, y, 1));
            y += 1;
        }
    }
}

/// Time that a machine must stay away before a new plan is worth two restarts, in a sentence.
fn worth_it(failed: &Failed, now: f64) -> Option<String> {
    let anew = failed.ways().filter(|way| way.change.is_some());
    let best = anew.min_by(|a, b| a.iteration_s.total_cmp(&b.iteration_s))?;
    let share = now / best.iteration_s;
    let minutes = 2.0 * RESTART_S / share / 60.0;
    Some(format!(
        "{} does {} of the work: two restarts of 10 min are won back if the machine stays away longer than {minutes:.0} min",
        best.what.replace("plan anew for", "A plan for"),
        units::percent_whole(share)
    ))
}
