//! Message on choices that a key skips, with the reason, because users do not search for missing choices.

use crate::{
    planner::{OptionKind, OptionSpec, OptionValue},
    simulate::Schedule,
    tui::{
        action::Action,
        effect::Effects,
        model::{Model, Tone},
    },
};

/// Option of planners that plan for given schedules, by their ids.
const SCHEDULE: &str = "schedule";

impl Model {
    /// Reports the schedules that the plan cannot run, since the key skips them.
    pub(in crate::tui) fn tell_left_out(&mut self, playable: &[Schedule], next: Schedule) {
        let Some(simulated) = self.simulation.simulated.as_ref().filter(|simulated| !simulated.pipeline.runs_once())
        else {
            return;
        };
        let left_out: Vec<&str> = Schedule::ALL
            .iter()
            .filter(|schedule| !playable.contains(schedule))
            .map(|schedule| schedule.name())
            .collect();
        let why = Schedule::ALL.iter().find_map(|&schedule| simulated.pipeline.refusal(schedule));
        if let Some(why) = why {
            let key = self
                .appearance
                .keymap
                .of_action(Action::PlanForSchedule)
                .filter(|_| self.plannable_schedule(None).is_some());
            let key = key.map(|key| format!("; {key} plans for one of them")).unwrap_or_default();
            let told = format!("{}; left out: {}: {why}{key}", next.name(), left_out.join(", "));
            self.message = Some((Tone::Done, told));
        }
    }

    /// Plans again for a schedule that the plan cannot run, of those `wanted` or of all: with the planner in force if it
    /// supports one, else with the first that does.
    pub(in crate::tui) fn plan_for_schedule(&mut self, wanted: Option<Schedule>) -> Effects {
        let Some((planner, spec, value, schedule)) = self.plannable_schedule(wanted) else {
            let why = "no planner plans for a schedule that this plan cannot run";
            self.message = Some((Tone::Refused, why.into()));
            return vec![];
        };
        self.simulation.setup = self.simulation.setup.with(schedule);
        let mut effects = self.choose(planner);
        effects.append(&mut self.set_option(spec, value));
        let name = self.session.planners[planner].info().name;
        self.message = Some((Tone::Done, format!("{name} plans for {}", schedule.name())));
        effects
    }

    /// First schedule that the plan refuses and a planner supports, with that planner and its option. `wanted` is the only
    /// one to look for.
    pub(in crate::tui) fn plannable_schedule(
        &self,
        wanted: Option<Schedule>,
    ) -> Option<(usize, &'static OptionSpec, OptionValue, Schedule)> {
        let simulated = self.simulation.simulated.as_ref().filter(|simulated| !simulated.pipeline.runs_once())?;
        let asked = |schedule: &Schedule| wanted.is_none_or(|wanted| wanted == *schedule);
        let refused = Schedule::ALL.into_iter().filter(asked);
        let mut refused = refused.filter(|&schedule| simulated.pipeline.refusal(schedule).is_some());
        let others = (0..self.session.planners.len())
            .filter(|&other| other != self.session.planner && self.session.is_native(other));
        let planners: Vec<usize> = std::iter::once(self.session.planner).chain(others).collect();
        let offers = |planner: usize, schedule: Schedule| {
            let ignored = self.session.planners[planner].ignores(&self.session.workload);
            let spec = self.session.planners[planner].options().iter().find(|spec| spec.name == SCHEDULE)?;
            let OptionKind::Choice { choices, .. } = spec.kind else { return None };
            let (id, _) = choices.iter().find(|(id, _)| *id == schedule.id() && !ignored.contains(&SCHEDULE))?;
            let value = OptionValue::Choice(id);
            // Do not retry a schedule that the planner already plans for without reaching it.
            let tried = planner == self.session.planner && self.session.option_value(spec) == value;
            (!tried).then_some((planner, spec, value, schedule))
        };
        refused.find_map(|schedule| planners.iter().find_map(|&planner| offers(planner, schedule)))
    }
}
