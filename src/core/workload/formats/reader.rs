//! What the readers of JSON workloads share: parsing that tells where it went wrong, and checks of single
//! values.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::source::{locate, syntax};
use crate::{
    source::{LoadError, error::printable},
    units::{LARGEST, SMALLEST, exact_number},
    workload::Recipe,
};

/// The largest id, near the end of the whole numbers that JSON readers tell apart.
const MAX_ID: f64 = 9e15;

/// What a recipe looks like.
const RECIPE: &str = "write it as `plantui generate` does, or leave it out";

/// Parses a whole text, or says what is wrong with it and where.
pub(super) fn parse<T: DeserializeOwned>(text: &str, source: &str) -> Result<T, LoadError> {
    // Keeping track of the path costs a third of the time, so it is done only once something is known to be wrong.
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

/// The keys of the outermost object that are not among those known, fit to be shown.
pub(super) fn unknown_fields(text: &str, known: &[&str]) -> Vec<String> {
    serde_json::from_str::<BTreeMap<Cow<'_, str>, IgnoredAny>>(text)
        .map(|keys| keys.into_keys().filter(|k| !known.contains(&k.as_ref())).map(|k| printable(&k)).collect())
        .unwrap_or_default()
}

/// A field of our own, which in another program's file may mean something else: then it is passed over.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Ours<T> {
    Known(T),
    Foreign(IgnoredAny),
}

impl<T> Ours<T> {
    /// The value, if it is ours.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Ours::Known(value) => Some(value),
            Ours::Foreign(_) => None,
        }
    }
}

/// A file being read: its name in messages, and its text, in which messages find the line.
pub(super) struct Reader<'a> {
    pub(super) source: &'a str,
    pub(super) text: &'a str,
}

impl Reader<'_> {
    /// An error about one place.
    pub(super) fn error(&self, path: &str, problem: impl Into<String>, repair: impl Into<String>) -> LoadError {
        LoadError::at(self.source, path, problem, repair).on_line(locate::line_of(self.text, path))
    }

    /// The recipe, where the field of that name is ours: another program's is passed over.
    pub(super) fn recipe(&self, raw: Option<serde_json::Value>) -> Result<Option<Recipe>, LoadError> {
        let Some(raw) = raw.filter(Recipe::is_meant) else { return Ok(None) };
        let recipe: Recipe =
            serde_json::from_value(raw).map_err(|error| self.error("recipe", format!("{error}"), RECIPE))?;
        recipe.validate(self.source, "recipe")?;
        Ok(Some(recipe))
    }

    /// A finite number from 0 on, small enough for sums to stay finite.
    pub(super) fn not_negative(&self, value: f64, path: impl Fn() -> String) -> Result<f64, LoadError> {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(self.error(&path(), format!("is {}, must be >= 0", exact_number(value)), ""));
        }
        self.not_too_large(value, path)
    }

    /// A limit that may be missing, neither too small nor too large for what is computed from it to be finite.
    pub(super) fn limit(&self, value: Option<f64>, field: &str) -> Result<Option<f64>, LoadError> {
        match value {
            Some(v) if !(v >= SMALLEST && v.is_finite()) => {
                Err(self.error(field, format!("is {}, must be at least {SMALLEST:e}", exact_number(v)), ""))
            }
            other => other.map(|v| self.not_too_large(v, || field.into())).transpose(),
        }
    }

    /// A number small enough for sums to stay finite.
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

    /// A whole number, such as an id.
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
