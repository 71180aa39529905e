//! Incumbent of a running search, shown like any plan.
//!
//! Each frame checks for one, at the cost of a lock and a comparison. A new one is measured and simulated on its own
//! thread, so that drawing never waits. That happens at most every [`PACE`], so that the screen does not flicker. A
//! plan that the check refuses is not shown: the planner may have published it for a converted workload.

use std::{sync::Arc, time::Duration};

use crate::{
    planner::{Problem, Search},
    tui::{
        effect::Effects,
        model::{LONG, Looked, Model},
        shown::{ShownRun, Standing},
        simulated::Simulated,
        studies::StudyKind,
        study_job::Finding,
    },
};

/// Minimum time between two plans of one search.
const PACE: Duration = Duration::from_millis(300);

impl Model {
    /// Takes a better incumbent from the running search, if there is one.
    pub(in crate::tui) fn look_for_incumbent(&mut self) -> Effects {
        let Some(running) = self.planning.running.as_ref().filter(|r| r.planning) else { return vec![] };
        let Some(incumbent) = running.search.incumbent() else { return vec![] };
        let (job, search) = (running.job, running.search.clone());
        let bound = search.progress().bound;
        let early = self.appearance.now.saturating_duration_since(running.begun) < LONG
            || self.planning.studying(StudyKind::Incumbent);
        let known = self.planning.looked.as_ref().filter(|looked| looked.job == job).is_some_and(|looked| {
            // A better bound changes the gap of the same plan.
            let same = Arc::ptr_eq(&looked.incumbent, &incumbent) && looked.bound == bound;
            same || self.appearance.now.saturating_duration_since(looked.at) < PACE
        });
        if early || known {
            return vec![];
        }
        self.planning.looked = Some(Looked { job, at: self.appearance.now, incumbent: incumbent.clone(), bound });
        // Any change of these begins another search.
        let problem = Problem {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            options: self.session.options[self.session.planner].clone(),
        };
        let (planner, setup) = (self.session.current_planner().info(), self.simulation.setup);
        let work = move |study: &Search, found: &mut dyn FnMut(Finding)| {
            let mut shown = ShownRun::of_plan(planner, &problem, incumbent.plan.clone());
            if !shown.is_valid() || study.cancelled() {
                return;
            }
            shown.standing = Standing::BestSoFar { job };
            shown.outcome.lower_bound = bound;
            shown.outcome.notes.push("the best plan so far of a running search".into());
            shown.seconds = search.elapsed().as_secs_f64();
            let shown = Arc::new(shown);
            let simulated = Simulated::new(&shown, setup, study);
            found(Box::new(move |model| {
                model.take_incumbent(job, shown);
                if let Some(simulated) = simulated {
                    model.take_timeline(simulated);
                }
            }));
        };
        vec![self.begin_study(StudyKind::Incumbent, Box::new(work))]
    }

    fn take_incumbent(&mut self, job: u64, shown: Arc<ShownRun>) {
        if self.planning.running.as_ref().is_some_and(|running| running.planning && running.job == job) {
            if self.keep_for_later(&shown, true) {
                return;
            }
            if self.edited() {
                self.planning.take_base(shown);
            } else {
                self.show(shown);
            }
        }
    }
}
