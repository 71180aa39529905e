//! Actions of Frontier.

use super::{
    beside::Pair,
    points::{self, Point},
    table,
};
use crate::{
    family::training::configured,
    plan::Plan,
    tui::{
        action::Action,
        edits::Version,
        effect::Effects,
        layout_bar::Axis,
        model::{Model, Tone},
        widget::list::{mark, moved},
    },
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
            Action::Up | Action::Down if self.views.frontier.beside.is_some() => {
                self.views.frontier.beside.iter_mut().for_each(|pair| pair.walk(action == Action::Down));
            }
            Action::Preview => match self.changed_up_to() {
                Some(plan) => return self.show_layout(plan),
                None => return self.take_layout(&points, at),
            },
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
            Action::SideBySide => {
                let open = self.views.frontier.beside.is_none();
                self.views.frontier.beside = if open { self.pair(&points, at) } else { None };
            }
            Action::FilterAxis => self.filter_axis(points.get(at)),
            _ => self.views.frontier.cursor = moved(at, action, points.len()),
        }
        // The layouts side by side follow the cursor.
        let walked = self.views.frontier.cursor;
        if self.views.frontier.beside.is_some() && walked != at {
            let other = table::pair(&points, walked, &[]);
            let pair = other.zip(points::source(self)).and_then(|((a, b), source)| Pair::of(source, [a, b]));
            self.views.frontier.beside = pair.map(Box::new).or(self.views.frontier.beside.take());
        }
        vec![]
    }

    /// Opens a job as it runs beside the best layout.
    pub(super) fn open_frontier(&mut self) {
        let points = points::points(self);
        if points.iter().any(|point| point.runs && !point.shown) && self.views.frontier.beside.is_none() {
            self.views.frontier.beside = self.pair(&points, 0);
        }
    }

    /// Compares two layouts; tells why if there are no two.
    fn pair(&mut self, points: &[Point], at: usize) -> Option<Box<Pair>> {
        let state = &self.views.frontier;
        let runs = points.iter().find(|point| point.runs && !point.shown).filter(|_| state.marked.len() < 2);
        let shown = points.iter().find(|point| point.shown);
        let chosen = match (table::pair(points, at, &state.marked), runs) {
            (Some((shown, other)), _) if !other.runs => Some((shown, other)),
            (_, Some(runs)) => Some((runs, shown?)),
            (pair, None) => pair,
        };
        let source = points::source(self).cloned();
        let found = chosen.zip(source).and_then(|((a, b), source)| Pair::of(&source, [a, b]));
        if found.is_none() {
            self.message = Some((Tone::Refused, "select another layout than the shown one, or mark two".into()));
        }
        found.map(Box::new)
    }

    /// Lists only layouts that share the tensor, then the pipeline, then the data degree of a layout, then all again.
    fn filter_axis(&mut self, selected: Option<&Point>) {
        const ORDER: [Axis; 3] = [Axis::Tensor, Axis::Pipeline, Axis::Data];
        let next = match self.views.frontier.only {
            None => ORDER.first(),
            Some((axis, _)) => ORDER.iter().skip_while(|own| **own != axis).nth(1),
        };
        let layout = selected.map(|point| point.configuration.layout);
        self.views.frontier.only = next.copied().zip(layout).and_then(|(axis, own)| Some((axis, axis.of(&own)?)));
        let number = selected.map(|point| point.number);
        let left = points::points(self);
        self.views.frontier.cursor = left.iter().position(|point| Some(point.number) == number).unwrap_or_default();
    }

    /// Shows a layout in all views. Undo returns to the one before.
    fn take_layout(&mut self, points: &[Point], at: usize) -> Effects {
        let Some(point) = points.get(at) else { return vec![] };
        if point.shown {
            self.message = Some((Tone::Done, "this layout is on the screen".into()));
            return vec![];
        }
        self.show_layout(point.plan.clone())
    }

    /// Plan with the changes up to the selected one, if not all of them are selected.
    fn changed_up_to(&self) -> Option<Plan> {
        let step = self.views.frontier.beside.as_ref()?.up_to()?;
        configured::plan_of_run(points::source(self)?.workload.training()?, &step.run)
    }

    fn show_layout(&mut self, plan: Plan) -> Effects {
        let from = points::source(self).map(|source| source.planner);
        let Some((from, configuration)) = from.zip(plan.configuration()) else { return vec![] };
        let what = format!("another layout of the search: {configuration}");
        let version = Version::Edited { plan, what, edits: 1, from };
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
