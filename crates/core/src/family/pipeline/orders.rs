//! Order of a replica's operations under each schedule, and its number of held microbatches: for the check.
//!
//! Written from the schedules' papers, one closed form for each (see [`Schedule`]). The number of an operation gives
//! its kind, its part of the model and its microbatch, so nothing is stored. Parts are numbered in the order in which a
//! microbatch passes them. `O(1)` time per operation. For ZB-V, the number of held microbatches takes a walk over the
//! beginning of the batch. Shares no code with the simulator.

use crate::plan::{Execution, Schedule, WarmUp};

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    Forward,
    /// Whole, or only of the inputs if the weights' part comes later.
    Backward,
    Weights,
}

/// One operation: kind, part of the model, and index among the replica's own microbatches.
pub(super) type Operation = (OperationKind, usize, u64);

/// Parameters that orders depend on.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    execution: Execution,
    /// By stage: its replicas, and the microbatches that each starts before its first backward under 1F1B.
    replicas: Vec<u64>,
    early: Vec<u64>,
}

impl Orders {
    pub(super) fn new(execution: Execution, replicas: &[u32]) -> Self {
        let replicas: Vec<u64> = replicas.iter().map(|&d| u64::from(d.max(1))).collect();
        let double = if execution.schedule == Schedule::EagerOneForwardOneBackward { 2 } else { 1 };
        let mut early = vec![0; replicas.len()];
        let mut behind = 0u64;
        for (s, &d) in replicas.iter().enumerate().rev() {
            early[s] = (double * behind).div_ceil(d);
            behind = match execution.warm_up {
                WarmUp::Published => behind + d,
                WarmUp::Cumulative => (behind.div_ceil(d) + 1) * d,
            };
        }
        Orders { execution, replicas, early }
    }

    fn stages(&self) -> u64 {
        self.replicas.len() as u64
    }

    /// Number of model parts on each stage.
    pub(super) fn parts(&self) -> u64 {
        match self.execution.schedule {
            Schedule::Interleaved | Schedule::InterleavedZeroBubble => u64::from(self.execution.virtual_stages.max(1)),
            Schedule::ZeroBubbleV => 2,
            _ => 1,
        }
    }

    /// Stage that holds a part.
    pub(super) fn stage_of(&self, part: usize) -> usize {
        let count = self.replicas.len();
        match self.execution.schedule {
            Schedule::ZeroBubbleV if part >= count => 2 * count - 1 - part,
            _ => part % count,
        }
    }

    /// True if the weights' part of a backward comes later.
    pub(super) fn splits_backward(&self) -> bool {
        self.execution.schedule.splits_backward()
    }

    /// Number of operations of a replica with `own` microbatches.
    pub(super) fn len(&self, own: u64) -> u64 {
        own * self.parts() * if self.splits_backward() { 3 } else { 2 }
    }

    /// Microbatches by which ZB-H1 delays the weights' part: the number that 1F1B's first stage holds in addition to
    /// this one.
    fn delay(&self, stage: usize) -> u64 {
        self.replicas[..stage].iter().sum::<u64>().div_ceil(self.replicas[stage])
    }

    /// Operation number `index` of a replica of a stage with `own` microbatches.
    pub(super) fn operation(&self, stage: usize, own: u64, index: u64) -> Operation {
        match self.execution.schedule {
            Schedule::GPipe if index < own => (OperationKind::Forward, stage, index),
            Schedule::GPipe => (OperationKind::Backward, stage, index - own),
            Schedule::Interleaved => self.interleaved(stage as u64, own, index),
            Schedule::InterleavedZeroBubble => self.interleaved_apart(stage as u64, own, index),
            Schedule::ZeroBubbleH1 => put_off(stage, own, self.early[stage].min(own), self.delay(stage), index),
            Schedule::ZeroBubbleV => self.v(stage as u64, own, index),
            _ => {
                let (kind, microbatch) = in_turn(own, self.early[stage].min(own), index);
                (kind, stage, microbatch)
            }
        }
    }

    /// Warm-up, pairs, the rest. Microbatches go in rounds, a round through all parts before the next.
    fn interleaved(&self, stage: u64, own: u64, index: u64) -> Operation {
        let (s, v, g) = (self.stages(), self.parts(), self.round(own));
        let early = (2 * (s - 1 - stage) + (v - 1) * g).min(own * v);
        let (kind, k) = in_turn(own * v, early, index);
        self.in_rounds(stage, g, (kind, k))
    }

