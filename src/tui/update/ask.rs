//! Form of the key `g`: the least value of a limit that reaches a goal, as `plantui seek` computes it.
//!
//! The form has three fields: limit, figure, value. Enter starts the search. Each re-plan is shown as it arrives, and
//! Enter then applies the answer. Closing the form cancels the search.

use std::{sync::Arc, time::Duration};

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use crate::{
    cluster::LimitKind,
    family,
    planner::{self, Problem, Search},
    study::{
        explain::limits_of,
        seek::{self, Goal, SOUGHT, SeekProbe, SeekQuery, SeekResult},
    },
    tui::{
        ask_form::{AskForm, Field},
        effect::Effects,
        model::{Model, Tone},
        overlay::Overlay,
        studies::StudyKind,
        study_job::Finding,
    },
};

/// Time limit of each re-plan.
const EACH: Duration = Duration::from_secs(10);

impl Model {
    /// Opens the form. The initial value is that of the plan on the screen.
    pub(in crate::tui) fn open_ask(&mut self) {
        let heeded = limits_of(self.session.current_planner(), &self.session.workload);
        let kinds: Vec<LimitKind> = SOUGHT.into_iter().filter(|kind| heeded.contains(kind)).collect();
        if kinds.is_empty() || self.planning.refusal.is_some() {
            let why = self
                .planning
                .refusal
                .clone()
                .unwrap_or_else(|| "this planner supports no limit with a least value".into());
            self.message = Some((Tone::Refused, why));
            return;
        }
        let mut form = AskForm {
            kinds,
            kind: 0,
            figures: seek::names(self.session.measure(), family::of(&self.session.workload).predicts()),
            figure: 0,
            value: Input::default(),
            field: Field::Value,
            error: None,
            question: None,
            curve: vec![],
            sought: None,
        };
        form.value = self.suggested(&form);
        self.overlay = Some(Overlay::Ask(Box::new(form)));
    }

    /// Initial value: the figure of the shown plan, written as in a goal.
    fn suggested(&self, form: &AskForm) -> Input {
        let example = Goal::parse(&format!("{}{}1", form.figures[form.figure], form.sign()), self.session.measure());
        let figure = example.map_or(
            match form.figures[form.figure] {
                "batch_time" => seek::GoalFigure::BatchTime,
                "simulated_time_per_sample" => seek::GoalFigure::SampleTime,
                "peak_memory" => seek::GoalFigure::Memory,
                _ => seek::GoalFigure::Planned,
            },
            |goal| goal.figure,
        );
        let goal = Goal {
            figure,
            measure: self.session.measure(),
            at_most: form.sign() == "<=",
            value: self.session.limits.memory_limit(),
        };
        let timeline = self
            .simulation
            .simulated
            .as_ref()
            .map(|simulated| &simulated.timeline)
            .filter(|timeline| timeline.iteration_s > 0.0);
        let score =
            self.planning.shown.as_ref().and_then(|shown| shown.score.as_ref()).filter(|score| score.is_valid());
        let value = match figure {
            seek::GoalFigure::Planned => score.filter(|score| score.measure == goal.measure).map(|score| score.value),
            seek::GoalFigure::SampleTime => timeline.map(|timeline| 1.0 / timeline.samples_per_s),
            seek::GoalFigure::BatchTime => timeline.map(|timeline| timeline.iteration_s),
            seek::GoalFigure::Throughput => timeline.map(|timeline| timeline.samples_per_s),
            seek::GoalFigure::Idle => timeline.map(|timeline| timeline.idle),
            seek::GoalFigure::Memory => timeline.map(crate::simulate::Timeline::peak_memory),
            seek::GoalFigure::Tokens | seek::GoalFigure::Utilisation => {
                self.planning.shown.as_ref().and_then(|shown| {
                    let (plan, _) = shown.plan()?;
                    goal.predicted(&shown.workload, &shown.limits, plan)
                })
            }
        };
        Input::new(value.map(|value| goal.rounded(value)).unwrap_or_default())
    }

