//! A schedule with the settings under which it is played.

use super::{Schedule, Setting, Settings};
use crate::plan::Plan;

/// What of [`Play`] somebody asked for: it wins over what a plan says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// The schedule.
    pub schedule: bool,
    /// [`Settings::virtual_stages`].
    pub virtual_stages: bool,
    /// [`Settings::warm_up`].
    pub warm_up: bool,
}

/// How a plan is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Play {
    /// The order of the work; where a plan cannot be played so, [`super::Pipeline::schedule`] says what takes its place.
    pub schedule: Schedule,
    /// What is assumed beside it.
    pub settings: Settings,
    /// Which of them were asked for.
    pub asked: Asked,
}

impl Play {
    /// How this plan is played: as it says itself, but for what was asked for.
    #[must_use]
    pub fn of(mut self, plan: &Plan) -> Play {
        if let Some(own) = plan.execution {
            if !self.asked.schedule {
                self.schedule = own.schedule;
            }
            // Virtual stages are the schedule's: another one has its own number.
            if !self.asked.virtual_stages && self.schedule == own.schedule && own.schedule == Schedule::Interleaved {
                self.settings.virtual_stages = own.virtual_stages;
            }
            if !self.asked.warm_up {
                self.settings.warm_up = own.warm_up;
            }
        }
        self
    }

    /// The same with other settings; what changes was asked for.
    #[must_use]
    pub fn set(self, settings: Settings) -> Play {
        let other = |setting: Setting| !setting.same(&self.settings, &settings);
        let asked = Asked {
            virtual_stages: self.asked.virtual_stages || other(Setting::VirtualStages),
            warm_up: self.asked.warm_up || other(Setting::WarmUp),
            ..self.asked
        };
        Play { settings, asked, ..self }
    }

    /// The same with one setting as in `first`, where nobody asked for it.
    #[must_use]
    pub fn reset(self, setting: Setting, first: &Settings) -> Play {
        let asked = Asked {
            virtual_stages: self.asked.virtual_stages && setting != Setting::VirtualStages,
            warm_up: self.asked.warm_up && setting != Setting::WarmUp,
            ..self.asked
        };
        Play { settings: setting.from(&self.settings, first), asked, ..self }
    }

    /// The same with a schedule that was asked for.
    #[must_use]
    pub fn with(self, schedule: Schedule) -> Play {
        Play { schedule, asked: Asked { schedule: true, ..self.asked }, ..self }
    }

    /// The settings that are not at their defaults and change something under the schedule, in a few words each.
    pub fn changes(&self) -> Vec<String> {
        let heard = Setting::ALL.into_iter().filter(|setting| setting.unused(self, None).is_none());
        heard.filter_map(|setting| setting.change(&self.settings)).collect()
    }
}

impl Default for Play {
    /// As the plan says itself, else 1F1B, with the default settings.
    fn default() -> Self {
        Play { asked: Asked::default(), ..Schedule::ALL[0].into() }
    }
}

impl From<Schedule> for Play {
    /// The schedule, asked for, with the default settings where the plan says nothing else.
    fn from(schedule: Schedule) -> Self {
        Play { schedule, settings: Settings::default(), asked: Asked { schedule: true, ..Asked::default() } }
    }
}
