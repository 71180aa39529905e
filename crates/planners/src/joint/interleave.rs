//! Fast iteration time under interleaved 1F1B for a chain of equal replicas: the recurrence of the simulator, without
//! its events.
//!
//! The order of operations of each stage is fixed in advance (Narayanan et al., SC 2021: microbatches in rounds, a
//! round through all parts before the next). Each stage advances as far as it can, down the pipeline and up again,
//! until all have finished. Arrivals are stored by part and microbatch, so no queue is needed.
//!
//! `O(operations)` time for almost all pipelines, since a pass over all stages runs every ready operation;
//! `O(parts · microbatches)` memory. Times equal those of [`plantui_core::simulate`] up to rounding, which a test checks.
//! Reported times are simulated.

use plantui_core::plan::interleaved_round;

/// Chain of stages with equally many equal parts of the model each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain<'a> {
    pub(super) parts: usize,
    pub(super) microbatches: usize,
    /// Seconds by stage: forward and backward of all its parts, all-reduce.
    pub(super) stages: &'a [[f64; 3]],
    /// Seconds of the transfer from each stage to the next.
    pub(super) sends: &'a [f64],
}

/// Position of a stage in one direction of its order: index within the round, part, first microbatch of the round.
#[derive(Debug, Clone, Copy, Default)]
struct StagePosition {
    within: usize,
    part: usize,
    first: usize,
}

impl StagePosition {
    fn next(self, chain: &Chain<'_>) -> StagePosition {
        let round = chain.round();
        match self {
            StagePosition { within, .. } if within + 1 < round => StagePosition { within: within + 1, ..self },
            StagePosition { part, .. } if part + 1 < chain.parts => StagePosition { within: 0, part: part + 1, ..self },
            StagePosition { first, .. } => StagePosition { within: 0, part: 0, first: first + round },
        }
    }
}

/// Progress of a stage.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    /// Number of operations done, and the next position in each direction.
    done: usize,
    next: [StagePosition; 2],
    /// Clocks of compute and the two send engines.
    free: [f64; 3],
}

impl Chain<'_> {
    /// Number of microbatches in a round.
    fn round(&self) -> usize {
        let (stages, microbatches) = (self.stages.len(), self.microbatches);
        interleaved_round(stages as u32, microbatches as u32).map_or(stages, |round| round as usize)
    }

    /// Iteration time in seconds, including all-reduces. Requires at least two stages and equal rounds of microbatches.
    pub(super) fn seconds(&self) -> f64 {
        let (count, m) = (self.stages.len(), self.microbatches);
        let (parts, all) = (self.parts * count, m * self.parts);
        // Infinite until an input arrives.
        let mut arrived = [vec![f64::INFINITY; parts * m], vec![f64::INFINITY; parts * m]];
        arrived[0][..m].fill(0.0);
        arrived[1][(parts - 1) * m..].fill(0.0);
        let mut clocks = vec![Clock::default(); count];
        let mut left = 2 * all * count;
        let mut up = false;
        while left > 0 {
            let before = left;
            for turn in 0..count {
                let stage = if up { count - 1 - turn } else { turn };
                left -= self.advance(stage, &mut clocks[stage], &mut arrived);
            }
            up = !up;
            if left == before {
                // Valid orders do not deadlock. If one did, its plan would rank last.
                return f64::INFINITY;
            }
        }
        clocks.iter().zip(self.stages).map(|(clock, stage)| clock.free[0] + stage[2]).fold(0.0, f64::max)
    }

    /// Runs all operations of a stage whose inputs have arrived. Returns their number.
    fn advance(&self, stage: usize, clock: &mut Clock, arrived: &mut [Vec<f64>; 2]) -> usize {
        let (count, m) = (self.stages.len(), self.microbatches);
        let all = m * self.parts;
        let early = (2 * (count - 1 - stage) + (self.parts - 1) * self.round()).min(all);
        let dearest = self.sends.iter().copied().fold(0.0, f64::max);
        let each = self.stages[stage].map(|seconds| seconds / self.parts as f64);
        let begun = clock.done;
        while clock.done < 2 * all {
            let backward = clock.done >= early && (clock.done >= 2 * all - early || (clock.done - early) % 2 == 1);
            let direction = usize::from(backward);
            let place = clock.next[direction];
            let part = if backward { self.parts - 1 - place.part } else { place.part };
            let (chunk, microbatch) = (part * count + stage, place.first + place.within);
            let ready = arrived[direction][chunk * m + microbatch];
            if ready == f64::INFINITY {
                break;
            }
            let end = clock.free[0].max(ready) + each[direction];
            clock.free[0] = end;
            let (target, way) = match backward {
                false => (chunk + 1, self.sends.get(stage)),
                true => (chunk.wrapping_sub(1), stage.checked_sub(1).and_then(|before| self.sends.get(before))),
            };
            if target < self.parts * count {
                let free = &mut clock.free[1 + direction];
                *free = free.max(end) + way.copied().unwrap_or(dearest);
                arrived[direction][target * m + microbatch] = *free;
            }
            clock.next[direction] = place.next(self);
            clock.done += 1;
        }
        clock.done - begun
    }
}