    /// Warm-up, turns of a forward, a backward and the weights of an earlier one, the rest of the weights. Turn `k` has
    /// a forward while there are any, and weights from the turn on that has the stage's number.
    fn interleaved_apart(&self, stage: u64, own: u64, index: u64) -> Operation {
        let (s, v, g) = (self.stages(), self.parts(), self.round(own));
        let all = own * v;
        let early = ((v - 1) * g + s - 1 - stage).min(all);
        let before = |turn: u64| early + turn + turn.min(all - early) + turn.saturating_sub(stage);
        let numbered = if index < early {
            (OperationKind::Forward, index)
        } else if index >= before(all) {
            (OperationKind::Weights, all.saturating_sub(stage) + index - before(all))
        } else {
            // The last turn that begins at or before the operation.
            let (mut low, mut high) = (0, all);
            while low + 1 < high {
                let middle = u64::midpoint(low, high);
                if before(middle) <= index { low = middle } else { high = middle }
            }
            let forwards = u64::from(low < all - early);
            match index - before(low) {
                0 if forwards == 1 => (OperationKind::Forward, early + low),
                within if within == forwards => (OperationKind::Backward, low),
                _ => (OperationKind::Weights, low - stage),
            }
        };
        self.in_rounds(stage, g, numbered)
    }

    /// Operation number `k` of its kind, if microbatches go in rounds of `g` through the parts of a stage.
    fn in_rounds(&self, stage: u64, g: u64, (kind, k): (OperationKind, u64)) -> Operation {
        let (s, v) = (self.stages(), self.parts());
        let (round, within) = (k / (g * v), k % (g * v));
        let part = if kind == OperationKind::Forward { within / g } else { v - 1 - within / g };
        (kind, (part * s + stage) as usize, round * g + within % g)
    }

    /// Microbatches in a round of interleaved parts: as many as stages, or a few more so that rounds are equal.
    fn round(&self, own: u64) -> u64 {
        own.max(1) / (own / self.stages()).max(1)
    }

    /// ZB-V for batches of at least `2 S − 1` microbatches. Shorter batches use the same order without the missing
    /// microbatches.
    fn v(&self, stage: u64, own: u64, index: u64) -> Operation {
        let s = self.stages();
        let whole = own.max(2 * s - 1);
        if own == whole {
            return v_operation(stage, s, whole, index);
        }
        let all = (0..6 * whole).map(|at| v_operation(stage, s, whole, at)).filter(|operation| operation.2 < own);
        all.into_iter().nth(index as usize).unwrap_or((OperationKind::Weights, stage as usize, 0))
    }

    /// Maximum number of microbatch parts whose activations a replica of a stage holds at once, and the number of parts
    /// per microbatch.
    pub(super) fn parts_in_flight(&self, stage: usize, own: u64) -> (u64, u64) {
        let parts = self.parts();
        let early = self.early[stage];
        let most = match self.execution.schedule {
            Schedule::GPipe => own,
            Schedule::Interleaved => {
                let s = self.stages();
                2 * (s - 1 - stage as u64) + (parts - 1) * self.round(own) + 1
            }
            Schedule::InterleavedZeroBubble => self.stages() + (parts - 1) * self.round(own),
            Schedule::ZeroBubbleH1 => early + self.delay(stage) + 1,
            Schedule::ZeroBubbleV => {
                // The maximum is reached before the steady state.
                let seen = self.len(own).min(24 * self.stages());
                let mut now = 0u64;
                let mut most = 0;
                for index in 0..seen {
                    match self.operation(stage, own, index).0 {
                        OperationKind::Forward => now += 1,
                        OperationKind::Backward => {}
                        OperationKind::Weights => now = now.saturating_sub(1),
                    }
                    most = most.max(now);
                }
                most
            }
            _ => early + 1,
        };
        (most.min(own * parts), parts)
    }
}

/// `early` forwards, then a forward and a backward alternately, then the remaining backwards.
fn in_turn(own: u64, early: u64, index: u64) -> (OperationKind, u64) {
    if index < early {
        return (OperationKind::Forward, index);
    }
    let (turn, rest) = (index - early, own - early);
    match turn {
        _ if turn >= 2 * rest => (OperationKind::Backward, rest + (turn - 2 * rest)),
        _ if turn.is_multiple_of(2) => (OperationKind::Forward, early + turn / 2),
        _ => (OperationKind::Backward, turn / 2),
    }
}

