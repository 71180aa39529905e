//! Exact leaps over the steady state of long batches.
//!
//! A run proceeds in rounds ([`super::phase`]), each with the same operations some microbatches later. A moment of the
//! state is a sum of durations along the longest of many paths. While the same paths stay longest, every moment grows
//! by a fixed rate per period. [`LinearMoment`] computes with moments and their rates, and records for how many
//! repetitions each comparison keeps its result. If every moment has moved by its rate and kept the rate after one
//! repetition, that many further repetitions do the same and are added in one step. Time is in whole ticks, so nothing
//! is approximated. Rates differ if a fast stage runs ahead of a slow one: the leap then ends when a buffer is full,
//! and the next begins. The period is guessed from the latest rounds ([`super::period`]). A wrong guess costs as much
//! as simulating those rounds.
//!
//! `O(transient + drawn microbatches)` operations if such periods are found, else `O(all)`. Memory never grows with the
//! batch.

use super::{
    patience::Patience,
    period::{History, mix},
    phase::{Phase, common_multiple, phases},
    program::Program,
    run::{Moment, Record, SimulationState, WorkerState},
    timeline::EventKind,
};

/// Moment `at + j · rate` in repetition `j`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct LinearMoment {
    at: i64,
    rate: i64,
}

impl Moment for LinearMoment {
    fn after(self, ticks: i64) -> Self {
        LinearMoment { at: self.at + ticks, ..self }
    }

    fn later(self, other: Self, horizon: &mut i64) -> Self {
        // Of two equal moments, the one with the larger rate counts as later, because it is later from then on.
        let (last, first) = if self >= other { (self, other) } else { (other, self) };
        if first.rate > last.rate {
            *horizon = (*horizon).min((last.at - first.at) / (first.rate - last.rate));
        }
        last
    }
}

