//! Left panel: planners, limits, options and simulator settings.
//!
//! All limits stay visible. In a low panel the other sections share the remaining rows: each shows the rows around the
//! selected one, and its title says which.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};

use unicode_width::UnicodeWidthStr;

use crate::{
    planner::{OptionKind, OptionValue},
    simulate::{Schedule, SimulatorSetting},
    tui::{
        frame::bordered,
        marks::Marks,
        model::{Focus, Hit, Model, Tone},
        paint::{
            area::scrolled,
            text::{clip, fit, plain, wrap},
        },
        panel_rows::{PanelRow, PanelSection},
        theme::Role,
        widget::scrollbar::scrollbar,
    },
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    marks.hits.push((area, Hit::PanelArea));
    let focused = model.focus == Focus::Panel;
    for y in area.y..area.bottom() {
        let rule = Rect { x: area.right() - 1, y, width: 1, height: 1 };
        frame.render_widget(Span::styled("│", model.appearance.theme.fg(Role::Border)), rule);
    }
    // The first title has its own line.
    let inner = Rect { x: area.x, y: area.y + 1, width: area.width - 2, height: area.height.saturating_sub(1) };
    let mut help = help_lines(model, inner.width as usize - 2);
    let rows = model.panel_rows();
    let of = |section: PanelSection| -> Vec<(usize, PanelRow)> {
        rows.iter().copied().enumerate().filter(|(_, row)| row.section() == section).collect()
    };
    let sections = PanelSection::ALL.map(|section| (section, of(section)));
    let counts = sections.each_ref().map(|(_, rows)| rows.len());
    // The help of the selected row appears at the bottom if everything else fits. A refusal and the help of simulator
    // settings always appear.
    let all = counts.iter().sum::<usize>() + counts[1..].iter().filter(|&&count| count > 0).count();
    let height = inner.height as usize;
    let refused = match model.panel_row() {
        Some(PanelRow::Planner(i)) => model.session.refusals[i].is_some(),
        Some(row) => model.simulation.ignored(row).is_some(),
        None => false,
    };
    let simulated = focused && model.panel_row().is_some_and(|row| row.section() == PanelSection::Setup);
    if refused || simulated {
        help.truncate(height / 3);
    } else if !focused || all + help.len() >= height {
        help.clear();
    }
    let rooms = shares(height - help.len(), counts);
    let titled = counts[1..].iter().filter(|&&count| count > 0).count();
    let air = u16::from(rooms == counts && all + titled + help.len() < height);
    let mut y = area.y;
    for ((section, rows), room) in sections.iter().zip(rooms) {
        if rows.is_empty() {
            continue;
        }
        let first = scrolled(anchor(model, rows), room, rows.len());
        let seen = (room < rows.len()).then(|| format!("{}–{} of {}", first + 1, first + room, rows.len()));
        let title = Rect { y, height: 1, ..inner };
        draw_title(frame, title, model, section.title(), seen.unwrap_or_default(), focused);
        let list = Rect { y: y + 1, height: room as u16, width: inner.width + 1, ..inner };
        scrollbar(frame, list, &model.appearance.theme, (first, room, rows.len()));
        for (line, &(i, row)) in (y + 1..).zip(rows.iter().skip(first).take(room)) {
            draw_row(frame, Rect { y: line, height: 1, ..inner }, model, marks, (i, row));
        }
        y += 1 + room as u16 + air;
    }
    for (y, text) in (inner.bottom() - help.len() as u16..).zip(help) {
        let place = Rect { x: inner.x + 1, y, width: inner.width - 2, height: 1 };
        let role = if refused { Role::Warning } else { Role::Muted };
        frame.render_widget(Span::styled(text, model.appearance.theme.fg(role)), place);
    }
}

