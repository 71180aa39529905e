//! Pictures of a plan in Compare: its stages as a strip, its time as a bar relative to the best.
//!
//! ```text
//! ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄  ▄▄▄▄▄▄▄▄▄▄      8 % slower
//! ```

use ratatui::{style::Style, text::Span};

use super::{columns::Columns, compared::Compared};
use crate::{
    study::compare::ComparedPlan,
    tui::{
        paint::{shades::Shades, text::fit_right},
        theme::{Role, Theme},
    },
};

/// Minimum and maximum widths of the strip and of the bar without their gap, and width of the words after the bar,
/// cells.
const STRIP: (usize, usize) = (14, 30);
const BAR: (usize, usize) = (10, 24);
pub(super) const WORDS: usize = 13;
pub(super) const GAP: usize = 2;

/// Widths of the bars before idle time and memory, without and with their gap, cells.
const METER: usize = 6;
pub(super) const METERED: usize = METER + GAP;

/// Widths of strip and bar for a number of free cells.
pub(super) fn widths(free: usize) -> (usize, usize) {
    let least = (STRIP.0 + GAP, BAR.0 + GAP + WORDS);
    if free < least.1 {
        return (0, if free >= GAP + WORDS { GAP + WORDS } else { 0 });
    }
    if free < least.0 + least.1 {
        return (0, free.min(BAR.1 + GAP + WORDS));
    }
    let strip = (free / 2).clamp(least.0, STRIP.1 + GAP);
    (strip, (free - strip).min(BAR.1 + GAP + WORDS))
}

/// Strip of the stages in their hues, each as wide as its time. A stage too short for a cell has none.
pub(super) fn strip(compared: &Compared, width: usize, shades: &Shades) -> Vec<Span<'static>> {
    let mut spans = vec![Span::raw(" ".repeat(GAP))];
    let loads: Vec<f64> =
        compared.shown.score.iter().flat_map(|score| &score.stages).map(|stage| stage.load_s).collect();
    let whole: f64 = loads.iter().sum();
    let cells = width - GAP;
    if whole <= 0.0 {
        spans.push(Span::raw(" ".repeat(cells)));
        return spans;
    }
    let (mut until, mut drawn) = (0.0, 0);
    for (stage, load) in loads.iter().enumerate() {
        until += load;
        let end = (until / whole * cells as f64).round() as usize;
        let hue = Style::new().fg(shades.color(shades.stage(stage, &compared.shown.places)));
        spans.push(Span::styled("▄".repeat(end.saturating_sub(drawn)), hue));
        drawn = drawn.max(end);
    }
    spans.push(Span::raw(" ".repeat(cells.saturating_sub(drawn))));
    spans
}

/// Bar of the time relative to the slowest plan, and the difference from the best in words.
pub(super) fn against_best(entry: &ComparedPlan, columns: &Columns, best: bool, theme: &Theme) -> Vec<Span<'static>> {
    let width = columns.bar - GAP - WORDS;
    let (least, most) = columns.times(entry);
    let Some(time) = entry.simulated.as_ref().map(|simulated| simulated.iteration_s).filter(|_| most > 0.0) else {
        return vec![Span::raw(" ".repeat(columns.bar))];
    };
    let length = ((time / most * width as f64).round() as usize).max(1).min(width);
    let (role, words) = if best {
        (Role::Good, "best".to_string())
    } else if least.is_finite() {
        (Role::Idle, slower(time / least))
    } else {
        (Role::Idle, String::new())
    };
    let text = if best { theme.fg(Role::Good) } else { theme.fg(Role::Text) };
    vec![
        Span::raw(" ".repeat(GAP)),
        Span::styled("▄".repeat(length), theme.fg(role)),
        Span::raw(" ".repeat(width - length)),
        Span::styled(fit_right(&words, WORDS), text),
    ]
}

/// Bar of a fraction, before its figure.
pub(super) fn meter(share: f64, style: Style) -> Vec<Span<'static>> {
    let cells = ((share * METER as f64).round() as usize).min(METER);
    vec![Span::raw(" ".repeat(GAP)), Span::styled("▄".repeat(cells), style), Span::raw(" ".repeat(METER - cells))]
}

/// Difference in words: `8 % slower`, `2.31x slower`, `as fast`.
fn slower(times: f64) -> String {
    match times {
        times if times >= 2.0 => format!("{times:.2}x slower"),
        times if times >= 1.0005 => format!("{:.1} % slower", 100.0 * (times - 1.0)),
        times if times < 0.9995 => format!("{:.1} % faster", 100.0 * (1.0 - times)),
        _ => "as fast".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_take_no_more_than_is_free() {
        for free in 0..200 {
            let (strip, bar) = widths(free);
            assert!(strip + bar <= free, "{free}: {strip} {bar}");
            assert!(bar == 0 || bar >= GAP + WORDS, "{free}");
        }
        assert_eq!(slower(1.084), "8.4 % slower");
        assert_eq!((slower(2.306), slower(1.0)), ("2.31x slower".into(), "as fast".into()));
    }
}
