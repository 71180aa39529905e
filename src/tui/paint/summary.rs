//! Summary of the plan in two lines: its quality and proof, and what limits it. A third compares it with the planner's
//! figures for simpler plans, if there are any.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::{
    plan::{Measure, Plan, Score, Violation},
    planner::{Outcome, Proof, Status},
    simulate::Schedule,
    study::prediction_gap::PredictionGap,
    tui::{
        model::Model,
        paint::{
            load_parts::{LoadPart, load_parts, words},
            phrases::{Phrase, flow, of_text, whole},
            text::clip,
            words::NEAR,
        },
        shown::ShownRun,
        simulated::Simulated,
        theme::{Role, Theme},
    },
    units,
};

/// Height of a screen with room for all facts, rows.
const TALL: u16 = 36;

/// Lines for an edited plan: comparison with the planner's, violated limits, and the last edit. `width` is in cells.
pub(in crate::tui) fn of_edited(
    model: &Model,
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
    width: u16,
) -> Vec<Line<'static>> {
    let theme = &model.appearance.theme;
    let against = model.against();
    let worth = shown.outcome.objective.map_or_else(|| "no value yet".into(), |value| plan.measure.show(value));
    let mut first = vec![Span::raw("edited: "), Span::styled(worth, theme.bold(Role::Text))];
    if let Some(against) = &against {
        first.push(Span::styled(format!(", {against}"), theme.fg(Role::Accent)));
    }
    let used: usize = first.iter().map(Span::width).sum();
    if used + shown.names.used.len() + 3 <= usize::from(width) {
        first.push(Span::raw(format!("   {}", shown.names.used)));
    }
    let mut lines = vec![Line::from(first)];
    lines.extend(figures(shown, width));
    let broken = |violation: &Violation, more: usize| {
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let text = format!("✗ {violation}");
        let text = clip(&text, usize::from(width).saturating_sub(more.len()));
        Line::styled(text + &more, theme.bold(Role::Bad))
    };
    let done = |what: &str| Line::styled(clip(what, usize::from(width)), theme.fg(Role::Muted));
    match score.violations.as_slice() {
        [] if !shown.facts.is_empty() => lines.extend(shown.facts.first().map(|what| done(what))),
        [] => {
            let simulated = model.simulation.of(shown).map(AsRef::as_ref);
            lines.push(limited_by(shown, plan, score, simulated, (theme, width)));
            lines.extend(model.planning.last_edit().map(done));
        }
        [only] => {
            lines.push(broken(only, 0));
            lines.extend(model.planning.last_edit().map(done));
        }
        [first, second, more @ ..] => {
            lines.push(broken(first, 0));
            lines.push(broken(second, more.len()));
        }
    }
    lines
}