/// Visible rows of each section in a height that includes the titles but the first. Limits come first; the other
/// sections share the rest evenly.
fn shares(height: usize, counts: [usize; 4]) -> [usize; 4] {
    const LIMITS: usize = 1;
    let height = height.saturating_sub(counts[1..].iter().filter(|&&count| count > 0).count());
    let mut rooms = [0; 4];
    let others = (0..4).filter(|&section| section != LIMITS && counts[section] > 0).count();
    rooms[LIMITS] = counts[LIMITS].min(height.saturating_sub(others));
    let mut rest = height - rooms[LIMITS];
    while rest > 0 && rooms != counts {
        let wanting = (0..4).filter(|&section| section != LIMITS && rooms[section] < counts[section]);
        let Some(least) = wanting.min_by_key(|&section| rooms[section]) else { break };
        rooms[least] += 1;
        rest -= 1;
    }
    rooms
}

/// Index in the section of the row that must be visible: the selected one, else the planner in force.
fn anchor(model: &Model, rows: &[(usize, PanelRow)]) -> usize {
    let selected = rows.iter().position(|(i, _)| *i == model.panel.cursor);
    let in_force = || rows.iter().position(|(_, row)| *row == PanelRow::Planner(model.session.planner));
    selected.or_else(in_force).unwrap_or(0)
}

fn help_lines(model: &Model, width: usize) -> Vec<String> {
    let text = match model.panel_row() {
        Some(PanelRow::Planner(i)) => match &model.session.refusals[i] {
            Some(reason) => format!("✗ {reason}"),
            None if !model.session.is_native(i) => {
                format!("≈ plans a converted workload: {}", model.session.planners[i].info().summary)
            }
            None => model.session.planners[i].info().summary.to_string(),
        },
        Some(PanelRow::Others) => "planners that cannot plan this workload, with reasons".to_string(),
        Some(PanelRow::Limit(kind)) => kind.help().to_string(),
        Some(PanelRow::Dial(i)) => model.session.dials[i].help.to_string(),
        Some(PanelRow::Option(i)) => {
            let spec = &model.session.specs()[i];
            let more = match (spec.kind, model.session.option_value(spec)) {
                (OptionKind::Choice { choices, .. }, OptionValue::Choice(now)) => {
                    choices.iter().find(|c| c.0 == now).map(|c| format!(". {}: {}", c.0, c.1))
                }
                (OptionKind::Number { .. } | OptionKind::Quantity { .. }, _) => {
                    Some(format!("; {}", spec.values().join(", ")))
                }
                _ => None,
            };
            format!("{}{}", spec.help, more.unwrap_or_default())
        }
        Some(row @ PanelRow::Schedule) => {
            let refused = match (model.simulation.ignored(row), &model.simulation.simulated) {
                (Some(_), _) | (_, None) => String::new(),
                (None, Some(simulated)) => {
                    let refused = Schedule::ALL.into_iter().filter(|s| simulated.pipeline.refusal(*s).is_some());
                    let names: Vec<&str> = refused.map(Schedule::name).collect();
                    if names.is_empty() {
                        String::new()
                    } else {
                        format!("; this plan cannot run {}", names.join(", "))
                    }
                }
            };
            not_used(model, row, &format!("order of a stage's microbatches{refused}"))
        }
        Some(row @ PanelRow::Setting(setting)) => not_used(model, row, setting.help()),
        None => String::new(),
    };
    wrap(&text, width)
}

/// Help of a row, after the reason why it has no effect now.
fn not_used(model: &Model, row: PanelRow, help: &str) -> String {
    model.simulation.ignored(row).map_or_else(|| help.to_string(), |reason| format!("not used: {reason}. {help}"))
}

fn draw_title(frame: &mut Frame<'_>, line: Rect, model: &Model, title: &str, seen: String, focused: bool) {
    let role = if focused { Role::Focus } else { Role::Muted };
    let style = if focused { model.appearance.theme.bold(role) } else { model.appearance.theme.fg(role) };
    let gap = usize::from(line.width).saturating_sub(title.len() + 2 + seen.chars().count());
    let spans = vec![
        Span::styled(format!(" {title}"), style),
        Span::raw(" ".repeat(gap)),
        Span::styled(seen, model.appearance.theme.fg(Role::Muted)),
    ];
    frame.render_widget(Line::from(spans), line);
}

