//! Overlay that loads another workload.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{files, folder, widget::filter::Filter};

/// Text of the built-in example's row.
pub(super) const BUILT_IN: &str = "the built-in example";

/// List of files, filtered by the typed name.
#[derive(Debug, Clone)]
pub(super) struct OpenForm {
    /// Typed text and selection.
    pub(super) filter: Filter,
    /// Texts of the rows: recent files, the built-in example, files below the working directory.
    pub(super) names: Vec<String>,
    /// Number of recent files.
    pub(super) recent: usize,
    /// Reason why the last file was not loaded.
    pub(super) error: Option<String>,
    /// True while a file is loading.
    pub(super) loading: bool,
    /// Facts of the files drawn so far.
    known: RefCell<BTreeMap<PathBuf, folder::Facts>>,
}

/// Row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Index of a found file, or of the built-in example.
    Listed(usize),
    /// The typed text itself, the path of a file.
    Typed(PathBuf),
    /// File or folder in the typed folder.
    Inside(PathBuf),
}

impl OpenForm {
    /// Lists recent files and those below a folder.
    pub(super) fn new(root: &Path, recent: &[PathBuf]) -> Self {
        let here = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let near = |path: &PathBuf| path.strip_prefix(&here).unwrap_or(path).to_string_lossy().into_owned();
        let mut names: Vec<String> = recent.iter().take(MOST_RECENT).map(near).collect();
        let recent = names.len();
        names.push(BUILT_IN.into());
        let others: Vec<String> = files::workloads(root).into_iter().filter(|file| !names.contains(file)).collect();
        names.extend(others);
        OpenForm { filter: Filter::default(), names, recent, error: None, loading: false, known: RefCell::default() }
    }

    /// Possible choices, best first: a typed path if it exists, then matches.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let typed = self.filter.input.value().trim();
        let path = PathBuf::from(files::expand_home(typed));
        let mut rows = vec![];
        if !self.names.iter().any(|f| f == typed) && path.is_file() {
            rows.push(Candidate::Typed(path));
        } else {
            rows.extend(folder::inside(typed).into_iter().map(Candidate::Inside));
        }
        // Skip files that the typed folder already shows.
        let shown = |i: &usize| {
            let own = Path::new(&self.names[*i]);
            rows.iter().any(|row| matches!(row, Candidate::Inside(path) if path == own))
        };
        let listed: Vec<usize> = self.filter.matches(&self.names).into_iter().filter(|i| !shown(i)).collect();
        rows.extend(listed.into_iter().map(Candidate::Listed));
        rows
    }

    /// Completes the typed path as far as its folder determines it.
    pub(super) fn complete(&mut self) {
        if let Some(longer) = folder::completed(self.filter.input.value().trim()) {
            self.filter.input = longer.into();
            self.filter.cursor = 0;
        }
    }

    /// Enters the chosen folder. Returns true if it is one.
    pub(super) fn enter_folder(&mut self, candidate: &Candidate) -> bool {
        let Candidate::Inside(path) = candidate else { return false };
        if !path.is_dir() {
            return false;
        }
        self.filter.input = format!("{}/", path.display()).into();
        self.filter.cursor = 0;
        true
    }

    /// Facts shown beside a candidate's name, read once per file.
    pub(super) fn facts(&self, candidate: &Candidate) -> folder::Facts {
        let path = self.path(candidate);
        path.map(|path| self.known.borrow_mut().entry(path.clone()).or_insert_with(|| folder::facts(&path)).clone())
            .unwrap_or_default()
    }

    /// Path of a candidate; `None` for the built-in example.
    pub(super) fn path(&self, candidate: &Candidate) -> Option<PathBuf> {
        match candidate {
            Candidate::Typed(path) | Candidate::Inside(path) => Some(path.clone()),
            Candidate::Listed(i) if *i == self.recent => None,
            Candidate::Listed(i) => Some(PathBuf::from(&self.names[*i])),
        }
    }
}

/// Maximum number of recent files, listed before all others.
const MOST_RECENT: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_path_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.json"), "{}").unwrap();
        let mut form = OpenForm::new(dir.path(), &[]);
        assert_eq!(form.names, [BUILT_IN, "a.json"]);
        assert_eq!(form.path(&form.candidates()[0]), None);
        let full = dir.path().join("a.json");
        form.filter.input = full.display().to_string().into();
        assert_eq!(form.candidates()[0], Candidate::Typed(full));
    }

    #[test]
    fn what_a_typed_folder_shows_is_not_listed_again() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let file = dir.join("in/a.json");
        std::fs::create_dir(dir.join("in")).unwrap();
        std::fs::write(&file, "{}").unwrap();
        let mut form = OpenForm::new(Path::new("/nowhere"), std::slice::from_ref(&file));
        form.filter.input = format!("{}/", dir.join("in").display()).into();
        let rows = form.candidates();
        assert_eq!(rows.iter().filter(|row| form.path(row).as_ref() == Some(&file)).count(), 1, "{rows:?}");
    }

    #[test]
    fn recent_files_come_before_all_others_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["a.json", "b.json"] {
            std::fs::write(dir.join(name), "{}").unwrap();
        }
        let form = OpenForm::new(&dir, &["/elsewhere/c.txt".into(), dir.join("b.json")]);
        assert_eq!(form.names, ["/elsewhere/c.txt", "b.json", BUILT_IN, "a.json"]);
        let paths: Vec<Option<PathBuf>> = form.candidates().iter().map(|row| form.path(row)).collect();
        assert_eq!(paths, [Some("/elsewhere/c.txt".into()), Some("b.json".into()), None, Some("a.json".into())]);
    }
}