/// Lines for a plan; `width` is in cells.
pub(in crate::tui) fn summary(
    model: &Model,
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
    width: u16,
) -> Vec<Line<'static>> {
    let theme = &model.appearance.theme;
    let value = shown.outcome.objective.unwrap_or(score.value);
    let (proof, role) = proof(&shown.outcome);
    // The simulated figure comes first; the proof is about the planner's own objective.
    let simulated_run = model.simulation.of(shown);
    let promise = simulated_run.and_then(|simulated| simulated.promise);
    let (figure, of_what, proof) = match promise {
        // In narrow places the header shows the objective's value.
        Some(promise) if width < 100 => {
            let known = shown.outcome.proof().is_some_and(|proof| proof.gap.is_some());
            let proof = if known { format!("objective {proof}") } else { "objective: not proven".into() };
            (promise.value(), " simulated", proof)
        }
        Some(promise) => (promise.value(), " simulated", format!("{}: {proof}", promise.objective())),
        None => (plan.measure.show(value), if width < 76 { "" } else { of_what(plan.measure) }, proof),
    };
    let mut first = vec![Span::styled(figure, theme.bold(Role::Text)), Span::raw(of_what), Span::raw("   ")];
    let room = usize::from(width).saturating_sub(first.iter().map(Span::width).sum());
    // The distance from the best matters more than half of the text on the searched plans.
    let short = proof.split(" among ").next().unwrap_or_default();
    let among = proof.split(", ").next().unwrap_or_default().width() + 3 <= room;
    let proof = if proof.width() <= room || among { whole(&proof, room) } else { whole(short, room) };
    first.push(Span::styled(proof, theme.fg(role)));
    // Devices come first, because the rate follows from the other figures.
    let mut more = vec![Span::raw(shown.names.used.clone())];
    if matches!(plan.measure, Measure::TimePerSample | Measure::MaxLoad) {
        let rate = simulated_run.map_or(1.0 / score.slowest_s, |simulated| simulated.timeline.samples_per_s);
        more.push(Span::raw(format!("{} samples/s", units::number(rate))));
    }
    // Figures that do not fit move whole to the line of remarks: half a number misleads.
    let mut used: usize = first.iter().map(Span::width).sum();
    let whole = used + more.iter().map(|span| span.width() + 3).sum::<usize>();
    let gap = if whole <= usize::from(width) { "   " } else { "  " };
    first[2] = Span::raw(gap);
    used -= 3 - gap.len();
    let mut beside = vec![];
    for span in more {
        if used + gap.len() + span.width() > usize::from(width) {
            beside.push(span.content.into_owned());
        } else {
            used += gap.len() + span.width();
            first.extend([Span::raw(gap), span]);
        }
    }
    if shown.facts.len() > 1 {
        let phrases = shown.facts[1..].iter().chain(&shown.facts[..1]);
        // Separate facts by one blank more than phrases of a fact.
        let phrases = phrases.flat_map(|fact| of_text(&format!("{fact}\u{a0}")));
        let phrases = phrases.map(|text| vec![Span::raw(text.replace('\u{a0}', " "))]).collect();
        let most = if model.appearance.size.1 >= TALL { 3 } else { 2 };
        return std::iter::once(Line::from(first)).chain(flow(phrases, " ", width.into(), most)).collect();
    }
    let simulated_run = simulated_run.map(AsRef::as_ref);
    let mut lines = vec![Line::from(first), limited_by(shown, plan, score, simulated_run, (theme, width))];
    beside.extend(simulated(model, shown, plan));
    beside.extend(proven_of(&shown.outcome));
    beside.push(speedups(&shown.outcome.statistics.counts));
    beside.retain(|text| !text.is_empty());
    if !beside.is_empty() {
        let phrases =
            of_text(&beside.join(" · ")).into_iter().map(|text| vec![Span::styled(text, theme.fg(Role::Muted))]);
        lines.extend(flow(phrases.collect(), " ", width.into(), 1));
    }
    lines
}

/// Figures of the plan's own family, if any.
fn figures(shown: &ShownRun, width: u16) -> Option<Line<'static>> {
    let figures = shown.facts.get(1..).filter(|figures| !figures.is_empty())?;
    let phrases = figures.iter().map(|figure| vec![Span::raw(figure.clone())]).collect();
    flow(phrases, "   ", width.into(), 1).into_iter().next()
}

/// Space in which the plan is proven optimal.
fn proven_of(outcome: &Outcome) -> Option<String> {
    outcome.proof().filter(Proof::is_closed).map(|proof| proof.to_string())
}

/// Simulated result against the planner's objective, with the causes of idle time: `simulated as 1F1B: 9.2% more, idle
/// 19.3% (uneven replicas 14.9%, transfers 1.6%)`. The value itself is in the line above. `None` for a plan of one sample, whose time
/// the planner counts in the same way.
fn simulated(model: &Model, shown: &ShownRun, plan: &Plan) -> Option<String> {
    let simulated = model.simulation.of(shown)?;
    let schedule = simulated.pipeline.schedule(simulated.schedule());
    let batch = !matches!(plan.measure, Measure::Latency { .. } | Measure::OperatorCost(_));
    if !batch || schedule == Schedule::SingleSample {
        return None;
    }
    let timeline = &simulated.timeline;
    let worth = simulated
        .promise
        .as_ref()
        .map_or_else(|| format!("{} samples/s", units::number(timeline.samples_per_s)), PredictionGap::against);
    let causes = simulated.losses.map(|losses| losses.idle_in_words(timeline.idle)).filter(|causes| !causes.is_empty());
    let causes = causes.map(|causes| format!(" ({causes})")).unwrap_or_default();
    let idle = units::percent(timeline.idle);
    Some(format!("simulated as {}: {worth}, idle {idle}{causes}", schedule.name()))
}

