//! Measured runs as a table: one run per row, fields separated by commas or tabs, columns named as `estimate`'s flags
//! and settings. A column `set` holds several settings.

use super::{MeasuredRun, RunError};
use crate::{
    family::training::request::Request,
    text::printable,
    units,
    workload::training::{model::Model, published},
};

/// Columns that are not part of a request.
const MEASURED: &str = "measured_s";
const MEMORY: &str = "measured_memory_bytes";
/// Columns that are ignored.
const REMARKS: [&str; 3] = ["name", "note", "source"];

/// Reads the table.
pub(super) fn read(text: &str, source: &str, model: &Model, defaults: &Request) -> Result<Vec<MeasuredRun>, RunError> {
    let head = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    let delimiter = if head.contains('\t') { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let broken = |error: &csv::Error| {
        let line = error.position().map_or(0, csv::Position::line);
        RunError::new(
            format!("{source}:{line}"),
            "has another number of fields than the first line",
            "quote lists such as \"tp=4,pp=2\"",
        )
    };
    let names: Vec<String> = reader.headers().map_err(|error| broken(&error))?.iter().map(column).collect();
    if !names.iter().any(|name| name == MEASURED) {
        let problem = format!("has no column {MEASURED}, and is not a log of Megatron-LM or torchtitan");
        let repair = "the first line names the columns: those of `plantui estimate`, and measured_s";
        return Err(RunError::new(source, problem, repair));
    }
    if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        return Err(RunError::new(format!("{source}:1"), format!("has column {} twice", printable(twice.1)), ""));
    }
    let mut runs = vec![];
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let place = format!("{source}:{}", record.position().map_or(0, csv::Position::line));
        runs.push(row(&record, &names, place, model, defaults)?);
    }
    if runs.is_empty() {
        return Err(RunError::new(source, "holds no runs", "add a line for each run"));
    }
    Ok(runs)
}

fn column(name: &str) -> String {
    name.trim_start_matches("--").to_ascii_lowercase().replace('-', "_")
}

fn row(
    record: &csv::StringRecord,
    names: &[String],
    place: String,
    model: &Model,
    defaults: &Request,
) -> Result<MeasuredRun, RunError> {
    let (mut request, mut measured_s, mut measured_bytes) = (Request::default(), None, None);
    for (name, value) in names.iter().zip(record).filter(|(_, value)| !value.is_empty()) {
        let odd = |what: &str| RunError::new(&place, format!("{name} is `{}`, must be {what}", printable(value)), "");
        match name.as_str() {
            MEASURED => {
                let seconds = value.parse().ok().filter(|s: &f64| *s > 0.0 && s.is_finite());
                measured_s = Some(seconds.ok_or_else(|| odd("a number of seconds above 0"))?);
            }
            MEMORY => {
                let bytes = value.parse().ok().or_else(|| units::parse_bytes(value).ok());
                measured_bytes = Some(bytes.filter(|b: &f64| *b > 0.0 && b.is_finite()).ok_or_else(|| odd("a size"))?);
            }
            "model" => {
                let other = published::find(value).filter(|other| other.parameters() != model.parameters());
                if other.is_some() {
                    return Err(odd(&format!("the model of these runs, {}", model.name)));
                }
            }
            _ if REMARKS.contains(&name.as_str()) => {}
            _ => {
                let value = truth(value);
                request.set(name, value).map_err(|problem| RunError::new(&place, problem, ""))?;
            }
        }
    }
    let Some(measured_s) = measured_s else {
        return Err(RunError::new(place, "measured_s is empty", "give the iteration time in seconds"));
    };
    let resolved = request.or(defaults).resolve(model).map_err(|refusal| RunError::of(&place, refusal))?;
    Ok(MeasuredRun { place, resolved, measured_s, measured_bytes })
}

/// Spreadsheets write booleans in capitals.
fn truth(value: &str) -> &str {
    match value {
        "TRUE" | "True" => "true",
        "FALSE" | "False" => "false",
        _ => value,
    }
}
