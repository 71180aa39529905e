//! Edits of the shown plan by hand: action on the selected row, undo and redo, and the return to the planner's plan.
//!
//! The history is a list of versions: the planner's plan, then edits. An edit is measured at once and simulated on its
//! own thread. A changed limit keeps the edited plan and measures it again, and the planner's new plan becomes its
//! baseline. Another planner or option shows the planner's plan, and undo restores the edited one.

use std::sync::Arc;

use crate::{
    family::edit::{self, Edit},
    plan::NodeScore,
    planner::{PlannerInfo, Problem, Search},
    tui::{
        action::Action,
        edits::Version,
        effect::Effects,
        model::{Model, Tone, View},
        shown::{ShownRun, Standing},
        simulated::Simulated,
        studies::StudyKind,
        study_job::Finding,
        views::stages::tree,
    },
    workload::NodeIndex,
};

/// Planner named in an edited plan.
static HAND: PlannerInfo = PlannerInfo {
    id: "hand-edited",
    name: "Edited plan",
    paper: "none",
    summary: "a plan edited by hand",
    objective: "time_per_sample",
    unit: "s",
};

impl Model {
    /// Performs an action of the Stages view that changes the plan.
    pub(in crate::tui) fn act_on_plan(&mut self, action: Action) -> Effects {
        match action {
            Action::Undo => return self.step(false),
            Action::Redo => return self.step(true),
            Action::PlannersPlan => return self.planners_plan(),
            _ => {}
        }
        let current = |shown: &Arc<ShownRun>| Arc::ptr_eq(&shown.workload, &self.session.workload) && !self.outdated();
        let Some(shown) = self.planning.shown.clone().filter(|shown| shown.plan().is_some() && current(shown)) else {
            self.message = Some((Tone::Refused, "there is no plan under these limits to edit yet".into()));
            return vec![];
        };
        let Some((plan, _)) = shown.plan() else { return vec![] };
        let Some(edit) = self.meant(action, &shown) else { return vec![] };
        match edit::apply(&shown.workload, &self.session.limits, plan, &edit) {
            Ok(edited) => {
                if let Some(name) = self.previewed().map(str::to_string) {
                    self.note_base();
                    // Undo leads back to the previewed plan.
                    let (plan, what) = (plan.clone(), format!("{name}, unchanged"));
                    self.planning.edits.push(Version::Edited { plan, what, edits: 0, from: shown.planner });
                } else if !self.edited() {
                    self.note_base();
                    if self.planning.edits.is_edited() {
                        self.planning.edits.push(Version::Planners);
                    }
                }
                let (before, from) = match self.planning.edits.now() {
                    Version::Edited { edits, from, .. } => (*edits, *from),
                    Version::Planners => (0, shown.planner),
                };
                self.planning.edits.push(Version::Edited {
                    plan: edited.plan,
                    what: edited.what,
                    edits: before + 1,
                    from,
                });
                let effects = self.show_version();
                self.follow(&edit);
                effects
            }
            Err(refused) => {
                self.message = Some((Tone::Refused, refused.to_string()));
                vec![]
            }
        }
    }

    /// True if the shown plan belongs to other limits or another planner.
    fn outdated(&self) -> bool {
        !self.edited()
            && self.previewed().is_none()
            && (self.planning.stopped
                || self.planning.refusal.is_some()
                || (self.planning.planning() && !self.planning.best_so_far_shown()))
    }

