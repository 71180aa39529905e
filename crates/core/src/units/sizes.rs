//! Formats sizes in bytes: limits as written, measured values, and columns of values.

use super::{KIB, digits};

const BINARY: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
pub(super) const DECIMAL: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];

/// Scales to the largest unit of `base` that keeps the number at 1 or above: (scaled number, index of the unit).
pub(super) fn scale(value: f64, base: f64) -> (f64, usize) {
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= base && unit + 1 < BINARY.len() {
        scaled /= base;
        unit += 1;
    }
    (scaled, unit)
}

/// Measured size in binary units with three digits, such as `7.42 GiB`. Trailing zeros stay, so that columns line up:
/// `7.30 GiB`.
pub fn bytes(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    measured(value, KIB, BINARY)
}

/// Size that suffices as a new limit, in the old limit's kind of unit with three digits. It is rounded up, so that the
/// typed text is large enough: `4.59 GiB` for 4,920,249,291 bytes in place of `1 GiB`, `4.93 GB` in place of `1 GB`.
pub fn bytes_enough(value: f64, limit: f64) -> String {
    if !value.is_finite() {
        return bytes(value);
    }
    let (base, units) = kind(limit);
    rounded(value, base, units, f64::ceil)
}

/// Formats three digits in the largest unit that keeps the number at 1 or nearly so. Bytes are whole numbers.
fn measured(value: f64, base: f64, units: [&str; 6]) -> String {
    // No rounding here: formatting rounds the digits.
    rounded(value, base, units, |digits| digits)
}

/// Like `measured`, but applies `round` to the last digit before formatting.
fn rounded(value: f64, base: f64, units: [&str; 6], round: fn(f64) -> f64) -> String {
    let (scaled, unit) = scale(value, base);
    let (scaled, unit) =
        if scaled >= 999.5 && unit + 1 < units.len() { (scaled / base, unit + 1) } else { (scaled, unit) };
    let number = if unit == 0 || !(1e-3..1e4).contains(&scaled.abs()) {
        digits(round(scaled), 3)
    } else {
        let decimals = (2 - scaled.abs().log10().floor() as i32).clamp(0, 2);
        let last = 10.0_f64.powi(decimals);
        format!("{:.*}", decimals as usize, round(scaled * last) / last)
    };
    format!("{number} {}", units[unit])
}

/// Limit in the unit in which it was most likely written: `8 GiB`, `80 GB`, `25 GB`; `unlimited` if it is infinite.
pub fn bytes_exact(value: f64) -> String {
    if !value.is_finite() {
        return if value > 0.0 { "unlimited" } else { "-" }.into();
    }
    let (binary, binary_unit) = scale(value, KIB);
    let (decimal, decimal_unit) = scale(value, 1e3);
    let binary_text = digits(binary, 6);
    let decimal_text = digits(decimal, 6);
    if binary_text.len() <= decimal_text.len() {
        format!("{binary_text} {}", BINARY[binary_unit])
    } else {
        format!("{decimal_text} {}", DECIMAL[decimal_unit])
    }
}

/// Measured size beside a limit, in decimal units if the limit is written in decimal units: `7.42 GiB` of `8 GiB`,
/// `7.97 GB` of `80 GB`.
pub fn bytes_like(value: f64, limit: f64) -> String {
    if !value.is_finite() {
        return bytes(value);
    }
    let (base, units) = kind(limit);
    measured(value, base, units)
}

/// Measured size in a column of sizes that share a limit. Uses the limit's unit, with decimals that give the limit
/// three digits, but at least one, so that the column lines up: `7.30 GiB` and `7.78 GiB` of 8 GiB, `9.1 GiB` and
/// `71.2 GiB` of 80 GiB. A value that would keep fewer than two digits gets its own unit.
pub fn bytes_beside(value: f64, limit: f64) -> String {
    if !value.is_finite() || !limit.is_finite() {
        return bytes(value);
    }
    let (base, units) = kind(limit);
    let (scaled_limit, unit) = scale(limit, base);
    let scaled = value / base.powi(unit as i32);
    let decimals = if scaled_limit < 10.0 { 2 } else { 1 };
    let step = 0.1_f64.powi(decimals);
    // Decimals are meaningless for values far above the limit.
    let far = scaled.abs() > 10.0 * scaled_limit;
    if unit == 0 || far || (value != 0.0 && scaled.abs() < 9.5 * step) {
        return bytes_like(value, limit);
    }
    let decimals = decimals as usize;
    format!("{scaled:.decimals$} {}", units[unit])
}

/// Base and unit names in which a limit was most likely written.
fn kind(limit: f64) -> (f64, [&'static str; 6]) {
    if is_decimal(limit) { (1e3, DECIMAL) } else { (KIB, BINARY) }
}

/// True if a size was most likely written in decimal units: `80 GB`, not `80 GiB`.
pub fn is_decimal(bytes: f64) -> bool {
    bytes_exact(bytes).split_once(' ').is_some_and(|(_, unit)| DECIMAL[1..].contains(&unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enough_is_rounded_up() {
        let enough = |value: f64| bytes_enough(value, 8.0 * KIB * KIB * KIB);
        let sizes = [4_920_249_291.0, 1.25 * KIB, 100.0, 100.2, 1023.9 * KIB, 0.0, 1048.576 * KIB * KIB];
        assert_eq!(sizes.map(enough), ["4.59 GiB", "1.25 KiB", "100 B", "101 B", "1.00 MiB", "0 B", "1.03 GiB"]);
        assert_eq!([bytes_enough(4_920_249_291.0, 8e9), bytes_enough(f64::INFINITY, 8e9)], ["4.93 GB", "-"]);
    }

    #[test]
    fn sizes_beside_one_limit_have_its_unit_and_the_same_decimals() {
        let gib = KIB * KIB * KIB;
        let beside = |sizes: &[f64], limit: f64| -> Vec<String> {
            sizes.iter().map(|&size| bytes_beside(size * gib, limit * gib)).collect()
        };
        assert_eq!(beside(&[7.3, 7.78, 0.5, 10.0], 8.0), ["7.30 GiB", "7.78 GiB", "0.50 GiB", "10.00 GiB"]);
        assert_eq!(beside(&[71.25, 7.0, 1.04, 0.0], 80.0), ["71.2 GiB", "7.0 GiB", "1.0 GiB", "0.0 GiB"]);
        assert_eq!(beside(&[138.0, 9.87], 141.0), ["138.0 GiB", "9.9 GiB"]);
        // Too little for the unit, and no limit at all.
        assert_eq!(beside(&[0.25], 80.0), ["256 MiB"]);
        assert_eq!(bytes_beside(7.3 * gib, f64::INFINITY), "7.30 GiB");
        assert_eq!([bytes_beside(7.3e9, 16e9), bytes_beside(31.25e9, 16e9)], ["7.3 GB", "31.2 GB"]);
    }
}