/// ZB-H1: 1F1B with the weights' part of a backward `delay` backwards later, and the remaining ones at the end.
fn put_off(stage: usize, own: u64, early: u64, delay: u64, index: u64) -> Operation {
    // Number of forwards, backwards and weights before pair `k`.
    let pairs = own - early;
    let first = delay.min(pairs);
    let (begin, steady) = (early + 2 * first, 3 * (pairs - first));
    let (kind, microbatch) = if index < begin {
        in_turn(own, early, index)
    } else if index < begin + steady {
        let (round, step) = ((index - begin) / 3, (index - begin) % 3);
        match step {
            0 => (OperationKind::Forward, early + first + round),
            1 => (OperationKind::Backward, first + round),
            _ => (OperationKind::Weights, round),
        }
    } else {
        // Backwards alone until the delay is reached, then alternating with the weights, then weights.
        let (rest, alone) = (index - begin - steady, (delay - first).min(early));
        let turns = early - alone;
        match rest {
            _ if rest < alone => (OperationKind::Backward, pairs + rest),
            _ if rest < alone + 2 * turns => {
                let (round, step) = ((rest - alone) / 2, (rest - alone) % 2);
                if step == 0 {
                    (OperationKind::Backward, pairs + alone + round)
                } else {
                    (OperationKind::Weights, pairs - first + round)
                }
            }
            _ => (OperationKind::Weights, pairs - first + turns + (rest - alone - 2 * turns)),
        }
    };
    (kind, stage, microbatch)
}

/// ZB-V, handcrafted for equal times (Qi et al., NeurIPS 2024, section 3), on stage `p` of `s`: down the stages and
/// back up.
///
/// Phases: forwards down until the first microbatch is back; forwards up and down alternately; forward, backward and
/// weights up; steady rounds of both; rounds without forwards down; then backwards first and weights last.
fn v_operation(p: u64, s: u64, all: u64, index: u64) -> Operation {
    use OperationKind::{Backward, Forward, Weights};
    let (down, up) = (p as usize, (2 * s - 1 - p) as usize);
    let after = s - p;
    let started = 2 * after - 1 + p;
    let rounds = all - started;
    let lengths = [2 * after - 1, 2 * p, 3 * after, 6 * rounds, 5 * (all - p - after - rounds), 2 * p, 2 * after];
    let mut at = index;
    let mut phase = 0;
    while phase < lengths.len() && at >= lengths[phase] {
        at -= lengths[phase];
        phase += 1;
    }
    // Backwards finished when the last phases begin.
    let left = all - p - after - rounds;
    let (down_done, up_done) = (rounds + left, after + rounds + left);
    match phase {
        0 => (Forward, down, at),
        1 if at.is_multiple_of(2) => (Forward, up, at / 2),
        1 => (Forward, down, 2 * after - 1 + at / 2),
        2 => match at % 3 {
            0 => (Forward, up, p + at / 3),
            1 => (Backward, up, at / 3),
            _ => (Weights, up, at / 3),
        },
        3 => {
            let round = at / 6;
            match at % 6 {
                0 => (Forward, down, started + round),
                1 => (Backward, down, round),
                2 => (Weights, down, round),
                3 => (Forward, up, p + after + round),
                4 => (Backward, up, after + round),
                _ => (Weights, up, after + round),
            }
        }
        4 => {
            let round = rounds + at / 5;
            match at % 5 {
                0 => (Backward, down, round),
                1 => (Weights, down, round),
                2 => (Forward, up, p + after + round),
                3 => (Backward, up, after + round),
                _ => (Weights, up, after + round),
            }
        }
        5 if at.is_multiple_of(2) => (Backward, down, down_done + at / 2),
        5 => (Backward, up, up_done + at / 2),
        6 if at.is_multiple_of(2) => (Backward, down, down_done + p + at / 2),
        6 => (Weights, down, down_done + at / 2),
        _ if at < all - up_done => (Weights, up, up_done + at),
        _ => (Weights, down, down_done + after + (at - (all - up_done))),
    }
}
