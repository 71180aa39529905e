//! Playback of the simulated iteration: playhead (also the cursor of the Timeline), time, speed and steps.
//!
//! While it runs the screen is drawn at most [`FRAMES`] times a second. Paused or hidden it wakes nothing.

use std::time::Instant;

use crate::study::steady::Steady;

/// Pictures per second.
pub(super) const FRAMES: u32 = 10;

/// Duration of a microbatch at the usual speed, seconds.
const MICROBATCH_S: f64 = 0.5;
/// Duration of the part of the steady state that passes quickly, seconds.
const SKIPPED_S: f64 = 2.0;
/// Longest duration of the rest of an iteration, and that of an iteration without a steady state, seconds.
const LONGEST_S: (f64, f64) = (24.0, 12.0);

/// Microbatches of the steady state that are played in full before the rest passes quickly.
const BEFORE: f64 = 4.0;
/// Microbatches at its end that are played in full again.
const AFTER: f64 = 2.0;

/// Parts of an iteration that are played at different speeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tempo {
    /// Length of the iteration, seconds.
    pub batch_s: f64,
    /// Its steady state, if it has one.
    pub steady: Option<Steady>,
}

impl Tempo {
    /// Part of the steady state that passes quickly, seconds; `None` if it is short.
    fn skipped(&self) -> Option<(f64, f64)> {
        let steady = self.steady?;
        let part = (steady.from_s + BEFORE * steady.microbatch_s, steady.until_s - AFTER * steady.microbatch_s);
        (part.1 - part.0 >= BEFORE * steady.microbatch_s).then_some(part)
    }

    /// True in the part that passes quickly.
    pub(super) fn skips(&self, at_s: f64) -> bool {
        self.skipped().is_some_and(|(from, until)| (from..until).contains(&at_s))
    }

    /// Seconds of the iteration per second of real time, at a time of the iteration.
    fn pace(&self, at_s: f64) -> f64 {
        let Some(steady) = self.steady else { return self.batch_s / LONGEST_S.1 };
        let skipped = self.skipped().map_or(0.0, |(from, until)| until - from);
        match self.skips(at_s) {
            true => skipped / SKIPPED_S,
            false => (steady.microbatch_s / MICROBATCH_S).max((self.batch_s - skipped) / LONGEST_S.0),
        }
    }

    /// End of the part that a time is in: the speed changes there.
    fn end(&self, at_s: f64) -> f64 {
        let ends = self.skipped().map_or([self.batch_s; 2], |(from, until)| [from, until]);
        ends.into_iter().find(|end| at_s < *end).unwrap_or(self.batch_s)
    }
}

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
    /// Speed relative to real time: `1/2.4 of real time`, `60x real time`.
    pub(super) fn told(self, tempo: &Tempo) -> String {
        let short = |ratio: f64| if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") };
        match self.pace(tempo) {
            pace if pace >= 1.0 => format!("{}x real time", short(pace)),
            pace => format!("1/{} of real time", short(1.0 / pace)),
        }
    }

    /// Sets the time of the playhead in an iteration, both in seconds, clamped to it. A non-finite time gives 0.
    pub(super) fn put(&mut self, time_s: f64, batch_s: f64) {
        self.at_s = if time_s.is_finite() { time_s.clamp(0.0, batch_s) } else { 0.0 };
    }

    /// Seconds of the iteration per second of real time.
    pub(super) fn pace(self, tempo: &Tempo) -> f64 {
        tempo.pace(self.at_s) * 2f64.powi(self.speed)
    }

    /// Time of the playhead after some seconds of real time, at most at the end of the part it is in.
    pub(super) fn after(self, passed_s: f64, tempo: &Tempo) -> f64 {
        (self.at_s + passed_s * self.pace(tempo)).min(tempo.end(self.at_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_steady_state_passes_quickly() {
        let steady = Steady { from_s: 2.0, until_s: 198.0, microbatch_s: 1.0, forward_s: 0.3 };
        let tempo = Tempo { batch_s: 200.0, steady: Some(steady) };
        let mut playing = Playing::default();
        let (mut frames, mut quick) = (0, 0);
        while playing.at_s < 200.0 {
            quick += i32::from(tempo.skips(playing.at_s));
            playing.at_s = playing.after(0.1, &tempo);
            frames += 1;
        }
        assert!((70..=71).contains(&frames) && quick == 20, "5 s in full, 2 s quickly: {frames} {quick}");
        let all = Tempo { batch_s: 6.0, steady: None };
        assert_eq!(Playing::default().told(&all), "1/2.0 of real time");
    }

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
