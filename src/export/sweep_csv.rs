//! A sweep as a table: a row per point, with everything that tells one point from another before what came of it.
//!
//! The table is also what a sweep is taken up again from: [`read`] gives the rows of such a file, and [`Table::answers`]
//! finds those that answer a sweep's points. Numbers are written so that they are read back to the last bit. Rows of other
//! sweeps in the same file are kept, and so are those of another seed, another deadline, or a workload that has changed
//! since. The surprising decision: a point that was stopped before it had a plan is read as not
//! answered.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    planner::Status,
    study::sweep::{Answer, Objective, Point, Simulated, Sweep},
    units::exact_number,
};

/// What tells a point: workload, planner, options, every limit, and what else the answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    workload: String,
    series: String,
    planner: String,
    options: String,
    devices: String,
    cpus: String,
    memory_bytes: String,
    microbatches: String,
    bandwidth_bytes_per_s: String,
    batch: String,
    machines: String,
    flops_per_s: String,
    seed: String,
    deadline_s: String,
    workload_hash: String,
}

/// A row as it stands in the file. The order of the fields is that of the columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    workload: String,
    series: String,
    planner: String,
    options: String,
    devices: String,
    cpus: String,
    memory_bytes: String,
    microbatches: String,
    bandwidth_bytes_per_s: String,
    batch: String,
    machines: String,
    flops_per_s: String,
    seed: String,
    deadline_s: String,
    workload_hash: String,
    status: Status,
    objective: Option<String>,
    unit: Option<String>,
    value: Option<f64>,
    bound: Option<f64>,
    stages: Option<usize>,
    devices_used: Option<u32>,
    iteration_s: Option<f64>,
    samples_per_s: Option<f64>,
    bubble: Option<f64>,
    peak_memory_bytes: Option<f64>,
    seconds: f64,
    why: String,
}

/// The columns, in their order.
pub const COLUMNS: [&str; 28] = [
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
    "why",
];

/// Columns that first versions did not write.
const LATER: [&str; 3] = ["seed", "deadline_s", "workload_hash"];

impl Row {
    fn new(key: Key, answer: &Answer) -> Self {
        let (objective, simulated) = (answer.objective.as_ref(), answer.simulated.as_ref());
        Row {
            workload: key.workload,
            series: key.series,
            planner: key.planner,
            options: key.options,
            devices: key.devices,
            cpus: key.cpus,
            memory_bytes: key.memory_bytes,
            microbatches: key.microbatches,
            bandwidth_bytes_per_s: key.bandwidth_bytes_per_s,
            batch: key.batch,
            machines: key.machines,
            flops_per_s: key.flops_per_s,
            seed: key.seed,
            deadline_s: key.deadline_s,
            workload_hash: key.workload_hash,
            status: answer.status,
            objective: objective.map(|objective| objective.name.clone()),
            unit: objective.map(|objective| objective.unit.clone()),
            value: objective.map(|objective| objective.value),
            bound: answer.bound,
            stages: answer.stages,
            devices_used: answer.devices_used,
            iteration_s: simulated.map(|simulated| simulated.iteration_s),
            samples_per_s: simulated.map(|simulated| simulated.samples_per_s),
            bubble: simulated.map(|simulated| simulated.bubble),
            peak_memory_bytes: simulated.map(|simulated| simulated.peak_memory_bytes),
            seconds: answer.seconds,
            why: answer.why.clone(),
        }
    }

    fn key(&self) -> Key {
        Key {
            workload: self.workload.clone(),
            series: self.series.clone(),
            planner: self.planner.clone(),
            options: self.options.clone(),
            devices: self.devices.clone(),
            cpus: self.cpus.clone(),
            memory_bytes: self.memory_bytes.clone(),
            microbatches: self.microbatches.clone(),
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s.clone(),
            batch: self.batch.clone(),
            machines: self.machines.clone(),
            flops_per_s: self.flops_per_s.clone(),
            seed: self.seed.clone(),
            deadline_s: self.deadline_s.clone(),
            workload_hash: self.workload_hash.clone(),
        }
    }

    fn answer(&self) -> Answer {
        let objective = self.objective.clone().zip(self.unit.clone()).zip(self.value);
        let simulated = self.iteration_s.zip(self.samples_per_s).zip(self.bubble).zip(self.peak_memory_bytes);
        Answer {
            status: self.status,
            objective: objective.map(|((name, unit), value)| Objective { name, unit, value }),
            bound: self.bound,
            stages: self.stages,
            devices_used: self.devices_used,
            simulated: simulated.map(|(((iteration_s, samples_per_s), bubble), peak_memory_bytes)| Simulated {
                iteration_s,
                samples_per_s,
                bubble,
                peak_memory_bytes,
            }),
            seconds: self.seconds,
            why: self.why.clone(),
        }
    }
}

