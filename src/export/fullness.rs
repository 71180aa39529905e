//! Whether a plan leaves its devices any room: what a planner counts is not all that a device holds.

use crate::{
    cluster::Limits,
    family::check,
    plan::{Execution, Measure, Plan, Schedule, Score},
    units,
    workload::Workload,
};

/// Above this share of a device's memory a plan is likely not to start.
const FULL: f64 = 0.95;

/// A warning where the fullest device of a valid plan is almost full, for people.
pub(crate) fn warning(score: &Score, limits: &Limits) -> Option<String> {
    let (what, full) = fullest(score, limits)?;
    full.then(|| format!("{what}; allocator, communication and context need room too: plan with less --memory"))
}

/// The same of a valid plan that is to run so, whatever it was made for: then it may hold more than there is.
pub(crate) fn warning_under(workload: &Workload, limits: &Limits, plan: &Plan, execution: Execution) -> Option<String> {
    let own = plan.execution.unwrap_or_default();
    let trains = execution.schedule.has_backward() && execution.schedule != Schedule::SingleSample;
    if !trains || (execution.schedule, execution.virtual_stages) == (own.schedule, own.virtual_stages) {
        return warning(&check(workload, limits, plan), limits);
    }
    // What a batch takes makes no difference here, and to work it out takes long.
    let measure = if plan.measure == Measure::IterationTime { Measure::TimePerSample } else { plan.measure };
    let score = check(workload, limits, &Plan { execution: Some(execution), measure, ..plan.clone() });
    if score.peak_memory_bytes() <= limits.memory_limit() {
        return warning(&score, limits);
    }
    let (what, _) = fullest(&score, limits)?;
    Some(format!(
        "{what} under {}: that does not fit; plan for this schedule, or take the one that the plan was made for, {}",
        execution.name(),
        own.name()
    ))
}

/// What the fullest device holds, and whether that is almost all or more.
fn fullest(score: &Score, limits: &Limits) -> Option<(String, bool)> {
    let limit = limits.memory_bytes?;
    let bytes = score.peak_memory_bytes();
    let stage = score.stages.iter().position(|stage| stage.memory_bytes >= bytes)? + 1;
    let share = bytes / limit;
    let what = format!(
        "stage {stage} takes {} of the {} on each of its devices ({})",
        units::bytes_beside(bytes, limit),
        units::bytes_exact(limit),
        units::percent(share)
    );
    Some((what, share > FULL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StageScore;

    #[test]
    fn only_full_devices_are_told() {
        let score = |bytes| Score {
            stages: vec![StageScore::default(), StageScore { memory_bytes: bytes, ..StageScore::default() }],
            ..Score::default()
        };
        let limits = Limits { memory_bytes: Some(1000.0), ..Limits::NEUTRAL };
        assert_eq!(warning(&score(950.0), &limits), None);
        let told = warning(&score(951.0), &limits).unwrap();
        assert!(told.starts_with("stage 2 takes 0.95 kB of the 1 kB") && told.contains("95.1%"), "{told}");
        assert_eq!(warning(&score(1e9), &Limits::NEUTRAL), None);
    }
}
