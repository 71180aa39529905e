//! Values of a limit in user syntax: `8..2048:x2`, `8..64:+8`, `8..64`, `1GiB,2GiB,8GiB,80GiB`.
//!
//! Parts are separated by commas. A part is a value or a range `FIRST..LAST` with an optional factor (`:x2`) or step
//! (`:+8`); the default is to double. A range always includes its last value, even if the steps would skip it, because
//! a user gives the ends on purpose.

use plantui_core::{cluster::LimitKind, family::kinds::KindCount, units::exact_number};

/// Most values; more are a typing error.
pub(crate) const MOST_VALUES: usize = 5_000;

/// Values of one limit, ascending, without duplicates; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitValues {
    /// Kind of the limit.
    pub kind: LimitKind,
    /// Values in the limit's base unit.
    pub values: Vec<f64>,
}

/// Step from one value of a range to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RangeStep {
    Times(f64),
    Plus(f64),
}

impl LimitValues {
    /// Single value.
    pub fn one(kind: LimitKind, value: f64) -> Self {
        LimitValues { kind, values: vec![value] }
    }

    /// Reads a list of values and ranges.
    ///
    /// # Errors
    /// Sentence that quotes the problem and gives the repair.
    pub fn parse(kind: LimitKind, text: &str) -> Result<Self, String> {
        if let Some(refusal) = KindCount::misplaced(text).filter(|_| kind == LimitKind::Devices) {
            return Err(refusal);
        }
        let mut values = vec![];
        for part in text.split(',') {
            match part.split_once("..") {
                None => values.push(value(kind, part)?),
                Some((first, rest)) => range(kind, part, first, rest, &mut values)?,
            }
            if values.len() > MOST_VALUES {
                return Err(format!("`{text}` has more than {MOST_VALUES} values; take larger steps"));
            }
        }
        values.sort_by(f64::total_cmp);
        values.dedup();
        Ok(LimitValues { kind, values })
    }

    /// Values of both, ascending, each once.
    #[must_use]
    pub fn and(mut self, other: &LimitValues) -> Self {
        self.values.extend(&other.values);
        self.values.sort_by(f64::total_cmp);
        self.values.dedup();
        self
    }

    /// True if there is more than one value.
    pub fn is_axis(&self) -> bool {
        self.values.len() > 1
    }

    /// True if the values are spaced by factors, so a logarithmic axis shows them evenly.
    pub fn is_geometric(&self) -> bool {
        is_geometric(&self.values)
    }
}

/// True if an ascending list is spaced by factors and not by steps.
pub(crate) fn is_geometric(values: &[f64]) -> bool {
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return false };
    if first <= 0.0 || values.len() < 3 {
        return first > 0.0 && last / first >= 4.0;
    }
    // Chooses the more even spacing, each measured by its largest gap as a fraction of the whole.
    let widest = |place: &dyn Fn(f64) -> f64| {
        let whole = place(last) - place(first);
        values.windows(2).map(|pair| (place(pair[1]) - place(pair[0])) / whole).fold(0.0, f64::max)
    };
    widest(&f64::ln) < widest(&|value| value)
}

fn value(kind: LimitKind, text: &str) -> Result<f64, String> {
    if text.trim().is_empty() {
        return Err(format!("a value is missing: write a list such as {}", kind.example_of_several()));
    }
    kind.parse(text.trim()).map_err(|error| error.to_string())
}

/// Appends the values of `first..rest`; `rest` is `LAST`, `LAST:xFACTOR` or `LAST:+STEP`.
fn range(kind: LimitKind, part: &str, first: &str, rest: &str, values: &mut Vec<f64>) -> Result<(), String> {
    let (last, pace) = match rest.split_once(':') {
        None => (rest, None),
        Some((last, pace)) => (last, Some(pace.trim())),
    };
    if last.contains("..") {
        let end = last.rsplit("..").next().unwrap_or_default();
        let (all, first, end) = (part.replace("..", ",").replace(' ', ""), first.trim(), end.trim());
        let all = all.split(':').next().unwrap_or_default();
        return Err(format!("`{part}` has more than two ends; write the range {first}..{end} or the list {all}"));
    }
    let (from, to) = (value(kind, first)?, value(kind, last)?);
    let counted = kind.is_count();
    if let Some(repaired) = one_unit(first.trim(), last.trim(), from.min(to)).filter(|_| !counted) {
        return Err(format!("`{part}` has a unit at one end only; write {repaired}"));
    }
    if from > to {
        return Err(format!("`{part}` runs backwards; write {}..{}", last.trim(), first.trim()));
    }
    let pace = match pace.map(|pace| (pace, pace.split_at_checked(1))) {
        None if from == 0.0 => RangeStep::Plus(1.0),
        None => RangeStep::Times(2.0),
        Some((_, Some(("x" | "X" | "*" | "×", factor)))) => match factor.trim().parse::<f64>() {
            Ok(_) if from == 0.0 => {
                return Err(format!("`{part}` starts at 0, which no factor moves; write a step such as :+1"));
            }
            Ok(factor) if factor.is_finite() && factor >= 1.001 => RangeStep::Times(factor),
            _ => return Err(format!("`{part}` has no factor above 1; write one such as :x2")),
        },
        Some((_, Some(("+", step)))) => match kind.parse(step.trim()) {
            Ok(step) if step > 0.0 && step.is_finite() => RangeStep::Plus(step),
            _ => {
                return Err(format!(
                    "`{part}` has no step above 0; write one such as :+{}",
                    exact_number(from.max(1.0))
                ));
            }
        },
        Some(_) => return Err(format!("`{part}` ends in neither a factor nor a step; write :x2 or :+8")),
    };
    let mut next = from;
    let before = values.len();
    while next < to * (1.0 - 1e-12) {
        values.push(if counted { next.round() } else { next });
        if values.len() - before > MOST_VALUES {
            return Err(format!("`{part}` has more than {MOST_VALUES} values; take larger steps"));
        }
        next = match pace {
            RangeStep::Times(factor) => next * factor,
            RangeStep::Plus(step) => next + step,
        };
    }
    values.push(to);
    Ok(())
}

/// Range with a unit at both ends, if one lacks it: a bare number is in base units, and such a small one is not meant.
fn one_unit(first: &str, last: &str, less: f64) -> Option<String> {
    let unit = |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_')).to_string();
    let (of_first, of_last) = (unit(first), unit(last));
    match (of_first.is_empty(), of_last.is_empty()) {
        _ if less >= FEWEST_BASE_UNITS => None,
        (true, false) => Some(format!("{first}{of_last}..{last}")),
        (false, true) => Some(format!("{first}..{last}{of_first}")),
        _ => None,
    }
}

/// Fewest bytes, bytes per second or operations per second of a plausible limit.
const FEWEST_BASE_UNITS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenly_spread_values_tell_their_scale() {
        assert!(is_geometric(&[8.0, 16.0, 32.0, 64.0]) && is_geometric(&[1.0, 2.0, 8.0, 80.0]));
        assert!(!is_geometric(&[8.0, 16.0, 24.0, 32.0]) && !is_geometric(&[0.0, 1.0, 2.0, 4.0]));
        assert!(is_geometric(&[1.0, 100.0]) && !is_geometric(&[10.0, 11.0]) && !is_geometric(&[]));
    }
}
