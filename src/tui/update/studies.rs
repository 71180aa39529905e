//! Start of studies, and their findings.

use crate::{
    planner::Search,
    tui::{
        effect::Effect,
        model::Model,
        studies::StudyKind,
        study_job::{Finding, Study, Work},
    },
};

impl Model {
    /// Starts a study and cancels an older one of its kind.
    pub(in crate::tui) fn begin_study(&mut self, kind: StudyKind, work: Work) -> Effect {
        self.planning.cancel_study(kind);
        let search = Search::new(None, self.session.seed);
        let id = self.planning.studies.begin(kind, search.clone());
        Effect::Study(Study { kind, id, search, work })
    }

    /// Applies a finding, unless a newer study replaced its own.
    pub(in crate::tui) fn take_finding(&mut self, kind: StudyKind, id: u64, finding: Option<Finding>) {
        if !self.planning.studies.is_current(kind, id) {
            return;
        }
        match finding {
            Some(finding) => finding(self),
            None => self.planning.studies.end(kind),
        }
    }
}
