//! What a key that goes round leaves out, told with the reason: nobody looks for what is not there.

use super::model::{Model, Tone};
use crate::simulate::Schedule;

impl Model {
    /// Says which schedules the plan cannot run, since a key that steps over them does not.
    pub(super) fn tell_left_out(&mut self, playable: &[Schedule], next: Schedule) {
        let Some(simulated) = self.simulated.as_ref().filter(|simulated| !simulated.pipeline.runs_once()) else {
            return;
        };
        let left_out: Vec<&str> = Schedule::ALL
            .iter()
            .filter(|schedule| !playable.contains(schedule))
            .map(|schedule| schedule.name())
            .collect();
        let why = Schedule::ALL.iter().find_map(|&schedule| simulated.pipeline.refusal(schedule));
        if let Some(why) = why {
            self.message = Some((Tone::Done, format!("{}; left out: {}: {why}", next.name(), left_out.join(", "))));
        }
    }
}