    /// Edit that an action means for the selected row.
    fn meant(&mut self, action: Action, shown: &ShownRun) -> Option<Edit> {
        let (plan, score) = shown.plan()?;
        let path = self.view.behaviour().edited_row(self);
        let stage = path.first().map_or(0, |&stage| stage as usize).min(plan.stages.len().saturating_sub(1));
        // A plan from a file may have stages that its kind of workload does not support.
        if stage >= score.stages.len() {
            self.message = Some((Tone::Refused, "this plan has no such stage to edit".into()));
            return None;
        }
        let nodes = tree::nodes_of(&shown.workload, plan, &path);
        Some(match action {
            Action::BoundaryBack | Action::BoundaryForward => {
                let forwards = action == Action::BoundaryForward;
                if nodes.is_empty() {
                    Edit::Boundary { stage, forwards }
                } else if forwards {
                    Edit::Move { nodes, to: stage + 1 }
                } else if stage == 0 {
                    self.message = Some((Tone::Refused, "this is the first stage".into()));
                    return None;
                } else {
                    Edit::Move { nodes, to: stage - 1 }
                }
            }
            Action::MoreReplicas => Edit::DataParallel { stage, up: true },
            Action::FewerReplicas => Edit::DataParallel { stage, up: false },
            Action::LargerTensor => Edit::TensorParallel { stage, up: true },
            Action::SmallerTensor => Edit::TensorParallel { stage, up: false },
            Action::NextMode | Action::PreviousMode => {
                let nodes = if nodes.is_empty() { plan.stages[stage].nodes.clone() } else { nodes };
                Edit::Choice { nodes, forwards: action == Action::NextMode }
            }
            Action::Merge => Edit::Merge { stage },
            Action::Split => {
                let at = nodes.first().copied().or_else(|| middle(shown, stage, &score.stages[stage].nodes))?;
                Edit::Split { stage, at }
            }
            _ => return None,
        })
    }

    /// Keeps the edited item under the cursor.
    fn follow(&mut self, edit: &Edit) {
        for view in View::ALL {
            view.behaviour().follow(self, edit);
        }
    }

    fn step(&mut self, forwards: bool) -> Effects {
        let left = !self.edited() && self.planning.edits.is_edited();
        let next = if left && !forwards {
            Some(self.planning.edits.at)
        } else if forwards {
            self.planning.edits.at.checked_add(1)
        } else {
            self.planning.edits.at.checked_sub(1)
        };
        let Some(next) = next.filter(|&next| next < self.planning.edits.versions.len()) else {
            let what = if forwards { "redo" } else { "undo" };
            self.message = Some((Tone::Refused, format!("there is no edit to {what}")));
            return vec![];
        };
        if !self.edited() {
            self.note_base();
        }
        self.planning.edits.at = next;
        let effects = self.show_version();
        let (sign, what) = if forwards { ("redone", "again: ") } else { ("undone", "now: ") };
        let now = self.planning.last_edit().map_or_else(|| "the planner's plan".to_string(), str::to_string);
        self.message = Some((Tone::Done, format!("{sign}; {what}{now}")));
        effects
    }

    /// Stores the baseline of an edited plan: the shown plan, or the one shown before the preview.
    fn note_base(&mut self) {
        let base = self.stay().or_else(|| self.planning.shown.clone());
        // An edited plan already has its base.
        if self.planning.edits.base.is_none() || base.as_ref().is_some_and(|base| base.standing != Standing::Edited) {
            self.planning.edits.base = base;
        }
    }

    fn planners_plan(&mut self) -> Effects {
        if self.previewed().is_some() {
            self.note_base();
            if self.planning.edits.is_edited() {
                self.planning.edits.push(Version::Planners);
            }
            self.message = Some((Tone::Done, "back to the planner's plan".into()));
            return self.show_version();
        }
        if !self.edited() {
            self.message = Some((Tone::Refused, "this is the planner's plan".into()));
            return vec![];
        }
        let effects = self.leave_edits();
        self.message = Some((Tone::Done, "back to the planner's plan; u restores the edited one".into()));
        effects
    }

    /// Returns to the planner's plan if an edited one is shown. Undo restores the edited one.
    pub(in crate::tui) fn leave_edits(&mut self) -> Effects {
        if !self.edited() {
            return vec![];
        }
        self.planning.edits.push(Version::Planners);
        self.message = Some((Tone::Done, "your edited plan is kept: u on Stages restores it".into()));
        self.show_version()
    }