// Long: one arm per kind of row.
fn draw_row(frame: &mut Frame<'_>, line: Rect, model: &Model, marks: &mut Marks, (index, row): (usize, PanelRow)) {
    let here = index == model.panel.cursor;
    let selected = here && model.focus == Focus::Panel;
    let sign = if selected { "▌" } else { " " };
    let width = line.width as usize;
    let theme = &model.appearance.theme;
    marks.hits.push((line, Hit::Panel(row)));
    let (spans, steps): (Vec<Span<'static>>, bool) = match row {
        PanelRow::Planner(i) => {
            let planner = model.session.planners[i];
            let able = model.session.refusals[i].is_none();
            let style = match (i == model.session.planner, able) {
                (true, _) => theme.bold(Role::Text),
                (false, true) => theme.fg(Role::Text),
                (false, false) => theme.fg(Role::Muted),
            };
            let mark = if i == model.session.planner { "● " } else { "○ " };
            let note = match (able, model.session.is_native(i)) {
                (false, _) => " ✗",
                (true, false) => " ≈",
                (true, true) => "",
            };
            // Where the whole name does not fit, its source in brackets goes first.
            let (room, name) = (width.saturating_sub(5), planner.info().name);
            let short = name.split(" (").next().unwrap_or(name);
            let name = clip(if name.width() <= room { name } else { short }, room);
            (vec![Span::styled(format!("{mark}{name}{note}"), style)], false)
        }
        PanelRow::Others => {
            let sign = if model.panel.others_unfolded { "▾" } else { "▸" };
            let text = format!("{sign} +{} not for this workload", model.other_planners().len());
            (vec![Span::styled(clip(&text, width.saturating_sub(1)), theme.fg(Role::Muted))], false)
        }
        PanelRow::Limit(_) | PanelRow::Dial(_) | PanelRow::Option(_) | PanelRow::Setting(_) if editing(model, row) => {
            (field(model, row, width), false)
        }
        PanelRow::Limit(kind) => {
            let value = model.session.limits.get(kind);
            let changed = value != model.session.first_limits.get(kind);
            (pair(model, kind.label(), &kind.format(value), changed, width), true)
        }
        PanelRow::Dial(i) => {
            let dial = &model.session.dials[i];
            let changed = model.session.first_dials.get(i).is_none_or(|first| first.value != dial.value);
            (pair(model, &dial.label, &dial.value, changed, width), true)
        }
        PanelRow::Option(i) => {
            let spec = &model.session.specs()[i];
            let value = model.session.option_value(spec);
            let changed = value != spec.default_value();
            let text = match value {
                OptionValue::Flag(true) => "on".to_string(),
                OptionValue::Flag(false) => "off".to_string(),
                OptionValue::File(text) | OptionValue::Text(text) if text.is_empty() => "none".to_string(),
                // The end of a path is more informative than its beginning.
                OptionValue::File(path) | OptionValue::Text(path) => {
                    clip_start(&path, width.saturating_sub(LEAST_LABEL + ARROWS))
                }
                other => spec.show(&other),
            };
            let steps = !matches!(spec.kind, OptionKind::File { .. } | OptionKind::Text { .. });
            (pair(model, spec.label, &text, changed, width), steps)
        }
        PanelRow::Schedule => {
            let changed = model.simulation.setup.schedule != Schedule::ALL[0];
            // The neighbouring rows make clear that these are variants of 1F1B.
            let name = model.simulation.setup.schedule.name().trim_end_matches(" 1F1B");
            (simulator_pair(model, row, "schedule", name, changed, width), true)
        }
        PanelRow::Setting(setting) => {
            let changed = !setting.same(&model.simulation.setup.settings, &model.simulation.first_settings);
            let text = match setting {
                SimulatorSetting::Overlap if model.simulation.setup.settings.overlap => "on".to_string(),
                SimulatorSetting::Overlap => "off".to_string(),
                _ => setting.show(&model.simulation.setup.settings),
            };
            (simulator_pair(model, row, setting.label(), &text, changed, width), true)
        }
    };
    let mut all = vec![Span::styled(sign, theme.fg(Role::Focus))];
    all.extend(spans);
    frame.render_widget(Line::from(all), line);
    if steps && here {
        // Arrows at the right end: mouse targets, and a hint at the keys.
        let style =
            if selected { model.appearance.theme.bold(Role::Focus) } else { model.appearance.theme.fg(Role::Muted) };
        let less = Rect { x: line.right().saturating_sub(4), width: 1, ..line };
        let more = Rect { x: line.right().saturating_sub(2), width: 1, ..line };
        frame.render_widget(Span::styled("◂", style), less);
        frame.render_widget(Span::styled("▸", style), more);
        marks.hits.push((less, Hit::Step(row, false)));
        marks.hits.push((more, Hit::Step(row, true)));
    }
    if selected {
        frame.buffer_mut().set_style(line, model.appearance.theme.selected());
    }
    place_cursor(frame, line, model, row);
}

