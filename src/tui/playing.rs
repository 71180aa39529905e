//! Playback of the simulated iteration: playhead (also the cursor of the Timeline), time, speed and steps.
//!
//! While it runs the screen is drawn at most [`FRAMES`] times a second. Paused or hidden it wakes nothing.

use std::time::{Duration, Instant};

use super::{
    model::{Model, Simulation},
    simulated::{Lane, Simulated},
    views::View,
};

/// Pictures per second.
const FRAMES: u32 = 10;

/// Duration of an iteration at the usual speed, seconds.
const LENGTH_S: f64 = 24.0;

/// Maximum number of times that the speed can be halved or doubled.
const MOST: i32 = 10;

/// State of the playhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Playhead {
    /// No playhead: the iteration is shown as a whole.
    #[default]
    Away,
    /// Paused.
    Held,
    /// Running, with the time of its last move.
    Runs(Instant),
}

/// State of the playback.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Playing {
    /// The playhead.
    pub head: Playhead,
    /// Time of the playhead, or its last one, in seconds of the iteration.
    pub at_s: f64,
    /// Number of times that the usual speed was doubled; negative if halved.
    pub speed: i32,
}

impl Playing {
    /// Speed relative to the usual one: `4x`, `1/8x`; empty if equal.
    pub(super) fn told(self) -> String {
        match self.speed {
            0 => String::new(),
            speed if speed > 0 => format!("{}x", 1u32 << speed),
            speed => format!("1/{}x", 1u32 << -speed),
        }
    }

    /// Sets the time of the playhead in an iteration, both in seconds, clamped to it. A non-finite time gives 0.
    fn put(&mut self, time_s: f64, batch_s: f64) {
        self.at_s = if time_s.is_finite() { time_s.clamp(0.0, batch_s) } else { 0.0 };
    }
}

impl Simulation {
    /// Seconds of the iteration per second of real time.
    fn pace(&self, batch_s: f64) -> f64 {
        batch_s / LENGTH_S * 2f64.powi(self.playing.speed)
    }

    /// Length of the iteration, if there is one, seconds.
    fn batch_to_play(&self) -> Option<f64> {
        let batch = self.simulated.as_ref().map(|simulated| simulated.timeline.iteration_s);
        batch.filter(|batch| *batch > 0.0 && batch.is_finite())
    }

    /// Time of the playhead, if there is one, and length of a picture, in seconds of the iteration.
    pub(super) fn playhead(&self) -> Option<(f64, f64)> {
        let batch = self.simulated.as_ref()?.timeline.iteration_s;
        match self.playing.head {
            Playhead::Away => None,
            Playhead::Held => Some((self.playing.at_s, 0.0)),
            Playhead::Runs(_) => Some((self.playing.at_s, self.pace(batch) / f64::from(FRAMES))),
        }
    }
}

impl Model {
    /// Starts or pauses the playhead. At the end of the iteration it restarts.
    pub(super) fn play_or_hold(&mut self) {
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
    pub(super) fn change_speed(&mut self, faster: bool) {
        self.run_playhead();
        self.simulation.playing.speed =
            (self.simulation.playing.speed + if faster { 1 } else { -1 }).clamp(-MOST, MOST);
    }

    /// Time of the next picture; `None` if nothing runs or the view shows no playhead.
    pub(super) fn playing_due(&self) -> Option<Instant> {
        let held = self.demo.as_ref().is_some_and(|demo| demo.held);
        let seen = self.view.room().uses().playhead && !held;
        match self.simulation.playing.head {
            Playhead::Runs(last) if seen => Some(last + Duration::from_secs(1) / FRAMES),
            _ => None,
        }
    }

    /// Time at which the picture changes by itself: by playback or after a change.
    pub(super) fn motion_due(&self) -> Option<Instant> {
        self.playing_due().into_iter().chain(self.change_due()).min()
    }

    /// Moves a running playhead to the current time.
    pub(super) fn run_playhead(&mut self) {
        let Playhead::Runs(last) = self.simulation.playing.head else { return };
        // A paused tour pauses the playback.
        if self.demo.as_ref().is_some_and(|demo| demo.held) {
            self.simulation.playing.head = Playhead::Runs(self.appearance.now);
            return;
        }
        let Some(batch) = self.simulation.batch_to_play() else {
            self.simulation.playing.head = Playhead::Away;
            return;
        };
        // Limit the jump after a long pause without drawing.
        let passed = self.appearance.now.saturating_duration_since(last).as_secs_f64().min(0.5);
        let at = self.simulation.playing.at_s + passed * self.simulation.pace(batch);
        self.put_playhead(at.min(batch), batch);
        self.simulation.playing.head = if at >= batch { Playhead::Held } else { Playhead::Runs(self.appearance.now) };
    }

    /// Pauses the playhead at the next or the previous event of any stage.
    pub(super) fn step_event(&mut self, forwards: bool) {
        let (Some(batch), Some(simulated)) = (self.simulation.batch_to_play(), self.simulation.simulated.clone())
        else {
            return;
        };
        let found = neighbour(&simulated, self.simulation.playing.at_s, forwards);
        self.hold_at(found.unwrap_or(if forwards { batch } else { 0.0 }), batch);
    }

    /// Pauses the playhead at a time of an iteration, both in seconds.
    pub(super) fn hold_at(&mut self, time_s: f64, batch_s: f64) {
        self.put_playhead(time_s, batch_s);
        self.simulation.playing.head = Playhead::Held;
    }

    /// Sets the playhead to a time of an iteration, both in seconds. Views that show a part of the iteration scroll to
    /// it.
    pub(super) fn put_playhead(&mut self, time_s: f64, batch_s: f64) {
        self.simulation.playing.put(time_s, batch_s);
        for view in View::ALL {
            view.room().seek(self, batch_s);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_playhead_stays_in_the_batch() {
        let mut playing = Playing::default();
        for (time_s, batch_s, at_s) in [
            (3.0, 5.0, 3.0),
            (7.0, 5.0, 5.0),
            (-1.0, 5.0, 0.0),
            (f64::NAN, 5.0, 0.0),
            (f64::NAN, 0.0, 0.0),
            (1.0, 0.0, 0.0),
        ] {
            playing.at_s = 4.0;
            playing.put(time_s, batch_s);
            assert_eq!(playing.at_s, at_s, "{time_s} of {batch_s}");
        }
    }
}
