//! Transitions of the state, one file per subject; here those by actions and by reports of the worker.
//!
//! They are methods of [`Model`] and return their effects outside of the state. A view's own are in its folder.

mod adjust;
mod ask;
mod carried;
mod changes;
mod demo;
mod drawing;
mod edits;
mod enough;
mod exchange;
mod fitting;
mod floor;
mod incumbent;
mod input;
mod layout;
mod left_out;
mod palette;
mod playing;
mod reload;
mod remedies;
mod schedules;
pub(super) mod session;
mod studies;
mod suggestions;
mod workload;
mod would_help;

pub(in crate::tui) use floor::LimitStep;

use std::{path::Path, sync::Arc, time::Duration};

use tui_input::Input;

use crate::{
    cluster::{LimitKind, Limits},
    planner::{Problem, Search, Status},
    simulate::{Schedule, Setup},
    tui::{
        action::{Action, Scope},
        convergence::{Convergence, Point},
        effect::{Effect, Effects},
        model::{Focus, Model, Running, Tone, View},
        open_form::OpenForm,
        overlay::Overlay,
        shown::ShownRun,
        simulated::Simulated,
        theme,
        widget::filter::Filter,
        worker::{Job, News, Report, Task},
    },
};

impl Model {
    /// Scopes in force, most specific first.
    pub(in crate::tui) fn scopes(&self) -> Vec<Scope> {
        let mut scopes = vec![];
        match self.focus {
            Focus::Panel => scopes.push(Scope::Panel),
            Focus::Layout => scopes.push(Scope::Layout),
            Focus::View => {}
        }
        if self.remedies_heard() {
            scopes.push(Scope::Remedies);
        }
        if self.suggestion().is_some() {
            scopes.push(Scope::Suggestions);
        }
        scopes.extend(self.view.behaviour().scopes(self));
        scopes.push(Scope::Lists);
        scopes.extend(self.session.workload.training().map(|_| Scope::Trained));
        scopes.push(Scope::Everywhere);
        scopes
    }

