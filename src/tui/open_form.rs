//! The overlay that loads another workload.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{files, folder, widget::filter::Filter};

/// What the row of the built-in example says.
pub(super) const BUILT_IN: &str = "the built-in example";

/// The list of files, narrowed down as a name is typed.
#[derive(Debug, Clone)]
pub(super) struct OpenForm {
    /// What was typed.
    pub(super) filter: Filter,
    /// What the rows say: files that were on the screen before, the built-in example, files below the working directory.
    pub(super) names: Vec<String>,
    /// How many of them were on the screen before.
    pub(super) recent: usize,
    /// Why the last one was not loaded.
    pub(super) error: Option<String>,
    /// Whether one is being loaded.
    pub(super) loading: bool,
    /// What is known of the files that were drawn.
    known: RefCell<BTreeMap<PathBuf, folder::Facts>>,
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidate {
    /// One of the found files, or the built-in example, by place.
    Listed(usize),
    /// The typed text itself, which is the path of a file.
    Typed(PathBuf),
    /// A file or folder of the folder that is typed.
    Inside(PathBuf),
}

impl OpenForm {
    /// Lists these recent files and those below a folder.
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

    /// What may be chosen, best first: a typed path that is one, then what matches.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let typed = self.filter.input.value().trim();
        let path = PathBuf::from(files::expand_home(typed));
        let mut rows = vec![];
        if !self.names.iter().any(|f| f == typed) && path.is_file() {
            rows.push(Candidate::Typed(path));
        } else {
            rows.extend(folder::inside(typed).into_iter().map(Candidate::Inside));
        }
        // What the folder that is typed shows already is not listed again.
        let shown = |i: &usize| {
            let own = Path::new(&self.names[*i]);
            rows.iter().any(|row| matches!(row, Candidate::Inside(path) if path == own))
        };
        let listed: Vec<usize> = self.filter.matches(&self.names).into_iter().filter(|i| !shown(i)).collect();
        rows.extend(listed.into_iter().map(Candidate::Listed));
        rows
    }

    /// Completes what is typed as far as the folder it names tells.
    pub(super) fn complete(&mut self) {
        if let Some(longer) = folder::completed(self.filter.input.value().trim()) {
            self.filter.input = longer.into();
            self.filter.cursor = 0;
        }
    }

    /// Goes into the folder that is chosen; whether one is.
    pub(super) fn enter_folder(&mut self, candidate: &Candidate) -> bool {
        let Candidate::Inside(path) = candidate else { return false };
        if !path.is_dir() {
            return false;
        }
        self.filter.input = format!("{}/", path.display()).into();
        self.filter.cursor = 0;
        true
    }

    /// What is known of a candidate beside its name; asked once for each.
    pub(super) fn facts(&self, candidate: &Candidate) -> folder::Facts {
        let path = self.path(candidate);
        path.map(|path| self.known.borrow_mut().entry(path.clone()).or_insert_with(|| folder::facts(&path)).clone())
            .unwrap_or_default()
    }

    /// The path of a candidate; `None` for the built-in example.
    pub(super) fn path(&self, candidate: &Candidate) -> Option<PathBuf> {
        match candidate {
            Candidate::Typed(path) | Candidate::Inside(path) => Some(path.clone()),
            Candidate::Listed(i) if *i == self.recent => None,
            Candidate::Listed(i) => Some(PathBuf::from(&self.names[*i])),
        }
    }
}

/// Recent files that are listed before all others.
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
