//! Memory of a device over time, and its components.

use super::{
    order::{ComputationOrder, PassKind},
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

/// Memory over time under a listed schedule, whose parts of a stage may keep different numbers of bytes. All
/// computations are there.
pub(super) fn listed_steps(
    fixed: f64,
    program: &Program,
    order: &ComputationOrder,
    clock: &TickScale,
    computed: &[Record<i64>],
) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = vec![(0.0, fixed)];
    // Counts by part, so that nothing is lost by adding and subtracting.
    let mut held = vec![0i64; program.parts()];
    let mut put = |ticks: i64, held: &[i64], bytes: &[f64]| {
        let time = clock.seconds(ticks);
        let now = fixed + held.iter().zip(bytes).map(|(&count, bytes)| count as f64 * bytes).sum::<f64>();
        match steps.last_mut() {
            Some(step) if step.0 == time => step.1 = now,
            _ => steps.push((time, now)),
        }
    };
    let mut bytes = vec![0.0; program.parts()];
    for record in computed {
        let chunk = &program.chunks[record.chunk as usize];
        bytes[chunk.part as usize] = chunk.bytes;
        let work = order.at(record.index).work;
        if work == PassKind::Forward {
            held[chunk.part as usize] += 1;
            put(record.start, &held, &bytes);
        }
        if order.releases(work) {
            held[chunk.part as usize] -= 1;
            put(record.end, &held, &bytes);
        }
    }
    steps
}
