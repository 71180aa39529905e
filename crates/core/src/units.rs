//! Quantities as people write them: sizes, bandwidths, durations and counts, parsed and printed.
//!
//! plantui computes in bytes, bytes per second and seconds, as `f64`. Only this module spells units. A bare size or
//! rate is in the base unit (bytes, bytes per second), so a script can pass exact values. A duration needs its unit,
//! because a bare `1` may mean a second, a minute or a millisecond. `K`, `M`, `G`, `T` are decimal; `Ki`, `Mi`, `Gi`,
//! `Ti` are binary. A lower-case `b` after a capital prefix means bits in a *bandwidth* (`200Gb/s`). `gb/s` is
//! ambiguous and is an error. In a *size*, `b` means bytes, because everyone writes `80gb`.
//!
//! [`bytes_exact`] and [`bandwidth_exact`] pick the decimal or the binary unit, whichever needs fewer digits: `80e9`
//! shows as `80 GB` and `8589934592` as `8 GiB`.

mod sizes;

use std::time::Duration;

use thiserror::Error;

use crate::text::visible_line;

use sizes::{DECIMAL, scale};
pub use sizes::{bytes, bytes_beside, bytes_enough, bytes_exact, bytes_like, is_decimal};

/// Error of a quantity that cannot be read. The message repeats the text and gives a valid example.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is {expected}")]
pub struct UnitError {
    /// Text as typed.
    pub text: String,
    /// Problem and accepted form, with an example: `not a size ..`, `larger than ..`.
    pub expected: &'static str,
}

impl UnitError {
    /// Returns the error for a text, which is cut if it is too long to show.
    pub fn new(text: &str, expected: &'static str) -> Self {
        let cut: String = text.chars().take(MOST_SHOWN).collect();
        let rest = if cut.len() < text.len() { ".." } else { "" };
        UnitError { text: visible_line(&cut) + rest, expected }
    }
}

/// Amount of money in any currency: `597.34` or `2.65 M`.
pub fn money(amount: f64) -> String {
    if amount >= 1e4 { count_short(amount) } else { format!("{amount:.2}") }
}

/// Maximum number of characters of the wrong text in a message.
const MOST_SHOWN: usize = 60;

const KIB: f64 = 1024.0;
/// Bytes of a GiB.
pub const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const EXPECTED_BYTES: &str = "not a size in bytes: write a positive number and a unit, such as 16GiB, 80GB or 512MiB";
const EXPECTED_BANDWIDTH: &str =
    "not a bandwidth: write a positive number and a unit, such as 25GB/s, 25GiB/s or 200Gb/s (bits)";
const EXPECTED_SECONDS: &str = "not a duration: write a number and a unit, such as 1.5ms, 60s or 2min";
const UNITLESS: &str = "a duration without a unit: write one behind it, such as 1.5ms, 60s or 2min";
const NO_TIME: &str = "no time to plan in: write a duration above 0, such as 10s or 2min";
const EXPECTED_FLOPS: &str =
    "not a rate: write a positive number of operations per second, such as 10e12, 10T or 312TFLOPS";
const TOO_LARGE: &str = "larger than any quantity planned with here: at most 1e30";
const BITS_OR_BYTES: &str = "bits or bytes, which lower case does not tell: write Gb/s for bits or GB/s for bytes";
const EXPECTED_COUNT: &str = "not a whole number of at least 1";

const TOO_SMALL: &str = "smaller than any quantity planned with here: at least 1e-9";

/// Largest size and rate that are accepted. Below it, sums over nodes, times microbatches and over any bandwidth, stay
/// finite.
pub const LARGEST: f64 = 1e30;
/// Smallest size and rate that are accepted: a quotient by it stays finite.
pub const SMALLEST: f64 = 1e-9;

/// Splits `12.5GiB` into the number and the trimmed unit.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let mut end = 0;
    let bytes = text.as_bytes();
    while end < bytes.len() {
        let c = bytes[end];
        let exponent_sign = matches!(c, b'+' | b'-') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        // An `e` belongs to the number only if digits follow.
        let exponent = matches!(c, b'e' | b'E')
            && end > 0
            && bytes[end + 1..].iter().find(|b| !matches!(b, b'+' | b'-')).is_some_and(u8::is_ascii_digit);
        if c.is_ascii_digit() || matches!(c, b'.' | b'_') || exponent_sign || exponent {
            end += 1;
        } else {
            break;
        }
    }
    let value: f64 = text[..end].replace('_', "").parse().ok()?;
    value.is_finite().then(|| (value, text[end..].trim()))
}

