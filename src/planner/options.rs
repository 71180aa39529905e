//! Options as planners declare them, and values as users give them.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

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

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    /// Of a flag.
    Flag(bool),
    /// Of a choice.
    Choice(&'static str),
}

/// Why `--set name=value` was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// The planner has no such option.
    #[error("planner {planner} has no option `{name}`; it takes {known}")]
    Unknown {
        /// The planner's id.
        planner: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The option does not take this value.
    #[error("option {name} cannot be `{value}`; it takes {known}")]
    Value {
        /// The option.
        name: String,
        /// What was given.
        value: String,
        /// What it takes.
        known: String,
    },
    /// Not of the form `name=value`.
    #[error("`{0}` is no setting; write name=value, for example recompute=never")]
    Syntax(String),
}

impl OptionSpec {
    /// The value when nothing is said.
    pub fn default_value(&self) -> OptionValue {
        match self.kind {
            OptionKind::Flag { default } => OptionValue::Flag(default),
            OptionKind::Choice { default, .. } => OptionValue::Choice(default),
        }
    }

    /// The values it takes, as a user would type them.
    pub fn values(&self) -> Vec<&'static str> {
        match self.kind {
            OptionKind::Flag { .. } => vec!["true", "false"],
            OptionKind::Choice { choices, .. } => choices.iter().map(|c| c.0).collect(),
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
        }
    }

    /// The next value in a direction, going round.
    pub fn step(&self, value: OptionValue, up: bool) -> OptionValue {
        match (self.kind, value) {
            (OptionKind::Choice { choices, .. }, OptionValue::Choice(now)) => {
                let at = choices.iter().position(|c| c.0 == now).unwrap_or(0);
                let next = if up { at + 1 } else { at + choices.len() - 1 };
                OptionValue::Choice(choices[next % choices.len()].0)
            }
            (_, OptionValue::Flag(flag)) => OptionValue::Flag(!flag),
            (OptionKind::Flag { default }, OptionValue::Choice(_)) => OptionValue::Flag(default),
        }
    }
}

impl OptionValue {
    /// As `--set` takes it.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Flag(flag) => flag.to_string(),
            OptionValue::Choice(choice) => (*choice).to_string(),
        }
    }

    /// As the plan JSON carries it.
    pub fn json(&self) -> Value {
        match self {
            OptionValue::Flag(flag) => Value::Bool(*flag),
            OptionValue::Choice(choice) => Value::String((*choice).to_string()),
        }
    }
}

/// The options of one planner: every one it declares, at its default unless set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
            let spec = specs.iter().find(|spec| spec.name == name.trim()).ok_or_else(|| OptionError::Unknown {
                planner: planner.into(),
                name: name.trim().into(),
                known: specs.iter().map(|s| s.name).collect::<Vec<_>>().join(", "),
            })?;
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
        self.values.get(name).copied()
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

    /// Name and value of every option, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, OptionValue)> + '_ {
        self.values.iter().map(|(name, value)| (*name, *value))
    }
}
