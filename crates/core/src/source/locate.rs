//! Finds the line of a JSON path. It runs only after an error, so parsing the text again is acceptable.
//!
//! Borrowed [`RawValue`]s are slices of the text. The line of a value is the number of line breaks before its slice.
//! `O(text)` for each path.

use std::{borrow::Cow, collections::HashMap};

use serde_json::value::RawValue;

/// One step of a JSON path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathSegment {
    /// A key of an object.
    Key(String),
    /// An element of an array.
    Index(usize),
}

/// Parses `nodes[3].TMPCs.2[0].timePerSample` into steps.
pub(crate) fn steps(path: &str) -> Vec<PathSegment> {
    let mut steps = vec![];
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let (key, indices) = part.split_once('[').unwrap_or((part, ""));
        if !key.is_empty() {
            steps.push(PathSegment::Key(key.into()));
        }
        for index in indices.split('[').filter_map(|i| i.trim_end_matches(']').parse().ok()) {
            steps.push(PathSegment::Index(index));
        }
    }
    steps
}

/// Line (from 1) where the value at `path` starts. If the path does not exist in full, uses its longest existing
/// prefix.
pub(crate) fn line_of(text: &str, path: &str) -> Option<usize> {
    let mut here: &RawValue = serde_json::from_str(text).ok()?;
    for step in steps(path) {
        let next = match step {
            PathSegment::Key(key) => serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(here.get())
                .ok()
                .and_then(|map| map.get(key.as_str()).copied()),
            PathSegment::Index(index) => {
                serde_json::from_str::<Vec<&RawValue>>(here.get()).ok().and_then(|list| list.get(index).copied())
            }
        };
        match next {
            Some(value) => here = value,
            None => break,
        }
    }
    let offset = (here.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(1 + text.as_bytes().get(..offset)?.iter().filter(|&&b| b == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_through_objects_and_arrays() {
        let text = "{\n \"a\": [1,\n  {\"b\": {\n\"c\":\n 7}}]\n}";
        assert_eq!(line_of(text, "a"), Some(2));
        assert_eq!(line_of(text, "a[1]"), Some(3));
        assert_eq!(line_of(text, "a[1].b.c"), Some(5));
        assert_eq!(line_of(text, "a[1].nothing"), Some(3));
        assert_eq!(line_of("{", "a"), None);
    }
}