/// Factor of a size prefix such as `G` or `Gi`. `None` if it is not one.
fn prefix(text: &str) -> Option<f64> {
    Some(match text {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        "t" | "T" => 1e12,
        "p" | "P" => 1e15,
        "ki" | "Ki" | "KI" => KIB,
        "mi" | "Mi" | "MI" => KIB * KIB,
        "gi" | "Gi" | "GI" => KIB * KIB * KIB,
        "ti" | "Ti" | "TI" => KIB * KIB * KIB * KIB,
        "pi" | "Pi" | "PI" => KIB * KIB * KIB * KIB * KIB,
        _ => return None,
    })
}

/// Reads a size in bytes: `16GiB`, `80 GB`, `80e9`, `8589934592`.
///
/// # Errors
/// If the text is not a positive finite number with a size unit.
pub fn parse_bytes(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError::new(text, EXPECTED_BYTES);
    let (value, unit) = split_number(text).ok_or_else(error)?;
    let unit = unit.strip_suffix(['B', 'b']).unwrap_or(unit);
    let bytes = value * prefix(unit).ok_or_else(error)?;
    in_range(bytes, text, error)
}

/// Reads a bandwidth in bytes per second: `25GB/s`, `25GiB/s`, `200Gb/s` (bits), `26843545600`.
///
/// # Errors
/// If the text is not a positive finite number with a bandwidth unit.
pub fn parse_bandwidth(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError::new(text, EXPECTED_BANDWIDTH);
    let (value, unit) = split_number(text).ok_or_else(error)?;
    let (unit, bits) = if let Some(unit) = unit.strip_suffix("bps").or_else(|| unit.strip_suffix("bit/s")) {
        (unit, true)
    } else {
        let unit = unit.strip_suffix("/s").unwrap_or(unit);
        match unit.strip_suffix('b') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => {
                return Err(UnitError::new(text, BITS_OR_BYTES));
            }
            Some(rest) => (rest, true),
            None => (unit.strip_suffix('B').unwrap_or(unit), false),
        }
    };
    let factor = prefix(unit).ok_or_else(error)? / if bits { 8.0 } else { 1.0 };
    let bandwidth = value * factor;
    in_range(bandwidth, text, error)
}

/// Reads a rate in operations per second: `10e12`, `10T`, `312TFLOPS`.
///
/// # Errors
/// If the text is not a positive finite number with such a unit.
pub fn parse_flops(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError::new(text, EXPECTED_FLOPS);
    let (value, unit) = split_number(text).ok_or_else(error)?;
    let lower = unit.to_ascii_lowercase();
    let spelled = ["flop/s", "flops", "flop"].into_iter().find(|word| lower.ends_with(word)).map_or(0, str::len);
    let rate = value * prefix(&unit[..unit.len() - spelled]).ok_or_else(error)?;
    in_range(rate, text, error)
}

/// Returns the value if it is within [`SMALLEST`] and [`LARGEST`], so that everything computed from it is finite.
fn in_range(value: f64, text: &str, error: impl Fn() -> UnitError) -> Result<f64, UnitError> {
    match value {
        v if v > LARGEST => Err(UnitError::new(text, TOO_LARGE)),
        v if v >= SMALLEST => Ok(v),
        v if v > 0.0 => Err(UnitError::new(text, TOO_SMALL)),
        _ => Err(error()),
    }
}

/// True if the text is a number above a bound. Messages can then state that alone.
pub fn is_larger(text: &str, bound: f64) -> bool {
    split_number(text).and_then(|(value, unit)| Some(value * prefix(unit)?)).is_some_and(|value| value > bound)
}

/// Reads a duration in seconds, at least 0: `1.5ms`, `60s`, `2min`.
///
/// # Errors
/// If the text is not a finite number of at least 0 with a unit of time. Only 0 may omit the unit.
pub fn parse_seconds(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError::new(text, EXPECTED_SECONDS);
    let (value, unit) = split_number(text).ok_or_else(error)?;
    let factor = match unit {
        "" if value == 0.0 => 1.0,
        "" if value > 0.0 => return Err(UnitError::new(text, UNITLESS)),
        "s" => 1.0,
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let seconds = value * factor;
    if seconds >= 0.0 && seconds.is_finite() { Ok(seconds) } else { Err(error()) }
}

/// Reads the time limit of a run: a duration above 0.
///
/// # Errors
/// As [`parse_seconds`], and if the duration is zero or longer than the clock counts.
pub fn parse_deadline(text: &str) -> Result<Duration, UnitError> {
    let deadline = Duration::try_from_secs_f64(parse_seconds(text)?)
        .map_err(|_| UnitError::new(text, "longer than any run can last"))?;
    if deadline.is_zero() { Err(UnitError::new(text, NO_TIME)) } else { Ok(deadline) }
}

/// Reads a count of at least 1: `64`, `1_920`, `2k`.
///
/// # Errors
/// If the text is not a whole number between 1 and 2³²−1.
pub fn parse_count(text: &str) -> Result<u32, UnitError> {
    let error = || UnitError::new(text, EXPECTED_COUNT);
    let (value, unit) = split_number(text).ok_or_else(error)?;
    let value = value * prefix(unit).ok_or_else(error)?;
    if value.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&value) { Ok(value as u32) } else { Err(error()) }
}

