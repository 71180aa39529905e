//! Warning for plans that almost fill a device's memory: devices hold more than a planner counts.

use plantui_core::{
    cluster::Limits,
    family::{self, check},
    plan::{Execution, Measure, Plan, Schedule, Score},
    units,
    workload::Workload,
};

/// Share of a device's memory above which a plan is likely not to start.
const FULL: f64 = 0.95;

/// Warning if the fullest device of a valid plan is almost full.
pub fn warning(score: &Score, limits: &Limits) -> Option<String> {
    let (what, share) = fullest(score.stages.iter().map(|stage| stage.memory_bytes), limits)?;
    (share > FULL).then(|| almost(&what))
}

/// The same for a valid plan that will run under `execution`, whatever it was planned for. It may then exceed the
/// memory.
pub fn warning_under(workload: &Workload, limits: &Limits, plan: &Plan, execution: Execution) -> Option<String> {
    let own = plan.execution.unwrap_or_default();
    let trains = execution.schedule.has_backward() && execution.schedule != Schedule::SingleSample;
    if !trains || (execution.schedule, execution.virtual_stages) == (own.schedule, own.virtual_stages) {
        return warning(&check(workload, limits, plan), limits);
    }
    if family::of(workload).tensor_degrees().is_empty() {
        return Some(format!("memory was counted under {}, not under {}", own.name(), execution.name()));
    }
    // The iteration time does not matter here and is slow to compute.
    let measure = if plan.measure == Measure::IterationTime { Measure::TimePerSample } else { plan.measure };
    let score = check(workload, limits, &Plan { execution: Some(execution), measure, ..plan.clone() });
    let (what, share) = fullest(score.stages.iter().map(|stage| stage.memory_bytes), limits)?;
    warning_text(&what, share, &execution.name())
}

/// The same for a batch simulated under a schedule.
pub fn simulated(timeline: &plantui_core::simulate::Timeline, schedule: Schedule, limits: &Limits) -> Option<String> {
    let (what, share) = fullest(timeline.peak_memory_bytes.iter().copied(), limits)?;
    warning_text(&what, share, schedule.name())
}

/// Description of the fullest device, and its share of the memory.
fn fullest(stages: impl Iterator<Item = f64>, limits: &Limits) -> Option<(String, f64)> {
    let limit = limits.memory_bytes?;
    let (stage, bytes) = stages.enumerate().reduce(|most, next| if next.1 > most.1 { next } else { most })?;
    let share = bytes / limit;
    let what = format!(
        "stage {} needs {} of the {} on each of its devices ({})",
        stage + 1,
        units::bytes_beside(bytes, limit),
        units::bytes_exact(limit),
        units::percent(share)
    );
    Some((what, share))
}

/// Warning, if there is a reason for one.
fn warning_text(what: &str, share: f64, under: &str) -> Option<String> {
    if share > 1.0 {
        return Some(format!("{what} under {under}: that does not fit; plan for this schedule, or use another"));
    }
    (share > FULL).then(|| almost(what))
}

fn almost(what: &str) -> String {
    format!("{what}; allocator, communication and context need room too: plan with less --memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::plan::StageScore;

    #[test]
    fn only_full_devices_are_told() {
        let score = |bytes| Score {
            stages: vec![StageScore::default(), StageScore { memory_bytes: bytes, ..StageScore::default() }],
            ..Score::default()
        };
        let limits = Limits { memory_bytes: Some(1000.0), ..Limits::NEUTRAL };
        assert_eq!(warning(&score(950.0), &limits), None);
        let told = warning(&score(951.0), &limits).unwrap();
        assert!(told.starts_with("stage 2 needs 0.95 kB of the 1 kB") && told.contains("95.1%"), "{told}");
        assert_eq!(warning(&score(1e9), &Limits::NEUTRAL), None);
    }
}
