//! Devices: a map of all, then load and memory of each; below, the selected one in figures with its transfers. Replicas
//! of a stage are equal and fold into one row with a count.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{operators, state::DeviceRow};
use crate::{
    plan::{Plan, Score},
    tui::{
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            atlas::Atlas,
            links::{Matrix, title},
            load_parts::{self, LoadPart, load_parts},
            map::Map,
            map_layout::MapLayout,
            phrases::{flow, whole},
            shades::Shades,
            summary::summary,
            text::{fit, fit_right, plain},
            topology,
        },
        shown::ShownRun,
        simulated::Simulated,
        theme::{Role, Theme},
        widget::{
            bar::{self, Part},
            scrollbar::scrollbar,
        },
    },
    units,
};

/// Width of the columns at the left (devices, stage, count), cells.
const LEFT: usize = 29;
/// Width of the count, which is dropped in narrow places, cells.
const COUNT: usize = 7;
/// Width of a value after a bar, cells.
const VALUE: usize = 10;
/// Lines about the selected device, and minimum height of a view that shows them.
const DETAIL: u16 = 6;
const TALL: u16 = 17;

pub(in crate::tui) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
) {
    let theme = &model.appearance.theme;
    let lines = summary(model, shown, plan, score, area.width);
    let more = (lines.len() as u16).saturating_sub(3);
    frame.render_widget(Paragraph::new(lines), rows(area, 0, 3 + more));
    let area = rows(area, more, area.height.saturating_sub(more));
    let as_planned = score;
    let simulated = model.simulation.of(shown).map(AsRef::as_ref);
    let score = Simulated::loads(simulated, score);
    let listed = model.device_rows().len() as u16 + 5 + 1 + DETAIL;
    let room = area.height.saturating_sub(listed).min(area.height / 3);
    let map = draw_map(frame, rows(area, 3, room), model, shown);
    // The list is laid out below the map.
    let area = Rect { y: area.y + map, height: area.height - map, ..area };
    let width = area.width as usize;
    let parts = load_parts(score);
    let left = if width < LEFT + 2 * VALUE + 3 { LEFT - COUNT } else { LEFT };
    let bar_width = width.saturating_sub(left + 2 * VALUE + 3) / 2;
    frame.render_widget(legend(shown, score, &parts, theme, (left, bar_width)), rows(area, 3, 2));
    let detail = if area.height >= TALL { DETAIL } else { 0 };
    let all = model.device_rows();
    let selected =
        all.get(model.views.devices.cursor).map(|row| row.stage()).filter(|&stage| stage < plan.stages.len());
    let room = area.height.saturating_sub(5 + detail);
    // Machines and links get the rows that the table leaves, or half of them if the table is long and there is no map.
    let told = if detail > 0 { wanted(model, shown, width) as u16 } else { 0 };
    let least = if map > 0 { 0 } else { room / 2 };
    let told = told.min((room.saturating_sub(all.len() as u16 + 1)).max(least));
    let table = rows(area, 5, room - told);
    let visible = table.height as usize;
    let first = scrolled(model.views.devices.cursor, visible, all.len());
    for (y, (i, row)) in (table.y..).zip(all.iter().enumerate().skip(first).take(visible)) {
        let line = Rect { y, height: 1, ..table };
        let selected = i == model.views.devices.cursor;
        let sign = if selected { "▌" } else { " " };
        let mut spans = vec![Span::styled(sign, theme.fg(Role::Focus))];
        spans.extend(row_spans(*row, model, shown, plan, score, &parts, (left, bar_width)));
        frame.render_widget(Line::from(spans), line);
        if selected && model.focus == Focus::View {
            frame.buffer_mut().set_style(line, theme.selected());
        }
        marks.hits.push((line, Hit::ListRow(i)));
    }
    scrollbar(frame, table, theme, (first, visible, all.len()));
    // Directly below the rows, if they leave space.
    let top = (5 + all.len() as u16 + 1).min(area.height.saturating_sub(detail + told));
    if let Some(stage) = selected.filter(|_| detail > 0) {
        draw_detail(frame, rows(area, top, detail), shown, (score, as_planned), stage, theme);
    }
    let below = rows(area, top + detail, area.height.saturating_sub(top + detail));
    if told > 0 {
        let lines = told_lines(model, shown, selected.unwrap_or(0), (width, usize::from(below.height)));
        frame.render_widget(Paragraph::new(lines), below);
    }
}

/// Minimum height of the map's area, rows.
const WITH_MAP: u16 = 7;

