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
    ops::Range,
};

use super::{
    order::Segment,
    patience::Patience,
    program::Program,
    run::{Moment, Record, Run},
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

/// A stretch of the schedule in which every round does the same on every worker.
struct Phase {
    /// Operations of each worker before the first round.
    before: Vec<u64>,
    /// Operations of each worker in a round.
    round: Vec<u64>,
    /// Operations of each worker that belong to microbatches that are not drawn.
    unseen: Vec<Range<u64>>,
    /// Rounds that lie in these.
    skippable: Range<u64>,
}

impl Phase {
    /// How far each worker is allowed to go. One that cannot get so far, because another is not, is behind by as much in
    /// every round.
    fn goal(&self, rounds: u64) -> impl Fn(usize) -> u64 {
        move |worker| self.before[worker] + rounds * self.round[worker]
    }
}

/// Longest period looked for, in values kept in memory for it.
const MOST_VALUES: usize = 1 << 21;

/// Plays the whole batch, unless nobody waits for it any more; then there is no state of its end. `record` hears of all
/// microbatches but possibly those from `drawn` on until `drawn` before the end.
pub(super) fn play(
    program: &Program,
    drawn: u32,
    patience: &mut Patience<'_>,
    mut record: impl FnMut(Record<i64>),
) -> Option<Run<i64>> {
    let mut run = Run::<i64>::new(program);
    let gap = drawn..program.microbatches.saturating_sub(drawn);
    let all = |worker: usize| program.order(worker).len;
    if gap.start < gap.end {
        let mut record = |happened: Record<i64>| {
            if !gap.contains(&happened.microbatch) {
                record(happened);
            }
        };
        for phase in phases(program, &gap) {
            run.advance(program, phase.goal(phase.skippable.start), patience, &mut record);
            leap(program, &phase, &mut run, patience, &mut record);
        }
        run.advance(program, all, patience, record);
    } else {
        run.advance(program, all, patience, record);
    }
    (!patience.lost()).then_some(run)
}

/// The phases of a schedule: the segments of the workers' orders that go through most of their microbatches. A round takes
/// every worker the same number of microbatches on, the least that is a whole number of repetitions on each.
fn phases(program: &Program, gap: &Range<u32>) -> Vec<Phase> {
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
    let workers = 0..program.workers.len();
    let replicas = |worker: usize| u64::from(program.groups[program.workers[worker].stage as usize].replicas);
    let stride = |worker: usize| replicas(worker) * u64::from(segment(worker).step);
    let step = workers.clone().try_fold(1, |step, worker| least_common_multiple(step, stride(worker)))?;
    if step > u64::from(program.microbatches) {
        return None;
    }
    let mut phase = Phase { before: vec![], round: vec![], unseen: vec![], skippable: 0..u64::MAX };
    for worker in workers {
        let segment = segment(worker);
        let period = segment.operations.len() as u64;
        let global = |own: u32| u64::from(own) * replicas(worker) + u64::from(program.workers[worker].replica);
        let first = segment.operations.iter().map(|o| global(o.own)).min()?;
        let last = segment.operations.iter().map(|o| global(o.own)).max()?;
        let from = u64::from(gap.start).saturating_sub(first).div_ceil(stride(worker));
        let to = (u64::from(gap.end).checked_sub(last)?).div_ceil(stride(worker)).min(segment.repeats);
        let round = period * (step / stride(worker));
        phase.before.push(segment.start);
        phase.round.push(round);
        phase.unseen.push(segment.start + from * period..segment.start + to * period);
        phase.skippable.start = phase.skippable.start.max((from * period).div_ceil(round));
        phase.skippable.end = phase.skippable.end.min(to * period / round);
    }
    (!phase.skippable.is_empty()).then_some(phase)
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
            let done = run.workers.iter().zip(&last.run.workers);
            done.for_each(|(now, then)| (now.done - then.done).hash(&mut hasher));
        }
        Snapshot { run: run.clone(), moments, movement: hasher.finish() }
    }
}

