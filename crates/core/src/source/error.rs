//! Errors of loading a workload: one sentence that names the file, the place and the repair.

use std::fmt;

pub use crate::text::{printable, single_line};

/// Refused input. Displays as `file:line: path problem; repair`, without the parts that are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// File as the user named it.
    pub file: String,
    /// JSON path such as `nodes[3].TMPCs.2[0].timePerSample`; empty for the file as a whole.
    pub path: String,
    /// Line, counted from 1.
    pub line: Option<usize>,
    /// Problem, such as `is -1, must be >= 0`.
    pub problem: String,
    /// Repair. May be empty if the problem already says it.
    pub repair: String,
}

impl LoadError {
    /// Error about the file as a whole. Quoted text is made safe for a terminal.
    pub fn file(file: &str, problem: impl Into<String>, repair: impl Into<String>) -> Self {
        let (problem, repair) = (single_line(&problem.into()), single_line(&repair.into()));
        LoadError { file: file.into(), path: String::new(), line: None, problem, repair }
    }

    /// Error about one place in the file.
    pub fn at(file: &str, path: impl Into<String>, problem: impl Into<String>, repair: impl Into<String>) -> Self {
        LoadError { path: single_line(&path.into()), ..LoadError::file(file, problem, repair) }
    }

    /// Adds the line, if it is known.
    #[must_use]
    pub fn on_line(self, line: Option<usize>) -> Self {
        LoadError { line, ..self }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", single_line(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ":")?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, " {}", self.problem)?;
        if !self.repair.is_empty() {
            write!(f, "; {}", self.repair)?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_file_line_path_and_repair() {
        let error = LoadError::at("a.json", "edges[2].sourceId", "is 9, which no node has", "use the id of a node")
            .on_line(Some(7));
        assert_eq!(error.to_string(), "a.json:7: edges[2].sourceId is 9, which no node has; use the id of a node");
        assert_eq!(LoadError::file("a.json", "is empty", "").to_string(), "a.json: is empty");
    }
}
