//! Head of the view: objective, effect of the last change, and the most important figures.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::{
    family::describe,
    plan::{Measure, Plan, Score, document::CostPart},
    planner::{Status, WEAK_GAP},
    tui::{
        model::Model,
        paint::{
            facts::of_limit,
            topology::arrowed,
            words::{MUCH_IDLE, NEAR},
        },
        shown::ShownRun,
        simulated::Simulated,
        theme::{Role, Theme},
    },
    units,
};

/// Value with its name.
#[derive(Default)]
struct Figure {
    value: Vec<Span<'static>>,
    name: String,
    /// Text beside the value if names have no line of their own.
    short: &'static str,
    /// Text after the value in that case, if it fits.
    tail: String,
    /// Name if the full one does not fit.
    brief: &'static str,
    /// True if it takes precedence when not all figures fit.
    vital: bool,
    /// Columns that it keeps, so that those after it stand still.
    slot: usize,
}

impl Figure {
    fn width(&self) -> usize {
        let value: usize = self.value.iter().map(Span::width).sum();
        value.max(self.name.chars().count()).max(self.slot)
    }
}

/// Minimum and maximum gap between two figures, columns.
const GAPS: (usize, usize) = (3, 8);

/// Draws the figures on two lines, or on one.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &ShownRun, simulated: Option<&Simulated>) {
    let figures = figures(model, shown, simulated);
    if area.height >= 2 {
        draw_named(frame, area, model, figures);
    } else {
        draw_line(frame, area, model, figures);
    }
}

fn draw_named(frame: &mut Frame<'_>, area: Rect, model: &Model, figures: Vec<Figure>) {
    let room = usize::from(area.width) + GAPS.0;
    let whole = |figures: &[Figure]| figures.iter().map(|figure| figure.width() + GAPS.0).sum::<usize>();
    let figures = fitting(figures, room, whole);
    let spare = room.saturating_sub(whole(&figures));
    let gap = (GAPS.0 + spare / figures.len().max(1)).min(GAPS.1);
    let mut x = area.x;
    for figure in figures {
        let width = figure.width() as u16;
        let place = Rect { x, width, height: 1, ..area }.intersection(area);
        frame.render_widget(Line::from(figure.value), place);
        let below = Rect { y: area.y + 1, ..place };
        frame.render_widget(Span::styled(figure.name, model.appearance.theme.fg(Role::Muted)), below);
        x = (x + width + gap as u16).min(area.right());
    }
}

/// Figures that fit, in order: vital ones first. A figure whose name does not fit takes its brief name.
fn fitting(mut figures: Vec<Figure>, room: usize, whole: impl Fn(&[Figure]) -> usize) -> Vec<Figure> {
    let mut left: Vec<usize> = (0..figures.len()).collect();
    left.sort_by_key(|&at| !figures[at].vital);
    let mut taken = vec![false; figures.len()];
    let mut used = 0;
    for at in left {
        let own = |figures: &[Figure]| whole(std::slice::from_ref(&figures[at]));
        if used + own(&figures) > room && !figures[at].brief.is_empty() {
            figures[at].name = figures[at].brief.into();
        }
        // The first is always shown.
        if used == 0 || used + own(&figures) <= room {
            used += own(&figures);
            taken[at] = true;
        }
    }
    figures.into_iter().zip(taken).filter(|(_, taken)| *taken).map(|(figure, _)| figure).collect()
}

fn draw_line(frame: &mut Frame<'_>, area: Rect, model: &Model, figures: Vec<Figure>) {
    let muted = model.appearance.theme.fg(Role::Muted);
    let mut figures = figures;
    let own = |figure: &Figure| {
        let short = if figure.short.is_empty() { 0 } else { figure.short.len() + 1 };
        GAPS.0 + short + figure.value.iter().map(Span::width).sum::<usize>()
    };
    let whole = |figures: &[Figure]| figures.iter().map(own).sum::<usize>();
    let room = usize::from(area.width) + GAPS.0;
    // Tails of vital figures take precedence over other figures.
    let vital = figures.iter().filter(|figure| figure.vital);
    let tails = vital.map(|figure| own(figure) + Span::raw(figure.tail.as_str()).width()).sum::<usize>() <= room;
    for figure in figures.iter_mut().filter(|figure| tails && !figure.tail.is_empty()) {
        figure.value.push(Span::styled(std::mem::take(&mut figure.tail), muted));
    }
    let figures = fitting(figures, room, whole);
    let mut spans: Vec<Span<'static>> = vec![];
    for figure in figures {
        if !spans.is_empty() {
            spans.push(Span::raw("   "));
        }
        if !figure.short.is_empty() {
            spans.push(Span::styled(format!("{} ", figure.short), muted));
        }
        spans.extend(figure.value);
    }
    frame.render_widget(Line::from(spans), area);
}

