//! Reading and writing of files: each write is atomic and overwrites no file without permission.

use std::{
    collections::VecDeque,
    fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{export::whole_file, text::printable};

/// Reason why a file was not written.
#[derive(Debug)]
pub(super) enum SaveError {
    /// A file of that name exists.
    Exists,
    /// The system refused, in one sentence.
    Refused(String),
}

/// Writes a file atomically: a reader sees the old or the new one, never a part.
pub(super) fn save(
    path: &Path,
    overwrite: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), SaveError> {
    let refused = |error: io::Error| {
        SaveError::Refused(format!("{} cannot be written: {error}", printable(&path.display().to_string())))
    };
    if path.is_dir() {
        let shown = printable(&path.display().to_string());
        return Err(SaveError::Refused(format!("{shown} is a directory; name a file in it")));
    }
    if path.exists() && !overwrite {
        return Err(SaveError::Exists);
    }
    match whole_file::write(path, overwrite, write) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(SaveError::Exists),
        written => written.map_err(refused),
    }
}

/// Replaces one of the program's own files, readable by its owner alone.
///
/// # Errors
/// One sentence.
pub(super) fn save_own(path: &Path, text: &[u8]) -> Result<(), String> {
    let shown = || printable(&path.display().to_string());
    whole_file::write_own(path, text).map_err(|error| format!("{} cannot be written: {error}", shown()))
}

/// Lock file, held until dropped, against other processes that use the same files.
///
/// Best effort: after [`LOCK_WAIT`] the work proceeds without the lock, so that no exit waits for a file. A lock older
/// than [`LOCK_STALE`] belongs to a dead process and is removed.
pub(super) struct Lock(Option<PathBuf>);

/// Maximum wait for a lock.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// Age at which a lock is ignored.
const LOCK_STALE: Duration = Duration::from_secs(5);

impl Lock {
    /// Acquires the lock of this path.
    pub(super) fn take(path: &Path) -> Lock {
        let begun = Instant::now();
        loop {
            match fs::OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(_) => return Lock(Some(path.to_path_buf())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && begun.elapsed() < LOCK_WAIT => {
                    let age = fs::metadata(path).and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
                    if age.is_some_and(|age| age > LOCK_STALE) {
                        drop(fs::remove_file(path));
                    } else {
                        thread::sleep(Duration::from_millis(2));
                    }
                }
                Err(_) => return Lock(None),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            drop(fs::remove_file(path));
        }
    }
}

/// Replaces `~` at the beginning of a path by the home directory, as a shell does.
pub(super) fn expand_home(path: &str) -> String {
    match (path.strip_prefix('~'), std::env::var("HOME")) {
        (Some(rest), Ok(home)) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => home + rest,
        _ => path.to_string(),
    }
}

/// First free path of `stem.ext`, `stem-2.ext`, `stem-3.ext`, ...
pub(super) fn free_name(directory: &Path, stem: &str, extension: &str) -> PathBuf {
    let name = |i: u32| if i == 1 { format!("{stem}.{extension}") } else { format!("{stem}-{i}.{extension}") };
    (1..).map(|i| directory.join(name(i))).find(|path| !path.exists()).expect("some number is free")
}

/// Maximum depth of searched folders, and maximum number of visited entries.
const DEEPEST: usize = 3;
const MOST_ENTRIES: usize = 5000;

/// JSON files and layer profiles below a folder, nearest first. Skips hidden folders and those of build tools.
pub(super) fn workloads(root: &Path) -> Vec<String> {
    let mut found = vec![];
    let mut folders = VecDeque::from([(root.to_path_buf(), 0)]);
    let mut looked = 0;
    while let Some((folder, depth)) = folders.pop_front() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            looked += 1;
            if looked > MOST_ENTRIES {
                return found;
            }
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else { continue };
            if name.starts_with('.') || matches!(name, "target" | "node_modules") {
                continue;
            }
            if path.is_dir() {
                if depth < DEEPEST {
                    folders.push_back((path, depth + 1));
                }
            } else if path.extension().is_some_and(|e| e == "json") || is_layer_profile(&path) {
                let shown = path.strip_prefix(root).unwrap_or(&path);
                found.push(shown.display().to_string());
            }
        }
    }
    found
}

/// True if a text file starts like a layer profile: fields separated by ` -- `, below comments.
fn is_layer_profile(path: &Path) -> bool {
    let mut begin = vec![];
    // Reading a pipe would block.
    path.extension().is_some_and(|e| e == "txt")
        && path.is_file()
        && fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut begin)).is_ok()
        && String::from_utf8_lossy(&begin)
            .lines()
            .find(|line| !line.starts_with('#') && !line.trim().is_empty())
            .is_some_and(|line| line.contains(" -- "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten_without_leave() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.json");
        let write = |text: &'static str, overwrite| save(&path, overwrite, |out| out.write_all(text.as_bytes()));
        assert!(write("one", false).is_ok());
        assert!(matches!(write("two", false), Err(SaveError::Exists)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert!(write("two", true).is_ok());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let failed = save(&path, true, |out| out.write_all(b"three").and(Err(io::ErrorKind::StorageFull.into())));
        assert!(matches!(failed, Err(SaveError::Refused(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(matches!(save(dir.path(), true, |_| Ok(())), Err(SaveError::Refused(_))));
        assert_eq!(free_name(dir.path(), "plan", "json"), dir.path().join("plan-2.json"));
    }

    #[test]
    fn a_lock_is_given_back_and_an_old_one_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::take(&path);
        assert!(held.0.is_some() && Lock::take(&path).0.is_none());
        drop(held);
        assert!(!path.exists());
        let old = fs::File::create(&path).unwrap();
        old.set_modified(std::time::SystemTime::now() - 2 * LOCK_STALE).unwrap();
        assert!(Lock::take(&path).0.is_some());
        // Where none can be made the work goes on.
        assert!(Lock::take(&dir.path().join("none/lock")).0.is_none());
    }

    #[test]
    fn workloads_are_found_near_first() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a/b", ".hidden", "target"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in
            ["a/b/deep.json", "z.json", "a/near.json", "a/note.txt", "graph.txt", ".hidden/x.json", "target/y.json"]
        {
            fs::write(dir.path().join(file), "").unwrap();
        }
        let profile = "# profile_batch=64\nnode1 -- Input -- forward_compute_time=0";
        fs::write(dir.path().join("graph.txt"), profile).unwrap();
        assert_eq!(workloads(dir.path()), ["graph.txt", "z.json", "a/near.json", "a/b/deep.json"]);
        assert!(workloads(&dir.path().join("none")).is_empty());
    }
}
