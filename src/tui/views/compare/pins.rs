//! Pinned plans, from the screen or from files, for comparison.
//!
//! A pin stores the limits it was made under and keeps its figures under them, whatever limits change later. Pins of
//! another workload are hidden until it is shown again.

use std::{path::Path, sync::Arc};

use super::compared::{Compared, JOB};
use crate::{
    cluster::{GivenLimits, LimitError, LimitKind, Limits},
    family::{self, read::LoadedPlan},
    plan::Plan,
    planner::{self, Options, PlannerInfo, Problem, Search},
    simulate::Setup,
    source::{LoadError, error::printable},
    study::compare::TIME_FOR_EACH,
    tui::shown::ShownRun,
    workload::{
        Workload,
        formats::{detect, read_file},
    },
};

/// Maximum number of pins, so that the table stays readable.
pub(super) const MOST: usize = 48;
/// Maximum length of a pin's name, characters.
const LONGEST: usize = 60;

/// Planner of a plan that a job runs.
static A_JOB: PlannerInfo = PlannerInfo {
    id: JOB,
    name: "A job as it runs",
    paper: "",
    summary: "the plan that a job states",
    objective: "iteration_time",
    unit: "s",
};

/// Planner of a plan from a file that names none.
static A_FILE: PlannerInfo = PlannerInfo {
    id: "file",
    name: "A plan from a file",
    paper: "",
    summary: "a plan from a file that does not name its planner",
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
    /// Name of its file.
    pub(super) name: String,
    /// The plan.
    pub(super) compared: Compared,
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
    pub(in crate::tui) fn add(&mut self, name: &str, compared: Compared) -> Option<u64> {
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
            return Err(LoadError::at(&source, "stages", "is empty", "name the file of a plan with stages"));
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

/// Plan of a job, checked and simulated.
pub(in crate::tui) fn of_job(plan: Plan, terms: &PinTerms) -> Compared {
    let (workload, limits) = (terms.workload.clone(), terms.limits.clone());
    let shown = Arc::new(ShownRun::of_plan(&A_JOB, &Problem { workload, limits, options: Options::default() }, plan));
    let mut compared = Compared::simulate(shown, terms.setup, &Search::new(Some(TIME_FOR_EACH), 0));
    compared.entry.status = None;
    compared
}

/// Limits of a file, completed by those in force.
fn limits(loaded: &LoadedPlan, terms: &PinTerms, source: &str) -> Result<Limits, LoadError> {
    family::validate(&terms.workload, &loaded.limits, source)?;
    let overrides = loaded.limits.or(&GivenLimits::from(&terms.limits));
    family::resolve(&terms.workload, &overrides).map_err(|error| match error {
        LimitError::Missing { label, example, .. } => {
            let repair = format!("add it to the plan's limits, for example {example}");
            LoadError::at(source, format!("limits.{label}"), "is missing, and the workload states none", repair)
        }
        error @ LimitError::TooManyDevices { .. } => LoadError::file(source, error.to_string(), ""),
    })
}

/// Name of a pin, cut to its maximum length.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(LONGEST).collect()
}

/// Limits that a plan was made under, in a few words: those that this kind of workload supports.
pub(in crate::tui) fn limits_in_words(workload: &Workload, limits: &Limits, most: usize) -> String {
    let word = |&kind: &LimitKind| kind.counted(limits.get(kind));
    family::of(workload).limits().iter().take(most).map(word).collect::<Vec<_>>().join(", ")
}
