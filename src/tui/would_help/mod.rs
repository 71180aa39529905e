//! Suggestions: the plan on the screen, planned again with one limit or option changed at a time, and simulated.
//!
//! The study starts in the background once the plan has been unchanged for [`REST`], so that dragging a limit starts
//! none. Any new plan cancels it. With a planner slower than [`QUICK`] it starts only on request. Old results stay,
//! muted, until the first new one, so that the panel neither jumps nor turns blank. When the study is done, nothing
//! wakes the screen.
//!
//! Figures and order are those of the simulated iteration, under the settings of the one on the screen. A planner's
//! model ignores warm-up, drain and schedule, so a change that it rates highly may help little. See [`Tried`].

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
    model::{Model, Planning},
    shown::{ShownRun, Standing},
    studies::{Finding, StudyKind},
    update::Effects,
};
use crate::{
    planner::{self, Problem, Search},
    simulate::Setup,
    study::{
        explain::{Cause, ChangeQuery, ExplainedPlan, Explanation},
        rivals::Rival,
    },
};

/// Time for which a plan must be unchanged before a study starts.
const REST: Duration = Duration::from_millis(150);

/// Planning time from which a study starts only on request, seconds.
const QUICK: f64 = 2.0;

/// Minimum time limit of a re-plan.
const LEAST_SHARE: Duration = Duration::from_secs(1);

/// Phase of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// No plan to study.
    #[default]
    Idle,
    /// Waiting until this time.
    Resting(Instant),
    /// Slow planner: waiting for a request of the user.
    Unasked,
    /// Study running.
    Asking,
    /// Study done.
    Done,
}

/// Plan, with schedule and settings of its simulation.
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

/// State of the panel.
#[derive(Default)]
pub(super) struct WouldHelp {
    /// Phase of the study.
    pub phase: Phase,
    /// True if the user hid the panel.
    pub folded: bool,
    /// Suggestions, best first.
    pub rows: Vec<Tried>,
    /// Links of the topology at twice the bandwidth, if that helps, best first.
    pub wider: Vec<Widened>,
    /// Plans of published planners in the simulator, fastest first.
    pub rivals: Vec<Rival>,
    /// Binding limits, most costly first.
    pub causes: Vec<Cause>,
    /// True if `rows` belong to the shown plan.
    pub fresh: bool,
    /// Number of results so far, and of all.
    pub answered: (usize, usize),
    /// Index of the selected row, while the panel has the focus.
    pub selected: Option<usize>,
    /// First visible row, and number of rows side by side, at the last drawing.
    pub layout: (usize, usize),
    /// True if the panel fitted at the last drawing.
    pub drawn: bool,
    /// Plan of the current or the next study.
    of: Option<Of>,
    /// Inputs of the study; `None` until it starts.
    pub base: Option<Arc<ExplainedPlan>>,
    /// Plan that the results so far belong to.
    asked: Option<Of>,
    explanation: Explanation,
    tried: Vec<Tried>,
}

impl WouldHelp {
    /// Time at which the screen must wake to start a study, if nothing else wakes it.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Resting(due) => Some(due),
            _ => None,
        }
    }
}

impl Planning {
    /// Cancels the study of a plan that is no longer in force.
    fn leave_what_would_help(&mut self) {
        if self.would_help.phase != Phase::Idle {
            self.cancel_study(StudyKind::Help);
            self.would_help.phase = Phase::Idle;
            self.would_help.of = None;
            self.would_help.fresh = false;
            self.would_help.selected = None;
        }
    }

    /// Also drops the results, which belong to another workload.
    pub(super) fn forget_what_would_help(&mut self) {
        self.leave_what_would_help();
        self.would_help.of = None;
        self.would_help.asked = None;
        self.would_help.rows.clear();
        self.would_help.wider.clear();
        self.would_help.rivals.clear();
        self.would_help.causes.clear();
    }
}

