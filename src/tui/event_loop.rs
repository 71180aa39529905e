//! Event loop: wait, update, draw, no more often than needed.
//!
//! The loop sleeps on channels: keys (read by their own thread), reports of the worker, signals, a closed terminal. It
//! takes an event with all others that are pending, then draws one frame, at most thirty a second. During planning a
//! tick shows progress. Otherwise nothing wakes the loop, and it uses no processor time.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, never, select, unbounded};
use ratatui::crossterm::event::{self, Event};

use super::{
    background::Late,
    effect::{Effect, Effects},
    model::{Model, Tone},
    system::{self, Signal},
    terminal::Tty,
    watch::{Noticed, Watch},
    worker::{Report, Worker},
};

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// Reason why the loop ended.
pub(super) enum End {
    /// The user quit.
    Quit,
    /// A signal ended it.
    Signal(i32),
    /// The terminal is gone.
    TerminalGone,
}

/// Runs the screen until it ends.
///
/// # Errors
/// If threads or signal handlers cannot be created, or the terminal fails.
// Long on purpose: all event sources are in one place, so that their order is visible.
pub(super) fn run(tty: &mut Tty, model: &mut Model, late: Late) -> io::Result<End> {
    let mut worker = Worker::start()?;
    let keys = read_keys(late)?;
    let signals = system::signals()?;
    let mut closed = system::hangups()?;
    let reports = worker.reports().clone();
    let watch = model.session.watch.then(Watch::start).transpose()?;
    let changes = watch.as_ref().map_or_else(never, |watch| watch.changes().clone());
    let first = model.replan();
    if let Some(end) = perform(tty, model, &mut worker, first)? {
        return Ok(end);
    }
    let mut dirty = true;
    // Size of the last frame.
    let mut bytes = 0;
    let mut drawn = Instant::now().checked_sub(FRAME).unwrap_or_else(Instant::now);
    loop {
        if let Some(watch) = &watch {
            watch.follow(model.session.watched());
        }
        model.appearance.now = Instant::now();
        let due = drawn + model.planning.frame(FRAME, model.appearance.now, bytes);
        if dirty && model.appearance.now >= due {
            model.run_playhead();
            let effects = model.sample();
            if let Some(end) = perform(tty, model, &mut worker, effects)? {
                return Ok(end);
            }
            bytes = tty.draw(model)?;
            drawn = model.appearance.now;
            dirty = false;
        }
        let timer = if dirty {
            crossbeam_channel::at(due)
        } else if model.planning.running.is_some() {
            crossbeam_channel::after(FRAME)
        } else if let Some(due) =
            model.planning.would_help.due().into_iter().chain(model.demo_due()).chain(model.motion_due()).min()
        {
            crossbeam_channel::at(due)
        } else {
            never()
        };
        let mut effects = vec![];
        select! {
            recv(keys) -> event => match event {
                Ok(event) => {
                    model.appearance.now = Instant::now();
                    effects.append(&mut model.on_event(&event?));
                    // Take all pending events before the next frame; effects keep their order.
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
                match changed.ok().filter(|(path, _)| model.session.watched().as_ref() == Some(path)) {
                    Some((_, Noticed::Changed)) => effects.append(&mut model.reload()),
                    Some((_, Noticed::Gone)) => {
                        model.file_is_gone();
                        dirty = true;
                    }
                    None => {}
                }
            }
            recv(signals) -> signal => match signal {
                Ok(Signal::Suspend) => {
                    effects.push(Effect::Suspend);
                    dirty = true;
                }
                Ok(Signal::Resume) => {
                    tty.resume()?;
                    dirty = true;
                }
                Ok(Signal::End(signal)) => return Ok(End::Signal(signal)),
                Err(_) => {}
            },
            recv(closed) -> told => match told {
                Ok(()) => return Ok(End::TerminalGone),
                // No hangup detection is possible; a later write will fail instead.
                Err(_) => closed = never(),
            },
            recv(timer) -> _ => {
                let moves = model.motion_due().is_some_and(|due| due <= Instant::now());
                dirty |= model.planning.running.is_some() || model.planning.would_help.due().is_some() || moves;
            }
        }
        model.appearance.now = Instant::now();
        if model.demo_due().is_some_and(|due| due <= model.appearance.now) {
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

/// Performs effects in order.
fn perform(tty: &mut Tty, model: &mut Model, worker: &mut Worker, effects: Effects) -> io::Result<Option<End>> {
    for effect in effects {
        match effect {
            Effect::Submit(job) => worker.submit(job),
            Effect::Aside(side_job) => worker.aside(side_job)?,
            Effect::Study(study) => worker.study(study)?,
            Effect::Clipboard(text) => tty.copy(&text)?,
            Effect::Suspend => {
                if !system::stops_usefully() {
                    let text = "there is no shell with job control to bring it back";
                    model.message = Some((Tone::Refused, text.into()));
                    continue;
                }
                tty.pause();
                // The process stops here. When it is resumed, the loop takes the terminal back.
                system::stop_here()?;
                tty.resume()?;
                model.appearance.now = Instant::now();
            }
            Effect::Quit => return Ok(Some(End::Quit)),
        }
    }
    Ok(None)
}

/// Channel of key events; an error is the last message.
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
