//! Shared parts of the readers of JSON workloads: parsing with error positions, and checks of single values.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::source::{locate, syntax};
use crate::{
    source::{LoadError, error::printable},
    units::{LARGEST, SMALLEST, exact_number},
    workload::recipe::Recipe,
};

/// Maximum id, near the largest whole number that JSON readers represent exactly.
const MAX_ID: f64 = 9e15;

/// Repair for a wrong recipe.
const RECIPE: &str = "write it as `plantui generate` does, or leave it out";

/// Parses a whole text. An error states the problem and its position.
pub(super) fn parse<T: DeserializeOwned>(text: &str, source: &str) -> Result<T, LoadError> {
    // Tracking the path costs a third of the time, so the text is parsed with it only after an error.
    if let Ok(raw) = serde_json::from_str(text) {
        return Ok(raw);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let raw =
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| syntax::refuse(source, text, &error))?;
    deserializer.end().map_err(|error| {
        LoadError::file(source, "has text after the end of its JSON object", "remove it").on_line(Some(error.line()))
    })?;
    Ok(raw)
}

/// Keys of the outermost object that are not in `known`, safe for a terminal.
pub(super) fn unknown_fields(text: &str, known: &[&str]) -> Vec<String> {
    serde_json::from_str::<BTreeMap<Cow<'_, str>, IgnoredAny>>(text)
        .map(|keys| keys.into_keys().filter(|k| !known.contains(&k.as_ref())).map(|k| printable(&k)).collect())
        .unwrap_or_default()
}

/// Value of a field of plantui's own. Another program may use its name for something else, which is ignored.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OwnField<T> {
    Known(T),
    Foreign(IgnoredAny),
}

impl<T> OwnField<T> {
    /// Value, if it is plantui's.
    pub(super) fn known(self) -> Option<T> {
        match self {
            OwnField::Known(value) => Some(value),
            OwnField::Foreign(_) => None,
        }
    }
}

/// File being read: its name in messages, and its text, in which messages find the line.
pub(super) struct WorkloadReader<'a> {
    pub(super) source: &'a str,
    pub(super) text: &'a str,
}

impl WorkloadReader<'_> {
    /// Error about one JSON path.
    pub(super) fn error(&self, path: &str, problem: impl Into<String>, repair: impl Into<String>) -> LoadError {
        LoadError::at(self.source, path, problem, repair).on_line(locate::line_of(self.text, path))
    }

    /// Recipe, if the field is plantui's. Another program's field is ignored.
    pub(super) fn recipe(&self, raw: Option<serde_json::Value>) -> Result<Option<Recipe>, LoadError> {
        let Some(raw) = raw.filter(Recipe::is_meant) else { return Ok(None) };
        let recipe: Recipe =
            serde_json::from_value(raw).map_err(|error| self.error("recipe", format!("{error}"), RECIPE))?;
        recipe.validate(self.source, "recipe")?;
        Ok(Some(recipe))
    }

    /// Finite number of at least 0, small enough for sums to stay finite.
    pub(super) fn not_negative(&self, value: f64, path: impl Fn() -> String) -> Result<f64, LoadError> {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(self.error(&path(), format!("is {}, must be >= 0", exact_number(value)), ""));
        }
        self.not_too_large(value, path)
    }

    /// Optional limit within bounds that keep everything computed from it finite.
    pub(super) fn limit(&self, value: Option<f64>, field: &str) -> Result<Option<f64>, LoadError> {
        match value {
            Some(v) if !(v >= SMALLEST && v.is_finite()) => {
                Err(self.error(field, format!("is {}, must be at least {SMALLEST:e}", exact_number(v)), ""))
            }
            other => other.map(|v| self.not_too_large(v, || field.into())).transpose(),
        }
    }

    /// Number small enough for sums to stay finite.
    pub(super) fn not_too_large(&self, value: f64, path: impl Fn() -> String) -> Result<f64, LoadError> {
        if value <= LARGEST {
            return Ok(value);
        }
        Err(self.error(
            &path(),
            format!("is {}, must be at most {LARGEST:e}", exact_number(value)),
            "nothing computed from it would be finite: correct it",
        ))
    }

    /// Whole number, such as an id.
    pub(super) fn integer(&self, value: f64, path: impl Fn() -> String) -> Result<i64, LoadError> {
        let shown = exact_number(value);
        if value.abs() > MAX_ID {
            let bound = if value > 0.0 { "larger than" } else { "smaller than minus" };
            return Err(self.error(
                &path(),
                format!("is {shown}, {bound} the largest id {MAX_ID:e}"),
                "give smaller ids",
            ));
        }
        if value.fract() == 0.0 {
            Ok(value as i64)
        } else {
            Err(self.error(&path(), format!("is {shown}, must be a whole number"), ""))
        }
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for OwnField<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Own{}", T::schema_name()).into()
    }

    /// Any value, since the value of another program is ignored.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::Schema::default()
    }
}