impl Model {
    /// Starts or stops the study according to the shown plan. Called once per frame.
    pub(super) fn look_what_would_help(&mut self) -> Effects {
        let planning = self.planning.running.as_ref().is_some_and(|running| running.planning);
        // A plan for other limits, or edited by hand, does not match the inputs at the left.
        let answers = |shown: &Arc<ShownRun>| {
            shown.plan().is_some() && shown.standing == Standing::Done && shown.limits == self.session.limits
        };
        let shown = self.planning.shown.clone().filter(|shown| answers(shown) && self.previewed().is_none());
        let Some(shown) = shown.filter(|_| !planning && !self.stale()) else {
            self.planning.leave_what_would_help();
            return vec![];
        };
        let visible = self.view_has_help() && !self.planning.would_help.folded;
        let of = Of { shown, setup: self.simulation.setup };
        if self.planning.would_help.of.as_ref() != Some(&of) && visible {
            self.planning.cancel_study(StudyKind::Help);
            let help = &mut self.planning.would_help;
            help.fresh = false;
            help.selected = None;
            help.phase =
                if of.shown.seconds < QUICK { Phase::Resting(self.appearance.now + REST) } else { Phase::Unasked };
            help.of = Some(of);
            return vec![];
        }
        match self.planning.would_help.phase {
            Phase::Resting(due) if visible && self.appearance.now >= due => self.begin_what_would_help(),
            // The panel is hidden: start once it is visible, and do not wake the screen before.
            Phase::Resting(_) if !visible => {
                self.planning.leave_what_would_help();
                vec![]
            }
            // The study ended before its last result.
            Phase::Asking if !self.planning.studying(StudyKind::Help) => {
                self.planning.would_help.phase = Phase::Done;
                vec![]
            }
            _ => vec![],
        }
    }

    /// Pauses the study at a key press, until no key is pressed for a while.
    pub(super) fn pause_what_would_help(&mut self) {
        if self.planning.would_help.phase == Phase::Asking {
            self.planning.cancel_study(StudyKind::Help);
            self.planning.would_help.phase = Phase::Resting(self.appearance.now + REST);
        }
    }

    /// Starts the study on its own thread, one query after the other.
    fn begin_what_would_help(&mut self) -> Effects {
        self.planning.would_help.phase = Phase::Done;
        let Some(of) = self.planning.would_help.of.clone() else { return vec![] };
        let Of { shown, setup } = of.clone();
        let planner = self.session.planners.iter().copied().find(|planner| planner.info().id == shown.planner.id);
        let problem =
            Problem { workload: shown.workload.clone(), limits: shown.limits.clone(), options: shown.options.clone() };
        let base =
            planner.and_then(|planner| ExplainedPlan::new(planner, &problem, &shown.outcome, shown.score.as_ref()));
        let Some(base) = base.map(Arc::new) else { return vec![] };
        let mut questions = base.quick_questions();
        let help = &mut self.planning.would_help;
        // After a key without effect, continue where it stopped; results come in the order of the queries.
        let known = if help.asked.as_ref() == Some(&of) { help.answered.0 } else { 0 };
        help.phase = Phase::Asking;
        if known == 0 {
            help.explanation = Explanation::default();
            help.tried.clear();
            help.wider.clear();
            help.rivals.clear();
            help.base = Some(base.clone());
        }
        // Existing results belong to this plan.
        help.fresh = known > 0;
        help.answered = (known, questions.len());
        help.asked = Some(of);
        questions.drain(..known.min(questions.len()));
        let share = LEAST_SHARE.max(Duration::from_secs_f64(2.0 * shown.seconds));
        let simulated = self
            .simulation
            .simulated
            .as_ref()
            .filter(|simulated| Arc::ptr_eq(&simulated.shown, &shown) && simulated.setup == setup);
        let now = simulated.map(|simulated| tried::rate(&simulated.timeline));
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            // Use one core, and leave the others to the next plan.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(planner::STACK_BYTES).build();
            let mut now = now;
            let mut ask = |question: &ChangeQuery| {
                let answer = base.replan(question, Some(share), search)?;
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
                found(Box::new(move |model| model.planning.would_help.take(tried)));
            }
            let wider = links::widened(&base, &search.part(Some(share)));
            if search.cancelled() {
                return;
            }
            found(Box::new(move |model| model.planning.would_help.wider = wider));
            let plan = || published::plans(&base, setup, share, search);
            let rivals = pool.as_ref().map_or_else(|_| plan(), |pool| pool.install(plan));
            if search.cancelled() {
                return;
            }
            found(Box::new(move |model| {
                model.planning.would_help.rivals = rivals;
                model.planning.would_help.phase = Phase::Done;
            }));
        };
        vec![self.begin_study(StudyKind::Help, Box::new(work))]
    }
}

impl WouldHelp {
    /// Adds a result. The list stays sorted, and the selected row stays selected.
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
