//! Study of what would help the plan on the screen.
//!
//! The study starts in the background once the plan has been unchanged for [`REST`], so that dragging a limit starts
//! none. Any new plan cancels it. With a planner slower than [`QUICK`] it starts only on request. Old results stay,
//! muted, until the first new one, so that the panel neither jumps nor turns blank. When the study is done, nothing
//! wakes the screen.

use std::{sync::Arc, time::Duration};

use crate::{
    planner::{self, Problem, Search},
    study::explain::{ChangeQuery, ExplainedPlan, Explanation},
    tui::{
        effect::Effects,
        model::Model,
        shown::{ShownRun, Standing},
        studies::StudyKind,
        study_job::Finding,
        would_help::{Of, Phase, Tried, links, published, tried},
    },
};

/// Time for which a plan must be unchanged before a study starts.
const REST: Duration = Duration::from_millis(150);

/// Planning time from which a study starts only on request, seconds.
const QUICK: f64 = 2.0;

/// Minimum time limit of a re-plan.
const LEAST_SHARE: Duration = Duration::from_secs(1);

impl Model {
    /// Starts or stops the study according to the shown plan. Called once per frame.
    pub(in crate::tui) fn look_what_would_help(&mut self) -> Effects {
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
            // Those of another plan would stay until they are asked for again.
            if of.shown.seconds >= QUICK {
                help.rows.clear();
                help.wider.clear();
            }
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
    pub(in crate::tui) fn pause_what_would_help(&mut self) {
        if self.planning.would_help.phase == Phase::Asking {
            self.planning.cancel_study(StudyKind::Help);
            self.planning.would_help.phase = Phase::Resting(self.appearance.now + REST);
        }
    }

    /// Starts the study on its own thread, one query after the other.
    pub(super) fn begin_what_would_help(&mut self) -> Effects {
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
