//! Text that a shell word expands to: known and unknown segments, each with the line that it comes from.

use std::fmt;

/// Reason why a segment is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Variable that the file does not set.
    Unset(String),
    /// Something that is known only when the script runs.
    Computed(String),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Unset(name) => write!(f, "${name} is not set in the file (--define {name}=VALUE)"),
            Unknown::Computed(reason) => f.write_str(reason),
        }
    }
}

/// Longest text of a variable, bytes.
const LONGEST: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) text: Result<String, Unknown>,
    pub(crate) line: u32,
}

/// Expanded text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(pub(crate) Vec<Segment>);

impl Text {
    /// Text of a line.
    pub(crate) fn known(text: impl Into<String>, line: u32) -> Self {
        Text(vec![Segment { text: Ok(text.into()), line }])
    }

    /// Text that is computed when the script runs.
    pub(crate) fn computed(reason: impl Into<String>, line: u32) -> Self {
        Text(vec![Segment { text: Err(Unknown::Computed(reason.into())), line }])
    }

    /// Value of a variable that is not set.
    pub(crate) fn unset(name: &str, line: u32) -> Self {
        Text(vec![Segment { text: Err(Unknown::Unset(name.into())), line }])
    }

    /// True if the text is longer than any that a script needs.
    pub(crate) fn is_long(&self) -> bool {
        let length = |segment: &Segment| 64 + segment.text.as_ref().map_or(0, String::len);
        self.0.iter().map(length).sum::<usize>() > LONGEST
    }

    /// Line of the first segment.
    pub(crate) fn line(&self) -> u32 {
        self.0.first().map_or(0, |segment| segment.line)
    }

    /// The whole text, or the first reason why it is not known.
    pub(crate) fn read(&self) -> Result<String, &Unknown> {
        let mut all = String::new();
        for segment in &self.0 {
            all.push_str(segment.text.as_ref()?);
        }
        Ok(all)
    }

    /// The whole text with unset variables as empty, which a shell takes them for; the names go to `unset`.
    pub(crate) fn read_unset_as_empty(&self, unset: &mut Vec<String>) -> Result<String, &Unknown> {
        let mut all = String::new();
        for segment in &self.0 {
            match &segment.text {
                Ok(text) => all.push_str(text),
                Err(Unknown::Unset(name)) => unset.push(name.clone()),
                Err(unknown) => return Err(unknown),
            }
        }
        Ok(all)
    }

    /// Name of the unset variable that is the whole text.
    pub(crate) fn unset_name(&self) -> Option<&str> {
        match &self.0[..] {
            [Segment { text: Err(Unknown::Unset(name)), .. }] => Some(name),
            _ => None,
        }
    }

    /// The text with unknown segments as they would be written.
    pub(crate) fn shown(&self) -> String {
        let one = |segment: &Segment| match &segment.text {
            Ok(text) => text.clone(),
            Err(Unknown::Unset(name)) => format!("${name}"),
            Err(Unknown::Computed(reason)) => reason.clone(),
        };
        self.0.iter().map(one).collect()
    }

    /// Appends another text.
    pub(crate) fn extend(&mut self, other: &Text) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Segments between white space, as a shell splits an unquoted expansion. `None` stands for a blank.
    pub(crate) fn split(&self) -> Vec<Option<Segment>> {
        let mut parts = vec![];
        for segment in &self.0 {
            let Ok(text) = &segment.text else {
                parts.push(Some(segment.clone()));
                continue;
            };
            let mut line = segment.line;
            for part in text.split_inclusive(char::is_whitespace) {
                let word = part.trim_end_matches(char::is_whitespace);
                if !word.is_empty() {
                    parts.push(Some(Segment { text: Ok(word.into()), line }));
                }
                if word.len() < part.len() {
                    parts.push(None);
                }
                line += u32::from(part.ends_with('\n'));
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_are_split_at_blanks_and_keep_their_lines() {
        let words = |text: &Text| -> Vec<Option<(String, u32)>> {
            let shown = |segment: Segment| (Text(vec![segment.clone()]).shown(), segment.line);
            text.split().into_iter().map(|part| part.map(shown)).collect()
        };
        let word = |text: &str, line: u32| Some((text.to_string(), line));
        assert_eq!(words(&Text::known(" a\n b", 3)), [None, word("a", 3), None, None, word("b", 4)]);
        assert_eq!(words(&Text::known("a ", 3)), [word("a", 3), None]);
        let mut mixed = Text::known("--n=", 1);
        mixed.extend(&Text::unset("N", 1));
        mixed.extend(&Text::known(" --m", 1));
        assert_eq!(words(&mixed), [word("--n=", 1), word("$N", 1), None, word("--m", 1)]);
    }
}
