//! Changing what stands at the left: planner, limits, options.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use super::{
    action::Action,
    model::{Editing, Focus, Model, PanelRow},
    update::Effects,
};

impl Model {
    /// Does an action to the selected row.
    pub(super) fn act_on_row(&mut self, action: Action) -> Effects {
        let Some(row) = self.panel_row() else { return vec![] };
        match (row, action) {
            (PanelRow::Planner(i), Action::Edit | Action::Increase) => self.choose(i),
            (PanelRow::Planner(_), _) => vec![],
            (PanelRow::Limit(kind), Action::Edit) => {
                self.focus = Focus::Panel;
                let input = Input::new(kind.format(self.limits.get(kind)));
                self.editing = Some(Editing { kind, input, untouched: true, error: None });
                vec![]
            }
            (PanelRow::Limit(kind), Action::Reset) => {
                self.set_limits(self.limits.with(kind, self.first_limits.get(kind)))
            }
            (PanelRow::Limit(kind), _) => {
                let up = matches!(action, Action::Increase | Action::IncreaseLarge);
                let large = matches!(action, Action::DecreaseLarge | Action::IncreaseLarge);
                let value = kind.step(self.limits.get(kind), up, large);
                self.set_limits(self.limits.with(kind, value))
            }
            (PanelRow::Option(i), _) => {
                let spec = self.specs()[i];
                let options = &mut self.options[self.planner];
                let now = options.get(spec.name).unwrap_or_else(|| spec.default_value());
                let up = !matches!(action, Action::Decrease | Action::DecreaseLarge);
                let value = if action == Action::Reset { spec.default_value() } else { spec.step(&now, up) };
                if value == now {
                    return vec![];
                }
                options.set(spec.name, value);
                self.replan()
            }
        }
    }

    /// Makes a planner the one in force.
    pub(super) fn choose(&mut self, planner: usize) -> Effects {
        if planner == self.planner {
            return vec![];
        }
        self.planner = planner;
        self.replan()
    }

    /// A key while a limit is being typed.
    pub(super) fn type_limit(&mut self, key: &KeyEvent) -> Effects {
        let Some(editing) = &mut self.editing else { return vec![] };
        match key.code {
            KeyCode::Esc => self.editing = None,
            KeyCode::Enter => match editing.kind.parse(editing.input.value()) {
                Ok(value) => {
                    let limits = self.limits.with(editing.kind, value);
                    self.editing = None;
                    return self.set_limits(limits);
                }
                Err(error) => editing.error = Some(error.to_string()),
            },
            _ => {
                if std::mem::take(&mut editing.untouched) && matches!(key.code, KeyCode::Char(_)) {
                    editing.input.reset();
                }
                editing.input.handle_event(&Event::Key(*key));
                // What is wrong is said while typing only after it was said once: half a number is no mistake.
                if editing.error.is_some() {
                    editing.error = editing.kind.parse(editing.input.value()).err().map(|e| e.to_string());
                }
            }
        }
        vec![]
    }
}
