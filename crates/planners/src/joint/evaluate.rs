//! Fast iteration time under 1F1B with equal replicas: the recurrence of the simulator, without its events.
//!
//! Forward `(s, k)` has rank `k`, backward `(s, k)` has rank `k + S − s`. Every predecessor of an operation has a
//! smaller rank, or the same rank at an earlier stage. So operations run rank by rank, stage by stage, and need no
//! queue.
//!
//! `O(S · M)` time, less in the steady state: once all clocks have advanced equally since an earlier rank, they do so
//! until the forwards end, and those ranks are skipped. `O(S²)` memory. Times equal those of [`plantui_core::simulate`] up to
//! rounding, which a test checks. Reported times are simulated.

use super::chain;

/// Pipeline with one replica of each stage.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplicaPipeline {
    pub(super) microbatches: u32,
    /// Seconds of forward, backward and all-reduce, by stage.
    pub(super) stages: Vec<[f64; 3]>,
    /// Transfers: from, to, seconds; one for each pair of stages.
    pub(super) transfers: Vec<(u32, u32, f64)>,
}

/// Relative tolerance within which clocks have advanced equally.
const ALIKE: f64 = 1e-13;

/// Clocks of a run.
struct PipelineClocks<'a> {
    pipeline: &'a ReplicaPipeline,
    count: usize,
    /// Clocks of compute, the activations' engine and the gradients' engine, by stage.
    free: Vec<[f64; 3]>,
    /// Arrival of the next microbatch's activations, by stage.
    activations: Vec<f64>,
    /// Arrival of gradients, by stage and by microbatch modulo the number of stages.
    gradients: Vec<f64>,
    /// Transfers of each stage forward and back, nearest receiver first.
    sends: TransferIndex,
    returns: TransferIndex,
}

/// Transfers by sender. Those of stage `s` start at `first[s]`.
#[derive(Default)]
struct TransferIndex {
    first: Vec<u32>,
    list: Vec<(u32, f64)>,
}

impl TransferIndex {
    fn of(&self, stage: usize) -> &[(u32, f64)] {
        &self.list[self.first[stage] as usize..self.first[stage + 1] as usize]
    }

    /// Builds the index from (sender, receiver, seconds), sorted by sender and in the order of sending.
    fn new(count: usize, transfers: impl Iterator<Item = (u32, u32, f64)>) -> Self {
        let mut ways = TransferIndex { first: vec![0], list: vec![] };
        for (from, to, seconds) in transfers {
            while ways.first.len() <= from as usize {
                ways.first.push(ways.list.len() as u32);
            }
            ways.list.push((to, seconds));
        }
        ways.first.resize(count + 1, ways.list.len() as u32);
        ways
    }
}

impl ReplicaPipeline {
    /// Iteration time in seconds, including all-reduces.
    pub(super) fn seconds(&self) -> f64 {
        let next = |(s, send): (usize, &(u32, u32, f64))| send.0 as usize == s && send.1 as usize == s + 1;
        let is_chain = self.transfers.len() + 1 == self.stages.len() && self.transfers.iter().enumerate().all(next);
        if is_chain {
            let sends: Vec<f64> = self.transfers.iter().map(|send| send.2).collect();
            let ends = chain::ends(&self.stages, &sends, self.microbatches as usize);
            return ends.zip(&self.stages).map(|(end, stage)| end + stage[2]).fold(0.0, f64::max);
        }
        let mut run = PipelineClocks::new(self);
        let (m, count) = (self.microbatches as usize, run.count);
        let (mut rank, mut mark, mut marked_at, mut next_mark) = (0, vec![], 0, count + 1);
        let mut passed = false;
        while rank < m + count {
            run.rank(rank);
            rank += 1;
            if passed || rank + 2 >= m || rank <= count {
                continue;
            }
            if rank >= next_mark {
                (mark, marked_at) = (run.clocks(rank), rank);
                next_mark = rank + (rank - count).max(2);
            } else if !mark.is_empty()
                && let Some(step) = run.gone_on(&mark, rank)
            {
                let period = rank - marked_at;
                let times = (m - 1 - rank) / period;
                run.pass(step * times as f64, times * period, rank);
                rank += times * period;
                passed = true;
            }
        }
        let ends = run.free.iter().zip(&self.stages).map(|(free, stage)| free[0] + stage[2]);
        ends.fold(0.0, f64::max)
    }
}