    /// Performs an action.
    pub(in crate::tui) fn act(&mut self, action: Action) -> Effects {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Back => return self.back(),
            Action::Show(view) => {
                let stage = self.view.behaviour().stage(self);
                if stage.is_some() && stage != self.pointed.at_opening {
                    self.pointed.stage = stage;
                }
                self.view = view;
                self.focus = Focus::View;
                let effects = view.behaviour().opened(self);
                if let Some(stage) = self.pointed.stage.filter(|stage| view.behaviour().stage(self) != Some(*stage)) {
                    view.behaviour().point_at(self, stage);
                }
                self.pointed.at_opening = view.behaviour().stage(self);
                return effects;
            }
            Action::NextPanel => return self.turn_focus(true),
            Action::PreviousPanel => return self.turn_focus(false),
            Action::FoldPanel => {
                let visible = self.panel_visible();
                self.panel.folded = Some(visible);
                self.focus = if visible { Focus::View } else { Focus::Panel };
            }
            Action::PlayBatch => self.play_or_hold(),
            Action::Slower => self.change_speed(false),
            Action::Faster => self.change_speed(true),
            Action::Baseline => self.set_baseline(),
            Action::WouldHelp => return self.ask_what_would_help(),
            Action::ShowWouldHelp => self.planning.fold_what_would_help(),
            _ if self.focus == Focus::Layout
                && let Some(effects) = self.act_on_layout(action) =>
            {
                return effects;
            }
            _ if self.remedies_heard()
                && let Some(effects) = self.act_on_remedies(action) =>
            {
                return effects;
            }
            _ if self.suggestion().is_some() && Self::is_for_suggestions(action) => {
                return self.act_on_suggestion(action);
            }
            Action::Decrease
            | Action::Increase
            | Action::DecreaseLarge
            | Action::IncreaseLarge
            | Action::Edit
            | Action::Reset => return self.act_on_row(action),
            Action::BoundaryBack
            | Action::BoundaryForward
            | Action::MoreReplicas
            | Action::FewerReplicas
            | Action::LargerTensor
            | Action::SmallerTensor
            | Action::NextMode
            | Action::PreviousMode
            | Action::Merge
            | Action::Split
            | Action::Undo
            | Action::Redo
            | Action::PlannersPlan => return self.act_on_plan(action),
            Action::FitMemory => return self.fit(LimitKind::Memory),
            Action::FitDevices => return self.fit(LimitKind::Devices),
            Action::Convergence => self.planning.chart = !self.planning.chart,
            Action::NextObjective => return self.next_objective(),
            Action::Find => self.overlay = Some(Overlay::Find(Input::default())),
            Action::Groups => self.toggle_groups(),
            Action::FailMachine => return self.fail_machine(),
            Action::Schedules => return self.open_schedules(),
            Action::EditSchedule => return self.open_schedule_editor(),
            Action::NextSchedule => return self.next_schedule(),
            Action::PlanForSchedule => return self.plan_for_schedule(None),
            Action::HowSimulated => self.go_to_simulator_rows(),
            Action::Ask => self.open_ask(),
            Action::Pin => self.pin(),
            Action::Help => self.overlay = Some(Overlay::Help(Filter::default())),
            Action::Palette => self.overlay = Some(Overlay::Palette(Filter::default())),
            Action::NextTheme => self.next_theme(),
            Action::Export => return self.open_export(None),
            Action::Open => {
                self.overlay = Some(Overlay::Open(OpenForm::new(
                    Path::new("."),
                    &self.session.recent.files(&self.session.workload),
                )));
            }
            Action::Reload => return self.reload(),
            Action::Copy => return self.copy_plan(),
            Action::SaveScreen => self.save_screen(),
            Action::SaveSlide => self.save_slide(),
            _ if self.focus == Focus::Panel && self.move_in_panel(action) => {}
            _ => return self.view.behaviour().act(self, action),
        }
        vec![]
    }

    fn back(&mut self) -> Effects {
        if self.view.behaviour().leave(self) {
            return vec![];
        }
        if self.convergence_shown() {
            self.planning.chart = false;
        } else if self.suggestion().is_some() {
            self.planning.would_help.selected = None;
        } else if self.previewed().is_some() {
            return self.end_preview();
        } else if let Some(running) = &self.planning.running {
            running.search.cancel();
        } else if self.view.behaviour().leave_last(self) {
            return vec![];
        } else if self.message.is_none()
            && self.focus == Focus::Panel
            && self.panel.folded.unwrap_or(self.appearance.size.0 < 100)
        {
            self.focus = Focus::View;
        }
        vec![]
    }

    fn move_in_panel(&mut self, action: Action) -> bool {
        let last = self.panel_rows().len().saturating_sub(1);
        self.panel.cursor = match action {
            Action::Up => self.panel.cursor.saturating_sub(1),
            Action::Down => (self.panel.cursor + 1).min(last),
            Action::PageUp | Action::First => 0,
            Action::PageDown | Action::Last => last,
            _ => return false,
        };
        true
    }

    fn next_schedule(&mut self) -> Effects {
        let playable = self
            .simulation
            .simulated
            .as_ref()
            .map_or(Schedule::ALL.to_vec(), |simulated| simulated.pipeline.playable());
        let simulated =
            self.simulation.simulated.as_ref().map_or(self.simulation.setup.schedule, |simulated| simulated.schedule());
        let at = playable.iter().position(|s| *s == simulated).map_or(0, |at| at + 1);
        let next = playable.get(at % playable.len().max(1)).copied().unwrap_or(self.simulation.setup.schedule);
        let effects = self.set_setup(self.simulation.setup.with(next));
        self.tell_left_out(&playable, next);
        effects
    }

    /// Changes schedule or settings, and simulates the shown plan and those of Compare again.
    pub(in crate::tui) fn set_setup(&mut self, setup: Setup) -> Effects {
        self.simulation.setup = setup;
        let mut effects = self.play_again();
        effects.extend(self.compare_again());
        effects
    }

    fn play_again(&mut self) -> Effects {
        if let Some(shown) = self.planning.shown.clone().filter(|_| self.edited() || self.previewed().is_some()) {
            return self.play_aside(shown);
        }
        // A running plan could still arrive with the old simulation: request all of it again.
        if self.planning.running.as_ref().is_some_and(|r| r.planning) {
            return self.replan();
        }
        let Some(shown) = self.planning.shown.clone().filter(|shown| shown.outcome.plan.is_some()) else {
            return vec![];
        };
        vec![self.submit(Task::Simulate { shown, setup: self.simulation.setup }, None)]
    }

    fn next_theme(&mut self) {
        let names = theme::names(self.appearance.theme_directory.as_deref());
        let at = names.iter().position(|name| *name == self.appearance.theme.name).map_or(0, |i| (i + 1) % names.len());
        self.load_theme(&names[at]);
    }

    /// Changes the colours.
    pub(in crate::tui) fn load_theme(&mut self, name: &str) {
        match theme::load(name, self.appearance.theme_directory.as_deref(), self.appearance.depth) {
            Ok(theme) => {
                self.message = Some((Tone::Done, format!("theme {}", theme.name)));
                self.appearance.theme = theme;
                self.planning.generation += 1;
            }
            Err(error) => self.message = Some((Tone::Refused, error.to_string())),
        }
    }

    /// Sets the limits, and plans again if they differ.
    pub(in crate::tui) fn set_limits(&mut self, limits: Limits) -> Effects {
        if limits == self.session.limits {
            return vec![];
        }
        self.session.limits = limits;
        self.compare_outdated();
        let mut effects = self.measure_edited();
        effects.append(&mut self.replan());
        effects
    }

    /// Plans with the inputs at the left.
    pub(in crate::tui) fn replan(&mut self) -> Effects {
        let planner = self.session.current_planner();
        self.planning.stopped = false;
        self.planning.step = None;
        self.views.compare.preview = None;
        let mut effects = self.sweep_outdated();
        self.planning.refusal = self.session.refusals[self.session.planner].clone();
        if self.planning.refusal.is_some() {
            if let Some(running) = self.planning.running.take() {
                running.search.cancel();
            }
            return effects;
        }
        let problem = Problem {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            options: self.session.options[self.session.planner].clone(),
        };
        effects.push(self.submit(
            Task::Plan { planner, problem: problem.into(), setup: self.simulation.setup },
            self.session.deadline,
        ));
        effects
    }

    /// Makes a job of a task, and records it as running.
    pub(in crate::tui) fn submit(&mut self, task: Task, deadline: Option<Duration>) -> Effect {
        self.planning.jobs += 1;
        let search = Search::new(deadline, self.session.seed);
        // A change before the last plan arrives does not restart the wait: the screen stays in its waiting state.
        let planning = matches!(task, Task::Plan { .. });
        let since =
            self.planning.running.as_ref().filter(|r| r.planning && planning).map_or(self.appearance.now, |r| r.since);
        if planning {
            self.planning.convergence = Convergence::of(self.session.measure());
        }
        self.planning.ask(self.appearance.now);
        self.planning.running = Some(Running {
            job: self.planning.jobs,
            search: search.clone(),
            since,
            begun: self.appearance.now,
            planning,
        });
        Effect::Submit(Job { id: self.planning.jobs, task, search })
    }

    /// Samples progress and incumbent of the running search; called once per frame.
    pub(in crate::tui) fn sample(&mut self) -> Effects {
        if let Some(running) = self.planning.running.as_ref().filter(|running| running.planning) {
            let progress = running.search.progress();
            let at_s = self.appearance.now.duration_since(running.begun).as_secs_f64();
            self.planning.convergence.sample(Point { at_s, best: progress.best, bound: progress.bound });
        }
        let mut effects = self.take_sensible_devices();
        effects.append(&mut self.look_for_incumbent());
        effects.append(&mut self.look_what_would_help());
        effects
    }

    /// Handles a report of the worker.
    pub(in crate::tui) fn on_report(&mut self, report: Report) -> Effects {
        let latest = self.planning.running.as_ref().is_some_and(|r| r.job == report.job);
        match report.news {
            News::Planned { shown, simulated } => {
                if latest && let Some(effects) = self.answer_step(&shown) {
                    return effects;
                }
                self.take_plan(shown.clone(), latest);
                if let Some(simulated) = simulated {
                    self.take_simulated(simulated, latest);
                }
                let mut effects = self.try_axis();
                effects.append(&mut self.take_enough_devices(&shown));
                if latest {
                    effects.append(&mut self.look_for_remedies(&shown));
                }
                if self.view == View::Hardware {
                    effects.append(&mut self.fill_hardware());
                }
                return effects;
            }
            News::Simulated(simulated) => self.take_simulated(simulated, latest),
            News::Unplayed(why) if latest => self.message = Some((Tone::Refused, why)),
            News::Crashed(what) if latest => {
                self.planning.stopped = true;
                self.message = Some((Tone::Refused, format!("a bug of plantui, please report it: {what}")));
            }
            News::Loaded(Ok(workload)) => return self.take_workload(workload),
            News::Loaded(Err(error)) => self.not_loaded(error.to_string()),
            News::PlanLoaded(loaded) => self.take_loaded_plan(*loaded),
            News::Reloaded { number, read } => return self.take_reloaded(number, read),
            News::Exported(exported) => self.take_export(exported),
            News::Measured { source, format, bytes } => {
                if let Some(Overlay::Export(form)) = &mut self.overlay {
                    form.take_size(&source, format, bytes);
                }
            }
            News::ErrandCrashed(what) => {
                self.message = Some((
                    Tone::Refused,
                    format!(
                        "this action failed, which is a bug of plantui, please report it: \
                        {what}"
                    ),
                ));
            }
            News::Found { kind, id, finding } => self.take_finding(kind, id, finding),
            News::Done if latest => self.planning.running = None,
            _ => {}
        }
        vec![]
    }

    /// Shows a timeline if it belongs to the shown plan, or keeps it for the plan behind a preview.
    fn take_simulated(&mut self, simulated: Arc<Simulated>, latest: bool) {
        if !self.keep_simulated_for_later(&simulated) && self.is_wanted(&simulated, latest) {
            self.show_timeline(simulated);
        }
    }

    /// True if a timeline belongs to the shown plan and to the current setup.
    fn is_wanted(&self, simulated: &Simulated, latest: bool) -> bool {
        let current = self.planning.shown.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, &simulated.shown));
        current && (latest || self.simulation.setup == simulated.setup)
    }

    /// Shows a new plan. The plan of an older job is also shown while its successor runs, unless it has no plan.
    fn take_plan(&mut self, shown: Arc<ShownRun>, latest: bool) {
        if latest {
            let (best, bound) = (shown.outcome.objective, shown.outcome.lower_bound);
            self.planning.convergence.sample(Point { at_s: shown.seconds, best, bound });
        }
        self.note_planned(&shown);
        if self.keep_for_later(&shown, latest) {
            if latest && let Some(running) = &mut self.planning.running {
                running.planning = false;
            }
            return;
        }
        let empty = shown.outcome.plan.is_none();
        if shown.outcome.status == Status::Cancelled && empty {
            if latest {
                self.planning.stopped = true;
                let reason = if self.planning.running.as_ref().is_some_and(|r| r.search.deadline_passed()) {
                    "the deadline passed before a plan was found"
                } else {
                    "stopped before a plan was found"
                };
                self.message = Some((Tone::Refused, reason.into()));
            }
            return;
        }
        if self.edited() {
            if latest && let Some(running) = &mut self.planning.running {
                running.planning = false;
            }
            self.planning.take_base(shown);
            return;
        }
        if empty {
            self.simulation.simulated = None;
        }
        if latest && let Some(running) = &mut self.planning.running {
            running.planning = false;
        }
        self.show(shown);
    }

    /// Puts a plan on the screen.
    pub(in crate::tui) fn show(&mut self, shown: Arc<ShownRun>) {
        self.planning.shown = Some(shown);
        self.planning.generation += 1;
        self.tell_plan_changed();
    }

    /// Notifies every view of a changed plan.
    pub(in crate::tui) fn tell_plan_changed(&mut self) {
        for view in View::ALL {
            view.behaviour().plan_changed(self);
        }
    }

    /// Puts a plan's timeline on the screen.
    pub(in crate::tui) fn show_timeline(&mut self, simulated: Arc<Simulated>) {
        self.simulation.playing.at_s = self.simulation.playing.at_s.clamp(0.0, simulated.timeline.iteration_s.max(0.0));
        for view in View::ALL {
            view.behaviour().simulated(self, &simulated);
        }
        self.note_simulated(&simulated);
        self.note_change(&simulated);
        self.simulation.simulated = Some(simulated);
    }
}
