//! Dispatch of terminal events to the state.

use ratatui::{
    crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
    layout::Position,
};
use tui_input::backend::crossterm::EventHandler;

use crate::tui::{
    action::{Action, Scope, TABLE},
    effect::{Effect, Effects},
    model::{Focus, Hit, Model, Tone, View},
    overlay::{self, Overlay},
    panel_rows::PanelRow,
    studies::StudyKind,
    widget::{filter::Filter, list::moved},
};

/// Maximum length of a pasted text, characters: more than any path or value has.
const MOST_PASTED: usize = 1024;

impl Model {
    /// Handles an event of the terminal.
    pub(in crate::tui) fn on_event(&mut self, event: &Event) -> Effects {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.on_key(key),
            Event::Mouse(mouse) => self.on_mouse(*mouse),
            Event::Paste(text) => self.paste(text),
            Event::Resize(width, height) => {
                self.start_at((*width, *height));
                vec![]
            }
            _ => vec![],
        }
    }

    /// Types a pasted text into a text field, line breaks as blanks. Without a field it is refused, because its letters
    /// would act as keys.
    fn paste(&mut self, text: &str) -> Effects {
        if self.demo.is_some() {
            return vec![];
        }
        if self.overlay.is_none() && self.panel.editing.is_none() {
            self.message = Some((Tone::Refused, "no text field is active: the pasted text is ignored".into()));
            return vec![];
        }
        let typed = text.trim().chars().map(|c| if c.is_whitespace() { ' ' } else { c });
        let mut effects = vec![];
        for c in typed.filter(|c| !c.is_control()).take(MOST_PASTED) {
            effects.append(&mut self.on_key(&KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
        effects
    }

    fn on_key(&mut self, key: &KeyEvent) -> Effects {
        let had_message = self.message.take().is_some();
        self.pause_what_would_help();
        // These two work in any state.
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return vec![Effect::Quit],
                KeyCode::Char('z') => return vec![Effect::Suspend],
                _ => {}
            }
        }
        if self.demo.is_some() {
            self.key_in_demo(key);
            return vec![];
        }
        if let Some(overlay) = self.overlay.take() {
            return self.key_in_overlay(overlay, key);
        }
        if self.panel.editing.is_some() {
            return self.type_value(key);
        }
        match self.appearance.keymap.lookup(key, &self.scopes()) {
            Some(Action::Back) if had_message && self.planning.running.is_none() => vec![],
            Some(action) => self.act(action),
            None => {
                let belongs = self.appearance.keymap.elsewhere(key);
                let told = belongs.map(|scope| match scope {
                    Scope::Trained => "this key is for models to be trained, such as `plantui llama-3-70b`".into(),
                    scope => format!("this key does nothing here: it belongs to {}", scope.title()),
                });
                self.message = told.map(|told| (Tone::Refused, told));
                vec![]
            }
        }
    }

    pub(in crate::tui) fn key_in_overlay(&mut self, overlay: Overlay, key: &KeyEvent) -> Effects {
        let keeps = matches!(overlay, Overlay::EditSchedule(_) | Overlay::SaveSchedule(..));
        if key.code == KeyCode::Esc && !keeps {
            // Free the cores: nobody waits for the answers any more.
            self.planning.cancel_study(StudyKind::Ask);
            self.planning.cancel_study(StudyKind::Schedules);
            return vec![];
        }
        match overlay {
            Overlay::Schedules(list) => self.key_in_schedules(list, key),
            Overlay::EditSchedule(editor) => self.key_in_schedule_editor(editor, key),
            Overlay::SaveSchedule(editor, input) => self.key_in_save_schedule(editor, input, key),
            Overlay::Help(mut filter) => {
                let count = overlay::help_order(&filter, self).len();
                if key.code != KeyCode::Enter {
                    key_in_list(&mut filter, key, count);
                    self.overlay = Some(Overlay::Help(filter));
                }
                vec![]
            }
            Overlay::Palette(mut filter) => {
                let matches = self.palette(&filter);
                if key.code == KeyCode::Enter {
                    return matches
                        .into_iter()
                        .nth(filter.cursor)
                        .map_or_else(Vec::new, |command| self.command(command));
                }
                key_in_list(&mut filter, key, matches.len());
                self.overlay = Some(Overlay::Palette(filter));
                vec![]
            }
            Overlay::Export(form) => self.key_in_export(form, key),
            Overlay::Open(form) => self.key_in_open(form, key),
            Overlay::Range(input) => self.key_in_range(input, key),
            Overlay::Ask(form) => self.key_in_ask(form, key),
            Overlay::Rename(pin, input) => self.key_in_rename(pin, input, key),
            Overlay::Find(mut input) => {
                let Some(tree) = self.view.behaviour().tree(self) else { return vec![] };
                if key.code == KeyCode::Enter {
                    if !tree.needle.is_empty() && !tree.find(true, true) {
                        self.message = Some((Tone::Refused, format!("no row with `{}`", tree.needle)));
                    }
                    return vec![];
                }
                input.handle_event(&Event::Key(*key));
                tree.needle = input.value().to_string();
                tree.find(true, true);
                self.overlay = Some(Overlay::Find(input));
                vec![]
            }
        }
    }

    /// Runs an entry of the action table, after moving to a place in its scope.
    pub(in crate::tui) fn run_entry(&mut self, index: usize) -> Effects {
        let entry = &TABLE[index];
        match entry.scope {
            Scope::Panel => self.focus = Focus::Panel,
            Scope::Layout => self.focus = Focus::Layout,
            Scope::Suggestions => self.go_to_suggestions(),
            Scope::Lists | Scope::Trained | Scope::Everywhere => {}
            scope if self.view.behaviour().turn_to(self, scope) => {}
            scope => self.view = View::of_scope(scope).unwrap_or(self.view),
        }
        if !matches!(entry.scope, Scope::Panel | Scope::Layout | Scope::Lists | Scope::Trained | Scope::Everywhere) {
            self.focus = Focus::View;
        }
        self.act(entry.action)
    }

    fn on_mouse(&mut self, mouse: MouseEvent) -> Effects {
        let position = Position::new(mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::Down(_) if self.demo.is_some() => {
                self.end_demo();
                vec![]
            }
            MouseEventKind::Down(MouseButton::Left) => {
                self.message = None;
                if let Some(Overlay::EditSchedule(editor) | Overlay::SaveSchedule(editor, _)) =
                    self.overlay.take_if(|open| matches!(open, Overlay::EditSchedule(_) | Overlay::SaveSchedule(..)))
                {
                    self.simulation.schedule_editor = Some(editor);
                    return vec![];
                }
                if self.overlay.take().is_some() || self.panel.editing.take().is_some() {
                    return vec![];
                }
                self.click(position)
            }
            MouseEventKind::Drag(MouseButton::Left) if self.overlay.is_none() => {
                if let Some(hit) = self.appearance.hit(position) {
                    self.view.behaviour().drag(self, hit, position);
                }
                vec![]
            }
            MouseEventKind::ScrollUp => self.wheel(position, false),
            MouseEventKind::ScrollDown => self.wheel(position, true),
            _ => vec![],
        }
    }

    fn click(&mut self, position: Position) -> Effects {
        match self.appearance.hit(position) {
            Some(Hit::Tab(view)) => {
                self.focus = Focus::View;
                return self.act(Action::Show(view));
            }
            Some(Hit::Panel(row)) => {
                self.focus = Focus::Panel;
                self.select_panel_row(row);
                match row {
                    PanelRow::Planner(i) => return self.choose(i),
                    PanelRow::Others => self.fold_others(!self.panel.others_unfolded),
                    PanelRow::Limit(_)
                    | PanelRow::Dial(_)
                    | PanelRow::Option(_)
                    | PanelRow::Schedule
                    | PanelRow::Setting(_) => {}
                }
            }
            Some(Hit::Step(row, up)) => {
                self.focus = Focus::Panel;
                self.select_panel_row(row);
                return self.act(if up { Action::Increase } else { Action::Decrease });
            }
            Some(Hit::Knob(at)) => {
                self.focus = Focus::Layout;
                self.layout.at = at;
                return self.try_axis();
            }
            Some(Hit::Remedy(row)) => {
                self.focus = Focus::View;
                let again = std::mem::replace(&mut self.planning.remedies.selected, row) == row;
                return if again { self.act(Action::Edit) } else { vec![] };
            }
            Some(Hit::PanelArea) => self.focus = Focus::Panel,
            Some(Hit::Suggestion(place)) => return self.click_suggestion(place),
            Some(Hit::Suggestions) => self.focus = Focus::View,
            Some(hit) => {
                self.focus = Focus::View;
                return self.view.behaviour().click(self, hit, position);
            }
            None => {}
        }
        vec![]
    }

    fn wheel(&mut self, position: Position, down: bool) -> Effects {
        let step = if down { Action::Down } else { Action::Up };
        let listed = match &self.overlay {
            Some(Overlay::Help(filter)) => overlay::help_order(filter, self).len(),
            Some(Overlay::Palette(filter)) => self.palette(filter).len(),
            _ => 0,
        };
        match &mut self.overlay {
            Some(Overlay::Help(filter) | Overlay::Palette(filter)) => {
                filter.step(if down { 3 } else { -3 }, listed);
                return vec![];
            }
            Some(Overlay::Open(form)) => {
                let count = form.candidates().len();
                form.filter.step(if down { 3 } else { -3 }, count);
                return vec![];
            }
            Some(Overlay::Export(form)) => {
                form.scroll(if down { 3 } else { -3 });
                return vec![];
            }
            Some(_) => return vec![],
            None => {}
        }
        match self.appearance.hit(position) {
            Some(Hit::Panel(_) | Hit::PanelArea | Hit::Step(..)) => {
                self.panel.cursor = moved(self.panel.cursor, step, self.panel_rows().len());
                vec![]
            }
            Some(Hit::Suggestion(_) | Hit::Suggestions) => {
                self.planning.would_help.scroll(down);
                vec![]
            }
            Some(Hit::Tab(_) | Hit::Knob(_)) | None => vec![],
            Some(hit) => {
                if self.view.behaviour().scroll(self, hit, down) {
                    return vec![];
                }
                let focus = std::mem::replace(&mut self.focus, Focus::View);
                let effects = self.act(step);
                self.focus = focus;
                effects
            }
        }
    }
}

/// Handles a key in an overlay with a list: arrows move, everything else is typed.
pub(in crate::tui) fn key_in_list(filter: &mut Filter, key: &KeyEvent, count: usize) {
    match key.code {
        KeyCode::Up => filter.step(-1, count),
        KeyCode::Down => filter.step(1, count),
        KeyCode::PageUp => filter.step(-10, count),
        KeyCode::PageDown => filter.step(10, count),
        _ => drop(filter.type_key(&Event::Key(*key))),
    }
}
