//! Scrollbar of a list.

use ratatui::{Frame, layout::Rect};

use crate::tui::theme::{Role, Theme};

/// Draws, at the right edge of a list that does not fit, its visible part: first index, visible count, total.
pub(in crate::tui) fn scrollbar(
    frame: &mut Frame<'_>,
    list: Rect,
    theme: &Theme,
    (first, visible, count): (usize, usize, usize),
) {
    if visible >= count || visible == 0 || list.width == 0 || list.height == 0 {
        return;
    }
    let height = usize::from(list.height);
    let thumb = (height * visible / count).max(1);
    let top = (first * (height - thumb)).div_ceil((count - visible).max(1)).min(height - thumb);
    let x = list.right().min(frame.area().right().saturating_sub(1));
    for row in 0..height {
        let inside = (top..top + thumb).contains(&row);
        let position = (x, list.y + row as u16);
        if let Some(cell) = frame.buffer_mut().cell_mut(position) {
            let (sign, role) = if inside { ("█", Role::Muted) } else { ("│", Role::Border) };
            cell.set_symbol(sign).set_style(theme.fg(role));
        }
    }
}
