//! Selection in lists.

use crate::tui::action::Action;

/// Index in a list of `count` rows after an action of lists.
pub(in crate::tui) fn moved(at: usize, action: Action, count: usize) -> usize {
    let last = count.saturating_sub(1);
    match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => at + 1,
        Action::PageUp => at.saturating_sub(10),
        Action::PageDown => at + 10,
        Action::First => 0,
        Action::Last => last,
        _ => at,
    }
    .min(last)
}

/// Adds a value to a list, or removes it if present.
pub(in crate::tui) fn toggle(list: &mut Vec<usize>, value: usize) {
    match list.iter().position(|&v| v == value) {
        Some(at) => drop(list.remove(at)),
        None => list.push(value),
    }
}

/// Marks a value, or removes its mark. Of more than two marks the oldest is removed.
pub(in crate::tui) fn mark(marked: &mut Vec<usize>, value: usize) {
    toggle(marked, value);
    if marked.len() > 2 {
        marked.remove(0);
    }
}
