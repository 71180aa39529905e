//! What would help: the plan on the screen, planned again with one limit or option moved at a time.
//!
//! Asked in the background once the plan has rested for [`REST`], so that dragging a limit starts nothing; whatever plans
//! anew ends it. A planner that took longer than [`QUICK`] is asked only when the user wants it. Answers of the plan before
//! stay, muted, until the first new one: the panel neither jumps nor goes blank. When all are there nothing wakes the
//! screen any more.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    action::Action,
    model::{Focus, Model, Tone, View},
    shown::{Shown, Standing},
    studies::{Finding, StudyKind},
    update::{Effects, moved},
};
use crate::{
    planner::{self, Problem, Search},
    study::explain::{Answer, Base, Cause, Change, Explanation, Question},
};

/// How long a plan must rest before anything is asked.
const REST: Duration = Duration::from_millis(150);

/// Plans that took longer are explained only when asked for, seconds.
const QUICK: f64 = 2.0;

/// The least time that a re-plan is given.
const LEAST_SHARE: Duration = Duration::from_secs(1);

/// How far the answers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// There is no plan to ask about.
    #[default]
    Idle,
    /// The plan rests until then.
    Resting(Instant),
    /// The planner is slow: the user must ask.
    Unasked,
    /// Answers are coming.
    Asking,
    /// All answers are there.
    Done,
}

/// The panel's state.
#[derive(Default)]
pub(super) struct WouldHelp {
    /// How far the answers are.
    pub phase: Phase,
    /// Whether the user folded the panel away.
    pub folded: bool,
    /// What would help and what is next best, best first.
    pub rows: Vec<Answer>,
    /// What binds, the most costly first.
    pub causes: Vec<Cause>,
    /// Whether `rows` are of the plan that is shown.
    pub fresh: bool,
    /// Answers so far, and how many there will be.
    pub answered: (usize, usize),
    /// The selected row, while the keys are for this panel.
    pub selected: Option<usize>,
    /// First visible row, and how many lie side by side, as last drawn.
    pub layout: (usize, usize),
    /// Whether the last drawing had room for the panel.
    pub drawn: bool,
    /// The plan that was asked about, or will be.
    of: Option<Arc<Shown>>,
    /// The same for the study; `None` until it begins.
    pub base: Option<Arc<Base>>,
    /// The plan that the answers so far are of.
    asked: Option<Arc<Shown>>,
    explanation: Explanation,
}

impl WouldHelp {
    /// When the screen must wake to ask, if nothing else wakes it.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Resting(due) => Some(due),
            _ => None,
        }
    }
}

