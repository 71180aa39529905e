//! Pinned plans, from the screen or from files, for comparison.
//!
//! A pin stores the limits it was made under and keeps its figures under them, whatever limits change later. Pins of
//! another workload are hidden until it is shown again.

use std::{path::Path, sync::Arc};

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use super::{
    compared::Compared,
    state::{Key, Row, alike},
};
use crate::{
    cluster::{GivenLimits, LimitKind, Limits},
    family::{self, read::LoadedPlan},
    plan::document::validate_limits,
    planner::{self, Options, PlannerInfo, Problem, Search},
    simulate::Setup,
    source::{LoadError, error::printable},
    study::compare::TIME_FOR_EACH,
    tui::{
        model::{Model, Tone, View},
        overlay::Overlay,
        shown::ShownRun,
        update::Effects,
    },
    workload::{
        Workload,
        formats::{detect, read_file},
    },
};

/// Maximum number of pins, so that the table stays readable.
const MOST: usize = 48;
/// Maximum length of a pin's name, characters.
const LONGEST: usize = 60;

/// Planner of a plan from a file that names none.
static A_FILE: PlannerInfo = PlannerInfo {
    id: "file",
    name: "A plan from a file",
    paper: "",
    summary: "a plan that was read from a file which does not say who made it",
    objective: "time_per_sample",
    unit: "s",
};

/// Pinned plan.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Pin {
    /// Number of the pin, never reused.
    pub id: u64,
    /// Name of the pin.
    pub name: String,
    /// The plan.
    pub compared: Compared,
}

/// All pins, oldest first.
#[derive(Debug, Default)]
pub(in crate::tui) struct Pins {
    /// The pins.
    pub list: Vec<Pin>,
    count: u64,
}

/// Plan from a file, checked and simulated.
pub(in crate::tui) struct LoadedPin {
    name: String,
    compared: Compared,
}

/// Requirements on a plan from a file.
#[derive(Debug, Clone)]
pub(in crate::tui) struct PinTerms {
    /// Workload that it must belong to.
    pub workload: Arc<Workload>,
    /// Limits that apply if the file states none.
    pub limits: Limits,
    /// Schedule and settings of the simulation.
    pub setup: Setup,
}

impl Pins {
    /// Pin of this number.
    pub(in crate::tui) fn get(&self, id: u64) -> Option<&Pin> {
        self.list.iter().find(|pin| pin.id == id)
    }

    /// Adds a plan. A duplicate name gets a number. `None` if there are too many.
    fn add(&mut self, name: &str, compared: Compared) -> Option<u64> {
        if self.list.len() >= MOST {
            return None;
        }
        self.count += 1;
        let free = |name: &str| self.list.iter().all(|pin| pin.name != name);
        let numbered = (2..).map(|i| format!("{name} #{i}"));
        let name = std::iter::once(name.to_string()).chain(numbered).find(|name| free(name)).unwrap_or_default();
        self.list.push(Pin { id: self.count, name, compared });
        Some(self.count)
    }
}

/// Reads a file as a plan; `None` if it is not meant as one.
///
/// # Errors
/// The reason why it is no plan of this workload.
pub(in crate::tui) fn read(path: &Path, terms: &PinTerms) -> Option<Result<LoadedPin, LoadError>> {
    let source = printable(&path.display().to_string());
    let bytes = read_file(path).ok()?;
    let text = detect::text(&bytes, &source, &detect::PLAN).ok()?;
    if !family::read::is_plan(text) {
        return None;
    }
    Some(family::read::read(&terms.workload, text, &source).and_then(|mut loaded| {
        if loaded.plan.stages.is_empty() {
            return Err(LoadError::at(&source, "stages", "is empty", "name a plan's file that has stages"));
        }
        let limits = limits(&loaded, terms, &source)?;
        loaded.under(&limits);
        let planner = loaded.planner.as_deref().and_then(planner::find).map_or(&A_FILE, planner::Planner::info);
        let problem = Problem { workload: terms.workload.clone(), limits, options: Options::default() };
        let shown = Arc::new(ShownRun::of_plan(planner, &problem, loaded.plan));
        let mut compared = Compared::simulate(shown, terms.setup, &Search::new(Some(TIME_FOR_EACH), 0));
        compared.entry.status = None;
        compared.entry.remarks.extend(loaded.notes);
        let name = path.file_name().map(|name| printable(&name.to_string_lossy()));
        Ok(LoadedPin { name: shortened(&name.unwrap_or(source)), compared })
    }))
}

/// Limits of a file, completed by those in force.
fn limits(loaded: &LoadedPlan, terms: &PinTerms, source: &str) -> Result<Limits, LoadError> {
    validate_limits(&loaded.limits, source)?;
    let overrides = loaded.limits.or(&GivenLimits::from(&terms.limits));
    family::resolve(&terms.workload, &overrides).map_err(|missing| {
        let repair = format!("add it to the plan's limits, for example {}", missing.example);
        LoadError::at(source, format!("limits.{}", missing.label), "is missing, and the workload has none", repair)
    })
}

fn shortened(name: &str) -> String {
    name.chars().take(LONGEST).collect()
}