impl<'a> PipelineClocks<'a> {
    fn new(pipeline: &'a ReplicaPipeline) -> Self {
        let count = pipeline.stages.len();
        let mut sent = pipeline.transfers.clone();
        sent.sort_unstable_by_key(|send| (send.0, send.1));
        let mut returned: Vec<(u32, u32, f64)> = sent.iter().map(|&(from, to, seconds)| (to, from, seconds)).collect();
        returned.sort_unstable_by_key(|send| (send.0, std::cmp::Reverse(send.1)));
        PipelineClocks {
            pipeline,
            count,
            free: vec![[0.0; 3]; count],
            activations: vec![0.0; count],
            gradients: vec![0.0; count * count],
            sends: TransferIndex::new(count, sent.into_iter()),
            returns: TransferIndex::new(count, returned.into_iter()),
        }
    }

    /// Runs all operations of a rank.
    fn rank(&mut self, rank: usize) {
        let (count, m) = (self.count, self.pipeline.microbatches as usize);
        let base = rank % count;
        for (s, &[forward, backward, _]) in self.pipeline.stages.iter().enumerate() {
            let [mut compute, mut activations, mut gradients] = self.free[s];
            if rank + s >= count && rank + s - count < m {
                let slot = if base + s >= count { base + s - count } else { base + s };
                let end = compute.max(std::mem::take(&mut self.gradients[s * count + slot])) + backward;
                compute = end;
                for &(to, seconds) in self.returns.of(s) {
                    gradients = f64::max(gradients, end) + seconds;
                    let arrived = &mut self.gradients[to as usize * count + slot];
                    *arrived = arrived.max(gradients);
                }
            }
            if rank < m {
                let end = compute.max(std::mem::take(&mut self.activations[s])) + forward;
                compute = end;
                for &(to, seconds) in self.sends.of(s) {
                    activations = f64::max(activations, end) + seconds;
                    let arrived = &mut self.activations[to as usize];
                    *arrived = arrived.max(activations);
                }
            }
            self.free[s] = [compute, activations, gradients];
        }
    }

    /// State that later ranks depend on, with microbatches counted from the rank.
    fn clocks(&self, rank: usize) -> Vec<f64> {
        let count = self.count;
        let mut clocks: Vec<f64> = Vec::with_capacity(count * (count + 3));
        for s in 0..count {
            clocks.extend(self.free[s]);
            clocks.extend((0..count).map(|i| self.gradients[s * count + (rank + i) % count]));
        }
        clocks
    }

    /// Time by which all clocks have advanced since `mark`; `None` if they differ.
    fn gone_on(&self, mark: &[f64], rank: usize) -> Option<f64> {
        let step = self.free[0][0] - mark[0];
        let room = ALIKE * self.free[0][0];
        let count = self.count;
        for s in 0..count {
            let old = &mark[s * (count + 3)..(s + 1) * (count + 3)];
            let alike = |now: f64, then: f64| (now - then - step).abs() <= room || (now == 0.0 && then == 0.0);
            if !(0..3).all(|i| alike(self.free[s][i], old[i])) {
                return None;
            }
            if !(0..count).all(|i| alike(self.gradients[s * count + (rank + i) % count], old[3 + i])) {
                return None;
            }
        }
        Some(step)
    }

    /// Skips `ranks` ranks that take `seconds` in all.
    fn pass(&mut self, seconds: f64, ranks: usize, rank: usize) {
        let count = self.count;
        let old = self.clocks(rank);
        let later = |clock: f64| if clock == 0.0 { 0.0 } else { clock + seconds };
        for s in 0..count {
            let old = &old[s * (count + 3)..(s + 1) * (count + 3)];
            (0..3).for_each(|i| self.free[s][i] = later(old[i]));
            for i in 0..count {
                self.gradients[s * count + (rank + ranks + i) % count] = later(old[3 + i]);
            }
        }
    }
}
