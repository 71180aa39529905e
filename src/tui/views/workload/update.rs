//! Actions of Workload.

use super::state::Section;
use crate::tui::{action::Action, model::Model, widget::list::moved};

/// Upper bound on the number of lines of any text.
const TEXT_LINES: usize = 1 << 20;

impl Model {
    /// Number of rows of the section, if it is a plain list.
    pub(crate) fn section_rows(&self) -> usize {
        match self.views.workload.section {
            Section::Nodes => 0,
            Section::Edges => self.session.workload.dag.edges().len(),
            // Texts scroll by line. Their length depends on the width, and drawing stops at the end.
            Section::Findings | Section::About => TEXT_LINES,
        }
    }

    /// Performs an action of the view.
    pub(super) fn act_in_workload(&mut self, action: Action) {
        let rows = self.section_rows();
        let state = &mut self.views.workload;
        match (action, state.section) {
            (Action::NextSection, _) => {
                state.section = state.section.next();
                state.cursor = 0;
            }
            (_, Section::Nodes) => drop(state.nodes.act(action)),
            _ => state.cursor = moved(state.cursor, action, rows),
        }
    }
}
