//! Phases of a schedule: stretches in which every round does the same, so that a leap can skip many rounds.
//!
//! A round advances every stage by a few microbatches; in most schedules by one. Replicas take turns, so the state
//! after some rounds equals the state before them with the replicas of each stage rotated: replica `r` becomes replica
//! `(r + microbatches) mod d`. This holds for any numbers of replicas, divisible or not.

use std::ops::Range;

use super::{order::Segment, program::Program};

/// A worker's part in a phase.
#[derive(Debug, Clone, Copy)]
struct WorkerPhase {
    /// Operations before the phase.
    before: u64,
    /// Operations per repetition.
    period: u64,
    /// Own microbatches per repetition.
    step: u64,
    replicas: u64,
    replica: u64,
}

impl WorkerPhase {
    /// Number of repetitions that begin within the first `microbatches` of the phase.
    fn repetitions(&self, microbatches: u64) -> u64 {
        if self.step == 1 {
            microbatches.saturating_sub(self.replica).div_ceil(self.replicas)
        } else {
            microbatches / (self.step * self.replicas)
        }
    }

    /// Minimum number of microbatches within which `repetitions` begin.
    fn reaching(&self, repetitions: u64) -> u64 {
        match repetitions.checked_sub(1) {
            None => 0,
            Some(others) if self.step == 1 => others * self.replicas + self.replica + 1,
            Some(_) => repetitions * self.step * self.replicas,
        }
    }

    /// Maximum number of microbatches within which at most `repetitions` begin.
    fn within(&self, repetitions: u64) -> u64 {
        self.reaching(repetitions + 1) - 1
    }
}

/// Stretch of the schedule in which every round does the same.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    parts: Vec<WorkerPhase>,
    /// Microbatches per round.
    pub(super) round: u64,
    /// Range of rounds whose microbatches are not drawn.
    pub(super) skippable: Range<u64>,
    /// By worker: its first operation of a microbatch that is not drawn.
    unseen: Vec<u64>,
    /// Maximum number of replicas of a stage.
    most_replicas: u64,
}

impl Phase {
    /// Maximum number of operations of each worker after `rounds`. A worker that is blocked by another lags by the same
    /// amount in every round.
    pub(super) fn goal(&self, rounds: u64) -> impl Fn(usize) -> u64 {
        move |worker| {
            let part = &self.parts[worker];
            part.before + part.period * part.repetitions(rounds * self.round)
        }
    }

    /// Workers whose turn is in a round, the last stage's first.
    pub(super) fn turns(&self, program: &Program, round: u64) -> Vec<usize> {
        let mut workers = vec![];
        for group in program.groups.iter().rev() {
            let replicas = u64::from(group.replicas);
            let first = round * self.round % replicas;
            // The worker whose turn is first comes last in this list.
            let turn = |k: u64| group.first_worker + ((first + k) % replicas) as usize;
            workers.extend((0..replicas.min(self.round)).rev().map(turn));
        }
        workers
    }

    /// Worker that does after `rounds` what `worker` does now.
    pub(super) fn successor(&self, program: &Program, worker: usize, rounds: u64) -> usize {
        let part = &self.parts[worker];
        let first = program.groups[program.workers[worker].stage as usize].first_worker;
        first + ((part.replica + rounds * self.round) % part.replicas) as usize
    }

    /// Number of rounds after which every replica has its own turn again; `None` on overflow.
    pub(super) fn whole_turn(&self) -> Option<u64> {
        let turn = |all: u64, part: &WorkerPhase| {
            let (mut a, mut b) = (part.replicas, self.round);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            common_multiple(all, part.replicas / a)
        };
        self.parts.iter().try_fold(1, turn)
    }

    /// Number of rounds that a state may depend on.
    pub(super) fn memory(&self) -> usize {
        (self.most_replicas / self.round) as usize
    }

