//! Files that are written completely or not at all.
//!
//! A file is written under a temporary name beside its destination and then moved there. So no reader sees a partial
//! file, and a full disk does not destroy the old one. Symbolic links are followed: their target is written, and the
//! links stay. A replaced file keeps its permission bits; a new file is readable as the umask permits.
//!
//! A killed run leaves its temporary file behind. The next run that writes into the folder removes it: a live run holds
//! a lock on its file until its process ends, so only abandoned files are removed. On systems without such locks
//! nothing is removed.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

/// Prefix and suffix of temporary file names.
const PREFIX: &str = ".plantui-";
const SUFFIX: &str = ".tmp";

/// Most entries of a folder that are searched for abandoned files.
const MOST_ENTRIES: usize = 20_000;

/// Most attempts to create a temporary file that another run does not remove; the next attempt is accepted.
const MOST_TRIES: usize = 16;

/// Most symbolic links that are followed in a chain.
const MOST_LINKS: usize = 32;

/// Writes a file completely; an existing one is replaced only if `replace` is set.
///
/// # Errors
/// Errors of the system, [`io::ErrorKind::AlreadyExists`] included, and of `write`. No error mentions the temporary
/// name.
pub fn write(path: &Path, replace: bool, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = destination(path);
    let there = fs::metadata(&target).ok();
    if there.is_some() && !replace {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mode = there.map(|there| there.permissions());
    let mut file = unfinished(&target, mode.is_none())?;
    let mut out = io::BufWriter::new(file.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(mode) = mode {
        file.as_file().set_permissions(plain_mode(&mode))?;
    }
    finish(file, &target, replace)
}

/// Replaces a file of the program's own, readable by its owner alone.
///
/// # Errors
/// As [`write()`].
pub fn write_own(path: &Path, text: &[u8]) -> io::Result<()> {
    let target = destination(path);
    let mut file = unfinished(&target, false)?;
    file.as_file_mut().write_all(text)?;
    finish(file, &target, true)
}

fn finish(file: NamedTempFile, target: &Path, replace: bool) -> io::Result<()> {
    let moved = if replace { file.persist(target) } else { file.persist_noclobber(target) };
    moved.map(drop).map_err(|error| nameless(&error.error))
}

/// Target of a path through symbolic links, even if it does not exist yet.
fn destination(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    path
}

/// New file beside its destination, locked where the system has locks.
fn unfinished(target: &Path, for_others: bool) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_left_behind(folder);
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    if for_others {
        open_to_others(&mut builder);
    }
    let mut tries = 0..MOST_TRIES;
    loop {
        let file = builder.tempfile_in(folder).map_err(|error| nameless(&error))?;
        // Before the lock was taken another run may have removed the file as abandoned.
        let kept = lock::take(file.as_file()) != lock::LockResult::ByAnother && lock::has_a_name(file.as_file());
        if kept || tries.next().is_none() {
            return Ok(file);
        }
    }
}

/// Removes the temporary files of runs that have ended.
fn remove_left_behind(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
    for entry in entries {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = fs::File::open(entry.path()) else { continue };
        if lock::take(&file) == lock::LockResult::Now {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// System's error without the path that tempfile adds.
fn nameless(error: &io::Error) -> io::Error {
    let within = error.get_ref().and_then(|error| error.source()).and_then(|error| error.downcast_ref::<io::Error>());
    let code = error.raw_os_error().or_else(|| within.and_then(io::Error::raw_os_error));
    code.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

#[cfg(unix)]
fn open_to_others(builder: &mut Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn open_to_others(_: &mut Builder<'_, '_>) {}

/// Permission bits for reading, writing and executing only.
#[cfg(unix)]
fn plain_mode(mode: &fs::Permissions) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(mode.mode() & 0o777)
}

#[cfg(not(unix))]
fn plain_mode(mode: &fs::Permissions) -> fs::Permissions {
    mode.clone()
}

mod lock {
    use std::fs::File;

    /// Result of a lock attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum LockResult {
        /// This process holds the lock until the file is closed.
        Now,
        /// Another process holds the lock.
        ByAnother,
        /// The system has no locks.
        Unknown,
    }

    #[cfg(unix)]
    pub(super) fn take(file: &File) -> LockResult {
        use rustix::{
            fs::{FlockOperation, flock},
            io::Errno,
        };
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => LockResult::Now,
            Err(Errno::WOULDBLOCK) => LockResult::ByAnother,
            Err(_) => LockResult::Unknown,
        }
    }

    #[cfg(unix)]
    pub(super) fn has_a_name(file: &File) -> bool {
        use std::os::unix::fs::MetadataExt;
        file.metadata().is_ok_and(|data| data.nlink() > 0)
    }

    #[cfg(not(unix))]
    pub(super) fn take(_: &File) -> LockResult {
        LockResult::Unknown
    }

    #[cfg(not(unix))]
    pub(super) fn has_a_name(_: &File) -> bool {
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn put(path: &Path, replace: bool, text: &str) -> io::Result<()> {
        write(path, replace, |out| out.write_all(text.as_bytes()))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_replaces_a_file_keeps_who_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        put(&path, false, "one").unwrap();
        let new = mode(&path);
        fs::File::create(folder.path().join("any")).unwrap();
        assert_eq!(new, mode(&folder.path().join("any")), "a new file is as any other");
        for kept in [0o600, 0o640, 0o444, 0o755, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            put(&path, true, "two").unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (kept, "two"));
        }
        write_own(&path, b"three").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn links_are_followed_even_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link, first) =
            (folder.path().join("sub/real"), folder.path().join("link"), folder.path().join("first"));
        fs::create_dir(folder.path().join("sub")).unwrap();
        symlink("sub/real", &link).unwrap();
        symlink("link", &first).unwrap();
        put(&first, false, "new").unwrap();
        assert!(put(&first, false, "newer").is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists));
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        put(&first, true, "newest").unwrap();
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink() && fs::symlink_metadata(&first).unwrap().is_symlink()
        );
        assert_eq!((fs::read_to_string(&real).unwrap().as_str(), mode(&real)), ("newest", 0o600));
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(put(&folder.path().join("loop"), false, "x").is_err());
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        for left in [".plantui-dEaD01.tmp", ".plantui-other", "plantui-x.tmp", ".other.tmp"] {
            fs::write(name(left), "half").unwrap();
        }
        fs::create_dir(name(".plantui-folder.tmp")).unwrap();
        symlink(name("plantui-x.tmp"), name(".plantui-link.tmp")).unwrap();
        write(&name("slow"), false, |out| {
            // Another run writes meanwhile.
            put(&name("quick"), false, "whole")?;
            out.write_all(b"whole")
        })
        .unwrap();
        let mut names: Vec<String> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let stay = [".other.tmp", ".plantui-folder.tmp", ".plantui-link.tmp", ".plantui-other", "plantui-x.tmp"];
        assert_eq!(names, [&stay[..], &["quick", "slow"]].concat());
    }

    #[test]
    fn errors_do_not_speak_of_the_unfinished_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = put(&folder.path().join("missing/plan.json"), false, "x").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::create_dir(folder.path().join("taken")).unwrap();
        let taken = put(&folder.path().join("taken"), true, "x").unwrap_err();
        for error in [missing, taken] {
            assert!(!error.to_string().contains(PREFIX), "{error}");
        }
        let full = write(&folder.path().join("full"), false, |_| Err(io::Error::other("no more"))).unwrap_err();
        assert_eq!(full.to_string(), "no more");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