    /// Handles a key while the form is open.
    pub(in crate::tui) fn key_in_ask(&mut self, mut form: Box<AskForm>, key: &KeyEvent) -> Effects {
        let around = |at: usize, count: usize, up: bool| (at + if up { 1 } else { count - 1 }) % count;
        let changed = match (key.code, form.field) {
            (KeyCode::Enter, _) => return self.ask_or_take(form),
            (KeyCode::Up | KeyCode::BackTab, field) => {
                form.field = match field {
                    Field::Least => Field::Value,
                    Field::Figure => Field::Least,
                    Field::Value => Field::Figure,
                };
                false
            }
            (KeyCode::Down | KeyCode::Tab, field) => {
                form.field = match field {
                    Field::Least => Field::Figure,
                    Field::Figure => Field::Value,
                    Field::Value => Field::Least,
                };
                false
            }
            (KeyCode::Left | KeyCode::Right, Field::Least) => {
                form.kind = around(form.kind, form.kinds.len(), key.code == KeyCode::Right);
                true
            }
            (KeyCode::Left | KeyCode::Right, Field::Figure) => {
                form.figure = around(form.figure, form.figures.len(), key.code == KeyCode::Right);
                form.value = self.suggested(&form);
                true
            }
            (_, Field::Value) => form.value.handle_event(&Event::Key(*key)).is_some_and(|change| change.value),
            // Typed characters belong to the value.
            (KeyCode::Char(_) | KeyCode::Backspace, _) => {
                form.field = Field::Value;
                form.value.handle_event(&Event::Key(*key)).is_some_and(|change| change.value)
            }
            _ => false,
        };
        if changed {
            self.planning.cancel_study(StudyKind::Ask);
            (form.error, form.question, form.sought) = (None, None, None);
            form.curve.clear();
        }
        self.overlay = Some(Overlay::Ask(form));
        vec![]
    }

    fn ask_or_take(&mut self, mut form: Box<AskForm>) -> Effects {
        if let Some(sought) = form.sought.clone() {
            if let Some(value) = sought.answer {
                let kind = sought.question.least;
                self.message = Some((Tone::Done, format!("{} {}", kind.label(), kind.format(value))));
                return self.set_limits(self.session.limits.with(kind, value));
            }
            self.overlay = Some(Overlay::Ask(form));
            return vec![];
        }
        let goal = match Goal::of_workload(&form.goal(), self.session.measure(), &self.session.workload) {
            Ok(goal) => goal,
            Err(error) => {
                form.error = Some(error.to_string());
                self.overlay = Some(Overlay::Ask(form));
                return vec![];
            }
        };
        let question = SeekQuery { least: form.kinds[form.kind], goal, among: None };
        form.question = Some(question.clone());
        self.overlay = Some(Overlay::Ask(form));
        let planner = self.session.current_planner();
        let problem = Problem {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            options: self.session.options[self.session.planner].clone(),
        };
        let setup = self.simulation.setup;
        let work = move |search: &Search, found: &mut dyn FnMut(Finding)| {
            let asked = seek::SeekProblem { planner, problem: &problem, setup, each: Some(EACH) };
            let (sender, receiver) = crossbeam_channel::unbounded();
            let question = &question;
            std::thread::scope(|scope| {
                let asked = &asked;
                let whole = std::thread::Builder::new()
                    .name("ask".into())
                    .stack_size(planner::STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        seek::seek(asked, question, search, &mut |step| drop(sender.send(step.clone())))
                    });
                for step in receiver {
                    found(Box::new(move |model: &mut Model| model.take_step(step)));
                }
                if let Some(sought) = whole.ok().and_then(|thread| thread.join().ok()) {
                    found(Box::new(move |model: &mut Model| model.take_sought(sought)));
                }
            });
        };
        vec![self.begin_study(StudyKind::Ask, Box::new(work))]
    }

    fn take_step(&mut self, step: SeekProbe) {
        if let Some(Overlay::Ask(form)) = &mut self.overlay {
            let at = form.curve.partition_point(|other| other.value < step.value);
            form.curve.insert(at, step);
        }
    }

    fn take_sought(&mut self, sought: SeekResult) {
        if let Some(Overlay::Ask(form)) = &mut self.overlay {
            form.sought = Some(Arc::new(sought));
        }
    }
}
