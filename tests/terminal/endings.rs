//! However it ends, the terminal is given back and the session is kept.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, ExitStatus};

use super::session::{PATIENCE, Session, command};

/// The program under a shell that does this first.
pub(super) fn after(shell: &str) -> CommandBuilder {
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_plantui")]);
    command
}

/// The program with one limit changed, which its session keeps.
fn changed(command: CommandBuilder) -> Session {
    let mut session = Session::start(command);
    session.wait_for("of 64 devices");
    session.send("\x1b[C");
    session.wait_for("of 65 devices");
    assert!(!session.kept().contains("\"65\""));
    session
}

pub(super) fn assert_ended_by(status: &ExitStatus, signal: &str) {
    // Whether a core was dumped is the system's choice.
    assert!(status.signal().is_some_and(|name| name.starts_with(signal)), "{status:?} is not {signal}");
}

#[test]
fn a_signal_gives_the_terminal_back_and_keeps_the_session() {
    let ends = [
        ("TERM", "Terminated"),
        ("HUP", "Hangup"),
        ("INT", "Interrupt"),
        ("QUIT", "Quit"),
        ("USR1", "User defined signal 1"),
        ("USR2", "User defined signal 2"),
        ("ABRT", "Aborted"),
        ("ALRM", "Alarm clock"),
    ];
    for (name, told) in ends {
        let mut session = changed(after("ulimit -c 0"));
        session.signal(name);
        assert_ended_by(&session.wait(), told);
        session.assert_given_back();
        assert!(session.kept().contains("\"65\""), "{name}: {}", session.kept());
    }
}

/// Closes the window a few times.
fn closed(command: &CommandBuilder) {
    for _ in 0..3 {
        let mut session = changed(command.clone());
        session.close_window();
        assert_ended_by(&session.wait(), "Hangup");
        assert!(session.kept().contains("\"65\""), "{}", session.kept());
    }
}

#[test]
fn a_closed_window_ends_it_and_keeps_the_session() {
    closed(&command(&[]));
}

#[test]
fn a_closed_window_ends_what_ignores_the_signal() {
    closed(&after("trap '' HUP"));
}

#[test]
fn a_closed_window_ends_what_it_does_not_control() {
    let mut command = command(&[]);
    command.set_controlling_tty(false);
    closed(&command);
}

#[test]
fn a_window_that_is_closed_while_it_is_stopped_ends_it() {
    let mut session = changed(command(&[]));
    session.signal("STOP");
    session.deaf.store(true, Ordering::Relaxed);
    // Echoed by nobody, so the terminal itself has to speak for its reader to let go.
    session.signal("CONT");
    session.close_window();
    assert_ended_by(&session.wait(), "Hangup");
    assert!(session.kept().contains("\"65\""), "{}", session.kept());
}

#[test]
fn a_terminal_that_takes_nothing_cannot_hold_it() {
    let mut session = changed(command(&[]));
    session.deaf.store(true, Ordering::Relaxed);
    // More than a terminal keeps for whom nobody reads.
    for key in ["3", "4", "7", "2"].iter().cycle().take(120) {
        session.send(key);
        std::thread::sleep(Duration::from_millis(40));
    }
    session.signal("TERM");
    assert_ended_by(&session.wait(), "Terminated");
}

#[test]
fn where_no_shell_could_bring_it_back_it_does_not_stop() {
    let mut session = changed(command(&[]));
    for by_key in [true, false] {
        if by_key {
            session.send("\x1a");
        } else {
            session.signal("TSTP");
        }
        session.wait_for("no shell with job control");
        session.send("?");
        session.wait_for("type to search");
        session.send("\x1b");
        session.wait_until("the screen without help", |screen| !screen.contents().contains("type to search"));
    }
    session.send("q");
    assert!(session.wait().success());
}

#[test]
fn it_comes_back_after_being_held() {
    let mut session = changed(command(&[]));
    session.signal("STOP");
    session.send("3");
    session.signal("CONT");
    session.wait_for("time against the slowest");
    session.send("q");
    assert!(session.wait().success());
    session.assert_given_back();
}

/// State of a process as the kernel tells it: `T` is stopped.
#[cfg(target_os = "linux")]
fn state(id: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

/// The one child of a process.
#[cfg(target_os = "linux")]
fn child_of(id: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("the kernel tells");
    children.trim().parse().expect("there is one")
}

#[cfg(target_os = "linux")]
#[test]
fn control_z_stops_it_and_it_comes_back() {
    let mut shell = CommandBuilder::new("sh");
    let script = "set -m; \"$0\"; echo first; read go; fg; echo second; read go; fg";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_plantui")]);
    let mut session = changed(shell);
    let program = child_of(session.child.process_id().expect("it runs"));
    for (by_key, round) in [(true, "first"), (false, "second")] {
        if by_key {
            session.send("\x1a");
        } else {
            session.signal_to("TSTP", program);
        }
        session.wait_for(round);
        session.assert_given_back();
        let start = Instant::now();
        while state(program) != Some('T') {
            assert!(start.elapsed() < PATIENCE, "it does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
        session.send("\n");
        session.wait_until("the screen again", |s| s.alternate_screen() && s.contents().contains("of 65 devices"));
    }
    session.send("3");
    session.wait_for("time against the slowest");
    session.send("q");
    assert!(session.wait().success());
    session.assert_given_back();
}
