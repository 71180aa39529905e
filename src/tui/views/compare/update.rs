//! Actions and clicks of Compare: select, mark, sort, preview, run all planners.

use super::state::{Key, Row};
use crate::{
    study::columns::Column,
    tui::{
        action::Action,
        effect::Effects,
        model::{Model, Tone},
        studies::StudyKind,
        widget::list::moved,
    },
};

impl Model {
    /// Performs an action of the view.
    pub(in crate::tui) fn act_in_compare(&mut self, action: Action) -> Effects {
        if self.views.compare.side.is_some() {
            return self.act_beside(action);
        }
        let rows = self.compare_rows();
        let at = self.compare_cursor(&rows);
        let selected = rows.get(at).copied();
        match (action, selected) {
            (Action::CompareAll, _) => return self.compare_all(),
            (Action::SortNext | Action::SortPrevious, _) => {
                let columns = Column::ALL.len();
                let now = Column::ALL.iter().position(|column| *column == self.views.compare.sort).unwrap_or(0);
                let step = if action == Action::SortNext { 1 } else { columns - 1 };
                self.sort_by(Column::ALL[(now + step) % columns]);
            }
            (Action::SortReverse, _) => self.views.compare.reversed = !self.views.compare.reversed,
            (Action::Mark, Some(Row::Plan(key))) => self.mark(key),
            (Action::Mark | Action::Preview, Some(Row::Folded)) => {
                self.views.compare.unfolded = !self.views.compare.unfolded;
            }
            (Action::SideBySide, _) => self.open_beside(selected),
            (Action::RenamePin, Some(Row::Plan(Key::Pin(id)))) => self.begin_renaming(id),
            (Action::RenamePin, _) => self.message = Some((Tone::Refused, "only pins can be renamed".into())),
            (Action::Preview, Some(Row::Plan(key))) => return self.preview(key),
            (Action::Mark | Action::Preview, _) => {}
            _ => self.views.compare.cursor = rows.get(moved(at, action, rows.len())).copied(),
        }
        vec![]
    }

    /// Sorts by a column, best first. The same column again reverses the order.
    pub(in crate::tui) fn sort_by(&mut self, column: Column) {
        self.views.compare.reversed = column == self.views.compare.sort && !self.views.compare.reversed;
        self.views.compare.sort = column;
    }

    /// Selects a clicked row. A click on the selected row acts as Enter.
    pub(in crate::tui) fn click_in_compare(&mut self, row: usize) -> Effects {
        let rows = self.compare_rows();
        if self.compare_cursor(&rows) == row {
            return self.act_in_compare(Action::Preview);
        }
        self.views.compare.cursor = rows.get(row).copied();
        vec![]
    }

    /// Marks or unmarks a plan. A third mark replaces the first.
    fn mark(&mut self, key: Key) {
        let marked = &mut self.views.compare.marked;
        match marked.iter().position(|known| *known == key) {
            Some(at) => drop(marked.remove(at)),
            None => {
                if marked.len() == 2 {
                    marked.remove(0);
                }
                marked.push(key);
            }
        }
    }

    /// Closes the open part of the view, or stops the study. Returns true if there was either.
    pub(in crate::tui) fn leave_compare(&mut self) -> bool {
        if self.views.compare.side.take().is_some() {
            return true;
        }
        if self.planning.stop_study(StudyKind::Compare) {
            self.views.compare.queue.clear();
            return true;
        }
        false
    }
}
