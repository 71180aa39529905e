//! Expansion of words: variables, arithmetic, quotes, and the splitting of what is not quoted.

use brush_parser::{
    ParserOptions,
    word::{self, Parameter, ParameterExpr, ParameterTestType, SpecialParameter, WordPiece, WordPieceWithSource},
};

use super::{Evaluator, Variable, text::Text};

/// Deepest nesting of expansions.
const DEEPEST: usize = 48;

/// Longest word; a file has at most a few megabytes.
const LONGEST: usize = 1 << 20;

/// Fields of a word under construction.
#[derive(Default)]
struct Fields {
    done: Vec<Text>,
    current: Text,
    /// True if the current field exists, even if it is empty.
    started: bool,
}

impl Fields {
    fn add(&mut self, text: &Text) {
        self.current.extend(text);
        self.started = true;
    }

    fn finish(&mut self) {
        if std::mem::take(&mut self.started) {
            self.done.push(std::mem::take(&mut self.current));
        }
    }

    /// Adds an unquoted expansion.
    fn add_split(&mut self, text: &Text) {
        for part in text.split() {
            match part {
                Some(segment) => self.add(&Text(vec![segment])),
                None => self.finish(),
            }
        }
    }

    /// Adds several values as fields of their own, as `"${A[@]}"` does.
    fn add_each(&mut self, values: &[Text], quoted: bool) {
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.finish();
            }
            if quoted { self.add(value) } else { self.add_split(value) }
        }
    }
}

