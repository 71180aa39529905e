//! Jobs of training engines, read to a model, a run and the places that state them.
//!
//! A file is read by its syntax (`syntax`): a shell script, a log, YAML, JSON, TOML or Python. Its parts are offered to
//! one reader per format (`formats`), each of which recognises names that no other format has. A reader takes the
//! settings that it understands; the rest is listed by its effect, and a setting that may matter is an error. Nothing is
//! executed.
//!
//! Linear in the text; a deadline ends the reading of a hostile file.

#![forbid(unsafe_code)]

mod document;
mod effects;
mod format;
mod formats;
mod job;
mod launch;
mod plan;
mod runs;
mod setting;
mod syntax;

use std::{
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use plantui_core::source::LoadError;

pub use format::formats;
pub use job::{Assumption, Job, Measured, ReadOptions, Unused};
pub use plan::plan;
pub use runs::{is_log, measured_run};
pub use setting::{Fact, Place, normal};

/// Longest time that reading may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Stack of the reading thread: parsers of shell and Python are recursive.
const STACK_BYTES: usize = 512 << 20;

/// Most bytes of a file that a job names.
const MOST_BYTES: u64 = 4 << 20;

/// Reads a job. Files that it names are looked for in `folder`.
///
/// # Errors
/// [`LoadError`] with file, line and repair: for a syntax error, a value that no run can have, more than one possible job,
/// or a setting that may matter and is not understood.
pub fn read(text: &str, source: &str, folder: Option<&Path>, options: &ReadOptions) -> Result<Job, LoadError> {
    let (text, shown, options) = (plantui_core::text::without_escapes(text), source.to_string(), options.clone());
    let folder: Option<PathBuf> = folder.map(Path::to_path_buf);
    let (sender, receiver) = mpsc::channel();
    let reading = std::thread::Builder::new().name("job".into()).stack_size(STACK_BYTES).spawn(move || {
        let open = |name: &str| file(folder.as_deref()?, name);
        let job = document::read(&text, &shown, &options.defines, &open).and_then(|mut document| {
            document.add(&options.with);
            let job = format::read(&document, &options, &open)?;
            answers(&job, &text, &options)?;
            Ok(job)
        });
        // The caller may have given up.
        let _ = sender.send(job);
    });
    let fail =
        |problem: &str| Err(LoadError::file(source, problem.to_string(), "give the part that configures the job"));
    if reading.is_err() {
        return fail("cannot be read: no thread can be started");
    }
    match receiver.recv_timeout(DEADLINE) {
        Ok(job) => job,
        Err(mpsc::RecvTimeoutError::Timeout) => fail("takes more than 10 s to read"),
        Err(mpsc::RecvTimeoutError::Disconnected) => fail("cannot be read"),
    }
}

/// Refuses answers to questions that the job does not ask: they are misspelt.
fn answers(job: &Job, text: &str, options: &ReadOptions) -> Result<(), LoadError> {
    let left_out = |name: &String| job.no_effect.iter().any(|unused| normal(&unused.name) == *name);
    if let Some(name) = options.ignore.iter().find(|name| !left_out(name) && !name.starts_with("deepspeed")) {
        let problem = format!("--ignore {name} leaves out nothing: the job has no such setting, or it is understood");
        return Err(LoadError::file(
            &job.source,
            problem,
            "correct the name, or replace the value with --with NAME=VALUE",
        ));
    }
    // A file that the script sources may ask as well.
    let sources =
        text.lines().any(|line| line.trim_start().starts_with("source ") || line.trim_start().starts_with(". "));
    let asks =
        |name: &String| sources || text.contains(name.as_str()) || name.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(name) = options.defines.keys().find(|name| !asks(name)) {
        let problem = format!("--define {}: the job uses no such variable", plantui_core::text::printable(name));
        return Err(LoadError::file(&job.source, problem, "correct the name, or leave it out"));
    }
    Ok(())
}

/// True if a text is a job of a format that is read.
pub fn is_job(text: &str, source: &str) -> bool {
    let (text, source) = (plantui_core::text::without_escapes(text), source.to_string());
    let look = move || {
        let read = document::read(&text, &source, &Default::default(), &|_| None);
        read.is_ok_and(|document| format::recognised(&document))
    };
    let thread = std::thread::Builder::new().name("job".into()).stack_size(STACK_BYTES).spawn(look);
    thread.ok().and_then(|thread| thread.join().ok()).unwrap_or(false)
}

/// Text of a file beside the job; `None` if it is not there or is no text.
fn file(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    let about = std::fs::metadata(&path).ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    std::fs::read_to_string(path).ok()
}
