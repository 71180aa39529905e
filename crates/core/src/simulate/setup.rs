//! Schedule and settings of a simulation.

use super::{setting::Setting, settings::SimulatorSettings};
use crate::{plan::Plan, plan::Schedule};

/// Parts of [`Setup`] that were requested explicitly. They take precedence over the plan's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// The schedule.
    pub schedule: bool,
    /// [`SimulatorSettings::virtual_stages`].
    pub virtual_stages: bool,
    /// [`SimulatorSettings::warm_up`].
    pub warm_up: bool,
}

/// Schedule and settings with which a plan is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// Schedule. If the plan cannot run it, [`super::Pipeline::schedule`] replaces it.
    pub schedule: Schedule,
    /// Settings.
    pub settings: SimulatorSettings,
    /// Parts that were requested explicitly.
    pub asked: Asked,
}

impl Setup {
    /// Setup for this plan: the plan's own execution, except for what was requested.
    #[must_use]
    pub fn of(mut self, plan: &Plan) -> Setup {
        if let Some(own) = plan.execution {
            if !self.asked.schedule {
                self.schedule = own.schedule;
            }
            // Virtual stages belong to the schedule: another schedule has its own number.
            if !self.asked.virtual_stages && self.schedule == own.schedule && own.schedule == Schedule::Interleaved {
                self.settings.virtual_stages = own.virtual_stages;
            }
            if !self.asked.warm_up {
                self.settings.warm_up = own.warm_up;
            }
        }
        self
    }

    /// Replaces the settings. Changed settings count as requested.
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

    /// Takes one setting from `first`, and marks it as not requested.
    #[must_use]
    pub fn reset(self, setting: Setting, first: &SimulatorSettings) -> Setup {
        let asked = Asked {
            virtual_stages: self.asked.virtual_stages && setting != Setting::VirtualStages,
            warm_up: self.asked.warm_up && setting != Setting::WarmUp,
            ..self.asked
        };
        Setup { settings: setting.from(&self.settings, first), asked, ..self }
    }

    /// Replaces the schedule and marks it as requested.
    #[must_use]
    pub fn with(self, schedule: Schedule) -> Setup {
        Setup { schedule, asked: Asked { schedule: true, ..self.asked }, ..self }
    }

    /// Settings that differ from their defaults and have an effect under the schedule, in a few words each.
    pub fn changes(&self) -> Vec<String> {
        let heard = Setting::ALL.into_iter().filter(|setting| setting.unused(self, None).is_none());
        heard.filter_map(|setting| setting.change(&self.settings)).collect()
    }
}

impl Default for Setup {
    /// The plan's own schedule, else 1F1B, with the default settings.
    fn default() -> Self {
        Setup { asked: Asked::default(), ..Schedule::ALL[0].into() }
    }
}

impl From<Schedule> for Setup {
    /// The requested schedule, with default settings unless the plan has its own.
    fn from(schedule: Schedule) -> Self {
        Setup { schedule, settings: SimulatorSettings::default(), asked: Asked { schedule: true, ..Asked::default() } }
    }
}
