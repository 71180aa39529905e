//! Detection of changes of a workload's file.
//!
//! A thread polls time, length and inode of the file twice a second; the inode detects a file that an editor moved into
//! place. Polling replaces notifications, which miss changes on network file systems, as used for home directories on
//! login nodes; polling one file costs almost nothing. A change counts once two polls agree, so that a file being
//! written is complete.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use crossbeam_channel::{Receiver, unbounded};

/// Time between two polls.
const INTERVAL: Duration = Duration::from_millis(500);

/// Identity of a file's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let data = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&data);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Stamp { modified: data.modified().ok(), length: data.len(), inode })
    }
}

/// Event of a watched file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noticed {
    /// Its contents changed.
    Changed,
    /// It no longer exists.
    Gone,
}

/// Known state of the watched file.
#[derive(Debug, Default)]
struct Looked {
    path: Option<PathBuf>,
    known: Option<Stamp>,
    last: Option<Stamp>,
    /// True once its absence was reported.
    gone: bool,
}

impl Looked {
    /// Compares a poll with the known state. Reports a change once two polls agree, and absence once two polls find no
    /// file. The first poll of another file reports nothing.
    fn at(&mut self, path: &Path, now: Option<Stamp>) -> Option<Noticed> {
        if self.path.as_deref() != Some(path) {
            *self = Looked { path: Some(path.to_path_buf()), known: now, last: now, gone: now.is_none() };
            return None;
        }
        // A file missing in one poll may be on its way into place.
        let noticed = match now {
            None if self.last.is_none() && !self.gone => Some(Noticed::Gone),
            Some(_) if now != self.known && now == self.last => Some(Noticed::Changed),
            _ => None,
        };
        match noticed {
            Some(Noticed::Changed) => self.known = now,
            Some(Noticed::Gone) => self.gone = true,
            None => {}
        }
        self.gone &= now.is_none();
        self.last = now;
        noticed
    }
}

/// Watching thread, and the receiver of its events.
pub(super) struct Watch {
    followed: Arc<Mutex<Option<PathBuf>>>,
    changes: Receiver<(PathBuf, Noticed)>,
}

impl Watch {
    /// Starts the thread, which watches no file yet.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start() -> io::Result<Watch> {
        let followed: Arc<Mutex<Option<PathBuf>>> = Arc::default();
        let (sender, changes) = unbounded();
        let place = followed.clone();
        thread::Builder::new().name("watch".into()).spawn(move || {
            let mut looked = Looked::default();
            loop {
                let path = place.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(path) = path
                    && let Some(noticed) = looked.at(&path, Stamp::of(&path))
                    && sender.send((path, noticed)).is_err()
                {
                    break;
                }
                thread::sleep(INTERVAL);
            }
        })?;
        Ok(Watch { followed, changes })
    }

    /// Switches to this file.
    pub(super) fn follow(&self, path: Option<PathBuf>) {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Receiver of changed and missing files.
    pub(super) fn changes(&self) -> &Receiver<(PathBuf, Noticed)> {
        &self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(length: u64, inode: u64) -> Option<Stamp> {
        Some(Stamp { modified: None, length, inode })
    }

    #[test]
    fn a_change_counts_once_it_has_come_to_rest() {
        let mut looked = Looked::default();
        let mut look = |now| looked.at(Path::new("a"), now) == Some(Noticed::Changed);
        assert!(!look(stamp(1, 1)) && !look(stamp(1, 1)), "nothing has changed");
        assert!(!look(stamp(5, 1)) && !look(stamp(9, 1)), "still growing");
        assert!(look(stamp(9, 1)) && !look(stamp(9, 1)), "told once");
    }

    #[test]
    fn a_file_that_is_moved_into_place_has_changed() {
        let mut looked = Looked::default();
        let mut look = |now| looked.at(Path::new("a"), now) == Some(Noticed::Changed);
        assert!(!look(stamp(1, 1)));
        assert!(!look(None) && !look(None), "away is no change to read");
        assert!(!look(stamp(1, 2)) && look(stamp(1, 2)));
        assert!(!look(None) && !look(stamp(1, 2)) && !look(stamp(1, 2)), "the same came back");
    }

    #[test]
    fn a_file_that_is_gone_is_told_once_each_time() {
        let mut looked = Looked::default();
        let mut look = |now| looked.at(Path::new("a"), now);
        assert_eq!([look(stamp(1, 1)), look(None)], [None, None], "it may be on its way into place");
        assert_eq!([look(None), look(None)], [Some(Noticed::Gone), None]);
        assert_eq!([look(stamp(1, 1)), look(stamp(1, 1))], [None, None], "the same came back");
        assert_eq!([look(None), look(None)], [None, Some(Noticed::Gone)]);
        assert_eq!([look(stamp(2, 2)), look(stamp(2, 2))], [None, Some(Noticed::Changed)]);
    }

    #[test]
    fn another_file_is_known_at_its_first_look() {
        let mut looked = Looked::default();
        assert_eq!([looked.at(Path::new("a"), stamp(1, 1)), looked.at(Path::new("b"), stamp(2, 2))], [None, None]);
        assert_eq!(looked.at(Path::new("b"), stamp(2, 2)), None);
        assert_eq!(looked.at(Path::new("c"), None).or(looked.at(Path::new("c"), None)), None, "it never was there");
    }

    #[test]
    fn stamps_see_a_replacement_of_the_same_length() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&path, "one").unwrap();
        let before = Stamp::of(&path);
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(Stamp::of(&path), before);
        assert_eq!(Stamp::of(&other), None);
    }
}
