//! Text from outside, made safe for a terminal.
//!
//! Names and words come from files, arguments and the environment, which the user may not control. A terminal obeys
//! control characters in them: an escape sequence can rename the window, move the cursor or answer in the user's place.
//! Direction marks reorder the text beside them. Two measures apply, one after the other. Readers remove such
//! characters from the names that they keep ([`printable`], [`single_line`]). All output passes [`visible`], which
//! writes the remaining ones as JSON escapes, so JSON keeps its meaning.

use std::{borrow::Cow, fmt::Write};

/// Text without colour escapes.
pub fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if rest.next() == Some('[') {
            // An escape sequence ends with its first letter.
            rest.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}

/// Name from a file, safe for a terminal: without control characters, at most 200 characters.
pub fn printable(name: &str) -> String {
    without_hostile(name, 200)
}

/// Sentence or command from a file, safe for a terminal: without control characters, at most 2000 characters.
pub fn single_line(text: &str) -> String {
    without_hostile(text, 2000)
}

/// Text of a file as a value: without control characters, at most a million characters.
pub fn as_value(text: &str) -> String {
    without_hostile(text, 1_000_000)
}

fn without_hostile(text: &str, most: usize) -> String {
    let clean: String = text.chars().filter(|c| !is_hostile(*c)).take(most).collect();
    clean.trim().to_string()
}

/// Text of several lines, safe for a terminal. Keeps line breaks and tabs; writes every other [hostile](is_hostile)
/// character as an escape such as `\u001b`. Text without any costs one pass over its bytes.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hostile = |c: char| is_hostile(c) && c != '\n' && c != '\t';
    let Some(first) = suspicious(text.as_bytes()).and_then(|from| {
        // `from` is the first byte of a character, so the slice is valid.
        text[from..].find(hostile).map(|at| from + at)
    }) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for character in text[first..].chars() {
        if hostile(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").expect("a string takes every write");
            }
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Same as [`visible`] on one line: a line break becomes `\n`, a tab becomes `\t`.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Word quoted for a POSIX shell where it must be.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:+=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Position of the first byte that is neither printable ASCII nor a line break.
fn suspicious(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| !(matches!(byte, b' '..=b'~' | b'\n')))
}

/// True if a character acts on a terminal or is invisible. These are control characters (C0, DEL, C1), line and
/// paragraph separators, marks that set or override the direction of text, and characters without a glyph.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Known word that was probably meant: the nearest by Damerau-Levenshtein distance. `None` if the distance exceeds a
/// third of the known word's letters (at least 1).
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(word, name);
    known.min_by_key(distance).filter(|name| distance(name) <= (name.chars().count() / 3).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_spaces_is_quoted_for_the_shell() {
        assert_eq!(shell_word("a b's"), r"'a b'\''s'");
        assert_eq!(shell_word("models/x-1.json"), "models/x-1.json");
    }

    #[test]
    fn names_lose_what_could_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[31mb\n\u{202e}c\u{9b}m"), "a[31mbcm");
    }

    #[test]
    fn what_is_left_is_shown_and_nothing_else_changes() {
        for plain in ["", "a\tb\n", "größer 層 é"] {
            assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain));
        }
        assert_eq!(visible("é\u{1b}]0;x\u{7}\r\n"), "é\\u001b]0;x\\u0007\\u000d\n");
        assert_eq!(visible_line("a\nb\u{7}\t"), "a\\nb\\u0007\\t");
        assert_eq!(visible("a\u{9b}31m\u{7f}\u{202e}\u{e0041}"), "a\\u009b31m\\u007f\\u202e\\udb40\\udc41");
    }

    #[test]
    fn json_means_the_same_after_it() {
        let all: String =
            (0..0x3000).chain(0xfe00..0xffff).chain(0xe0000..0xe0100).filter_map(char::from_u32).collect();
        let text = serde_json::to_string(&all).unwrap();
        let shown = visible(&text);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), all);
        assert!(!shown.chars().any(is_hostile));
    }
}
