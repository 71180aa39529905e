//! Results of drawing: places on the screen, and the layout of lists and trees.
//!
//! Drawing reads the [`Model`] and writes here; it changes nothing else. Only [`Model::laid_out`] stores the marks, for
//! the mouse and for the next keys.
//!
//! [`Model`]: super::model::Model
//! [`Model::laid_out`]: super::model::Model::laid_out

use ratatui::layout::Rect;

use super::{place::Hit, views::list::Laid, widget::tree::TreePane};

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
