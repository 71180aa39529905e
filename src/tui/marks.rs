//! What drawing found out: where things lie, and how what scrolls or folds was laid out.
//!
//! Drawing changes nothing: it reads the [`Model`] and writes here. [`Model::laid_out`] alone keeps what is written, for the
//! mouse and for the next keys.

use ratatui::layout::Rect;

use super::{
    model::{Hit, Model},
    views::Laid,
    widget::tree::TreePane,
};

/// What one drawing of the screen found out.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// What can be clicked, and where; later ones lie on top.
    pub hits: Vec<(Rect, Hit)>,
    /// The tree of the view in front: lent by the model, since its widget changes it while it is drawn.
    pub tree: TreePane,
    /// Whether there is room for what would help, where the view tells that.
    pub help: Option<bool>,
    /// The first suggestion that is seen, and how many lie side by side, where they are listed.
    pub help_layout: Option<(usize, usize)>,
    /// How views laid out what is their own.
    pub views: Laid,
}

impl Model {
    /// Makes ready to be drawn on a screen of a size: gives what drawing is to write on.
    pub(super) fn lend_marks(&mut self, size: (u16, u16)) -> Marks {
        self.size = size;
        // A view may have taken rows of the left panel with it.
        self.panel_cursor = self.panel_cursor.min(self.panel_rows().len().saturating_sub(1));
        let tree = self.view.room().tree(self).map(std::mem::take).unwrap_or_default();
        Marks { tree, ..Marks::default() }
    }

    /// Keeps what drawing found out.
    pub(super) fn laid_out(&mut self, marks: Marks) {
        self.hits = marks.hits;
        if let Some(tree) = self.view.room().tree(self) {
            *tree = marks.tree;
        }
        self.would_help.drawn = marks.help.unwrap_or(self.would_help.drawn);
        self.would_help.layout = marks.help_layout.unwrap_or(self.would_help.layout);
        self.views.laid_out(marks.views);
    }
}
