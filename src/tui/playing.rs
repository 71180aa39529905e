//! Playback of the simulated iteration: playhead (also the cursor of the Timeline), time, speed and steps.
//!
//! While it runs the screen is drawn at most [`FRAMES`] times a second. Paused or hidden it wakes nothing.

use std::time::Instant;

/// Pictures per second.
pub(super) const FRAMES: u32 = 10;

/// Duration of an iteration at the usual speed, seconds.
const LENGTH_S: f64 = 24.0;

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
    pub(super) fn put(&mut self, time_s: f64, batch_s: f64) {
        self.at_s = if time_s.is_finite() { time_s.clamp(0.0, batch_s) } else { 0.0 };
    }

    /// Seconds of an iteration of `batch_s` seconds per second of real time.
    pub(super) fn pace(self, batch_s: f64) -> f64 {
        batch_s / LENGTH_S * 2f64.powi(self.speed)
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
