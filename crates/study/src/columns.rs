//! Columns of the comparison of plans, and the order of its rows.
//!
//! Command line and screen build their tables from these columns, so both show the same figures in the same words.
//! Objectives have different units: plans with different measures form separate groups, and sorting stays within a
//! group.

use super::compare::ComparedPlan;
use plantui_core::{plan::Measure, units};
use plantui_planners::WEAK_GAP;

/// Column of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Simulated iteration time, or the time of a single sample for latency plans.
    Time,
    /// Planner's objective, in its own unit.
    Objective,
    /// Simulated peak memory of a device.
    Memory,
    /// Devices used.
    Devices,
    /// Simulated samples per second.
    Throughput,
    /// Simulated idle share of device time.
    Idle,
    /// Difference between the planner's own time per sample and the simulated one.
    Predicted,
    /// Gap between the objective and a proven bound.
    Gap,
    /// Time spent planning.
    Planning,
}

impl Column {
    /// All columns, the most informative first: narrow screens omit the last ones.
    pub const ALL: [Column; 9] = [
        Column::Time,
        Column::Objective,
        Column::Memory,
        Column::Devices,
        Column::Throughput,
        Column::Idle,
        Column::Predicted,
        Column::Gap,
        Column::Planning,
    ];

    /// Heading of the column.
    pub fn title(self) -> &'static str {
        match self {
            Column::Time => "time",
            Column::Objective => "objective",
            Column::Memory => "peak memory",
            Column::Devices => "devices",
            Column::Throughput => "samples/s",
            Column::Idle => "idle",
            Column::Predicted => "model error",
            Column::Gap => "gap",
            Column::Planning => "planned in",
        }
    }

    /// Cell for a plan, for people; `-` without a figure.
    pub fn cell(self, entry: &ComparedPlan) -> String {
        let Some(figure) = self.figure(entry) else { return "-".into() };
        match self {
            Column::Time | Column::Planning => units::seconds(figure),
            Column::Objective => {
                entry.score.as_ref().map_or_else(String::new, |score| like(score.measure).show(figure))
            }
            Column::Memory => units::bytes_beside(figure, entry.memory_limit_bytes),
            Column::Devices => format!("{figure}"),
            Column::Throughput => units::rate(figure),
            Column::Idle => units::percent(figure),
            Column::Predicted => format!("{:+.1}%", 100.0 * figure),
            Column::Gap => {
                let gap = match figure {
                    ..=1e-9 => "proven".into(),
                    _ if figure > WEAK_GAP => "weak bound".into(),
                    _ => units::gap(figure),
                };
                // A remark of the entry names the plans of the proof.
                if entry.proven_among.is_some() { gap + "*" } else { gap }
            }
        }
    }

    /// Figure in base units; `None` if there is none.
    pub fn figure(self, entry: &ComparedPlan) -> Option<f64> {
        let simulated = entry.simulated.as_ref();
        match self {
            Column::Time => simulated.map(|simulated| simulated.iteration_s),
            Column::Objective => match entry.score.as_ref().map(|score| score.measure) {
                // The iteration time is divided by the samples, to be comparable with other planners' times per sample.
                Some(Measure::IterationTime) => entry
                    .value()
                    .zip(simulated)
                    .map(|(value, simulated)| value / (simulated.samples_per_s * simulated.iteration_s)),
                Some(_) if entry.simulated.is_some() => entry.score.as_ref().map(|score| score.value),
                _ => entry.value(),
            },
            Column::Memory => simulated.map(|simulated| simulated.peak_memory_bytes),
            Column::Devices => entry.plan.as_ref().map(|plan| f64::from(plan.devices_used())),
            Column::Throughput => simulated.map(|simulated| simulated.samples_per_s),
            Column::Idle => simulated.map(|simulated| simulated.idle),
            Column::Predicted => entry.prediction_error(),
            Column::Gap => entry.gap(),
            Column::Planning => entry.seconds,
        }
    }

    /// Sort key: smaller values come first.
    fn rank(self, entry: &ComparedPlan) -> Option<f64> {
        let figure = self.figure(entry)?;
        Some(match self {
            Column::Throughput => -figure,
            Column::Objective if entry.score.as_ref().is_some_and(|score| score.measure.larger_is_better()) => -figure,
            // Too high and too low count as equally wrong.
            Column::Predicted => figure.abs(),
            _ => figure,
        })
    }
}

/// Name of an entry's measure; `None` without a valid plan.
pub fn group(entry: &ComparedPlan) -> Option<&'static str> {
    entry.score.as_ref().filter(|score| score.is_valid()).map(|score| like(score.measure).name())
}

/// Measure used for comparison: iteration times count as times per sample.
fn like(measure: Measure) -> Measure {
    if measure == Measure::IterationTime { Measure::TimePerSample } else { measure }
}

/// Title of a group: measure, unit, meaning of the gap, and the kind of simulation if it is not an iteration. Iteration
/// times and times per sample share a group, but a proof for one says nothing about the other.
pub fn group_title<'a>(entries: impl IntoIterator<Item = &'a ComparedPlan>) -> Option<String> {
    let mut measures = entries.into_iter().filter_map(|entry| entry.score.as_ref()).map(|score| score.measure);
    let measure = measures.next()?;
    let name = like(measure).name().replace('_', " ");
    let simulated = if matches!(measure, Measure::Latency { .. }) { "one sample" } else { "one iteration" };
    let goal = measure.goal();
    let gap = match measures.find(|other| other.goal() != goal) {
        None => format!("to the {goal}"),
        Some(_) => "to each planner's own lower bound".into(),
    };
    Some(format!("time: {simulated}, simulated; objective: {name}; gap: {gap}"))
}

/// Sorts by a column, best first, within the groups of one objective. Groups keep the order of their first rows.
/// Without a column the order stays. Entries without a figure come last in their group, entries without a plan last of
/// all. `O(n log n)`.
pub fn sort<T>(rows: &mut [T], entry: impl Fn(&T) -> &ComparedPlan, column: Option<Column>, reversed: bool) {
    let mut groups: Vec<&'static str> = vec![];
    for name in rows.iter().filter_map(|row| group(entry(row))) {
        if !groups.contains(&name) {
            groups.push(name);
        }
    }
    let place = |row: &T| group(entry(row)).and_then(|name| groups.iter().position(|known| *known == name));
    rows.sort_by(|a, b| {
        let groups = place(a).unwrap_or(usize::MAX).cmp(&place(b).unwrap_or(usize::MAX));
        let within = match column.map(|column| (column.rank(entry(a)), column.rank(entry(b)))) {
            Some((Some(a), Some(b))) if reversed => b.total_cmp(&a),
            Some((Some(a), Some(b))) => a.total_cmp(&b),
            Some((a, b)) => a.is_none().cmp(&b.is_none()),
            None => std::cmp::Ordering::Equal,
        };
        groups.then(within)
    });
}
