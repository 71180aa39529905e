//! The event engine.
use super::{Pipeline, Schedule, Timeline};

/// Plays a schedule.
pub fn simulate(_pipeline: &Pipeline, _schedule: Schedule) -> Timeline {
    Timeline::default()
}
