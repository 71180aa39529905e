//! Results of drawing: places on the screen, and the layout of lists and trees.
//!
//! Drawing reads the [`Model`] and writes here; it changes nothing else. Only [`Model::laid_out`] stores the marks, for
//! the mouse and for the next keys.

use ratatui::layout::Rect;

use super::{
    model::{Hit, Model},
    views::Laid,
    widget::tree::TreePane,
};

/// Results of one drawing.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Clickable areas; later ones lie on top.
    pub hits: Vec<(Rect, Hit)>,
    /// Tree of the shown view, lent by the model because its widget changes it while drawing.
    pub tree: TreePane,
    /// True if the suggestions fit; `None` if the view does not show them.
    pub help: Option<bool>,
    /// First visible suggestion, and number of suggestions side by side, if they are listed.
    pub help_layout: Option<(usize, usize)>,
    /// Layouts of the views.
    pub views: Laid,
}

impl Model {
    /// Prepares the model for drawing at a size. Returns the marks to fill.
    pub(super) fn lend_marks(&mut self, size: (u16, u16)) -> Marks {
        self.appearance.size = size;
        // A change of the view may have removed rows of the left panel.
        self.panel.cursor = self.panel.cursor.min(self.panel_rows().len().saturating_sub(1));
        let tree = self.view.room().tree(self).map(std::mem::take).unwrap_or_default();
        Marks { tree, ..Marks::default() }
    }

    /// Stores the results of drawing.
    pub(super) fn laid_out(&mut self, marks: Marks) {
        self.appearance.hits = marks.hits;
        if let Some(tree) = self.view.room().tree(self) {
            *tree = marks.tree;
        }
        self.planning.would_help.drawn = marks.help.unwrap_or(self.planning.would_help.drawn);
        self.planning.would_help.layout = marks.help_layout.unwrap_or(self.planning.would_help.layout);
        self.views.laid_out(marks.views);
    }
}
