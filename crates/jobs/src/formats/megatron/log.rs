//! Measured iterations of a Megatron-LM log.

use plantui_core::family::training::calibrate::log::{after, median, number};

use crate::job::Measured;

/// Median iteration time and peak memory of a log; `None` if it has no iterations.
pub(super) fn measured(text: &str) -> Option<Measured> {
    let steps: Vec<f64> =
        text.lines().filter_map(|line| number(after(line, "elapsed time per iteration (ms):")?)).collect();
    let iterations = steps.len();
    let held = text.lines().filter(|line| line.contains("memory (MB)"));
    let peak = held.filter_map(|line| number(after(line, "max allocated:")?)).fold(0.0, f64::max);
    Some(Measured {
        iteration_s: median(steps)? / 1e3,
        // Megabytes as torch counts them, of the fullest rank in the log.
        memory_bytes: (peak > 0.0).then_some(peak * 1024.0 * 1024.0),
        iterations,
    })
}
