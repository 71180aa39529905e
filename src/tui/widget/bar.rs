//! Horizontal bars with a resolution of an eighth of a cell, whole or in parts.
//!
//! Parts differ in their fill as well as in their colour: `█ ▓ ▒ ░`.

use ratatui::{style::Style, text::Span};

/// Left blocks, by eighths of a cell.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Bar for a fraction of `width` cells, padded with blanks to that width. A positive fraction shows at least an eighth
/// of a cell.
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

/// Part of a bar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Fraction of the whole width.
    pub share: f64,
    /// Fill sign.
    pub fill: &'static str,
    /// Colour.
    pub style: Style,
}

/// Bar of parts over `width` cells. Borders are cumulative sums rounded to cells, so that errors do not add up.
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