    /// Measures the edited plan, if shown, under the limits in force.
    pub(in crate::tui) fn measure_edited(&mut self) -> Effects {
        if !self.edited() {
            return vec![];
        }
        self.message =
            Some((Tone::Done, "the edited plan stays, scored under the new limits; 0 shows the planner's".into()));
        self.show_version()
    }

    /// Shows an edited plan, as a version that undo leads back from.
    pub(in crate::tui) fn show_edited(&mut self, version: Version) -> Effects {
        if !self.edited() {
            self.note_base();
            if self.planning.edits.is_edited() {
                self.planning.edits.push(Version::Planners);
            }
        }
        self.planning.edits.push(version);
        self.show_version()
    }

    /// Shows the current version.
    fn show_version(&mut self) -> Effects {
        let Some(base) = self.planning.edits.base.clone() else { return vec![] };
        let shown = match self.planning.edits.now() {
            Version::Planners => base,
            Version::Edited { plan, what, edits, from } => {
                let problem = Problem {
                    workload: self.session.workload.clone(),
                    limits: self.session.limits.clone(),
                    // The measure of a plan may depend on its planner's options.
                    options: base.options.clone(),
                };
                let mut shown = ShownRun::of_plan(&HAND, &problem, plan.clone());
                shown.standing = Standing::Edited;
                shown.outcome.notes = notes(from, *edits, what, &shown);
                Arc::new(shown)
            }
        };
        self.show(shown.clone());
        self.play_aside(shown)
    }

    /// Simulates a shown plan without delaying the planner.
    pub(in crate::tui) fn play_aside(&mut self, shown: Arc<ShownRun>) -> Effects {
        let setup = self.simulation.setup;
        let work = move |study: &Search, found: &mut dyn FnMut(Finding)| {
            if study.cancelled() {
                return;
            }
            if let Some(simulated) = Simulated::new(&shown, setup, study) {
                found(Box::new(move |model| model.take_timeline(simulated)));
            }
        };
        vec![self.begin_study(StudyKind::Edited, Box::new(work))]
    }

    /// Accepts the timeline of such a simulation, if its plan is still shown.
    pub(in crate::tui) fn take_timeline(&mut self, simulated: Simulated) {
        let current = self.planning.shown.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, &simulated.shown));
        if current && simulated.setup == self.simulation.setup {
            self.show_timeline(Arc::new(simulated));
        }
    }
}

/// Notes for exported files: origin of an edited plan and the limits it violates.
fn notes(from: &PlannerInfo, edits: usize, what: &str, shown: &ShownRun) -> Vec<String> {
    let times = match edits {
        0 => "no edit".to_string(),
        1 => "one edit".to_string(),
        _ => format!("{edits} edits, the last"),
    };
    let mut notes = vec![format!("edited by hand from the plan of {} ({}); {times}: {what}", from.name, from.id)];
    let broken = shown.score.iter().flat_map(|score| &score.violations);
    notes.extend(broken.map(|violation| format!("breaks a limit: {violation}")));
    notes
}

/// Node at which half of a stage's compute is done, in topological order.
fn middle(shown: &ShownRun, stage: usize, scores: &[NodeScore]) -> Option<NodeIndex> {
    let (plan, _) = shown.plan()?;
    let nodes = &plan.stages[stage].nodes;
    let whole: f64 = scores.iter().map(|node| node.compute_s).sum();
    let mut before = 0.0;
    let mut order = shown.workload.topological_order().filter_map(|v| nodes.binary_search(&v).ok());
    let mut last = order.next()?;
    before += scores[last].compute_s;
    for at in order {
        last = at;
        if before >= 0.5 * whole {
            break;
        }
        before += scores[at].compute_s;
    }
    Some(nodes[last])
}
