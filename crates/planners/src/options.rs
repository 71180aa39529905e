//! Options that planners declare, and values that users give.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::Value;

use plantui_core::units;

pub use super::option_error::OptionError;

/// Type of an option's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// `true` or `false`.
    Flag {
        /// Value if not set.
        default: bool,
    },
    /// One word of a fixed list.
    Choice {
        /// Words, each with one line of help.
        choices: &'static [(&'static str, &'static str)],
        /// Value if not set.
        default: &'static str,
    },
    /// A number.
    Number {
        /// Value if not set.
        default: f64,
        /// Smallest value allowed.
        least: f64,
        /// Largest value allowed.
        most: f64,
        /// True if it must be an integer.
        whole: bool,
        /// Word for 0, if 0 leaves the choice to the planner: `any`.
        zero: Option<&'static str>,
    },
    /// A number with a unit.
    Quantity {
        /// Value if not set.
        default: f64,
        /// Smallest value allowed.
        least: f64,
        /// Largest value allowed.
        most: f64,
        /// Unit of the value.
        unit: Unit,
    },
    /// Path of a file that the planner reads; empty if not set.
    File {
        /// Example of a path: `split.json`.
        example: &'static str,
    },
    /// Free text in the planner's own syntax; empty if not set.
    Text {
        /// Example of such a text.
        example: &'static str,
    },
}

/// Unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
}

impl Unit {
    /// Unit symbol for machine-readable output: `B/s`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
        }
    }

    /// Formats a value with its unit in the form that a user most likely wrote: `25 GB/s`.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Bytes => units::bytes_exact(value),
            Unit::BytesPerSecond => units::bandwidth_exact(value),
        }
    }

    /// Reads a value with or without a unit.
    fn parse(self, text: &str) -> Option<f64> {
        let with_unit = || match self {
            Unit::Bytes => units::parse_bytes(text),
            Unit::BytesPerSecond => units::parse_bandwidth(text),
        };
        text.parse().ok().or_else(|| with_unit().ok())
    }
}

/// Declaration of one planner option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionSpec {
    /// Name in `--set`: `data_parallel`.
    pub name: &'static str,
    /// Label on the panel: `data parallel`.
    pub label: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Type, range and default.
    pub kind: OptionKind,
}

/// Options that moved to another planner: planner, option, settings to use instead.
const MOVED: [(&str, &str, &str); 2] = [
    ("piper", "engine", "--planner joint --set engine=NAME"),
    ("piper", "engine_feasible", "--planner joint --set engine=NAME"),
];

