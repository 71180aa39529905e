//! Steps by which a user changes a limit: along sizes that exist.

use super::limit_kind::{LimitKind, MOST_BATCH, MOST_DEVICES, MOST_MICROBATCHES};
use crate::units::{self, GIB};

/// Memory sizes of real devices and round numbers between them, GiB or GB.
const MEMORY_STEPS: [f64; 30] = [
    0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0, 48.0, 64.0,
    80.0, 96.0, 112.0, 128.0, 141.0, 160.0, 180.0, 192.0, 256.0, 288.0,
];
/// Bandwidths between devices, from Ethernet to NVLink, GB/s.
const BANDWIDTH_STEPS: [f64; 18] =
    [0.125, 0.25, 0.5, 1.25, 2.5, 3.125, 5.0, 6.25, 12.5, 25.0, 50.0, 64.0, 100.0, 150.0, 300.0, 450.0, 900.0, 1800.0];
/// Peak rates of real devices and round numbers between them, 10¹² operations per second.
const FLOPS_STEPS: [f64; 16] =
    [1.0, 2.0, 5.0, 10.0, 15.7, 19.5, 30.0, 67.0, 125.0, 156.0, 200.0, 312.0, 495.0, 700.0, 989.0, 2250.0];

impl LimitKind {
    /// Next useful value in a direction. Devices and CPUs change by one (`large`: by a factor of two). Memory,
    /// bandwidth and rates follow sizes that exist, batches powers of two, and microbatches numbers with many divisors.
    pub fn step(self, value: f64, up: bool, large: bool) -> f64 {
        match self {
            LimitKind::Memory => {
                let unit = if units::is_decimal(value) { 1e9 } else { GIB };
                along(&MEMORY_STEPS, unit, value, up, if large { 3 } else { 1 })
            }
            LimitKind::Flops => along(&FLOPS_STEPS, 1e12, value, up, if large { 3 } else { 1 }),
            LimitKind::Bandwidth => along(&BANDWIDTH_STEPS, 1e9, value, up, if large { 3 } else { 1 }),
            LimitKind::Microbatches => {
                let mut next = value as u32;
                for _ in 0..if large { 4 } else { 1 } {
                    next = divisor_rich_neighbour(next, up);
                }
                f64::from(next)
            }
            // Batches are usually powers of two, or close to one.
            LimitKind::Batch => {
                let factor = if large { 4.0 } else { 2.0 };
                let next = if up { value * factor } else { (value / factor).floor() };
                next.clamp(1.0, f64::from(MOST_BATCH))
            }
            // Devices and CPUs.
            _ => {
                // A file that plans only on CPUs has 0 accelerators, which must stay valid.
                let fewest = if self == LimitKind::Cpus { 0.0 } else { value.min(1.0) };
                let next = match (up, large) {
                    (true, false) => value + 1.0,
                    (false, false) => value - 1.0,
                    (true, true) => (value * 2.0).max(1.0),
                    (false, true) => (value / 2.0).floor(),
                };
                next.clamp(fewest, f64::from(MOST_DEVICES))
            }
        }
    }
}

/// Moves `count` steps along a table of sizes. Between two entries, the first step goes to the next entry.
fn along(table: &[f64], unit: f64, value: f64, up: bool, count: usize) -> f64 {
    let mut value = value / unit;
    for _ in 0..count {
        let next = if up {
            table.iter().copied().find(|&step| step > value * (1.0 + 1e-9))
        } else {
            table.iter().rev().copied().find(|&step| step < value * (1.0 - 1e-9))
        };
        match next {
            Some(step) => value = step,
            // Beyond the table, values double; infinity stays infinite.
            None if up => value *= 2.0,
            None => value = (value / 2.0).max(units::SMALLEST / unit),
        }
    }
    value * unit
}

fn divisor_count(n: u32) -> usize {
    (1..=n.isqrt()).filter(|d| n.is_multiple_of(*d)).map(|d| if d * d == n { 1 } else { 2 }).sum()
}

/// Next number that has more divisors than all numbers within an eighth below it.
fn divisor_rich_neighbour(n: u32, up: bool) -> u32 {
    let rich = |m: u32| {
        let own = divisor_count(m);
        (m - m / 8..m).all(|smaller| smaller == 0 || divisor_count(smaller) < own)
    };
    let mut m = n;
    loop {
        if !up && m <= 1 {
            return 1;
        }
        if up && m >= MOST_MICROBATCHES {
            return MOST_MICROBATCHES;
        }
        m = if up { m + 1 } else { m - 1 };
        if rich(m) {
            return m;
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_up_and_come_back() {
        assert_eq!(LimitKind::Devices.step(8.0, true, true), 16.0);
        assert_eq!(LimitKind::Devices.step(1.0, false, false), 1.0);
        assert_eq!(LimitKind::Memory.step(8.0 * GIB, true, false), 10.0 * GIB);
        // In the unit that a limit is written in.
        assert_eq!(LimitKind::Memory.step(80e9, false, false), 64e9);
        assert_eq!(LimitKind::Memory.step(80.0 * GIB, false, false), 64.0 * GIB);
        assert_eq!(LimitKind::Bandwidth.step(25e9, true, false), 50e9);
        let up = LimitKind::Microbatches.step(1920.0, true, false);
        assert!(up > 1920.0 && divisor_count(up as u32) >= divisor_count(1920));
        for kind in LimitKind::ALL {
            let mut value = kind.parse(kind.example()).unwrap();
            for _ in 0..60 {
                value = kind.step(value, false, true);
                assert!(
                    (value > 0.0 || kind == LimitKind::Cpus) && kind.parse(&format!("{value}")).is_ok(),
                    "{kind:?} {value}"
                );
            }
        }
    }
}
