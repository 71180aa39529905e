//! Settings of a job's file, in any syntax: a path of names, a value, and the line.
//!
//! A reader takes the settings that it understands by name. What nobody took is listed at the end, so that nothing of a
//! file is dropped without a word.

use std::{cell::Cell, fmt, sync::Arc};

use plantui_core::{
    source::LoadError,
    text::{as_value, printable},
};

/// Largest count that is read.
const MOST: u64 = 1 << 40;

/// Line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File, or flag of the command line, as it is shown.
    pub file: Arc<str>,
    /// Line from 1; 0 if it is not known.
    pub line: u32,
}

impl Place {
    /// Line of a file.
    pub fn new(file: &str, line: u32) -> Self {
        Place { file: file.into(), line }
    }

    /// Error about a setting at this place.
    pub fn error(&self, name: &str, problem: impl Into<String>, repair: impl Into<String>) -> LoadError {
        LoadError::at(&self.file, name, problem, repair).on_line((self.line > 0).then_some(self.line as usize))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Value with the place that states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<T = String> {
    /// The value.
    pub value: T,
    /// The place.
    pub place: Place,
}

impl<T> Fact<T> {
    /// The same place with another value.
    pub(crate) fn with<U>(&self, value: U) -> Fact<U> {
        Fact { value, place: self.place.clone() }
    }

    /// Value changed by a function.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        Fact { value: change(self.value), place: self.place }
    }
}

/// Value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing: `null`, `None`.
    Null,
    /// Truth value, or a flag without a value.
    Bool(bool),
    /// Number or text as it is written.
    Text(String),
    /// List of values.
    List(Vec<Value>),
    /// Text with a variable of a shell that the file does not set: the variable, and the text as it is written. The variable
    /// is empty, unless a value is needed.
    Unset(String, String),
    /// Value that is not known before the job runs, with the reason.
    Unknown(String),
}

impl Value {
    /// Text of a value, as settings are compared and shown.
    pub(crate) fn text(&self) -> String {
        match self {
            Value::Null => "none".into(),
            Value::Bool(value) => value.to_string(),
            Value::Text(text) => as_value(text),
            Value::List(values) => {
                let all: Vec<String> = values.iter().map(Value::text).collect();
                format!("[{}]", all.join(", "))
            }
            Value::Unset(_, written) => as_value(written),
            Value::Unknown(reason) => format!("unknown: {}", printable(reason)),
        }
    }

    /// True for values that engines treat as absent.
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Text(text) => matches!(text.to_ascii_lowercase().as_str(), "" | "none" | "null" | "~"),
            _ => false,
        }
    }

    /// True for absent values, `false`, zero, and empty lists.
    pub(crate) fn is_off(&self) -> bool {
        match self {
            Value::Bool(value) => !value,
            Value::Text(text) => {
                matches!(text.to_ascii_lowercase().as_str(), "false" | "no" | "0" | "0.0" | "off" | "[]" | "{}")
                    || self.is_absent()
            }
            Value::List(values) => values.is_empty(),
            _ => self.is_absent(),
        }
    }
}

/// Setting of a file.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// Path of names with dots, in lower case and with `_` for `-`.
    pub(crate) name: String,
    /// Name as the file writes it.
    pub(crate) written: String,
    /// Value.
    pub(crate) value: Value,
    /// Line that states it.
    pub(crate) place: Place,
    taken: Cell<bool>,
}

impl Setting {
    /// Setting with this name as written.
    pub(crate) fn new(written: &str, value: Value, place: Place) -> Self {
        let name = normal(written);
        Setting { name, written: printable(written), value, place, taken: Cell::new(false) }
    }

    /// Error about this setting.
    pub(crate) fn error(&self, problem: impl Into<String>, repair: impl Into<String>) -> LoadError {
        self.place.error(&self.written, problem, repair)
    }

    fn known(&self) -> Result<&Value, LoadError> {
        match &self.value {
            Value::Unset(name, written) => Err(self.error(
                format!("is {}, and the file does not set ${name}", printable(written)),
                format!("set it with --define {name}=VALUE, or state it with --with {}=VALUE", self.name),
            )),
            Value::Unknown(reason) => Err(self.error(
                format!("is not known: {}", printable(reason)),
                format!("state it with --with {}=VALUE", self.name),
            )),
            // A dollar sign that no shell replaces.
            Value::Text(text) if has_variable(text) => Err(self.error(
                format!("is `{}`, in which nothing replaces the variable", printable(text)),
                format!("correct it, or state it with --with {}=VALUE", self.name),
            )),
            value => Ok(value),
        }
    }
}

/// True if a text has a shell's variable.
fn has_variable(text: &str) -> bool {
    let after = text.split('$').skip(1);
    after.filter_map(|rest| rest.chars().next()).any(|c| c.is_ascii_alphabetic() || "{(_".contains(c))
        || text.contains('`')
}

