//! A program in a pseudo-terminal of its own, as a test drives it.

use std::{
    io::{Read, Write},
    num::NonZero,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Long enough for a busy machine; nothing waits that long when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the terminal has received.
pub(crate) struct Received {
    pub(crate) parser: vt100::Parser,
    pub(crate) raw: Vec<u8>,
}

/// A program in a terminal of its own.
pub(crate) struct Session {
    pub(crate) master: Option<Box<dyn MasterPty + Send>>,
    keys: Option<Box<dyn Write + Send>>,
    pub(crate) child: Box<dyn Child + Send + Sync>,
    pub(crate) received: Arc<Mutex<Received>>,
    /// Once set, the terminal reads no more than what comes next.
    pub(crate) deaf: Arc<AtomicBool>,
    home: tempfile::TempDir,
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a terminal has cells")
}

impl Session {
    pub(crate) fn start(mut command: CommandBuilder) -> Session {
        for variable in ["COLORTERM", "LC_ALL", "LC_CTYPE"] {
            command.env_remove(variable);
        }
        // Whoever runs the tests has settings of their own.
        for variable in ["PLANTUI_CONFIG", "XDG_CONFIG_HOME"] {
            command.env(variable, "");
        }
        let home = tempfile::tempdir().expect("a temporary folder");
        command.env("HOME", home.path());
        if command.get_env("XDG_STATE_HOME").is_none() {
            command.env("XDG_STATE_HOME", home.path());
        }
        command.env("RUST_BACKTRACE", "0");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.cwd(env!("CARGO_MANIFEST_DIR"));
        let pair = native_pty_system().openpty(size(120, 36)).expect("there are pseudo-terminals");
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let received =
            Arc::new(Mutex::new(Received { parser: vt100::Parser::new(cells(36), cells(120), 0), raw: vec![] }));
        let mut reader = pair.master.try_clone_reader().expect("the terminal can be read");
        let sink = received.clone();
        let deaf = Arc::new(AtomicBool::new(false));
        let hung_up = deaf.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                let mut received = sink.lock().unwrap();
                received.parser.process(&buffer[..count]);
                received.raw.extend_from_slice(&buffer[..count]);
                if hung_up.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let keys = pair.master.take_writer().expect("the terminal can be written to");
        Session { master: Some(pair.master), keys: Some(keys), child, received, deaf, home }
    }

    /// The program with arguments.
    pub(crate) fn plantui(arguments: &[&str]) -> Session {
        Session::start(command(arguments))
    }

    pub(crate) fn send(&mut self, keys: &str) {
        let writer = self.keys.as_mut().expect("the terminal is open");
        writer.write_all(keys.as_bytes()).and_then(|()| writer.flush()).expect("the program listens");
    }

    /// Gives the terminal's window another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.received.lock().unwrap().parser.screen_mut().set_size(cells(rows), cells(columns));
        self.master.as_ref().expect("the terminal is open").resize(size(columns, rows)).expect("it can be resized");
    }

    pub(crate) fn text(&self) -> String {
        self.received.lock().unwrap().parser.screen().contents()
    }

    /// Waits until the screen shows a text.
    pub(crate) fn wait_for(&self, needle: &str) {
        self.wait_until(needle, |screen| screen.contents().contains(needle));
    }

    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        while !holds(self.received.lock().unwrap().parser.screen()) {
            assert!(start.elapsed() < PATIENCE, "waited for `{what}` in vain:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        self.signal_to(name, self.child.process_id().expect("it runs"));
    }

    pub(crate) fn signal_to(&self, name: &str, id: u32) {
        let id = id.to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("there is a kill command").success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                // What it wrote last may still be on its way.
                std::thread::sleep(Duration::from_millis(100));
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes the terminal's window, with the program in it.
    pub(crate) fn close_window(&mut self) {
        // The reader holds the terminal too, and lets go of it after the next thing it reads.
        self.deaf.store(true, Ordering::Relaxed);
        self.send("3");
        self.keys = None;
        self.master = None;
    }

    /// What the program keeps of its sessions.
    pub(crate) fn kept(&self) -> String {
        std::fs::read_to_string(self.home.path().join("plantui/sessions.json")).unwrap_or_default()
    }

    /// The terminal is as it was: main screen, cursor to be seen, no mouse, pastes as they come.
    pub(crate) fn assert_given_back(&self) {
        self.wait_until("the main screen", |screen| {
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A test that failed must not leave its program behind.
        drop(self.child.kill());
    }
}

pub(crate) fn command(arguments: &[&str]) -> CommandBuilder {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_plantui"));
    command.args(arguments);
    command
}
