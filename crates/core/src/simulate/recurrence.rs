//! Exact leaps of a run by the clock: when its state recurs, everything in between recurs too.
//!
//! The state at a moment determines everything after it: running operations and their starts, waiting transfers and
//! their order, arrivals, and the remainders of shared transfers. Suppose that after some rounds ([`super::phase`]) the
//! state is equal except for the time, some microbatches later, with the replicas of every stage rotated by as many. It
//! then recurs as long as the schedule stays in its phase, and those rounds are added in one step. Rotation is allowed
//! because ties are decided by microbatch and stage, and replicas of a stage are identical. If they use different
//! machines' ports, each must return to its own position. Nothing is approximated: states are compared number by
//! number.
//!
//! Rounds are counted at the first stage. The period is guessed from the ends of events in each round
//! ([`super::period`]). Only then are states compared, so that a run without repetition costs hardly more.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use super::{
    contention::{ClockEvent, Contention},
    period::{History, mix},
    phase::{Phase, phases},
    program::Program,
    settings::LinkModel,
};

/// Observer that detects recurrence of a run and makes it leap.
pub(super) struct Recurrence {
    /// Remaining phases, the next one last.
    phases: Vec<Phase>,
    /// First microbatch that is not drawn.
    unseen: u32,
    /// True if replicas have positions of their own.
    placed: bool,
    /// Rounds finished by the first stage.
    round: u64,
    /// Time at which it finished them.
    since: i64,
    /// Hash of the ends of all events since then.
    ends: u64,
    history: History,
    /// Moments since a state was last recorded.
    moments: usize,
    mark: Option<StateSnapshot>,
}

/// State that may recur.
struct StateSnapshot {
    state: PipelineState,
    size: usize,
    round: u64,
    now: i64,
    /// Rounds until the next comparison, and between two comparisons.
    wait: usize,
    period: usize,
}

/// Number of rounds after which a state is discarded.
const MOST_LOOKS: usize = 1 << 16;

/// All data that later moments depend on, relative to a round and a moment.
#[derive(PartialEq)]
struct PipelineState {
    values: Vec<i64>,
    /// By inbox: its first microbatch. An empty one either moves on or is not in use.
    firsts: Vec<u32>,
}

impl Recurrence {
    /// Creates the observer. `gap` are the microbatches that are not drawn.
    pub(super) fn new(program: &Program, gap: &Range<u32>, placed: bool) -> Self {
        let mut phases = if gap.is_empty() { vec![] } else { phases(program, gap) };
        phases.reverse();
        let mut recurrence = Recurrence {
            phases,
            unseen: gap.start,
            placed,
            round: 0,
            since: 0,
            ends: 0,
            history: History::new(),
            moments: 0,
            mark: None,
        };
        recurrence.enter();
        recurrence
    }

    /// Starts to observe the next phase.
    fn enter(&mut self) {
        self.round = self.phases.last().map_or(0, |phase| phase.skippable.start);
        self.restart();
    }

    fn restart(&mut self) {
        self.history = History::new();
        self.ends = 0;
        self.mark = None;
    }

    /// Observes a run after a moment. Makes it leap if possible.
    pub(super) fn watch(&mut self, run: &mut Contention<'_>) {
        let Some(phase) = self.phases.last() else { return };
        self.moments += 1;
        if run.clock.peek().is_none_or(|next| next.0.0 == run.now) {
            return;
        }
        let elapsed = run.now - self.since;
        self.ends = self.ends.wrapping_add(mix(0, elapsed));
        let before = self.round;
        while self.round < phase.skippable.end && first_stage_done(run, phase, self.round) {
            self.round += 1;
        }
        if self.round == before {
            return;
        }
        if self.round == phase.skippable.end {
            self.phases.pop();
            return self.enter();
        }
        self.since = run.now;
        self.history.push(mix(0, elapsed).wrapping_add(std::mem::take(&mut self.ends)));
        let Some(mark) = &mut self.mark else {
            let Some(period) = self.history.period(phase.memory()) else { return };
            // The state may grow without bound, so it is recorded only when that costs no more than simulating.
            if all_unseen(run, phase) && size(run) <= self.moments {
                self.moments = 0;
                let state = PipelineState::of(run, phase, self.round);
                let (round, now, size) = (self.round, run.now, size(run));
                self.mark = Some(StateSnapshot { state, size, round, now, wait: period, period });
            }
            return;
        };
        mark.wait -= 1;
        if mark.wait > 0 {
            return;
        }
        let rounds = self.round - mark.round;
        if self.placed && (0..run.workers.len()).any(|worker| phase.successor(run.program, worker, rounds) != worker) {
            mark.wait = mark.period;
            mark.period += mark.period.min(MOST_LOOKS);
            if mark.period > MOST_LOOKS {
                self.mark = None;
            }
            return;
        }
        if size(run) != mark.size {
            self.mark = None;
            return;
        }
        let state = PipelineState::of(run, phase, self.round);
        let moves = state.moved_from(&mark.state, rounds * phase.round);
        let early =
            |slot: &super::contention::PendingTransfer| !slot.resources.is_empty() && slot.microbatch < self.unseen;
        let furthest = (0..run.workers.len()).map(|worker| phase.rounds(worker, run.workers[worker].done + 1)).max();
        let times = phase.skippable.end.saturating_sub(furthest.unwrap_or(0)) / rounds;
        if let Some(moves) = moves
            && times > 0
            && !run.transfers.iter().any(early)
        {
            let ticks = times as i64 * (run.now - mark.now);
            leap(run, phase, self.round, times * rounds, ticks, &moves);
            self.round += times * rounds;
            self.since = run.now;
            self.restart();
        } else {
            self.mark = None;
        }
    }
}

