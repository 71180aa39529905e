//! Horizontal bars with a resolution of an eighth of a cell, whole or in parts.
//!
//! Parts are told apart by their fill as well as by their colour: `█ ▓ ▒ ░`.

use ratatui::{style::Style, text::Span};

/// Left parts of a cell, by eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar for a share from 0 to 1 of `width` cells, filled up with blanks to that width. What is not nothing shows as
/// an eighth at least.
pub(crate) fn solid(share: f64, width: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let mut eighths = (share * (width * 8) as f64).round() as usize;
    if share > 0.0 && width > 0 {
        eighths = eighths.max(1);
    }
    let mut text = "█".repeat(eighths / 8);
    text.push_str(EIGHTHS[eighths % 8]);
    let cells = eighths.div_ceil(8);
    text.push_str(&" ".repeat(width - cells.min(width)));
    text
}

/// A part of a bar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Its share of the whole width.
    pub share: f64,
    /// What it is filled with.
    pub fill: &'static str,
    /// Its colour.
    pub style: Style,
}

/// Parts side by side over `width` cells; borders are rounded to cells from the left, so parts never drift.
pub(crate) fn stacked(parts: &[Part], width: usize) -> Vec<Span<'static>> {
    let mut spans = vec![];
    let (mut sum, mut drawn) = (0.0, 0);
    for part in parts {
        sum += part.share.max(0.0);
        let end = ((sum * width as f64).round() as usize).clamp(drawn, width);
        if end > drawn {
            spans.push(Span::styled(part.fill.repeat(end - drawn), part.style));
        }
        drawn = end;
    }
    spans.push(Span::raw(" ".repeat(width - drawn)));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighths_count() {
        assert_eq!(solid(0.0, 4), "    ");
        assert_eq!(solid(1.0, 4), "████");
        assert_eq!(solid(0.5, 3), "█▌ ");
        assert_eq!(solid(1e-9, 3), "▏  ");
        assert_eq!(solid(7.0, 2), "██");
        assert_eq!(solid(f64::NAN, 2), "  ");
        assert_eq!(solid(0.5, 0), "");
    }

    #[test]
    fn parts_fill_exactly_the_width() {
        let part = |share, fill| Part { share, fill, style: Style::new() };
        for width in 0..40 {
            let spans = stacked(&[part(0.335, "█"), part(0.335, "▓"), part(0.33, "▒")], width);
            let text: String = spans.iter().map(|s| s.content.as_ref()).collect();
            assert_eq!(text.chars().count(), width);
            assert!(!text.contains(' '), "{text:?}");
        }
    }
}
