//! Sweep as a table with a row per point: first the columns that identify the point, then its outcome.
//!
//! A sweep also resumes from this table: [`read`] returns the rows of a file, and [`SweepTable::answers`] finds those
//! that answer a sweep's points. Numbers are written so that they read back exactly. Rows of other sweeps in the file
//! are kept. So are rows with another seed, another deadline, or a workload that has changed since. A stopped point is
//! read as unanswered, even with a plan; its row stays until another replaces it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use plantui_core::{
    family::mixed::prices::PlanPrices,
    text::{printable, single_line},
    units::exact_number,
};
use plantui_planners::Status;
use plantui_study::sweep::{PointObjective, PointResult, PointSimulation, Sweep, SweepPoint};

/// Number of columns that identify a point: workload, planner, options, every limit, and all else that the answer
/// depends on.
const KEYS: usize = 15;

/// Identity of a point, in the order of the columns.
type PointKey = [String; KEYS];

/// Outcome of a point. The order of the fields is that of the columns after the key's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PointOutcome {
    status: Status,
    objective: Option<String>,
    unit: Option<String>,
    value: Option<f64>,
    bound: Option<f64>,
    stages: Option<usize>,
    devices_used: Option<u32>,
    iteration_s: Option<f64>,
    samples_per_s: Option<f64>,
    #[serde(rename = "bubble")]
    idle: Option<f64>,
    peak_memory_bytes: Option<f64>,
    seconds: Option<f64>,
    layout: String,
    #[serde(default)]
    price_per_hour: Option<f64>,
    #[serde(default)]
    traffic_price: Option<f64>,
    why: String,
}

/// Row of the file.
#[derive(Debug, Clone, PartialEq)]
struct PointRow {
    key: PointKey,
    outcome: PointOutcome,
}

/// Columns in their order.
pub const COLUMNS: [&str; 31] = [
    "workload",
    "series",
    "planner",
    "options",
    "devices",
    "cpus",
    "memory_bytes",
    "microbatches",
    "bandwidth_bytes_per_s",
    "batch",
    "machines",
    "flops_per_s",
    "seed",
    "deadline_s",
    "workload_hash",
    "status",
    "objective",
    "unit",
    "value",
    "bound",
    "stages",
    "devices_used",
    "iteration_s",
    "samples_per_s",
    "bubble",
    "peak_memory_bytes",
    "seconds",
    "layout",
    "price_per_hour",
    "traffic_price",
    "why",
];

/// Columns that first versions did not write.
const LATER: [&str; 3] = ["seed", "deadline_s", "workload_hash"];

/// Columns that may be missing: tables without prices of kinds of devices.
const OPTIONAL: [&str; 2] = ["price_per_hour", "traffic_price"];

impl PointOutcome {
    fn new(answer: &PointResult) -> Self {
        let (objective, simulated) = (answer.objective.as_ref(), answer.simulated.as_ref());
        PointOutcome {
            status: answer.status,
            objective: objective.map(|objective| objective.name.clone()),
            unit: objective.map(|objective| objective.unit.clone()),
            value: objective.map(|objective| objective.value),
            bound: answer.bound,
            stages: answer.stages,
            devices_used: answer.devices_used,
            iteration_s: simulated.map(|simulated| simulated.iteration_s),
            samples_per_s: simulated.map(|simulated| simulated.samples_per_s),
            idle: simulated.map(|simulated| simulated.idle),
            peak_memory_bytes: simulated.map(|simulated| simulated.peak_memory_bytes),
            seconds: Some(answer.seconds),
            why: answer.why.clone(),
            layout: answer.layout.clone(),
            price_per_hour: answer.prices.map(|prices| prices.per_hour),
            traffic_price: answer.prices.map(|prices| prices.traffic),
        }
    }

