//! Generators of published schedules that have no short period: breadth-first, interleaved zero bubble, DualPipe,
//! DualPipeV and Seq1F1B. Periodic ones are in `simulate::order`. Each is `O(actions)`.
//!
//! Orders of looped BFS, interleaved zero bubble and DualPipeV are those of PyTorch 2.15 (`pipelining/schedules.py`).

use super::{Action, ActionKind, ExplicitSchedule, Step};
use ActionKind::{Backward, Forward, InputGradient, WeightGradient};

/// Sizes of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleShape {
    /// Ranks of the pipeline.
    pub ranks: u32,
    /// Virtual stages of each rank.
    pub parts: u32,
    /// Microbatches.
    pub microbatches: u32,
    /// Slices of a sequence.
    pub slices: u32,
}

/// Order of a rank under construction, with the next microbatch of every stage and kind.
#[derive(Default)]
struct RankOrder {
    steps: Vec<Step>,
    /// By stage: next microbatch to run forward, and backward.
    next: std::collections::HashMap<u32, [u32; 2]>,
    /// Weights' parts that are put off, oldest first.
    put_off: std::collections::VecDeque<(u32, u32)>,
}

impl RankOrder {
    fn take(&mut self, stage: u32, direction: usize) -> u32 {
        let next = &mut self.next.entry(stage).or_default()[direction];
        *next += 1;
        *next - 1
    }

    fn one(&mut self, kind: ActionKind, stage: u32, microbatch: u32) {
        self.steps.push(Step::One(Action { kind, stage, microbatch, slice: 0 }));
    }

    fn forward(&mut self, stage: u32) {
        let microbatch = self.take(stage, 0);
        self.one(Forward, stage, microbatch);
    }

    /// Backward pass; if `split`, of the inputs alone, with the weights' part put off.
    fn backward(&mut self, stage: u32, split: bool) {
        let microbatch = self.take(stage, 1);
        self.one(if split { InputGradient } else { Backward }, stage, microbatch);
        if split {
            self.put_off.push_back((stage, microbatch));
        }
    }

    fn both(&mut self, forward: u32, backward: u32) {
        let first = Action { kind: Forward, stage: forward, microbatch: self.take(forward, 0), slice: 0 };
        let second = Action { kind: Backward, stage: backward, microbatch: self.take(backward, 1), slice: 0 };
        self.steps.push(Step::Overlap(first, second));
    }

    fn weights(&mut self) {
        if let Some((stage, microbatch)) = self.put_off.pop_front() {
            self.one(WeightGradient, stage, microbatch);
        }
    }
}

/// Looped breadth-first schedule: all microbatches pass a stage of a rank before its next stage; backward passes in
/// reverse (Lamy-Poirier, MLSys 2023).
pub fn looped_bfs(shape: ScheduleShape) -> ExplicitSchedule {
    let ScheduleShape { ranks, parts, microbatches, .. } = shape;
    let of_rank = |rank: u32| {
        let mut order = RankOrder::default();
        let stages = (0..parts).map(|part| part * ranks + rank);
        for stage in stages.clone() {
            (0..microbatches).for_each(|microbatch| order.one(Forward, stage, microbatch));
        }
        for stage in stages.rev() {
            (0..microbatches).rev().for_each(|microbatch| order.one(Backward, stage, microbatch));
        }
        order.steps
    };
    ExplicitSchedule { ranks: (0..ranks).map(of_rank).collect() }
}

/// Phases that DualPipe and DualPipeV share, on the `own`-th of `ranks` ranks from the middle's far end: `near` is the
/// stage whose microbatches enter on this side, `far` the one whose microbatches return. `middle` ranks run their first
/// pair one after the other.
fn dual(order: &mut RankOrder, (ranks, own, microbatches): (u32, u32, u32), (near, far): (u32, u32)) {
    let middle = own + 1 == ranks;
    (0..2 * (ranks - own - 1)).for_each(|_| order.forward(near));
    for _ in 0..=own {
        order.forward(near);
        order.forward(far);
    }
    for _ in 0..ranks - own - 1 {
        order.backward(far, true);
        order.weights();
        order.forward(far);
    }
    for number in 0..microbatches + own + 1 - 2 * ranks {
        if number == 0 && middle {
            order.forward(near);
            order.backward(far, false);
        } else {
            order.both(near, far);
        }
        order.both(far, near);
    }
    for _ in 0..ranks - own - 1 {
        order.backward(far, false);
        order.both(far, near);
    }
    // The second half of these passes puts off the weights' parts.
    let (last, odd) = (own + 1, own % 2 == 1);
    for number in 0..last {
        let half = last / 2;
        order.backward(far, number > half || number == half && odd);
        order.backward(near, number >= half);
    }
    for _ in 0..ranks - own - 1 {
        order.weights();
        order.backward(near, true);
    }
    while !order.put_off.is_empty() {
        order.weights();
    }
}

