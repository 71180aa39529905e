//! Who sends how much to whom: a row for each stage that sends, a column for each that receives, and how long the link
//! between them is busy. Where not all fit, those around the selected stage are shown.

use ratatui::text::{Line, Span};

use super::{clip, fit, fit_right, scrolled};
use crate::{
    family::{self, describe::Flow},
    tui::{
        played::Played,
        shown::Shown,
        theme::{Role, Theme},
    },
};

/// Cells of a column, and most of the names at the left.
const CELL: usize = 16;
const NAME: usize = 18;

/// What a matrix is drawn from.
pub(super) struct Matrix<'a> {
    pub shown: &'a Shown,
    /// The batch in the simulator, which tells how busy links are.
    pub played: Option<&'a Played>,
    pub theme: &'a Theme,
    /// The stage that must be seen.
    pub selected: usize,
}

impl Matrix<'_> {
    /// Lines that all of it takes; none where nobody sends anything.
    pub(super) fn wanted(&self) -> usize {
        if self.flows().next().is_none() { 0 } else { self.stages() + 2 }
    }

    fn stages(&self) -> usize {
        self.shown.plan().map_or(0, |(plan, _)| plan.stages.len())
    }

    fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.shown.traffic.iter().filter(|flow| flow.amount.value() > 0.0)
    }

    /// The matrix in so many cells and lines.
    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let count = self.stages();
        let columns = (width.saturating_sub(NAME) / CELL).min(count);
        let seen = height.saturating_sub(2).min(count);
        if columns == 0 || seen == 0 || self.wanted() == 0 {
            return vec![];
        }
        let selected = self.selected.min(count - 1);
        // The neighbour that the selected stage sends to is seen with it.
        let right = scrolled((selected + 1).min(count - 1), columns, count);
        let top = scrolled(selected, seen, count);
        let part = if columns < count || seen < count {
            format!(", {}–{} of {count}", top + 1, top + seen)
        } else {
            String::new()
        };
        // Gradients of activations go back on the same links.
        let what = family::of(&self.shown.workload).flows_of();
        let busy = if self.played.is_some() { ", link busy" } else { "" };
        let mut lines = vec![title(&format!("who sends to whom: {what}{busy}{part}"), width, self.theme)];
        let mut head = vec![Span::styled(fit("  from / to", NAME), self.theme.fg(Role::Muted))];
        for to in right..right + columns {
            head.push(Span::styled(
                fit_right(&clip(self.shown.names.caption(to), CELL - 1), CELL),
                self.theme.fg(Role::Muted),
            ));
        }
        lines.push(Line::from(head));
        for from in top..top + seen {
            let sign = if from == selected { "▌ " } else { "  " };
            let name = match self.shown.names.machines(from) {
                "" => self.shown.names.caption(from).to_string(),
                machines => format!(
                    "{} {}",
                    self.shown.names.caption(from),
                    machines.replace("machine", "m").replace("ms ", "m ")
                ),
            };
            let mut spans = vec![
                Span::styled(sign, self.theme.fg(Role::Focus)),
                Span::styled(fit(&name, NAME - 2), self.theme.fg(Role::Text)),
            ];
            spans.extend((right..right + columns).map(|to| self.cell(from, to)));
            lines.push(Line::from(spans));
        }
        lines
    }

    fn cell(&self, from: usize, to: usize) -> Span<'static> {
        let Some(flow) = self.flows().find(|flow| (flow.from, flow.to) == (from, to)) else {
            return Span::styled(fit_right("·", CELL), self.theme.fg(Role::Border));
        };
        let Some(busy) = self.busy(from, to) else {
            return Span::raw(fit_right(&flow.amount.text(), CELL));
        };
        let sign = ["░", "▒", "▓", "█"][((busy * 4.0) as usize).min(3)];
        let text = format!("{} {sign}{}", flow.amount.text(), fit_right(&crate::units::percent_whole(busy), 4));
        let role = if busy > 0.75 { Role::Warning } else { Role::Text };
        Span::styled(fit_right(&text, CELL), self.theme.fg(role))
    }

    /// Share of the batch during which the link between two stages carries activations.
    fn busy(&self, from: usize, to: usize) -> Option<f64> {
        let played = self.played?;
        let transfer = played.pipeline.transfers.iter().find(|transfer| (transfer.from, transfer.to) == (from, to))?;
        let whole = played.timeline.iteration_s;
        (whole > 0.0).then(|| (transfer.seconds * f64::from(played.pipeline.microbatches) / whole).min(1.0))
    }
}

/// A line with a title in it.
pub(super) fn title(text: &str, width: usize, theme: &Theme) -> Line<'static> {
    let text = format!("─ {} ", clip(text, width.saturating_sub(4)));
    let rule = "─".repeat(width.saturating_sub(text.chars().count()));
    Line::from(vec![Span::styled(text, theme.bold(Role::Text)), Span::styled(rule, theme.fg(Role::Border))])
}
