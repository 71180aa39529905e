//! Turns serde's message about broken JSON into a sentence for the user.

use super::error::{LoadError, printable};
use super::locate;

/// Converts a serde error into a [`LoadError`] with path, line, and expected value.
pub(crate) fn refuse(source: &str, text: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> LoadError {
    let inner = error.inner();
    let path = printable(&error.path().to_string());
    // Drops the step into a field whose name was not read yet.
    let path = path.strip_suffix(".?").unwrap_or(&path);
    let path = if path == "." || path == "?" { "" } else { path };
    let message = inner.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let line = Some(inner.line()).filter(|&line| line > 0);
    match inner.classify() {
        serde_json::error::Category::Eof => {
            let problem = if path.is_empty() {
                "ends before its JSON is complete"
            } else {
                "is the last part of the file, which ends before its JSON is complete"
            };
            LoadError::at(source, path, problem, "it looks truncated: copy it again").on_line(line)
        }
        serde_json::error::Category::Data => {
            // A missing field has no line, so the line of the object that lacks it is used.
            let line = if message.starts_with("missing field") { locate::line_of(text, path) } else { line };
            let (problem, repair) = humanise(message);
            LoadError::at(source, path, problem, repair).on_line(line)
        }
        _ => {
            if message == "number out of range" {
                return LoadError::at(source, path, "is a number too large to hold", "write one of at most 1e30")
                    .on_line(line);
            }
            let near = text.lines().nth(inner.line().saturating_sub(1)).unwrap_or_default();
            let repair = if ["NaN", "Infinity", "nan", "inf"].iter().any(|word| near.contains(word)) {
                "JSON has no NaN or Infinity: write a number"
            } else {
                "correct the JSON there"
            };
            LoadError::at(source, path, format!("is not valid JSON: {message} (column {})", inner.column()), repair)
                .on_line(line)
        }
    }
}

/// Replaces Rust's type names by words that a user understands.
fn humanise(message: &str) -> (String, String) {
    if let Some(field) = message.strip_prefix("missing field ") {
        return (format!("lacks the field {field}"), format!("add {field}"));
    }
    if let Some(field) = message.strip_prefix("duplicate field ") {
        return (format!("has the field {field} twice"), "keep one".into());
    }
    if let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "))
    {
        let found = found
            .replace("floating point", "the number")
            .replace("integer", "the number")
            .replace("sequence", "an array")
            .replace("map", "an object");
        let expected = match expected {
            "f64" => "a number".to_string(),
            "u32" | "usize" => "a whole number from 0 to 4294967295".into(),
            "i64" => "a whole number".into(),
            "a string" => "a string".into(),
            "a sequence" => "an array".into(),
            other if other.starts_with("struct") => "an object".into(),
            other => other.into(),
        };
        let article = if found.starts_with("string") || found.starts_with("boolean") { "the " } else { "" };
        return (format!("is {article}{found}, must be {expected}"), String::new());
    }
    (format!("cannot be read: {message}"), String::new())
}
