//! Whether a plan leaves its devices any room: what a planner counts is not all that a device holds.

use crate::{cluster::Limits, plan::Score, units};

/// Above this share of a device's memory a plan is likely not to start.
const FULL: f64 = 0.95;

/// A warning where the fullest device of a valid plan is almost full, for people.
pub(crate) fn warning(score: &Score, limits: &Limits) -> Option<String> {
    let limit = limits.memory_bytes?;
    let bytes = score.peak_memory_bytes();
    let stage = score.stages.iter().position(|stage| stage.memory_bytes >= bytes)?;
    let share = bytes / limit;
    (share > FULL).then(|| {
        format!(
            "stage {} takes {} of the {} on each of its devices ({}); allocator, communication and context need room too: plan \
             with less --memory",
            stage + 1,
            units::bytes_beside(bytes, limit),
            units::bytes_exact(limit),
            units::percent(share)
        )
    })
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