/// An option that decides which plans exist or what they run on, not how they are searched. A user can turn it to get
/// another plan. Holds the option's declared name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tunable {
    /// Flag or choice: something that plans may do, such as recompute.
    Freedom(&'static str),
    /// Amount of a resource that never hurts to raise, such as the bandwidth of a link.
    Resource(&'static str),
    /// Number of pipeline stages; 0 leaves it to the planner.
    Stages(&'static str),
    /// Tensor degree of all stages; 0 leaves it to the planner.
    Degree(&'static str),
}

impl Tunable {
    /// Name of the option.
    pub fn name(self) -> &'static str {
        match self {
            Tunable::Freedom(name) | Tunable::Resource(name) | Tunable::Stages(name) | Tunable::Degree(name) => name,
        }
    }
}

/// Value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// Value of a flag.
    Flag(bool),
    /// Value of a choice.
    Choice(&'static str),
    /// Value of a number or quantity.
    Number(f64),
    /// Path of a file; empty if not set.
    File(String),
    /// Free text; empty if not set.
    Text(String),
}

impl OptionSpec {
    /// Value if not set.
    pub fn default_value(&self) -> OptionValue {
        match self.kind {
            OptionKind::Flag { default } => OptionValue::Flag(default),
            OptionKind::Choice { default, .. } => OptionValue::Choice(default),
            OptionKind::Number { default, .. } | OptionKind::Quantity { default, .. } => OptionValue::Number(default),
            OptionKind::File { .. } => OptionValue::File(String::new()),
            OptionKind::Text { .. } => OptionValue::Text(String::new()),
        }
    }

    /// Allowed values for a message to the user: words, or a range.
    pub fn values(&self) -> Vec<String> {
        match self.kind {
            OptionKind::Flag { .. } => vec!["true".into(), "false".into()],
            OptionKind::Choice { choices, .. } => choices.iter().map(|c| c.0.to_string()).collect(),
            OptionKind::Number { least, most, whole, zero, .. } => {
                let what = if whole { "a whole number" } else { "a number" };
                let least = if zero.is_some() && whole { least.max(1.0) } else { least };
                let (least, most) = (units::exact_number(least), units::exact_number(most));
                let word = zero.map(|word| format!("{word} or ")).unwrap_or_default();
                vec![format!("{word}{what} from {least} to {most}")]
            }
            OptionKind::Quantity { unit: Unit::Bytes, .. } => vec!["a size such as 16GiB, 80GB or 1e9".into()],
            OptionKind::Quantity { unit: Unit::BytesPerSecond, .. } => {
                vec!["a bandwidth such as 25GB/s, 200Gb/s or 25e9".into()]
            }
            OptionKind::File { example } => vec![format!("the path of a file, for example {example}")],
            OptionKind::Text { example } => vec![format!("words such as {example}")],
        }
    }

    /// Formats a value for people, quantities with their unit. [`OptionSpec::parse`] reads the result.
    pub fn show(&self, value: &OptionValue) -> String {
        match (self.kind, value) {
            (OptionKind::Quantity { unit, .. }, OptionValue::Number(number)) => unit.show(*number),
            (OptionKind::Number { zero: Some(word), .. }, OptionValue::Number(0.0)) => word.into(),
            _ => value.text(),
        }
    }

    /// Parses a value.
    ///
    /// # Errors
    /// [`OptionError::Value`] with the allowed values.
    pub fn parse(&self, text: &str) -> Result<OptionValue, OptionError> {
        let error =
            || OptionError::Value { name: self.name.into(), value: text.into(), known: self.values().join(", ") };
        match self.kind {
            OptionKind::Flag { .. } => match text {
                "true" | "on" | "yes" | "1" => Ok(OptionValue::Flag(true)),
                "false" | "off" | "no" | "0" => Ok(OptionValue::Flag(false)),
                _ => Err(error()),
            },
            OptionKind::Choice { choices, .. } => {
                choices.iter().find(|c| c.0 == text).map(|c| OptionValue::Choice(c.0)).ok_or_else(error)
            }
            OptionKind::Number { zero: Some(word), .. } if text == word => Ok(OptionValue::Number(0.0)),
            OptionKind::Number { least, most, whole, .. } => text
                .parse::<f64>()
                .ok()
                .filter(|value| (least..=most).contains(value) && (!whole || value.fract() == 0.0))
                .map(OptionValue::Number)
                .ok_or_else(error),
            OptionKind::Quantity { least, most, unit, .. } => unit
                .parse(text)
                .filter(|value| (least..=most).contains(value))
                .map(OptionValue::Number)
                .ok_or_else(error),
            OptionKind::File { .. } if text.contains('\0') => Err(error()),
            OptionKind::File { .. } => Ok(OptionValue::File(text.to_string())),
            OptionKind::Text { .. } => Ok(OptionValue::Text(text.to_string())),
        }
    }

    /// Next value in a direction. Choices wrap around. Numbers step by one (below 20) or by a tenth of their decade,
    /// and stop at the ends of their range. Files and texts stay unchanged.
    pub fn step(&self, value: &OptionValue, up: bool) -> OptionValue {
        match (self.kind, value) {
            (OptionKind::Choice { choices, .. }, OptionValue::Choice(now)) => {
                let at = choices.iter().position(|c| c.0 == *now).unwrap_or(0);
                let next = if up { at + 1 } else { at + choices.len() - 1 };
                OptionValue::Choice(choices[next % choices.len()].0)
            }
            (OptionKind::Number { least, most, whole, .. }, OptionValue::Number(now)) => {
                OptionValue::Number(next_number(*now, up, whole).clamp(least, most))
            }
            (OptionKind::Quantity { least, most, .. }, OptionValue::Number(now)) => {
                OptionValue::Number(next_number(*now, up, false).clamp(least, most))
            }
            (OptionKind::Flag { .. }, OptionValue::Flag(flag)) => OptionValue::Flag(!flag),
            (OptionKind::File { .. } | OptionKind::Text { .. }, same) => same.clone(),
            _ => self.default_value(),
        }
    }
}

/// Number one step away: a tenth of its decade, at least 1 for integers.
fn next_number(now: f64, up: bool, whole: bool) -> f64 {
    let decade = 10f64.powf(now.abs().max(f64::MIN_POSITIVE).log10().floor());
    // Going down from a power of ten, the steps are those of the decade below.
    let decade = if !up && now == decade { decade / 10.0 } else { decade };
    let step = match (now == 0.0, whole) {
        (true, true) => 1.0,
        (true, false) => 0.1,
        (false, true) if now.abs() < 20.0 => 1.0,
        (false, true) => decade.max(1.0),
        (false, false) => decade / 10.0,
    };
    let next = if up { now + step } else { now - step };
    // Rounded to the grid of steps, so that a step up and a step down return to the start.
    (next / step).round() * step
}

impl OptionValue {
    /// Formats the value for `--set`.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Flag(flag) => flag.to_string(),
            OptionValue::Choice(choice) => (*choice).to_string(),
            OptionValue::Number(number) => units::exact_number(*number),
            OptionValue::File(text) | OptionValue::Text(text) => text.clone(),
        }
    }

    /// Value in the plan JSON.
    pub fn json(&self) -> Value {
        match self {
            OptionValue::Flag(flag) => Value::Bool(*flag),
            OptionValue::Choice(choice) => Value::String((*choice).to_string()),
            OptionValue::Number(number) if number.fract() == 0.0 && number.abs() < 2f64.powi(53) => {
                Value::from(*number as i64)
            }
            OptionValue::Number(number) => Value::from(*number),
            OptionValue::File(text) | OptionValue::Text(text) => Value::String(text.clone()),
        }
    }
}