/// Limits that a plan was made under, in a few words: those that this kind of workload supports.
pub(in crate::tui) fn limits_in_words(workload: &Workload, limits: &Limits, most: usize) -> String {
    let word = |&kind: &LimitKind| kind.counted(limits.get(kind));
    family::of(workload).limits().iter().take(most).map(word).collect::<Vec<_>>().join(", ")
}

impl Model {
    /// Pins of this workload.
    pub(in crate::tui) fn pins_here(&self) -> impl Iterator<Item = &Pin> {
        let here = |of: &Arc<Workload>| Arc::ptr_eq(of, &self.session.workload) || alike(of, &self.session.workload);
        self.views.compare.pins.list.iter().filter(move |pin| here(&pin.compared.shown.workload))
    }

    /// Pins the shown plan. In Compare, pins the selected plan, or unpins it.
    pub(in crate::tui) fn pin(&mut self) {
        if self.view == View::Compare {
            let rows = self.compare_rows();
            match rows.get(self.compare_cursor(&rows)) {
                Some(Row::Plan(Key::Pin(id))) => return self.unpin(*id),
                Some(Row::Plan(key)) => {
                    let compared = self.compared(*key).cloned();
                    return self.pin_compared(compared);
                }
                _ => {}
            }
        }
        let shown = self.planning.shown.clone().filter(|shown| shown.plan().is_some());
        let known = shown.as_ref().and_then(|shown| {
            let simulated =
                self.simulation.simulated.as_ref().filter(|simulated| Arc::ptr_eq(&simulated.shown, shown))?;
            Some(Compared::of(simulated))
        });
        if shown.is_some() && known.is_none() {
            self.message = Some((Tone::Refused, "the plan is still being simulated: pin it when it is".into()));
            return;
        }
        self.pin_compared(known);
    }

    fn pin_compared(&mut self, compared: Option<Compared>) {
        let Some(compared) = compared.filter(|compared| compared.shown.plan().is_some()) else {
            self.message = Some((Tone::Refused, "there is no plan to pin".into()));
            return;
        };
        let same = |pin: &&Pin| Arc::ptr_eq(&pin.compared.shown, &compared.shown);
        if let Some(pin) = self.views.compare.pins.list.iter().find(same) {
            self.message = Some((Tone::Done, format!("already pinned as `{}`", pin.name)));
            return;
        }
        let shown = &compared.shown;
        let name = format!("{}: {}", compared.entry.name, limits_in_words(&shown.workload, &shown.limits, 2));
        self.take_pin(&shortened(&name), compared);
    }

    fn take_pin(&mut self, name: &str, compared: Compared) {
        let Some(id) = self.views.compare.pins.add(name, compared) else {
            let told = format!("there are {MOST} pins, and no more fit: unpin one in Compare");
            self.message = Some((Tone::Refused, told));
            return;
        };
        let name = self.compared_name(Key::Pin(id));
        self.message = Some((Tone::Done, format!("pinned as `{name}`")));
        if self.view == View::Compare {
            self.views.compare.cursor = Some(Row::Plan(Key::Pin(id)));
        }
    }

    fn unpin(&mut self, id: u64) {
        let rows = self.compare_rows();
        let at = self.compare_cursor(&rows);
        let pins = &mut self.views.compare.pins.list;
        if let Some(place) = pins.iter().position(|pin| pin.id == id) {
            let pin = pins.remove(place);
            self.message = Some((Tone::Done, format!("`{}` is no longer pinned", pin.name)));
        }
        self.views.compare.marked.retain(|key| *key != Key::Pin(id));
        let rows = self.compare_rows();
        self.views.compare.cursor = rows.get(at.min(rows.len().saturating_sub(1))).copied();
    }

    /// Requirements on a plan's file at this moment.
    pub(in crate::tui) fn pin_terms(&self) -> PinTerms {
        PinTerms {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            setup: self.simulation.setup,
        }
    }

    /// Pins a plan from a file, or reports why it is no plan of this workload.
    pub(in crate::tui) fn take_loaded_plan(&mut self, loaded: Result<LoadedPin, LoadError>) {
        match loaded {
            Ok(LoadedPin { name, compared }) => {
                if matches!(self.overlay, Some(Overlay::Open(_))) {
                    self.overlay = None;
                }
                self.view = View::Compare;
                self.take_pin(&name, compared);
            }
            Err(error) => self.not_loaded(error.to_string()),
        }
    }

    /// Opens the line for a pin's name.
    pub(in crate::tui) fn begin_renaming(&mut self, id: u64) {
        if let Some(pin) = self.views.compare.pins.get(id) {
            self.overlay = Some(Overlay::Rename(id, Input::new(pin.name.clone())));
        }
    }

    /// Handles a key while a name is typed.
    pub(in crate::tui) fn key_in_rename(&mut self, id: u64, mut input: Input, key: &KeyEvent) -> Effects {
        if key.code != KeyCode::Enter {
            input.handle_event(&Event::Key(*key));
            self.overlay = Some(Overlay::Rename(id, input));
            return vec![];
        }
        let name = shortened(printable(input.value()).trim());
        if name.is_empty() {
            self.message = Some((Tone::Refused, "a pin needs a name: the old one stays".into()));
        } else if let Some(pin) = self.views.compare.pins.list.iter_mut().find(|pin| pin.id == id) {
            pin.name = name;
        }
        vec![]
    }
}
