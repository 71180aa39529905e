//! TOML: tables become settings with dotted names.

use plantui_core::source::LoadError;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::line_at;
use crate::setting::{Place, Setting, Settings, Value};

/// Settings of a TOML text.
///
/// # Errors
/// [`LoadError`] with the line of a syntax error.
pub(crate) fn read(text: &str, source: &str) -> Result<Settings, LoadError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_at(text, span.start) as usize);
        LoadError::file(source, format!("is not read as TOML: {}", error.message()), "correct it").on_line(line)
    })?;
    let mut settings = Settings::default();
    add(&mut settings, text, source, "", table.get_ref());
    Ok(settings)
}

fn add(settings: &mut Settings, text: &str, source: &str, path: &str, table: &DeTable<'_>) {
    for (key, value) in table {
        let name = if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
        match value.get_ref() {
            DeValue::Table(inner) => add(settings, text, source, &name, inner),
            other => {
                let place = Place::new(source, line_at(text, key.span().start));
                settings.push(Setting::new(&name, converted(other), place));
            }
        }
    }
}

fn converted(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Array(list) => Value::List(list.iter().map(Spanned::get_ref).map(converted).collect()),
        DeValue::Integer(number) => Value::Text(number.to_string()),
        DeValue::Float(number) => Value::Text(number.to_string()),
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Table(_) => Value::Unknown("a table inside a list".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_types_and_lines_are_those_of_toml() {
        let text = "a = 1\n[b]\nc = true # why\nd = [\"x\", \"y\"]\n[b.e]\nf = -1\n";
        let read = read(text, "a.toml").unwrap();
        let value = |name: &str| read.look(name).map(|setting| (setting.value.text(), setting.place.line));
        assert_eq!(value("b.c"), Some(("true".into(), 3)));
        assert_eq!(value("b.d"), Some(("[x, y]".into(), 4)));
        assert_eq!(value("b.e.f"), Some(("-1".into(), 6)));
        let error = super::read("a = 1\nb = [", "a.toml").unwrap_err().to_string();
        assert!(error.starts_with("a.toml:2"), "{error}");
    }
}
