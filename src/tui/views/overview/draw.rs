//! Draws the parts of the view.

use std::sync::Arc;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    arcs::Arcs,
    areas,
    areas::Areas,
    below, figures, handovers, operators, side,
    state::{MapKey, State},
    traffic,
};
use crate::{
    plan::{Plan, Score},
    tui::{
        marks::Marks,
        model::{Hit, Model},
        paint::{
            axis::Axis,
            facts::{DEGREES, Facts},
            map::Map,
            map_layout::MapLayout,
            memory_chart::MemoryChart,
            moment::Moment,
            phrases::flow,
            shades::Shades,
            stage_block::Block,
            strip::{self, Rows, Strip},
            topology,
        },
        playing::Playhead,
        shown::ShownRun,
        simulated::Simulated,
        theme::Role,
    },
    units,
};

/// Minimum height for drawing links, rows.
const LEAST_LINKS: u16 = 5;

/// Minimum height at which the block of a stage shows its transfers, rows.
const WITH_TRAFFIC: u16 = 36;

/// Title of the map.
const MAP_TITLE: &str = "Devices  ";

/// Title of the strip.
const TITLE: &str = "Iteration  ";

/// Number of devices from which each one is redrawn less often.
const MANY: usize = 64;

/// Draws the view of a plan.
pub(in crate::tui) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    shown: &Arc<ShownRun>,
    plan: &Plan,
    score: &Score,
) {
    let shades = Shades::new(&model.appearance.theme, model.appearance.depth);
    let simulated = model.simulation.simulated.clone().filter(|simulated| Arc::ptr_eq(&simulated.shown, shown));
    let simulated = simulated.as_deref();
    let rows = simulated.map_or(plan.stages.len(), |simulated| simulated.timeline.replicas.len()).max(1);
    let mut state = model.views.overview.clone();
    let (layout, arcs) = map_of(&mut state, model.planning.generation, (shown, score, simulated), area, rows);
    let longest = (0..plan.stages.len()).map(|i| shown.names.short(i).chars().count()).max().unwrap_or(0);
    let under = arcs.as_ref().map_or(0, |arcs| 1 + arcs.rows());
    // For a model, the map keeps its height whatever the layout.
    let map_rows = match shown.workload.training() {
        Some(_) => areas::steady_map(area),
        None => layout.as_ref().map_or(0, |layout| layout.rows + under),
    };
    let memory = shown.workload.training().is_some();
    let places = Areas::new(area, map_rows, (rows, memory), strip::names_width(longest));
    state.area = places.map;
    let selected = state.stage();
    figures::draw(frame, places.figures, model, shown, simulated);
    if let Some(layout) = &layout {
        let of = (shown.places.as_slice(), simulated);
        draw_map(frame.buffer_mut(), model, &shades, (layout, state.cursor), &places, of);
        if let Some(arcs) = &arcs {
            let y = places.map.y + layout.rows + 1;
            let room = Rect { y, height: arcs.rows(), ..places.map }.intersection(places.map);
            arcs.draw(frame.buffer_mut(), room, (&model.appearance.theme, &shades), &shown.places);
        }
    }
    // Free rows between the batch and the line of the stage, or the end.
    let from = places.phases.y + 2;
    let until = if places.side.is_some() { area.bottom() } else { places.below.y.saturating_sub(1) };
    let room = Rect { y: from, height: until.saturating_sub(from), ..places.map_title };
    draw_free(frame, room, model, (shown, plan, score), selected);
    let limiting = simulated.map_or_else(|| score.bottleneck(), Simulated::limiting);
    let stage = selected.or(limiting).unwrap_or(0);
    let limiting = limiting.filter(|_| plan.stages.len() > 1);
    if let Some(simulated) = simulated
        && draw_batch(frame, model, &shades, simulated, &places, (selected, limiting))
    {
        state.strip = places.strip;
        let batch = simulated.timeline.iteration_s;
        let axis = Axis::of(simulated.steady.as_ref(), batch, places.strip.width);
        state.axis = Some(axis);
        if shown.operators.is_none() && plan.topology.is_none() {
            draw_memory(frame.buffer_mut(), model, &shades, simulated, &places, (stage, axis));
        }
        marks.hits.push((places.strip, Hit::Strip));
    }
    let mut facts = Facts::of(shown, plan, score, simulated, stage);
    if shown.operators.is_some() {
        // Operators share all devices, so there is only one stage.
        facts.title = format!("{} together", units::counted(plan.devices_used() as usize, "device"));
        facts.rows.retain(|(name, _)| !name.starts_with(DEGREES));
    }
    if places.side.is_some_and(|side| side.height >= WITH_TRAFFIC) {
        facts.rows.extend(traffic::rows(shown, stage));
    }
    let hue = Style::new().fg(shades.color(shades.stage(stage, &shown.places)));
    match places.side {
        Some(place) => {
            let (theme, limit) = (&model.appearance.theme, shown.memory_limit(stage));
            let block = Block { theme, shades: &shades, facts: &facts, hue, limit };
            let from = (block.draw(frame, place) + 2).min(place.height);
            let help = Rect { y: place.y + from, height: place.height - from, ..place };
            side::draw_help(frame, help, model, marks);
        }
        None => {
            marks.help = Some(false);
            let alike = simulated.map_or(1, Simulated::alike);
            let limits = (limiting == Some(stage)).then_some(alike);
            below::draw(frame, places.below, model, (&facts, hue), (shown.memory_limit(stage), limits));
        }
    }
    marks.views.overview = Some(state);
}

