//! Stages of the plan under Compare's cursor, below the table, unless two plans are marked.
//!
//! ```text
//! stage  DP × TP   nodes  time                                   memory
//! █ 1      4 × 2       5  ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄      19.16 ms  7.78 GiB
//! ```
//! `O(stages)`.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::cells::StageCells;
use crate::tui::{
    model::Model,
    paint::{
        area::rows,
        shades::Shades,
        text::{fit, fit_right},
    },
    shown::ShownRun,
    theme::Role,
    widget::scrollbar::scrollbar,
};

/// Minimum height, rows.
const LEAST: u16 = 5;
/// Widths of the columns, and maximum length of the bar, cells.
const NAME: usize = 14;
const DEGREES: usize = 10;
const NODES: usize = 9;
const VALUE: usize = 12;
const LONGEST: usize = 40;

/// Draws the stages that fit.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &ShownRun) {
    let Some((_, score)) = shown.plan() else { return };
    let fixed = NAME + DEGREES + NODES + 2 * VALUE + 3;
    if area.height < LEAST || usize::from(area.width) < fixed || score.stages.is_empty() {
        return;
    }
    let theme = &model.appearance.theme;
    let shades = Shades::new(theme, model.appearance.depth);
    let bar = (usize::from(area.width) - fixed).min(LONGEST);
    let count = score.stages.len();
    let degrees = if shown.names.degrees { shown.names.degrees_head() } else { "" };
    let title = [
        fit(&format!("  {}", shown.names.noun), NAME),
        fit_right(degrees, DEGREES),
        fit_right(shown.names.nodes_head(NODES), NODES),
        format!("  {}", fit(if bar >= 24 { "compute and transfers" } else { "time" }, bar)),
        fit_right("", VALUE),
        fit_right("memory", VALUE),
    ];
    frame.render_widget(Span::styled(title.concat(), theme.fg(Role::Muted)), rows(area, 0, 1));
    let list = rows(area, 1, area.height);
    let slowest = score.stages.iter().map(|stage| stage.load_s).fold(f64::MIN_POSITIVE, f64::max);
    let limiting = score.bottleneck().filter(|_| count > 1);
    for (y, (i, scored)) in (list.y..list.bottom()).zip(score.stages.iter().enumerate()) {
        let Some(words) = StageCells::of(shown, i) else { break };
        let hue = Style::new().fg(shades.color(shades.stage(i, &shown.places)));
        let cells = ((scored.load_s / slowest * bar as f64).round() as usize).min(bar);
        let degrees = if shown.names.degrees { words.degrees.as_str() } else { "" };
        let role = if limiting == Some(i) { Role::Warning } else { Role::Text };
        let text = |text: String| Span::styled(text, theme.fg(Role::Text));
        let line = Line::from(vec![
            Span::styled("█ ", hue),
            text(fit(&words.name, NAME - 2)),
            text(fit_right(degrees, DEGREES)),
            text(fit_right(&words.nodes, NODES)),
            Span::styled(format!("  {}", fit(&"▄".repeat(cells), bar)), hue),
            Span::styled(fit_right(&words.time, VALUE), theme.fg(role)),
            text(fit_right(&words.memory, VALUE)),
        ]);
        frame.render_widget(line, Rect { y, height: 1, ..list });
    }
    let narrower = Rect { width: list.width - 1, ..list };
    scrollbar(frame, narrower, theme, (0, usize::from(list.height), count));
}