impl Evaluator<'_> {
    /// Fields of a word.
    pub(super) fn fields(&mut self, word: &str, line: u32) -> Vec<Text> {
        let mut all = vec![];
        for word in braces(word) {
            let mut fields = Fields::default();
            self.add_word(&mut fields, &word, line);
            fields.finish();
            all.append(&mut fields.done);
        }
        all
    }

    /// Word as one text, as in an assignment.
    pub(super) fn joined(&mut self, word: &str, line: u32) -> Text {
        let pieces = if word.len() > LONGEST { Err(()) } else { word::parse(word, &options()).map_err(drop) };
        let Ok(pieces) = pieces else { return Text::computed(format!("`{}`", shortened(word)), line) };
        self.quoted(&pieces, word, line)
    }

    /// Text of a document that follows `<<END`.
    pub(super) fn document(&mut self, body: &str, line: u32) -> Text {
        match word::parse_heredoc(body, &options()) {
            Ok(pieces) => self.quoted(&pieces, body, line),
            Err(_) => Text::known(body, line),
        }
    }

    fn add_word(&mut self, fields: &mut Fields, word: &str, line: u32) {
        let pieces = if word.len() > LONGEST { Err(()) } else { word::parse(word, &options()).map_err(drop) };
        let Ok(pieces) = pieces else {
            return fields.add(&Text::computed(format!("`{}`", shortened(word)), line));
        };
        let mut lines = Lines::new(word, line);
        for piece in &pieces {
            let line = lines.at(piece.start_index);
            match &piece.piece {
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    // Quotes make an empty field, except around a list without values.
                    fields.started |= inner.is_empty();
                    let mut inner_lines = Lines::new(word, lines.first);
                    for piece in inner {
                        let line = inner_lines.at(piece.start_index);
                        match self.several(&piece.piece, true, line) {
                            Some(values) => {
                                fields.started |= !values.is_empty();
                                fields.add_each(&values, true);
                            }
                            None => {
                                fields.started = true;
                                let text = self.piece(&piece.piece, line);
                                fields.add(&text);
                            }
                        }
                    }
                }
                WordPiece::ParameterExpansion(_)
                | WordPiece::CommandSubstitution(_)
                | WordPiece::BackquotedCommandSubstitution(_) => match self.several(&piece.piece, false, line) {
                    Some(values) => fields.add_each(&values, false),
                    None => {
                        let text = self.piece(&piece.piece, line);
                        fields.add_split(&text);
                    }
                },
                other => {
                    let text = self.piece(other, line);
                    // A line that a backslash continues is nothing.
                    if !text.0.is_empty() {
                        fields.add(&text);
                    }
                }
            }
        }
    }

    fn quoted(&mut self, pieces: &[WordPieceWithSource], word: &str, line: u32) -> Text {
        let mut all = Text::default();
        let mut lines = Lines::new(word, line);
        for piece in pieces {
            let at = lines.at(piece.start_index);
            let text = match &piece.piece {
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.quoted(inner, word, lines.first)
                }
                other => match self.several(other, true, at) {
                    Some(values) => joined(&values),
                    None => self.piece(other, at),
                },
            };
            all.extend(&text);
        }
        all
    }

    /// Values of an array or of all arguments; `None` for anything else.
    fn several(&mut self, piece: &WordPiece, quoted: bool, line: u32) -> Option<Vec<Text>> {
        let WordPiece::ParameterExpansion(ParameterExpr::Parameter { parameter, .. }) = piece else { return None };
        let (values, concatenate) = match parameter {
            Parameter::NamedWithAllIndices { name, concatenate } => match self.state.variables.get(name) {
                Some(Variable::Array(values)) => (values.clone(), *concatenate),
                Some(Variable::Scalar(value)) => (vec![value.clone()], *concatenate),
                Some(Variable::Map(map)) => (map.values().cloned().collect(), *concatenate),
                None => (vec![Text::unset(name, line)], false),
            },
            Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate }) => {
                (self.state.arguments.clone().unwrap_or_default(), *concatenate)
            }
            _ => return None,
        };
        Some(if concatenate && quoted { vec![joined(&values)] } else { values })
    }

    /// Text of a piece that is one value.
    fn piece(&mut self, piece: &WordPiece, line: u32) -> Text {
        match piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) | WordPiece::AnsiCQuotedText(text) => {
                Text::known(text.as_str(), line)
            }
            WordPiece::EscapeSequence(text) => match text.strip_prefix('\\').unwrap_or(text) {
                "\n" => Text::default(),
                rest => Text::known(rest, line),
            },
            WordPiece::TildeExpansion(_) => Text::known("~", line),
            WordPiece::ArithmeticExpression(expression) => match self.arithmetic(&expression.value, line) {
                Ok(value) => Text::known(value.to_string(), line),
                Err(reason) => Text::computed(reason, line),
            },
            WordPiece::CommandSubstitution(command) | WordPiece::BackquotedCommandSubstitution(command) => {
                self.substitution(command, line)
            }
            WordPiece::ParameterExpansion(expression) => self.parameter_in(expression, line),
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                let mut all = Text::default();
                for piece in inner {
                    let text = self.piece(&piece.piece, line);
                    all.extend(&text);
                }
                all
            }
        }
    }

    fn parameter_in(&mut self, expression: &ParameterExpr, line: u32) -> Text {
        self.depth += 1;
        let text = if self.depth > DEEPEST {
            Text::computed("an expansion that is nested too deep", line)
        } else {
            self.parameter(expression, line)
        };
        self.depth -= 1;
        text
    }

    fn parameter(&mut self, expression: &ParameterExpr, line: u32) -> Text {
        use ParameterExpr as Expr;
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        match expression {
            Expr::Parameter { parameter, indirect } => {
                let value = self.value(parameter, line);
                if !indirect {
                    return value;
                }
                match value.read() {
                    Ok(name) => self.scalar(&name, line),
                    Err(_) => value,
                }
            }
            Expr::UseDefaultValues { parameter, test_type, default_value, .. }
            | Expr::AssignDefaultValues { parameter, test_type, default_value, .. } => {
                let value = self.value(parameter, line);
                let empty = |value: &Text| {
                    matches!(test_type, ParameterTestType::UnsetOrNull)
                        && value.read().is_ok_and(|text| text.is_empty())
                };
                if !self.is_unset(parameter) && !empty(&value) {
                    return value;
                }
                let default = self.joined(&word(default_value), line);
                self.assume(&name_of(parameter), &default, line);
                if let (Expr::AssignDefaultValues { .. }, Parameter::Named(name)) = (expression, parameter) {
                    self.assign(name, default.clone());
                }
                default
            }
            Expr::IndicateErrorIfNullOrUnset { parameter, .. } => self.value(parameter, line),
            Expr::UseAlternativeValue { parameter, alternative_value, .. } => {
                if self.is_unset(parameter) {
                    return Text::known("", line);
                }
                self.joined(&word(alternative_value), line)
            }
            Expr::ParameterLength { parameter: Parameter::NamedWithAllIndices { name, .. }, .. } => {
                match self.state.variables.get(name) {
                    Some(Variable::Array(values)) => Text::known(values.len().to_string(), line),
                    _ => Text::computed(format!("the length of {name}"), line),
                }
            }
            Expr::ParameterLength { parameter, .. } => {
                let value = self.value(parameter, line);
                self.changed(&value, line, |text| Some(text.chars().count().to_string()))
            }
            Expr::RemoveSmallestSuffixPattern { parameter, pattern, .. } => {
                self.cut(parameter, &word(pattern), line, |text, pattern| {
                    (0..=text.len()).rev().find(|at| ends(text, *at, pattern)).map(|at| text[..at].into())
                })
            }
            Expr::RemoveLargestSuffixPattern { parameter, pattern, .. } => {
                self.cut(parameter, &word(pattern), line, |text, pattern| {
                    (0..=text.len()).find(|at| ends(text, *at, pattern)).map(|at| text[..at].into())
                })
            }
            Expr::RemoveSmallestPrefixPattern { parameter, pattern, .. } => {
                self.cut(parameter, &word(pattern), line, |text, pattern| {
                    (0..=text.len()).find(|at| begins(text, *at, pattern)).map(|at| text[at..].into())
                })
            }
            Expr::RemoveLargestPrefixPattern { parameter, pattern, .. } => {
                self.cut(parameter, &word(pattern), line, |text, pattern| {
                    (0..=text.len()).rev().find(|at| begins(text, *at, pattern)).map(|at| text[at..].into())
                })
            }
            Expr::LowercasePattern { parameter, pattern, .. } if word(pattern).is_empty() => {
                let value = self.value(parameter, line);
                self.changed(&value, line, |text| Some(text.to_lowercase()))
            }
            Expr::UppercasePattern { parameter, pattern, .. } if word(pattern).is_empty() => {
                let value = self.value(parameter, line);
                self.changed(&value, line, |text| Some(text.to_uppercase()))
            }
            Expr::ReplaceSubstring { parameter, pattern, replacement, match_kind, .. } => {
                let value = self.value(parameter, line);
                let pattern = self.joined(pattern, line).shown();
                let replacement = self.joined(&word(replacement), line).shown();
                let anywhere = matches!(match_kind, word::SubstringMatchKind::Anywhere);
                let once = matches!(match_kind, word::SubstringMatchKind::FirstOccurrence);
                self.changed(&value, line, |text| {
                    let plain = !pattern.contains(['*', '?', '[']);
                    match (plain, anywhere, once) {
                        (true, true, _) => Some(text.replace(&pattern, &replacement)),
                        (true, _, true) => Some(text.replacen(&pattern, &replacement, 1)),
                        _ => None,
                    }
                })
            }
            Expr::Substring { parameter, offset, length, .. } => {
                let value = self.value(parameter, line);
                let offset = self.arithmetic(&offset.value, line);
                let length = length.as_ref().map(|length| self.arithmetic(&length.value, line)).transpose();
                let (Ok(offset), Ok(length)) = (offset, length) else {
                    return Text::computed("a part of a text", line);
                };
                self.changed(&value, line, |text| {
                    let start = usize::try_from(offset).ok()?;
                    let rest = text.chars().skip(start);
                    Some(match length {
                        Some(length) => rest.take(usize::try_from(length).ok()?).collect(),
                        None => rest.collect(),
                    })
                })
            }
            _ => Text::computed("an expansion that is not evaluated", line),
        }
    }

    /// Value changed by a function, unless it or the result is unknown.
    fn changed(&self, value: &Text, line: u32, change: impl Fn(&str) -> Option<String>) -> Text {
        match value.read() {
            Ok(text) => change(&text).map_or_else(
                || Text::computed("an expansion that is not evaluated", line),
                |text| Text::known(text, line),
            ),
            Err(_) => value.clone(),
        }
    }

    /// Value without a part that matches a pattern.
    fn cut(
        &mut self,
        parameter: &Parameter,
        pattern: &str,
        line: u32,
        find: impl Fn(&str, &str) -> Option<String>,
    ) -> Text {
        let value = self.value(parameter, line);
        let pattern = self.joined(pattern, line).shown();
        self.changed(&value, line, |text| Some(find(text, &pattern).unwrap_or_else(|| text.into())))
    }

    fn is_unset(&self, parameter: &Parameter) -> bool {
        match parameter {
            Parameter::Named(name) | Parameter::NamedWithAllIndices { name, .. } => {
                !self.state.variables.contains_key(name)
            }
            Parameter::Positional(number) => self.argument(*number).is_none(),
            _ => false,
        }
    }

    fn argument(&self, number: u32) -> Option<&Text> {
        self.state.arguments.as_ref()?.get((number as usize).checked_sub(1)?)
    }

    fn value(&mut self, parameter: &Parameter, line: u32) -> Text {
        match parameter {
            Parameter::Named(name) => self.scalar(name, line),
            Parameter::NamedWithIndex { name, index } => match self.arithmetic(index, line) {
                Ok(index) => self.element(name, index, line),
                Err(_) => {
                    let key = self.joined(index, line).shown();
                    match self.state.variables.get(name) {
                        Some(Variable::Map(map)) => {
                            map.get(&key).cloned().unwrap_or_else(|| Text::unset(&format!("{name}[{key}]"), line))
                        }
                        _ => Text::unset(name, line),
                    }
                }
            },
            Parameter::NamedWithAllIndices { .. } | Parameter::Special(_) => match parameter {
                Parameter::Special(SpecialParameter::PositionalParameterCount) => match &self.state.arguments {
                    Some(arguments) => Text::known(arguments.len().to_string(), line),
                    None => Text::computed("`$#`, the number of the script's arguments", line),
                },
                Parameter::Special(SpecialParameter::ShellName) => Text::known(self.file.to_string(), line),
                Parameter::Special(SpecialParameter::LastExitStatus) => {
                    Text::computed("`$?`, the status of a command", line)
                }
                _ => match self.several(&WordPiece::ParameterExpansion(plain(parameter)), true, line) {
                    Some(values) => joined(&values),
                    None => Text::computed("a value of the running shell", line),
                },
            },
            Parameter::Positional(0) => Text::known(self.file.to_string(), line),
            Parameter::Positional(number) => {
                self.argument(*number).cloned().unwrap_or_else(|| Text::unset(&number.to_string(), line))
            }
        }
    }
}

