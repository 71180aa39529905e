//! Edits of the left panel: planner, limits, options, simulator settings.

use std::path::Path;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use crate::{
    cluster::LimitKind,
    family::dial,
    planner::{OptionKind, OptionSpec, OptionValue},
    simulate::{Schedule, SimulatorSettings},
    tui::{
        action::Action,
        effect::Effects,
        files,
        model::{Editing, Focus, Model, Session, Tone},
        panel_rows::{PanelRow, PanelSection},
        views::list::WITH_TIMELINE,
    },
    units,
    workload::Workload,
};

/// Parsed value.
enum Typed {
    Limit(LimitKind, f64),
    Workload(Box<Workload>),
    Option(&'static str, OptionValue),
    Simulator(SimulatorSettings),
}

impl Session {
    /// Note that says if the typed file exists.
    fn known_of(&self, editing: &Editing) -> Option<(Tone, String)> {
        let PanelRow::Option(i) = editing.row else { return None };
        let OptionKind::File { example } = self.specs()[i].kind else { return None };
        let typed = editing.input.value().trim();
        if typed.is_empty() {
            return Some((Tone::Done, format!("no file; a path such as {example}, `~` is your home")));
        }
        let path = files::expand_home(typed);
        Some(match look_at(&path) {
            Ok(bytes) => (Tone::Done, format!("{path} exists, {}", units::bytes(bytes))),
            Err(problem) => (Tone::Refused, problem),
        })
    }
}

impl Model {
    /// Applies an action to the selected row.
    pub(in crate::tui) fn act_on_row(&mut self, action: Action) -> Effects {
        let Some(row) = self.panel_row() else { return vec![] };
        self.select_panel_row(row);
        let up = matches!(action, Action::Increase | Action::IncreaseLarge | Action::Edit);
        let large = matches!(action, Action::DecreaseLarge | Action::IncreaseLarge);
        match (row, action) {
            (PanelRow::Planner(i), Action::Edit | Action::Increase) => return self.choose(i),
            (PanelRow::Planner(_), _) => {}
            (PanelRow::Others, Action::Edit) => self.fold_others(!self.panel.others_unfolded),
            (PanelRow::Others, _) => self.fold_others(up),
            (PanelRow::Limit(_), Action::Edit) => self.begin_typing(row),
            (PanelRow::Limit(kind), Action::Reset) => {
                return self.set_limits(self.session.limits.with(kind, self.session.first_limits.get(kind)));
            }
            (PanelRow::Limit(kind), _) => return self.step_limit(kind, up, large),
            (PanelRow::Dial(_), Action::Edit) => self.begin_typing(row),
            (PanelRow::Dial(i), Action::Reset) => {
                let first = self.session.first_dials[i].value.clone();
                return self.turn(i, &first);
            }
            (PanelRow::Dial(i), _) => {
                let next = self.session.dials[i].step(up, large).to_string();
                return self.turn(i, &next);
            }
            (PanelRow::Schedule | PanelRow::Setting(_), _) => return self.act_on_play_row(row, action),
            (PanelRow::Option(i), _) => {
                let spec = &self.session.specs()[i];
                let now = self.session.option_value(spec);
                match (spec.kind, action) {
                    (_, Action::Reset) => return self.set_option(spec, spec.default_value()),
                    // A path has no neighbours to step to.
                    (OptionKind::File { .. } | OptionKind::Text { .. }, _)
                    | (OptionKind::Number { .. } | OptionKind::Quantity { .. }, Action::Edit) => self.begin_typing(row),
                    _ => {
                        let steps = if large { 5 } else { 1 };
                        let value = (0..steps).fold(now, |value, _| spec.step(&value, up));
                        return self.set_option(spec, value);
                    }
                }
            }
        }
        vec![]
    }

    /// Moves the focus to the simulator rows.
    pub(in crate::tui) fn go_to_simulator_rows(&mut self) {
        // A view that simulates many plans keeps its place: its rows apply to all of them.
        let many = self.view.uses().simulator && !self.view.uses().plan;
        if !many {
            self.view = WITH_TIMELINE;
        }
        self.focus = Focus::Panel;
        let rows = self.panel_rows();
        let first = rows.into_iter().find(|row| row.section() == PanelSection::Setup);
        self.select_panel_row(first.unwrap_or(PanelRow::Schedule));
    }

