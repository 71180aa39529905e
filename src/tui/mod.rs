//! The screen.
//!
//! `model` holds the shared state, and `action` the one table of user actions for keys, help and palette. `update`
//! changes the state, with a file per subject. Types that the state holds, such as `edits` or `would_help`, import
//! neither. `worker` is the planning thread. `event_loop` and `terminal` connect everything to a terminal. Each view
//! has a folder in `views`. `paint` holds drawing that several views share, `frame` the parts around them (header, tabs,
//! left panel, bottom line, overlays), `theme` the colours. State and views do not depend on a terminal: [`Offscreen`]
//! runs the same screen into a buffer, for tests and pictures.

pub(crate) mod action;
mod ask_form;
mod background;
mod changes;
mod convergence;
mod demo;
mod edits;
mod effect;
mod event_loop;
mod export_form;
mod files;
mod folder;
mod frame;
pub mod gallery;
mod inks;
pub(crate) mod keymap;
mod layout_bar;
mod marks;
mod model;
mod names;
mod offscreen;
mod open_form;
mod overlay;
mod paint;
mod palette;
mod panel_rows;
mod picture;
mod place;
mod playing;
mod readable;
mod recent;
mod remedies;
mod request;
mod schedule_editor;
mod schedule_list;
mod shown;
mod side_job;
mod simulated;
mod stored_session;
mod studies;
mod study_job;
mod svg;
mod system;
mod terminal;
pub mod theme;
mod tour;
mod tour_of_model;
mod turned;
mod update;
mod views;
mod watch;
mod widget;
mod worker;
mod would_help;

use std::time::Instant;

use crate::notice;

use background::Late;
use event_loop::End;

pub use action::Action;
pub use keymap::Keymap;
pub use offscreen::Offscreen;
pub use picture::{film, screenshots};
pub use place::Focus;
pub use request::{ScreenError, ScreenRequest};
pub use theme::Depth;
pub use views::list::View;

/// True if there is a terminal to show the screen on.
pub fn terminal_is_there() -> bool {
    terminal::is_there()
}

/// Shows the screen until the user quits. A terminating signal first restores the terminal and then ends the program as
/// it would have; loss of the terminal acts as SIGHUP. The session is stored except after a panic.
///
/// # Errors
/// [`ScreenError`]; the terminal is restored.
pub fn run(request: ScreenRequest) -> Result<(), ScreenError> {
    if !terminal_is_there() {
        return Err(ScreenError::NoTerminal);
    }
    let mouse = request.mouse;
    let mut request = request;
    let mut late = Late::new(true, Instant::now());
    if request.theme == background::AUTO {
        let (theme, answered) = background::theme(|name| std::env::var(name).ok());
        request.theme = theme.into();
        late = Late::new(answered, Instant::now());
    }
    let mut model = model::Model::new(request)?;
    if let Ok(size) = ratatui::crossterm::terminal::size() {
        model.start_at(size);
    }
    let mut tty = terminal::Tty::take(mouse)?;
    let end = event_loop::run(&mut tty, &mut model, late);
    drop(tty);
    if let Err(why) = model.keep_session() {
        notice::note(&why);
    }
    match end {
        Ok(End::Quit) => {}
        Ok(End::Signal(signal)) => system::end_as(signal)?,
        // End as the system would, however the loss was detected.
        Ok(End::TerminalGone) => system::end_as_hangup()?,
        Err(error) if system::is_loss(&error) => system::end_as_hangup()?,
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
