//! Terms of the field, each with two sentences and a small picture. One source for `plantui help terms`,
//! `plantui explain --why`, docs/src/background/terms.md and the screen.
//!
//! Pictures are ASCII, at most 72 columns wide, so that they look the same on every terminal and page.

mod memory;
mod parallel;
mod pipeline;
mod proof;

/// Term with its meaning and a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Term in lower case unless it is a name: `bubble`, `1F1B`.
    pub name: &'static str,
    /// Synonyms, as a plan's report or other programs write them.
    pub also: &'static [&'static str],
    /// Two sentences: a definition, and its importance for a plan.
    pub text: &'static str,
    /// Lines of the picture.
    pub picture: &'static str,
}

/// All terms. Later terms build on earlier ones.
pub static ALL: [&[Term]; 4] = [&pipeline::TERMS, &parallel::TERMS, &memory::TERMS, &proof::TERMS];

/// Headings of the parts of [`ALL`].
pub const PARTS: [&str; 4] = ["The pipeline", "Splitting the work", "Memory", "What is claimed"];

/// Iterates over all terms.
pub fn all() -> impl Iterator<Item = &'static Term> {
    ALL.iter().flat_map(|part| part.iter())
}

/// Finds a term by its name or a synonym. Case, blanks, hyphens and a plural `s` do not matter.
pub fn find(word: &str) -> Option<&'static Term> {
    let wanted = plain(word);
    all().find(|term| words(term).any(|known| plain(known) == wanted))
}

/// Terms that a text uses, in the order of [`ALL`].
pub fn used_in(text: &str) -> Vec<&'static Term> {
    let text = format!(" {} ", spaced(text));
    let uses = |word: &str| {
        let word = spaced(word);
        [" ", "s ", "es "].iter().any(|end| text.contains(&format!(" {word}{end}")))
    };
    all().filter(|term| words(term).any(uses)).collect()
}

fn words(term: &'static Term) -> impl Iterator<Item = &'static str> {
    std::iter::once(term.name).chain(term.also.iter().copied())
}

fn plain(word: &str) -> String {
    let letters: String = word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let singular = if letters.ends_with("ches") { letters.strip_suffix("es") } else { letters.strip_suffix('s') };
    singular.map(str::to_string).unwrap_or(letters)
}

/// Text in lower case, with one blank for each run of other characters than letters and digits.
fn spaced(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Text of docs/src/background/terms.md: every term under the heading of its part.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Terms\n\nThe words of plantui's reports and screen. `plantui help terms` prints this page, `plantui help terms \
         bubble` one\nterm, `plantui explain model.json --why` those that an explanation uses.\n",
    );
    for (part, terms) in PARTS.iter().zip(ALL) {
        text += &format!("\n## {part}\n");
        for term in terms {
            text += &format!("\n### {}\n\n", term.name);
            if !term.also.is_empty() {
                text += &format!("Also: {}.\n\n", term.also.join(", "));
            }
            text += &format!("{}\n\n```text\n{}\n```\n", term.text, term.picture.trim_end());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_term_is_two_sentences_and_a_small_picture() {
        for term in all() {
            let sentences = term.text.matches(". ").count() + 1;
            assert!(sentences == 2 && term.text.ends_with('.'), "{}: {sentences} sentences", term.name);
            assert!(term.picture.is_ascii() && term.text.len() <= 420, "{}", term.name);
            let lines: Vec<&str> = term.picture.trim_end().lines().collect();
            assert!((2..=8).contains(&lines.len()), "{}: {} lines", term.name, lines.len());
            assert!(lines.iter().all(|line| line.len() <= 72 && line.trim_end() == *line), "{}", term.name);
            // A literal that is continued on the next line loses the blanks there, and its columns.
            assert!(lines.iter().all(|line| line.starts_with(' ')), "{}", term.name);
        }
    }

    #[test]
    fn no_word_means_two_things() {
        let mut seen = BTreeSet::new();
        for word in all().flat_map(words) {
            assert!(seen.insert(plain(word)), "{word} stands twice");
            assert!(find(word).is_some());
        }
    }

    #[test]
    fn words_are_found_as_people_write_them() {
        for (word, name) in [
            ("Micro-batches", "microbatch"),
            ("1f1b", "1F1B"),
            ("activation checkpointing", "recompute"),
            ("all reduce", "all-reduce"),
            ("TP", "tensor parallel"),
        ] {
            assert_eq!(find(word).map(|term| term.name), Some(name), "{word}");
        }
        assert_eq!(find("quux"), None);
    }

    #[test]
    fn a_text_is_searched_for_whole_words() {
        let used =
            used_in("8 stages on 63 of 64 devices; a simulated iteration loses: fill and drain 2.0%, all-reduce 0.2%");
        let names: Vec<&str> = used.iter().map(|term| term.name).collect();
        assert!(names.contains(&"stage") && names.contains(&"all-reduce") && names.contains(&"bubble"), "{names:?}");
        assert!(!used_in("backstages").iter().any(|term| term.name == "stage"));
    }
}
