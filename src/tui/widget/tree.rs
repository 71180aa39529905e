//! Tree of rows, cached until its contents change.
//!
//! Building the items of a large tree takes milliseconds, while drawing is cheap: [`TreePane::prepare`] builds only for
//! a new key. Rows are addressed by paths of indices, so a selection survives a new plan of the same shape.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::Line,
};
use tui_tree_widget::{Tree, TreeItem, TreeState};

use super::scrollbar::scrollbar;
use crate::tui::{action::Action, theme::Theme};

/// Row with its children.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    /// Text to search.
    pub label: String,
    /// Line to draw.
    pub line: Line<'static>,
    /// Child rows.
    pub children: Vec<Branch>,
}

/// Cache key of the rows: a counter of changes, and the width.
pub(crate) type Key = (u64, u16);

/// State and built rows of one tree.
#[derive(Debug, Default)]
pub(crate) struct TreePane {
    state: TreeState<u32>,
    items: Vec<TreeItem<'static, u32>>,
    labels: Vec<(Vec<u32>, String)>,
    key: Option<Key>,
    /// True if there was only one top row, which is unfolded once because its children are the whole content.
    alone: bool,
    /// Search text.
    pub needle: String,
}

impl TreePane {
    /// Cells before the text of a row at a depth: sign of selection, indent, sign of folding.
    pub(crate) fn indent(depth: usize) -> usize {
        3 + 2 * depth
    }

    /// Builds the rows, if the key is new.
    pub(crate) fn prepare(&mut self, key: Key, build: impl FnOnce() -> Vec<Branch>) {
        if self.key == Some(key) {
            return;
        }
        self.key = Some(key);
        self.labels.clear();
        let branches = build();
        let alone = branches.len() == 1;
        self.items = items(branches, &mut vec![], &mut self.labels);
        if alone && !self.alone {
            self.state.open(vec![0]);
        }
        self.alone = alone;
        if !self.labels.iter().any(|(path, _)| path == self.state.selected()) {
            let first = self.labels.first().map_or_else(Vec::new, |(path, _)| path.clone());
            self.state.select(first);
        }
    }

    /// Number of rows to draw, without folded ones.
    pub(crate) fn rows(&self) -> usize {
        self.state.flatten(&self.items).len()
    }

