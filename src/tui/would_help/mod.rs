//! What would help: the plan on the screen, planned again with one limit or option moved at a time, and simulated.
//!
//! Asked in the background once the plan has rested for [`REST`], so that dragging a limit starts nothing; whatever plans
//! anew ends it. A planner that took longer than [`QUICK`] is asked only when the user wants it. Answers of the plan before
//! stay, muted, until the first new one: the panel neither jumps nor goes blank. When all are there nothing wakes the
//! screen any more.
//!
//! What is told and what the order goes by is the simulated batch, under the settings of the one on the screen: a planner's
//! model knows no fill and no schedule, so a change that it praises may help little. See [`Tried`].

mod choosing;
mod links;
mod published;
mod tried;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

pub(super) use self::{links::Widened, tried::Tried};
use super::{
    model::Model,
    shown::{ShownRun, Standing},
    studies::{Finding, StudyKind},
    update::Effects,
};
use crate::{
    planner::{self, Problem, Search},
    simulate::Setup,
    study::{
        explain::{Base, Cause, Explanation, Question},
        rivals::Rival,
    },
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

/// A plan, and how it is simulated.
#[derive(Clone)]
struct Of {
    shown: Arc<ShownRun>,
    setup: Setup,
}

impl PartialEq for Of {
    fn eq(&self, other: &Of) -> bool {
        Arc::ptr_eq(&self.shown, &other.shown) && self.setup == other.setup
    }
}

/// The panel's state.
#[derive(Default)]
pub(super) struct WouldHelp {
    /// How far the answers are.
    pub phase: Phase,
    /// Whether the user folded the panel away.
    pub folded: bool,
    /// What would help and what is next best, best first.
    pub rows: Vec<Tried>,
    /// Links of the topology twice as fast, where that helps, the best first.
    pub wider: Vec<Widened>,
    /// What published planners' plans would take, the fastest first.
    pub rivals: Vec<Rival>,
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
    of: Option<Of>,
    /// The same for the study; `None` until it begins.
    pub base: Option<Arc<Base>>,
    /// The plan that the answers so far are of.
    asked: Option<Of>,
    explanation: Explanation,
    tried: Vec<Tried>,
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
        let answers = |shown: &Arc<ShownRun>| {
            shown.plan().is_some() && shown.standing == Standing::Done && shown.limits == self.limits
        };
        let shown = self.shown.clone().filter(|shown| answers(shown) && self.previewed().is_none());
        let Some(shown) = shown.filter(|_| !planning && !self.stale()) else {
            self.leave_what_would_help();
            return vec![];
        };
        let visible = self.view_has_help() && !self.would_help.folded;
        let of = Of { shown, setup: self.setup };
        if self.would_help.of.as_ref() != Some(&of) && visible {
            self.cancel_study(StudyKind::Help);
            let help = &mut self.would_help;
            help.fresh = false;
            help.selected = None;
            help.phase = if of.shown.seconds < QUICK { Phase::Resting(self.now + REST) } else { Phase::Unasked };
            help.of = Some(of);
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
        self.would_help.wider.clear();
        self.would_help.rivals.clear();
        self.would_help.causes.clear();
    }

    /// Asks, one question after the other, on a thread of its own.
    fn begin_what_would_help(&mut self) -> Effects {
        self.would_help.phase = Phase::Done;
        let Some(of) = self.would_help.of.clone() else { return vec![] };
        let Of { shown, setup } = of.clone();
        let planner = self.planners.iter().copied().find(|planner| planner.info().id == shown.planner.id);
        let problem =
            Problem { workload: shown.workload.clone(), limits: shown.limits.clone(), options: shown.options.clone() };
        let base = planner.and_then(|planner| Base::new(planner, &problem, &shown.outcome, shown.score.as_ref()));
        let Some(base) = base.map(Arc::new) else { return vec![] };
        let mut questions = base.quick_questions();
        let help = &mut self.would_help;
        // After a key that changed nothing it goes on where it was; answers come in the order of the questions.
        let known = if help.asked.as_ref() == Some(&of) { help.answered.0 } else { 0 };
        help.phase = Phase::Asking;
        if known == 0 {
            help.explanation = Explanation::default();
            help.tried.clear();
            help.wider.clear();
            help.rivals.clear();
            help.base = Some(base.clone());
        }
        // Those that are there already are of this plan.
        help.fresh = known > 0;
        help.answered = (known, questions.len());
        help.asked = Some(of);
        questions.drain(..known.min(questions.len()));
        let share = LEAST_SHARE.max(Duration::from_secs_f64(2.0 * shown.seconds));
        let simulated = self
            .simulated
            .as_ref()
            .filter(|simulated| Arc::ptr_eq(&simulated.shown, &shown) && simulated.setup == setup);
        let now = simulated.map(|simulated| tried::rate(&simulated.timeline));
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            // One core: the others are for what is asked next.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(planner::STACK_BYTES).build();
            let mut now = now;
            let mut ask = |question: &Question| {
                let answer = base.ask(question, Some(share), search)?;
                now = now.or_else(|| tried::simulated(&base, None, setup, &search.part(Some(share))));
                let tried = Tried::new(&base, answer, (setup, now), &search.part(Some(share)));
                (!search.cancelled()).then_some(tried)
            };
            for question in &questions {
                let tried = match &pool {
                    Ok(pool) => pool.install(|| ask(question)),
                    Err(_) => ask(question),
                };
                let Some(tried) = tried else { return };
                found(Box::new(move |model| model.would_help.take(tried)));
            }
            let wider = links::widened(&base, &search.part(Some(share)));
            if search.cancelled() {
                return;
            }
            found(Box::new(move |model| model.would_help.wider = wider));
            let plan = || published::plans(&base, setup, share, search);
            let rivals = pool.as_ref().map_or_else(|_| plan(), |pool| pool.install(plan));
            if search.cancelled() {
                return;
            }
            found(Box::new(move |model| {
                model.would_help.rivals = rivals;
                model.would_help.phase = Phase::Done;
            }));
        };
        vec![self.begin_study(StudyKind::Help, Box::new(work))]
    }
}

impl WouldHelp {
    /// Takes an answer; the list stays sorted and what was selected stays selected.
    fn take(&mut self, tried: Tried) {
        let Some(base) = self.base.clone() else { return };
        let selected = self.selected.filter(|_| self.fresh).and_then(|row| self.rows.get(row)).cloned();
        self.explanation.add(tried.answer.clone());
        self.tried.push(tried);
        self.answered.0 += 1;
        self.rows = tried::settable(&self.tried);
        self.causes = self.explanation.causes(&base);
        self.fresh = true;
        let same = |a: &Tried, b: &Tried| a.answer.question.change == b.answer.question.change;
        self.selected = selected.and_then(|kept| self.rows.iter().position(|row| same(row, &kept)));
    }
}