/// Name in the form in which settings are found.
pub fn normal(written: &str) -> String {
    written.trim().trim_start_matches("--").replace('-', "_").to_ascii_lowercase()
}

/// Settings of a job in the order of its file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    list: Vec<Setting>,
}

impl Settings {
    /// Appends a setting; the last one of a name counts.
    pub(crate) fn push(&mut self, setting: Setting) {
        self.list.push(setting);
    }

    /// All settings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.list.iter()
    }

    /// True if a setting has this name, taken or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|setting| setting.name == name)
    }

    /// True if a setting has this name or is inside it.
    pub(crate) fn has_under(&self, name: &str) -> bool {
        self.has(name) || self.list.iter().any(|setting| inside(&setting.name, name).is_some())
    }

    /// Setting that counts under a name, without taking it.
    pub(crate) fn look(&self, name: &str) -> Option<&Setting> {
        self.list.iter().rev().find(|setting| setting.name == name)
    }

    /// Takes the setting of a name. Earlier ones of that name are taken as well.
    pub(crate) fn take(&self, name: &str) -> Option<&Setting> {
        self.list.iter().filter(|setting| setting.name == name).for_each(|setting| setting.taken.set(true));
        self.look(name).filter(|setting| !setting.value.is_absent())
    }

    /// Takes all settings inside a name, without using them.
    pub(crate) fn skip(&self, name: &str) {
        let own = |setting: &&Setting| setting.name == name || inside(&setting.name, name).is_some();
        self.list.iter().filter(own).for_each(|setting| setting.taken.set(true));
    }

    /// Whole number of a name; `None` if it is absent, `auto` or -1.
    pub(crate) fn count(&self, name: &str) -> Result<Option<Fact<u64>>, LoadError> {
        let Some(setting) = self.take(name) else { return Ok(None) };
        let refuse =
            |text: &str| Err(setting.error(format!("is `{}`, must be a whole number", printable(text)), "correct it"));
        let text = match setting.known()? {
            Value::Text(text) => text.trim().to_string(),
            Value::List(values) if values.len() == 1 => values[0].text(),
            other => return refuse(&other.text()),
        };
        if matches!(text.to_ascii_lowercase().as_str(), "auto" | "-1" | "none") {
            return Ok(None);
        }
        // A fraction with nothing behind its point, as `1.0` or `5e8`.
        let whole = |text: &str| text.parse::<f64>().ok().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64);
        match text.replace('_', "").parse::<u64>().ok().or_else(|| whole(&text)) {
            Some(value) if value <= MOST => Ok(Some(Fact { value, place: setting.place.clone() })),
            _ => refuse(&text),
        }
    }

    /// First of several names with a whole number. All are taken.
    pub(crate) fn count_of(&self, names: &[&str]) -> Result<Option<Fact<u64>>, LoadError> {
        let mut first = None;
        for name in names {
            let found = self.count(name)?;
            first = first.or(found);
        }
        Ok(first)
    }

    /// Number of a name, which may have a fraction.
    pub(crate) fn number(&self, name: &str) -> Result<Option<Fact<f64>>, LoadError> {
        let Some(setting) = self.take(name) else { return Ok(None) };
        let text = setting.known()?.text();
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(Fact { value, place: setting.place.clone() })),
            _ if text == "auto" => Ok(None),
            _ => Err(setting.error(format!("is `{text}`, must be a number"), "correct it")),
        }
    }

    /// Truth value of a name.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<Fact<bool>>, LoadError> {
        let Some(setting) = self.take(name) else { return Ok(None) };
        if let Value::Unset(..) = setting.value {
            // A flag that an empty variable follows.
            return Ok(Some(Fact { value: true, place: setting.place.clone() }));
        }
        let value = match setting.known()? {
            Value::Bool(value) => *value,
            Value::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => true,
                "false" | "no" | "off" | "0" => false,
                "auto" => return Ok(None),
                _ => {
                    return Err(setting.error(format!("is `{}`, must be true or false", printable(text)), "correct it"));
                }
            },
            other => return Err(setting.error(format!("is {}, must be true or false", other.text()), "correct it")),
        };
        Ok(Some(Fact { value, place: setting.place.clone() }))
    }

    /// True if a name is set to a true value.
    pub(crate) fn is_set(&self, name: &str) -> Result<bool, LoadError> {
        Ok(self.flag(name)?.is_some_and(|fact| fact.value))
    }

    /// Text of a name, in lower case if it is a word.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Fact>, LoadError> {
        let Some(setting) = self.take(name) else { return Ok(None) };
        let value = match setting.known()? {
            Value::Text(text) => text.trim().to_string(),
            Value::List(values) if values.len() == 1 => values[0].text(),
            Value::List(values) => values.iter().map(Value::text).collect::<Vec<_>>().join(","),
            other => other.text(),
        };
        Ok(Some(Fact { value, place: setting.place.clone() }))
    }

    /// Text of a name that must be one of several words, in either case.
    pub(crate) fn choice(&self, name: &str, choices: &[&str]) -> Result<Option<Fact>, LoadError> {
        let Some(fact) = self.text(name)? else { return Ok(None) };
        if choices.iter().any(|choice| choice.eq_ignore_ascii_case(&fact.value)) {
            return Ok(Some(fact));
        }
        let problem = format!("is `{}`, must be one of {}", printable(&fact.value), choices.join(", "));
        Err(fact.place.error(name, problem, "correct it"))
    }

    /// Text of a name that may be unknown without harm: a file, a tokenizer.
    pub(crate) fn hint(&self, name: &str) -> Option<Fact> {
        let setting = self.take(name)?;
        let known = !matches!(setting.value, Value::Unset(..) | Value::Unknown(_));
        known.then(|| Fact { value: setting.value.text(), place: setting.place.clone() })
    }

    /// Name of a file, with variables that are not set as they are written.
    pub(crate) fn file(&self, name: &str) -> Result<Option<Fact>, LoadError> {
        let Some(setting) = self.take(name) else { return Ok(None) };
        match &setting.value {
            Value::Unset(_, written) => Ok(Some(Fact { value: written.clone(), place: setting.place.clone() })),
            _ => self.text(name),
        }
    }

    /// Texts of a list: the elements, or the words of a text that commas or blanks separate.
    pub(crate) fn words(&self, name: &str) -> Result<Option<Fact<Vec<String>>>, LoadError> {
        let Some(setting) = self.take(name) else { return Ok(None) };
        let words = match setting.known()? {
            Value::List(values) => values.iter().map(Value::text).collect(),
            other => {
                let text = other.text();
                let parts = text.trim_matches(['[', ']']).split([',', ' ']).map(|word| word.trim_matches(['"', '\'']));
                parts.filter(|word| !word.is_empty()).map(ToString::to_string).collect()
            }
        };
        Ok(Some(Fact { value: words, place: setting.place.clone() }))
    }

    /// True if a reader took the setting of a name.
    pub(crate) fn was_taken(&self, name: &str) -> bool {
        self.list.iter().any(|setting| setting.name == name && setting.taken.get())
    }

    /// Settings inside a name, with the rest of their paths. They are not taken.
    pub(crate) fn under<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Setting)> {
        self.list.iter().filter_map(move |setting| Some((inside(&setting.name, name)?, setting)))
    }

    /// Settings inside a name as settings of their own. Those here are taken.
    pub(crate) fn part(&self, name: &str) -> Settings {
        let own = self.list.iter().filter_map(|setting| {
            let rest = inside(&setting.name, name)?;
            setting.taken.set(true);
            Some(Setting { name: rest.into(), taken: Cell::new(false), ..setting.clone() })
        });
        Settings { list: own.collect() }
    }

    /// Settings that no reader took, each name once.
    pub(crate) fn untaken(&self) -> Vec<&Setting> {
        let mut seen = std::collections::BTreeSet::new();
        let rest = self.list.iter().rev().filter(|setting| !setting.taken.get() && seen.insert(setting.name.as_str()));
        let mut rest: Vec<&Setting> = rest.collect();
        rest.reverse();
        rest
    }
}

