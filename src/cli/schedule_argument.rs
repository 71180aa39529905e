//! Value of `--schedule`: the id of a built-in schedule, a CSV file with one, or `all`.

use std::{ffi::OsStr, path::Path};

use clap::{
    Arg, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

use crate::{
    notice,
    schedule::{GivenSchedule, csv},
    simulate::Schedule,
    workload::formats::{detect, file},
};

/// Largest file that is read, bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Schedule, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScheduleChoice {
    /// One schedule.
    One(Schedule),
    /// A table of all.
    All,
}

/// Word for all schedules.
const ALL: &str = "all";

/// Parser of ids, files and `all`.
#[derive(Debug, Clone)]
pub(super) struct ScheduleChoiceParser;

impl TypedValueParser for ScheduleChoiceParser {
    type Value = ScheduleChoice;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<Self::Value, clap::Error> {
        if value == ALL {
            return Ok(ScheduleChoice::All);
        }
        ScheduleParser.parse_ref(command, argument, value).map(ScheduleChoice::One)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ScheduleParser.possible_values()?.chain([PossibleValue::new(ALL)])))
    }
}

/// Parser of ids and files.
#[derive(Debug, Clone)]
pub(super) struct ScheduleParser;

fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(Schedule::ALL.map(Schedule::id))
}

impl TypedValueParser for ScheduleParser {
    type Value = Schedule;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<Schedule, clap::Error> {
        let text = value.to_string_lossy();
        let path = Path::new(value);
        let names_a_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        if names_a_file || Schedule::find(&text).is_none() && path.is_file() {
            return of_file(path).map_err(|problem| clap::Error::raw(ErrorKind::ValueValidation, problem));
        }
        let id = ids().parse_ref(command, argument, value)?;
        Ok(Schedule::find(&id).unwrap_or(Schedule::ALL[0]))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Schedule::ALL.into_iter().map(|schedule| PossibleValue::new(schedule.id()))))
    }
}

/// Schedule of a file. Notes on what was left out are printed.
fn of_file(path: &Path) -> Result<Schedule, String> {
    let source = crate::text::printable(&path.display().to_string());
    let bytes = file::read_at_most(path, MOST_BYTES).map_err(|error| error.to_string())?;
    let text = detect::text(&bytes, &source, &detect::SCHEDULE).map_err(|error| error.to_string())?;
    let read = csv::read(text, &source).map_err(|error| error.to_string())?;
    read.notes.iter().for_each(|note| notice::note(note));
    Ok(Schedule::Given(GivenSchedule::new(read.schedule)))
}
