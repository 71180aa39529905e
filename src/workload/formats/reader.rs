//! What the readers of JSON workloads share: parsing that tells where it went wrong, objects, and checks of single
//! values.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{locate, syntax};
use crate::workload::{LoadError, error::printable};

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

/// What must be a JSON object: serde would also take the fields of a struct from an array, in order.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
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

    /// A finite number from 0 on.
    pub(super) fn not_negative(&self, value: f64, path: impl Fn() -> String) -> Result<f64, LoadError> {
        if value >= 0.0 && value.is_finite() {
            Ok(value)
        } else {
            Err(self.error(&path(), format!("is {value}, must be >= 0"), ""))
        }
    }

    /// A whole number.
    pub(super) fn integer(&self, value: f64, path: impl Fn() -> String) -> Result<i64, LoadError> {
        if value.fract() == 0.0 && value.abs() <= 9e15 {
            Ok(value as i64)
        } else {
            Err(self.error(&path(), format!("is {value}, must be a whole number"), ""))
        }
    }
}