/// Draws every device with its stage, the selected one marked. Returns the number of lines used.
fn draw_map(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &ShownRun) -> u16 {
    if area.height < WITH_MAP {
        return 0;
    }
    let Some(layout) =
        MapLayout::new(&Atlas::of(shown, model.simulation.of(shown).map(AsRef::as_ref)), area.width, area.height - 2)
    else {
        return 0;
    };
    let seats = &layout.atlas.seats;
    let cursor = match model.device_rows().get(model.views.devices.cursor) {
        Some(&DeviceRow::Stage(stage)) => seats.iter().position(|seat| seat.stage == Some(stage)),
        Some(&DeviceRow::Device(_, device)) => seats.iter().rposition(|seat| seat.device <= device),
        _ => None,
    };
    let on = if layout.atlas.groups.iter().any(|group| group.whole) { " on their machines" } else { "" };
    let each = if layout.stands_for > 1 { format!(", a cell for every {}", layout.stands_for) } else { String::new() };
    let text = format!("devices{on}: hue stage, height memory, shade load{each}");
    frame.render_widget(title(&text, area.width.into(), &model.appearance.theme), rows(area, 0, 1));
    let shades = Shades::new(&model.appearance.theme, model.appearance.depth);
    let map = Map { cursor, ..Map::plain(&layout, (&shades, &model.appearance.theme), &shown.places) };
    map.draw(frame.buffer_mut(), rows(area, 1, area.height - 1));
    layout.rows + 2
}

/// Traffic matrix between stages.
fn matrix<'a>(model: &'a Model, shown: &'a ShownRun, selected: usize) -> Matrix<'a> {
    let shades = Shades::new(&model.appearance.theme, model.appearance.depth);
    Matrix {
        shown,
        simulated: model.simulation.of(shown).map(AsRef::as_ref),
        theme: &model.appearance.theme,
        shades,
        selected,
    }
}

/// Topology of the plan.
fn wired<'a>(model: &'a Model, shown: &'a ShownRun, selected: usize) -> topology::Section<'a> {
    let shades = Shades::new(&model.appearance.theme, model.appearance.depth);
    topology::Section { shown, theme: &model.appearance.theme, shades, selected }
}

/// Lines that links and operators need.
fn wanted(model: &Model, shown: &ShownRun, width: usize) -> usize {
    let operators = operators::lines(shown, (width, 24), &model.appearance.theme).len();
    wired(model, shown, 0).wanted(width) + matrix(model, shown, 0).wanted() + operators
}

/// Links and operators, as far as they fit.
fn told_lines(model: &Model, shown: &ShownRun, selected: usize, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let mut lines = wired(model, shown, selected).lines(width, height);
    lines.extend(matrix(model, shown, selected).lines(width, height.saturating_sub(lines.len())));
    lines.extend(operators::lines(shown, (width, height.saturating_sub(lines.len())), &model.appearance.theme));
    lines
}

/// Titles over the columns, with a legend of the fills.
fn legend(
    shown: &ShownRun,
    score: &Score,
    parts: &[LoadPart],
    theme: &Theme,
    (left, bar_width): (usize, usize),
) -> Paragraph<'static> {
    let muted = theme.fg(Role::Muted);
    let devices = shown.names.noun == "device";
    let memory = shown.memory_title();
    let memory = match bar_width + VALUE {
        room if room > memory.chars().count() + 2 => format!("{memory} │"),
        room if bar_width == 0 || room < 10 => fit_right("memory", room + 1),
        _ => "memory │".into(),
    };
    let titles = Line::from(vec![
        Span::styled(fit(if devices { "  device" } else { "  devices" }, 16), muted),
        Span::styled(fit(if devices { "" } else { "stage" }, 8), muted),
        Span::styled(fit("", left.saturating_sub(24)), muted),
        Span::styled(fit(time_title(bar_width + VALUE), bar_width + VALUE + 2), muted),
        Span::styled(memory, muted),
    ]);
    // If no memory depends on microbatches in flight, memory has no parts, and the time's legend uses its space.
    let parted = score.stages.iter().any(|stage| stage.activation_bytes > 0.0);
    let room = (bar_width + VALUE) * if parted { 1 } else { 2 };
    let mut time = vec![Span::raw(" ".repeat(left))];
    time.extend(load_parts::legend(parts, theme, room.saturating_sub(6)));
    if bar_width >= 8 {
        time.extend([Span::styled("░", theme.fg(Role::Idle)), Span::styled("slack ", theme.fg(Role::Muted))]);
    }
    let used: usize = time.iter().map(Span::width).sum();
    time.push(Span::raw(" ".repeat((left + room + 2).saturating_sub(used))));
    if parted && bar_width + VALUE >= WEIGHTS_AND_ACTIVATIONS {
        for (sign, name, role) in [("█", "state ", Role::State), ("▒", "activations", Role::Activations)] {
            time.push(Span::styled(sign, theme.fg(role)));
            time.push(Span::styled(name, load_parts::words(theme, role)));
        }
    }
    Paragraph::new(vec![titles, Line::from(time)])
}

