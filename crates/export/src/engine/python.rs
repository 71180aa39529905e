//! Text inside Python: names from files and arguments appear in scripts as literals only.

use std::fmt::Write as _;

use plantui_core::workload::recipe::Recipe;

/// String literal in printable ASCII. No character can end the literal, begin a line or reach a terminal unescaped.
pub(super) fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            ' '..='~' => literal.push(letter),
            '\u{0}'..='\u{ff}' => write!(literal, "\\x{:02x}", u32::from(letter)).expect("writing to a string"),
            '\u{100}'..='\u{ffff}' => write!(literal, "\\u{:04x}", u32::from(letter)).expect("writing to a string"),
            _ => write!(literal, "\\U{:08x}", u32::from(letter)).expect("writing to a string"),
        }
    }
    literal.push('"');
    literal
}

/// Python's `True` or `False`.
pub(super) fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Assignment, or a comment that asks for it if the value is unknown.
pub(super) fn statement(target: &str, value: Option<u64>, what: &str) -> String {
    match value {
        Some(value) => format!("{target} = {value}"),
        None => format!("# fill in: {target} = {what}"),
    }
}

/// Statement as an indented line.
pub(super) fn assignment(indent: &str, target: &str, value: Option<u64>, what: &str) -> String {
    format!("{indent}{}\n", statement(target, value, what))
}

/// Tokens per sequence, if known.
pub(super) fn sequence_length(recipe: &Recipe) -> Option<u64> {
    recipe.sequence_length.map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn nothing_leaves_a_literal() {
        assert_eq!(string("layers.1"), "\"layers.1\"");
        assert_eq!(string("a\"b\\c\nd"), r#""a\"b\\c\x0ad""#);
        assert_eq!(string("\u{1b}]0;x\u{7}\u{9b}é\u{202e}\u{1f600}"), r#""\x1b]0;x\x07\x9b\xe9\u202e\U0001f600""#);
    }
}
