//! Values of a limit around the current one, coarse or fine: the default range of a chart along the limit.
//!
//! Coarse values cover the interesting range in factors. Fine values are a round step apart, so they show the effect of
//! a little more of the limit. The current value is always included, even if it is not round, because everything is
//! compared with it.

use plantui_core::{cluster::LimitKind, units};

/// Range and spacing of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RangeWidth {
    /// Factors: from a sixteenth of the value to sixteen times it, or the sizes that exist.
    #[default]
    Wide,
    /// Steps of about a sixteenth of the value.
    Near,
    /// Steps of one, or of about one percent.
    Close,
}

impl RangeWidth {
    /// All ranges, from coarse to fine.
    pub const ALL: [RangeWidth; 3] = [RangeWidth::Wide, RangeWidth::Near, RangeWidth::Close];

    /// Next finer or coarser range, if there is one.
    pub fn moved(self, finer: bool) -> Option<RangeWidth> {
        let at = self as usize;
        if finer { RangeWidth::ALL.get(at + 1).copied() } else { at.checked_sub(1).map(|at| RangeWidth::ALL[at]) }
    }
}

/// Steps to each side.
const STEPS: i32 = 8;
/// Number of near steps, and of close steps, that make up the value.
const NEAR: f64 = 16.0;
const CLOSE: f64 = 100.0;

/// Values in ascending order, including `now`; every value is valid.
pub fn values_around(kind: LimitKind, now: f64, reach: RangeWidth) -> Vec<f64> {
    let fine = |reach| steps_by(now, fine_step(kind, now, reach));
    let mut values = match reach {
        RangeWidth::Wide => wide(kind, now),
        // Without a limit there are no near values.
        _ if now.is_infinite() => wide(kind, now),
        reach => fine(reach),
    };
    values.push(now);
    let can_be = |value: f64| (value > 0.0 || kind == LimitKind::Cpus) && kind.parse(&format!("{value}")).is_ok();
    values.retain(|&value| value == now || can_be(value));
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn wide(kind: LimitKind, now: f64) -> Vec<f64> {
    let half = STEPS / 2;
    match kind {
        LimitKind::Devices => {
            // Powers of two and their halves more divide well: 32, 48, 64, 96, 128.
            let base = 2f64.powi(now.max(1.0).log2().floor() as i32);
            let powers = |e: i32| [base * 2f64.powi(e), base * 1.5 * 2f64.powi(e)];
            let most = base * 2f64.powi(half);
            (-half..=half).flat_map(powers).filter(|value| value.fract() == 0.0 && *value <= most).collect()
        }
        LimitKind::Microbatches | LimitKind::Batch => (-half..=half).map(|e| (now * 2f64.powi(e)).round()).collect(),
        LimitKind::Cpus => (0..=STEPS).map(f64::from).collect(),
        _ => {
            let along = |up| {
                std::iter::successors(Some(now), move |&value| Some(kind.step(value, up, false)))
                    .take(STEPS as usize + 1)
            };
            along(false).chain(along(true)).collect()
        }
    }
}

/// Multiples of a step around a value.
fn steps_by(now: f64, step: f64) -> Vec<f64> {
    let middle = (now / step).round();
    // Multiplication avoids the rounding error of a sum: 0.1 added three times is not 0.3.
    (-STEPS..=STEPS).map(|i| (middle + f64::from(i)) * step).collect()
}

fn fine_step(kind: LimitKind, now: f64, reach: RangeWidth) -> f64 {
    if kind.is_count() {
        // Powers of two preserve divisibility.
        return if reach == RangeWidth::Near && now >= NEAR {
            2f64.powi((now / NEAR).log2().floor() as i32)
        } else {
            1.0
        };
    }
    let unit = unit(&kind.format(now), now);
    round(now / unit / if reach == RangeWidth::Near { NEAR } else { CLOSE }) * unit
}

/// Unit of a size that is shown as `shown`.
fn unit(shown: &str, size: f64) -> f64 {
    let base: f64 = if shown.contains("iB") { 1024.0 } else { 1000.0 };
    base.powf((size.max(1.0).ln() / base.ln() + 1e-9).floor()).max(units::SMALLEST)
}

/// Nearest value below with a leading digit of 1, 2 or 5.
fn round(step: f64) -> f64 {
    let decade = 10f64.powi(step.log10().floor() as i32);
    let digit = [5.0, 2.0].into_iter().find(|digit| step / decade >= digit * (1.0 - 1e-9)).unwrap_or(1.0);
    digit * decade
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::units::GIB;

    #[test]
    fn values_lie_around_the_one_in_force_and_can_all_be_set() {
        for (kind, now) in [
            (LimitKind::Devices, 64.0),
            (LimitKind::Devices, 1.0),
            (LimitKind::Devices, 10_000.0),
            (LimitKind::Cpus, 0.0),
            (LimitKind::Cpus, 40.0),
            (LimitKind::Memory, 8.0 * GIB),
            (LimitKind::Memory, f64::INFINITY),
            (LimitKind::Memory, 1e-9),
            (LimitKind::Microbatches, 1_000_000.0),
            (LimitKind::Bandwidth, 25e9),
            (LimitKind::Bandwidth, f64::INFINITY),
            (LimitKind::Bandwidth, 1e30),
            (LimitKind::Flops, 15.7e12),
            (LimitKind::Batch, 3.0),
        ] {
            for reach in RangeWidth::ALL {
                let values = values_around(kind, now, reach);
                assert!(values.contains(&now) && values.len() <= 20, "{kind:?} {now}: {values:?}");
                assert!(values.len() >= 5 || now == 1e-9, "{kind:?} {now} {reach:?}: {values:?}");
                assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{kind:?} {now}: {values:?}");
            }
        }
    }

    #[test]
    fn fine_values_are_round_and_a_step_apart() {
        let shown = |kind: LimitKind, now, reach| -> Vec<String> {
            values_around(kind, now, reach).into_iter().map(|value| kind.format(value)).collect()
        };
        let close = shown(LimitKind::Devices, 64.0, RangeWidth::Close);
        assert_eq!((close.len(), close[0].as_str(), close[9].as_str()), (17, "56", "65"));
        let near = shown(LimitKind::Devices, 64.0, RangeWidth::Near);
        assert_eq!((near[0].as_str(), near[1].as_str(), near[16].as_str()), ("32", "36", "96"));
        let near = shown(LimitKind::Memory, 8.0 * GIB, RangeWidth::Near);
        assert_eq!((near[0].as_str(), near[8].as_str(), near[9].as_str()), ("4 GiB", "8 GiB", "8.5 GiB"));
        let close = shown(LimitKind::Memory, 80e9, RangeWidth::Close);
        assert_eq!((close[0].as_str(), close[8].as_str(), close[9].as_str()), ("76 GB", "80 GB", "80.5 GB"));
        let near = shown(LimitKind::Flops, 15.7e12, RangeWidth::Near);
        assert!(["15.5 TFLOPS", "15.7 TFLOPS", "16 TFLOPS"].iter().all(|v| near.iter().any(|n| n == v)), "{near:?}");
        assert_eq!(
            values_around(LimitKind::Cpus, 0.0, RangeWidth::Close),
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
        );
    }
}