/// True if the first stage has finished a round.
fn first_stage_done(run: &Contention<'_>, phase: &Phase, round: u64) -> bool {
    let replicas = u64::from(run.program.groups[0].replicas);
    let goal = phase.goal(round + 1);
    let done = |worker: usize| run.workers[worker].done >= goal(worker);
    if phase.round < replicas {
        (0..phase.round).all(|k| done(((round * phase.round + k) % replicas) as usize))
    } else {
        (0..replicas as usize).all(done)
    }
}

/// Number of items in a state.
fn size(run: &Contention<'_>) -> usize {
    run.workers.len() + run.under_way() + run.inboxes.iter().flatten().map(|inbox| inbox.slots.len()).sum::<usize>()
}

/// True if all workers are past the drawn beginning.
fn all_unseen(run: &Contention<'_>, phase: &Phase) -> bool {
    run.workers.iter().enumerate().all(|(worker, state)| phase.unseen(worker, state.done))
}

impl PipelineState {
    fn of(run: &Contention<'_>, phase: &Phase, round: u64) -> PipelineState {
        let mut values = vec![];
        let goal = phase.goal(round);
        let microbatches = (round * phase.round) as i64;
        for group in &run.program.groups {
            let turned = (round * phase.round % u64::from(group.replicas)) as usize;
            let replicas = group.replicas as usize;
            for k in 0..replicas {
                let worker = group.first_worker + (turned + k) % replicas;
                let state = &run.workers[worker];
                values.push(state.done as i64 - goal(worker) as i64);
                values.push(if state.computing { run.now - state.start } else { -1 });
            }
        }
        let mut firsts = vec![];
        for inbox in run.inboxes.iter().flatten() {
            firsts.push(inbox.first);
            values.push(inbox.slots.len() as i64);
            values.extend(inbox.slots.iter().map(|slot| i64::from(slot.missing)));
        }
        let live = (0..).zip(&run.transfers).filter(|(_, transfer)| !transfer.resources.is_empty());
        let mut live: Vec<(u32, _)> = live.collect();
        live.sort_unstable_by_key(|(_, transfer)| transfer.turn());
        for (slot, transfer) in live {
            let (chunk, to) = (transfer.chunk.into(), transfer.send.to.into());
            values.extend([i64::from(transfer.microbatch) - microbatches, transfer.direction as i64, chunk, to]);
            values.push(transfer.start.map_or(-1, |start| run.now - start));
            if run.model == LinkModel::Shared && transfer.start.is_some() {
                values.extend(run.sharing.state(slot, run.now));
            }
        }
        PipelineState { values, firsts }
    }

    /// If this state equals `other` some microbatches later, returns for each inbox whether it moved.
    fn moved_from(&self, other: &PipelineState, microbatches: u64) -> Option<Vec<bool>> {
        if self.values != other.values {
            return None;
        }
        let moved = |(new, old): (&u32, &u32)| match u64::from(new - old) {
            0 => Some(false),
            by if by == microbatches => Some(true),
            _ => None,
        };
        self.firsts.iter().zip(&other.firsts).map(moved).collect()
    }
}