/// Cells of the arrows at the right end of a row, and minimum width of a name beside a long value.
const ARROWS: usize = 6;
const LEAST_LABEL: usize = 8;

/// Label with its value at the right. A changed value is highlighted.
fn pair(model: &Model, label: &str, value: &str, changed: bool, width: usize) -> Vec<Span<'static>> {
    let theme = &model.appearance.theme;
    let space = width.saturating_sub(ARROWS);
    let value = clip(value, space.saturating_sub(LEAST_LABEL));
    let label_width = space.saturating_sub(value.chars().count() + 1);
    let style = if changed { theme.bold(Role::Accent) } else { theme.bold(Role::Text) };
    vec![Span::styled(fit(label, label_width), plain()), Span::raw(" "), Span::styled(value, style)]
}

/// The same for a simulator setting: muted and in brackets if it has no effect.
fn simulator_pair(
    model: &Model,
    row: PanelRow,
    label: &str,
    value: &str,
    changed: bool,
    width: usize,
) -> Vec<Span<'static>> {
    if model.simulation.ignored(row).is_none() {
        return pair(model, label, value, changed, width);
    }
    let muted = model.appearance.theme.fg(Role::Muted);
    let spans = pair(model, label, &format!("({value})"), changed, width);
    spans.into_iter().map(|span| Span::styled(span.content, muted)).collect()
}

/// End of a text, with a sign if its beginning is cut.
fn clip_start(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_string();
    }
    std::iter::once('…').chain(text.chars().skip(count + 1 - width)).collect()
}

/// True if the row's value is being typed.
fn editing(model: &Model, row: PanelRow) -> bool {
    model.panel.editing.as_ref().is_some_and(|editing| editing.row == row)
}

/// Label of a row with a text field.
fn label(model: &Model, row: PanelRow) -> &str {
    match row {
        PanelRow::Limit(kind) => kind.label(),
        PanelRow::Dial(i) => &model.session.dials[i].label,
        PanelRow::Option(i) => model.session.specs()[i].label,
        PanelRow::Setting(setting) => setting.label(),
        PanelRow::Planner(_) | PanelRow::Others | PanelRow::Schedule => "",
    }
}

/// Name before the field of a row, and width of the field in cells. A long name is cut to leave space for a value.
fn field_widths(model: &Model, row: PanelRow, width: usize) -> (String, usize) {
    let name = clip(label(model, row), width.saturating_sub(4) / 2);
    let field = width.saturating_sub(name.chars().count() + 4);
    (name, field)
}

