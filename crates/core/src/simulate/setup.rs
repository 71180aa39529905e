//! Schedule and settings of a simulation.

use super::{setting::SimulatorSetting, settings::SimulatorSettings};
use crate::{plan::Plan, plan::Schedule};

/// Parts of [`Setup`] that were requested explicitly. They take precedence over the plan's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExplicitSettings {
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
    pub explicit: ExplicitSettings,
}

impl Setup {
    /// Setup for this plan: the plan's own execution, except for what was requested.
    #[must_use]
    pub fn of(mut self, plan: &Plan) -> Setup {
        if let Some(own) = plan.execution {
            if !self.explicit.schedule {
                self.schedule = own.schedule;
            }
            // Schedules that deal out virtual stages in turn share their number. Others have their own.
            if !self.explicit.virtual_stages && self.schedule.loops() && own.schedule.has_free_parts() {
                self.settings.virtual_stages = own.virtual_stages;
            }
            if !self.explicit.warm_up {
                self.settings.warm_up = own.warm_up;
            }
        }
        self
    }

    /// Replaces the settings. Changed settings count as requested.
    #[must_use]
    pub fn set(self, settings: SimulatorSettings) -> Setup {
        let other = |setting: SimulatorSetting| !setting.same(&self.settings, &settings);
        let explicit = ExplicitSettings {
            virtual_stages: self.explicit.virtual_stages || other(SimulatorSetting::VirtualStages),
            warm_up: self.explicit.warm_up || other(SimulatorSetting::WarmUp),
            ..self.explicit
        };
        Setup { settings, explicit, ..self }
    }

    /// Takes one setting from `first`, and marks it as not requested.
    #[must_use]
    pub fn reset(self, setting: SimulatorSetting, first: &SimulatorSettings) -> Setup {
        let explicit = ExplicitSettings {
            virtual_stages: self.explicit.virtual_stages && setting != SimulatorSetting::VirtualStages,
            warm_up: self.explicit.warm_up && setting != SimulatorSetting::WarmUp,
            ..self.explicit
        };
        Setup { settings: setting.from(&self.settings, first), explicit, ..self }
    }

    /// Replaces the schedule and marks it as requested.
    #[must_use]
    pub fn with(self, schedule: Schedule) -> Setup {
        Setup { schedule, explicit: ExplicitSettings { schedule: true, ..self.explicit }, ..self }
    }

    /// Settings that differ from their defaults and have an effect under the schedule, in a few words each.
    pub fn changes(&self) -> Vec<String> {
        let heard = SimulatorSetting::ALL.into_iter().filter(|setting| setting.unused(self, None).is_none());
        heard.filter_map(|setting| setting.change(&self.settings)).collect()
    }
}

impl Default for Setup {
    /// The plan's own schedule, else 1F1B, with the default settings.
    fn default() -> Self {
        Setup { explicit: ExplicitSettings::default(), ..Schedule::ALL[0].into() }
    }
}

impl From<Schedule> for Setup {
    /// The requested schedule, with default settings unless the plan has its own.
    fn from(schedule: Schedule) -> Self {
        Setup {
            schedule,
            settings: SimulatorSettings::default(),
            explicit: ExplicitSettings { schedule: true, ..ExplicitSettings::default() },
        }
    }
}