fn plain(parameter: &Parameter) -> ParameterExpr {
    ParameterExpr::Parameter { parameter: parameter.clone(), indirect: false }
}

/// Name of a parameter, as `--define` takes it.
fn name_of(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Named(name) | Parameter::NamedWithAllIndices { name, .. } => name.clone(),
        Parameter::NamedWithIndex { name, index } => format!("{name}[{index}]"),
        Parameter::Positional(number) => number.to_string(),
        Parameter::Special(_) => "$@".into(),
    }
}

fn joined(values: &[Text]) -> Text {
    let mut all = Text::default();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            all.extend(&Text::known(" ", value.line()));
        }
        all.extend(value);
    }
    all
}

fn ends(text: &str, at: usize, pattern: &str) -> bool {
    text.is_char_boundary(at) && super::pattern::matches(pattern, &text[at..])
}

fn begins(text: &str, at: usize, pattern: &str) -> bool {
    text.is_char_boundary(at) && super::pattern::matches(pattern, &text[..at])
}

fn options() -> ParserOptions {
    ParserOptions::default()
}

/// Beginning of a text, for a message.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("..");
    }
    short
}

/// Words that `{1..4}` and `{a,b}` stand for; the word itself if there are none.
fn braces(word: &str) -> Vec<String> {
    let has_braces = word.contains('{') && (word.contains("..") || word.contains(',')) && !word.contains("${");
    let Some(parts) = has_braces.then(|| word::parse_brace_expansions(word, &options()).ok().flatten()).flatten()
    else {
        return vec![word.to_string()];
    };
    let mut all = vec![String::new()];
    for part in parts {
        let choices = match part {
            word::BraceExpressionOrText::Text(text) => vec![text],
            word::BraceExpressionOrText::Expr(members) => {
                let one = |member: word::BraceExpressionMember| match member {
                    word::BraceExpressionMember::NumberSequence { start, end, increment } => {
                        let step = usize::try_from(increment.abs().max(1)).unwrap_or(1);
                        let numbers = start.min(end)..=start.max(end);
                        let mut numbers: Vec<String> =
                            numbers.step_by(step).take(1000).map(|n| n.to_string()).collect();
                        if start > end {
                            numbers.reverse();
                        }
                        Some(numbers)
                    }
                    word::BraceExpressionMember::Child(inner) => match &inner[..] {
                        [word::BraceExpressionOrText::Text(text)] => Some(vec![text.clone()]),
                        [] => Some(vec![String::new()]),
                        _ => None,
                    },
                    word::BraceExpressionMember::CharSequence { .. } => None,
                };
                let found: Option<Vec<Vec<String>>> = members.into_iter().map(one).collect();
                match found {
                    Some(found) => found.concat(),
                    None => return vec![word.to_string()],
                }
            }
        };
        if all.len() * choices.len() > 4096 {
            return vec![word.to_string()];
        }
        all = all.iter().flat_map(|before| choices.iter().map(move |choice| format!("{before}{choice}"))).collect();
    }
    all
}

/// Lines of the pieces of a word, which come in order.
struct Lines<'a> {
    word: &'a str,
    first: u32,
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    fn new(word: &'a str, first: u32) -> Self {
        Lines { word, first, at: 0, line: first }
    }

    fn at(&mut self, index: usize) -> u32 {
        let index = index.min(self.word.len());
        if index < self.at {
            (self.at, self.line) = (0, self.first);
        }
        let newlines = self.word.as_bytes()[self.at..index].iter().filter(|byte| **byte == b'\n').count();
        self.line += u32::try_from(newlines).unwrap_or(0);
        self.at = index;
        self.line
    }
}