/// Draws into the free space: transfers of operators and their times, or the links of the topology.
fn draw_free(
    frame: &mut Frame<'_>,
    room: Rect,
    model: &Model,
    (shown, plan, score): (&ShownRun, &Plan, &Score),
    selected: Option<usize>,
) {
    if let Some(used) = &shown.operators {
        let taken = 1 + handovers::draw(frame, room, model, shown, used);
        let rest = Rect { y: room.y + taken, height: room.height.saturating_sub(taken), ..room };
        operators::draw(frame, rest, &model.appearance.theme, (shown, plan, score));
    }
    if plan.topology.is_some() {
        let selected = selected.or(score.bottleneck()).unwrap_or(0);
        let links = topology::Section {
            shown,
            theme: &model.appearance.theme,
            shades: Shades::new(&model.appearance.theme, model.appearance.depth),
            selected,
        };
        if room.height >= LEAST_LINKS {
            let lines = links.lines(usize::from(room.width), usize::from(room.height));
            frame.render_widget(Paragraph::new(lines), room);
        }
    }
}

/// Map and arcs below it, recomputed after a change of plan or size.
fn map_of(
    state: &mut State,
    generation: u64,
    (shown, score, simulated): (&ShownRun, &Score, Option<&Simulated>),
    area: Rect,
    stages: usize,
) -> (Option<Arc<MapLayout>>, Option<Arc<Arcs>>) {
    let paced = simulated.is_some_and(|simulated| simulated.paced.is_some());
    let key = MapKey { generation, size: (area.width, area.height), paced };
    if state.map.as_ref().is_none_or(|(known, _)| *known != key) {
        let under = |(_, map): &(_, Arc<MapLayout>)| map.atlas.seats.get(state.cursor).map(|seat| seat.device);
        let device = state.map.as_ref().and_then(under);
        let (map, arcs) =
            areas::map(shown, simulated, area, stages).map_or((None, None), |(map, arcs)| (Some(Arc::new(map)), arcs));
        state.arcs = arcs.map(Arc::new);
        let seats = map.iter().flat_map(|map| &map.atlas.seats);
        // The cursor stays on its device, or with its stage after an edit.
        let wanted = state.wanted.take();
        let of_stage = wanted.and_then(|stage| seats.clone().position(|seat| seat.stage == Some(stage)));
        let of_device = || device.and_then(|device| seats.clone().position(|seat| seat.device >= device));
        let found = of_stage.or_else(|| of_device().filter(|_| state.walked));
        let limiting = simulated.map_or_else(|| score.bottleneck(), Simulated::limiting);
        let first = || seats.clone().position(|seat| seat.stage == limiting);
        state.cursor = found.or_else(first).unwrap_or(0);
        state.map = map.map(|map| (key, map));
    }
    (state.map.as_ref().map(|(_, map)| map.clone()), state.arcs.clone())
}