/// Bytes rounded up to a short number, in the kind of unit, decimal or binary, of a limit: `156.7 GiB`, `1.32 GiB`.
pub fn bytes_up(bytes: f64, limit: f64) -> f64 {
    let (large, small) = if is_decimal(limit) { (1e9, 1e6) } else { (GIB, GIB / 1024.0) };
    let unit = match bytes {
        bytes if bytes >= 10.0 * large => large / 10.0,
        bytes if bytes >= large => large / 100.0,
        _ => small,
    };
    (bytes / unit).ceil() * unit
}

/// Difference of two sizes in words: `1.5 GiB more`, `the same memory`.
pub fn more_bytes(difference: f64) -> String {
    match difference {
        _ if difference.abs() < 1.0 => "the same memory".into(),
        more if more > 0.0 => format!("{} more", bytes(more)),
        less => format!("{} less", bytes(-less)),
    }
}

/// Reads a number of tokens: `15T`, `300B`, `1e12`.
///
/// # Errors
/// Sentence with the allowed values.
pub fn parse_tokens(text: &str) -> Result<f64, String> {
    let suffixes = [('K', 1e3), ('M', 1e6), ('B', 1e9), ('G', 1e9), ('T', 1e12)];
    let last = text.chars().last().map(|c| c.to_ascii_uppercase());
    let found = suffixes.iter().find(|(suffix, _)| Some(*suffix) == last);
    let (digits, factor) = found.map_or((text, 1.0), |(_, factor)| (&text[..text.len() - 1], *factor));
    let count: Option<f64> = digits.parse().ok().map(|count: f64| count * factor);
    count.filter(|count| (1.0..=1e18).contains(count)).ok_or_else(|| "must be a number such as 15T or 300B".into())
}

/// Number with all digits, in the shorter of plain and scientific notation: `0.25`, `1e308`.
pub fn exact_number(value: f64) -> String {
    let (plain, scientific) = (value.to_string(), format!("{value:e}"));
    if plain.len() <= MOST_PLAIN_DIGITS || plain.len() <= scientific.len() { plain } else { scientific }
}

/// Maximum length of a number in plain notation, unless scientific notation is longer.
const MOST_PLAIN_DIGITS: usize = 20;

/// Number with at most `significant` digits, without trailing zeros after the point. Uses scientific notation outside
/// 1e-9 to 1e7.
fn digits(value: f64, significant: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-9..1e7).contains(&value.abs()) {
        let text = format!("{:.*e}", significant - 1, value);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'));
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (significant as i32 - 1 - magnitude).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Bandwidth as it was most likely written: `25 GB/s`, `25 GiB/s`.
pub fn bandwidth_exact(value: f64) -> String {
    format!("{}/s", bytes_exact(value))
}

/// Measured rate in the same kind of unit, decimal or binary, as its limit: `1.93 GB/s` of `25 GB/s`.
pub fn bandwidth_like(value: f64, limit: f64) -> String {
    format!("{}/s", bytes_like(value, limit))
}

/// Rate of operations: `10 TFLOPS`.
pub fn flops_exact(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let (scaled, unit) = scale(value, 1e3);
    format!("{} {}FLOPS", digits(scaled, 6), DECIMAL[unit].trim_end_matches('B'))
}

/// Amount of work: `245.7 Gop`.
pub fn operations(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let (scaled, unit) = scale(value, 1e3);
    format!("{} {}op", digits(scaled, 4), DECIMAL[unit].trim_end_matches('B'))
}

/// Duration with four digits: `20.20 ms`, `1.500 s`. Keeps trailing zeros, so that columns line up.
pub fn seconds(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let (scaled, unit) = match value.abs() {
        0.0 => return "0 s".into(),
        v if v < 1e-6 => (value * 1e9, "ns"),
        v if v < 1e-3 => (value * 1e6, "µs"),
        v if v < 1.0 => (value * 1e3, "ms"),
        v if v < 7200.0 => (value, "s"),
        _ => (value / 3600.0, "h"),
    };
    if scaled.abs() >= 1e7 {
        return format!("{scaled:.3e} {unit}");
    }
    let magnitude = scaled.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 3) as usize;
    format!("{scaled:.decimals$} {unit}")
}

