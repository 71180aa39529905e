//! Rounds figures before they are compared, because sums may differ by rounding: to 40 binary digits, about 12 decimal
//! digits.
//!
//! "Equal within a relative `1e-12`" is not transitive: a = b and b = c, yet a < c. A search that improves by such a
//! comparison, and then by a second criterion, can cycle forever. Rounded figures have a total order, so it cannot.

/// Trailing binary digits that are dropped.
const LEFT_OUT: u32 = 12;

/// Rounds a non-negative figure to an integer; integers have the same order as the figures.
pub fn rounded(figure: f64) -> u64 {
    (figure.to_bits() + (1 << (LEFT_OUT - 1))) >> LEFT_OUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_left_out_and_all_else_is_not() {
        assert_eq!(rounded(0.1 + 0.2), rounded(0.3));
        assert_eq!(rounded(1.0 - f64::EPSILON), rounded(1.0));
        let ascending = [0.0, f64::MIN_POSITIVE, 1e-9, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1e30, f64::MAX, f64::INFINITY];
        assert!(ascending.windows(2).all(|pair| rounded(pair[0]) <= rounded(pair[1])));
        assert!(ascending[..8].windows(2).all(|pair| rounded(pair[0]) < rounded(pair[1])));
    }
}
