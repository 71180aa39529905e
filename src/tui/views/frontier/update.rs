//! Actions of Frontier.

use super::points::{self, Point};
use crate::tui::{
    action::Action,
    edits::Version,
    effect::Effects,
    model::{Model, Tone},
    widget::list::{mark, moved},
};

impl Model {
    /// Performs an action of the view.
    pub(super) fn act_in_frontier(&mut self, action: Action) -> Effects {
        let points = points::points(self);
        let at = self.views.frontier.cursor.min(points.len().saturating_sub(1));
        match action {
            Action::CursorLeft | Action::CursorRight => {
                let more = action == Action::CursorRight;
                self.views.frontier.cursor = neighbour(&points, at, more).unwrap_or(at);
            }
            Action::Preview => return self.take_layout(&points, at),
            Action::Mark => {
                if let Some(point) = points.get(at) {
                    mark(&mut self.views.frontier.marked, point.number);
                }
            }
            Action::SortNext => {
                let number = points.get(at).map(|point| point.number);
                self.views.frontier.by_memory = !self.views.frontier.by_memory;
                let sorted = points::points(self);
                self.views.frontier.cursor =
                    sorted.iter().position(|point| Some(point.number) == number).unwrap_or_default();
            }
            _ => self.views.frontier.cursor = moved(at, action, points.len()),
        }
        vec![]
    }

    /// Shows a layout in all views. Undo returns to the one before.
    fn take_layout(&mut self, points: &[Point], at: usize) -> Effects {
        let Some(point) = points.get(at) else { return vec![] };
        if point.shown {
            self.message = Some((Tone::Done, "this layout is on the screen".into()));
            return vec![];
        }
        let from = points::source(self).map(|source| source.planner);
        let Some(from) = from else { return vec![] };
        let what = format!("another layout of the search: {}", point.configuration);
        let version = Version::Edited { plan: point.plan.clone(), what, edits: 1, from };
        let effects = self.show_edited(version);
        self.message = Some((Tone::Done, "taken; 0 returns to the planner's plan".into()));
        effects
    }
}

/// Nearest point with less or more memory.
fn neighbour(points: &[Point], at: usize, more: bool) -> Option<usize> {
    let own = points.get(at)?;
    let beyond = points
        .iter()
        .enumerate()
        .filter(|(i, point)| *i != at && if more { point.bytes >= own.bytes } else { point.bytes <= own.bytes });
    // Of equal ones, those behind in the list come after.
    let beyond = beyond.filter(|(i, point)| point.bytes != own.bytes || (*i > at) == more);
    beyond.min_by(|a, b| (a.1.bytes - own.bytes).abs().total_cmp(&(b.1.bytes - own.bytes).abs())).map(|(i, _)| i)
}
