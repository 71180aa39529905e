//! Traffic matrix: a row per sending stage, a square of two cells per receiving one, stronger for more traffic. Figures
//! stand beside the selected row. A matrix that does not fit shows the part around the selected stage.

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use crate::{
    family::{self, describe::StageTraffic},
    tui::{
        paint::{
            area::scrolled,
            phrases::whole,
            shades::{Activity, Shades},
            text::fit,
        },
        shown::ShownRun,
        simulated::Simulated,
        theme::{Role, Theme},
    },
};

/// Width of a square, and maximum width of the names at the left, cells.
const CELL: usize = 2;
const NAME: usize = 18;
/// Width of the figures of a row, cells.
const FIGURES: usize = 34;

/// Inputs of a matrix.
pub(in crate::tui) struct Matrix<'a> {
    pub shown: &'a ShownRun,
    /// Simulated iteration, for the load of links.
    pub simulated: Option<&'a Simulated>,
    pub theme: &'a Theme,
    pub shades: Shades,
    /// Stage that must be visible.
    pub selected: usize,
}

impl Matrix<'_> {
    /// Number of lines of the full matrix; 0 if there is no traffic.
    pub(in crate::tui) fn wanted(&self) -> usize {
        if self.flows().next().is_none() { 0 } else { self.stages() + 2 }
    }

    fn stages(&self) -> usize {
        self.shown.plan().map_or(0, |(plan, _)| plan.stages.len())
    }

    fn flows(&self) -> impl Iterator<Item = &StageTraffic> {
        self.shown.traffic.iter().filter(|flow| flow.amount.value() > 0.0)
    }

    /// Lines of the matrix for a width and height in cells.
    pub(in crate::tui) fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let count = self.stages();
        let columns = (width.saturating_sub(NAME + FIGURES.min(width / 3)) / CELL).min(count);
        let seen = height.saturating_sub(2).min(count);
        if columns == 0 || seen == 0 || self.wanted() == 0 {
            return vec![];
        }
        let selected = self.selected.min(count - 1);
        // Show the selected stage together with the next one, which it sends to.
        let right = scrolled((selected + 1).min(count - 1), columns, count);
        let top = scrolled(selected, seen, count);
        // State the visible part first, where it cannot be cut.
        let mut part = String::new();
        if seen < count {
            part += &format!(" {}–{} of {count}", top + 1, top + seen);
        }
        if columns < count {
            part += &format!(" to {}–{} of {count}", right + 1, right + columns);
        }
        // Gradients of activations return over the same links.
        let what = family::of(&self.shown.workload).flows_of();
        let fullest = self.flows().max_by(|a, b| a.amount.value().total_cmp(&b.amount.value()));
        let most = fullest.map_or(String::new(), |flow| {
            let name = |stage| self.shown.names.caption(stage);
            format!("; most from {} to {}: {}", name(flow.from), name(flow.to), self.figure(flow))
        });
        let mut lines = vec![title(&format!("who sends to whom{part}: {what}{most}"), width, self.theme)];
        let kind = if self.shown.names.noun == "device" { "acc" } else { "stage" };
        let corner = format!("  from / to {kind}");
        let mut head = vec![Span::styled(fit(&corner, NAME), self.theme.fg(Role::Muted))];
        // Two-digit numbers fill a square, so only every fifth stage is numbered.
        for to in right..right + columns {
            let told = count < 10 || (to + 1) % 5 == 0 || to == right;
            // CPUs have numbers of their own.
            let name = self.shown.names.short(to).replace("CPU ", "c");
            let number = if told { name.rsplit(' ').next().unwrap_or_default() } else { "" };
            head.push(Span::styled(fit(number, CELL), self.theme.fg(Role::Muted)));
        }
        lines.push(Line::from(head));
        let strongest = fullest.map_or(1.0, |flow| flow.amount.value()).max(f64::MIN_POSITIVE);
        for from in top..top + seen {
            let here = from == selected;
            let name = match self.shown.names.machines(from) {
                "" => self.shown.names.caption(from).to_string(),
                machines => format!(
                    "{} {}",
                    self.shown.names.caption(from),
                    machines.replace("machine", "m").replace("ms ", "m ")
                ),
            };
            let style = if here { self.theme.bold(Role::Text) } else { self.theme.fg(Role::Muted) };
            let mut spans = vec![
                Span::styled(if here { "▌ " } else { "  " }, self.theme.fg(Role::Focus)),
                Span::styled(fit(&name, NAME - 2), style),
            ];
            spans.extend((right..right + columns).map(|to| self.square(from, to, strongest)));
            if here {
                let room = width.saturating_sub(NAME + columns * CELL + 2);
                spans.push(Span::raw("  "));
                spans.push(Span::styled(whole(&self.figures(from), room), self.theme.fg(Role::Text)));
            }
            lines.push(Line::from(spans));
        }
        lines
    }

    /// Square of the traffic between two stages, relative to the largest.
    fn square(&self, from: usize, to: usize, strongest: f64) -> Span<'static> {
        let Some(flow) = self.flows().find(|flow| (flow.from, flow.to) == (from, to)) else {
            return Span::styled("· ", self.theme.fg(Role::Border));
        };
        let share = (flow.amount.value() / strongest).clamp(0.0, 1.0);
        let sign = ["░", "▒", "▓", "█"][((share * 4.0) as usize).min(3)];
        if self.shades.mixes() {
            let shade = self.shades.activity(Activity::Communication);
            let color = self.shades.color(self.shades.towards_ground(shade, 0.25 + 0.75 * share));
            return Span::styled("██", Style::new().fg(color));
        }
        Span::styled(sign.repeat(CELL), self.theme.fg(Role::Communication))
    }

    /// Amount of a flow, and load of its link.
    fn figure(&self, flow: &StageTraffic) -> String {
        let amount = flow.amount.text_beside(self.shown.limits.memory_limit());
        match self.busy(flow.from, flow.to) {
            Some(busy) => format!("{amount} {}", crate::units::percent_whole(busy)),
            None => amount,
        }
    }

    /// Flows that a stage sends, in figures, largest first.
    fn figures(&self, from: usize) -> String {
        let mut flows: Vec<&StageTraffic> = self.flows().filter(|flow| flow.from == from).collect();
        flows.sort_by(|a, b| b.amount.value().total_cmp(&a.amount.value()));
        let told = flows.iter().map(|flow| {
            let name = self.shown.names.short(flow.to);
            format!("to {name} {}", self.figure(flow))
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { "sends nothing".into() } else { told.join(", ") }
    }

    /// Fraction of the iteration during which the link between two stages carries activations.
    fn busy(&self, from: usize, to: usize) -> Option<f64> {
        let simulated = self.simulated?;
        let transfer =
            simulated.pipeline.transfers.iter().find(|transfer| (transfer.from, transfer.to) == (from, to))?;
        let whole = simulated.timeline.iteration_s;
        // Transfers simulated within passes give no load of the link.
        (whole > 0.0 && transfer.seconds > 0.0)
            .then(|| (transfer.seconds * f64::from(simulated.pipeline.microbatches) / whole).min(1.0))
    }
}

/// Rule with a title in it.
pub(in crate::tui) fn title(text: &str, width: usize, theme: &Theme) -> Line<'static> {
    let text = format!("─ {} ", whole(text, width.saturating_sub(4)));
    let rule = "─".repeat(width.saturating_sub(text.chars().count()));
    Line::from(vec![Span::styled(text, theme.bold(Role::Text)), Span::styled(rule, theme.fg(Role::Border))])
}
