//! What a comparison says of each plan, column by column, and the order of its rows.
//!
//! Command line and screen make their tables from these, so that both show the same figures in the same words. Objectives
//! are in units of their own: plans that are measured by different things stand in groups of their own, and a plan is
//! only ever sorted among its like.

use super::compare::ComparedPlan;
use crate::{plan::Measure, planner::WEAK_GAP, units};

/// A column of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Simulated time of a batch, or of the one sample of a plan for latency.
    Time,
    /// What the planner minimises, in its own unit.
    Objective,
    /// Simulated peak memory of a device.
    Memory,
    /// Devices used.
    Devices,
    /// Simulated samples per second.
    Throughput,
    /// Simulated idle share.
    Bubble,
    /// How far the planner's own time per sample is from the simulated one.
    Predicted,
    /// How far the objective is from a proven bound.
    Gap,
    /// Time spent planning.
    Planning,
}

impl Column {
    /// All columns, the most telling first: at a narrow size the last ones are left out.
    pub const ALL: [Column; 9] = [
        Column::Time,
        Column::Objective,
        Column::Memory,
        Column::Devices,
        Column::Throughput,
        Column::Bubble,
        Column::Predicted,
        Column::Gap,
        Column::Planning,
    ];

    /// What stands over it.
    pub fn title(self) -> &'static str {
        match self {
            Column::Time => "time",
            Column::Objective => "objective",
            Column::Memory => "peak memory",
            Column::Devices => "devices",
            Column::Throughput => "samples/s",
            Column::Bubble => "bubble",
            Column::Predicted => "model error",
            Column::Gap => "gap",
            Column::Planning => "planned in",
        }
    }

    /// What it says of a plan, for people; `-` where there is nothing to say.
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
            Column::Bubble => units::percent(figure),
            Column::Predicted => format!("{:+.1}%", 100.0 * figure),
            Column::Gap => {
                let gap = match figure {
                    ..=1e-9 => "proven".into(),
                    _ if figure > WEAK_GAP => "weak bound".into(),
                    _ => units::percent(figure),
                };
                // A remark of the entry says among which plans.
                if entry.proven_among.is_some() { gap + "*" } else { gap }
            }
        }
    }

    /// The figure itself, in base units; `None` where there is none.
    pub fn figure(self, entry: &ComparedPlan) -> Option<f64> {
        let simulated = entry.simulated.as_ref();
        match self {
            Column::Time => simulated.map(|simulated| simulated.iteration_s),
            Column::Objective => match entry.score.as_ref().map(|score| score.measure) {
                // A batch's time, as a time of each of its samples: so it stands beside those of other planners.
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
            Column::Bubble => simulated.map(|simulated| simulated.bubble),
            Column::Predicted => entry.prediction_error(),
            Column::Gap => entry.gap(),
            Column::Planning => entry.seconds,
        }
    }

    /// What rows are sorted by: the less, the further up.
    fn rank(self, entry: &ComparedPlan) -> Option<f64> {
        let figure = self.figure(entry)?;
        Some(match self {
            Column::Throughput => -figure,
            Column::Objective if entry.score.as_ref().is_some_and(|score| score.measure.larger_is_better()) => -figure,
            // Too much and too little are alike wrong.
            Column::Predicted => figure.abs(),
            _ => figure,
        })
    }
}

/// What an entry is measured by, by name; `None` where there is no valid plan.
pub fn group(entry: &ComparedPlan) -> Option<&'static str> {
    entry.score.as_ref().filter(|score| score.is_valid()).map(|score| like(score.measure).name())
}

/// What plans of a measure are compared as: times of batches as times of samples.
fn like(measure: Measure) -> Measure {
    if measure == Measure::IterationTime { Measure::TimePerSample } else { measure }
}

/// The title of a group: what its plans are measured by, in which unit, what a gap of theirs is to, and how they are
/// simulated if not as batches. Times of batches and times of samples stand together, but a proof of the one says nothing
/// of the other.
pub fn group_title<'a>(entries: impl IntoIterator<Item = &'a ComparedPlan>) -> Option<String> {
    let mut measures = entries.into_iter().filter_map(|entry| entry.score.as_ref()).map(|score| score.measure);
    let measure = measures.next()?;
    let name = like(measure).name().replace('_', " ");
    let simulated = if matches!(measure, Measure::Latency { .. }) { "; one sample alone" } else { "" };
    let goal = measure.goal();
    let gap = match measures.find(|other| other.goal() != goal) {
        None => format!("gap to the {goal}"),
        Some(_) => "each gap to the best in its planner's own model".into(),
    };
    Some(format!("{name}, {}{simulated}; {gap}", measure.unit()))
}

/// Sorts by a column, best first, within groups of one objective; the groups stay in the order in which they first come.
/// Without a column the order stays. Entries without a figure come last in their group, those without a plan last of all.
/// `O(n log n)`.
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
