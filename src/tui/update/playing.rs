//! Start, pause, speed and steps of the playback.

use crate::tui::{
    model::{Model, View},
    playing::Playhead,
    simulated::{Lane, Simulated},
};

/// Maximum number of times that the speed can be halved or doubled.
const MOST: i32 = 10;

impl Model {
    /// Starts or pauses the playhead. At the end of the iteration it restarts.
    pub(in crate::tui) fn play_or_hold(&mut self) {
        let Some(batch) = self.simulation.batch_to_play() else { return };
        self.simulation.playing.head = match self.simulation.playing.head {
            Playhead::Runs(_) => Playhead::Held,
            Playhead::Held | Playhead::Away => {
                if self.simulation.playing.at_s >= batch * (1.0 - 1e-9) {
                    self.put_playhead(0.0, batch);
                }
                Playhead::Runs(self.appearance.now)
            }
        };
    }

    /// Doubles or halves the speed.
    pub(in crate::tui) fn change_speed(&mut self, faster: bool) {
        self.run_playhead();
        self.simulation.playing.speed =
            (self.simulation.playing.speed + if faster { 1 } else { -1 }).clamp(-MOST, MOST);
    }

    /// Moves a running playhead to the current time.
    pub(in crate::tui) fn run_playhead(&mut self) {
        let Playhead::Runs(last) = self.simulation.playing.head else { return };
        // A paused tour pauses the playback.
        if self.demo.as_ref().is_some_and(|demo| demo.held) {
            self.simulation.playing.head = Playhead::Runs(self.appearance.now);
            return;
        }
        let (Some(batch), Some(tempo)) = (self.simulation.batch_to_play(), self.simulation.tempo()) else {
            self.simulation.playing.head = Playhead::Away;
            return;
        };
        // Limit the jump after a long pause without drawing.
        let passed = self.appearance.now.saturating_duration_since(last).as_secs_f64().min(0.5);
        let at = self.simulation.playing.after(passed, &tempo);
        self.put_playhead(at.min(batch), batch);
        self.simulation.playing.head = if at >= batch { Playhead::Held } else { Playhead::Runs(self.appearance.now) };
    }

    /// Pauses the playhead at the next or the previous event of any stage.
    pub(in crate::tui) fn step_event(&mut self, forwards: bool) {
        let (Some(batch), Some(simulated)) = (self.simulation.batch_to_play(), self.simulation.simulated.clone())
        else {
            return;
        };
        let found = neighbour(&simulated, self.simulation.playing.at_s, forwards);
        self.hold_at(found.unwrap_or(if forwards { batch } else { 0.0 }), batch);
    }

    /// Pauses the playhead at a time of an iteration, both in seconds.
    pub(in crate::tui) fn hold_at(&mut self, time_s: f64, batch_s: f64) {
        self.put_playhead(time_s, batch_s);
        self.simulation.playing.head = Playhead::Held;
    }

    /// Sets the playhead to a time of an iteration, both in seconds. Views that show a part of the iteration scroll to
    /// it.
    pub(in crate::tui) fn put_playhead(&mut self, time_s: f64, batch_s: f64) {
        self.simulation.playing.put(time_s, batch_s);
        for view in View::ALL {
            view.behaviour().seek(self, batch_s);
        }
    }
}

/// Time just inside the next event of the first replica of any stage.
fn neighbour(simulated: &Simulated, at_s: f64, forwards: bool) -> Option<f64> {
    let inside = |stage: usize, start: f64| {
        let length = simulated.at(Lane::Compute, stage, 0, start).map_or(0.0, |event| event.end_s - start);
        start + length * 1e-3
    };
    let next = |stage: usize| {
        // A step back from within an event goes to the event before it.
        let here = simulated.at(Lane::Compute, stage, 0, at_s).filter(|_| !forwards);
        let from = here.map_or(at_s, |event| event.start_s);
        Some(inside(stage, simulated.neighbour(stage, 0, from, forwards)?))
    };
    let times = (0..simulated.timeline.replicas.len()).filter_map(next);
    if forwards {
        times.filter(|time| *time > at_s).min_by(f64::total_cmp)
    } else {
        times.filter(|time| *time < at_s).max_by(f64::total_cmp)
    }
}