fn figures(model: &Model, shown: &ShownRun, simulated: Option<&Simulated>) -> Vec<Figure> {
    let theme = &model.appearance.theme;
    let text = |role: Role, bold: bool| if bold { theme.bold(role) } else { theme.fg(role) };
    let figure = |value: Vec<(String, Style)>, name: &str, short: &'static str| Figure {
        value: value.into_iter().map(|(text, style)| Span::styled(text, style)).collect(),
        name: name.into(),
        short,
        ..Figure::default()
    };
    let mut figures = vec![headline(theme, shown, simulated)];
    let Some((plan, score)) = shown.plan() else { return figures };
    let own = |own: &describe::FamilyFigure| {
        let brief = if own.name.ends_with("published runs") { "published runs" } else { "" };
        Figure { brief, ..figure(vec![(own.value.clone(), text(Role::Text, false))], &own.name, own.short) }
    };
    figures.extend(shown.figures.iter().map(own));
    let seconds = simulated.map(|simulated| simulated.timeline.iteration_s).filter(|seconds| *seconds > 0.0);
    let job = model.pins_here().find(|pin| pin.compared.is_of_job());
    let job = job.and_then(|pin| pin.compared.entry.simulated.as_ref()).map(|own| own.iteration_s);
    let job = job.map(|job| (job, "the job as it runs", "than the job"));
    let rule = shown.rule_s.map(|rule| (rule, "by rule of thumb", "than the rule"));
    let equal = simulated.and_then(|simulated| simulated.equal_s);
    let equal = equal.map(|equal| (equal, "equal partition", "than equal"));
    if let Some(((baseline_s, whose, brief), seconds)) = job.or(rule).or(equal).zip(seconds) {
        let gain = baseline_s / seconds;
        let role = if gain >= 1.0 { Role::Good } else { Role::Warning };
        let as_fast = (gain - 1.0).abs() <= units::AS_FAST;
        let value = vec![(units::faster(gain), text(if as_fast { Role::Text } else { role }, false))];
        let name = format!("{} {whose}", if as_fast { "as" } else { "than" });
        figures.push(Figure { brief, slot: 21, ..figure(value, &name, brief) });
    }
    if let (Some(cost), Some(price)) = (cost(model, shown, plan, simulated), price(model, shown)) {
        let value = vec![(format!("{} per G tokens", units::money(cost)), text(Role::Text, false))];
        figures.push(figure(value, &format!("at {} an hour", units::money(price)), "cost"));
    }
    if let Some(simulated) = simulated.filter(|simulated| !simulated.timeline.events.is_empty()) {
        let timeline = &simulated.timeline;
        if !matches!(plan.measure, Measure::Latency { .. } | Measure::OperatorCost(_)) {
            let role = match timeline.idle {
                idle if idle > MUCH_IDLE => Role::Warning,
                _ => Role::Text,
            };
            let value = vec![(units::percent(timeline.idle), text(role, false))];
            figures.push(Figure { vital: true, ..figure(value, "idle", "idle") });
        }
    }
    let planned = || score.stages.iter().map(|stage| stage.memory_bytes).collect();
    let peaks: Vec<f64> = simulated.map_or_else(planned, |simulated| simulated.timeline.peak_memory_bytes.clone());
    let (limit, over) = shown.fullest_limit(&peaks);
    let peak = peaks.iter().copied().fold(0.0, f64::max);
    if peak > 0.0 {
        let (held, of) = of_limit(peak, limit);
        let held = if over { format!("✗ {held}") } else { held };
        let style = if over { text(Role::Bad, true) } else { text(Role::Text, false) };
        let (name, tail) = fullest(shown, plan, score, simulated);
        let value = vec![(held, style), (of, text(Role::Muted, false))];
        figures.push(Figure { tail, vital: true, ..figure(value, &name, "fullest") });
    }
    if let Some(load) = shown.links.first() {
        let seconds = vec![
            (units::seconds(load.seconds), text(Role::Text, false)),
            (" a microbatch".into(), text(Role::Muted, false)),
        ];
        figures.push(figure(seconds, &format!("fullest link {}", arrowed(&load.name)), "fullest link"));
    }
    if let Some(simulated) =
        simulated.filter(|simulated| simulated.timeline.samples_per_s > 0.0 && shown.figures.is_empty())
    {
        let rate = units::rate(simulated.timeline.samples_per_s);
        let one = matches!(plan.measure, Measure::Latency { .. });
        // Without a sample count in the profile, a microbatch counts as one sample, as in every figure.
        let told = match (one, simulated.pipeline.samples > 0.0 || shown.names.noun == "device") {
            (true, _) => "one after the other",
            (false, true) => "throughput",
            (false, false) => "each a microbatch",
        };
        let unit = " samples/s";
        figures.push(figure(vec![(rate, text(Role::Text, false)), (unit.into(), text(Role::Muted, false))], told, ""));
    }
    if let Some(promise) = simulated.and_then(|simulated| simulated.promise) {
        let error = promise.planned / promise.simulated - 1.0;
        let error = if promise.difference().abs() < 5e-4 { 0.0 } else { error };
        let told = format!("{}{}", if error < 0.0 { "−" } else { "+" }, units::percent(error.abs()));
        figures.push(figure(vec![(told, text(Role::Text, false))], "model error", "model error"));
    }
    // A model has figures of its own instead: throughput, utilisation and their reliability.
    figures.extend(standing(shown, theme).filter(|_| shown.figures.is_empty()));
    figures
}

