//! Form of the key `g`: three fields, the answer with its neighbours, and the values tried.
//!
//! ```text
//! least   ◂ devices ▸
//! for     ◂ time_per_sample ▸  <=
//! value   25ms_
//!
//! ✓ 52 devices: 24.21 ms/sample    with 51 it is 25.06 ms/sample
//!   proven: no plan reaches the goal with less
//!      47   27.08 ms/sample  ▇▇▇▇▇▇▇▇▇▇▇▇
//! ▸    52   24.21 ms/sample  ▇▇▇▇▇▇▇▇▇▇
//! ```

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
};

use crate::{
    study::seek::{Goal, SeekCertainty, SeekMethod, SeekProbe},
    tui::{
        ask_form::{AskForm, Field},
        frame::modal,
        model::Model,
        paint::{
            area::{rows, scrolled},
            text::{clip, fit_right, wrap},
        },
        studies::StudyKind,
        theme::{Role, Theme},
        widget::scrollbar::scrollbar,
    },
};

/// Width of the field names, cells.
const NAME: u16 = 9;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, form: &AskForm) {
    let theme = &model.appearance.theme;
    let inner = modal(frame, area, theme, "Ask", 84, area.height.saturating_sub(2).min(24));
    let kind = form.kinds[form.kind];
    field(frame, rows(inner, 0, 1), theme, "least", kind.label(), form.field == Field::Least);
    let figure = format!(
        "{} {}",
        form.figures[form.figure].replace('_', " "),
        if form.sign() == "<=" { "at most" } else { "at least" }
    );
    field(frame, rows(inner, 1, 1), theme, "for", &figure, form.field == Field::Figure);
    let line = rows(inner, 2, 1);
    let style = if form.field == Field::Value { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
    frame.render_widget(
        Line::from(vec![
            Span::styled(format!("{:<1$}", "value", NAME as usize), theme.fg(Role::Muted)),
            Span::styled(clip(form.value.value(), (inner.width - NAME.min(inner.width)) as usize), style),
        ]),
        line,
    );
    if form.field == Field::Value {
        let x = line.x + NAME + form.value.visual_cursor() as u16;
        frame.set_cursor_position(Position::new(x.min(line.right().saturating_sub(1)), line.y));
    }
    let width = inner.width as usize;
    let mut told: Vec<(String, Role)> = vec![];
    if let Some(error) = &form.error {
        told.extend(wrap(&format!("✗ {error}"), width).into_iter().map(|text| (text, Role::Bad)));
    } else if let Some(sought) = &form.sought {
        told.extend(
            answer(form, sought)
                .into_iter()
                .flat_map(|(text, role)| wrap(&text, width).into_iter().map(move |text| (text, role))),
        );
    } else if model.planning.studying(StudyKind::Ask) {
        told.push((format!("… planning: {} so far", crate::units::counted(form.curve.len(), "re-plan")), Role::Accent));
    } else {
        told.push(("Enter starts; every value tried is a re-plan".into(), Role::Muted));
        let call = format!("as a command: plantui seek … {}", form.call());
        told.extend(wrap(&call, width).into_iter().map(|text| (text, Role::Muted)));
    }
    let most = usize::from(inner.height.saturating_sub(4));
    for (at, (text, role)) in told.iter().take(most).enumerate() {
        frame.render_widget(Span::styled(text.clone(), theme.fg(*role)), rows(inner, 4 + at as u16, 1));
    }
    let from = 5 + told.len() as u16;
    if let Some(question) = &form.question {
        let area = rows(inner, from, inner.height.saturating_sub(from));
        curve(frame, area, theme, form, (&question.goal, model.session.limits.memory_limit()));
    }
}

/// Field that is chosen with the arrow keys.
fn field(frame: &mut Frame<'_>, area: Rect, theme: &Theme, name: &str, value: &str, focused: bool) {
    let style = if focused { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
    let arrows = theme.fg(if focused { Role::Focus } else { Role::Border });
    let line = vec![
        Span::styled(format!("{name:<0$}", NAME as usize), theme.fg(Role::Muted)),
        Span::styled("◂ ", arrows),
        Span::styled(value.to_string(), style),
        Span::styled(" ▸", arrows),
    ];
    frame.render_widget(Line::from(line), area);
}

/// Answer, the value below it, and its certainty.
fn answer(form: &AskForm, sought: &crate::study::seek::SeekResult) -> Vec<(String, Role)> {
    let goal = &sought.question.goal;
    let shown = |step: &SeekProbe| step.figure.map_or_else(|| "no plan".into(), |figure| goal.show(figure));
    let mut lines = vec![];
    match (sought.answer, sought.nearest()) {
        (Some(value), Some(step)) => {
            let below = sought.below.and_then(|below| form.curve.iter().find(|step| step.value == below));
            let below = below.map_or_else(String::new, |step| {
                let near = (value / step.value - 1.0).abs() < 1e-6;
                let with = if near { "any less".into() } else { sought.describe_value(step.value) };
                format!("; with {with}: {}", shown(step))
            });
            lines.push((format!("✓ {}: {}{below}", sought.describe_value(value), shown(step)), Role::Good));
            lines.push(("Enter sets it".to_string(), Role::Muted));
        }
        (_, Some(step)) => {
            let with = sought.describe_value(step.value);
            lines.push((format!("✗ out of reach: the nearest is {} with {with}", shown(step)), Role::Warning));
        }
        (_, None) => {
            let why = sought.curve.iter().rev().find(|step| !step.why.is_empty()).map(|step| step.why.clone());
            lines.push((format!("✗ no plan with any value: {}", why.unwrap_or_default()), Role::Bad));
        }
    }
    lines.push((
        match (&sought.certainty, sought.answer) {
            (SeekCertainty::Proven | SeekCertainty::EveryValueTested, Some(_)) if sought.below.is_none() => {
                "the smallest value reaches the goal".into()
            }
            (SeekCertainty::Proven, _) => sought.proof(),
            (SeekCertainty::EveryValueTested, _) => "every smaller value was tried, and its plan fails".into(),
            (SeekCertainty::Open(why), _) => format!("not proven: {why}"),
        },
        Role::Text,
    ));
    if let SeekMethod::Sweep(why) = &sought.method {
        lines.push((format!("tried from the least value upwards: {why}"), Role::Muted));
    }
    lines
}

/// Values tried, ascending, each with a bar proportional to its figure.
fn curve(frame: &mut Frame<'_>, area: Rect, theme: &Theme, form: &AskForm, (goal, limit): (&Goal, f64)) {
    let visible = area.height as usize;
    let answer = form.sought.as_ref().and_then(|sought| sought.answer);
    let at =
        form.curve.iter().position(|step| Some(step.value) == answer).unwrap_or(form.curve.len().saturating_sub(1));
    // Centre the answer, so that its neighbours are visible.
    let first = scrolled(at + visible / 2, visible, form.curve.len().max(visible))
        .min(form.curve.len().saturating_sub(visible));
    let largest = form.curve.iter().filter_map(|step| step.figure).fold(goal.value, f64::max);
    let kind = form.kinds[form.kind];
    let room = (area.width as usize).saturating_sub(40).min(40);
    for (row, step) in form.curve.iter().skip(first).take(visible).enumerate() {
        let value = if kind == crate::cluster::LimitKind::Memory && step.value.is_finite() {
            crate::units::bytes_like(step.value, limit)
        } else if step.value.is_infinite() {
            "unlimited".into()
        } else {
            kind.format(step.value)
        };
        let role = if step.reaches_goal { Role::Good } else { Role::Muted };
        let text = step.figure.map_or_else(|| "no plan".into(), |figure| goal.show(figure));
        let length = step.figure.map_or(0, |figure| (figure / largest * room as f64).round() as usize);
        let sign = if Some(step.value) == answer { "▸ " } else { "  " };
        let line = vec![
            Span::styled(sign, theme.bold(Role::Focus)),
            Span::styled(fit_right(&value, 12), theme.fg(Role::Text)),
            Span::styled(fit_right(&text, 20), theme.fg(role)),
            Span::styled("  ", theme.fg(role)),
            Span::styled("▄".repeat(length.min(room)), theme.fg(role)),
        ];
        frame.render_widget(Line::from(line), rows(area, row as u16, 1));
    }
    scrollbar(frame, area, theme, (first, visible, form.curve.len()));
}