/// Rest of a path inside a name.
fn inside<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix(name)?.strip_prefix('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(list: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (line, (name, value)) in list.iter().enumerate() {
            settings.push(Setting::new(name, Value::Text((*value).into()), Place::new("a.sh", line as u32 + 1)));
        }
        settings
    }

    #[test]
    fn the_last_value_counts_and_the_rest_is_listed() {
        let all = settings(&[("--num-layers", "8"), ("--num-layers", "16"), ("--lr", "1e-4"), ("fp8", "None")]);
        let layers = all.count("num_layers").unwrap().unwrap();
        assert_eq!((layers.value, layers.place.to_string().as_str()), (16, "a.sh:2"));
        assert_eq!(all.text("fp8").unwrap(), None);
        assert_eq!(all.untaken().iter().map(|setting| setting.name.as_str()).collect::<Vec<_>>(), ["lr"]);
    }

    #[test]
    fn wrong_values_name_file_line_and_setting() {
        let all = settings(&[("tp", "two"), ("bf16", "maybe")]);
        let error = all.count("tp").unwrap_err().to_string();
        assert!(error.contains("a.sh") && error.contains("`two`") && error.contains("tp"), "{error}");
        assert!(all.flag("bf16").unwrap_err().to_string().contains("true or false"));
    }
}
