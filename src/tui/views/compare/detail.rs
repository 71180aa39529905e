//! Details of the selected row, below the table.

use ratatui::text::{Line, Span};

use super::{
    columns::per_sample,
    pins::limits_in_words,
    state::{Answer, Key, Row, Terms},
    table::refusal,
};
use crate::{
    family,
    planner::WEAK_GAP,
    study::why::{NamedPlan, why},
    tui::{
        model::Model,
        paint::{phrases::whole, text::wrap, words},
        theme::{Role, Theme},
    },
    units,
};

/// Lines on the selected row: status, limits, assumptions.
pub(super) fn detail(model: &Model, all: &[Row], cursor: usize, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![];
    let mut tell = |text: &str| lines.extend(wrap(text, width).into_iter().map(Line::from));
    match all.get(cursor) {
        Some(&Row::Plan(key)) => {
            let Some(compared) = model.compared(key) else { return vec![] };
            let mut first = vec![Span::styled(model.compared_name(key).to_string(), theme.bold(Role::Text))];
            if let Some(status) = compared.entry.status {
                first.push(Span::raw("  "));
                first.push(words::status(status, compared.entry.gap(), theme));
            }
            let limits = limits_in_words(&model.session.workload, &compared.shown.limits, 8);
            let by = match key {
                Key::Pin(_) => format!("  pin, by {}: {limits}", compared.entry.name),
                _ => format!("  {limits}"),
            };
            let used: usize = first.iter().map(Span::width).sum();
            first.push(Span::raw(format!("  {}", whole(by.trim_start(), width.saturating_sub(used + 2)))));
            let terms = match model.terms(key) {
                Terms::Current => None,
                Terms::Old => Some("○ outdated: limits, options, schedule or file have changed since"),
                Terms::OtherLimits => Some("≠ planned and simulated under other limits than those at the left"),
            };
            if let Some(text) = terms {
                tell(text);
            }
            if let Some(verdict) = holds_now(model, key) {
                tell(&verdict);
            }
            if let Some(simulated) = &compared.entry.simulated {
                match (per_sample(&compared.entry), compared.entry.prediction_error()) {
                    (Some(promised), Some(error)) => tell(&format!(
                        "· its objective is {promised} per sample, simulated as {} it takes {}",
                        simulated.schedule.name(),
                        // The prediction error relates the promise to the simulator; invert it.
                        promise_kept(&units::seconds(1.0 / simulated.samples_per_s), 1.0 / (1.0 + error) - 1.0),
                    )),
                    _ if simulated.schedule != compared.setup.schedule => {
                        tell(&format!("· simulated as {}", simulated.schedule.name()));
                    }
                    _ => {}
                }
            }
            if let Some(told) = why_they_differ(model, all, key) {
                tell(&told);
            }
            for remark in &compared.entry.remarks {
                // The star refers to a column that may be hidden here.
                let gap = match compared.entry.gap().filter(|gap| *gap > 0.0) {
                    Some(gap) if gap > WEAK_GAP => "its bound, which is too weak for a gap,".into(),
                    Some(gap) => format!("its gap of {}*", units::percent(gap)),
                    None => "its gap of 0*".into(),
                };
                tell(&format!("· {}", remark.replace("its gap*", &gap)));
            }
            lines.insert(0, Line::from(first));
        }
        Some(&Row::Failed(planner)) => {
            if let Some(Answer::Failed(why)) = model.views.compare.answer(planner) {
                tell(&format!("{}: {why}", model.session.planners[planner].info().name));
            }
        }
        Some(&Row::Refused(planner)) => {
            tell(&format!("{} cannot: {}", model.session.planners[planner].info().name, refusal(model, planner)));
        }
        Some(Row::Folded) => tell("Enter lists them with reasons"),
        Some(Row::Waiting(_)) => tell("rows appear as planners finish, those for this kind of workload first"),
        None => tell("planning …"),
    }
    lines
}

/// Simulated time per sample against the promised one, in words: `21.90 ms, 9.2% more`.
fn promise_kept(takes: &str, more: f64) -> String {
    match more {
        more if more.abs() < units::AS_FAST => format!("{takes}, as planned"),
        more if more > 0.0 => format!("{takes}, {} more", units::percent(more)),
        less => format!("{takes}, {} less", units::percent(-less)),
    }
}

/// Message on whether a pin of other limits also satisfies those in force.
fn holds_now(model: &Model, key: Key) -> Option<String> {
    let compared = model.compared(key).filter(|_| model.terms(key) == Terms::OtherLimits)?;
    let (plan, _) = compared.shown.plan()?;
    let first_cpu = |workload, limits| family::of(workload).first_cpu(limits);
    let now = first_cpu(&model.session.workload, &model.session.limits);
    let plan = plan.clone().with_cpus_behind(first_cpu(&compared.shown.workload, &compared.shown.limits), now);
    let score = family::check(&model.session.workload, &model.session.limits, &plan);
    Some(match score.violations.first() {
        None => format!("✓ also valid under the limits at the left: {}", score.measure.show(score.value)),
        Some(violation) => format!("✗ not valid under the limits at the left: {violation}"),
    })
}

/// Reason why the two marked plans differ, or else the selected one and the best.
fn why_they_differ(model: &Model, all: &[Row], selected: Key) -> Option<String> {
    let alone = |key: Key| model.compared(key).map(|compared| compared.entry.runs_alone());
    let best = || model.fastest(all).into_iter().find(|&key| alone(key) == alone(selected));
    let (first, second) = match model.views.compare.marked[..] {
        [first, second] => (first, second),
        [first] if first != selected => (first, selected),
        _ => (best()?, selected),
    };
    if first == second {
        return None;
    }
    let named = |key: Key| {
        model.compared(key).map(|compared| NamedPlan { name: model.compared_name(key), entry: &compared.entry })
    };
    why(named(first)?, named(second)?)
}
