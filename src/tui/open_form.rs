//! The overlay that loads another workload.

use std::path::{Path, PathBuf};

use super::{files, widget::filter::Filter};

/// What the first row of the list says.
pub(super) const BUILT_IN: &str = "the built-in example";

/// The list of files, narrowed down as a name is typed.
#[derive(Debug, Clone)]
pub(super) struct OpenForm {
    /// What was typed.
    pub(super) filter: Filter,
    /// Files below the working directory, after the built-in example.
    pub(super) files: Vec<String>,
    /// Why the last one was not loaded.
    pub(super) error: Option<String>,
    /// Whether one is being loaded.
    pub(super) loading: bool,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidate {
    /// One of the found files, or the built-in example, by place.
    Listed(usize),
    /// The typed text itself, which is the path of a file.
    Typed(PathBuf),
}

impl OpenForm {
    /// Looks for files below a folder.
    pub(super) fn new(root: &Path) -> Self {
        let mut list = vec![BUILT_IN.to_string()];
        list.extend(files::workloads(root));
        OpenForm { filter: Filter::default(), files: list, error: None, loading: false }
    }

    /// What may be chosen, best first: a typed path that is one, then what matches.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let typed = self.filter.input.value().trim();
        let path = PathBuf::from(typed);
        let mut rows = vec![];
        if !self.files.iter().any(|f| f == typed) && path.is_file() {
            rows.push(Candidate::Typed(path));
        }
        rows.extend(self.filter.matches(&self.files).into_iter().map(Candidate::Listed));
        rows
    }

    /// The path of a candidate; `None` for the built-in example.
    pub(super) fn path(&self, candidate: &Candidate) -> Option<PathBuf> {
        match candidate {
            Candidate::Typed(path) => Some(path.clone()),
            Candidate::Listed(0) => None,
            Candidate::Listed(i) => Some(PathBuf::from(&self.files[*i])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_path_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.json"), "{}").unwrap();
        let mut form = OpenForm::new(dir.path());
        assert_eq!(form.files, [BUILT_IN, "a.json"]);
        assert_eq!(form.path(&form.candidates()[0]), None);
        let full = dir.path().join("a.json");
        form.filter.input = full.display().to_string().into();
        assert_eq!(form.candidates()[0], Candidate::Typed(full));
    }
}
