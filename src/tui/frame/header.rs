//! Top line: workload at the left; planner, status and objective at the right.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    family,
    plan::Measure,
    tui::{
        model::Model,
        paint::{
            text::{clip, plain},
            words::status,
        },
        theme::Role,
        widget::bar,
    },
    units,
};

/// Width of the progress bar, cells.
const BAR: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let width = area.width as usize;
    // Drop parts at the right from the end until they fit.
    let mut right = if model.progress_shown() { planning(model) } else { result(model) };
    if !right.is_empty() {
        right.insert(0, turning(model));
    }
    while right.len() > 3 && width_of(&right) + model.session.workload.name.len().min(24) + 12 > width {
        right.pop();
    }
    let space = width.saturating_sub(width_of(&right) + 1);
    frame.render_widget(left(model, space), Rect { width: space as u16, ..area });
    if let Some(last) = right.last_mut() {
        last.content = last.content.trim_end().to_string().into();
    }
    let used = (width_of(&right) as u16).min(area.width);
    // One blank column, as everywhere.
    let margin = 1.min(area.width - used);
    let place = Rect { x: area.right() - used - margin, width: used, ..area };
    frame.render_widget(Line::from(right), place);
}

/// Sign beside the planner's name that turns while a plan is awaited. Its cell is always there.
fn turning(model: &Model) -> Span<'static> {
    const SIGNS: [&str; 8] = ["⠋ ", "⠙ ", "⠸ ", "⢰ ", "⣠ ", "⣄ ", "⡆ ", "⠇ "];
    const PLAIN: [&str; 4] = ["| ", "/ ", "- ", "\\ "];
    let since = model.planning.running.as_ref().filter(|_| model.planning_shown()).map(|running| running.since);
    let Some(since) = since else { return Span::raw("  ") };
    let turn = model.appearance.now.saturating_duration_since(since).as_millis() / 100;
    let signs: &[&str] = if model.appearance.ascii || model.appearance.console { &PLAIN } else { &SIGNS };
    Span::styled(signs[turn as usize % signs.len()], model.appearance.theme.bold(Role::Accent))
}

fn width_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// Width from which pinned axes stand beside the proof, cells.
const WIDE: u16 = 110;

fn left(model: &Model, width: usize) -> Line<'static> {
    let theme = &model.appearance.theme;
    let workload = &model.session.workload;
    let parameters = workload.parameters();
    let size = family::of(workload).size(workload).into_iter();
    let parameters = (parameters > 0.0).then(|| format!("{} params", units::count_short(parameters)));
    let facts = size.chain(parameters).map(|fact| format!("  {fact}"));
    let name = clip(&workload.name, width.saturating_sub(10));
    let mut used = 11 + name.chars().count();
    let mut spans = vec![
        Span::styled(" plantui", theme.bold(Role::Accent)),
        Span::raw("  "),
        Span::styled(name, theme.bold(Role::Text)),
    ];
    for fact in facts {
        used += fact.chars().count();
        if used > width {
            break;
        }
        spans.push(Span::styled(fact, theme.fg(Role::Muted)));
    }
    Line::from(spans)
}

