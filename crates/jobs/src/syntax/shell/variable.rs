//! Variables: assignments, arrays, and the lines of their elements.
//!
//! A value that `--define` gives is never replaced. The parser keeps no place for an array's element or a word in a quoted
//! block, so its text is looked for in the source behind the one before it. Linear in the source.

use std::collections::BTreeMap;

use brush_parser::ast::{Assignment, AssignmentName, AssignmentValue};

use super::{Evaluator, TakenDefault, Text, Variable, line_start, text};
use crate::syntax::line_at;

impl Evaluator<'_> {
    pub(super) fn assignment(&mut self, assignment: &Assignment) {
        let line = self.lined(assignment.loc.start.line);
        match (&assignment.name, &assignment.value) {
            (AssignmentName::VariableName(name), AssignmentValue::Scalar(word)) => {
                let mut value = self.joined(&word.value, line);
                if self.lined(assignment.loc.end.line) > line {
                    self.find_lines(&mut value, line);
                }
                if assignment.append {
                    match self.state.variables.get_mut(name) {
                        Some(Variable::Scalar(before)) if !self.defines.contains_key(name) => before.extend(&value),
                        Some(Variable::Array(list)) => list.push(value),
                        _ => self.assign(name, value),
                    }
                } else {
                    self.assign(name, value);
                }
            }
            (AssignmentName::VariableName(name), AssignmentValue::Array(elements)) => {
                if self.defines.contains_key(name) {
                    return;
                }
                let mut values = vec![];
                let mut map = BTreeMap::new();
                self.cursor = line_start(&self.source, (line - self.offset) as usize);
                for (key, word) in elements {
                    let line = self.element_line(&word.value, line);
                    match key {
                        Some(key) => {
                            let key = self.joined(&key.value, line).shown();
                            let value = self.joined(&word.value, line);
                            map.insert(key.trim_matches(['"', '\'']).to_string(), value);
                        }
                        None => values.extend(self.fields(&word.value, line)),
                    }
                }
                let value = match (map.is_empty(), assignment.append, self.state.variables.get(name)) {
                    (false, ..) => Variable::Map(map),
                    (true, true, Some(Variable::Array(before))) => {
                        Variable::Array(before.iter().cloned().chain(values).collect())
                    }
                    (true, true, Some(Variable::Scalar(before))) => {
                        Variable::Array(std::iter::once(before.clone()).chain(values).collect())
                    }
                    _ => Variable::Array(values),
                };
                self.state.variables.insert(name.clone(), value);
            }
            (AssignmentName::ArrayElementName(name, index), AssignmentValue::Scalar(word)) => {
                let value = self.joined(&word.value, line);
                let number = index.parse::<usize>().ok();
                match (self.state.variables.get_mut(name), number) {
                    (Some(Variable::Array(list)), Some(at)) if at < list.len() => list[at] = value,
                    (Some(Variable::Array(list)), Some(at)) if at == list.len() => list.push(value),
                    (Some(Variable::Map(map)), _) => drop(map.insert(index.clone(), value)),
                    _ => {
                        let key = self.joined(index, line).shown();
                        let map = BTreeMap::from([(key, value)]);
                        self.state.variables.insert(name.clone(), Variable::Map(map));
                    }
                }
            }
            (AssignmentName::ArrayElementName(..), AssignmentValue::Array(_)) => {}
        }
    }

    /// Line of an array's element, which has no place of its own in the tree: its text is looked for behind the one
    /// before.
    pub(super) fn element_line(&mut self, element: &str, usual: u32) -> u32 {
        let Some(found) = self.source.get(self.cursor..).and_then(|rest| rest.find(element)) else { return usual };
        self.cursor += found;
        let line = line_at(&self.source, self.cursor) + self.offset;
        self.cursor += element.len();
        line
    }

    /// Gives the words of a quoted block their lines: the parser drops the continued line ends inside it.
    pub(super) fn find_lines(&mut self, value: &mut Text, first: u32) {
        self.cursor = line_start(&self.source, (first - self.offset) as usize);
        let mut segments = vec![];
        for segment in std::mem::take(&mut value.0) {
            let text = match &segment.text {
                Ok(text) if segment.line == first => text.clone(),
                _ => {
                    segments.push(segment);
                    continue;
                }
            };
            for part in text.split_inclusive(char::is_whitespace) {
                let word = part.trim_end();
                let line = if word.is_empty() { first } else { self.element_line(word, first) };
                segments.push(text::Segment { text: Ok(part.into()), line });
            }
        }
        value.0 = segments;
    }

    pub(super) fn assign(&mut self, name: &str, value: Text) {
        if !self.defines.contains_key(name) {
            let value = if value.is_long() {
                Text::computed(format!("${name} grows without end"), value.line())
            } else {
                value
            };
            self.state.variables.insert(name.into(), Variable::Scalar(value));
        }
    }

    pub(super) fn scalar(&mut self, name: &str, line: u32) -> Text {
        match self.state.variables.get(name) {
            Some(Variable::Scalar(value)) => value.clone(),
            Some(Variable::Array(values)) => values.first().cloned().unwrap_or_default(),
            Some(Variable::Map(_)) => Text::default(),
            None => Text::unset(name, line),
        }
    }

    pub(super) fn element(&mut self, name: &str, index: i64, line: u32) -> Text {
        match self.state.variables.get(name) {
            Some(Variable::Array(values)) => {
                let index = if index < 0 { index + values.len() as i64 } else { index };
                let value = usize::try_from(index).ok().and_then(|index| values.get(index));
                value.cloned().unwrap_or_else(|| Text::unset(&format!("{name}[{index}]"), line))
            }
            Some(Variable::Map(map)) => {
                map.get(&index.to_string()).cloned().unwrap_or_else(|| Text::unset(&format!("{name}[{index}]"), line))
            }
            Some(Variable::Scalar(value)) if index == 0 => value.clone(),
            _ => Text::unset(name, line),
        }
    }

    /// Remembers a default that the script takes.
    pub(super) fn assume(&mut self, name: &str, value: &Text, line: u32) {
        let default = TakenDefault { name: name.into(), value: value.shown(), line };
        if !self.script.defaults.iter().any(|known| known.name == default.name) {
            self.script.defaults.push(default);
        }
    }

    /// Text of a value in a condition, in which an unset variable is empty.
    pub(super) fn read(&mut self, value: &Text) -> Option<String> {
        let mut unset = vec![];
        let text = value.read_unset_as_empty(&mut unset).ok();
        if text.is_some() {
            for name in unset {
                self.assume(&name, &Text::known("", value.line()), value.line());
            }
        }
        text
    }
}
