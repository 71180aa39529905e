//! The list of schedules, and the editor of one.

use std::path::Path;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::{Input, backend::crossterm::EventHandler};

use crate::{
    planner::Search,
    schedule::{csv, edit::ScheduleEdit},
    simulate::Schedule,
    study::schedules,
    tui::{
        effect::Effects,
        files::{self, SaveError},
        model::{Model, Tone},
        overlay::Overlay,
        schedule_editor::ScheduleEditor,
        schedule_list::ScheduleList,
        studies::StudyKind,
        study_job::Finding,
    },
};

impl Model {
    /// Opens the list of schedules, and simulates them.
    pub(in crate::tui) fn open_schedules(&mut self) -> Effects {
        let Some(simulated) = self.simulation.simulated.clone() else {
            self.message = Some((Tone::Refused, "there is no simulated plan yet".into()));
            return vec![];
        };
        if simulated.pipeline.runs_once() {
            let reason = simulated.pipeline.refusal(Schedule::GPipe);
            self.message = Some((Tone::Refused, reason.unwrap_or_else(|| "this plan has one order".into())));
            return vec![];
        }
        let list = ScheduleList::new(simulated, self.simulation.own_schedule);
        let (of, asked, limits) = (list.of.clone(), list.simulated(), list.of.shown.memory_limits());
        self.overlay = Some(Overlay::Schedules(Box::new(list)));
        let work = move |study: &Search, found: &mut dyn FnMut(Finding)| {
            let rows = schedules::of_pipeline(&of.pipeline, &asked, &limits, study);
            found(Box::new(move |model| {
                if let Some(Overlay::Schedules(list)) = &mut model.overlay {
                    list.figures = Some(rows);
                }
            }));
        };
        vec![self.begin_study(StudyKind::Schedules, Box::new(work))]
    }

    /// Handles a key in the list of schedules.
    pub(in crate::tui) fn key_in_schedules(&mut self, mut list: Box<ScheduleList>, key: &KeyEvent) -> Effects {
        let last = list.rows.len().saturating_sub(1);
        match key.code {
            KeyCode::Enter => return self.take_schedule(&list),
            KeyCode::Up | KeyCode::Char('k') => list.cursor = list.cursor.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j' | 's') => list.cursor = (list.cursor + 1).min(last),
            KeyCode::Home | KeyCode::PageUp => list.cursor = 0,
            KeyCode::End | KeyCode::PageDown => list.cursor = last,
            _ => {}
        }
        self.overlay = Some(Overlay::Schedules(list));
        vec![]
    }

    fn take_schedule(&mut self, list: &ScheduleList) -> Effects {
        self.planning.cancel_study(StudyKind::Schedules);
        let Some(row) = list.rows.get(list.cursor) else { return vec![] };
        let Some(reason) = &row.refused else {
            self.message = Some((Tone::Done, format!("simulated under {}", row.schedule.name())));
            return self.set_setup(self.simulation.setup.with(row.schedule));
        };
        if self.plannable_schedule(Some(row.schedule)).is_some() {
            return self.plan_for_schedule(Some(row.schedule));
        }
        let repair = row.repair.as_ref().map_or_else(String::new, |repair| format!("; {repair}"));
        self.message = Some((Tone::Refused, format!("{reason}{repair}")));
        vec![]
    }

    /// Opens the editor on the schedule in force, or on the last edits of this plan.
    pub(in crate::tui) fn open_schedule_editor(&mut self) -> Effects {
        let Some(simulated) = self.simulation.simulated.clone() else {
            self.message = Some((Tone::Refused, "there is no simulated plan yet".into()));
            return vec![];
        };
        let kept = self.simulation.schedule_editor.take();
        let same = |kept: &ScheduleEditor| std::sync::Arc::ptr_eq(&kept.of.shown, &simulated.shown);
        let editor = match kept.filter(|kept| same(kept)) {
            Some(kept) => Ok(Box::new(kept.under(simulated))),
            None => ScheduleEditor::new(simulated).map(Box::new),
        };
        match editor {
            Ok(editor) => self.edit_schedule(editor),
            Err(reason) => {
                self.message = Some((Tone::Refused, reason));
                vec![]
            }
        }
    }

    /// Shows the editor, and simulates its schedule if it runs.
    fn edit_schedule(&mut self, editor: Box<ScheduleEditor>) -> Effects {
        let asked = editor.runnable().filter(|_| editor.figures.is_none());
        let of = editor.of.clone();
        self.overlay = Some(Overlay::EditSchedule(editor));
        let Some(schedule) = asked else { return vec![] };
        let work = move |study: &Search, found: &mut dyn FnMut(Finding)| {
            let rows = schedules::of_pipeline(&of.pipeline, &[schedule], &of.shown.memory_limits(), study);
            let figures = rows.ok().and_then(|rows| rows.first().and_then(|row| row.figures));
            found(Box::new(move |model| {
                if let Some(Overlay::EditSchedule(editor)) = &mut model.overlay {
                    editor.figures = figures;
                }
            }));
        };
        vec![self.begin_study(StudyKind::EditedSchedule, Box::new(work))]
    }

