//! File of sessions: one per workload that was on the screen, latest first.
//!
//! `sessions.json` in `$XDG_STATE_HOME/plantui` or `~/.local/state/plantui`, at most [`MOST`] of them. The key of a
//! workload is its file's canonical path, not its contents, so a new profile keeps its session. The paths are also the
//! list of recent files. The file is read again before it is written, under a lock. So two screens that end together
//! lose at most a session of the same workload. A broken or foreign file is neither used nor overwritten, and the
//! screen says so.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{files, stored_session::StoredSession};
use crate::{
    source::error::printable,
    workload::{BUILTIN, Workload},
};

const SCHEMA: &str = "plantui.sessions/1";
const NAME: &str = "sessions.json";
/// Lock held while writing.
const LOCK: &str = "sessions.lock";
/// Maximum number of sessions kept.
const MOST: usize = 100;

/// Folder of sessions, if any.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    directory: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Book {
    schema: String,
    sessions: Vec<Kept>,
}

/// StoredSession with its workload.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    workload: String,
    #[serde(flatten)]
    session: StoredSession,
}

/// Key of a workload; `None` for one from standard input, which cannot be found again.
fn key(workload: &Workload) -> Option<String> {
    if workload.source == BUILTIN {
        return Some(BUILTIN.into());
    }
    if workload.source == "-" {
        return None;
    }
    let path = Path::new(&workload.source);
    // A watched file may be missing for a moment: then use the path of its folder.
    let found = fs::canonicalize(path).ok().or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    });
    found?.to_str().map(str::to_string)
}

impl Recent {
    /// Sessions in a folder, which may not exist yet. Without a folder none are stored.
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        Recent { directory }
    }

    /// StoredSession of a workload.
    ///
    /// # Errors
    /// One sentence, if the file is not a list of sessions.
    pub(super) fn session(&self, workload: &Workload) -> Result<Option<StoredSession>, String> {
        let kept = self.read()?;
        let found = key(workload).and_then(|key| kept.into_iter().find(|kept| kept.workload == key));
        Ok(found.map(|kept| kept.session))
    }

    /// Recent files that still exist, latest first, without the current one.
    pub(super) fn files(&self, now: &Workload) -> Vec<PathBuf> {
        let now = key(now);
        let kept = self.read().unwrap_or_default().into_iter().map(|kept| kept.workload);
        let others = kept.filter(|path| path != BUILTIN && Some(path) != now.as_ref());
        others.map(PathBuf::from).filter(|path| path.is_file()).collect()
    }

    /// Stores the session of a workload as the latest.
    ///
    /// # Errors
    /// One sentence, if the file is not a list of sessions or cannot be written.
    pub(super) fn keep(&self, workload: &Workload, session: StoredSession) -> Result<(), String> {
        let (Some(directory), Some(key)) = (&self.directory, key(workload)) else { return Ok(()) };
        let shown = || printable(&directory.display().to_string());
        fs::create_dir_all(directory).map_err(|error| format!("{} cannot be made: {error}", shown()))?;
        let _lock = files::Lock::take(&directory.join(LOCK));
        let mut sessions = self.read()?;
        sessions.retain(|kept| kept.workload != key);
        sessions.insert(0, Kept { workload: key, session });
        sessions.truncate(MOST);
        let text = serde_json::to_string_pretty(&Book { schema: SCHEMA.into(), sessions })
            .map_err(|error| format!("the session cannot be written: {error}"))?;
        files::save_own(&directory.join(NAME), text.as_bytes())
    }

    fn read(&self) -> Result<Vec<Kept>, String> {
        let Some(path) = self.directory.as_ref().map(|directory| directory.join(NAME)) else { return Ok(vec![]) };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(refused(&path, &format!("cannot be read ({error})"))),
        };
        match serde_json::from_slice::<Book>(&text) {
            Ok(book) if book.schema == SCHEMA => Ok(book.sessions),
            _ => Err(refused(&path, "is not a list of sessions")),
        }
    }
}

