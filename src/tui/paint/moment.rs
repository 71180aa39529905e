//! State of every device at a moment of the simulated iteration: activity and memory.
//!
//! The simulator skips the middle of a long iteration, where the pipeline repeats itself. A moment there is mapped to
//! the same phase of the repeating interval before it. `O(log events)` per device.

use super::shades::{Activity, Shade, Shades};
use crate::{
    simulate::EventKind,
    tui::simulated::{Lane, Share, Simulated, Work},
};

/// Moment and its length: the time between two pictures.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui) struct Moment<'a> {
    pub simulated: &'a Simulated,
    pub at_s: f64,
    pub span_s: f64,
}

/// Fraction of an interval by [`Activity`], 0 to 1 each.
pub(in crate::tui) type Shares = [f64; 5];

impl Moment<'_> {
    /// Activities of a replica of a stage. In a plan for one sample all rows of a stage are one device.
    pub(in crate::tui) fn shares(&self, stage: usize, replica: u32) -> Shares {
        let rows = self.simulated.timeline.replicas.get(stage).copied().unwrap_or(0);
        if rows == 0 {
            return Shares::default();
        }
        let replicas = if self.simulated.pipeline.single_sample.is_some() { 0..rows } else { last(replica, rows) };
        let mut most = Shares::default();
        for replica in replicas {
            let shares = self.of_row(stage, replica);
            if shares.iter().sum::<f64>() > most.iter().sum::<f64>() {
                most = shares;
            }
        }
        most
    }

    fn of_row(&self, stage: usize, replica: u32) -> Shares {
        let at = self.simulated.repeated(stage, replica, self.at_s);
        if self.span_s > 0.0 {
            let shares = shares(&self.simulated.share(stage, replica, at, at + self.span_s), self.span_s);
            if shares.iter().sum::<f64>() > 0.02 {
                return shares;
            }
        } else if let Some(event) = self.simulated.at(Lane::Compute, stage, replica, at) {
            let mut shares = Shares::default();
            shares[of(event.kind) as usize] = 1.0;
            return shares;
        }
        let sends = self.simulated.at(Lane::Links, stage, replica, at).is_some();
        let mut shares = Shares::default();
        shares[Activity::Communication as usize] = if sends { 1.0 } else { 0.0 };
        shares
    }

    /// Memory of a device of a stage, bytes.
    pub(in crate::tui) fn memory(&self, stage: usize) -> f64 {
        let Some(steps) = self.simulated.timeline.memory.get(stage) else { return 0.0 };
        let at = self.simulated.repeated(stage, 0, self.at_s);
        let next = steps.partition_point(|step| step.0 <= at);
        steps.get(next.saturating_sub(1)).map_or(0.0, |step| step.1)
    }
}

/// Row of a replica; the last row if a stage's devices share one.
fn last(replica: u32, rows: u32) -> std::ops::Range<u32> {
    let row = replica.min(rows - 1);
    row..row + 1
}

/// Activity of a kind of event.
pub(in crate::tui) fn of(kind: EventKind) -> Activity {
    match kind {
        EventKind::Forward => Activity::Forward,
        EventKind::Recompute => Activity::Recompute,
        EventKind::Backward | EventKind::WeightGradient => Activity::Backward,
        EventKind::OptimizerStep => Activity::Step,
        _ => Activity::Communication,
    }
}

/// Converts seconds of an interval to fractions of it.
pub(in crate::tui) fn shares(share: &Share, length_s: f64) -> Shares {
    let length = length_s.max(f64::MIN_POSITIVE);
    let work = |kind: Work| share.work_s[kind as usize] / length;
    let backward = work(Work::Backward) + work(Work::Weights);
    [work(Work::Forward), work(Work::Recompute), backward, share.all_reduce_s / length, work(Work::Optimizer)]
}

/// Mixed colour of activities. Weights are rounded to halves, so that small changes cause no redraw.
pub(in crate::tui) fn stepped(shades: &Shades, shares: &Shares) -> Shade {
    let whole: f64 = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let parts = Activity::ALL.map(|activity| {
        let share = (shares[activity as usize] / whole * 2.0).round() / 2.0;
        (shades.activity(activity), share)
    });
    shades.mix(&parts)
}

/// Activity with the largest fraction; `None` if there is none.
pub(in crate::tui) fn most(shares: &Shares) -> Option<Activity> {
    let most = Activity::ALL.into_iter().max_by(|a, b| shares[*a as usize].total_cmp(&shares[*b as usize]))?;
    (shares[most as usize] > 0.02).then_some(most)
}