    /// Number of rounds after which a worker may have done `done` operations.
    pub(super) fn rounds(&self, worker: usize, done: u64) -> u64 {
        let part = &self.parts[worker];
        part.reaching(done.saturating_sub(part.before).div_ceil(part.period)).div_ceil(self.round)
    }

    /// True if a worker is past all its operations in the drawn beginning.
    pub(super) fn unseen(&self, worker: usize, done: u64) -> bool {
        done >= self.unseen[worker]
    }
}

/// Phases of a schedule: the segments of the workers' orders that cover most of their microbatches. `gap` are the
/// microbatches that are not drawn.
pub(super) fn phases(program: &Program, gap: &Range<u32>) -> Vec<Phase> {
    let long = |worker: usize| -> Vec<&Segment> {
        let replicas = u64::from(program.groups[program.workers[worker].stage as usize].replicas);
        let own = u64::from(program.microbatches) / replicas;
        let segments = program.order(worker).segments.iter();
        segments.filter(|segment| segment.repeats * u64::from(segment.step) > own / 2).collect()
    };
    let long: Vec<Vec<&Segment>> = (0..program.workers.len()).map(long).collect();
    let count = long.first().map_or(0, Vec::len);
    if long.iter().any(|segments| segments.len() != count) {
        return vec![];
    }
    (0..count).filter_map(|number| phase(program, gap, &|worker| long[worker][number])).collect()
}

fn phase<'a>(program: &Program, gap: &Range<u32>, segment: &dyn Fn(usize) -> &'a Segment) -> Option<Phase> {
    let mut phase = Phase { parts: vec![], round: 1, skippable: 0..u64::MAX, unseen: vec![], most_replicas: 1 };
    let mut microbatches = 0..u64::MAX;
    for (worker, place) in program.workers.iter().enumerate() {
        let group = &program.groups[place.stage as usize];
        let (segment, first) = (segment(worker), segment(group.first_worker));
        if segment.operations != first.operations || segment.step != first.step {
            return None;
        }
        let part = WorkerPhase {
            before: segment.start,
            period: segment.operations.len() as u64,
            step: segment.step.into(),
            replicas: group.replicas.into(),
            replica: place.replica.into(),
        };
        if part.step > 1 {
            phase.round = common_multiple(phase.round, part.step * part.replicas)?;
        }
        let global = |own: u32| u64::from(own) * part.replicas + part.replica;
        let earliest = segment.operations.iter().map(|o| global(o.own)).min()?;
        let latest = segment.operations.iter().map(|o| global(o.own)).max()?;
        let stride = part.step * part.replicas;
        let from = u64::from(gap.start).saturating_sub(earliest).div_ceil(stride);
        let to = (u64::from(gap.end).checked_sub(latest)?).div_ceil(stride).min(segment.repeats);
        phase.unseen.push(segment.start + from * part.period);
        microbatches.start = microbatches.start.max(part.reaching(from));
        microbatches.end = microbatches.end.min(part.within(to));
        phase.most_replicas = phase.most_replicas.max(part.replicas);
        phase.parts.push(part);
    }
    phase.skippable = microbatches.start.div_ceil(phase.round)..microbatches.end / phase.round;
    (!phase.skippable.is_empty()).then_some(phase)
}

/// Least common multiple; `None` on overflow.
pub(super) fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a.checked_mul(b / x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_fall_to_the_replicas_in_turn() {
        for replicas in 1..6 {
            for step in 1..4 {
                for replica in 0..replicas {
                    let part = WorkerPhase { before: 0, period: 1, step, replicas, replica };
                    for count in 0..20 {
                        let (least, most) = (part.reaching(count), part.within(count));
                        assert_eq!(part.repetitions(least), count);
                        assert!(least == 0 || part.repetitions(least - 1) < count);
                        assert_eq!(part.repetitions(most), count);
                        assert!(part.repetitions(most + 1) > count);
                    }
                }
            }
        }
    }
}