fn key(sweep: &Sweep, run: &Run, point: &Point) -> Key {
    let (series, limits) = (&sweep.series[point.series], &point.limits);
    Key {
        workload: sweep.workload_label(point.workload),
        series: series.label.clone(),
        planner: series.planner.info().id.into(),
        options: series.settings(),
        devices: limits.devices.to_string(),
        cpus: limits.cpus.to_string(),
        memory_bytes: exact_number(limits.memory_bytes),
        microbatches: limits.microbatches.to_string(),
        bandwidth_bytes_per_s: exact_number(limits.bandwidth_bytes_per_s),
        batch: limits.batch.to_string(),
        machines: if limits.machines.is_empty() { String::new() } else { limits.machines.to_string() },
        flops_per_s: exact_number(limits.flops_per_s),
        seed: run.seed.clone(),
        deadline_s: run.deadline_s.clone(),
        workload_hash: run.workloads[point.workload].clone(),
    }
}

/// What the answers of a sweep rest on beside its points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    seed: String,
    /// Empty where there is none.
    deadline_s: String,
    /// By workload of the sweep, its [fingerprint](crate::workload::Workload::fingerprint).
    workloads: Vec<String>,
}

impl Run {
    /// A sweep with this seed and this time for each point.
    pub fn new(sweep: &Sweep, seed: u64, deadline: Option<Duration>) -> Self {
        Run {
            seed: seed.to_string(),
            deadline_s: deadline.map(|deadline| exact_number(deadline.as_secs_f64())).unwrap_or_default(),
            workloads: sweep.workloads.iter().map(|workload| workload.fingerprint()).collect(),
        }
    }
}

/// The rows of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// For every point of the sweep its answer, if the table has one.
    pub fn answers(&self, sweep: &Sweep, run: &Run) -> Vec<Option<Answer>> {
        let mut rows: Vec<(Key, &Row)> =
            self.rows.iter().filter(|row| is_answered(row)).map(|row| (row.key(), row)).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        let find = |point: &Point| {
            let key = key(sweep, run, point);
            rows.binary_search_by(|row| row.0.cmp(&key)).ok().map(|at| rows[at].1.answer())
        };
        sweep.points.iter().map(find).collect()
    }
}

/// A point that was stopped before it had a plan, or with one that the search could still better, is asked again.
fn is_answered(row: &Row) -> bool {
    row.status != Status::Cancelled
}

/// The table of a sweep: its answered points in their order, then the rows of `before` for which it has no newer answer.
pub fn to_csv(sweep: &Sweep, run: &Run, answers: &[Option<Answer>], before: &Table) -> String {
    let mut writer = csv::Writer::from_writer(vec![]);
    let keys: Vec<Key> = sweep.points.iter().map(|point| key(sweep, run, point)).collect();
    // A point that was stopped is asked again, but until it has another answer its row stays.
    let mut answered: Vec<Key> =
        keys.iter().zip(answers).filter(|(_, answer)| answer.is_some()).map(|(key, _)| key.clone()).collect();
    answered.sort();
    let ours = keys.into_iter().zip(answers).filter_map(|(key, answer)| Some(Row::new(key, answer.as_ref()?)));
    let others = before.rows.iter().filter(|row| answered.binary_search(&row.key()).is_err()).cloned();
    let rows: Vec<Row> = ours.chain(others).collect();
    if rows.is_empty() {
        writer.write_record(COLUMNS).expect("writing to memory does not fail");
    }
    for row in rows {
        writer.serialize(row).expect("writing to memory does not fail");
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("all fields are text")
}

/// Reads such a table; an empty text is an empty table.
///
/// # Errors
/// A sentence with the line and what is wrong there.
pub fn read(text: &str) -> Result<Table, String> {
    if text.trim().is_empty() {
        return Ok(Table::default());
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| at(&error))?;
    if header.iter().eq(COLUMNS.into_iter().filter(|column| !LATER.contains(column))) {
        return Err(format!(
            "line 1 lacks {}: an older version wrote it, and what it rests on is not known",
            LATER.join(", ")
        ));
    }
    if header.iter().ne(COLUMNS) {
        return Err("line 1 has other columns than a sweep's table".into());
    }
    let rows = reader.deserialize().collect::<Result<Vec<Row>, _>>().map_err(|error| at(&error))?;
    Ok(Table { rows })
}

fn at(error: &csv::Error) -> String {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            let column = err.field().and_then(|field| COLUMNS.get(field as usize)).copied().unwrap_or("a field");
            format!("line {line}: {column} cannot be read: {}", err.kind())
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("line {line} has {len} fields in place of {expected_len}")
        }
        _ => format!("line {line} cannot be read"),
    }
}
