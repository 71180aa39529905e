//! Patterns of a shell: `*`, `?` and `[..]`.

/// True if a pattern matches a whole text. `O(pattern · text)`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Place after the last star, and the text that it does not cover yet.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => class(&pattern[p..], text[t]).map(|length| p + length),
            Some('\\') if pattern.get(p + 1) == Some(&text[t]) => Some(p + 2),
            Some(c) if *c == text[t] => Some(p + 1),
            _ => None,
        };
        match (step, star) {
            (Some(next), _) => (p, t) = (next, t + 1),
            (None, Some((after, covered))) => {
                star = Some((after, covered + 1));
                (p, t) = (after, covered + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Length of a class at the start of a pattern, if it has the letter.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let members = &pattern[1 + usize::from(negated)..end];
    let mut has = false;
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
            has |= (members[at]..=members[at + 2]).contains(&letter);
            at += 3;
        } else {
            has |= members[at] == letter;
            at += 1;
        }
    }
    (has != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text) in
            [("*", ""), ("7[bB]", "7B"), ("a*c*", "abcd"), ("?x", "yx"), ("[!a]", "b"), ("[0-9]*", "7b")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "b"), ("a*c", "ab"), ("[a-c]", "d"), ("", "a"), ("?", "")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
