//! Sources of workloads and plans: a path, or `-` for standard input.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde_json::value::RawValue;

use super::job_input::{self, GivenFact, MICRO_BATCH};
use crate::{
    family::{self, read::LoadedPlan},
    notice,
    source::{LoadError, error::printable},
    streams,
    workload::{
        self, Workload,
        formats::{self, detect},
    },
};

/// Files that were read, which no result may replace.
static READ: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Content of standard input once it was read as a plan.
static STANDARD_INPUT_BYTES: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Forgets what earlier calls of `plantui serve` read.
pub(super) fn forget() {
    READ.lock().unwrap_or_else(PoisonError::into_inner).clear();
    *STANDARD_INPUT_BYTES.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Remembers a file that was read.
fn remember(path: &Path) {
    if let (Ok(path), Ok(mut read)) = (path.canonicalize(), READ.lock()) {
        read.push(path);
    }
}

/// True if this file was read as a workload or a plan.
pub(super) fn was_read(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    READ.lock().is_ok_and(|read| read.contains(&path))
}

/// Spelling of standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// True if a path means standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// Loads a workload; the model of a training job under the job's settings is one.
///
/// # Errors
/// [`LoadError`] if it cannot be read or is not a valid workload.
pub(crate) fn workload(path: &Path) -> Result<Workload, LoadError> {
    workload_given(path, &[])
}

/// Like [`workload`]; facts of the command line take the place of those that a job states.
///
/// # Errors
/// As [`workload`].
pub(crate) fn workload_given(path: &Path, facts: &[GivenFact]) -> Result<Workload, LoadError> {
    if is_standard_input(path) {
        return workload::load_reader(streams::input(), STANDARD_INPUT, "stdin");
    }
    remember(path);
    let size = facts.iter().find(|(name, ..)| name == MICRO_BATCH).and_then(|(_, size, _)| size.parse().ok());
    if let Some(size) = size.filter(|_| path.is_file())
        && let Some(workload) = formats::load_micro_batch(path, size)?
    {
        return Ok(workload);
    }
    match workload::load(path) {
        Ok(_) if size.is_some() => {
            let problem = "has no profiles by micro-batch, and --micro-batch chooses one";
            Err(LoadError::file(&shown(path), problem, "leave the flag out"))
        }
        Ok(workload) => Ok(workload),
        Err(error) => match job_input::read(path, facts)? {
            Some(input) => {
                input.announce();
                Ok(input.workload)
            }
            None => Err(error),
        },
    }
}

/// Loads a plan for a workload.
///
/// # Errors
/// [`LoadError`] if it cannot be read, is not a plan, or belongs to another workload.
pub(crate) fn plan(path: &Path, workload: &Workload) -> Result<LoadedPlan, LoadError> {
    let (bytes, source) = file_bytes(path)?;
    let text = detect::text(&bytes, &source, &detect::PLAN)?;
    let loaded = family::read::read(workload, text, &source)?;
    print_assumptions(workload);
    Ok(loaded)
}

/// Prints assumptions about the workload that neither it nor a plan states.
fn print_assumptions(workload: &Workload) {
    family::of(workload).assumptions(None).iter().for_each(|taken| notice::note(taken));
}

/// Content of a plan's file.
pub(crate) enum PlanFileContent {
    /// Single plan.
    One(Box<LoadedPlan>),
    /// List of plans, as `plan` prints it for several batches.
    List(Vec<LoadedPlan>),
}

/// Loads a plan or a JSON list of plans for a workload.
///
/// # Errors
/// [`LoadError`] if it cannot be read, or an element is not a plan or belongs to another workload.
pub(crate) fn plans(path: &Path, workload: &Workload) -> Result<PlanFileContent, LoadError> {
    let (bytes, source) = file_bytes(path)?;
    let text = detect::text(&bytes, &source, &detect::PLAN)?;
    if !text.trim_start().starts_with('[') {
        let loaded = family::read::read(workload, text, &source)?;
        print_assumptions(workload);
        return Ok(PlanFileContent::One(Box::new(loaded)));
    }
    let list: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| LoadError::file(&source, format!("is no JSON array: {error}"), detect::PLAN.give()))?;
    if list.is_empty() {
        return Err(LoadError::file(&source, "is an empty array: it holds no plan", detect::PLAN.give()));
    }
    let plan = |(i, text): (usize, &&RawValue)| family::read::read(workload, text.get(), &format!("{source}[{i}]"));
    let plans = list.iter().enumerate().map(plan).collect::<Result<_, _>>()?;
    print_assumptions(workload);
    Ok(PlanFileContent::List(plans))
}

/// Content of a file, and its name for messages.
///
/// # Errors
/// [`LoadError`] if it cannot be read.
pub(crate) fn file_bytes(path: &Path) -> Result<(Vec<u8>, String), LoadError> {
    if is_standard_input(path) {
        // A plan is read before its workload is complete, and the standard input of a process can be read only once.
        let mut first = STANDARD_INPUT_BYTES.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match first.take() {
            Some(bytes) => bytes,
            None => formats::read_all(streams::input(), STANDARD_INPUT)?,
        };
        return Ok((first.insert(bytes).clone(), STANDARD_INPUT.to_string()));
    }
    remember(path);
    Ok((formats::read_file(path)?, shown(path)))
}

/// Path for messages.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Refuses a workload and a plan that both come from standard input: they cannot be separated.
pub(super) fn one_standard_input(workload: &Path, plan: &Path) -> Result<(), super::Failure> {
    if is_standard_input(workload) && is_standard_input(plan) {
        let hint = "name a file for one of them";
        return Err(super::Failure::refused("workload and plan cannot both be standard input", hint));
    }
    Ok(())
}
