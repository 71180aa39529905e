//! Standard streams of a command: those of the process, or buffers while `plantui serve` answers a call.

use std::{
    io::{self, BufWriter, Cursor, Read, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Streams of one call of `plantui serve`.
#[derive(Default)]
pub(crate) struct Call {
    input: Vec<u8>,
    /// Everything that the command printed to standard output.
    pub output: Vec<u8>,
    /// Everything that the command printed to standard error.
    pub messages: String,
    report: Option<Report>,
}

/// Receiver of progress.
type Report = Box<dyn Fn(&Progress) + Send>;

/// Call that is being answered. A process answers one at a time.
static CALL: Mutex<Option<Call>> = Mutex::new(None);

fn call() -> MutexGuard<'static, Option<Call>> {
    CALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces the streams of the process by buffers, and standard input by `input`, until [`end`]. Progress goes to `report`.
pub(crate) fn begin(input: Vec<u8>, report: impl Fn(&Progress) + Send + 'static) {
    *call() = Some(Call { input, report: Some(Box::new(report)), ..Call::default() });
}

/// Returns what was printed since [`begin`], and restores the streams of the process.
pub(crate) fn end() -> Call {
    call().take().unwrap_or_default()
}

/// True while a call is being answered.
pub(crate) fn is_call() -> bool {
    call().is_some()
}

/// Reader of standard input.
pub(crate) fn input() -> Box<dyn Read> {
    match &*call() {
        Some(call) => Box::new(Cursor::new(call.input.clone())),
        None => Box::new(io::stdin().lock()),
    }
}

/// Prints to standard output, without buffering all of it unless a call does.
///
/// # Errors
/// Errors of the stream and of `pieces`.
pub(crate) fn print(pieces: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if is_call() {
        let mut text = vec![];
        pieces(&mut text)?;
        if let Some(call) = &mut *call() {
            call.output.append(&mut text);
        }
        return Ok(());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    pieces(&mut out).and_then(|()| out.flush())
}

/// Prints to standard error. A failure cannot be reported, so the text is lost then.
pub(crate) fn message(text: &str) {
    if let Some(call) = &mut *call() {
        call.messages.push_str(text);
        return;
    }
    let mut stream = io::stderr().lock();
    drop(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()));
}

/// Reports the progress of a call; false if none is being answered.
pub(crate) fn progress(progress: impl FnOnce() -> Progress) -> bool {
    let call = call();
    let report = call.as_ref().and_then(|call| call.report.as_ref());
    report.inspect(|report| report(&progress())).is_some()
}

/// Progress of a command.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Progress {
    /// Name of the work, such as that of the planner.
    pub title: String,
    /// Share of the work that is done, from 0 to 1.
    pub fraction: f64,
    /// Results so far.
    pub message: String,
}