/// Width of the legend of memory, cells.
const WEIGHTS_AND_ACTIVATIONS: usize = 21;

/// Longest title over the times that leaves a blank before the next one.
fn time_title(width: usize) -> &'static str {
    ["time against the slowest", "time, of the slowest", "time"]
        .into_iter()
        .find(|title| title.len() <= width)
        .unwrap_or("")
}

/// Draws the selected device in figures: parts of its time, transfers, memory.
fn draw_detail(
    frame: &mut Frame<'_>,
    area: Rect,
    shown: &ShownRun,
    (score, as_planned): (&Score, &Score),
    stage: usize,
    theme: &Theme,
) {
    let muted = theme.fg(Role::Muted);
    let width = area.width as usize;
    let scored = &score.stages[stage];
    let names = &shown.names;
    let on = |stage: usize| match names.machines(stage) {
        "" => names.long(stage).to_string(),
        machines => format!("{} on {machines}", names.long(stage)),
    };
    let title = format!("─ {} ", on(stage));
    let rule = "─".repeat(width.saturating_sub(title.chars().count()));
    let part = |LoadPart { name, role, of, .. }: &LoadPart| {
        let value = Span::raw(units::seconds(of(&as_planned.stages[stage])));
        vec![Span::styled(format!("{name} "), load_parts::words(theme, *role)), value]
    };
    let parts = load_parts(as_planned);
    let time = flow(parts.iter().map(part).collect(), "  ", width, 1).pop().unwrap_or_default();
    let idle = match score.slowest_s - scored.load_s {
        _ if scored.sample.is_some() => String::new(),
        idle if idle > 0.0 => format!("{} less than the slowest", units::seconds(idle)),
        _ => "none: it is the slowest".to_string(),
    };
    let flows = |incoming: bool| -> String {
        let mut of: Vec<_> =
            shown.traffic.iter().filter(|flow| (if incoming { flow.to } else { flow.from }) == stage).collect();
        of.retain(|flow| flow.amount.value() > 0.0);
        of.sort_by(|a, b| b.amount.value().total_cmp(&a.amount.value()));
        let texts = of.iter().map(|flow| {
            let other = if incoming { flow.from } else { flow.to };
            format!("{} ({})", on(other), flow.amount.text_beside(shown.limits.memory_limit()))
        });
        let list: Vec<String> = texts.collect();
        if list.is_empty() { "no other".into() } else { list.join(", ") }
    };
    let talk = |label: &'static str, text: &str| {
        let text = whole(text, width.saturating_sub(label.chars().count()));
        Line::from(vec![Span::styled(label, muted), Span::raw(text)])
    };
    let memory = if names.is_cpu(stage) {
        "no limit on a CPU's memory".to_string()
    } else {
        let limit = shown.memory_limit(stage);
        let held = units::bytes_beside(scored.memory_bytes, limit);
        match units::bytes_exact(limit).as_str() {
            "unlimited" => format!("{held}; no limit"),
            limit_text => format!("{held} of {limit_text}, {}", units::percent_whole(scored.memory_bytes / limit)),
        }
    };
    let lines = vec![
        Line::from(vec![Span::styled(title, theme.bold(Role::Text)), Span::styled(rule, theme.fg(Role::Border))]),
        time,
        match scored.sample {
            None => talk("slack         ", &idle),
            Some(times) => {
                let [start, end, critical] = [times.start_s, times.finish_s, times.critical_s].map(units::seconds);
                talk("runs from     ", &format!("{start} to {end}; critical for {critical}"))
            }
        },
        talk("receives from ", &flows(true)),
        talk("sends to      ", &flows(false)),
        talk("holds         ", &memory),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Colour of a stage.
fn hue(model: &Model, shown: &ShownRun, stage: usize) -> Style {
    let shades = Shades::new(&model.appearance.theme, model.appearance.depth);
    Style::new().fg(shades.color(shades.stage(stage, &shown.places)))
}

// Long: a row from left to right, one arm per kind.
fn row_spans(
    row: DeviceRow,
    model: &Model,
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
    parts: &[LoadPart],
    (room, bar_width): (usize, usize),
) -> Vec<Span<'static>> {
    let theme = &model.appearance.theme;
    let i = match row {
        DeviceRow::Unused => {
            let text = format!(" {} not used by this plan", shown.names.unused);
            return vec![Span::styled(text, theme.fg(Role::Muted))];
        }
        DeviceRow::Stage(i) | DeviceRow::Device(i, _) => i,
    };
    let (stage, scored) = (&plan.stages[i], &score.stages[i]);
    let slowest = score.slowest_s.max(f64::MIN_POSITIVE);
    // Where there are several kinds, the kind is more informative than the whole word.
    let name = match shown.names.machines(i) {
        "" => shown.names.long(i).to_string(),
        kind => format!("{} {kind}", shown.names.short(i)),
    };
    let left = match row {
        DeviceRow::Device(_, device) => {
            let at = stage.devices.iter().position(|&d| d == device).unwrap_or(0) as u32;
            let replica = format!("replica {}", at / stage.tensor_parallel.max(1) + 1);
            // With several machines, the machine is more informative.
            let machine = shown.limits.machines.machine_of(device).filter(|_| !shown.names.machines(i).is_empty());
            let replica = machine.map_or(replica, |machine| format!("machine {}", machine + 1));
            vec![
                Span::raw(fit(&format!("    {device}"), 11)),
                Span::styled(fit(&replica, room - 12), theme.fg(Role::Muted)),
            ]
        }
        _ if shown.names.noun == "device" && room < LEFT => {
            vec![Span::styled("● ", hue(model, shown, i)), Span::styled(fit(&name, room - 3), theme.bold(Role::Text))]
        }
        _ if shown.names.noun == "device" => vec![
            Span::styled("● ", hue(model, shown, i)),
            Span::styled(fit(&name, LEFT - 15), theme.bold(Role::Text)),
            Span::styled(fit_right(&stage.nodes.len().to_string(), 4), theme.fg(Role::Muted)),
            Span::styled(fit(if stage.nodes.len() == 1 { " node" } else { " nodes" }, 8), theme.fg(Role::Muted)),
        ],
        _ => {
            let sign = match (stage.device_count() > 1, model.views.devices.unfolded.contains(&i)) {
                (false, _) => "  ",
                (true, false) => "▸ ",
                (true, true) => "▾ ",
            };
            let count = format!("× {}", stage.device_count());
            vec![
                Span::raw(sign),
                Span::styled(fit(&span_of(&stage.devices), 12), theme.bold(Role::Text)),
                Span::styled("● ", hue(model, shown, i)),
                Span::raw(fit(&(i + 1).to_string(), 5)),
                Span::styled(fit(&count, room - (LEFT - COUNT)), theme.fg(Role::Muted)),
            ]
        }
    };
    let mut spans = left;
    let idle = (slowest - scored.load_s).max(0.0);
    let mut bars = load_parts::bar_parts(parts, scored, slowest, theme);
    bars.push(Part { share: idle / slowest, fill: "░", style: theme.fg(Role::Idle) });
    spans.extend(bar::stacked(&bars, bar_width));
    let busy = if score.bottleneck() == Some(i) {
        let word = if scored.sample.is_some() { "limits ◂" } else { "slowest ◂" };
        Span::styled(fit_right(word, VALUE), theme.bold(Role::Warning))
    } else {
        Span::raw(fit_right(&units::percent_whole(scored.load_s / slowest), VALUE))
    };
    spans.push(busy);
    spans.push(Span::raw("  "));
    if shown.names.is_cpu(i) {
        spans.push(Span::styled(fit("no limit", bar_width + VALUE), theme.fg(Role::Muted)));
        return spans;
    }
    let limit = shown.memory_limit(i);
    let scale = limit.max(scored.memory_bytes);
    let gauge = bar_width.saturating_sub(1);
    let fixed = scored.memory_bytes - scored.activation_bytes;
    // Half a line in its colour; a sign of its own without colours.
    let fill = |sign| if theme.color(Role::State) == Color::Reset { sign } else { "▄" };
    spans.extend(bar::stacked(
        &[
            Part { share: fixed / scale, fill: fill("█"), style: theme.fg(Role::State) },
            Part { share: scored.activation_bytes / scale, fill: fill("▒"), style: theme.fg(Role::Activations) },
        ],
        gauge,
    ));
    spans.push(Span::styled("│", theme.fg(Role::Text)));
    spans.push(Span::styled(fit_right(&units::bytes_beside(scored.memory_bytes, limit), VALUE), plain()));
    spans
}

/// Short text of device numbers: `0–7`, `4`, `0 … 3` if they are not consecutive.
fn span_of(devices: &[u32]) -> String {
    match devices {
        [] => "-".into(),
        [only] => only.to_string(),
        [first, .., last] => {
            let consecutive = devices.windows(2).all(|pair| pair[1] == pair[0] + 1);
            if consecutive { format!("{first}–{last}") } else { format!("{first} … {last}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_lists_in_short() {
        assert_eq!(span_of(&[]), "-");
        assert_eq!(span_of(&[4]), "4");
        assert_eq!(span_of(&[4, 5, 6]), "4–6");
        assert_eq!(span_of(&[4, 6, 7]), "4 … 7");
    }
}