    /// Shows or hides the planners that cannot plan this workload. The selected row stays selected.
    pub(super) fn fold_others(&mut self, unfolded: bool) {
        let row = self.panel_row();
        self.panel.others_unfolded = unfolded;
        self.select_panel_row(row.unwrap_or(PanelRow::Others));
    }

    /// Changes a dial of the workload. The result is another workload of the same nodes.
    fn turn(&mut self, dial: usize, value: &str) -> Effects {
        let now = &self.session.dials[dial];
        if now.value == value {
            return vec![];
        }
        match dial::turned(&self.session.workload, now.id, value) {
            Ok(workload) => self.take_turned(workload),
            Err(error) => {
                self.message = Some((Tone::Refused, error.to_string()));
                vec![]
            }
        }
    }

    /// Applies an action to a row of the simulator settings.
    fn act_on_play_row(&mut self, row: PanelRow, action: Action) -> Effects {
        let up = matches!(action, Action::Increase | Action::IncreaseLarge | Action::Edit);
        let large = matches!(action, Action::DecreaseLarge | Action::IncreaseLarge);
        let mut setup = self.simulation.setup;
        match (row, action) {
            (PanelRow::Setting(setting), Action::Reset) => {
                setup = setup.reset(setting, &self.simulation.first_settings);
            }
            (PanelRow::Setting(setting), Action::Edit) if !setting.is_choice() => {
                self.begin_typing(row);
                return vec![];
            }
            (PanelRow::Setting(setting), _) => setup = setup.set(setting.step(&setup.settings, up, large)),
            (_, Action::Reset) => (setup.schedule, setup.explicit.schedule) = (Schedule::ALL[0], false),
            _ => {
                // Includes schedules that the plan cannot run: the view says why, and what would allow them.
                let count = Schedule::ALL.len();
                let at = Schedule::ALL.iter().position(|schedule| *schedule == setup.schedule).unwrap_or(0);
                setup = setup.with(Schedule::ALL[(at + if up { 1 } else { count - 1 }) % count]);
            }
        }
        self.set_setup(setup)
    }

    /// Selects a planner and plans with it.
    pub(in crate::tui) fn choose(&mut self, planner: usize) -> Effects {
        if planner == self.session.planner {
            return vec![];
        }
        self.session.planner = planner;
        self.session.remember_planner();
        let mut effects = self.leave_edits();
        effects.append(&mut self.replan());
        effects
    }

    /// Switches to the next objective that the workload supports: to the planner last used for it, else to the first.
    pub(in crate::tui) fn next_objective(&mut self) -> Effects {
        // Planners that convert the workload have the objectives of the native ones, so they are left out.
        let able = (0..self.session.planners.len())
            .filter(|&i| self.session.refusals[i].is_none() && self.session.is_native(i));
        let mut objectives: Vec<(&str, usize)> = vec![];
        for planner in able {
            let objective = self.session.objective_of(planner);
            if !objectives.iter().any(|(known, _)| *known == objective) {
                objectives.push((objective, planner));
            }
        }
        let now = self.session.objective_of(self.session.planner);
        let at = objectives.iter().position(|(objective, _)| *objective == now);
        let next = at.map_or(0, |at| (at + 1) % objectives.len());
        let words = |objective: &str| objective.replace('_', " ");
        let Some(&(objective, first)) = objectives.get(next).filter(|(objective, _)| *objective != now) else {
            let told = format!("{} is the only objective for this workload", words(now));
            self.message = Some((Tone::Refused, told));
            return vec![];
        };
        self.session.remember_planner();
        let known = self.session.last_for.iter().find(|(known, _)| *known == objective);
        let planner = known.map_or(first, |(_, planner)| *planner);
        let row = self.panel_row();
        let effects = self.choose(planner);
        // Another planner may have other rows. The selected row stays selected if it still exists.
        self.select_panel_row(row.unwrap_or(PanelRow::Planner(planner)));
        self.message = Some((Tone::Done, format!("objective: {}", words(objective))));
        effects
    }

    pub(in crate::tui) fn set_option(&mut self, spec: &OptionSpec, value: OptionValue) -> Effects {
        if self.session.option_value(spec) == value {
            return vec![];
        }
        self.session.options[self.session.planner].set(spec.name, value);
        let mut effects = self.leave_edits();
        effects.append(&mut self.replan());
        effects
    }

