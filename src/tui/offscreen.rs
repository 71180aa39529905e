//! Screen without a terminal: keys in, a buffer out, planning in place.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers},
};

use super::{
    action::Action,
    effect::{Effect, Effects},
    model::{Focus, Model, View},
    request::{ScreenError, ScreenRequest},
    shown::ShownRun,
    side_job, study_job,
    tour::Does,
    worker::{self, Job, News, Report},
};
use crate::{planner::Search, tui::frame};

/// Screen of a given size in memory. A finished plan counts as taking no time.
pub struct Offscreen {
    pub(super) model: Model,
    terminal: Terminal<TestBackend>,
    held: Option<Vec<Job>>,
    /// Number of findings that a slow study delivers at once, and its pending reports.
    slow: Option<usize>,
    to_come: Vec<Report>,
    /// True if the user quit.
    pub quit: bool,
    /// Reason why the session was not stored at the end.
    pub unkept: Option<String>,
    /// Last copied text.
    pub clipboard: Option<String>,
}

impl Offscreen {
    /// Creates the screen and plans the workload.
    ///
    /// # Errors
    /// Same as [`super::run`].
    pub fn new(request: ScreenRequest, width: u16, height: u16) -> Result<Self, ScreenError> {
        let mut model = Model::new(request)?;
        model.start_at((width, height));
        let Ok(terminal) = Terminal::new(TestBackend::new(width, height));
        let mut screen = Offscreen {
            model,
            terminal,
            held: None,
            slow: None,
            to_come: vec![],
            quit: false,
            unkept: None,
            clipboard: None,
        };
        let effects = screen.model.replan();
        screen.perform(effects);
        Ok(screen)
    }

    /// Keeps jobs back until [`Offscreen::release`], to imitate a slow planner.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Runs the last job kept back, as the worker would. Returns the number of jobs dropped for it.
    pub fn release(&mut self) -> usize {
        let mut jobs = self.held.take().unwrap_or_default();
        let Some(job) = jobs.pop() else { return 0 };
        self.perform(vec![Effect::Submit(job)]);
        jobs.len()
    }

    /// Limits a study to this number of findings until [`Offscreen::finish_studies`], to imitate a slow one.
    pub fn slow_studies(&mut self, findings: usize) {
        self.slow = Some(findings);
    }

    /// Delivers the pending findings of studies.
    pub fn finish_studies(&mut self) {
        self.slow = None;
        for report in std::mem::take(&mut self.to_come) {
            let effects = self.model.on_report(report);
            self.perform(effects);
        }
    }

    /// Advances the time, as the loop does between two frames.
    pub fn wait(&mut self, time: Duration) {
        self.model.appearance.now += time;
        self.model.run_playhead();
        let effects = self.model.sample();
        self.perform(effects);
        let effects = self.model.play_demo();
        self.perform(effects);
    }

    /// True if the loop would wake without a key. An idle screen does not.
    pub fn wakes(&self) -> bool {
        self.model.planning.running.is_some()
            || self.model.planning.would_help.due().or(self.model.demo_due()).or(self.model.motion_due()).is_some()
    }

    /// Running search, for tests that act as the planner.
    pub fn search(&self) -> Option<Search> {
        self.model.planning.running.as_ref().map(|running| running.search.clone())
    }

    /// Handles an event.
    pub fn event(&mut self, event: &Event) {
        let effects = self.model.on_event(event);
        self.perform(effects);
    }

    /// Presses a key.
    pub fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.event(&Event::Key(KeyEvent::new(code, modifiers)));
    }

    /// Types a text, letter by letter.
    pub fn keys(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c), KeyModifiers::NONE);
        }
    }

    /// Performs an action.
    pub fn act(&mut self, action: Action) {
        let effects = self.model.act(action);
        self.perform(effects);
    }

    /// Performs one action of the tour.
    pub(super) fn does(&mut self, does: Does) {
        let effects = self.model.perform(does);
        self.perform(effects);
    }

    /// Moves the focus to the left panel or the view.
    pub fn focus(&mut self, focus: Focus) {
        self.model.focus = focus;
    }

    /// Shown view.
    pub fn view(&self) -> View {
        self.model.view
    }

    /// Changes the size.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.event(&Event::Resize(width, height));
    }

    /// Draws a frame.
    pub fn draw(&mut self) -> &Buffer {
        let model = &mut self.model;
        let Ok(_) = self.terminal.draw(|frame| frame::show(frame, model));
        self.terminal.backend().buffer()
    }

    /// Draws a frame and returns its text, one line per row.
    pub fn text(&mut self) -> String {
        let buffer = self.draw();
        let width = usize::from(buffer.area.width).max(1);
        let row = |cells: &[ratatui::buffer::Cell]| -> String {
            let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
            text.trim_end().to_string()
        };
        buffer.content.chunks(width).map(row).collect::<Vec<_>>().join("\n")
    }

    fn perform(&mut self, effects: Effects) {
        for effect in effects {
            match effect {
                Effect::Submit(job) => match &mut self.held {
                    Some(held) => held.push(job),
                    None => self.work(&job),
                },
                Effect::Aside(side_job) => {
                    let effects = self.model.on_report(side_job::perform(side_job));
                    self.perform(effects);
                }
                Effect::Study(study) => {
                    let mut reports = vec![];
                    study_job::perform(study, &mut |report| reports.push(report));
                    let now = self.slow.map_or(reports.len(), |findings| findings.min(reports.len()));
                    self.to_come.extend(reports.drain(now..));
                    for report in reports {
                        let effects = self.model.on_report(report);
                        self.perform(effects);
                    }
                }
                Effect::Clipboard(text) => self.clipboard = Some(text),
                Effect::Suspend => self.model.appearance.now = Instant::now(),
                Effect::Quit => {
                    self.quit = true;
                    self.unkept = self.model.keep_session().err();
                }
            }
        }
    }

    fn work(&mut self, job: &Job) {
        let mut reports = vec![];
        worker::perform(job, &mut |report| reports.push(report));
        // Plans take no time here, so that pictures and automatic studies do not depend on the load of this machine.
        for mut report in reports {
            if let News::Planned { shown, simulated } = &mut report.news {
                *shown = Arc::new(ShownRun { seconds: 0.0, ..ShownRun::clone(shown) });
                *simulated = simulated.take().map(|own| Arc::new(own.under(shown.clone())));
            }
            let effects = self.model.on_report(report);
            self.perform(effects);
        }
    }
}
