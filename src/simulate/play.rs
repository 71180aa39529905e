//! A schedule with the settings under which it is played.

use super::{Schedule, Setting, Settings};

/// How a plan is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Play {
    /// The order of the work; where a plan cannot be played so, [`super::Pipeline::schedule`] says what takes its place.
    pub schedule: Schedule,
    /// What is assumed beside it.
    pub settings: Settings,
}

impl Play {
    /// The settings that are not at their defaults and change something under the schedule, in a few words each.
    pub fn changes(&self) -> Vec<String> {
        let heard = Setting::ALL.into_iter().filter(|setting| setting.unused(self, None).is_none());
        heard.filter_map(|setting| setting.change(&self.settings)).collect()
    }
}

impl Default for Play {
    /// 1F1B with the default settings.
    fn default() -> Self {
        Schedule::ALL[0].into()
    }
}

impl From<Schedule> for Play {
    /// The schedule with the default settings.
    fn from(schedule: Schedule) -> Self {
        Play { schedule, settings: Settings::default() }
    }
}