fn result(model: &Model) -> Vec<Span<'static>> {
    let theme = &model.appearance.theme;
    let name = |text: &str| Span::styled(format!("{text}  "), theme.bold(Role::Text));
    if model.edited() {
        return edited(model);
    }
    if model.planning.refusal.is_some() {
        let sign = Span::styled("✗ cannot plan this workload ", theme.bold(Role::Bad));
        return vec![name(model.session.current_planner().info().name), sign];
    }
    if model.planning.stopped {
        let sign = Span::styled("■ stopped ", theme.bold(Role::Warning));
        return vec![name(model.session.current_planner().info().name), sign];
    }
    let Some(shown) = &model.planning.shown else { return vec![] };
    let maker = model.previewed().unwrap_or(shown.planner.name);
    let mut spans = vec![name(maker), status(shown.outcome.status, shown.outcome.gap(), theme)];
    let pinned: Vec<String> = model
        .layout_title()
        .axes
        .iter()
        .filter(|own| own.pinned)
        .map(|own| format!("{} {}", own.axis.name(), own.text.trim()))
        .collect();
    if !pinned.is_empty() && model.appearance.size.0 >= WIDE {
        spans.push(Span::styled(format!(" with {}", pinned.join(", ")), theme.fg(Role::Accent)));
    }
    // The simulated figure comes first, the planner's own beside it.
    let simulated = model.simulation.of(shown);
    let promise = simulated.and_then(|simulated| simulated.promise);
    let objective = shown.outcome.objective.zip(shown.plan());
    let planned = objective.map(|(objective, (plan, _))| plan.measure.show(objective));
    let iteration = simulated.filter(|_| promise.is_some()).map(|simulated| simulated.timeline.iteration_s);
    let iteration = iteration.map(|seconds| Measure::IterationTime.show(seconds));
    if let Some(value) = iteration.or(planned) {
        spans.push(Span::styled(format!("  {value}"), theme.bold(Role::Text)));
    }
    if let Some(promise) = promise {
        spans.push(Span::styled(format!(" ({})", promise.objective()), theme.fg(Role::Text)));
    }
    spans.push(Span::styled(format!("  in {} ", short_seconds(shown.seconds)), theme.fg(Role::Muted)));
    spans
}

/// Status of an edited plan: violated rules, objective, comparison with the planner's.
fn edited(model: &Model) -> Vec<Span<'static>> {
    let theme = &model.appearance.theme;
    let Some((shown, (_, score))) = model.planning.shown.as_ref().and_then(|shown| Some((shown, shown.plan()?))) else {
        return vec![];
    };
    let mut spans = vec![
        Span::styled(format!("{}  ", shown.planner.name), theme.bold(Role::Text)),
        match score.violations.len() {
            0 => Span::styled("✓ keeps the limits", theme.bold(Role::Good)),
            1 => Span::styled("✗ breaks a limit", theme.bold(Role::Bad)),
            count => Span::styled(format!("✗ breaks {count} limits"), theme.bold(Role::Bad)),
        },
    ];
    if let Some(value) = shown.outcome.objective {
        spans.push(Span::styled(format!("  {} ", score.measure.show(value)), theme.bold(Role::Text)));
    }
    if let Some(against) = model.against() {
        spans.push(Span::styled(format!(" {against} "), theme.fg(Role::Text)));
    }
    spans
}

fn planning(model: &Model) -> Vec<Span<'static>> {
    let theme = &model.appearance.theme;
    let Some(running) = &model.planning.running else { return vec![] };
    let progress = running.search.progress();
    let (info, measure) = (model.session.current_planner().info(), model.planning.convergence.measure);
    let mut spans = vec![
        Span::styled(format!("{}  ", info.name), theme.bold(Role::Text)),
        Span::styled("… planning ", theme.bold(Role::Accent)),
        Span::styled("│", theme.fg(Role::Border)),
        Span::styled(bar::solid(progress.fraction, BAR), theme.fg(Role::Accent)),
        Span::styled("│ ", theme.fg(Role::Border)),
        Span::styled(format!("{:3.0}% ", progress.fraction * 100.0), plain()),
    ];
    if let Some(best) = progress.best {
        spans.push(Span::styled(format!(" best {} ", measure.show(best)), plain()));
    }
    if let Some(bound) = progress.bound {
        spans.push(Span::styled(format!(" bound {} ", measure.show(bound)), theme.fg(Role::Muted)));
    }
    let waited = model.appearance.now.saturating_duration_since(running.since).as_secs_f64();
    spans.push(Span::styled(format!(" {waited:.1} s "), theme.fg(Role::Muted)));
    spans
}

/// Short text of a time: `8 ms`, `1.2 s`.
fn short_seconds(seconds: f64) -> String {
    if seconds < 0.001 {
        "<1 ms".into()
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}