/// Speed-ups among a planner's statistics: `speed-up: data parallel 12.1x, over one device 30x`.
fn speedups(counts: &[(&'static str, f64)]) -> String {
    let words = counts.iter().filter(|(name, _)| name.contains("speedup")).map(|(name, value)| {
        let what: Vec<&str> = name.split('_').filter(|word| *word != "speedup").collect();
        format!("{} {}x", what.join(" "), units::number(*value))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { String::new() } else { format!("speed-up: {}", words.join(", ")) }
}

/// Subject of the objective, if its unit does not state it.
fn of_what(measure: Measure) -> &'static str {
    match measure {
        Measure::TimePerSample
        | Measure::IterationTime
        | Measure::PipelineTime
        | Measure::IterationCost
        | Measure::Speedup(_) => "",
        Measure::OperatorCost(_) => " for an iteration",
        Measure::MaxLoad => " on the busiest device",
        Measure::SeparateMaxima => " on the busiest forward and backward",
        Measure::Latency { .. } => " from input to result",
    }
}

/// Distance of a plan from the best, in a few words.
pub(in crate::tui) fn proof(outcome: &Outcome) -> (String, Role) {
    let stopped = if outcome.status == Status::Cancelled { "stopped " } else { "" };
    match outcome.proof() {
        Some(proof) if proof.is_closed() => (proof.short(), Role::Good),
        Some(proof) if proof.gap.is_some_and(|gap| gap <= NEAR) => (format!("{stopped}{}", proof.short()), Role::Good),
        Some(proof) if proof.gap.is_some() => (format!("{stopped}{}", proof.short()), Role::Warning),
        _ => ("no lower bound".into(), Role::Muted),
    }
}

/// Finish of the last stage, seconds after the sample's arrival.
fn latency(score: &Score) -> f64 {
    score.stages.iter().filter_map(|stage| stage.sample).map(|times| times.finish_s).fold(0.0, f64::max)
}

/// Parts of the slowest device's time, as simulated if that is the plan's objective.
fn limited_by(
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
    simulated: Option<&Simulated>,
    (theme, width): (&Theme, u16),
) -> Line<'static> {
    let paced = simulated.and_then(Simulated::limiting);
    let hides = simulated.is_some_and(|simulated| simulated.paced.is_some());
    let score = Simulated::loads(simulated, score);
    let parts = load_parts(score);
    let most = |of: fn(&crate::plan::StageScore) -> f64| {
        let stages = score.stages.iter().enumerate();
        stages.map(|(i, stage)| (i, of(stage))).reduce(|best, next| if next.1 > best.1 { next } else { best })
    };
    let bold = |text: String| Span::styled(text, theme.bold(Role::Warning));
    if plan.measure == Measure::SeparateMaxima
        && let (Some(forward), Some(backward)) = (most(|s| s.load_s - s.backward_s), most(|s| s.backward_s))
    {
        let part =
            |(stage, seconds): (usize, f64)| format!("{} ({})", shown.names.long(stage), units::seconds(seconds));
        return Line::from(vec![
            bold(format!("limited by {}", part(forward))),
            Span::raw(" in the forward pass and "),
            bold(part(backward)),
            Span::raw(" in the backward pass"),
        ]);
    }
    let Some(i) = score.bottleneck() else { return Line::default() };
    let stage = &score.stages[i];
    let name = shown.names.long(i);
    let mut spans = match stage.sample {
        // Devices may work at the same time, so the time that the whole plan waits for one counts.
        Some(times) => {
            let (waited, whole) = (units::seconds(times.critical_s), units::seconds(latency(score)));
            vec![bold(format!("limited by {name}")), Span::raw(format!(", critical for {waited} of {whole}"))]
        }
        // Operators share all devices: no stage waits for another.
        None if shown.operators.is_some() => vec![bold("time per iteration".into())],
        // The sums below count transfers that passes hide.
        None if paced.is_some_and(|paced| paced != i) => {
            let without = if width >= 100 { "without overlap limited by" } else { "busiest" };
            vec![bold(format!("{without} {name}"))]
        }
        None => match simulated.filter(|_| hides).map_or(1, Simulated::alike) {
            ..2 => vec![bold(format!("limited by {name}"))],
            alike => vec![bold(format!("limited by {alike} stages alike"))],
        },
    };
    spans.push(Span::raw(": "));
    let whole = parts.iter().map(|part| (part.of)(stage)).sum::<f64>().max(f64::MIN_POSITIVE);
    let mut phrases: Vec<Phrase> = vec![spans];
    for (place, LoadPart { name, role, of, .. }) in parts.iter().enumerate() {
        let share = of(stage) / whole;
        phrases.push(vec![
            Span::raw(format!("{}{name} ", if place == 0 { "" } else { ", " })),
            Span::styled(units::percent_whole(share), words(theme, *role)),
        ]);
    }
    if hides {
        phrases.push(vec![Span::raw("; passes hide communication")]);
    }
    flow(phrases, "", width.into(), 1).pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speedups_are_told_in_words() {
        let counts = [("states", 12.0), ("data_parallel_speedup", 12.5), ("speedup_over_one_device", 30.0)];
        assert_eq!(speedups(&counts), "speed-up: data parallel 12.5x, over one device 30x");
        assert_eq!(speedups(&counts[..1]), "");
    }
}
