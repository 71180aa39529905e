//! Text inside Python: names from files and arguments go into scripts as literals only.

use std::fmt::Write as _;

use crate::workload::recipe::Recipe;

/// A string literal in printable ASCII: nothing in it can end the literal, begin another line or reach a terminal raw.
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

/// `True` or `False`.
pub(super) fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// An assignment, or a comment that asks for it where the value is not known.
pub(super) fn statement(target: &str, value: Option<u64>, what: &str) -> String {
    match value {
        Some(value) => format!("{target} = {value}"),
        None => format!("# fill in: {target} = {what}"),
    }
}

/// The same as a line.
pub(super) fn assignment(indent: &str, target: &str, value: Option<u64>, what: &str) -> String {
    format!("{indent}{}\n", statement(target, value, what))
}

/// The tokens of a sequence, if they are known.
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