/// Options of one planner: every declared option, at its default unless set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    values: BTreeMap<&'static str, OptionValue>,
}

impl Options {
    /// All options at their defaults.
    pub fn defaults(specs: &[OptionSpec]) -> Self {
        Options { values: specs.iter().map(|spec| (spec.name, spec.default_value())).collect() }
    }

    /// Reads settings such as `recompute=never` over the defaults.
    ///
    /// # Errors
    /// [`OptionError`] for the first setting that is refused.
    pub fn parse<'a>(
        planner: &str,
        specs: &[OptionSpec],
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, OptionError> {
        let mut options = Options::defaults(specs);
        for setting in settings {
            let (name, value) = setting.split_once('=').ok_or_else(|| OptionError::Syntax(setting.into()))?;
            let name = name.trim();
            let unknown = || match MOVED.iter().find(|(of, moved, _)| (*of, *moved) == (planner, name)) {
                Some((_, _, instead)) => {
                    OptionError::Moved { planner: planner.into(), name: name.into(), instead: (*instead).into() }
                }
                None => OptionError::Unknown {
                    planner: planner.into(),
                    name: name.into(),
                    known: specs.iter().map(|s| s.name).collect::<Vec<_>>().join(", "),
                },
            };
            let spec = specs.iter().find(|spec| spec.name == name).ok_or_else(unknown)?;
            options.set(spec.name, spec.parse(value.trim())?);
        }
        Ok(options)
    }

    /// Sets one option.
    pub fn set(&mut self, name: &'static str, value: OptionValue) {
        self.values.insert(name, value);
    }

    /// Value of an option, or `None` if the planner does not declare it.
    pub fn get(&self, name: &str) -> Option<OptionValue> {
        self.values.get(name).cloned()
    }

