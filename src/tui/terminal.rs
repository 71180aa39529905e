//! Taking and restoring the terminal.
//!
//! ratatui's panic hook would restore the terminal even for a caught panic of a planner and damage the screen, which
//! goes on. The hook here restores only if the screen's own thread panics. It prints nothing for a planner's panic,
//! because the screen shows its message.

use std::{
    fs::File,
    io::{self, IsTerminal, Stdout, Write},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, AtomicU64, Ordering},
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

use super::{model::Model, system};
use crate::tui::frame;

/// Terminal in use by the screen.
pub(super) struct Tty {
    terminal: Drawn,
    mouse: bool,
}

/// True if there is a terminal for output and one for keys.
pub(super) fn is_there() -> bool {
    io::stdout().is_terminal() && (io::stdin().is_terminal() || File::open(system::TERMINAL).is_ok())
}

impl Tty {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Errors of the terminal; it is restored first.
    pub(super) fn take(mouse: bool) -> io::Result<Tty> {
        install_hook();
        let begun = enter(mouse).and_then(|()| Terminal::new(CrosstermBackend::new(Counted(io::stdout()))));
        match begun {
            Ok(terminal) => Ok(Tty { terminal: Drawn(Some(terminal)), mouse }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Draws a frame as one synchronized update. Returns the bytes that it took.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub(super) fn draw(&mut self, model: &mut Model) -> io::Result<u64> {
        let before = WRITTEN.load(Ordering::Relaxed);
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(|frame| frame::show(frame, model));
        drawn.and(execute!(io::stdout(), EndSynchronizedUpdate))?;
        Ok(WRITTEN.load(Ordering::Relaxed) - before)
    }

    /// Restores the terminal until [`Tty::resume`].
    pub(super) fn pause(&self) {
        leave();
    }

    /// Takes the terminal again, as after the shell's `fg`, and redraws everything.
    ///
    /// # Errors
    /// If the terminal cannot be taken.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        // Another program may have turned raw mode off, while crossterm assumes that it is still on.
        disable_raw_mode()?;
        enter(self.mouse)?;
        // A new one redraws everything. `Terminal::clear` would query the cursor's position, and the reply would be
        // lost among the keys being read.
        self.terminal = Drawn(Some(Terminal::new(CrosstermBackend::new(Counted(io::stdout())))?));
        execute!(io::stdout(), Clear(ClearType::All))
    }

    /// Copies text to the clipboard of the terminal (OSC 52), which works over SSH.
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

/// ratatui's terminal. Its `Drop` prints to standard error if it cannot show the cursor, and panics if that fails too.
/// So an unwritable terminal is forgotten instead of dropped.
struct Drawn(Option<Terminal<CrosstermBackend<Counted>>>);

/// Standard output that counts what is drawn.
struct Counted(Stdout);

/// Bytes drawn so far.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        WRITTEN.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

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

/// Presses, the wheel, and motion with a button down, in SGR encoding. Plain motion (1003) stays off, because every
/// movement would cost traffic.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";

/// True while the terminal is taken. Restoring it twice would move the cursor over later output, such as a panic's
/// message.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn enter(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    // Pasted text must be one event: as keys it would quit at the first q.
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    if mouse {
        execute!(io::stdout(), Print(MOUSE_ON))?;
    }
    Ok(())
}

/// Restores the terminal. Every step is tried, and errors are ignored: a lost terminal refuses all of them.
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