/// Skips `rounds` rounds that take `ticks` together.
fn leap(run: &mut Contention<'_>, phase: &Phase, round: u64, rounds: u64, ticks: i64, moves: &[bool]) {
    let microbatches = (rounds * phase.round) as u32;
    let count = run.workers.len();
    let successors: Vec<usize> = (0..count).map(|w| phase.successor(run.program, w, rounds)).collect();
    let turned = |resource: usize| {
        if resource < count {
            successors[resource]
        } else if resource < 3 * count {
            let engine = resource - count;
            count + 2 * successors[engine / 2] + engine % 2
        } else {
            resource
        }
    };
    run.now += ticks;
    let (goal, next) = (phase.goal(round), phase.goal(round + rounds));
    let workers = run.workers.clone();
    for (worker, mut state) in workers.into_iter().enumerate() {
        state.done = (next(successors[worker]) + state.done) - goal(worker);
        state.microbatch += microbatches;
        state.start += ticks;
        run.workers[successors[worker]] = state;
    }
    run.inboxes.iter_mut().flatten().zip(moves).filter(|(_, moved)| **moved).for_each(|(i, _)| i.first += microbatches);
    let (queues, busy) = (run.queues.clone(), run.busy.clone());
    for (resource, queue) in queues.into_iter().enumerate() {
        run.queues[turned(resource)] = queue;
        run.busy[turned(resource)] = busy[resource];
    }
    for (slot, transfer) in (0..).zip(&mut run.transfers) {
        if transfer.resources.is_empty() {
            continue;
        }
        transfer.sender = successors[transfer.sender];
        transfer.receiver = successors[transfer.receiver];
        transfer.microbatch += microbatches;
        transfer.ready += ticks;
        transfer.resources.iter_mut().for_each(|resource| *resource = turned(*resource as usize) as u32);
        if let Some(start) = &mut transfer.start {
            *start += ticks;
            if run.model == LinkModel::Shared {
                run.sharing.delay(slot, ticks);
            }
        }
    }
    let endings = std::mem::take(&mut run.clock).into_iter().map(|Reverse((time, ending))| {
        let ending = match ending {
            ClockEvent::Computed(worker) => ClockEvent::Computed(successors[worker as usize] as u32),
            arrived @ ClockEvent::Arrived(..) => arrived,
        };
        Reverse((time + ticks, ending))
    });
    run.clock = endings.collect::<BinaryHeap<_>>();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::simulate::{
        LinkModel, Pipeline, PipelineStage, SimulatorSettings, Transfer, contention,
        patience::Patience,
        program::{Program, TickScale},
        run::Record,
        wires,
    };

    fn random_pipeline(next: &mut impl FnMut(u64) -> u64) -> Pipeline {
        let count = 1 + next(5) as usize;
        let equal = next(2) == 0;
        let (mut stages, mut transfers, mut machines, mut devices) = (vec![], vec![], vec![], 0);
        let width = 1 + next(4) as u32;
        for _ in 0..count {
            let replicas = if equal { 2 } else { [1, 2, 3, 5][next(4) as usize] };
            let spread = [1, 3, 500][next(3) as usize];
            stages.push(PipelineStage {
                forward_s: (f64::from(replicas) * 100.0) + next(spread) as f64,
                backward_s: (f64::from(replicas) * 200.0) + next(spread) as f64,
                paired_saving_s: [0, 40][next(2) as usize].into(),
                replicas,
                ..PipelineStage::default()
            });
            machines.push((devices..devices + replicas).map(|device| device / width).collect());
            devices += replicas;
        }
        for from in 0..count {
            for to in from + 1..count {
                if to == from + 1 || (!equal && next(3) == 0) {
                    transfers.push(Transfer { from, to, seconds: next(150) as f64, bytes: 0.0 });
                }
            }
        }
        if next(3) > 0 {
            machines.clear();
        }
        let mut settings = SimulatorSettings { virtual_stages: 1 + next(3) as u32, ..SimulatorSettings::default() };
        while !settings.contended() {
            settings.links = LinkModel::ALL[next(3) as usize];
            settings.overlap = next(2) == 0;
        }
        let microbatches = (400 + next(800) as u32) / 20 * 20 + if equal { 0 } else { next(2) as u32 };
        let mut pipeline = Pipeline { stages, transfers, microbatches, machines, settings, ..Pipeline::default() };
        if next(3) == 0 {
            pipeline.wires = wires::tests::random(&pipeline, next);
        }
        pipeline
    }

    #[test]
    fn leaps_land_where_playing_does() {
        let mut state = 5u64;
        let mut next = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut shorter = BTreeMap::new();
        for _ in 0..200 {
            let pipeline = random_pipeline(&mut next);
            for schedule in pipeline.playable() {
                let program = Program::new(&pipeline, schedule, &TickScale::of(&pipeline));
                let drawn = 5 + next(20) as u32;
                let simulated = |drawn: u32| {
                    let mut records = vec![];
                    let patience = &mut Patience::new(&|| false);
                    let moments =
                        contention::simulate(&pipeline, &program, drawn, patience, |record| records.push(record));
                    (records, moments.unwrap())
                };
                let ((mut all, full), (mut some, leapt)) = (simulated(u32::MAX), simulated(drawn));
                let last = program.microbatches - drawn;
                all.retain(|record| record.microbatch < drawn || record.microbatch >= last);
                let key = |r: &Record<i64>| (r.worker, r.chunk, r.kind, r.microbatch, r.index, r.start, r.end);
                all.sort_by_key(key);
                some.sort_by_key(key);
                assert!(all.iter().map(key).eq(some.iter().map(key)), "{schedule:?} {pipeline:?}");
                let settings = (pipeline.settings.links.id(), pipeline.settings.overlap, !pipeline.machines.is_empty());
                *shorter.entry(settings).or_insert(0) += usize::from(leapt < full / 2);
            }
        }
        assert!(shorter.len() == 10 && shorter.values().all(|&count| count > 5), "{shorter:?}");
    }
}