    fn begin_typing(&mut self, row: PanelRow) {
        let text = match row {
            PanelRow::Limit(kind) => kind.format(self.session.limits.get(kind)),
            PanelRow::Dial(i) => self.session.dials[i].value.clone(),
            PanelRow::Option(i) => self.session.specs()[i].show(&self.session.option_value(&self.session.specs()[i])),
            PanelRow::Setting(setting) => setting.show(&self.simulation.setup.settings),
            PanelRow::Planner(_) | PanelRow::Others | PanelRow::Schedule => return,
        };
        self.focus = Focus::Panel;
        let mut editing = Editing { row, input: Input::new(text), untouched: true, error: None, known: None };
        editing.known = self.session.known_of(&editing);
        self.panel.editing = Some(editing);
    }

    /// Handles a key while a value is typed.
    pub(in crate::tui) fn type_value(&mut self, key: &KeyEvent) -> Effects {
        let Some(mut editing) = self.panel.editing.take() else { return vec![] };
        match key.code {
            KeyCode::Esc => return vec![],
            KeyCode::Enter => match self.understand(&editing) {
                Ok(Typed::Limit(kind, value)) => return self.set_limits(self.session.limits.with(kind, value)),
                Ok(Typed::Workload(workload)) => return self.take_turned(*workload),
                Ok(Typed::Option(name, value)) => {
                    let spec = self.session.specs().iter().find(|spec| spec.name == name);
                    return spec.map_or_else(Vec::new, |spec| self.set_option(spec, value));
                }
                Ok(Typed::Simulator(settings)) => return self.set_setup(self.simulation.setup.set(settings)),
                Err(error) => editing.error = Some(error),
            },
            _ => {
                if std::mem::take(&mut editing.untouched) && matches!(key.code, KeyCode::Char(_)) {
                    editing.input.reset();
                }
                editing.input.handle_event(&Event::Key(*key));
                // Report an error while typing only after a first refusal: half a number is no mistake.
                if editing.error.is_some() {
                    editing.error = self.understand(&editing).err();
                }
                editing.known = self.session.known_of(&editing);
            }
        }
        self.panel.editing = Some(editing);
        vec![]
    }

    /// Parses the typed text.
    ///
    /// # Errors
    /// Sentence that says which values are accepted.
    fn understand(&self, editing: &Editing) -> Result<Typed, String> {
        let text = editing.input.value();
        match editing.row {
            PanelRow::Limit(kind) => self.read_limit(kind, text).map(|value| Typed::Limit(kind, value)),
            PanelRow::Dial(i) => {
                let turned = dial::turned(&self.session.workload, self.session.dials[i].id, text);
                turned.map(|workload| Typed::Workload(Box::new(workload))).map_err(|error| error.to_string())
            }
            PanelRow::Option(i) => {
                let spec = &self.session.specs()[i];
                let text = match spec.kind {
                    OptionKind::File { .. } => files::expand_home(text.trim()),
                    _ => text.trim().to_string(),
                };
                let value = spec.parse(&text).map_err(|error| error.to_string())?;
                match &value {
                    OptionValue::File(path) if !path.is_empty() => look_at(path).map(drop)?,
                    _ => {}
                }
                Ok(Typed::Option(spec.name, value))
            }
            // The shown text may be rounded. Unchanged text keeps the exact value.
            PanelRow::Setting(setting) if text.trim() == setting.show(&self.simulation.setup.settings) => {
                Ok(Typed::Simulator(self.simulation.setup.settings))
            }
            PanelRow::Setting(setting) => setting.parse(text, &self.simulation.setup.settings).map(Typed::Simulator),
            PanelRow::Planner(_) | PanelRow::Others | PanelRow::Schedule => Err(String::new()),
        }
    }
}

/// Size of a file, bytes.
///
/// # Errors
/// Sentence if there is no such file.
fn look_at(path: &str) -> Result<f64, String> {
    match Path::new(path).metadata() {
        Ok(found) if found.is_dir() => Err(format!("{path} is a directory; name a file in it")),
        Ok(found) => Ok(found.len() as f64),
        Err(_) => Err(format!("{path} does not exist")),
    }
}