    /// Draws the visible rows. If they are not all, the last column is a scrollbar.
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        // Only duplicate ids are refused, and ids are indices.
        if let Ok(tree) = Tree::new(&self.items) {
            let tree = tree
                .highlight_style(theme.selected())
                .highlight_symbol("▌")
                .node_closed_symbol("▸ ")
                .node_open_symbol("▾ ")
                .node_no_children_symbol("  ");
            frame.render_stateful_widget(tree, area, &mut self.state);
        }
        let (rows, visible) = (self.rows(), usize::from(area.height));
        let list = Rect { width: area.width.saturating_sub(1), ..area };
        scrollbar(frame, list, theme, (self.state.get_offset(), visible, rows));
    }

    /// Path of the selected row.
    pub(crate) fn selected(&self) -> &[u32] {
        self.state.selected()
    }

    /// Selects a row, and unfolds its ancestors.
    pub(crate) fn select(&mut self, path: &[u32]) {
        for end in 1..path.len() {
            self.state.open(path[..end].to_vec());
        }
        self.state.select(path.to_vec());
        self.state.scroll_selected_into_view();
    }

    /// Selects the clicked row. A second click folds or unfolds it.
    pub(crate) fn click(&mut self, position: Position) {
        self.state.click_at(position);
    }

    /// Scrolls without moving the selection.
    pub(crate) fn scroll(&mut self, down: bool) {
        if down {
            self.state.scroll_down(3)
        } else {
            self.state.scroll_up(3)
        };
    }

    /// Performs an action of lists or trees. Returns false for other actions.
    pub(crate) fn act(&mut self, action: Action) -> bool {
        match action {
            Action::Up => drop(self.state.key_up()),
            Action::Down => drop(self.state.key_down()),
            Action::PageUp => drop(self.state.select_relative(|at| at.map_or(0, |at| at.saturating_sub(10)))),
            Action::PageDown => drop(self.state.select_relative(|at| at.map_or(0, |at| at + 10))),
            Action::First => drop(self.state.select_first()),
            Action::Last => drop(self.state.select_last()),
            Action::Unfold => drop(self.state.key_right()),
            Action::Fold => {
                if self.selected().len() > 1 || self.state.opened().contains(self.selected()) {
                    self.state.key_left();
                }
            }
            Action::Toggle => drop(self.state.toggle_selected()),
            Action::UnfoldAll => {
                for (path, _) in &self.labels {
                    self.state.open(path.clone());
                }
            }
            Action::FoldAll => {
                let top = self.selected().first().map_or_else(Vec::new, |&top| vec![top]);
                self.state.close_all();
                self.state.select(top);
            }
            Action::FindNext => drop(self.find(true, false)),
            Action::FindPrevious => drop(self.find(false, false)),
            _ => return false,
        }
        true
    }

    /// Selects the next or previous row that contains the needle, cyclically; `here` includes the selected row.
    pub(crate) fn find(&mut self, forwards: bool, here: bool) -> bool {
        let needle = self.needle.to_lowercase();
        let n = self.labels.len();
        if needle.is_empty() || n == 0 {
            return false;
        }
        let at = self.labels.iter().position(|(path, _)| path == self.state.selected()).unwrap_or(0);
        let steps = if here { 0..n } else { 1..n + 1 };
        let row = steps
            .map(|step| if forwards { (at + step) % n } else { (at + n - step % n) % n })
            .find(|&row| self.labels[row].1.to_lowercase().contains(&needle));
        if let Some(row) = row {
            let path = self.labels[row].0.clone();
            self.select(&path);
        }
        row.is_some()
    }
}

fn items(
    branches: Vec<Branch>,
    path: &mut Vec<u32>,
    labels: &mut Vec<(Vec<u32>, String)>,
) -> Vec<TreeItem<'static, u32>> {
    let mut built = Vec::with_capacity(branches.len());
    for (place, branch) in (0u32..).zip(branches) {
        path.push(place);
        labels.push((path.clone(), branch.label));
        let children = items(branch.children, path, labels);
        path.pop();
        // Ids are indices, so `new` never fails.
        built.extend(TreeItem::new(place, branch.line, children));
    }
    built
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(label: &str, children: Vec<Branch>) -> Branch {
        Branch { label: label.into(), line: Line::raw(label.to_string()), children }
    }

    #[test]
    fn finding_goes_round_and_opens_what_it_is_in() {
        let mut pane = TreePane::default();
        let rows = || vec![branch("a", vec![branch("needle 1", vec![])]), branch("Needle 2", vec![])];
        pane.prepare((0, 10), rows);
        assert_eq!(pane.selected(), [0]);
        pane.needle = "needle".into();
        assert!(pane.find(true, false));
        assert_eq!(pane.selected(), [0, 0]);
        assert!(pane.find(true, false));
        assert_eq!(pane.selected(), [1]);
        assert!(pane.find(true, false));
        assert_eq!(pane.selected(), [0, 0]);
        assert!(pane.find(false, false));
        assert_eq!(pane.selected(), [1]);
        pane.needle = "hay".into();
        assert!(!pane.find(true, true));
    }

    #[test]
    fn rows_are_built_once_a_key_and_a_lost_selection_goes_to_the_top() {
        let mut pane = TreePane::default();
        pane.prepare((0, 10), || vec![branch("a", vec![]), branch("b", vec![])]);
        pane.select(&[1]);
        pane.prepare((0, 10), || panic!("built twice"));
        pane.prepare((1, 10), || vec![branch("a", vec![])]);
        assert_eq!(pane.selected(), [0]);
    }
}
