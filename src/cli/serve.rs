//! `plantui serve --stdio`: answers calls of the command line from another program, one JSON document a line.
//!
//! A call is answered by the same code as the command of the process, on buffers in place of its
//! [streams](crate::streams). Calls are answered one after the other; a program that wants several at once starts several
//! servers. The server starts once, so a call saves the start of a process.

use std::{
    env,
    ffi::OsString,
    io::{self, BufRead, Write},
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{CommandEnd, Failure, failure, input, interrupt, output};
use crate::{
    cluster::hardware,
    notice,
    planner::REPORT,
    streams::{self, Progress},
};

const EXAMPLES: &str = r#"Example:
  echo '{"id": 1, "arguments": ["plan", "llama-3-8b", "--devices", "16", "--json"]}' | plantui serve --stdio

A line of input is {"id": N, "arguments": [..]}, with "input" for the text of standard input and "directory" for the
directory of relative paths. {"id": N, "cancel": true} stops call N as Ctrl-C does. A line of output is
{"id": N, "exit_code": 0, "output": "..", "messages": ".."} with the texts of standard output and standard error, or
{"id": N, "progress": {"title": "..", "fraction": 0.5, "message": ".."}} before it. Calls are answered in their order."#;

/// Answer calls of another program, a JSON document a line
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Reads calls from standard input and writes answers to standard output
    #[arg(long, required = true)]
    stdio: bool,
}

/// Line of input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    id: u64,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    input: String,
    directory: Option<PathBuf>,
    #[serde(default)]
    cancel: bool,
}

/// Line of output that ends a call.
#[derive(Debug, Serialize)]
struct Answer {
    id: Option<u64>,
    exit_code: u8,
    output: String,
    messages: String,
}

/// Line of output while a call is being answered.
#[derive(Debug, Serialize)]
struct Report<'a> {
    id: u64,
    progress: &'a Progress,
}

/// Calls to stop.
#[derive(Debug, Default)]
struct Stops {
    /// Call that is being answered.
    current: Option<u64>,
    /// Calls to stop once they begin.
    waiting: Vec<u64>,
}

/// Interval between two signs of life after the end of the input.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

impl ServeArgs {
    /// Answers calls until the input ends.
    ///
    /// # Errors
    /// [`Failure`] if standard output is closed.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        if streams::is_call() {
            return Err(Failure::refused("a call cannot start another server", "start a second process"));
        }
        output::is_open()?;
        let (sender, calls) = crossbeam_channel::unbounded::<Request>();
        let (done, finished) = crossbeam_channel::bounded::<()>(0);
        let stops = Arc::new(Mutex::new(Stops::default()));
        let shared = Arc::clone(&stops);
        let worker = thread::spawn(move || {
            let _done = done;
            calls.into_iter().for_each(|call| send(&answer(call, &shared)));
        });
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            match serde_json::from_str::<Request>(&line) {
                _ if line.trim().is_empty() => {}
                Ok(request) if request.cancel => lock(&stops).stop(request.id),
                Ok(request) => drop(sender.send(request)),
                Err(error) => {
                    let messages = format!("error: this line is not a call: {error}\n");
                    send(&Answer { id: None, exit_code: 2, output: String::new(), messages });
                }
            }
        }
        drop(sender);
        // A caller that has ended reads no more, and its calls end with it.
        while finished.recv_timeout(SIGN_OF_LIFE).is_err_and(|error| error.is_timeout()) {
            write_line("");
        }
        drop(worker.join());
        Ok(CommandEnd::Done)
    }
}

impl Stops {
    /// Stops a call, now or once it begins. A call that was answered is left alone.
    fn stop(&mut self, id: u64) {
        if self.current != Some(id) {
            self.waiting.push(id);
        } else if !interrupt::press() {
            interrupt::press_next(true);
        }
    }
}

fn lock(stops: &Mutex<Stops>) -> MutexGuard<'_, Stops> {
    stops.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers a call with the command of its arguments.
fn answer(call: Request, stops: &Mutex<Stops>) -> Answer {
    let id = call.id;
    {
        let mut stops = lock(stops);
        stops.current = Some(id);
        interrupt::press_next(stops.waiting.contains(&id));
        stops.waiting.retain(|waiting| *waiting != id);
    }
    // A call must not depend on an earlier one.
    input::forget();
    hardware::forget_added();
    streams::begin(call.input.into_bytes(), move |progress| send(&Report { id, progress }));
    let arguments: Vec<OsString> =
        std::iter::once("plantui".into()).chain(call.arguments).map(OsString::from).collect();
    let exit_code = match call.directory.map_or(Ok(()), env::set_current_dir) {
        Ok(()) => panic::catch_unwind(AssertUnwindSafe(|| super::run(arguments))).unwrap_or_else(|_| {
            notice::bug("the command panicked");
            notice::hint(REPORT);
            failure::BUG
        }),
        Err(error) => Failure::refused(format!("the directory of the call cannot be entered: {error}"), "").report(),
    };
    let streams::Call { output, messages, .. } = streams::end();
    lock(stops).current = None;
    Answer { id: Some(id), exit_code, output: String::from_utf8_lossy(&output).into_owned(), messages }
}

/// Writes a document as one line.
fn send(document: &impl Serialize) {
    write_line(&serde_json::to_string(document).expect("texts and numbers serialise"));
}

/// Writes a line. Nobody is left to answer if that fails, so the process ends.
fn write_line(line: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
