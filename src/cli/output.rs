//! Output of results: standard output, or a file that is [written completely](whole_file) or not at all.
//!
//! Every result goes through this module, and every message through `notice`. Both use [`visible`], so untrusted text
//! from a file or a name reaches a terminal only as plain text. Existing files are replaced only with `--force` and
//! keep their permissions; devices and pipes such as `/dev/null` are written to, never replaced.

use std::{
    fs,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{Failure, input};
use crate::{export::whole_file, notice, streams, text::visible};

/// Columns available for a table: the terminal's, or a fixed width for logs.
pub(super) fn columns() -> usize {
    const LOG: usize = 160;
    terminal_size::terminal_size_of(io::stdout()).map_or(LOG, |(columns, _)| columns.0.into())
}

/// Destination of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output.
    Standard,
    /// File.
    File {
        /// Path of the file.
        path: PathBuf,
        /// True if it may replace an existing file.
        force: bool,
    },
}

impl Destination {
    /// Destination of a path; `-` and `None` mean standard output.
    pub(crate) fn new(path: Option<&Path>, force: bool) -> Self {
        match path {
            Some(path) if path.as_os_str() != "-" => Destination::File { path: path.into(), force },
            _ => Destination::Standard,
        }
    }

    /// Refuses a destination that cannot be written, before any work is done.
    ///
    /// # Errors
    /// [`Failure`] if the file exists and may not be replaced, is a directory, or cannot be resolved.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Destination::File { path, force } = self else { return is_open() };
        let Some(metadata) = metadata_if_exists(path)? else { return Ok(()) };
        if metadata.is_dir() {
            return Err(Failure::refused(format!("{} is a directory", input::shown(path)), "name a file in it"));
        }
        if metadata.is_file() && !force {
            return Err(exists(path));
        }
        if metadata.is_file() && input::was_read(path) {
            let problem = format!("{} is read by this command, and would be replaced", input::shown(path));
            return Err(Failure::refused(problem, "name another file"));
        }
        Ok(())
    }

    /// Writes the whole text.
    ///
    /// # Errors
    /// [`Failure`] as [`Destination::check`], or for errors of the system; [`Failure::ReaderLeft`] for a closed pipe.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        self.stream(|out| out.write_all(visible(text).as_bytes()))
    }

    /// Writes the output of `pieces` as a stream, without buffering all of it.
    ///
    /// # Errors
    /// As [`Destination::write`].
    pub(crate) fn stream(&self, pieces: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Destination::Standard => print_pieces(pieces),
            Destination::File { path, force } => {
                self.check()?;
                write_file(path, *force, pieces)
            }
        }
    }

    /// Writes a trace, and prints its size if that is large.
    ///
    /// # Errors
    /// As [`Destination::write`].
    pub(super) fn trace(&self, pieces: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let mut bytes = 0;
        self.stream(|out| pieces(&mut CountingWriter { out, bytes: &mut bytes }))?;
        if bytes > LARGE_TRACE {
            let megabytes = bytes / 1_000_000;
            notice::note(&format!("the trace is {megabytes} MB; fewer --microbatches make it smaller"));
        }
        Ok(())
    }
}

/// Forwards text that is safe for a terminal, and counts its bytes.
struct CountingWriter<'a> {
    out: &'a mut dyn Write,
    bytes: &'a mut u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Each piece is a whole text.
        match std::str::from_utf8(bytes) {
            Ok(text) => self.out.write_all(visible(text).as_bytes())?,
            Err(_) => self.out.write_all(bytes)?,
        }
        *self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes to standard output.
///
/// # Errors
/// [`Failure::ReaderLeft`] for a closed pipe, a refusal for anything else.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_pieces(|out| out.write_all(visible(text).as_bytes()))
}

/// True if the program was started without a standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Records that the program was started without a standard output, so that printing is refused.
pub fn standard_output_is_closed() {
    CLOSED.store(true, Ordering::Relaxed);
}

/// Refuses a standard output that was closed when the program started.
///
/// # Errors
/// [`Failure`] that says so.
pub(super) fn is_open() -> Result<(), Failure> {
    if CLOSED.load(Ordering::Relaxed) {
        let repair = "open it, or write to a file with --output where the command takes one";
        return Err(Failure::refused("standard output is closed", repair));
    }
    Ok(())
}

/// Returns true if a stream is a terminal that shows colours.
pub fn takes_colours(stream: &impl IsTerminal) -> bool {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
    stream.is_terminal() && unset("NO_COLOR") && !dumb
}

/// Returns true if standard output is a terminal that shows colours.
pub(super) fn shows_colours() -> bool {
    takes_colours(&io::stdout())
}

/// Writes trusted text to standard output, colours included.
///
/// # Errors
/// As [`print`].
pub(super) fn print_own(text: &str) -> Result<(), Failure> {
    print_pieces(|out| out.write_all(text.as_bytes()))
}

fn print_pieces(pieces: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    is_open()?;
    streams::print(pieces).map_err(|error| Failure::writing("standard output", &error))
}

/// Size in bytes above which a trace's size is printed: browsers open such traces slowly, if at all.
const LARGE_TRACE: u64 = 50_000_000;

/// Value as indented JSON with a final line break.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("strings, numbers and lists serialise") + "\n"
}

/// Metadata of a path; `None` if nothing exists there.
///
/// # Errors
/// [`Failure`] if the system cannot tell, as for circular symbolic links: these are not replaced, because their target
/// is unknown.
fn metadata_if_exists(path: &Path) -> Result<Option<fs::Metadata>, Failure> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Failure::writing(&input::shown(path), &error)),
    }
}

fn exists(path: &Path) -> Failure {
    Failure::refused(format!("{} exists already", input::shown(path)), "--force replaces it")
}

fn write_file(path: &Path, force: bool, pieces: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let refused = |error: &io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::writing(&input::shown(path), error),
    };
    if metadata_if_exists(path)?.is_some_and(|there| !there.is_file()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| {
                let mut out = BufWriter::new(file);
                pieces(&mut out)?;
                out.flush()
            })
            .map_err(|error| refused(&error));
    }
    whole_file::write(path, force, pieces).map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_is_not_replaced_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        Destination::new(Some(&path), false).write("one").unwrap();
        let refused = Destination::new(Some(&path), false).write("two").unwrap_err();
        assert!(matches!(refused, Failure::Refused { hint, .. } if hint.contains("--force")));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        Destination::new(Some(&path), true).write("two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_fails_half_way_leaves_nothing_and_costs_no_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        fs::write(&path, "old").unwrap();
        let stopped = Destination::new(Some(&path), true).stream(|out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::Error::other("stopped"))
        });
        assert!(stopped.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn directories_and_missing_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("missing/plan.json")] {
            let refused = Destination::new(Some(&path), true).write("x").unwrap_err();
            assert!(matches!(refused, Failure::Refused { message, .. } if message.contains("directory")));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_devices_stay_devices() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Destination::new(Some(&link), true).write("new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        // Circular links lead to no file, and do not count as one.
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        for to in [Destination::new(Some(&circle), true), Destination::new(Some(&circle), false)] {
            assert!(to.check().is_err() && matches!(to.write("x"), Err(Failure::Refused { .. })));
        }
        assert!(fs::symlink_metadata(&circle).unwrap().is_symlink());
        Destination::new(Some(Path::new("/dev/null")), false).write("x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