/// DualPipe: two copies of the model pass the ranks in opposite directions, each with half of the microbatches; the
/// second half of the numbers enters at the last rank (DeepSeek-AI, arXiv:2412.19437). The ranks are even, and the
/// microbatches at least twice as many and even.
pub fn dual_pipe(shape: ScheduleShape) -> ExplicitSchedule {
    let ScheduleShape { ranks, microbatches, .. } = shape;
    let half = microbatches / 2;
    let of_rank = |rank: u32| {
        let own = rank.min(ranks - 1 - rank);
        let (down, up) = (rank, ranks - 1 - rank);
        let (near, far) = if rank < ranks / 2 { (down, up) } else { (up, down) };
        let mut order = RankOrder::default();
        // The copy that goes up has the later microbatches.
        order.next.insert(up, [half, half]);
        dual(&mut order, (ranks / 2, own, half), (near, far));
        order.steps
    };
    ExplicitSchedule { ranks: (0..ranks).map(of_rank).collect() }
}

/// DualPipeV: one copy of the model in the shape of a V, with the phases of DualPipe on each half (Qi, 2025; PyTorch's
/// `ScheduleDualPipeV`). At least as many microbatches as stages.
pub fn dual_pipe_v(shape: ScheduleShape) -> ExplicitSchedule {
    let ScheduleShape { ranks, microbatches, .. } = shape;
    let of_rank = |rank: u32| {
        let mut order = RankOrder::default();
        dual(&mut order, (ranks, rank, microbatches), (rank, 2 * ranks - 1 - rank));
        order.steps
    };
    ExplicitSchedule { ranks: (0..ranks).map(of_rank).collect() }
}

