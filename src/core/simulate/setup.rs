//! A schedule with the settings under which it is simulated.

use super::{Schedule, Setting, SimulatorSettings};
use crate::plan::Plan;

/// What of [`Setup`] somebody asked for: it wins over what a plan says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// The schedule.
    pub schedule: bool,
    /// [`SimulatorSettings::virtual_stages`].
    pub virtual_stages: bool,
    /// [`SimulatorSettings::warm_up`].
    pub warm_up: bool,
}

/// How a plan is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// The order of the work; where a plan cannot be simulated so, [`super::Pipeline::schedule`] says what takes its place.
    pub schedule: Schedule,
    /// What is assumed beside it.
    pub settings: SimulatorSettings,
    /// Which of them were asked for.
    pub asked: Asked,
}

impl Setup {
    /// How this plan is simulated: as it says itself, but for what was asked for.
    #[must_use]
    pub fn of(mut self, plan: &Plan) -> Setup {
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
    pub fn set(self, settings: SimulatorSettings) -> Setup {
        let other = |setting: Setting| !setting.same(&self.settings, &settings);
        let asked = Asked {
            virtual_stages: self.asked.virtual_stages || other(Setting::VirtualStages),
            warm_up: self.asked.warm_up || other(Setting::WarmUp),
            ..self.asked
        };
        Setup { settings, asked, ..self }
    }

    /// The same with one setting as in `first`, where nobody asked for it.
    #[must_use]
    pub fn reset(self, setting: Setting, first: &SimulatorSettings) -> Setup {
        let asked = Asked {
            virtual_stages: self.asked.virtual_stages && setting != Setting::VirtualStages,
            warm_up: self.asked.warm_up && setting != Setting::WarmUp,
            ..self.asked
        };
        Setup { settings: setting.from(&self.settings, first), asked, ..self }
    }

    /// The same with a schedule that was asked for.
    #[must_use]
    pub fn with(self, schedule: Schedule) -> Setup {
        Setup { schedule, asked: Asked { schedule: true, ..self.asked }, ..self }
    }

    /// The settings that are not at their defaults and change something under the schedule, in a few words each.
    pub fn changes(&self) -> Vec<String> {
        let heard = Setting::ALL.into_iter().filter(|setting| setting.unused(self, None).is_none());
        heard.filter_map(|setting| setting.change(&self.settings)).collect()
    }
}

impl Default for Setup {
    /// As the plan says itself, else 1F1B, with the default settings.
    fn default() -> Self {
        Setup { asked: Asked::default(), ..Schedule::ALL[0].into() }
    }
}

impl From<Schedule> for Setup {
    /// The schedule, asked for, with the default settings where the plan says nothing else.
    fn from(schedule: Schedule) -> Self {
        Setup { schedule, settings: SimulatorSettings::default(), asked: Asked { schedule: true, ..Asked::default() } }
    }
}
