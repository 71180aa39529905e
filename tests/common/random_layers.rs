//! Small layer-wise profiles, drawn at random and written as PipeDream's text.

use std::fmt::Write;

use plantui::{
    cluster::{Limits, Machines},
    family::dial,
    planner::{OptionValue, Options, Planner, Problem},
    workload::{self, Workload},
};

/// A small generator of numbers (xorshift); the same seed gives the same numbers everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    /// Seeds it.
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }

    /// One of the values.
    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

/// A profile of `layers` layers, a chain with some skips; bytes are of a size that machines take about as long to send as
/// to compute.
pub(crate) fn text(dice: &mut Dice, layers: usize) -> String {
    let mut text = String::new();
    if dice.below(2) == 0 {
        text += "node0 -- Input -- forward_compute_time=1, backward_compute_time=0, activation_size=5e6, parameter_size=0\n";
    }
    let input = !text.is_empty();
    for i in 1..=layers {
        let (forward, backward) = (dice.below(20), dice.below(40));
        let (activation, parameters) = (dice.below(20) * 1_000_000, dice.pick(&[0, 1, 10, 100]) * 1_000_000);
        writeln!(
            text,
            "node{i} -- layer{i} -- forward_compute_time={forward}, backward_compute_time={}, activation_size={activation}.000, parameter_size={parameters}",
            backward + 1
        )
        .unwrap();
    }
    for i in 1..=layers {
        let from = if i == 1 { 0 } else { i - 1 };
        if i > 1 || input {
            writeln!(text, "\tnode{from} -- node{i}").unwrap();
        }
        if i > 2 && dice.below(4) == 0 {
            let from = 1 + dice.below(i as u64 - 2);
            writeln!(text, "\tnode{from} -- node{i}").unwrap();
        }
    }
    text
}

/// The profile as a workload.
pub(crate) fn workload(dice: &mut Dice, layers: usize) -> Workload {
    let text = text(dice, layers);
    workload::load_bytes(text.as_bytes(), "random.txt", "random").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The workload, measured with so many samples at once.
pub(crate) fn of_batch(workload: &Workload, samples: f64) -> Workload {
    dial::turned(workload, "profile-batch", &samples.to_string()).unwrap()
}

/// A problem for a planner of layer-wise profiles; `profile_batch` among the settings is the workload's.
pub(crate) fn problem(
    planner: &dyn Planner,
    workload: Workload,
    limits: Limits,
    settings: &[(&'static str, f64)],
) -> Problem {
    let mut options = Options::defaults(planner.options());
    let (batch, others): (Vec<_>, Vec<_>) = settings.iter().partition(|(name, _)| *name == "profile_batch");
    let workload = match batch.first() {
        Some((_, samples)) => of_batch(&workload, *samples),
        None => workload,
    };
    others.into_iter().for_each(|(name, value)| options.set(name, OptionValue::Number(value)));
    Problem { workload: workload.into(), limits, options }
}

/// Limits of machines and a batch.
pub(crate) fn limits(machines: &[u16], batch: u32, memory_bytes: f64) -> Limits {
    let machines = Machines::new(machines).unwrap();
    Limits {
        devices: machines.devices(),
        machines,
        batch: Some(batch),
        memory_bytes: Some(memory_bytes),
        ..Limits::NEUTRAL
    }
}
