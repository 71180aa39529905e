//! Memory of a device over time, and its components.

use super::{
    order::{Computation, ComputationOrder, PassKind},
    pipeline::PipelineStage,
    program::{Program, TickScale},
    run::Record,
    timeline::EventKind,
};

/// Memory over time on a device of the first replica, from its computations. No other replica has more microbatches,
/// and all have equally many in flight. That number follows from the order alone, so computations may be missing.
pub(super) fn steps(
    stage: &PipelineStage,
    order: &ComputationOrder,
    parts: usize,
    clock: &TickScale,
    computed: &[Record<i64>],
) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = vec![(0.0, stage.fixed_bytes)];
    let mut put = |ticks: i64, held: i64| {
        let time = clock.seconds(ticks);
        let bytes = stage.fixed_bytes + stage.activation_bytes * held as f64 / parts as f64;
        match steps.last_mut() {
            Some(step) if step.0 == time => step.1 = bytes,
            _ => steps.push((time, bytes)),
        }
    };
    for record in computed {
        let work = match record.kind {
            EventKind::Forward => PassKind::Forward,
            EventKind::Backward => PassKind::Backward,
            _ => PassKind::WeightGradient,
        };
        let after = order.held_after(record.index);
        let released = order.releases(work);
        if work == PassKind::Forward {
            put(record.start, after + i64::from(released));
        }
        if released {
            put(record.end, after);
        }
    }
    steps
}

/// Bytes that the microbatches in flight keep under a listed schedule, whose chunks may keep different numbers of bytes.
pub(super) struct ListedMemory<'a> {
    program: &'a Program,
    order: &'a ComputationOrder,
    /// Microbatches in flight by part of the stage: counts, so that nothing is lost by adding and subtracting.
    held: Vec<i64>,
    bytes: Vec<f64>,
    /// Next operation of the order.
    next: u64,
}

impl<'a> ListedMemory<'a> {
    pub(super) fn new(program: &'a Program, order: &'a ComputationOrder) -> Self {
        let parts = program.parts();
        ListedMemory { program, order, held: vec![0; parts], bytes: vec![0.0; parts], next: 0 }
    }

    /// Bytes during the next operation, and after it.
    fn advance(&mut self) -> [f64; 2] {
        let Computation { work, chunk, .. } = self.order.at(self.next);
        self.next += 1;
        let chunk = &self.program.chunks[chunk as usize];
        let part = chunk.part as usize;
        self.bytes[part] = chunk.bytes;
        self.held[part] += i64::from(work == PassKind::Forward);
        let during = self.now();
        self.held[part] -= i64::from(self.order.releases(work));
        [during, self.now()]
    }

    fn now(&self) -> f64 {
        self.held.iter().zip(&self.bytes).map(|(&count, bytes)| count as f64 * bytes).sum()
    }

    /// Most bytes at any time of the whole order.
    pub(super) fn most(mut self) -> f64 {
        (0..self.order.len).map(|_| self.advance()[0]).fold(0.0, f64::max)
    }

    /// Steps `(seconds, bytes)` of the computations that are drawn, in their order, above `fixed` bytes.
    pub(super) fn steps(mut self, fixed: f64, clock: &TickScale, drawn: &[Record<i64>]) -> Vec<(f64, f64)> {
        let mut steps: Vec<(f64, f64)> = vec![(0.0, fixed)];
        let mut put = |ticks: i64, bytes: f64| {
            let time = clock.seconds(ticks);
            match steps.last_mut() {
                Some(step) if step.0 == time => step.1 = fixed + bytes,
                _ => steps.push((time, fixed + bytes)),
            }
        };
        for record in drawn {
            // Those in between are not drawn.
            while self.next < record.index {
                self.advance();
            }
            let [during, after] = self.advance();
            put(record.start, during);
            put(record.end, after);
        }
        steps.dedup_by(|step, before| step.1 == before.1);
        steps
    }
}