impl Model {
    /// Looks whether there is a plan to ask about; called at every frame.
    pub(super) fn look_what_would_help(&mut self) -> Effects {
        let planning = self.running.as_ref().is_some_and(|running| running.planning);
        // A plan that was made under other limits, or by hand, is no answer to what stands at the left.
        let answers = |shown: &Arc<Shown>| {
            shown.plan().is_some() && shown.standing == Standing::Done && shown.limits == self.limits
        };
        let shown = self.shown.clone().filter(|shown| answers(shown) && self.visited().is_none());
        let Some(shown) = shown.filter(|_| !planning && !self.stale()) else {
            self.leave_what_would_help();
            return vec![];
        };
        let visible = self.view_has_help() && !self.would_help.folded;
        let known = self.would_help.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &shown));
        if !known && visible {
            self.cancel_study(StudyKind::Help);
            let help = &mut self.would_help;
            help.fresh = false;
            help.selected = None;
            help.phase = if shown.seconds < QUICK { Phase::Resting(self.now + REST) } else { Phase::Unasked };
            help.of = Some(shown);
            return vec![];
        }
        match self.would_help.phase {
            Phase::Resting(due) if visible && self.now >= due => self.begin_what_would_help(),
            // Nobody looks: ask when somebody does, and do not wake the screen until then.
            Phase::Resting(_) if !visible => {
                self.leave_what_would_help();
                vec![]
            }
            // The study ended before its last answer.
            Phase::Asking if !self.studying(StudyKind::Help) => {
                self.would_help.phase = Phase::Done;
                vec![]
            }
            _ => vec![],
        }
    }

    /// A key was pressed: what is asked in the background makes way, and goes on when the keys rest.
    pub(super) fn pause_what_would_help(&mut self) {
        if self.would_help.phase == Phase::Asking {
            self.cancel_study(StudyKind::Help);
            self.would_help.phase = Phase::Resting(self.now + REST);
        }
    }

    /// Ends what is asked about a plan that is no longer in force.
    fn leave_what_would_help(&mut self) {
        if self.would_help.phase != Phase::Idle {
            self.cancel_study(StudyKind::Help);
            self.would_help.phase = Phase::Idle;
            self.would_help.of = None;
            self.would_help.fresh = false;
            self.would_help.selected = None;
        }
    }

    /// Forgets the answers too: they are of another workload.
    pub(super) fn forget_what_would_help(&mut self) {
        self.leave_what_would_help();
        self.would_help.of = None;
        self.would_help.asked = None;
        self.would_help.rows.clear();
        self.would_help.causes.clear();
    }

    /// Asks, one question after the other, on a thread of its own.
    fn begin_what_would_help(&mut self) -> Effects {
        self.would_help.phase = Phase::Done;
        let Some(shown) = self.would_help.of.clone() else { return vec![] };
        let planner = self.planners.iter().copied().find(|planner| planner.info().id == shown.planner.id);
        let problem =
            Problem { workload: shown.workload.clone(), limits: shown.limits, options: shown.options.clone() };
        let base = planner.and_then(|planner| Base::new(planner, &problem, &shown.outcome, shown.score.as_ref()));
        let Some(base) = base.map(Arc::new) else { return vec![] };
        let mut questions = base.quick_questions();
        let help = &mut self.would_help;
        // After a key that changed nothing it goes on where it was; answers come in the order of the questions.
        let known =
            if help.asked.as_ref().is_some_and(|asked| Arc::ptr_eq(asked, &shown)) { help.answered.0 } else { 0 };
        help.phase = Phase::Asking;
        if known == 0 {
            help.explanation = Explanation::default();
            help.base = Some(base.clone());
        }
        help.answered = (known, questions.len());
        help.asked = Some(shown.clone());
        questions.drain(..known.min(questions.len()));
        let share = LEAST_SHARE.max(Duration::from_secs_f64(2.0 * shown.seconds));
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            // One core: the others are for what is asked next.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(planner::STACK_BYTES).build();
            let ask = |question: &Question| match &pool {
                Ok(pool) => pool.install(|| base.ask(question, Some(share), search)),
                Err(_) => base.ask(question, Some(share), search),
            };
            for question in &questions {
                let Some(answer) = ask(question) else { return };
                found(Box::new(move |model| model.would_help.take(answer)));
            }
            found(Box::new(|model| model.would_help.phase = Phase::Done));
        };
        vec![self.begin_study(StudyKind::Help, Box::new(work))]
    }

    /// Goes to the panel, asks if nothing was asked yet, or leaves.
    pub(super) fn ask_what_would_help(&mut self) -> Effects {
        if self.suggestion().is_some() {
            self.would_help.selected = None;
            return vec![];
        }
        if !self.view_has_help() {
            self.view = View::Stages;
        }
        self.would_help.folded = false;
        let mut effects = self.look_what_would_help();
        if matches!(self.would_help.phase, Phase::Unasked | Phase::Resting(_)) {
            effects.append(&mut self.begin_what_would_help());
        } else {
            self.go_to_suggestions();
        }
        effects
    }

    /// Gives the arrow keys to the panel, if there is something to choose.
    pub(super) fn go_to_suggestions(&mut self) {
        if !self.view_has_help() {
            self.view = View::Stages;
        }
        self.focus = Focus::View;
        if self.would_help.fresh && !self.would_help.rows.is_empty() && self.would_help.drawn {
            self.would_help.selected = Some(self.would_help.layout.0);
        } else {
            let why = match self.would_help.phase {
                _ if self.aside() => "only a planner's plan is asked what would help: go back to it first",
                Phase::Asking | Phase::Resting(_) => "what would help is not known yet",
                _ if !self.would_help.drawn => {
                    "there is no room for what would help: fold the left panel or enlarge the screen"
                }
                _ => "there is nothing to choose from",
            };
            self.message = Some((Tone::Refused, why.into()));
        }
    }

    /// Whether the view shows what would help.
    fn view_has_help(&self) -> bool {
        matches!(self.view, View::Overview | View::Stages)
    }

    /// Whether the shown plan is none that is asked about: edited by hand, or one of the Compare table.
    pub(super) fn aside(&self) -> bool {
        self.edited() || self.visited().is_some()
    }

    /// Hides or shows the panel; hidden it asks nothing.
    pub(super) fn fold_what_would_help(&mut self) -> Effects {
        let help = &mut self.would_help;
        help.folded = !help.folded;
        help.selected = None;
        if help.folded {
            self.leave_what_would_help();
        }
        vec![]
    }

    /// The selected row, while the keys are for the panel.
    pub(super) fn suggestion(&self) -> Option<usize> {
        let help = &self.would_help;
        let heard = self.view_has_help() && self.focus == Focus::View && help.fresh && help.drawn;
        help.selected.filter(|&row| heard && row < help.rows.len())
    }

    /// Whether an action moves among the suggestions or takes one.
    pub(super) fn is_for_suggestions(action: Action) -> bool {
        use Action::{Decrease, Down, Edit, First, Increase, Last, PageDown, PageUp, Up};
        matches!(action, Up | Down | PageUp | PageDown | First | Last | Decrease | Increase | Edit)
    }

    /// Moves among the suggestions, or takes the selected one.
    pub(super) fn act_on_suggestion(&mut self, action: Action) -> Effects {
        let Some(at) = self.suggestion() else { return vec![] };
        let last = self.would_help.rows.len() - 1;
        let beside = self.would_help.layout.1.max(1);
        let next = match action {
            Action::Edit => return self.take_suggestion(at),
            Action::Decrease => at.saturating_sub(1),
            Action::Increase => (at + 1).min(last),
            Action::Up => at.checked_sub(beside).unwrap_or(at),
            Action::Down if at + beside <= last => at + beside,
            Action::Down => at,
            other => moved(at, other, last + 1),
        };
        self.would_help.selected = Some(next);
        vec![]
    }

    /// A click selects a suggestion, another takes it.
    pub(super) fn click_suggestion(&mut self, place: usize) -> Effects {
        self.focus = Focus::View;
        if self.suggestion() == Some(place) {
            return self.take_suggestion(place);
        }
        self.would_help.selected = Some(place).filter(|_| self.would_help.fresh);
        vec![]
    }

    /// Moves the list under the wheel.
    pub(super) fn scroll_suggestions(&mut self, down: bool) {
        let (first, beside) = self.would_help.layout;
        let at = self.would_help.selected.unwrap_or(first);
        let last = self.would_help.rows.len().saturating_sub(1);
        if self.would_help.fresh {
            self.would_help.selected =
                Some(if down { (at + beside.max(1)).min(last) } else { at.saturating_sub(beside.max(1)) });
        }
    }

    /// Sets what a suggestion moves, and plans with it.
    fn take_suggestion(&mut self, place: usize) -> Effects {
        let Some(answer) = self.would_help.rows.get(place) else { return vec![] };
        let (change, label) = (answer.question.change.clone(), answer.label.clone());
        let effects = match change {
            Change::Limit(kind, value) => self.set_limits(self.limits.with(kind, value)),
            Change::Option(spec, value) => self.set_option(spec, value),
            Change::FreeLinks | Change::EveryDegree | Change::EngineFeasible => return vec![],
        };
        self.would_help.selected = None;
        self.message = Some((Tone::Done, format!("taken: {label}")));
        effects
    }
}

impl WouldHelp {
    /// Takes an answer; the list stays sorted and what was selected stays selected.
    fn take(&mut self, answer: Answer) {
        let Some(base) = self.base.clone() else { return };
        let selected = self.selected.filter(|_| self.fresh).and_then(|row| self.rows.get(row)).cloned();
        self.explanation.add(answer);
        self.answered.0 += 1;
        self.rows = self.explanation.settable().into_iter().cloned().collect();
        self.causes = self.explanation.causes(&base);
        self.fresh = true;
        self.selected =
            selected.and_then(|kept| self.rows.iter().position(|row| row.question.change == kept.question.change));
    }
}