    fn answer(&self) -> PointResult {
        let objective = self.objective.clone().zip(self.unit.clone()).zip(self.value);
        let simulated = self.iteration_s.zip(self.samples_per_s).zip(self.idle).zip(self.peak_memory_bytes);
        PointResult {
            status: self.status,
            objective: objective.map(|((name, unit), value)| PointObjective { name, unit, value }),
            bound: self.bound,
            stages: self.stages,
            devices_used: self.devices_used,
            layout: self.layout.clone(),
            prices: self
                .price_per_hour
                .map(|per_hour| PlanPrices { per_hour, traffic: self.traffic_price.unwrap_or_default() }),
            simulated: simulated.map(|(((iteration_s, samples_per_s), idle), peak_memory_bytes)| PointSimulation {
                iteration_s,
                samples_per_s,
                idle,
                peak_memory_bytes,
            }),
            seconds: self.seconds.unwrap_or_default(),
            why: self.why.clone(),
            mapped: None,
            fault: None,
        }
    }
}

fn key(sweep: &Sweep, run: &SweepContext, point: &SweepPoint) -> PointKey {
    let (series, limits) = (&sweep.series[point.series], &point.limits);
    // Devices of several kinds have a memory each, and a limit that a workload does not have is empty.
    let of_kinds = sweep.workloads[point.workload].mixed().is_some();
    let unless_of_kinds = |text: String| if of_kinds { String::new() } else { text };
    [
        sweep.workload_label(point.workload),
        series.label.clone(),
        series.planner.info().id.into(),
        series.settings(),
        limits.devices.to_string(),
        limits.cpus.to_string(),
        unless_of_kinds(exact_number(limits.memory())),
        unless_of_kinds(limits.microbatches.to_string()),
        unless_of_kinds(exact_number(limits.bandwidth())),
        limits.batch.unwrap_or_default().to_string(),
        if limits.machines.is_empty() { String::new() } else { limits.machines.to_string() },
        exact_number(limits.flops_per_s.unwrap_or_default()),
        run.seed.clone(),
        run.deadline_s.clone(),
        run.workloads[point.workload].clone(),
    ]
}

/// Facts that a sweep's answers depend on, in addition to its points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepContext {
    seed: String,
    /// Empty if there is none.
    deadline_s: String,
    /// [Fingerprint](plantui_core::workload::Workload::fingerprint) of each workload of the sweep.
    workloads: Vec<String>,
    /// True if tables include the planning time.
    seconds: bool,
}

impl SweepContext {
    /// Run of a sweep with this seed and deadline per point.
    pub fn new(sweep: &Sweep, seed: u64, deadline: Option<Duration>) -> Self {
        SweepContext {
            seed: seed.to_string(),
            deadline_s: deadline.map(|deadline| exact_number(deadline.as_secs_f64())).unwrap_or_default(),
            workloads: sweep.workloads.iter().map(|workload| workload.fingerprint()).collect(),
            seconds: true,
        }
    }

    /// The same with an empty column of seconds: the rest is equal for equal problems.
    #[must_use]
    pub fn without_seconds(self) -> Self {
        SweepContext { seconds: false, ..self }
    }
}

/// Rows of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SweepTable {
    rows: Vec<PointRow>,
}

impl SweepTable {
    /// Adds the rows of another table. Of rows about the same point one stays: the first answered one, else the first.
    pub fn join(&mut self, other: SweepTable) {
        self.rows.extend(other.rows);
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|&a, &b| {
            let (left, right) = (&self.rows[a], &self.rows[b]);
            left.key.cmp(&right.key).then(is_answered(right).cmp(&is_answered(left))).then(a.cmp(&b))
        });
        order.dedup_by(|later, kept| self.rows[*later].key == self.rows[*kept].key);
        order.sort_unstable();
        self.rows = order.into_iter().map(|place| self.rows[place].clone()).collect();
    }

    /// Answer to every point of the sweep, if the table has one.
    pub fn answers(&self, sweep: &Sweep, run: &SweepContext) -> Vec<Option<PointResult>> {
        let mut rows: Vec<&PointRow> = self.rows.iter().filter(|row| is_answered(row)).collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        let find = |point: &SweepPoint| {
            let key = key(sweep, run, point);
            rows.binary_search_by(|row| row.key.cmp(&key)).ok().map(|at| rows[at].outcome.answer())
        };
        sweep.points.iter().map(find).collect()
    }
}

/// True unless the point was stopped, before it had a plan or with a plan that could still improve. Stopped points are
/// planned again.
fn is_answered(row: &PointRow) -> bool {
    row.outcome.status != Status::Cancelled
}

