//! Text from outside, and what of it a terminal may be shown.
//!
//! Names, choices, paths and words come from files, arguments and the environment of strangers. A terminal obeys control
//! characters in them (an escape sequence can rename the window, move the cursor or answer in the user's place), and marks of
//! direction reorder what stands beside them. Two measures, one after the other: readers take such characters out of the
//! names that they keep ([`printable`], [`single_line`]); and all text passes [`visible`] on its way out, whatever its
//! origin, which shows what is left of them as the escapes that JSON has for them. So what is JSON means the same after it.

use std::{borrow::Cow, fmt::Write};

/// A name from a file, fit for a terminal: without control characters, at most 200 characters.
pub fn printable(name: &str) -> String {
    without_hostile(name, 200)
}

/// A sentence or a command from a file, fit for a terminal: without control characters, at most 2000 characters.
pub fn single_line(text: &str) -> String {
    without_hostile(text, 2000)
}

fn without_hostile(text: &str, most: usize) -> String {
    let clean: String = text.chars().filter(|c| !is_hostile(*c)).take(most).collect();
    clean.trim().to_string()
}

/// A text of many lines as a terminal may be shown it: line breaks and tabs stay, every other [hostile](is_hostile)
/// character stands as `\u001b`. Costs one look at every byte where there is none.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hostile = |c: char| is_hostile(c) && c != '\n' && c != '\t';
    let Some(first) = suspicious(text.as_bytes()).and_then(|from| {
        // The suspicion falls on a whole character: it begins at the first byte of one.
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

/// The same on one line: a line break stands as `\n`.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Where the first byte stands that is neither plain ASCII nor a line break.
fn suspicious(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| !(matches!(byte, b' '..=b'~' | b'\n')))
}

/// Whether a character does something to a terminal rather than stand in it: control characters (C0, DEL, C1), line and
/// paragraph separators, marks that set or override the direction of text, and characters that nobody sees.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The known word that was probably meant: the nearest by edits and exchanged letters (Damerau and Levenshtein), if it is at
/// most a third of its letters away.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(word, name);
    known.min_by_key(distance).filter(|name| distance(name) <= (name.chars().count() / 3).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

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
