//! Actions of Workload.

use super::state::Section;
use crate::tui::{action::Action, model::Model, update::moved};

impl Model {
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