/// Rate with up to four digits: `49.5`, `1234`, `0.0123`.
pub fn number(value: f64) -> String {
    if value.is_finite() { digits(value, 4) } else { "-".into() }
}

/// Rate with four digits: `50.80`, `390.0`. Keeps trailing zeros, so that columns line up.
pub fn rate(value: f64) -> String {
    if !(1e-3..1e6).contains(&value.abs()) {
        return number(value);
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

/// Short form of a large count: `5.88 G`, `37`, `1.2 k`.
pub fn count_short(value: f64) -> String {
    let (scaled, unit) = scale(value, 1e3);
    let suffix = ["", " k", " M", " G", " T", " P"][unit];
    format!("{}{suffix}", digits(scaled, 3))
}

/// Count with its noun: `1 stage`, `2 stages`, `3 batches`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ if noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// Relative difference up to which two rates count as equal.
pub const AS_FAST: f64 = 5e-4;

/// Ratio of rates in words: `1.90x faster`, `4.2% faster`, `12.0% slower`.
pub fn faster(gain: f64) -> String {
    match gain {
        gain if !gain.is_finite() || gain <= 0.0 => "not comparable".into(),
        gain if (gain - 1.0).abs() <= AS_FAST => "as fast".into(),
        gain if gain >= 1.1 => format!("{}x faster", short(gain)),
        gain if gain > 1.0 => format!("{} faster", percent(gain - 1.0)),
        gain if gain <= 0.5 => format!("{}x slower", short(1.0 / gain)),
        gain => format!("{} slower", percent(1.0 / gain - 1.0)),
    }
}

/// Factor with two decimals below 10, with none from there on.
fn short(factor: f64) -> String {
    if factor < 10.0 { format!("{factor:.2}") } else { format!("{factor:.0}") }
}

/// Fraction as a percentage with one decimal: `91.3%`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", share * 100.0) } else { "-".into() }
}

/// Proven gap as a percentage: as [`percent`], but a gap that is not closed is never told as 0.
pub fn gap(share: f64) -> String {
    percent(if share > 0.0 { share.max(0.001) } else { share })
}

/// Fraction as a whole percentage: `91%`.
pub fn percent_whole(share: f64) -> String {
    if share.is_finite() { format!("{:.0}%", share * 100.0) } else { "-".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_gap_is_never_none() {
        assert_eq!((gap(0.0), gap(0.0003), gap(0.0084)), ("0.0%".into(), "0.1%".into(), "0.8%".into()));
    }

    #[test]
    fn differences_are_told_in_words() {
        for (gain, told) in [
            (1.9, "1.90x faster"),
            (1.042, "4.2% faster"),
            (1.0, "as fast"),
            (0.9, "11.1% slower"),
            (0.25, "4.00x slower"),
            (25.0, "25x faster"),
            (f64::NAN, "not comparable"),
        ] {
            assert_eq!(faster(gain), told);
        }
    }

    #[test]
    fn nouns_follow_their_count() {
        assert_eq!([counted(1, "stage"), counted(2, "stage")], ["1 stage", "2 stages"]);
        assert_eq!(counted(3, "microbatch"), "3 microbatches");
    }

    #[test]
    fn sizes_in_every_spelling() {
        for (text, value) in [
            ("8589934592", 8_589_934_592.0),
            ("8GiB", 8_589_934_592.0),
            ("8 gib", 8_589_934_592.0),
            ("80GB", 80e9),
            ("80gb", 80e9),
            ("80e9", 80e9),
            ("1.5MiB", 1_572_864.0),
            ("12.5 Gi", 13_421_772_800.0),
            ("1_000 kB", 1e6),
        ] {
            assert_eq!(parse_bytes(text), Ok(value), "{text}");
        }
        for text in ["", "GiB", "-1GiB", "0", "12 parsecs", "nan", "inf", "1e999", "1.2.3GB"] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.to_string().contains("16GiB"), "{error}");
        }
    }

    #[test]
    fn bandwidths_tell_bits_from_bytes() {
        assert_eq!(parse_bandwidth("25GB/s"), Ok(25e9));
        assert_eq!(parse_bandwidth("25GiB/s"), Ok(26_843_545_600.0));
        assert_eq!(parse_bandwidth("200Gb/s"), Ok(25e9));
        assert_eq!(parse_bandwidth("200 Gbps"), Ok(25e9));
        assert_eq!(parse_bandwidth("26843545600"), Ok(26_843_545_600.0));
        assert!(parse_bandwidth("25GB/min").is_err());
        for text in ["25gb/s", "25 gb", "25gib/s"] {
            let error = parse_bandwidth(text).unwrap_err().to_string();
            assert!(error.contains("Gb/s for bits or GB/s for bytes"), "{error}");
        }
    }

    #[test]
    fn durations_and_counts() {
        assert_eq!(parse_seconds("1.5ms"), Ok(0.0015));
        assert_eq!(parse_seconds("2min"), Ok(120.0));
        assert_eq!(parse_seconds("0"), Ok(0.0));
        for text in ["1", "60", "0.25", "1e300"] {
            let error = parse_deadline(text).unwrap_err().to_string();
            assert!(error.contains("without a unit") && error.contains("60s"), "{error}");
        }
        assert!(parse_seconds("-1s").is_err());
        assert_eq!(parse_deadline("1.5s"), Ok(Duration::from_millis(1500)));
        for (text, part) in [("0s", "no time"), ("1e-12ns", "no time"), ("1e300s", "longer"), ("-1s", "not a duration")]
        {
            let error = parse_deadline(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(parse_count("1_920"), Ok(1920));
        assert_eq!(parse_count("2k"), Ok(2000));
        for text in ["0", "-3", "1.5", "x", "5000000000"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_values_are_short() {
        assert_eq!(bytes(7.42 * KIB * KIB * KIB), "7.42 GiB");
        assert_eq!(bytes(1023.9 * KIB * KIB), "1.00 GiB");
        assert_eq!(bytes(7.3 * KIB * KIB * KIB), "7.30 GiB");
        assert_eq!([bytes(0.0), bytes(8.0), bytes(8192.0)], ["0 B", "8 B", "8.00 KiB"]);
        assert_eq!(bytes_exact(8_589_934_592.0), "8 GiB");
        assert_eq!(bytes_exact(80e9), "80 GB");
        assert_eq!(
            (bytes_like(7.97e9, 80e9), bytes_like(7.97e9, 8_589_934_592.0)),
            ("7.97 GB".into(), "7.42 GiB".into())
        );
        assert_eq!(bandwidth_exact(26_843_545_600.0), "25 GiB/s");
        assert_eq!(seconds(0.020_196), "20.20 ms");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(1.5), "1.500 s");
        assert_eq!([rate(50.8), rate(390.0), rate(12_345.6), rate(0.0)], ["50.80", "390.0", "12346", "0"]);
        assert_eq!(count_short(5.88e9), "5.88 G");
        assert_eq!(percent(0.913), "91.3%");
        assert_eq!(percent_whole(0.913), "91%");
    }

    #[test]
    fn what_would_not_stay_finite_is_refused() {
        for parse in [parse_bytes, parse_bandwidth, parse_flops] {
            assert!(parse("5e-324").unwrap_err().to_string().contains("at least 1e-9"));
            assert!(parse("2e30").unwrap_err().to_string().contains("at most 1e30"));
            assert_eq!(parse("1e-9"), Ok(SMALLEST));
        }
    }

    #[test]
    fn no_number_fills_the_line() {
        for value in [1e308, 1e30, 12_345_678.9e15 * 1024.0, 1e-300] {
            for text in [bytes(value), bytes_exact(value), seconds(value), number(value), count_short(value)] {
                assert!(text.len() <= 16, "{text}");
            }
            assert!(exact_number(value).len() <= 24);
        }
        assert_eq!((exact_number(1e308), exact_number(0.25)), ("1e308".into(), "0.25".into()));
        assert_eq!(exact_number(8_589_934_592.0), "8589934592");
    }

    #[test]
    fn what_is_too_large_is_told_so() {
        assert!(parse_bytes("1e40GB").unwrap_err().to_string().contains("`1e40GB` is larger than"));
        assert!(is_larger("20k", 1e4) && !is_larger("1k", 1e4) && !is_larger("x", 1e4));
        assert!(parse_bytes(&"9".repeat(500)).unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn exact_sizes_read_back() {
        for value in [1.0, 8192.0, 80e9, 8_589_934_592.0, 25e9, 1.5 * KIB * KIB * KIB] {
            assert_eq!(parse_bytes(&bytes_exact(value)), Ok(value));
        }
    }
}
