//! Actions on two plans side by side.

use super::state::{Key, Row, Side};
use crate::{
    study::side_by_side::{self, align},
    tui::{
        action::Action,
        effect::Effects,
        model::{Model, Tone},
        widget::list::moved,
    },
};

impl Model {
    /// Opens the two marked plans, or else the selected one beside the marked or the shown one.
    pub(in crate::tui) fn open_beside(&mut self, selected: Option<Row>) {
        let selected = match selected {
            Some(Row::Plan(key)) => Some(key),
            _ => None,
        };
        let pair = match *self.views.compare.marked.as_slice() {
            [first, second] => Some((first, second)),
            [first] => selected.map(|second| (first, second)),
            _ => self.shown_key().zip(selected),
        };
        let Some((first, second)) = pair.filter(|(first, second)| first != second) else {
            self.message = Some((Tone::Refused, "mark two plans with the space bar first".into()));
            return;
        };
        for key in [first, second] {
            if self.compared(key).is_none_or(|compared| compared.shown.plan().is_none()) {
                let told = format!("{} has no plan to show", self.compared_name(key));
                self.message = Some((Tone::Refused, told));
                return;
            }
        }
        self.views.compare.side = Some(Side { first, second, top: 0 });
    }

    /// Plan of the table that the other views show.
    pub(in crate::tui) fn shown_key(&self) -> Option<Key> {
        let shown = self.planning.shown.as_ref()?;
        let rows = self.compare_rows();
        rows.iter().find_map(|row| match *row {
            Row::Plan(key) if self.compared(key).is_some_and(|c| std::sync::Arc::ptr_eq(&c.shown, shown)) => Some(key),
            _ => None,
        })
    }

    /// Rows of two plans; `None` if one no longer exists.
    pub(super) fn rows_of(&self, side: Side) -> Option<Vec<side_by_side::StagePair>> {
        let (first, second) = (self.compared(side.first)?, self.compared(side.second)?);
        Some(align(first.shown.plan()?.0, second.shown.plan()?.0))
    }

    /// Performs an action while two plans are side by side.
    pub(in crate::tui) fn act_beside(&mut self, action: Action) -> Effects {
        let count = self.views.compare.side.and_then(|side| self.rows_of(side)).map_or(0, |rows| rows.len());
        let Some(side) = &mut self.views.compare.side else { return vec![] };
        match action {
            Action::SideBySide => self.views.compare.side = None,
            // Swap the plans: gains become losses.
            Action::Mark => *side = Side { first: side.second, second: side.first, top: side.top },
            _ => side.top = moved(side.top, action, count),
        }
        vec![]
    }
}