/// Row while its value is being typed.
fn field(model: &Model, row: PanelRow, width: usize) -> Vec<Span<'static>> {
    let Some(editing) = &model.panel.editing else { return vec![] };
    let (name, field) = field_widths(model, row, width);
    let scroll = editing.input.visual_scroll(field.saturating_sub(1));
    let text: String = editing.input.value().chars().skip(scroll).take(field).collect();
    let style = model.appearance.theme.fg(if editing.error.is_some() { Role::Bad } else { Role::Text });
    vec![
        Span::styled(format!("{name} "), plain()),
        Span::styled("[", model.appearance.theme.fg(Role::Focus)),
        Span::styled(fit(&text, field), style),
        Span::styled("]", model.appearance.theme.fg(Role::Focus)),
    ]
}

fn place_cursor(frame: &mut Frame<'_>, line: Rect, model: &Model, row: PanelRow) {
    if let Some(editing) = model.panel.editing.as_ref().filter(|editing| editing.row == row) {
        let (name, field) = field_widths(model, row, line.width as usize);
        let scroll = editing.input.visual_scroll(field.saturating_sub(1));
        let at = 3 + name.chars().count() + editing.input.visual_cursor().saturating_sub(scroll);
        frame.set_cursor_position(Position::new((line.x + at as u16).min(line.right().saturating_sub(1)), line.y));
    }
}

/// Draws a note beside the field: why the value is refused, or a fact about it.
pub(super) fn draw_note(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let Some(editing) = &model.panel.editing else { return };
    let (title, text, role) = match (&editing.error, &editing.known) {
        (Some(error), _) => (" ✗ not taken ", error, Role::Bad),
        (None, Some((Tone::Refused, text))) => (" ✗ not there ", text, Role::Warning),
        (None, Some((Tone::Done, text))) => (" file ", text, Role::Good),
        (None, None) => return,
    };
    let row = model.appearance.hits.iter().find(|(_, hit)| *hit == Hit::Panel(editing.row));
    let Some((line, _)) = row else { return };
    let width = area.right().saturating_sub(line.right() + 1).min(56);
    let lines = wrap(text, width.saturating_sub(4) as usize);
    let place = Rect { x: line.right() + 1, y: line.y.saturating_sub(1), width, height: lines.len() as u16 + 2 }
        .intersection(area);
    frame.render_widget(Clear, place);
    let style = model.appearance.theme.base().fg(model.appearance.theme.color(role));
    frame.buffer_mut().set_style(place, style);
    let block = bordered(&model.appearance.theme, false)
        .border_style(style)
        .title(Span::styled(title, model.appearance.theme.bold(role)));
    let inner = super::inside(place);
    frame.render_widget(block, place);
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()), inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_keep_their_room_and_the_others_share_the_rest() {
        assert_eq!(shares(34, [6, 4, 5, 0]), [6, 4, 5, 0]);
        assert_eq!(shares(20, [20, 4, 3, 0]), [11, 4, 3, 0]);
        assert_eq!(shares(20, [20, 4, 12, 0]), [7, 4, 7, 0]);
        assert_eq!(shares(12, [3, 6, 12, 0]), [2, 6, 2, 0]);
        assert_eq!(shares(20, [20, 4, 0, 0]), [15, 4, 0, 0]);
        assert_eq!(shares(20, [20, 4, 8, 9]), [5, 4, 4, 4]);
        assert_eq!(shares(20, [2, 4, 3, 9]), [2, 4, 3, 8]);
        for height in 10..40 {
            for counts in [[1, 3, 0, 0], [9, 4, 2, 9], [30, 6, 30, 9], [2, 40, 2, 0]] {
                let rooms = shares(height, counts);
                let titles = counts[1..].iter().filter(|&&count| count > 0).count();
                assert!(rooms.iter().sum::<usize>() + titles <= height);
                assert!(rooms.iter().zip(counts).all(|(&room, count)| room <= count && (room > 0 || count == 0)));
            }
        }
    }

    #[test]
    fn a_path_is_cut_at_its_beginning() {
        assert_eq!(clip_start("/home/u/split.json", 9), "…lit.json");
        assert_eq!(clip_start("a.json", 9), "a.json");
    }
}