/// Table of a sweep: its answered points in order, then the rows of `before` that have no newer answer.
pub fn to_csv(sweep: &Sweep, run: &SweepContext, answers: &[Option<PointResult>], before: &SweepTable) -> String {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(vec![]);
    let keys: Vec<PointKey> = sweep.points.iter().map(|point| key(sweep, run, point)).collect();
    // A stopped point is planned again, but its row stays until it has another answer.
    let mut answered: Vec<&PointKey> =
        keys.iter().zip(answers).filter(|(_, answer)| answer.is_some()).map(|(key, _)| key).collect();
    answered.sort();
    let ours = keys.iter().zip(answers).filter_map(|(key, answer)| Some((key, PointOutcome::new(answer.as_ref()?))));
    let others = before.rows.iter().filter(|row| answered.binary_search(&&row.key).is_err());
    writer.write_record(COLUMNS).expect("writing to memory does not fail");
    for (key, mut outcome) in ours.chain(others.map(|row| (&row.key, row.outcome.clone()))) {
        outcome.seconds = outcome.seconds.filter(|_| run.seconds);
        writer.serialize((key, outcome)).expect("writing to memory does not fail");
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("all fields are text")
}

/// Reason why a text is not such a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SweepTableError {
    /// The table has the columns of an older version.
    #[error("line 1 lacks {lacks}: an older version wrote it, without the facts it rests on")]
    Older {
        /// Missing columns.
        lacks: String,
    },
    /// The table has other columns.
    #[error("line 1 has other columns than a sweep's table")]
    OtherColumns,
    /// A line cannot be read.
    #[error("line {line}{problem}")]
    Line {
        /// Line number, from 1.
        line: u64,
        /// Error in the line.
        problem: String,
    },
}

/// Reads a table; an empty text is an empty table.
///
/// # Errors
/// [`SweepTableError`] with the line and its error.
pub fn read(text: &str) -> Result<SweepTable, SweepTableError> {
    if text.trim().is_empty() {
        return Ok(SweepTable::default());
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| at(&error))?;
    let without =
        |left_out: &[&str]| -> Vec<&str> { COLUMNS.into_iter().filter(|name| !left_out.contains(name)).collect() };
    if header.iter().filter(|name| !OPTIONAL.contains(name)).eq(without(&[&LATER[..], &OPTIONAL].concat())) {
        return Err(SweepTableError::Older { lacks: LATER.join(", ") });
    }
    if header.iter().ne(COLUMNS) && header.iter().ne(without(&OPTIONAL)) {
        return Err(SweepTableError::OtherColumns);
    }
    let names: csv::StringRecord = header.iter().skip(KEYS).collect();
    let rows = reader.records().map(|record| row(&record?, &names)).collect::<Result<Vec<PointRow>, _>>();
    Ok(SweepTable { rows: rows.map_err(|error| at(&error))? })
}

/// Row of a record, whose columns after the key have these names.
fn row(record: &csv::StringRecord, names: &csv::StringRecord) -> Result<PointRow, csv::Error> {
    let mut fields = record.iter();
    let key = std::array::from_fn(|_| fields.next().unwrap_or_default().to_string());
    let mut rest: csv::StringRecord = fields.collect();
    rest.set_position(record.position().cloned());
    let outcome: PointOutcome = rest.deserialize(Some(names))?;
    let objective = outcome.objective.as_deref().map(printable);
    let (unit, why) = (outcome.unit.as_deref().map(printable), single_line(&outcome.why));
    let layout = single_line(&outcome.layout);
    Ok(PointRow { key, outcome: PointOutcome { objective, unit, why, layout, ..outcome } })
}

fn at(error: &csv::Error) -> SweepTableError {
    let line = error.position().map_or(1, csv::Position::line);
    let problem = match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            let column = err.field().and_then(|field| COLUMNS.get(KEYS + field as usize)).copied().unwrap_or("a field");
            format!(": {column} cannot be read: {}", err.kind())
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!(" has {len} fields in place of {expected_len}")
        }
        _ => " cannot be read".into(),
    };
    SweepTableError::Line { line, problem }
}
