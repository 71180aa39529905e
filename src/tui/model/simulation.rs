//! Simulation of the shown plan, its settings and its playback.

use std::sync::Arc;

use crate::{
    simulate::{Schedule, Setup, SimulatorSettings},
    tui::{
        panel_rows::PanelRow,
        playing::{FRAMES, Playhead, Playing, Tempo},
        schedule_editor::ScheduleEditor,
        shown::ShownRun,
        simulated::Simulated,
    },
};

/// Simulation of the shown plan, its settings and its playback.
pub(in crate::tui) struct Simulation {
    /// Schedule and settings of the simulator.
    pub(in crate::tui) setup: Setup,
    /// Initial settings of the simulator.
    pub(in crate::tui) first_settings: SimulatorSettings,
    /// Timeline of its plan.
    pub(in crate::tui) simulated: Option<Arc<Simulated>>,
    /// Schedule of the user's, from a file or an edit.
    pub(in crate::tui) own_schedule: Option<Schedule>,
    /// Closed editor whose edits are kept.
    pub(in crate::tui) schedule_editor: Option<Box<ScheduleEditor>>,
    /// Playback of the simulated iteration.
    pub(in crate::tui) playing: Playing,
}

impl Simulation {
    /// Simulated iteration of a run, if it is there.
    pub(in crate::tui) fn of(&self, shown: &ShownRun) -> Option<&Arc<Simulated>> {
        self.simulated.as_ref().filter(|simulated| std::ptr::eq(simulated.shown.as_ref(), shown))
    }

    /// Length of the iteration, if there is one, seconds.
    pub(in crate::tui) fn batch_to_play(&self) -> Option<f64> {
        let batch = self.simulated.as_ref().map(|simulated| simulated.timeline.iteration_s);
        batch.filter(|batch| *batch > 0.0 && batch.is_finite())
    }

    /// Parts of the iteration that are played at different speeds.
    pub(in crate::tui) fn tempo(&self) -> Option<Tempo> {
        let simulated = self.simulated.as_ref()?;
        Some(Tempo { batch_s: simulated.timeline.iteration_s, steady: simulated.steady })
    }

    /// Time of the playhead, if there is one, and length of a picture, in seconds of the iteration.
    pub(in crate::tui) fn playhead(&self) -> Option<(f64, f64)> {
        let tempo = self.tempo()?;
        match self.playing.head {
            Playhead::Away => None,
            Playhead::Held => Some((self.playing.at_s, 0.0)),
            Playhead::Runs(_) => Some((self.playing.at_s, self.playing.pace(&tempo) / f64::from(FRAMES))),
        }
    }

    /// Schedule other than the first.
    fn other_schedule(&self) -> Schedule {
        Some(self.setup.schedule).filter(|schedule| *schedule != Schedule::ALL[0]).unwrap_or(Schedule::GPipe)
    }

    /// Reason why a simulator row has no effect on the shown plan; `None` if it has one.
    pub(in crate::tui) fn ignored(&self, row: PanelRow) -> Option<String> {
        let pipeline = self.simulated.as_ref().map(|simulated| &simulated.pipeline);
        match row {
            PanelRow::Setting(setting) => setting.unused(&self.setup, pipeline).map(str::to_string),
            PanelRow::Schedule => pipeline.filter(|pipeline| pipeline.runs_once())?.refusal(self.other_schedule()),
            _ => None,
        }
    }
}
