//! History of the edits of a plan by hand: the planner's plan, then edits.
//!
//! The history lasts as long as the workload, with at most [`MOST`] versions.

use std::sync::Arc;

use super::shown::ShownRun;
use crate::{plan::Plan, planner::PlannerInfo, units};

/// Maximum number of versions kept.
const MOST: usize = 500;

/// State of the plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Version {
    /// The planner's plan, always the newest one.
    Planners,
    /// An edited plan.
    Edited {
        /// The plan.
        plan: Plan,
        /// Effect of the last edit.
        what: String,
        /// Edits since the planner's plan.
        edits: usize,
        /// Planner of the original plan.
        from: &'static PlannerInfo,
    },
}

/// Edit history.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// The newest plan that was not edited.
    pub(super) base: Option<Arc<ShownRun>>,
    /// Versions, oldest first; starts with [`Version::Planners`] unless the oldest were dropped.
    pub(super) versions: Vec<Version>,
    /// Index of the shown version.
    pub(super) at: usize,
}

impl Edits {
    /// The shown version.
    pub(super) fn now(&self) -> &Version {
        self.versions.get(self.at).unwrap_or(&Version::Planners)
    }

    /// Appends a version after the shown one and shows it.
    pub(super) fn push(&mut self, version: Version) {
        if self.versions.is_empty() {
            self.versions.push(Version::Planners);
        }
        self.versions.truncate(self.at + 1);
        self.versions.push(version);
        let dropped = self.versions.len().saturating_sub(MOST);
        self.versions.drain(..dropped);
        self.at = self.versions.len() - 1;
    }

    /// True if the shown version is an edited plan.
    pub(super) fn is_edited(&self) -> bool {
        matches!(self.now(), Version::Edited { .. })
    }

    /// Effect of the last edit.
    pub(super) fn last(&self) -> Option<&str> {
        match self.now() {
            Version::Edited { what, .. } => Some(what),
            Version::Planners => None,
        }
    }

    /// Comparison of the edited plan with the planner's: `3.4% slower than Piper's`.
    pub(super) fn against(&self, edited: &ShownRun) -> Option<String> {
        let base = self.base.as_ref()?;
        // The planner's plan for these limits, or for the changed file, has not arrived yet.
        if base.limits != edited.limits || !Arc::ptr_eq(&base.workload, &edited.workload) {
            return None;
        }
        let name = possessive(base.planner.name);
        let Some((plan, _)) = base.plan() else { return Some(format!("{} has no plan", base.planner.name)) };
        let (own, value) = (edited.outcome.objective?, base.outcome.objective?);
        // Values of different measures cannot be compared.
        let same = edited.plan()?.0.measure.name() == plan.measure.name() && value != 0.0;
        let rate = if plan.measure.larger_is_better() { own / value } else { value / own };
        same.then(|| match units::faster(rate) {
            alike if (rate - 1.0).abs() <= units::AS_FAST => format!("{alike} as {name}"),
            words => format!("{words} than {name}"),
        })
    }
}

/// Possessive form: `Piper's`, `DAPPLE's`, `classes'`.
fn possessive(name: &str) -> String {
    if name.ends_with('s') { format!("{name}'") } else { format!("{name}'s") }
}