/// Simulates the whole batch. Returns `None` if it was stopped. `record` receives all microbatches except possibly
/// those from `drawn` on until `drawn` before the end.
pub(super) fn simulate(
    program: &Program,
    drawn: u32,
    patience: &mut Patience<'_>,
    mut record: impl FnMut(Record<i64>),
) -> Option<SimulationState<i64>> {
    let mut run = SimulationState::<i64>::new(program);
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

/// Simulates the skippable rounds of a phase, with leaps if possible.
fn leap(
    program: &Program,
    phase: &Phase,
    run: &mut SimulationState<i64>,
    patience: &mut Patience<'_>,
    record: &mut impl FnMut(Record<i64>),
) {
    let end = phase.skippable.end;
    // If replicas differ in their transfers, each must return to its own position.
    let Some(whole) = (if program.by_replica { phase.whole_turn() } else { Some(1) }) else {
        return;
    };
    let mut watch = RoundHistory::new(program);
    let mut round = phase.skippable.start;
    while round < end && !patience.lost() {
        watch.simulate(program, phase, run, round, patience, record);
        round += 1;
        let period = watch.history.period(phase.memory()).and_then(|period| common_multiple(period as u64, whole));
        let Some(period) = period else { continue };
        if period > (end - round) / 2 {
            continue;
        }
        let then = run.clone();
        for _ in 0..period {
            watch.simulate(program, phase, run, round, patience, record);
            round += 1;
        }
        let Some(repetition) = Repetition::new(program, phase, &then, run, round, period) else { continue };
        let times = repetition.certain(program, phase, run, patience).min((end - round) / period);
        if times > 0 && !patience.lost() {
            repetition.shift(program, phase, run, times);
            round += times * period;
            watch = RoundHistory::new(program);
        }
    }
}

/// History of the rounds, to detect when they repeat.
struct RoundHistory {
    history: History,
    /// By part of the model and resource: the end of the last event.
    last: Vec<[i64; 3]>,
}

impl RoundHistory {
    fn new(program: &Program) -> Self {
        RoundHistory { history: History::new(), last: vec![[0; 3]; program.chunks.len()] }
    }

    /// Simulates a round and records how far it advanced each part of the model. The order of visiting replicas depends
    /// on the data in transfer and not on times, so equal rounds have equal orders.
    fn simulate(
        &mut self,
        program: &Program,
        phase: &Phase,
        run: &mut SimulationState<i64>,
        round: u64,
        patience: &mut Patience<'_>,
        record: &mut impl FnMut(Record<i64>),
    ) {
        let mut movement = 0u64;
        let last = &mut self.last;
        run.advance_from(phase.turns(program, round), program, phase.goal(round + 1), patience, |happened| {
            let lane = match happened.kind {
                EventKind::SendActivation { .. } => 1,
                EventKind::SendGradient { .. } => 2,
                _ => 0,
            };
            let before = std::mem::replace(&mut last[happened.chunk as usize][lane], happened.end);
            movement = movement.wrapping_add(mix(u64::from(happened.chunk) << 2 | lane as u64, happened.end - before));
            record(happened);
        });
        self.history.push(movement);
    }
}

/// Effect of the last `period` rounds before `round` on the state.
struct Repetition {
    round: u64,
    period: u64,
    /// Movement of each moment, in the order of [`SimulationState::map`]. For a worker, relative to the moments of the
    /// worker whose position it took.
    rates: Vec<i64>,
    /// By inbox: true if it moved to later microbatches. An empty inbox did not.
    moves: Vec<bool>,
}

/// Compares two states and the rounds before them, ignoring moments and microbatches. If they are equal, returns for
/// each inbox whether it moved.
fn alike<T: Moment>(
    program: &Program,
    phase: &Phase,
    (then, before): (&SimulationState<T>, u64),
    (now, round): (&SimulationState<T>, u64),
) -> Option<Vec<bool>> {
    let (goal, next) = (phase.goal(before), phase.goal(round));
    let behind = |(worker, state): (usize, &WorkerState<T>)| {
        let successor = phase.successor(program, worker, round - before);
        goal(worker) - state.done == next(successor) - now.workers[successor].done
    };
    if !then.workers.iter().enumerate().all(behind) {
        return None;
    }
    let microbatches = (round - before) * phase.round;
    let inboxes = then.inboxes.iter().flatten().zip(now.inboxes.iter().flatten());
    let moves = inboxes.map(|(old, new)| {
        let same = old.slots.iter().map(|slot| slot.missing).eq(new.slots.iter().map(|slot| slot.missing));
        let moved = u64::from(new.first - old.first);
        (same && (moved == microbatches || (moved == 0 && old.slots.is_empty()))).then_some(moved > 0)
    });
    moves.collect()
}

impl Repetition {
    /// Movement from `then` to `now`, if both are equal except for the moments.
    fn new(
        program: &Program,
        phase: &Phase,
        then: &SimulationState<i64>,
        now: &SimulationState<i64>,
        round: u64,
        period: u64,
    ) -> Option<Repetition> {
        let moves = alike(program, phase, (then, round - period), (now, round))?;
        let mut rates = then.moments();
        for (worker, old) in then.workers.iter().enumerate() {
            let successor = phase.successor(program, worker, period);
            let new = &now.workers[successor];
            (0..3).for_each(|i| rates[3 * successor + i] = new.free[i] - old.free[i]);
        }
        let slots = 3 * then.workers.len();
        rates[slots..].iter_mut().zip(&now.moments()[slots..]).for_each(|(rate, now)| *rate = now - *rate);
        Some(Repetition { round, period, rates, moves })
    }

    /// Number of further repetitions that are certain.
    fn certain(
        &self,
        program: &Program,
        phase: &Phase,
        now: &SimulationState<i64>,
        patience: &mut Patience<'_>,
    ) -> u64 {
        if now.workers.iter().enumerate().any(|(worker, state)| !phase.unseen(worker, state.done)) {
            return 0;
        }
        let mut rates = self.rates.iter();
        let moving = now.map(|at| LinearMoment { at, rate: rates.next().copied().unwrap_or_default() });
        let mut after = moving.clone();
        let round = self.round + self.period;
        after.advance(program, phase.goal(round), patience, |_| {});
        let once = |moment: LinearMoment| LinearMoment { at: moment.at + moment.rate, ..moment };
        let workers = moving.workers.iter().enumerate().all(|(worker, state)| {
            after.workers[phase.successor(program, worker, self.period)].free == state.free.map(once)
        });
        let slots = 3 * moving.workers.len();
        let kept = workers
            && alike(program, phase, (&moving, self.round), (&after, round)).as_ref() == Some(&self.moves)
            && after.moments()[slots..].iter().zip(&moving.moments()[slots..]).all(|(after, now)| *after == once(*now));
        if kept { after.horizon.unsigned_abs().saturating_add(1) } else { 0 }
    }

    /// Advances the run by `times` repetitions.
    fn shift(&self, program: &Program, phase: &Phase, run: &mut SimulationState<i64>, times: u64) {
        let mut rates = self.rates.iter();
        let later = run.map(|now| now + times as i64 * rates.next().copied().unwrap_or_default());
        let rounds = times * self.period;
        let (goal, next) = (phase.goal(self.round), phase.goal(self.round + rounds));
        let mut turned = later.clone();
        for (worker, state) in later.workers.iter().enumerate() {
            let successor = phase.successor(program, worker, rounds);
            let behind = goal(worker) - state.done;
            turned.workers[successor] = WorkerState { done: next(successor) - behind, ..*state };
        }
        for (inbox, _) in turned.inboxes.iter_mut().flatten().zip(&self.moves).filter(|(_, moved)| **moved) {
            inbox.first += (rounds * phase.round) as u32;
        }
        *run = turned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Pipeline, PipelineStage, Schedule, SimulatorSettings, Transfer, program::TickScale, wires};

    fn random_pipeline(next: &mut impl FnMut(u64) -> u64, microbatches: u32) -> Pipeline {
        let count = 1 + next(6) as usize;
        let equal = next(2) == 0;
        let mut stages = vec![];
        for _ in 0..count {
            let spread = [3, 50, 10_000][next(3) as usize];
            stages.push(PipelineStage {
                forward_s: (10_000 + next(spread)) as f64,
                backward_s: (20_000 + next(spread)) as f64,
                paired_saving_s: [0, 4_000][next(2) as usize].into(),
                replicas: if equal { 1 } else { [1, 2, 3, 4, 7, 11, 13][next(7) as usize] },
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
        let settings = SimulatorSettings { virtual_stages: 1 + next(4) as u32, ..SimulatorSettings::default() };
        let mut pipeline = Pipeline { stages, transfers, microbatches, settings, ..Pipeline::default() };
        if next(3) == 0 {
            pipeline.wires = wires::tests::random(&pipeline, next);
        }
        pipeline
    }

    #[test]
    fn leaps_land_where_playing_does() {
        let mut state = 23u64;
        let mut next = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut shorter = std::collections::BTreeMap::new();
        for _ in 0..120 {
            let microbatches = 500 + next(3000) as u32;
            let microbatches = if next(5) == 0 { microbatches } else { microbatches / 60 * 60 };
            let pipeline = random_pipeline(&mut next, microbatches);
            for schedule in pipeline.playable().into_iter().filter(|schedule| !schedule.is_listed()) {
                let program = Program::new(&pipeline, schedule, &TickScale::of(&pipeline));
                let mut all = vec![];
                let simulated =
                    simulate(&program, u32::MAX, &mut Patience::new(&|| false), |record| all.push(record)).unwrap();
                let drawn = 5 + next(40) as u32;
                let mut some = vec![];
                let leapt =
                    simulate(&program, drawn, &mut Patience::new(&|| false), |record| some.push(record)).unwrap();
                let times =
                    |run: &SimulationState<i64>| -> Vec<_> { run.workers.iter().map(|w| (w.done, w.free)).collect() };
                assert_eq!(times(&simulated), times(&leapt), "{schedule:?} {pipeline:?}");
                all.retain(|r| r.microbatch < drawn || r.microbatch >= microbatches - drawn);
                let key = |r: &Record<i64>| (r.worker, r.chunk, r.kind, r.microbatch, r.index, r.start, r.end);
                all.sort_by_key(key);
                some.sort_by_key(key);
                assert!(all.iter().map(key).eq(some.iter().map(key)), "{schedule:?} {pipeline:?}");
                *shorter.entry(schedule.id()).or_insert(0) += usize::from(leapt.operations < simulated.operations);
            }
        }
        for schedule in Schedule::ALL.into_iter().filter(|schedule| !schedule.is_listed()) {
            assert!(shorter[schedule.id()] > 20, "{shorter:?}");
        }
    }

    #[test]
    fn replicas_that_hardly_divide_one_another_are_leapt_over() {
        // Their least common multiple is 360360, more than there are microbatches; the slowest stage has 11 replicas.
        let replicas = [7, 9, 11, 13, 40, 1];
        let stage = |(index, replicas): (usize, &u32)| PipelineStage {
            forward_s: f64::from(*replicas) * 100.0 + if *replicas == 11 { 200.0 } else { index as f64 },
            backward_s: f64::from(*replicas) * 200.0,
            replicas: *replicas,
            ..PipelineStage::default()
        };
        let transfer = |from| Transfer { from, to: from + 1, seconds: 30.0, bytes: 0.0 };
        let pipeline = Pipeline {
            stages: replicas.iter().enumerate().map(stage).collect(),
            transfers: (0..5).map(transfer).collect(),
            microbatches: 100_003,
            ..Pipeline::default()
        };
        for schedule in pipeline.playable() {
            let program = Program::new(&pipeline, schedule, &TickScale::of(&pipeline));
            let simulated = simulate(&program, u32::MAX, &mut Patience::new(&|| false), |_| {}).unwrap();
            let leapt = simulate(&program, 50, &mut Patience::new(&|| false), |_| {}).unwrap();
            assert_eq!(leapt.moments(), simulated.moments(), "{schedule:?}");
            // In the backward phase of GPipe each stage keeps its own period.
            let most = simulated.operations / if schedule == Schedule::GPipe { 1 } else { 10 };
            assert!(leapt.operations < most, "{schedule:?}: {} operations", leapt.operations);
        }
    }

    #[test]
    fn the_later_moment_keeps_its_lead_for_a_counted_time() {
        let mut horizon = i64::MAX;
        let (slow, fast) = (LinearMoment { at: 10, rate: 1 }, LinearMoment { at: 0, rate: 4 });
        assert_eq!(slow.later(fast, &mut horizon), slow);
        assert_eq!(horizon, 3);
        assert_eq!(LinearMoment { at: 0, rate: 1 }.later(fast, &mut horizon), fast);
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
            let program = Program::new(&pipeline, schedule, &TickScale::of(&pipeline));
            let mut records = 0;
            let run = simulate(&program, 100, &mut Patience::new(&|| false), |_| records += 1).unwrap();
            assert_eq!(records, 200 * events, "{schedule:?}");
            assert!((0..32).all(|worker| run.workers[worker].done == program.order(worker).len));
        }
    }
}
