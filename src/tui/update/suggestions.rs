//! Selection and application of a suggestion.

use crate::{
    family::kinds,
    study::explain::Change,
    tui::{
        action::Action,
        effect::Effects,
        model::{Focus, Model, Tone},
        views::list::WITH_PLAN,
        widget::list::moved,
        would_help::Phase,
    },
};

/// Minimum height of the screen at which Stages shows suggestions, rows.
const STAGES_WITH_HELP: u16 = 22;

impl Model {
    /// Moves the focus to the suggestions, requests them if necessary, or leaves them.
    pub(in crate::tui) fn ask_what_would_help(&mut self) -> Effects {
        if self.suggestion().is_some() {
            self.planning.would_help.selected = None;
            return vec![];
        }
        // Another view may have its own list, but only if it fits.
        let listed = self.view == WITH_PLAN || (self.view_has_help() && self.planning.would_help.drawn);
        if !listed {
            self.view = WITH_PLAN;
        }
        // Drawn with the next frame.
        if self.view == WITH_PLAN {
            self.planning.would_help.drawn |= self.appearance.size.1 >= STAGES_WITH_HELP;
        }
        self.planning.would_help.folded = false;
        let mut effects = self.look_what_would_help();
        if matches!(self.planning.would_help.phase, Phase::Unasked | Phase::Resting(_)) {
            effects.append(&mut self.begin_what_would_help());
            self.planning.would_help.wanted = true;
            self.focus = Focus::View;
        } else {
            self.go_to_suggestions();
        }
        effects
    }

    /// Moves the focus to the suggestions, if there are any.
    pub(in crate::tui) fn go_to_suggestions(&mut self) {
        if !self.view_has_help() {
            self.view = WITH_PLAN;
        }
        self.focus = Focus::View;
        if self.planning.would_help.fresh && !self.planning.would_help.rows.is_empty() && self.planning.would_help.drawn
        {
            self.planning.would_help.selected = Some(self.planning.would_help.layout.0);
        } else {
            let why = match self.planning.would_help.phase {
                _ if self.aside() => "`what would help` needs a planner's plan: go back to it first",
                Phase::Asking | Phase::Resting(_) => "`what would help` is not known yet",
                _ if !self.planning.would_help.drawn => {
                    "the screen is too small for `what would help`: fold the left panel or enlarge it"
                }
                _ => "there is nothing to choose",
            };
            self.message = Some((Tone::Refused, why.into()));
        }
    }

    /// True if an action moves among the suggestions or applies one.
    pub(in crate::tui) fn is_for_suggestions(action: Action) -> bool {
        use Action::{Decrease, Down, Edit, First, Increase, Last, PageDown, PageUp, Up};
        matches!(action, Up | Down | PageUp | PageDown | First | Last | Decrease | Increase | Edit)
    }

    /// Moves among the suggestions, or applies the selected one.
    pub(in crate::tui) fn act_on_suggestion(&mut self, action: Action) -> Effects {
        let Some(at) = self.suggestion() else { return vec![] };
        let last = self.planning.would_help.rows.len() - 1;
        let beside = self.planning.would_help.layout.1.max(1);
        let next = match action {
            Action::Edit => return self.take_suggestion(at),
            Action::Decrease => at.saturating_sub(1),
            Action::Increase => (at + 1).min(last),
            Action::Up => at.checked_sub(beside).unwrap_or(at),
            Action::Down if at + beside <= last => at + beside,
            Action::Down => at,
            other => moved(at, other, last + 1),
        };
        self.planning.would_help.selected = Some(next);
        vec![]
    }

    /// Selects a clicked suggestion. A second click applies it.
    pub(in crate::tui) fn click_suggestion(&mut self, place: usize) -> Effects {
        self.focus = Focus::View;
        if self.suggestion() == Some(place) {
            return self.take_suggestion(place);
        }
        self.planning.would_help.selected = Some(place).filter(|_| self.planning.would_help.fresh);
        vec![]
    }

    /// Sets the limit or option of a suggestion, and plans with it.
    fn take_suggestion(&mut self, place: usize) -> Effects {
        let Some(answer) = self.planning.would_help.rows.get(place) else { return vec![] };
        let answer = &answer.answer;
        let (change, label) = (answer.question.change.clone(), answer.label.clone());
        let effects = match change {
            Change::Limit(kind, value) => self.set_limits(self.session.limits.with(kind, value)),
            Change::Option(spec, value) => self.set_option(spec, value),
            Change::Kinds(kinds) => match kinds::over(&self.session.workload, &kinds) {
                Ok(workload) => self.take_turned(workload),
                Err(_) => return vec![],
            },
            Change::FreeLinks | Change::EveryDegree | Change::EngineFeasible => return vec![],
        };
        self.planning.would_help.selected = None;
        self.message = Some((Tone::Done, format!("taken: {label}")));
        effects
    }
}
