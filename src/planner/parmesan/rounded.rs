//! Figures as they are compared where sums differ by rounding: to 40 binary digits, about 12 decimal ones.
//!
//! "Equal but for a share of `1e-12`" is no order: of three figures the first may equal the second and the second the third,
//! and the first be less than the third. Who goes on from one to what is better by such a measure, and then by a second
//! one, can come back to where he began, for ever. Rounded figures have an order, so that this cannot be.

/// Binary digits that do not count.
const LEFT_OUT: u32 = 12;

/// A figure that is not negative, rounded: whole numbers in the order of the figures.
pub(super) fn rounded(figure: f64) -> u64 {
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