fn draw_map(
    buffer: &mut Buffer,
    model: &Model,
    shades: &Shades,
    (layout, cursor): (&MapLayout, usize),
    places: &Areas,
    (stages, simulated): (&[f64], Option<&Simulated>),
) {
    let theme = &model.appearance.theme;
    let moment = simulated.zip(model.simulation.playhead());
    // With many devices update only every second picture, because each change costs output.
    let each = if layout.atlas.seats.len() > MANY { 2.0 } else { 1.0 };
    let moment = moment.map(|(simulated, (at_s, span_s))| {
        let span_s = each * span_s;
        let at_s = if each > 1.0 && span_s > 0.0 { (at_s / span_s).floor() * span_s } else { at_s };
        Moment { simulated, at_s, span_s }
    });
    let map =
        Map { layout, shades, theme, stages, cursor: Some(cursor), moment, changed: model.flashing(), failed: &[] };
    map.draw(buffer, places.map);
    let muted = theme.fg(Role::Muted);
    let each = match layout.stands_for {
        1 => String::new(),
        count if layout.atlas.grid.is_some_and(|(_, machine)| machine == count) => ", a cell for each machine".into(),
        count => format!(", a cell for every {count}"),
    };
    let count = layout.atlas.told.split(',').next().unwrap_or_default();
    let memory = if layout.atlas.full < 1.0 { "memory of the fullest" } else { "memory" };
    let words: Vec<(&str, &str)> = match (moment.is_some(), layout.size.height) {
        (true, _) => vec![("colour", "activity"), ("height", memory)],
        (false, 0) => vec![("hue", "stage"), ("shade", "memory and load")],
        (false, _) if stages.len() < 2 => vec![("height", memory), ("shade", "load")],
        (false, _) => vec![("hue", "stage"), ("height", memory), ("shade", "load")],
    };
    let idle = layout.atlas.seats.iter().any(|seat| seat.stage.is_none());
    let idle = idle.then_some(("[]", "idle"));
    let words: Vec<(&str, &str)> = words.into_iter().chain(idle).collect();
    let legend_width: usize = words.iter().map(|(what, means)| what.len() + means.len() + 3).sum();
    let free = usize::from(places.map_title.width).saturating_sub(MAP_TITLE.len() + legend_width);
    let told = format!("{}{each}", layout.atlas.told);
    let told = if told.chars().count() <= free { told } else { format!("{count}{each}") };
    let mut line = vec![Span::styled(MAP_TITLE, theme.bold(Role::Text)), Span::styled(told, muted)];
    let used: usize = line.iter().map(Span::width).sum();
    let mut legend: Vec<Span<'static>> = vec![];
    let room = usize::from(places.map_title.width).saturating_sub(used + 2);
    let mut width = 0;
    for (what, means) in words {
        let gap = if legend.is_empty() { "" } else { "  " };
        let own = gap.len() + what.len() + 1 + means.len();
        if width + own > room {
            break;
        }
        width += own;
        legend.push(Span::styled(format!("{gap}{what} "), theme.fg(Role::Text)));
        legend.push(Span::styled(means.to_string(), muted));
    }
    line.push(Span::raw(" ".repeat(room + 2 - width)));
    line.extend(legend);
    if places.map_title.height > 0 {
        buffer.set_line(places.map_title.x, places.map_title.y, &Line::from(line), places.map_title.width);
    }
}

