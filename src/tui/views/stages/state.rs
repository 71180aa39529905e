//! State of Stages: the tree of stages.

use crate::tui::widget::tree::TreePane;

/// State of the view.
pub(in crate::tui) type State = TreePane;
