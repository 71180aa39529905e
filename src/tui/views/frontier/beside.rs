//! Two layouts side by side: parts of their time and memory on the same scales, and the changes from one to the other.
//!
//! ```text
//! 1.41x faster   20.31 s -> 14.41 s
//! As it runs                               Best found
//! TP 8 CP 1 PP 4 DP 2                      TP 4 CP 2 PP 4 x5 DP 2
//! time   ########%%%%==                    time   #########=
//! The changes, the most valuable first, each on top of the last
//!   recompute none for full      --------------++++   15.42 s   1.32x   52.8 GiB
//! For Megatron-LM  the arguments that differ
//! − --recompute-granularity full           + --context-parallel-size 2
//! ```

use std::sync::Arc;

use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};

use super::{arguments::ArgumentChanges, points::Point};
use crate::{
    family::training::{Estimate, Fits},
    plan::Configuration,
    study::improve::{self, Step},
    tui::{
        layout_bar::Axis,
        model::Model,
        paint::{
            area::rows,
            shades::{Activity, Memory, Shades},
            text::{clip, fit, fit_right, wrap},
        },
        shown::ShownRun,
        theme::Role,
    },
    units,
};

/// Width of the names of changes on a narrow and on a wide screen, and of the figures after a bar, cells.
const CHANGE: (usize, usize) = (34, 48);
const FIGURES: usize = 40;

/// One of two layouts.
#[derive(Debug)]
struct Side {
    title: String,
    configuration: Configuration,
    estimate: Estimate,
    /// Iteration time as the table has it, seconds.
    seconds: f64,
    /// Memory of the fullest device, bytes.
    bytes: f64,
}

/// Two layouts, and the way from one to the other.
#[derive(Debug)]
pub(in crate::tui) struct Pair {
    sides: [Side; 2],
    steps: Vec<Step>,
    /// Index of the selected change.
    change: usize,
    /// Memory that stays free, bytes.
    reserve: f64,
    limit: f64,
    arguments: Option<ArgumentChanges>,
}

impl Pair {
    /// Compares two layouts of a run; `None` if it is none of a model to be trained.
    pub(super) fn of(source: &Arc<ShownRun>, points: [&Point; 2]) -> Option<Pair> {
        let profile = source.workload.training()?;
        let run = |point: &Point| profile.run(&point.configuration, source.limits.samples());
        let side = |point: &Point| {
            let title = match (point.runs, point.shown) {
                (true, _) => "As it runs",
                (false, true) => "On the screen",
                (false, false) => "The other",
            };
            Some(Side {
                title: title.into(),
                configuration: point.configuration.clone(),
                estimate: improve::predict(profile, &run(point))?,
                seconds: point.seconds,
                bytes: point.bytes,
            })
        };
        let [a, b] = points;
        let steps = improve::steps(profile, &run(a), &run(b));
        let reserve = profile.settings.reserve_bytes;
        let arguments = ArgumentChanges::of(&source.workload, &source.limits, [&a.plan, &b.plan]);
        // All changes together, first.
        let change = steps.len().saturating_sub(1);
        Some(Pair {
            sides: [side(a)?, side(b)?],
            steps,
            change,
            reserve,
            limit: source.limits.memory_limit(),
            arguments,
        })
    }
}

impl Pair {
    /// Selects the next or the previous change.
    pub(super) fn walk(&mut self, down: bool) {
        let last = self.steps.len().saturating_sub(1);
        self.change = if down { (self.change + 1).min(last) } else { self.change.saturating_sub(1) };
    }

    /// The selected change, if it is not the last, and the run with it and those before.
    pub(super) fn up_to(&self) -> Option<&Step> {
        self.steps.get(self.change).filter(|_| self.change + 1 < self.steps.len())
    }
}

