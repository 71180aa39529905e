//! Taking the terminal and giving it back, whatever happens.
//!
//! ratatui's own panic hook would restore the terminal even for a planner's panic that is caught, and wreck the screen
//! that goes on. The hook here restores only when the screen's own thread panics; a planner's panic is kept quiet,
//! because the screen shows what it said.

use std::{
    fs::File,
    io::{self, IsTerminal, Stdout, Write},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{DisableBracketedPaste, EnableBracketedPaste},
        execute,
        style::Print,
        terminal::{
            BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
            LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        },
    },
};

use super::{hangup, model::Model};
use crate::tui::frame;

/// The terminal while the screen has it.
pub(super) struct Tty {
    terminal: Drawn,
    mouse: bool,
}

/// Whether there is a terminal to draw on, and one that keys come from.
pub(super) fn is_there() -> bool {
    io::stdout().is_terminal() && (io::stdin().is_terminal() || File::open(hangup::TERMINAL).is_ok())
}

impl Tty {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Whatever the terminal says; it is given back first.
    pub(super) fn take(mouse: bool) -> io::Result<Tty> {
        install_hook();
        let begun = enter(mouse).and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match begun {
            Ok(terminal) => Ok(Tty { terminal: Drawn(Some(terminal)), mouse }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Draws a frame; the terminal shows it at once or not at all.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(|frame| frame::show(frame, model));
        drawn.and(execute!(io::stdout(), EndSynchronizedUpdate))
    }

    /// Gives the terminal back until [`Tty::resume`].
    pub(super) fn pause(&self) {
        leave();
    }

    /// Takes the terminal again, as after the shell's `fg`; everything is drawn anew.
    ///
    /// # Errors
    /// If the terminal cannot be taken.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        // Raw mode may have been undone behind our back: crossterm would think that it is still on.
        disable_raw_mode()?;
        enter(self.mouse)?;
        // A new one has nothing drawn yet. `Terminal::clear` would ask for the cursor's place, and the answer would be
        // lost among the keys that are being read.
        self.terminal = Drawn(Some(Terminal::new(CrosstermBackend::new(io::stdout()))?));
        execute!(io::stdout(), Clear(ClearType::All))
    }

    /// Puts a text into the clipboard of the terminal (OSC 52), which works over SSH.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn copy(&self, text: &str) -> io::Result<()> {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        let mut out = io::stdout();
        write!(out, "\x1b]52;c;{encoded}\x07")?;
        out.flush()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        leave();
    }
}

/// ratatui's terminal, which says on standard error, when it is dropped, that it cannot show the cursor. Where that is gone
/// as well this panics, so a terminal that takes nothing is forgotten and not dropped.
struct Drawn(Option<Terminal<CrosstermBackend<Stdout>>>);

impl Drawn {
    fn draw(&mut self, content: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |terminal| terminal.draw(content).map(drop))
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        if let Some(mut terminal) = self.0.take()
            && terminal.show_cursor().is_err()
        {
            std::mem::forget(terminal);
        }
    }
}

/// Presses, the wheel, and motion while a button is down, as SGR tells them. Mere motion (1003) is not asked for: every
/// movement of the hand would cross the wire for nothing.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";

/// Whether the terminal is ours. Giving it back twice would move the cursor back over what was printed meanwhile, such
/// as a panic's message.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn enter(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    // What is pasted comes as one event: as keys it would quit at the first q.
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    if mouse {
        execute!(io::stdout(), Print(MOUSE_ON))?;
    }
    Ok(())
}

/// Gives the terminal back. Each step is tried: a terminal that is gone refuses all of them, and that is no error.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    drop(execute!(out, EndSynchronizedUpdate, Print(MOUSE_OFF), DisableBracketedPaste));
    drop(execute!(out, LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
}

/// Installs the panic hook for the calling thread, once.
fn install_hook() {
    static ONCE: Once = Once::new();
    let screen: ThreadId = thread::current().id();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == screen {
                leave();
                usual(info);
            }
        }));
    });
}