/// Draws the iteration on its strip. Returns true if there was space for the strip.
fn draw_batch(
    frame: &mut Frame<'_>,
    model: &Model,
    shades: &Shades,
    simulated: &Simulated,
    places: &Areas,
    (selected, limiting): (Option<usize>, Option<usize>),
) -> bool {
    let theme = &model.appearance.theme;
    let batch = simulated.timeline.iteration_s;
    let axis = Axis::of(simulated.steady.as_ref(), batch, places.strip.width);
    let playhead_s = model.simulation.playhead().map(|(at, _)| at);
    let strip = Strip { simulated, shades, theme, axis, playhead_s };
    let rows = Rows::new(simulated.timeline.replicas.len(), places.strip.height);
    if places.batch_title.height > 0 {
        let title = places.batch_title;
        let told = match model.simulation.tempo() {
            Some(tempo) if matches!(model.simulation.playing.head, Playhead::Runs(_)) => {
                [format!("plays at {}", model.simulation.playing.told(&tempo)), String::new()]
            }
            _ => batch_in_words(simulated),
        };
        let limits = limiting.map(|stage| match simulated.alike() {
            ..2 => format!(", {} limits", simulated.shown.names.long(stage)),
            alike => format!(", {alike} stages limit alike"),
        });
        // The legend of colours takes precedence over the title.
        let room = usize::from(title.width.saturating_sub(strip.legend_width(1) + 2));
        let [batch, schedule] = &told;
        let limits = limits.unwrap_or_default();
        let heads = [
            [batch.as_str(), schedule, &limits],
            [batch, "", &limits],
            [batch, schedule, ""],
            [batch, "", ""],
            [""; 3],
        ];
        let width = |head: &[&str; 3]| TITLE.len() + head.iter().map(|text| text.chars().count()).sum::<usize>();
        let head = heads.into_iter().find(|head| width(head) <= room);
        let styles = [Role::Muted, Role::Muted, Role::Warning].map(|role| theme.fg(role));
        let mut line = vec![];
        if let Some(head) = head {
            line.push(Span::styled(TITLE, theme.bold(Role::Text)));
            line.extend(head.into_iter().zip(styles).map(|(text, style)| Span::styled(text, style)));
        }
        let used: usize = line.iter().map(Span::width).sum();
        frame.render_widget(Line::from(line), title);
        let left = if used > 0 { (used as u16 + 2).min(title.width) } else { 0 };
        let rest = Rect { x: title.x + left, width: title.width - left, ..title };
        strip.draw_legend(frame.buffer_mut(), rest);
    }
    if places.strip.height == 0 || batch <= 0.0 {
        return false;
    }
    let buffer = frame.buffer_mut();
    strip.draw(buffer, places.strip, rows);
    strip.draw_names(buffer, places.names, rows, (selected, limiting));
    strip.draw_phases(buffer, places.phases, model.simulation.playhead().map(|(at, _)| at));
    if places.phases.height > 0 {
        let sign = match model.simulation.playing.head {
            Playhead::Runs(_) if model.simulation.tempo().is_some_and(|t| t.skips(model.simulation.playing.at_s)) => {
                "▶▶"
            }
            Playhead::Runs(_) => "▶",
            Playhead::Held => "■",
            Playhead::Away => "",
        };
        let width = usize::from(places.names.width);
        buffer.set_stringn(places.names.x, places.phases.y, sign, width, theme.fg(Role::Accent));
    }
    if let Some((at, _)) = model.simulation.playhead() {
        strip.draw_playhead(buffer, places.strip, places.phases, at);
    }
    true
}

/// Draws the memory of a stage over the columns of the strip.
fn draw_memory(
    buffer: &mut Buffer,
    model: &Model,
    shades: &Shades,
    simulated: &Simulated,
    places: &Areas,
    (stage, axis): (usize, Axis),
) {
    let theme = &model.appearance.theme;
    let (area, limit) = (places.memory, simulated.shown.memory_limit(stage));
    let chart = MemoryChart { theme, shades, simulated, stage, limit, axis, split: false };
    let legend = chart.legend();
    if area.height < 2 || legend.is_empty() || simulated.shown.names.is_cpu(stage) {
        return;
    }
    let title = vec![
        Span::styled("Memory  ", theme.bold(Role::Text)),
        Span::styled(format!("{}: ", simulated.shown.names.long(stage)), theme.fg(Role::Muted)),
    ];
    let title = flow(std::iter::once(title).chain(legend).collect(), " ", area.width.into(), 1);
    if let Some(line) = title.first() {
        buffer.set_line(area.x, area.y, line, area.width);
    }
    let grid = Rect { x: places.strip.x, y: area.y + 1, width: places.strip.width, height: area.height - 1 };
    chart.draw_grid(buffer, grid);
}

/// Iteration in words: `256 microbatches` and `, 1F1B`.
fn batch_in_words(simulated: &Simulated) -> [String; 2] {
    if simulated.pipeline.single_sample.is_some() {
        return ["one sample".into(), String::new()];
    }
    if !simulated.pipeline.steps.is_empty() {
        return [units::counted(simulated.pipeline.steps.len(), "operator"), String::new()];
    }
    let microbatches = units::counted(simulated.pipeline.microbatches as usize, "microbatch");
    [microbatches, format!(", {}", simulated.schedule().name())]
}