/// Parts of an iteration, gathered from those of the closed form, as fractions of it.
fn time_parts(estimate: &Estimate) -> Vec<(Activity, &'static str, f64)> {
    let sum = |names: &[&str]| -> f64 {
        estimate.parts.iter().filter(|(name, _)| names.contains(name)).map(|(_, seconds)| seconds).sum()
    };
    let communication = ["tensor_parallel", "context_parallel", "expert_parallel", "p2p", "data_parallel"].as_slice();
    let idle = ["bubble", "imbalance", "expert_imbalance"].as_slice();
    let step = ["optimizer", "overhead", "offload"].as_slice();
    let whole: f64 = estimate.parts.iter().map(|(_, seconds)| seconds).sum();
    let again = whole * (1.0 - estimate.mfu / estimate.hfu.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    let busy = whole - sum(communication) - sum(idle) - sum(step);
    // Recomputation is a share of the computing, as its operations are.
    let again = busy * again / whole;
    vec![
        (Activity::Backward, "computing", (busy - again) / whole),
        (Activity::Recompute, "recompute", again / whole),
        (Activity::Communication, "communication", sum(communication) / whole),
        (Activity::Step, "step and overhead", sum(step) / whole),
    ]
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, pair: &Pair, shades: &Shades) {
    let theme = &model.appearance.theme;
    let muted = theme.fg(Role::Muted);
    let [a, b] = &pair.sides;
    let head = Line::from(vec![
        Span::styled(units::faster(a.seconds / b.seconds), theme.bold(Role::Text)),
        Span::styled(format!("   {} → {}", units::seconds(a.seconds), units::seconds(b.seconds)), theme.fg(Role::Text)),
        Span::styled(format!("   {} on the fullest device", units::more_bytes(b.bytes - a.bytes)), muted),
    ]);
    frame.render_widget(head, rows(area, 1, 1));
    let width = (area.width.saturating_sub(3)) / 2;
    let longest = a.seconds.max(b.seconds);
    for (i, side) in pair.sides.iter().enumerate() {
        let place = Rect { x: area.x + i as u16 * (width + 3), width, ..area };
        draw_side(frame, place, model, pair, (side, &pair.sides[1 - i]), (shades, longest));
    }
    let mut y = 11;
    let legend = [
        (shades.activity(Activity::Backward), "computing"),
        (shades.activity(Activity::Recompute), "recompute"),
        (shades.activity(Activity::Communication), "communication"),
        (shades.activity(Activity::Step), "step"),
        (shades.memory(Memory::State), "state"),
        (shades.memory(Memory::Activations), "activations"),
        (shades.memory(Memory::Buffers), "buffers"),
    ];
    let mut spans = vec![];
    let mut used = 0;
    for (shade, name) in legend {
        used += name.len() + 4;
        if used > usize::from(area.width) + 2 {
            break;
        }
        spans.push(Span::styled("■ ", Style::new().fg(shades.color(shade))));
        spans.push(Span::styled(format!("{name}  "), muted));
    }
    frame.render_widget(Line::from(spans), rows(area, y, 1));
    y += 2;
    if pair.steps.is_empty() || y + 2 >= area.height {
        return;
    }
    let title = Line::from(vec![
        Span::styled("The changes  ", theme.bold(Role::Text)),
        Span::styled("the most valuable first, each on top of the last  ", muted),
        Span::styled("⏎", theme.bold(Role::Accent)),
        Span::styled(" takes up to ▌", muted),
    ]);
    frame.render_widget(title, rows(area, y, 1));
    y += 1;
    // Times of the steps are predictions of one kind, so that they can be compared.
    let first = a.estimate.simulated_s;
    let longest = pair.steps.iter().map(|step| step.estimate.simulated_s).fold(first, f64::max);
    let change = if area.width >= 120 { CHANGE.1 } else { CHANGE.0 };
    let bar = usize::from(area.width).saturating_sub(change + FIGURES).min(60);
    let cells = |seconds: f64| ((seconds / longest * bar as f64).round() as usize).min(bar);
    let arguments = pair.arguments.as_ref().map_or(0, |own| own.height() as u16 + 2);
    let each = if area.height >= y + 2 * (pair.steps.len() as u16 + 1) + arguments { 2 } else { 1 };
    let mut before = first;
    let start = [("before".to_string(), &a.estimate)];
    let steps = pair.steps.iter().map(|step| (step.what.clone(), &step.estimate));
    for (i, (what, estimate)) in start.into_iter().chain(steps).enumerate() {
        let line = rows(area, y, 1);
        if line.height == 0 {
            break;
        }
        let now = estimate.simulated_s;
        let (kept, moved) = (cells(now.min(before)), cells(now.max(before)));
        let role = if now <= before { Role::Good } else { Role::Bad };
        let gain = if i == 0 { String::new() } else { units::faster(before / now) };
        // The planner keeps a margin for the error of the memory model; a step may not.
        let (fits, warns) = match estimate.fits {
            Fits::Yes => ("", muted),
            Fits::Close => (" close", theme.fg(Role::Warning)),
            Fits::No => (" ✗", theme.fg(Role::Bad)),
        };
        let memory = units::bytes(estimate.memory_bytes + pair.reserve);
        let spans = vec![
            Span::styled(if i == pair.change + 1 { "▌ " } else { "  " }, theme.fg(Role::Focus)),
            Span::styled(fit(&clip(&what, change - 3), change - 2), theme.fg(Role::Text)),
            Span::styled("▄".repeat(kept), theme.fg(Role::Border)),
            Span::styled("▄".repeat(moved - kept), theme.fg(role)),
            Span::raw(" ".repeat(bar - moved)),
            Span::styled(fit_right(&units::seconds(now), 9), theme.bold(Role::Text)),
            Span::styled(fit_right(&gain, 14), theme.fg(role)),
            Span::styled(fit_right(&memory, 10), muted),
            Span::styled(fits, warns),
        ];
        frame.render_widget(Line::from(spans), line);
        before = now;
        y += each;
    }
    if let Some(arguments) = pair.arguments.as_ref().filter(|own| own.height() > 0) {
        draw_arguments(frame, rows(area, y + 2 - each, area.height.saturating_sub(y + 2 - each)), model, arguments);
    }
}

/// Draws the arguments that differ: those of the left layout, and those of the right one.
fn draw_arguments(frame: &mut Frame<'_>, area: Rect, model: &Model, arguments: &ArgumentChanges) {
    let theme = &model.appearance.theme;
    if area.height < 2 {
        return;
    }
    let title = Line::from(vec![
        Span::styled(format!("For {}  ", arguments.engine), theme.bold(Role::Text)),
        Span::styled("the arguments that differ", theme.fg(Role::Muted)),
    ]);
    frame.render_widget(title, rows(area, 0, 1));
    let width = area.width.saturating_sub(3) / 2;
    // Long arguments go on in the next line.
    let wrapped = |sign: &str, lines: &[String]| -> Vec<String> {
        let broken = |line: &String| {
            let rows = wrap(line, usize::from(width).saturating_sub(2)).into_iter().enumerate();
            rows.map(|(row, text)| format!("{} {text}", if row == 0 { sign } else { " " })).collect::<Vec<_>>()
        };
        lines.iter().flat_map(broken).collect()
    };
    let lists = [(Role::Bad, wrapped("−", &arguments.removed)), (Role::Good, wrapped("+", &arguments.added))];
    for (x, (role, lines)) in [area.x, area.x + width + 3].into_iter().zip(lists) {
        let room = usize::from(area.height - 1);
        let cut = lines.len() > room;
        for (y, line) in lines.iter().take(if cut { room - 1 } else { room }).enumerate() {
            let text = clip(line, width.into());
            frame.render_widget(Span::styled(text, theme.fg(role)), Rect { x, width, ..rows(area, 1 + y as u16, 1) });
        }
        if cut {
            let text = format!("  and {} more", lines.len() + 1 - room);
            frame.render_widget(
                Span::styled(text, theme.fg(Role::Muted)),
                Rect { x, width, ..rows(area, area.height - 1, 1) },
            );
        }
    }
}

/// Title, layout, figures and bars of one layout.
fn draw_side(
    frame: &mut Frame<'_>,
    place: Rect,
    model: &Model,
    pair: &Pair,
    (side, other): (&Side, &Side),
    (shades, longest): (&Shades, f64),
) {
    let theme = &model.appearance.theme;
    let (muted, text) = (theme.fg(Role::Muted), theme.fg(Role::Text));
    frame.render_widget(Span::styled(side.title.clone(), theme.bold(Role::Text)), rows(place, 3, 1));
    let (own, others) = (&side.configuration, &other.configuration);
    let mut layout = vec![];
    for axis in Axis::ALL {
        let (Some(value), before) = (axis.of(&own.layout), axis.of(&others.layout)) else { continue };
        // An axis that neither layout uses says nothing.
        if value == 1 && before == Some(1) {
            continue;
        }
        let style = if Some(value) == before { theme.bold(Role::Text) } else { theme.bold(Role::Accent) };
        layout.push(Span::styled(format!("{} ", axis.label()), muted));
        layout.push(Span::styled(format!("{value}  "), style));
    }
    let again = own.recompute != others.recompute;
    frame.render_widget(Line::from(layout), rows(place, 4, 1));
    let style = theme.bold(if again { Role::Accent } else { Role::Text });
    let mut recompute = vec![Span::styled("recompute ", muted)];
    let kind = clip(&own.recompute.to_string(), usize::from(place.width).saturating_sub(10));
    recompute.push(Span::styled(kind, style));
    frame.render_widget(Line::from(recompute), rows(place, 5, 1));
    let estimate = &side.estimate;
    // Figures that do not fit are left out as a whole.
    let mut figures = String::new();
    for figure in [
        units::seconds(side.seconds),
        units::bytes_beside(side.bytes, pair.limit),
        format!("MFU {}", units::percent(estimate.mfu)),
        format!("{} tok/s/device", units::number(estimate.tokens_per_s_per_device)),
    ] {
        let gap = if figures.is_empty() { "" } else { "   " };
        if figures.chars().count() + gap.len() + figure.chars().count() <= usize::from(place.width) {
            figures += &format!("{gap}{figure}");
        }
    }
    frame.render_widget(Span::styled(figures, text), rows(place, 6, 1));
    let bar = usize::from(place.width).saturating_sub(10);
    let time: Vec<(Color, f64)> = time_parts(estimate)
        .into_iter()
        .map(|(activity, _, share)| (shades.color(shades.activity(activity)), share * side.seconds / longest))
        .collect();
    let fullest = estimate.stages.iter().max_by(|a, b| a.memory.total().total_cmp(&b.memory.total()));
    let whole = if pair.limit.is_finite() { pair.limit } else { side.bytes.max(other.bytes) };
    let memory: Vec<(Color, f64)> = fullest.map_or(vec![], |stage| {
        let own = stage.memory;
        [
            (Memory::State, own.state()),
            (Memory::Activations, own.activations),
            (Memory::Buffers, own.work + pair.reserve),
        ]
        .map(|(part, bytes)| (shades.color(shades.memory(part)), bytes / whole))
        .to_vec()
    });
    for (y, (name, parts)) in [(8, ("time", time)), (9, ("memory", memory))] {
        let mut spans = vec![Span::styled(fit(name, 8), muted)];
        let (mut until, mut drawn) = (0.0, 0);
        for (color, share) in parts {
            until += share;
            let end = ((until * bar as f64).round() as usize).min(bar);
            spans.push(Span::styled("▄".repeat(end.saturating_sub(drawn)), Style::new().fg(color)));
            drawn = drawn.max(end);
        }
        spans.push(Span::styled("▄".repeat(bar - drawn), theme.fg(Role::Border)));
        frame.render_widget(Line::from(spans), rows(place, y, 1));
    }
}