    /// Value of a declared flag.
    ///
    /// # Panics
    /// If the planner declares no such flag: planners read only their own options.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Some(OptionValue::Flag(flag)) => flag,
            other => panic!("option {name} is no declared flag: {other:?}"),
        }
    }

    /// Value of a declared choice.
    ///
    /// # Panics
    /// If the planner declares no such choice.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(OptionValue::Choice(choice)) => choice,
            other => panic!("option {name} is no declared choice: {other:?}"),
        }
    }

    /// Value of a declared number.
    ///
    /// # Panics
    /// If the planner declares no such number.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(OptionValue::Number(number)) => number,
            other => panic!("option {name} is no declared number: {other:?}"),
        }
    }

    /// Path given for a declared file, or `None` if not set.
    ///
    /// # Panics
    /// If the planner declares no such file.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        match self.get(name) {
            Some(OptionValue::File(path)) => (!path.is_empty()).then(|| PathBuf::from(path)),
            other => panic!("option {name} is no declared file: {other:?}"),
        }
    }

    /// Text given for a declared text option; empty if not set.
    ///
    /// # Panics
    /// If the planner declares no such text option.
    pub fn text(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(OptionValue::Text(text)) => text,
            other => panic!("option {name} is no declared text: {other:?}"),
        }
    }

    /// Iterates over the name and value of every option, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &OptionValue)> + '_ {
        self.values.iter().map(|(name, value)| (*name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTARTS: OptionSpec = OptionSpec {
        name: "restarts",
        label: "restarts",
        help: "",
        kind: OptionKind::Number { default: 10.0, least: 1.0, most: 1000.0, whole: true, zero: None },
    };

    #[test]
    fn a_zero_that_leaves_the_choice_has_a_word() {
        let kind = OptionKind::Number { default: 0.0, least: 0.0, most: 9.0, whole: true, zero: Some("any") };
        let spec = OptionSpec { name: "stages", label: "stages", help: "", kind };
        assert_eq!(spec.show(&spec.default_value()), "any");
        assert_eq!((spec.parse("any"), spec.parse("0")), (Ok(OptionValue::Number(0.0)), Ok(OptionValue::Number(0.0))));
        assert_eq!(spec.show(&OptionValue::Number(3.0)), "3");
        assert_eq!(spec.values(), ["any or a whole number from 1 to 9"]);
        assert_eq!(spec.show(&spec.step(&OptionValue::Number(1.0), false)), "any");
        assert!(spec.parse("none").is_err());
    }

    #[test]
    fn quantities_are_written_with_their_unit_and_read_with_or_without() {
        let kind = OptionKind::Quantity { default: 25e9, least: 1.0, most: 1e18, unit: Unit::BytesPerSecond };
        let link = OptionSpec { name: "link", label: "link", help: "", kind };
        assert_eq!(link.show(&link.default_value()), "25 GB/s");
        for text in ["25 GB/s", "25e9", "200Gb/s", "25000000000"] {
            assert_eq!(link.parse(text), Ok(OptionValue::Number(25e9)), "{text}");
        }
        for bad in ["0", "-1", "fast", "1e19", "NaN"] {
            assert!(
                matches!(link.parse(bad), Err(OptionError::Value { known, .. }) if known.contains("25GB/s")),
                "{bad}"
            );
        }
        assert_eq!(link.step(&link.default_value(), true), OptionValue::Number(26e9));
    }

    #[test]
    fn numbers_are_kept_in_range() {
        assert_eq!(RESTARTS.parse("25"), Ok(OptionValue::Number(25.0)));
        for bad in ["0", "2.5", "1001", "NaN", "many", ""] {
            let error = RESTARTS.parse(bad).unwrap_err().to_string();
            assert!(error.contains("a whole number from 1 to 1000"), "{error}");
        }
    }

    #[test]
    fn numbers_step_up_and_come_back() {
        for whole in [true, false] {
            for start in [1.0, 3.0, 9.0, 10.0, 20.0, 90.0, 100.0, 700.0] {
                let up = next_number(start, true, whole);
                let back = next_number(up, false, whole);
                assert!(up > start && (back - start).abs() < 1e-9 * start, "{start} {up} {back}");
            }
        }
        assert_eq!(RESTARTS.step(&OptionValue::Number(1.0), false), OptionValue::Number(1.0));
        assert_eq!(RESTARTS.step(&OptionValue::Number(1000.0), true), OptionValue::Number(1000.0));
    }

    #[test]
    fn a_file_is_none_until_it_is_given() {
        const SPLIT: [OptionSpec; 1] =
            [OptionSpec { name: "split", label: "split", help: "", kind: OptionKind::File { example: "split.json" } }];
        assert_eq!(Options::defaults(&SPLIT).file("split"), None);
        let options = Options::parse("expert", &SPLIT, ["split=a=b.json"]).unwrap();
        assert_eq!(options.file("split"), Some(PathBuf::from("a=b.json")));
        assert_eq!(options.get("split").unwrap().json(), Value::String("a=b.json".into()));
    }
}
