//! Exact leaps over the steady state of long batches.
//!
//! A run proceeds in rounds, each the same operations some microbatches further on. A moment of the state is a sum of
//! durations along the longest of many paths; while the same paths stay longest, every moment grows by a fixed rate in
//! every so many rounds. [`Moving`] computes with moments and their rates at once and notes for how many repetitions each
//! "which is later" keeps its answer. If after one repetition every moment has moved by its rate and kept it, the next
//! ones do the same, as many as were noted: they are added in one step. Time is whole ticks, so nothing is approximated.
//! (Rates differ where a fast stage runs ahead of a slow one; the leap then ends when a buffer is full, and the next begins.)
//!
//! `O(transient + drawn microbatches)` operations where such periods are found, `O(all)` where not; memory never grows with the batch.

use std::{
    collections::{VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use super::{
    Schedule,
    run::{Moment, Program, Record, Run},
};

/// A moment `at + j · rate` in repetition `j`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Moving {
    at: i64,
    rate: i64,
}

impl Moment for Moving {
    fn after(self, ticks: i64) -> Self {
        Moving { at: self.at + ticks, ..self }
    }

    fn later(self, other: Self, horizon: &mut i64) -> Self {
        // Of two at the same moment the one that moves faster is the later one from then on.
        let (last, first) = if self >= other { (self, other) } else { (other, self) };
        if first.rate > last.rate {
            *horizon = (*horizon).min((last.at - first.at) / (first.rate - last.rate));
        }
        last
    }
}

/// A stretch of a schedule in which every round does the same on every worker.
struct Phase {
    /// Operations of each worker before the first round.
    before: Vec<u64>,
    /// Operations of each worker in a round.
    round: Vec<u64>,
    /// Rounds in which only microbatches that are not drawn take part.
    skippable: std::ops::Range<u64>,
}

impl Phase {
    fn goal(&self, rounds: u64) -> impl Fn(usize) -> u64 {
        move |worker| self.before[worker] + rounds * self.round[worker]
    }
}

/// Longest period looked for, in values kept in memory for it.
const MOST_VALUES: usize = 1 << 21;

/// Plays the whole batch. `record` hears of all microbatches but possibly those from `drawn` on until `drawn` before the end.
pub(super) fn play(program: &Program, schedule: Schedule, drawn: u32, mut record: impl FnMut(Record<i64>)) -> Run<i64> {
    let mut run = Run::<i64>::new(program);
    let gap = drawn..program.microbatches.saturating_sub(drawn);
    if gap.start < gap.end {
        let mut record = |happened: Record<i64>| {
            if !gap.contains(&happened.microbatch) {
                record(happened);
            }
        };
        for phase in phases(program, schedule, &gap) {
            run.advance(program, phase.goal(phase.skippable.start), &mut record);
            leap(program, &phase, &mut run, &mut record);
        }
        run.advance(program, |worker| 2 * u64::from(program.own(worker)), record);
    } else {
        run.advance(program, |worker| 2 * u64::from(program.own(worker)), record);
    }
    run
}

/// The phases of a schedule. A round takes every stage `step` microbatches on: the least number that all stages' replicas
/// divide, so that every replica does its share.
fn phases(program: &Program, schedule: Schedule, gap: &std::ops::Range<u32>) -> Vec<Phase> {
    let replicas = |worker: usize| u64::from(program.stages[program.workers[worker].0 as usize].replicas);
    let workers = 0..program.workers.len();
    let microbatches = u64::from(program.microbatches);
    let step = program.stages.iter().try_fold(1, |step, stage| least_common_multiple(step, u64::from(stage.replicas)));
    let Some(step) = step.filter(|&step| step <= microbatches) else { return vec![] };
    // Forwards run ahead of backwards by the longest warm-up, in microbatches.
    let ahead = match schedule {
        Schedule::GPipe | Schedule::SingleSample => 0,
        Schedule::OneForwardOneBackward => {
            program.stages.iter().map(|s| u64::from(s.warm_up) * u64::from(s.replicas)).max().unwrap_or(0)
        }
    };
    let skippable = u64::from(gap.start).div_ceil(step)..u64::from(gap.end).saturating_sub(ahead) / step;
    if skippable.is_empty() {
        return vec![];
    }
    let phase = |before: &dyn Fn(usize) -> u64, per_microbatch: u64| Phase {
        before: workers.clone().map(before).collect(),
        round: workers.clone().map(|worker| per_microbatch * step / replicas(worker)).collect(),
        skippable: skippable.clone(),
    };
    match schedule {
        Schedule::GPipe | Schedule::SingleSample => {
            vec![phase(&|_| 0, 1), phase(&|worker| u64::from(program.own(worker)), 1)]
        }
        Schedule::OneForwardOneBackward => {
            vec![phase(&|worker| u64::from(program.stages[program.workers[worker].0 as usize].warm_up), 2)]
        }
    }
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a.checked_mul(b / x)
}

/// A state between two rounds.
struct Snapshot {
    run: Run<i64>,
    moments: Vec<i64>,
    /// Hash of what moved since the last snapshot.
    movement: u64,
}

impl Snapshot {
    fn of(run: &Run<i64>, last: Option<&Snapshot>) -> Self {
        let moments = run.moments();
        let mut hasher = DefaultHasher::new();
        if let Some(last) = last.filter(|last| last.moments.len() == moments.len()) {
            moments.iter().zip(&last.moments).for_each(|(now, then)| (now - then).hash(&mut hasher));
        }
        Snapshot { run: run.clone(), moments, movement: hasher.finish() }
    }
}

/// Plays the skippable rounds of a phase, in leaps where it can.
fn leap(program: &Program, phase: &Phase, run: &mut Run<i64>, record: &mut impl FnMut(Record<i64>)) {
    let mut round = phase.skippable.start;
    let end = phase.skippable.end;
    // A critical circuit passes at most every stage forward and back before it closes.
    let values = run.moments().len().max(1);
    let longest = (2 * program.stages.len() + 8).min(MOST_VALUES / values / 4).max(1);
    // Looking costs more than playing: after a vain look, play on for as many rounds again.
    let mut pause = 0;
    while round < end {
        let played = (end - round).min(pause);
        round += played;
        run.advance(program, phase.goal(round), &mut *record);
        pause = (2 * pause).max(64);
        let mut history = VecDeque::from([Snapshot::of(run, None)]);
        for _ in 0..4 * longest {
            if round == end {
                break;
            }
            round += 1;
            run.advance(program, phase.goal(round), &mut *record);
            history.push_back(Snapshot::of(run, history.back()));
            if history.len() > 2 * longest + 1 {
                history.pop_front();
            }
            let Some(period) = repeats(&history) else { continue };
            let then = &history[history.len() - 1 - period];
            let times = repetitions(program, phase, run, then, round, period as u64);
            let times = times.min((end - round) / period as u64);
            if times > 0 {
                shift(run, then, times);
                round += times * period as u64;
                pause = if times * period as u64 > 64 { 0 } else { pause };
                break;
            }
        }
    }
}

/// The shortest period with which the last movements repeat those before them.
fn repeats(history: &VecDeque<Snapshot>) -> Option<usize> {
    let movement = |back: usize| history[history.len() - 1 - back].movement;
    // The oldest snapshot has no movement.
    (1..=(history.len() - 1) / 2).find(|&period| (0..period).all(|i| movement(i) == movement(i + period)))
}

/// How often the movement from `then` to `run` is certain to repeat.
fn repetitions(program: &Program, phase: &Phase, run: &Run<i64>, then: &Snapshot, round: u64, period: u64) -> u64 {
    if run.shape() != then.run.shape() {
        return 0;
    }
    let moments = run.moments();
    let rates: Vec<i64> = moments.iter().zip(&then.moments).map(|(now, then)| now - then).collect();
    let mut next_rate = rates.iter();
    let mut moving = run.map(|at| Moving { at, rate: next_rate.next().copied().unwrap_or_default() });
    moving.advance(program, phase.goal(round + period), |_| {});
    let after = moving.moments();
    let steady = moving.shape() == run.shape()
        && after
            .iter()
            .zip(moments.iter().zip(&rates))
            .all(|(after, (now, rate))| after.rate == *rate && after.at == now + rate);
    if steady { moving.horizon.unsigned_abs().saturating_add(1) } else { 0 }
}

/// Repeats the movement from `then` to `run` a number of times.
fn shift(run: &mut Run<i64>, then: &Snapshot, times: u64) {
    let mut before = then.moments.iter();
    let mut shifted = run.map(|now| now + times as i64 * (now - before.next().copied().unwrap_or(now)));
    for (worker, old) in shifted.workers.iter_mut().zip(&then.run.workers) {
        worker.done += times * (worker.done - old.done);
    }
    for (inbox, old) in shifted.inboxes.iter_mut().flatten().zip(then.run.inboxes.iter().flatten()) {
        inbox.first += times as u32 * (inbox.first - old.first);
    }
    *run = shifted;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::run::{Send, StageProgram};

    fn random_program(next: &mut impl FnMut(u64) -> u64, microbatches: u32) -> (Program, Program) {
        let count = 1 + next(6) as usize;
        let mut stages = vec![];
        let mut workers = vec![];
        for index in 0..count {
            let replicas = [1, 1, 2, 3, 4][next(5) as usize];
            let spread = [3, 50, 10_000][next(3) as usize];
            stages.push(StageProgram {
                forward: 10_000 + next(spread) as i64,
                backward: 20_000 + next(spread) as i64,
                replicas,
                warm_up: 0,
                activations: vec![],
                gradients: vec![],
                first_worker: workers.len(),
            });
            workers.extend((0..replicas).map(|replica| (index as u32, replica)));
        }
        for from in 0..count {
            for to in from + 1..count {
                if next(if to == from + 1 { 8 } else { 3 }) == 0 {
                    continue;
                }
                let ticks = next(15_000) as i64;
                stages[from].activations.push(Send { to: to as u32, ticks });
                stages[to].gradients.push(Send { to: from as u32, ticks });
            }
        }
        let gpipe = Program {
            stages: stages.iter().map(|s| StageProgram { warm_up: u32::MAX, ..s.clone() }).collect(),
            microbatches,
            workers: workers.clone(),
        };
        let mut later = 0;
        for stage in stages.iter_mut().rev() {
            stage.warm_up = u32::div_ceil(later, stage.replicas);
            later += stage.replicas;
        }
        (Program { stages, microbatches, workers }, gpipe)
    }

    #[test]
    fn leaps_land_where_playing_does() {
        let mut state = 23u64;
        let mut next = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut shorter = 0;
        for _ in 0..150 {
            let microbatches = 500 + next(3000) as u32;
            let (one, gpipe) = random_program(&mut next, microbatches);
            for (program, schedule) in [(&one, Schedule::OneForwardOneBackward), (&gpipe, Schedule::GPipe)] {
                let mut all = vec![];
                let played = play(program, schedule, u32::MAX, |record| all.push(record));
                let drawn = 5 + next(40) as u32;
                let mut some = vec![];
                let leapt = play(program, schedule, drawn, |record| some.push(record));
                let times = |run: &Run<i64>| -> Vec<_> { run.workers.iter().map(|w| (w.done, w.free)).collect() };
                assert_eq!(times(&played), times(&leapt), "{program:?}");
                all.retain(|r| r.microbatch < drawn || r.microbatch >= microbatches - drawn);
                let key = |r: &Record<i64>| (r.worker, r.kind, r.microbatch, r.start, r.end);
                all.sort_by_key(key);
                some.sort_by_key(key);
                assert!(all.iter().map(key).eq(some.iter().map(key)), "{program:?}");
                shorter += usize::from(!phases(program, schedule, &(drawn..microbatches - drawn)).is_empty());
            }
        }
        assert!(shorter > 250, "{shorter}");
    }

    #[test]
    fn the_later_moment_keeps_its_lead_for_a_counted_time() {
        let mut horizon = i64::MAX;
        let (slow, fast) = (Moving { at: 10, rate: 1 }, Moving { at: 0, rate: 4 });
        assert_eq!(slow.later(fast, &mut horizon), slow);
        assert_eq!(horizon, 3);
        assert_eq!(Moving { at: 0, rate: 1 }.later(fast, &mut horizon), fast);
        assert_eq!(horizon, 3);
    }

    #[test]
    fn a_million_microbatches_take_a_few_thousand_operations() {
        let stage = |index: u32| StageProgram {
            forward: 1000 + i64::from(index % 7),
            backward: 2000 + i64::from(index % 5),
            replicas: 1,
            warm_up: 31 - index,
            activations: if index < 31 { vec![Send { to: index + 1, ticks: 100 }] } else { vec![] },
            gradients: if index > 0 { vec![Send { to: index - 1, ticks: 100 }] } else { vec![] },
            first_worker: index as usize,
        };
        let program = Program {
            stages: (0..32).map(stage).collect(),
            microbatches: 1_000_000,
            workers: (0..32).map(|stage| (stage, 0)).collect(),
        };
        let mut records = 0;
        let run = play(&program, Schedule::OneForwardOneBackward, 100, |_| records += 1);
        assert_eq!(records, 200 * (64 + 62));
        assert!(run.workers.iter().all(|worker| worker.done == 2_000_000));
    }
}
