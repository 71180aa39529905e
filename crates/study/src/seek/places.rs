//! Values of a limit to test: the ends, the middle between two, and the ladder upwards from the least.

use plantui_core::{cluster::LimitKind, units};

/// Relative resolution of sizes and rates.
pub(super) const WITHIN: f64 = 0.01;
/// Range of counts above the current value as a factor, and the least upper end.
const FURTHEST: f64 = 16.0;
const FEWEST: f64 = 64.0;
/// Up to this count a ladder has every value; above it, steps are an eighth of a power of two.
const EVERY: f64 = 64.0;
/// Steps of a ladder of sizes to each side.
const RUNGS: usize = 6;

/// Least value to test.
pub(super) fn least(kind: LimitKind, now: f64) -> f64 {
    match kind.counted_in() {
        Some((least, _)) => now.min(f64::from(least)),
        // A size below a millionth of the current one is not meant.
        None => (now.min(1e15) / 1_048_576.0).max(units::SMALLEST),
    }
}

/// Greatest value to test; for sizes, no limit.
pub(super) fn most(kind: LimitKind, now: f64) -> f64 {
    match kind.counted_in() {
        Some((_, most)) => (now * FURTHEST).max(FEWEST).min(f64::from(most)).max(now),
        None => f64::INFINITY,
    }
}

/// Value between two others, as round as possible; `None` if they are neighbours.
pub(super) fn middle(kind: LimitKind, low: f64, high: f64) -> Option<f64> {
    if kind.is_count() {
        return (high - low > 1.5).then(|| ((low + high) / 2.0).floor());
    }
    if high / low <= 1.0 + WITHIN {
        return None;
    }
    let middle = (low * high).sqrt();
    let unit = if kind == LimitKind::Memory { 1024f64.powf((middle.ln() / 1024f64.ln()).floor()) } else { 1.0 };
    let round = |digits: i32| {
        let step = 10f64.powi((middle / unit).log10().floor() as i32 + 1 - digits);
        (middle / unit / step).round() * step * unit
    };
    // The fewest digits that still leave at most three quarters of the interval.
    let narrow = |value: f64| {
        let share = (value / low).ln() / (high / low).ln();
        (0.25..=0.75).contains(&share)
    };
    Some((1..=6).map(round).find(|&value| narrow(value)).unwrap_or(middle))
}

/// Values upwards from the least, coarser where they are large.
pub(super) fn ladder(kind: LimitKind, now: f64) -> Vec<f64> {
    let mut values = vec![];
    if kind.is_count() {
        let (mut next, last) = (least(kind, now), most(kind, now));
        while next <= last {
            values.push(next);
            next += if next < EVERY { 1.0 } else { (2f64.powf(next.log2().floor()) / 8.0).max(1.0) };
        }
        values.extend([now, last]);
    } else {
        let along =
            |up| std::iter::successors(Some(now), move |&value| Some(kind.step(value, up, false))).take(RUNGS + 1);
        values.extend(along(false).chain(along(true)));
    }
    ascending(values)
}

/// Values between a failing value and the next one that succeeds.
pub(super) fn between(kind: LimitKind, low: f64, high: f64) -> Vec<f64> {
    if kind.is_count() {
        let inside = (high - low) as usize;
        return (1..inside).map(|step| low + step as f64).collect();
    }
    let high = high.min(units::LARGEST);
    let steps = ((high / low).ln() / (1.0 + WITHIN).ln()).ceil().clamp(1.0, 16.0) as i32;
    let values = (1..steps).map(|step| low * (high / low).powf(f64::from(step) / f64::from(steps)));
    let values = values.map(|value| if kind == LimitKind::Memory { value } else { three_digits(value) });
    ascending(values.filter(|&value| low < value && value < high).collect())
}

/// Value rounded to three digits, the precision of shown rates.
fn three_digits(value: f64) -> f64 {
    let step = 10f64.powi(value.log10().floor() as i32 - 2);
    (value / step).round() * step
}

/// Sorted values without duplicates.
pub(super) fn ascending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_lie_between_and_end() {
        for (kind, low, high) in [
            (LimitKind::Devices, 1.0, 1024.0),
            (LimitKind::Memory, 1e3, 1e12),
            (LimitKind::Bandwidth, 1.0, 1e30),
            (LimitKind::Cpus, 0.0, 7.0),
        ] {
            for up in [true, false] {
                let (mut low, mut high, mut steps) = (low, high, 0);
                while let Some(value) = middle(kind, low, high) {
                    assert!(low < value && value < high, "{kind:?} {low} {value} {high}");
                    if up {
                        low = value;
                    } else {
                        high = value;
                    }
                    steps += 1;
                    assert!(steps < 40, "{kind:?}");
                }
            }
        }
        assert_eq!(
            middle(LimitKind::Memory, 8.0 * 1024f64.powi(3), 16.0 * 1024f64.powi(3)),
            Some(10.0 * 1024f64.powi(3))
        );
    }

    #[test]
    fn ladders_hold_every_small_count_and_the_value_in_force() {
        let devices = ladder(LimitKind::Devices, 100.0);
        assert!((1..=64).all(|count| devices.contains(&f64::from(count))) && devices.contains(&100.0));
        assert_eq!((devices[0], *devices.last().unwrap()), (1.0, 1600.0));
        assert!(devices.len() < 120 && devices.windows(2).all(|pair| pair[0] < pair[1]));
        let memory = ladder(LimitKind::Memory, 8.0 * 1024f64.powi(3));
        assert_eq!(memory.len(), 13);
        assert_eq!(between(LimitKind::Devices, 64.0, 72.0).len(), 7);
        let fine = between(LimitKind::Memory, 8e9, 16e9);
        assert!(fine.len() == 15 && fine.iter().all(|value| (8e9..16e9).contains(value)));
    }
}