/// Iteration time.
fn headline(theme: &Theme, shown: &ShownRun, simulated: Option<&Simulated>) -> Figure {
    let Some((plan, score)) = shown.plan() else {
        return Figure { vital: true, ..Figure::default() };
    };
    let simulated = simulated.map(|simulated| simulated.timeline.iteration_s).filter(|seconds| *seconds > 0.0);
    let Some(seconds) = simulated else {
        let value = shown.outcome.objective.unwrap_or(score.value);
        let value = vec![Span::styled(plan.measure.show(value), theme.bold(Role::Text))];
        return Figure { value, name: "planned".into(), vital: true, ..Figure::default() };
    };
    let value = vec![Span::styled(units::seconds(seconds), theme.bold(Role::Text))];
    let name = match plan.measure {
        Measure::Latency { .. } => "from input to result",
        Measure::OperatorCost(_) => "an iteration",
        _ => "an iteration",
    };
    Figure { value, name: name.into(), vital: true, slot: 14, ..Figure::default() }
}

/// Fullest device: name of the figure, and the text after the value if names have no line of their own.
fn fullest(shown: &ShownRun, plan: &Plan, score: &Score, simulated: Option<&Simulated>) -> (String, String) {
    let planned = || score.stages.iter().map(|stage| stage.memory_bytes).collect();
    let peaks: Vec<f64> = simulated.map_or_else(planned, |simulated| simulated.timeline.peak_memory_bytes.clone());
    let most = peaks.iter().copied().fold(0.0, f64::max);
    let at = peaks.iter().position(|&peak| peak >= most).filter(|&at| plan.stages.len() > 1 && at < plan.stages.len());
    match at {
        None => ("fullest device".into(), String::new()),
        Some(at) if shown.names.noun == "device" => {
            (format!("fullest, {}", shown.names.long(at)), format!(", {}", shown.names.short(at)))
        }
        Some(at) => (format!("fullest, {}", shown.names.long(at)), format!(", {}", shown.names.long(at))),
    }
}

/// Proof of the plan.
fn standing(shown: &ShownRun, theme: &Theme) -> Option<Figure> {
    let one = |text: String, style: Style, name: String, short: &'static str| {
        Some(Figure { value: vec![Span::styled(text, style)], name, short, slot: 24, ..Figure::default() })
    };
    let gap = shown.outcome.gap();
    match (shown.outcome.status, gap) {
        (Status::Optimal, _) => {
            let proof = shown.outcome.proof()?;
            // Only the start of the proven space; Stages shows all of it.
            let short = proof.short();
            let told = short.split_once(", ").map_or_else(|| short.clone(), |(first, _)| format!("{first} .."));
            one(told, theme.fg(Role::Good), proof.measure.goal().into(), "")
        }
        (_, Some(gap)) if gap > WEAK_GAP => {
            let proof = shown.outcome.proof()?;
            let [value, bound] = [proof.value?, proof.bound?].map(|value| proof.measure.show(value));
            let standing =
                one("bound too weak".into(), theme.fg(Role::Text), format!("{value} against {bound}"), "proven");
            standing.map(|figure| Figure { brief: "bound too weak", ..figure })
        }
        (_, Some(gap)) if gap.is_finite() => {
            let told = format!("within {}", units::gap(gap));
            // Only the start of the proven space; Stages shows all of it.
            let plans = shown.outcome.proven_among.as_deref().and_then(|plans| plans.split(',').next());
            let of = plans.map_or("of the optimum".into(), |plans| format!("of the best of {plans}"));
            // The same colour as in the header.
            let role = if gap <= NEAR { Role::Good } else { Role::Warning };
            let standing = one(told, theme.fg(role), of, "proven");
            standing.map(|figure| Figure { brief: "of the best", ..figure })
        }
        _ => None,
    }
}

/// Configured price of a device of a model to be trained, for an hour.
fn price(model: &Model, shown: &ShownRun) -> Option<f64> {
    let profile = shown.workload.training()?;
    model.session.prices.get(profile.accelerator.id).copied()
}

/// Cost of a billion tokens, if the price of the hardware is configured.
fn cost(model: &Model, shown: &ShownRun, plan: &Plan, simulated: Option<&Simulated>) -> Option<f64> {
    let rate = simulated?.timeline.samples_per_s * shown.workload.training()?.sequence as f64;
    CostPart::of(price(model, shown), None, rate, plan.devices_used().into())?.per_billion
}