/// Seq1F1B: 1F1B over slices of sequences. Forward passes take the slices in order, backward passes in reverse, so that a
/// rank starts `slices - 1` more before its first backward pass (Sun et al., NAACL 2025).
pub fn seq_1f1b(shape: ScheduleShape) -> ExplicitSchedule {
    let ScheduleShape { ranks, microbatches, slices, .. } = shape;
    let all = microbatches * slices;
    let of_rank = |rank: u32| {
        let warm_up = (ranks - 1 - rank + slices - 1).min(all);
        let action = |kind, number: u32| {
            let slice = number % slices;
            let slice = if kind == Forward { slice } else { slices - 1 - slice };
            Step::One(Action { kind, stage: rank, microbatch: number / slices, slice })
        };
        let steady =
            (0..all - warm_up).flat_map(|number| [action(Forward, warm_up + number), action(Backward, number)]);
        let warm = (0..warm_up).map(|number| action(Forward, number));
        let drain = (all - warm_up..all).map(|number| action(Backward, number));
        warm.chain(steady).chain(drain).collect()
    };
    ExplicitSchedule { ranks: (0..ranks).map(of_rank).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{csv, validate};

    fn shape(ranks: u32, parts: u32, microbatches: u32, slices: u32) -> ScheduleShape {
        ScheduleShape { ranks, parts, microbatches, slices }
    }

    fn row(schedule: &ExplicitSchedule, rank: usize) -> String {
        schedule.ranks[rank].iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn dual_pipe_v_is_pytorchs() {
        let schedule = dual_pipe_v(shape(4, 2, 10, 1));
        let first = "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,(0F7;7B3)OVERLAP_F_B,\
            (7F4;0B0)OVERLAP_F_B,(0F8;7B4)OVERLAP_F_B,(7F5;0B1)OVERLAP_F_B,(0F9;7B5)OVERLAP_F_B,(7F6;0B2)OVERLAP_F_B,\
            7B6,(7F7;0B3)OVERLAP_F_B,7B7,(7F8;0B4)OVERLAP_F_B,7B8,(7F9;0B5)OVERLAP_F_B,7B9,0I6,0W6,0I7,0W7,0I8,0W8,0I9,0W9";
        let second = "1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,(1F6;6B2)OVERLAP_F_B,(6F4;1B0)OVERLAP_F_B,\
            (1F7;6B3)OVERLAP_F_B,(6F5;1B1)OVERLAP_F_B,(1F8;6B4)OVERLAP_F_B,(6F6;1B2)OVERLAP_F_B,(1F9;6B5)OVERLAP_F_B,\
            (6F7;1B3)OVERLAP_F_B,6B6,(6F8;1B4)OVERLAP_F_B,6B7,(6F9;1B5)OVERLAP_F_B,6B8,1B6,6I9,1I7,6W9,1I8,1W7,1I9,1W8,1W9";
        let last = "3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,3F4,4B0,(4F4;3B0)OVERLAP_F_B,(3F5;4B1)OVERLAP_F_B,(4F5;3B1)OVERLAP_F_B,\
            (3F6;4B2)OVERLAP_F_B,(4F6;3B2)OVERLAP_F_B,(3F7;4B3)OVERLAP_F_B,(4F7;3B3)OVERLAP_F_B,(3F8;4B4)OVERLAP_F_B,\
            (4F8;3B4)OVERLAP_F_B,(3F9;4B5)OVERLAP_F_B,(4F9;3B5)OVERLAP_F_B,4B6,3B6,4B7,3B7,4I8,3I8,4I9,3I9,4W8,3W8,4W9,3W9";
        assert_eq!([row(&schedule, 0), row(&schedule, 1), row(&schedule, 3)], [first, second, last]);
    }

    #[test]
    fn looped_bfs_is_pytorchs() {
        let bfs = looped_bfs(shape(2, 2, 4, 1));
        assert_eq!(row(&bfs, 1), "1F0,1F1,1F2,1F3,3F0,3F1,3F2,3F3,3B3,3B2,3B1,3B0,1B3,1B2,1B1,1B0");
    }

    #[test]
    fn every_generated_schedule_runs_and_comes_back_from_its_file() {
        for ranks in 1..7u32 {
            for microbatches in 1..15u32 {
                let mut all = vec![];
                for parts in 1..4 {
                    all.push(looped_bfs(shape(ranks, parts, microbatches, 1)));
                    all.push(seq_1f1b(shape(ranks, 1, microbatches, parts)));
                }
                if ranks.is_multiple_of(2) && microbatches.is_multiple_of(2) && microbatches >= 2 * ranks {
                    all.push(dual_pipe(shape(ranks, 1, microbatches, 1)));
                }
                if microbatches >= 2 * ranks {
                    all.push(dual_pipe_v(shape(ranks, 2, microbatches, 1)));
                }
                for schedule in all {
                    let broken: Vec<_> =
                        validate::flaws(&schedule).into_iter().filter(|flaw| flaw.kind.breaks()).collect();
                    assert_eq!(broken, [], "{ranks} {microbatches}\n{}", csv::write(&schedule));
                    let read = csv::read(&csv::write(&schedule), "a.csv").unwrap();
                    assert_eq!(read.schedule, schedule);
                }
            }
        }
    }

    #[test]
    fn memory_is_the_published_one() {
        let most = |schedule: ExplicitSchedule| {
            validate::most_held(&schedule).into_iter().map(|(most, _)| most).collect::<Vec<_>>()
        };
        // DualPipe holds one microbatch more than there are ranks, on every rank.
        assert!(most(dual_pipe(shape(8, 1, 20, 1))).iter().all(|held| *held == 9));
        // DualPipeV: half stages of a V, so that PP + 1/2 whole ones are 2 PP + 1 of its own.
        assert!(most(dual_pipe_v(shape(4, 2, 10, 1))).iter().all(|held| *held == 9));
        // Seq1F1B: the first rank holds PP + K - 1 slices in place of PP sequences of K.
        assert_eq!(most(seq_1f1b(shape(4, 1, 16, 4))), [7, 6, 5, 4]);
        assert_eq!(most(looped_bfs(shape(2, 2, 4, 1))), [8, 8]);
    }
}
