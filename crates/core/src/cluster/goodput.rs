//! Goodput: the share of a job's time that trains, after checkpoints, lost work and restarts.
//!
//! Young (CACM 1974) and Daly (FGCS 2006), to first order: with a checkpoint of `C` seconds every `τ` seconds, failures
//! every `M` seconds and `R` seconds to restart, a failure loses `τ / 2` on average, so the goodput is
//! `1 - C / τ - (τ / 2 + R) / M`. It is largest at `τ = sqrt(2 C M)`. All are `O(1)`.

/// Failures of a job, and what each costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failures {
    /// Mean time between two failures of the whole job, seconds.
    pub between_s: f64,
    /// Time to write a checkpoint, during which nothing is trained, seconds.
    pub checkpoint_s: f64,
    /// Time from a failure until training goes on from the last checkpoint, seconds.
    pub restart_s: f64,
}

impl Failures {
    /// Time between two checkpoints with the largest goodput, seconds; 0 if checkpoints take no time.
    pub fn interval_s(&self) -> f64 {
        (2.0 * self.checkpoint_s * self.between_s).sqrt()
    }

    /// Share of the time that trains, with the best interval; 0 if failures leave no time.
    pub fn goodput(&self) -> f64 {
        let interval_s = self.interval_s();
        let writing = if interval_s > 0.0 { self.checkpoint_s / interval_s } else { 0.0 };
        (1.0 - writing - (interval_s / 2.0 + self.restart_s) / self.between_s).max(0.0)
    }

    /// Work that is done again after failures, as a share of the work that stays; 0 if failures leave no time.
    pub fn repeated(&self) -> f64 {
        match self.goodput() {
            0.0 => 0.0,
            goodput => self.interval_s() / 2.0 / self.between_s / goodput,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meta's training of Llama 3.1 405B: 419 unplanned interruptions in 54 days on 16,384 devices.
    #[test]
    fn llama_3_1_on_16384_devices() {
        let failures = Failures { between_s: 54.0 * 86_400.0 / 419.0, checkpoint_s: 60.0, restart_s: 600.0 };
        assert_eq!((failures.interval_s().round(), (1e3 * failures.goodput()).round()), (1156.0, 842.0));
    }

    #[test]
    fn the_interval_is_the_best_one() {
        let failures = Failures { between_s: 3e4, checkpoint_s: 45.0, restart_s: 300.0 };
        let with = |interval_s: f64| 1.0 - 45.0 / interval_s - (interval_s / 2.0 + 300.0) / 3e4;
        let best = failures.interval_s();
        assert!((failures.goodput() - with(best)).abs() < 1e-12);
        assert!(with(best) > with(0.9 * best) && with(best) > with(1.1 * best));
        // Of the time, these shares write checkpoints, restart, train, and train again.
        let all = 45.0 / best + 300.0 / 3e4 + failures.goodput() * (1.0 + failures.repeated());
        assert!((all - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_ends_are_shares() {
        let free = Failures { between_s: 1e4, checkpoint_s: 0.0, restart_s: 0.0 };
        assert_eq!((free.interval_s(), free.goodput(), free.repeated()), (0.0, 1.0, 0.0));
        assert_eq!(Failures { between_s: 100.0, checkpoint_s: 60.0, restart_s: 600.0 }.goodput(), 0.0);
    }
}
