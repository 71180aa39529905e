//! Parts of an area, and of a list that does not fit into one.

use ratatui::layout::Rect;

/// Rows of an area from `from` on, of a height, clipped to it.
pub(in crate::tui) fn rows(area: Rect, from: u16, height: u16) -> Rect {
    let from = from.min(area.height);
    Rect { y: area.y + from, height: height.min(area.height - from), ..area }
}

/// First row to show of `count`, so that the selected one is among the `visible`.
pub(in crate::tui) fn scrolled(selected: usize, visible: usize, count: usize) -> usize {
    (selected + 1).saturating_sub(visible).min(count.saturating_sub(visible))
}