/// Plays the skippable rounds of a phase, in leaps where it can.
fn leap(
    program: &Program,
    phase: &Phase,
    run: &mut Run<i64>,
    patience: &mut Patience<'_>,
    record: &mut impl FnMut(Record<i64>),
) {
    let mut round = phase.skippable.start;
    let end = phase.skippable.end;
    // A critical circuit passes at most every stage forward and back before it closes.
    let values = run.moments().len().max(1);
    let longest = (2 * program.chunks.len() + 8).min(MOST_VALUES / values / 4).max(1);
    // Looking costs more than playing: after a vain look, play on for as many rounds again.
    let mut pause = 0;
    while round < end && !patience.lost() {
        let played = (end - round).min(pause);
        round += played;
        run.advance(program, phase.goal(round), patience, &mut *record);
        pause = (2 * pause).max(64);
        let mut history = VecDeque::from([Snapshot::of(run, None)]);
        for _ in 0..4 * longest {
            // A snapshot copies every moment.
            if round == end || patience.lost_after(values) {
                break;
            }
            round += 1;
            run.advance(program, phase.goal(round), patience, &mut *record);
            history.push_back(Snapshot::of(run, history.back()));
            if history.len() > 2 * longest + 1 {
                history.pop_front();
            }
            // A period that does not fit any more leads beyond the phase, and at its end beyond the orders.
            let Some(period) = repeats(&history).filter(|&period| period as u64 <= end - round) else { continue };
            let then = &history[history.len() - 1 - period];
            let times = repetitions(program, phase, run, then, patience, round, period as u64);
            let times = times.min((end - round) / period as u64).min(room(phase, run, then));
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

/// How often the movement from `then` to `run` can repeat without a microbatch that is drawn.
fn room(phase: &Phase, run: &Run<i64>, then: &Snapshot) -> u64 {
    let workers = run.workers.iter().zip(&then.run.workers).zip(&phase.unseen);
    let times = workers.map(|((now, then), unseen)| {
        if now.done < unseen.start { 0 } else { unseen.end.saturating_sub(now.done) / (now.done - then.done).max(1) }
    });
    times.min().unwrap_or(0)
}

/// How often the movement from `then` to `run` is certain to repeat.
fn repetitions(
    program: &Program,
    phase: &Phase,
    run: &Run<i64>,
    then: &Snapshot,
    patience: &mut Patience<'_>,
    round: u64,
    period: u64,
) -> u64 {
    let moved = |worker: usize| run.workers[worker].done - then.run.workers[worker].done;
    if run.shape() != then.run.shape() || (0..phase.round.len()).any(|w| moved(w) != period * phase.round[w]) {
        return 0;
    }
    let moments = run.moments();
    let rates: Vec<i64> = moments.iter().zip(&then.moments).map(|(now, then)| now - then).collect();
    let mut next_rate = rates.iter();
    let mut moving = run.map(|at| Moving { at, rate: next_rate.next().copied().unwrap_or_default() });
    moving.advance(program, phase.goal(round + period), patience, |_| {});
    let after = moving.moments();
    let steady = moving.shape() == run.shape()
        && moving
            .workers
            .iter()
            .zip(&run.workers)
            .enumerate()
            .all(|(w, (after, now))| after.done == now.done + moved(w))
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
    use crate::simulate::{Pipeline, PipelineStage, Schedule, Settings, Transfer, program::Clock};

    fn random_pipeline(next: &mut impl FnMut(u64) -> u64, microbatches: u32) -> Pipeline {
        let count = 1 + next(6) as usize;
        let equal = next(2) == 0;
        let mut stages = vec![];
        for _ in 0..count {
            let spread = [3, 50, 10_000][next(3) as usize];
            stages.push(PipelineStage {
                forward_s: (10_000 + next(spread)) as f64,
                backward_s: (20_000 + next(spread)) as f64,
                replicas: if equal { 1 } else { [1, 1, 2, 3, 4][next(5) as usize] },
                ..PipelineStage::default()
            });
        }
        let mut transfers = vec![];
        for from in 0..count {
            for to in from + 1..count {
                if next(if to == from + 1 { 8 } else { 3 }) == 0 || (equal && to > from + 1) {
                    continue;
                }
                transfers.push(Transfer { from, to, seconds: next(15_000) as f64, bytes: 0.0 });
            }
        }
        let settings = Settings { virtual_stages: 1 + next(4) as u32, ..Settings::default() };
        Pipeline { stages, transfers, microbatches, settings, ..Pipeline::default() }
    }

    #[test]
    fn leaps_land_where_playing_does() {
        let mut state = 23u64;
        let mut next = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut shorter = std::collections::BTreeMap::new();
        for _ in 0..80 {
            let microbatches = (500 + next(3000) as u32) / 60 * 60;
            let pipeline = random_pipeline(&mut next, microbatches);
            for schedule in pipeline.playable() {
                let program = Program::new(&pipeline, schedule, &Clock::of(&pipeline));
                let mut all = vec![];
                let played =
                    play(&program, u32::MAX, &mut Patience::new(&|| false), |record| all.push(record)).unwrap();
                let drawn = 5 + next(40) as u32;
                let mut some = vec![];
                let leapt = play(&program, drawn, &mut Patience::new(&|| false), |record| some.push(record)).unwrap();
                let times = |run: &Run<i64>| -> Vec<_> { run.workers.iter().map(|w| (w.done, w.free)).collect() };
                assert_eq!(times(&played), times(&leapt), "{schedule:?} {pipeline:?}");
                all.retain(|r| r.microbatch < drawn || r.microbatch >= microbatches - drawn);
                let key = |r: &Record<i64>| (r.worker, r.chunk, r.kind, r.microbatch, r.index, r.start, r.end);
                all.sort_by_key(key);
                some.sort_by_key(key);
                assert!(all.iter().map(key).eq(some.iter().map(key)), "{schedule:?} {pipeline:?}");
                let gap = drawn..microbatches - drawn;
                *shorter.entry(schedule.id()).or_insert(0) += usize::from(!phases(&program, &gap).is_empty());
            }
        }
        for schedule in Schedule::ALL {
            assert!(shorter[schedule.id()] > 20, "{shorter:?}");
        }
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
        let stage = |index: u32| PipelineStage {
            forward_s: 1000.0 + f64::from(index % 7),
            backward_s: 2000.0 + f64::from(index % 5),
            ..PipelineStage::default()
        };
        let transfer = |from| Transfer { from, to: from + 1, seconds: 100.0, bytes: 0.0 };
        let pipeline = Pipeline {
            stages: (0..32).map(stage).collect(),
            transfers: (0..31).map(transfer).collect(),
            microbatches: 1_000_000,
            ..Pipeline::default()
        };
        for (schedule, events) in [
            (Schedule::OneForwardOneBackward, 64 + 62),
            (Schedule::ZeroBubbleH1, 96 + 62),
            (Schedule::ZeroBubbleV, 192 + 124),
            (Schedule::Interleaved, 128 + 126),
            (Schedule::Inference, 32 + 31),
        ] {
            let program = Program::new(&pipeline, schedule, &Clock::of(&pipeline));
            let mut records = 0;
            let run = play(&program, 100, &mut Patience::new(&|| false), |_| records += 1).unwrap();
            assert_eq!(records, 200 * events, "{schedule:?}");
            assert!((0..32).all(|worker| run.workers[worker].done == program.order(worker).len));
        }
    }
}
