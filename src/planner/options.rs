//! Options as planners declare them, and values as users give them.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::Value;

use crate::units;

pub use super::option_error::OptionError;

/// What values an option takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// `true` or `false`.
    Flag {
        /// Value when nothing is said.
        default: bool,
    },
    /// One of a few words.
    Choice {
        /// The words, each with one line of help.
        choices: &'static [(&'static str, &'static str)],
        /// Value when nothing is said.
        default: &'static str,
    },
    /// A number.
    Number {
        /// Value when nothing is said.
        default: f64,
        /// The least value allowed.
        least: f64,
        /// The greatest value allowed.
        most: f64,
        /// Whether it must be whole.
        whole: bool,
        /// The word for 0 where that is no number but leaves the choice to the planner: `any`.
        zero: Option<&'static str>,
    },
    /// An amount of something that has a unit.
    Quantity {
        /// Value when nothing is said.
        default: f64,
        /// The least value allowed.
        least: f64,
        /// The greatest value allowed.
        most: f64,
        /// What it is an amount of.
        unit: Unit,
    },
    /// The path of a file that the planner reads; empty when nothing is said.
    File {
        /// A path as a user might give it: `split.json`.
        example: &'static str,
    },
    /// Words of the planner's own; empty when nothing is said.
    Text {
        /// Words as a user might give them.
        example: &'static str,
    },
}

/// What a quantity is an amount of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
}

impl Unit {
    /// As machines read it: `B/s`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
        }
    }

    /// A value with its unit, as it was most likely written: `25 GB/s`.
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

/// One option of a planner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionSpec {
    /// What `--set` calls it: `data_parallel`.
    pub name: &'static str,
    /// What the panel calls it: `data parallel`.
    pub label: &'static str,
    /// One line on what it does.
    pub help: &'static str,
    /// Type, range and default.
    pub kind: OptionKind,
}

/// Options that another planner has taken over: planner, option, settings to use.
const MOVED: [(&str, &str, &str); 2] = [
    ("piper", "engine", "--planner joint --set engine=NAME"),
    ("piper", "engine_feasible", "--planner joint --set engine=NAME"),
];

/// An option that decides which plans there are or what they run on, not how they are searched for: what a person may
/// turn to get another plan. Named as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tunable {
    /// A flag or a choice: what plans may do, such as to recompute.
    Freedom(&'static str),
    /// A number that states a resource, of which more never hurts, such as a link's bandwidth.
    Resource(&'static str),
    /// A number that asks for so many pipeline stages; 0 leaves it to the planner.
    Stages(&'static str),
    /// A number that asks for one tensor degree of all stages; 0 leaves it to the planner.
    Degree(&'static str),
}

impl Tunable {
    /// The option's name.
    pub fn name(self) -> &'static str {
        match self {
            Tunable::Freedom(name) | Tunable::Resource(name) | Tunable::Stages(name) | Tunable::Degree(name) => name,
        }
    }
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// Of a flag.
    Flag(bool),
    /// Of a choice.
    Choice(&'static str),
    /// Of a number.
    Number(f64),
    /// Of a file; empty for none.
    File(String),
    /// Of words; empty for none.
    Text(String),
}

impl OptionSpec {
    /// The value when nothing is said.
    pub fn default_value(&self) -> OptionValue {
        match self.kind {
            OptionKind::Flag { default } => OptionValue::Flag(default),
            OptionKind::Choice { default, .. } => OptionValue::Choice(default),
            OptionKind::Number { default, .. } | OptionKind::Quantity { default, .. } => OptionValue::Number(default),
            OptionKind::File { .. } => OptionValue::File(String::new()),
            OptionKind::Text { .. } => OptionValue::Text(String::new()),
        }
    }

    /// The values it takes, as a user would read them: words, or a range.
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

    /// A value as people read it: quantities with their unit. What it says is read again by [`OptionSpec::parse`].
    pub fn show(&self, value: &OptionValue) -> String {
        match (self.kind, value) {
            (OptionKind::Quantity { unit, .. }, OptionValue::Number(number)) => unit.show(*number),
            (OptionKind::Number { zero: Some(word), .. }, OptionValue::Number(0.0)) => word.into(),
            _ => value.text(),
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`OptionError::Value`] with what it takes.
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

    /// The next value in a direction: words go round, numbers step by one (below 20) or by a tenth of their decade and
    /// stop at the ends of their range, files stay.
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

/// One step from a number: a tenth of its decade, at least 1 for whole numbers.
fn next_number(now: f64, up: bool, whole: bool) -> f64 {
    let decade = 10f64.powf(now.abs().max(f64::MIN_POSITIVE).log10().floor());
    // Going down from a power of ten the steps are those of the decade below.
    let decade = if !up && now == decade { decade / 10.0 } else { decade };
    let step = match (now == 0.0, whole) {
        (true, true) => 1.0,
        (true, false) => 0.1,
        (false, true) if now.abs() < 20.0 => 1.0,
        (false, true) => decade.max(1.0),
        (false, false) => decade / 10.0,
    };
    let next = if up { now + step } else { now - step };
    // Kept on the grid of steps, so that going up and down comes back.
    (next / step).round() * step
}

impl OptionValue {
    /// As `--set` takes it.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Flag(flag) => flag.to_string(),
            OptionValue::Choice(choice) => (*choice).to_string(),
            OptionValue::Number(number) => units::exact_number(*number),
            OptionValue::File(text) | OptionValue::Text(text) => text.clone(),
        }
    }

    /// As the plan JSON carries it.
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

/// The options of one planner: every one it declares, at its default unless set.
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

    /// The value of an option, if the planner declares it.
    pub fn get(&self, name: &str) -> Option<OptionValue> {
        self.values.get(name).cloned()
    }

    /// The value of a declared flag.
    ///
    /// # Panics
    /// If no such flag was declared: a planner asks only for its own options.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Some(OptionValue::Flag(flag)) => flag,
            other => panic!("option {name} is no declared flag: {other:?}"),
        }
    }

    /// The value of a declared choice.
    ///
    /// # Panics
    /// If no such choice was declared.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(OptionValue::Choice(choice)) => choice,
            other => panic!("option {name} is no declared choice: {other:?}"),
        }
    }

    /// The value of a declared number.
    ///
    /// # Panics
    /// If no such number was declared.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(OptionValue::Number(number)) => number,
            other => panic!("option {name} is no declared number: {other:?}"),
        }
    }

    /// The path given for a declared file, if one was given.
    ///
    /// # Panics
    /// If no such file was declared.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        match self.get(name) {
            Some(OptionValue::File(path)) => (!path.is_empty()).then(|| PathBuf::from(path)),
            other => panic!("option {name} is no declared file: {other:?}"),
        }
    }

    /// The words given for a declared text; empty if none were.
    ///
    /// # Panics
    /// If no such text was declared.
    pub fn text(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(OptionValue::Text(text)) => text,
            other => panic!("option {name} is no declared text: {other:?}"),
        }
    }

    /// Name and value of every option, by name.
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