fn refused(path: &Path, why: &str) -> String {
    let shown = printable(&path.display().to_string());
    format!("{shown} {why}: sessions are neither restored nor saved; remove the file to start again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn at(directory: &Path) -> Recent {
        Recent::new(Some(directory.to_path_buf()))
    }

    fn with_view(view: &str) -> StoredSession {
        StoredSession { view: view.into(), ..StoredSession::default() }
    }

    fn file(directory: &Path, name: &str) -> Workload {
        let path = directory.join(name);
        fs::write(&path, include_bytes!("../../inputs/tiny-branch.json")).unwrap();
        crate::workload::load(&path).unwrap()
    }

    #[test]
    fn sessions_are_kept_by_workload_and_the_latest_file_is_first() {
        let folder = tempfile::tempdir().unwrap();
        let recent = at(&folder.path().join("made/when/needed"));
        let [a, b] = ["a.json", "b.json"].map(|name| file(folder.path(), name));
        assert_eq!(recent.session(&a), Ok(None));
        for (workload, view) in [(&a, "devices"), (&b, "timeline"), (&builtin(), "workload"), (&a, "stages")] {
            recent.keep(workload, with_view(view)).unwrap();
        }
        assert_eq!(recent.session(&a), Ok(Some(with_view("stages"))));
        assert_eq!(recent.session(&b), Ok(Some(with_view("timeline"))));
        let path = |workload: &Workload| fs::canonicalize(&workload.source).unwrap();
        assert_eq!(recent.files(&builtin()), [path(&a), path(&b)]);
        assert_eq!(recent.files(&a), [path(&b)]);
        fs::remove_file(&b.source).unwrap();
        assert!(recent.files(&a).is_empty());
        recent.keep(&b, with_view("compare")).unwrap();
        assert_eq!(recent.session(&file(folder.path(), "b.json")), Ok(Some(with_view("compare"))));
    }

    #[test]
    fn screens_that_are_left_at_once_lose_nothing_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..12).map(|i| format!("{i}.json")).collect();
        let workloads: Vec<Workload> = names.iter().map(|name| file(folder.path(), name)).collect();
        let state = folder.path().join("state");
        std::thread::scope(|scope| {
            for part in workloads.chunks(3) {
                let recent = at(&state);
                scope.spawn(move || part.iter().for_each(|w| recent.keep(w, with_view("devices")).unwrap()));
            }
        });
        assert_eq!(at(&state).files(&builtin()).len(), workloads.len());
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "no lock is left");
    }

    #[test]
    fn a_file_of_others_is_told_and_left_alone() {
        for text in ["{", "[]", "{\"schema\": \"plantui.sessions/9\", \"sessions\": []}", "\u{0}"] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(NAME), text).unwrap();
            let recent = at(folder.path());
            let told = recent.session(&builtin()).unwrap_err();
            assert!(told.contains(NAME) && told.contains("remove the file"), "{told}");
            assert!(recent.keep(&builtin(), StoredSession::default()).is_err());
            assert!(recent.files(&builtin()).is_empty());
            assert_eq!(fs::read_to_string(folder.path().join(NAME)).unwrap(), text);
        }
    }

    #[test]
    fn nothing_is_kept_without_a_folder_or_a_file() {
        let nowhere = Recent::default();
        assert_eq!(nowhere.keep(&builtin(), StoredSession::default()), Ok(()));
        let folder = tempfile::tempdir().unwrap();
        let piped = Workload { source: "-".into(), ..builtin() };
        at(folder.path()).keep(&piped, StoredSession::default()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_so_many_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let recent = at(folder.path());
        for i in 0..MOST + 3 {
            recent.keep(&file(folder.path(), &format!("{i}.json")), StoredSession::default()).unwrap();
        }
        assert_eq!(recent.files(&builtin()).len(), MOST);
    }
}
