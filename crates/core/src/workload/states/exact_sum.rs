//! Exactly rounded sum of many numbers.
//!
//! Shewchuk, *Adaptive Precision Floating-Point Arithmetic*, 1997: the sum is stored as partials that do not overlap,
//! each the rounding error of the next. The result does not depend on the order of the summands, so totals over sets of
//! nodes do not depend on how the set was found. `O(k)` per number for `k` partials (a handful for profiles).

/// Maximum number of partials that are subtracted without a heap allocation.
const AT_HAND: usize = 8;

/// Running sum.
#[derive(Debug, Clone, Default)]
pub struct ExactSum {
    /// Partials that do not overlap, by growing magnitude.
    partials: Vec<f64>,
}

impl ExactSum {
    /// Exactly rounded sum of finite numbers.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = ExactSum::default();
        values.into_iter().for_each(|value| sum.add(value));
        sum.value()
    }

    /// Adds a finite number.
    pub fn add(&mut self, value: f64) {
        self.partials.push(0.0);
        let kept = added(&mut self.partials, value);
        self.partials.truncate(kept);
    }

    /// Resets the sum to 0.
    pub fn clear(&mut self) {
        self.partials.clear();
    }

    /// Difference of two sums, rounded once.
    pub(super) fn minus(&self, other: &ExactSum) -> f64 {
        if let ([value], [less]) = (&*self.partials, &*other.partials) {
            return value - less;
        }
        let mut difference = [0.0; AT_HAND];
        let mut kept = self.partials.len();
        if kept + other.partials.len() > AT_HAND {
            let mut difference = self.clone();
            other.partials.iter().for_each(|&partial| difference.add(-partial));
            return difference.value();
        }
        difference[..kept].copy_from_slice(&self.partials);
        for partial in &other.partials {
            kept = added(&mut difference[..=kept], -partial);
        }
        rounded(&difference[..kept])
    }

    /// Sum, rounded once.
    pub fn value(&self) -> f64 {
        rounded(&self.partials)
    }
}

/// Adds a number to the partials. The last element is free space for one more. Returns the new number of partials.
fn added(partials: &mut [f64], mut value: f64) -> usize {
    let mut kept = 0;
    for i in 0..partials.len() - 1 {
        let mut partial = partials[i];
        if value.abs() < partial.abs() {
            std::mem::swap(&mut value, &mut partial);
        }
        let high = value + partial;
        let low = partial - (high - value);
        if low != 0.0 {
            partials[kept] = low;
            kept += 1;
        }
        value = high;
    }
    partials[kept] = value;
    kept + 1
}

/// Sum of partials that do not overlap, by growing magnitude, rounded once.
fn rounded(partials: &[f64]) -> f64 {
    let mut rest = partials.iter().rev().copied();
    let Some(mut high) = rest.next() else { return 0.0 };
    let mut low = 0.0;
    let mut next = rest.next();
    while let Some(partial) = next {
        let sum = high + partial;
        low = partial - (sum - high);
        high = sum;
        next = rest.next();
        if low != 0.0 {
            break;
        }
    }
    // Half way between two numbers: the remaining partial decides.
    if let Some(further) = next
        && (low > 0.0) == (further > 0.0)
        && low != 0.0
        && further != 0.0
    {
        let twice = low * 2.0;
        let sum = high + twice;
        if sum - high == twice {
            high = sum;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_whatever_the_order() {
        assert_eq!(ExactSum::of([0.1; 10]), 1.0);
        assert_eq!(ExactSum::of([1e16, 1.0, -1e16]), 1.0);
        assert_eq!(ExactSum::of([]), 0.0);
        let sum = |values: &[f64]| {
            let mut sum = ExactSum::default();
            values.iter().for_each(|&value| sum.add(value));
            sum
        };
        assert_eq!(sum(&[1e30, 0.1, 0.2]).minus(&sum(&[1e30, 0.1])), 0.2);
        assert_eq!(sum(&[3.0]).minus(&sum(&[1.0])), 2.0);
        // More numbers than are at hand.
        let wide: Vec<f64> = (0..9).map(|i| 1e-200 * 1e30_f64.powi(i)).collect();
        assert_eq!(sum(&wide).minus(&sum(&wide[1..])), wide[0]);
        // Exactly half way, and then a little more.
        assert_eq!(ExactSum::of([1.0, f64::EPSILON / 2.0, 1e-30]), 1.0 + f64::EPSILON);
        let values = [3.1e-3, 7.77, 1e12, -5.5e11, 0.03];
        let mut reversed = values;
        reversed.reverse();
        assert_eq!(ExactSum::of(values), ExactSum::of(reversed));
    }
}