    /// Handles a key in the editor.
    pub(in crate::tui) fn key_in_schedule_editor(
        &mut self,
        mut editor: Box<ScheduleEditor>,
        key: &KeyEvent,
    ) -> Effects {
        let moves = key.modifiers.contains(KeyModifiers::SHIFT);
        let (rank, step) = (editor.rank, editor.step);
        let edit = match key.code {
            KeyCode::Esc => {
                self.planning.cancel_study(StudyKind::EditedSchedule);
                if editor.edits() > 0 {
                    self.message = Some((Tone::Done, "the edited schedule is kept until the plan changes".into()));
                    self.simulation.schedule_editor = Some(editor);
                }
                return vec![];
            }
            KeyCode::Enter => return self.take_edited_schedule(editor),
            KeyCode::Char('[' | '<') => Some(ScheduleEdit::Earlier),
            KeyCode::Char(']' | '>') => Some(ScheduleEdit::Later),
            KeyCode::Left if moves => Some(ScheduleEdit::Earlier),
            KeyCode::Right if moves => Some(ScheduleEdit::Later),
            KeyCode::Char('p') => Some(ScheduleEdit::Pair),
            KeyCode::Char('b') => Some(ScheduleEdit::Divide),
            KeyCode::Char('u' | 'U') => {
                let forwards = key.code == KeyCode::Char('U');
                if !editor.undo(forwards) {
                    let what = if forwards { "redo" } else { "undo" };
                    self.message = Some((Tone::Refused, format!("there is no edit to {what}")));
                }
                return self.edit_schedule(editor);
            }
            KeyCode::Char('e') => {
                let name = format!("{}.schedule.csv", editor.of.shown.workload.name);
                self.overlay = Some(Overlay::SaveSchedule(editor, Input::new(name)));
                return vec![];
            }
            KeyCode::Char('n') => {
                editor.go_to_flaw();
                None
            }
            KeyCode::Left => {
                editor.move_to(rank, step.saturating_sub(1));
                None
            }
            KeyCode::Right => {
                editor.move_to(rank, step + 1);
                None
            }
            KeyCode::Up => {
                editor.move_to(rank.saturating_sub(1), step);
                None
            }
            KeyCode::Down => {
                editor.move_to(rank + 1, step);
                None
            }
            KeyCode::PageUp => {
                editor.move_to(rank, step.saturating_sub(10));
                None
            }
            KeyCode::PageDown => {
                editor.move_to(rank, step + 10);
                None
            }
            KeyCode::Home => {
                editor.move_to(rank, 0);
                None
            }
            KeyCode::End => {
                editor.move_to(rank, usize::MAX);
                None
            }
            _ => None,
        };
        let Some(edit) = edit else {
            self.overlay = Some(Overlay::EditSchedule(editor));
            return vec![];
        };
        if let Err(reason) = editor.apply(edit) {
            self.message = Some((Tone::Refused, reason));
        }
        self.edit_schedule(editor)
    }

    /// Simulates the plan under the edited schedule.
    fn take_edited_schedule(&mut self, editor: Box<ScheduleEditor>) -> Effects {
        let Some(schedule) = editor.runnable() else {
            let told = editor.flaws.first().map_or_else(String::new, |flaw| format!("it cannot run yet: {flaw}"));
            self.message = Some((Tone::Refused, told));
            self.overlay = Some(Overlay::EditSchedule(editor));
            return vec![];
        };
        self.planning.cancel_study(StudyKind::EditedSchedule);
        self.simulation.own_schedule = Some(schedule);
        self.simulation.schedule_editor = Some(editor);
        self.message = Some((Tone::Done, "simulated under your schedule; s lists it beside the others".into()));
        self.set_setup(self.simulation.setup.with(schedule))
    }

    /// Handles a key while the file of a schedule is named.
    pub(in crate::tui) fn key_in_save_schedule(
        &mut self,
        editor: Box<ScheduleEditor>,
        mut input: Input,
        key: &KeyEvent,
    ) -> Effects {
        match key.code {
            KeyCode::Esc => return self.edit_schedule(editor),
            KeyCode::Enter if !input.value().trim().is_empty() => {
                let path = files::expand_home(input.value().trim());
                let text = csv::write(editor.schedule());
                match files::save(Path::new(&path), false, |out| out.write_all(text.as_bytes())) {
                    Ok(()) => {
                        let broken = editor.flaws.iter().find(|flaw| flaw.kind.breaks());
                        let told = broken.map_or_else(String::new, |flaw| format!("; it cannot run yet: {flaw}"));
                        self.message = Some((Tone::Done, format!("written to {path}{told}")));
                        return self.edit_schedule(editor);
                    }
                    Err(SaveError::Exists) => {
                        self.message = Some((Tone::Refused, format!("{path} exists; type another name")));
                    }
                    Err(SaveError::Refused(why)) => self.message = Some((Tone::Refused, why)),
                }
            }
            _ => drop(input.handle_event(&Event::Key(*key))),
        }
        self.overlay = Some(Overlay::SaveSchedule(editor, input));
        vec![]
    }
}
