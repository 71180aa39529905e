//! Waiting, updating, drawing: in this order, and never more often than needed.
//!
//! The loop sleeps on channels: keys (read by a thread of their own), reports of the worker, signals, a closed terminal. Something
//! that arrived is taken with everything else that is there already, then one frame is drawn, at most thirty a second.
//! While a plan is under way a tick shows its progress; otherwise nothing wakes the loop and no processor time is used.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, never, select, unbounded};
use ratatui::crossterm::event::{self, Event};
use rustix::process::{getpgrp, getsid};
use signal_hook::{
    consts::{
        SIGABRT, SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGUSR1, SIGUSR2,
        SIGVTALRM, SIGXCPU, SIGXFSZ,
    },
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::{
    background::Late,
    hangup,
    model::{Model, Tone},
    terminal::Tty,
    update::{Effect, Effects},
    watch::{Noticed, Watch},
    worker::{Report, Worker},
};

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// How long a signal that ends the program waits for the terminal to be given back.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why the loop ended.
pub(super) enum End {
    /// The user left.
    Quit,
    /// A signal asked for it.
    Signal(i32),
    /// There is nobody left to show anything to.
    TerminalGone,
}

/// Runs the screen until it ends.
///
/// # Errors
/// If threads or signal handlers cannot be made, or the terminal fails.
// Long: every source of events stands here, so that their order can be seen.
pub(super) fn run(tty: &mut Tty, model: &mut Model, late: Late) -> io::Result<End> {
    let mut worker = Worker::start()?;
    let keys = read_keys(late)?;
    let signals = read_signals()?;
    let mut closed = hangup::listen()?;
    let reports = worker.reports().clone();
    let watch = model.watch.then(Watch::start).transpose()?;
    let changes = watch.as_ref().map_or_else(never, |watch| watch.changes().clone());
    let first = model.replan();
    if let Some(end) = perform(tty, model, &mut worker, first)? {
        return Ok(end);
    }
    let mut dirty = true;
    let mut drawn = Instant::now().checked_sub(FRAME).unwrap_or_else(Instant::now);
    loop {
        if let Some(watch) = &watch {
            watch.follow(model.watched());
        }
        model.now = Instant::now();
        let due = drawn + FRAME;
        if dirty && model.now >= due {
            model.run_playhead();
            let effects = model.sample();
            if let Some(end) = perform(tty, model, &mut worker, effects)? {
                return Ok(end);
            }
            tty.draw(model)?;
            drawn = model.now;
            dirty = false;
        }
        let timer = if dirty {
            crossbeam_channel::at(due)
        } else if model.running.is_some() {
            crossbeam_channel::after(FRAME)
        } else if let Some(due) =
            model.would_help.due().into_iter().chain(model.demo_due()).chain(model.motion_due()).min()
        {
            crossbeam_channel::at(due)
        } else {
            never()
        };
        let mut effects = vec![];
        select! {
            recv(keys) -> event => match event {
                Ok(event) => {
                    model.now = Instant::now();
                    effects.append(&mut model.on_event(&event?));
                    // Everything that is there already is taken before the next frame; effects keep their order.
                    while let Ok(event) = keys.try_recv() {
                        effects.append(&mut model.on_event(&event?));
                    }
                    dirty = true;
                }
                Err(_) => return Ok(End::TerminalGone),
            },
            recv(reports) -> report => if let Ok(report) = report {
                take(model, &mut worker, report, &mut effects);
                while let Ok(report) = reports.try_recv() {
                    take(model, &mut worker, report, &mut effects);
                }
                dirty = true;
            },
            recv(changes) -> changed => {
                match changed.ok().filter(|(path, _)| model.watched().as_ref() == Some(path)) {
                    Some((_, Noticed::Changed)) => effects.append(&mut model.reload()),
                    Some((_, Noticed::Gone)) => {
                        model.file_is_gone();
                        dirty = true;
                    }
                    None => {}
                }
            }
            recv(signals) -> signal => match signal {
                Ok(SIGTSTP) => {
                    effects.push(Effect::Suspend);
                    dirty = true;
                }
                Ok(SIGCONT) => {
                    tty.resume()?;
                    dirty = true;
                }
                Ok(signal) => return Ok(End::Signal(signal)),
                Err(_) => {}
            },
            recv(closed) -> told => match told {
                Ok(()) => return Ok(End::TerminalGone),
                // Nobody can tell: writing will fail one day.
                Err(_) => closed = never(),
            },
            recv(timer) -> _ => {
                let moves = model.motion_due().is_some_and(|due| due <= Instant::now());
                dirty |= model.running.is_some() || model.would_help.due().is_some() || moves;
            }
        }
        model.now = Instant::now();
        if model.demo_due().is_some_and(|due| due <= model.now) {
            effects.append(&mut model.play_demo());
            dirty = true;
        }
        worker.hurry();
        if let Some(end) = perform(tty, model, &mut worker, effects)? {
            return Ok(end);
        }
    }
}

fn take(model: &mut Model, worker: &mut Worker, report: Report, effects: &mut Effects) {
    worker.heard(&report);
    effects.append(&mut model.on_report(report));
}

/// Does what the state asked for.
fn perform(tty: &mut Tty, model: &mut Model, worker: &mut Worker, effects: Effects) -> io::Result<Option<End>> {
    for effect in effects {
        match effect {
            Effect::Submit(job) => worker.submit(job),
            Effect::Aside(side_job) => worker.aside(side_job)?,
            Effect::Study(study) => worker.study(study)?,
            Effect::Clipboard(text) => tty.copy(&text)?,
            Effect::Suspend => {
                if !comes_back() {
                    let text = "no shell with job control is here that could bring it back";
                    model.message = Some((Tone::Refused, text.into()));
                    continue;
                }
                tty.pause();
                // Stops the process here; SIGCONT lets it go on, and the loop takes the terminal back when it hears of it.
                emulate_default_handler(SIGTSTP)?;
                tty.resume()?;
                model.now = Instant::now();
            }
            Effect::Quit => return Ok(Some(End::Quit)),
        }
    }
    Ok(None)
}

/// Whether somebody could let us go on after a stop. A shell with job control gives each job a process group of its own;
/// in the group of the session's leader, as under `xterm -e plantui`, a stopped program hangs for good.
fn comes_back() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// Keys as they are pressed; an error is the last thing that comes.
fn read_keys(mut late: Late) -> io::Result<Receiver<io::Result<Event>>> {
    let (sender, receiver) = unbounded();
    thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let event = event::read();
            if event.as_ref().is_ok_and(|event| late.takes(event, Instant::now())) {
                continue;
            }
            let last = event.is_err();
            if sender.send(event).is_err() || last {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// Signals after which the terminal is restored and the program ends.
const ENDS: [i32; 13] = [
    SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGABRT, SIGALRM, SIGVTALRM, SIGXCPU, SIGXFSZ, SIGSYS, SIGTRAP,
];

fn read_signals() -> io::Result<Receiver<i32>> {
    let (sender, receiver) = unbounded();
    let mut signals = Signals::new(ENDS.into_iter().chain([SIGTSTP, SIGCONT]))?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                break;
            }
            if !matches!(signal, SIGTSTP | SIGCONT) {
                // The loop may be waiting for a terminal that takes nothing.
                thread::sleep(PATIENCE);
                drop(emulate_default_handler(signal));
            }
        }
    })?;
    Ok(receiver)
}
