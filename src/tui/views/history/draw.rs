//! Table of the tries, and what differs between two of them.
//!
//! ```text
//! History  4 tries, newest first                                        ( ) on the screen  ◆ marked
//!         changed             layout                     iteration     tokens/s      memory
//! ▌ ( ) 4 hardware b200       TP 4 PP 4 ×5 DP 4            6.08 s       172 k      117 GiB  ▇▇▇▇▇▇▇▇▇▇
//! ```

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use super::state::Try;
use crate::{
    plan::document::CostPart,
    tui::{
        changes::changed,
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            text::{clip, fit, fit_right, wrap},
        },
        theme::Role,
        widget::scrollbar::scrollbar,
    },
    units,
    workload::Workload,
};

/// Width of the number with its signs.
const NUMBER: usize = 8;
/// Widths of the figures.
const FIGURES: [usize; 3] = [11, 12, 11];
/// Width of the bar with a blank, if there is room.
const BAR: usize = 12;
/// Narrowest columns of the change and of the layout.
const WORDS: [usize; 2] = [20, 24];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let theme = &model.appearance.theme;
    let (muted, text) = (theme.fg(Role::Muted), theme.fg(Role::Text));
    let (state, workload) = (&model.views.history, &model.session.workload);
    let width = usize::from(area.width);
    let count = match state.tries.len() {
        0 => "every plan that stays on the screen is listed here".to_string(),
        1 => "1 try".to_string(),
        count => format!("{count} tries, newest first"),
    };
    let title = vec![Span::styled("History  ", theme.bold(Role::Text)), Span::styled(count, muted)];
    frame.render_widget(Line::from(title), rows(area, 0, 1));
    if state.tries.is_empty() {
        return;
    }
    // What changed comes first, then the figures, the layout and the bar, as far as there is room.
    let beside = |figures: usize| width.saturating_sub(NUMBER + FIGURES[..figures].iter().sum::<usize>());
    let figures = (1..=FIGURES.len()).rev().find(|count| beside(*count) >= WORDS[0]).unwrap_or(1);
    let left = beside(figures);
    let words: usize = WORDS.iter().sum();
    let bar = if left >= BAR + words { BAR } else { 0 };
    let layout = if left >= words { (left - bar) / 2 } else { 0 };
    let change = left - bar - layout;
    let speed = if model.session.workload.training().is_some() { "all tok/s" } else { "samples/s" };
    let mut head = format!("{:NUMBER$}{}{}", "", fit("changed", change), fit("layout", layout));
    for (name, width) in ["iteration", speed, "memory"].into_iter().zip(FIGURES).take(figures) {
        head += &fit_right(name, width);
    }
    frame.render_widget(Span::styled(clip(&head, width), muted), rows(area, 2, 1));
    let list = rows(area, 3, area.height.saturating_sub(3 + 3));
    let fastest = state.tries.iter().map(rate).fold(0.0, f64::max);
    let first = scrolled(state.cursor, list.height.into(), state.tries.len());
    for (y, (row, own)) in (list.y..list.bottom()).zip(state.tries.iter().rev().enumerate().skip(first)) {
        let line = Rect { y, height: 1, ..list };
        let at = row == state.cursor;
        let marked = if state.marked.contains(&own.number) { "◆" } else { " " };
        let number = format!("{:>3}", own.number);
        // The newest try is on the screen, if there is a plan.
        let shown = row == 0 && model.planning.shown.as_ref().is_some_and(|shown| shown.plan().is_some());
        let number = if shown { format!("({})", number.trim()) } else { format!("{number} ") };
        let before = own.parent.and_then(|parent| state.get(parent));
        let told = changes(workload, own, before, state.refused.as_deref());
        let told = if own.broken { format!("✗ {told}, breaks a limit") } else { told };
        let cells = [units::seconds(own.worth.iteration_s), units::number(rate(own)), units::bytes(own.memory_bytes)];
        let cells: String =
            cells.iter().zip(FIGURES).take(figures).map(|(cell, width)| fit_right(cell, width)).collect();
        let share = if fastest > 0.0 { rate(own) / fastest } else { 0.0 };
        let blocks = "▇".repeat(((bar.saturating_sub(2)) as f64 * share).round() as usize);
        let spans = vec![
            Span::styled(if at { "▌" } else { " " }, theme.fg(Role::Focus)),
            Span::styled(marked, theme.bold(Role::Accent)),
            Span::styled(fit_right(&number, NUMBER - 3) + " ", if shown { theme.bold(Role::Text) } else { muted }),
            Span::styled(fit(&told, change.saturating_sub(1)) + " ", text),
            Span::styled(fit(&own.layout, layout), muted),
            Span::styled(cells, text),
            Span::styled(if bar > 0 { format!("  {blocks}") } else { String::new() }, theme.fg(Role::Accent)),
        ];
        frame.render_widget(Line::from(spans), line);
        marks.hits.push((line, Hit::ListRow(row)));
        if at && model.focus == Focus::View {
            frame.buffer_mut().set_style(line, theme.selected());
        }
    }
    scrollbar(frame, list, theme, (first, list.height.into(), state.tries.len()));
    let told: Vec<String> = wrap(&difference(model), width).into_iter().take(2).collect();
    for (y, told) in (0..).zip(told) {
        frame.render_widget(Span::styled(told, text), rows(area, area.height.saturating_sub(2) + y, 1));
    }
}

/// Tokens a second, else samples.
fn rate(own: &Try) -> f64 {
    own.worth.samples_per_s * own.tokens.unwrap_or(1.0)
}

impl Try {
    /// Cost of a billion tokens, at the price of that time.
    fn cost(&self) -> Option<f64> {
        self.tokens?;
        CostPart::of(self.price, None, rate(self), self.devices.into())?.per_billion
    }
}

/// Changes of a try against the one before.
fn changes(workload: &Workload, own: &Try, before: Option<&Try>, refused: Option<&str>) -> String {
    let Some(before) = before else {
        let refused = refused.filter(|_| own.parent.is_none()).map_or(String::new(), |why| format!(", {why}"));
        return format!("start: {}{refused}", own.worth.planner);
    };
    if own.source != before.source {
        return own.name.clone();
    }
    let changed = changed(workload, &before.worth, &own.worth);
    match changed.is_empty() {
        false => changed.join(", "),
        true if own.layout == before.layout => "other settings".into(),
        true => "another layout".into(),
    }
}

/// Differences between the marked tries, else between the selected one and the one before it.
fn difference(model: &Model) -> String {
    let state = &model.views.history;
    let pair = match state.marked.as_slice() {
        [a, b] => state.get(*a).zip(state.get(*b)),
        _ => state.row(state.cursor).and_then(|own| Some((state.get(own.parent?)?, own))),
    };
    let Some((a, b)) = pair else {
        return "Enter goes back to a try, Space marks two to tell what differs".into();
    };
    let memory = units::more_bytes(b.memory_bytes - a.memory_bytes);
    let mut told = format!(
        "try {} against {}: {}; {}, {memory} on the fullest device",
        b.number,
        a.number,
        changes(&model.session.workload, b, Some(a), None),
        units::faster(rate(b) / rate(a)),
    );
    if let (Some(before), Some(now)) = (a.cost(), b.cost()) {
        told += &format!("; {} instead of {} per G tokens", units::money(now), units::money(before));
    }
    told
}
