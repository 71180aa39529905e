//! Reads files from outside with a bounded size, and never waits for a writer.
//!
//! A path must name a regular file of a bounded size. Pipes that a shell made (`/dev/fd/63` from `<(command)`, or
//! `/dev/stdin`) are read, because they have a writer. Pipes in other folders are not.

use std::{
    fs::{self, Metadata},
    io::{self, Read},
    path::Path,
};

use crate::{
    source::{LoadError, error::printable},
    units,
};

/// Maximum size of a workload or plan file. A profile of a million nodes is far smaller.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Folders of a shell's own pipes.
#[cfg(unix)]
const PIPES: [&str; 2] = ["/dev", "/proc"];
/// Device that may be read although it is no regular file: it is always empty.
const NOTHING: &str = "/dev/null";

/// Reads a file of at most [`MAX_FILE_BYTES`].
///
/// # Errors
/// As `read_at_most`.
pub fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    read_at_most(path, MAX_FILE_BYTES)
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// [`LoadError`] if it is a directory, a device or a pipe, is larger, or cannot be read.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, LoadError> {
    let shown = printable(&path.display().to_string());
    let metadata = fs::metadata(path).map_err(|error| unreadable(&shown, &error))?;
    if metadata.is_dir() {
        let model = path.join("config.json").is_file();
        let repair = if model {
            "name a file in it, such as its config.json for `plantui generate`"
        } else {
            "name a file in it"
        };
        return Err(LoadError::file(&shown, "is a directory", repair));
    }
    if !metadata.is_file() && path != Path::new(NOTHING) && !is_pipe_of_a_shell(path, &metadata) {
        return Err(LoadError::file(
            &shown,
            "is no regular file",
            "copy what it gives into a file, or pipe it into `-`",
        ));
    }
    if metadata.len() > most {
        return Err(too_large(&shown, most));
    }
    let file = fs::File::open(path).map_err(|error| unreadable(&shown, &error))?;
    limited(file, &shown, most)
}

/// Reads a reader to its end, at most [`MAX_FILE_BYTES`]. `source` is its name in messages.
///
/// # Errors
/// [`LoadError`] if it is larger or cannot be read.
pub fn read_all(reader: impl Read, source: &str) -> Result<Vec<u8>, LoadError> {
    limited(reader, source, MAX_FILE_BYTES)
}

/// Reads a reader to its end, at most `most` bytes. `source` is its name in messages.
///
/// # Errors
/// [`LoadError`] if it is larger or cannot be read.
pub fn limited(reader: impl Read, source: &str, most: u64) -> Result<Vec<u8>, LoadError> {
    let mut bytes = vec![];
    reader.take(most + 1).read_to_end(&mut bytes).map_err(|error| unreadable(source, &error))?;
    if bytes.len() as u64 > most {
        return Err(too_large(source, most));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_pipe_of_a_shell(path: &Path, metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo() && PIPES.iter().any(|folder| path.starts_with(folder))
}

#[cfg(not(unix))]
fn is_pipe_of_a_shell(_: &Path, _: &Metadata) -> bool {
    false
}

fn unreadable(file: &str, error: &io::Error) -> LoadError {
    let repair = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "make it readable for you",
        _ => "",
    };
    let problem = match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_string(),
        io::ErrorKind::PermissionDenied => "may not be read".to_string(),
        _ => format!("cannot be read: {error}"),
    };
    LoadError::file(file, problem, repair)
}

fn too_large(file: &str, most: u64) -> LoadError {
    let problem = format!("has more than {}", units::bytes(most as f64));
    LoadError::file(file, problem, "files of this kind are text of a few megabytes at most: is this the right one?")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_at_most(&path, 5).unwrap(), b"12345");
        let refused = |path: &Path| read_at_most(path, 4).unwrap_err().to_string();
        assert!(refused(&path).contains("has more than 4 B"));
        assert!(refused(folder.path()).contains("is a directory"));
        assert!(refused(Path::new("/dev/zero")).contains("is no regular file"));
        assert!(refused(&folder.path().join("b")).contains("does not exist"));
        assert_eq!(read_at_most(Path::new("/dev/null"), 4).unwrap(), b"");
        assert!(limited(io::repeat(0), "endless", 4).unwrap_err().to_string().contains("has more than"));
    }
}
