//! Text that is cut, padded or wrapped to a width in cells.

use ratatui::style::Style;

/// Text cut to a width, with a sign if something is missing.
pub(in crate::tui) fn clip(text: &str, width: usize) -> String {
    use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
    if text.width() <= width {
        return text.to_string();
    }
    let mut clipped = String::new();
    let mut used = 0;
    for c in text.chars() {
        let next = c.width().unwrap_or(0);
        if used + next + 1 > width {
            break;
        }
        clipped.push(c);
        used += next;
    }
    if width > 0 {
        clipped.push('…');
    }
    clipped
}

/// Text cut or padded to a width.
pub(in crate::tui) fn fit(text: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthStr;
    let clipped = clip(text, width);
    let missing = width.saturating_sub(clipped.width());
    clipped + &" ".repeat(missing)
}

/// Right-aligned text, or cut to a width.
pub(in crate::tui) fn fit_right(text: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthStr;
    let clipped = clip(text, width);
    " ".repeat(width.saturating_sub(clipped.width())) + &clipped
}

/// Text wrapped at blanks into lines of at most `width` cells.
pub(in crate::tui) fn wrap(text: &str, width: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(&clip(word, width));
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(clip(word, width));
        }
    }
    lines
}

/// Empty style, for text that takes the style of its line.
pub(in crate::tui) fn plain() -> Style {
    Style::new()
}
/// Columns of a table that fit, from the left, given the cells before them. Others are left out as a whole.
pub(in crate::tui) fn fitting(
    columns: &[(&'static str, usize)],
    before: usize,
    width: u16,
) -> Vec<(&'static str, usize)> {
    let mut used = before;
    let fits = |(_, own): &&(&'static str, usize)| {
        used += own;
        used <= usize::from(width)
    };
    columns.iter().take_while(fits).copied().collect()
}
