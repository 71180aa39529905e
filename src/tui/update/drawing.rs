//! Size of the screen, preparation of the state for drawing, and storage of the results.

use crate::tui::{
    marks::Marks,
    model::{Focus, Model, SMALLEST},
};

impl Model {
    /// Sets the size of the screen. At the first sufficient size the left panel, if visible, gets the focus, because
    /// users change limits first.
    pub(in crate::tui) fn start_at(&mut self, size: (u16, u16)) {
        self.appearance.size = size;
        if !self.appearance.seen && size.0 >= SMALLEST.0 && size.1 >= SMALLEST.1 {
            self.appearance.seen = true;
            if self.panel_visible() {
                self.focus = Focus::Panel;
            }
        }
    }

    /// Prepares the model for drawing at a size. Returns the marks to fill.
    pub(in crate::tui) fn lend_marks(&mut self, size: (u16, u16)) -> Marks {
        self.appearance.size = size;
        // A change of the view may have removed rows of the left panel.
        self.panel.cursor = self.panel.cursor.min(self.panel_rows().len().saturating_sub(1));
        let tree = self.view.behaviour().tree(self).map(std::mem::take).unwrap_or_default();
        Marks { tree, ..Marks::default() }
    }

    /// Stores the results of drawing.
    pub(in crate::tui) fn laid_out(&mut self, marks: Marks) {
        self.appearance.hits = marks.hits;
        if let Some(tree) = self.view.behaviour().tree(self) {
            *tree = marks.tree;
        }
        self.planning.would_help.drawn = marks.help.unwrap_or(self.planning.would_help.drawn);
        self.planning.would_help.layout = marks.help_layout.unwrap_or(self.planning.would_help.layout);
        self.views.laid_out(marks.views);
    }
}
