//! Notices that a workload's file has changed.
//!
//! A thread looks at the file twice a second: its time, length and inode, so that one an editor moved into place counts
//! as changed too. It asks instead of being told. Notifications miss what happens on network
//! file systems, where login nodes keep home directories, and a look at one file costs nothing to speak of. A change
//! counts once two looks agree, so that a file that is still being written is left to finish.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use crossbeam_channel::{Receiver, unbounded};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// What tells one state of a file from another.
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

/// What became of a file that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noticed {
    /// Something else is in it.
    Changed,
    /// It is no longer there.
    Gone,
}

/// What is known of the file that is watched.
#[derive(Debug, Default)]
struct Looked {
    path: Option<PathBuf>,
    known: Option<Stamp>,
    last: Option<Stamp>,
    /// Whether it was told that the file is gone.
    gone: bool,
}

impl Looked {
    /// Takes a look at a file; whether it has changed and come to rest, or has gone for good. The first look at another
    /// file is no change.
    fn at(&mut self, path: &Path, now: Option<Stamp>) -> Option<Noticed> {
        if self.path.as_deref() != Some(path) {
            *self = Looked { path: Some(path.to_path_buf()), known: now, last: now, gone: now.is_none() };
            return None;
        }
        // While it is away for one look it may be on its way into place.
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

/// The thread that watches, and where its news arrive.
pub(super) struct Watch {
    followed: Arc<Mutex<Option<PathBuf>>>,
    changes: Receiver<(PathBuf, Noticed)>,
}

impl Watch {
    /// Starts to watch nothing yet.
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

    /// Watches this file from now on, and no other.
    pub(super) fn follow(&self, path: Option<PathBuf>) {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Where files that have changed or are gone are told.
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
