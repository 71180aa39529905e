//! Starting, using and leaving the screen.

use std::time::Duration;

use portable_pty::CommandBuilder;

use super::session::{Session, command};

#[test]
fn it_starts_with_a_plan_and_quits() {
    let mut session = Session::plantui(&[]);
    session.wait_for("≈ within");
    session.wait_until("the alternate screen", vt100::Screen::alternate_screen);
    assert!(session.text().contains("bert32a100"), "{}", session.text());
    session.send("q");
    assert!(session.wait().success());
    session.assert_given_back();
}

#[test]
fn control_c_quits() {
    let mut session = Session::plantui(&["inputs/tiny-branch.json"]);
    session.wait_for("≈ within");
    session.send("\x03");
    assert!(session.wait().success());
    session.assert_given_back();
}

#[test]
fn keys_reach_the_planner() {
    let mut session = Session::plantui(&["--devices", "8"]);
    session.wait_for("of 8 devices");
    session.send("\x1b[1;2C");
    session.wait_for("of 16 devices");
    session.send("4");
    session.wait_for("1F1B");
    session.send("q");
    assert!(session.wait().success());
}

#[test]
fn it_follows_a_resize() {
    let mut session = Session::plantui(&[]);
    session.wait_for("Options");
    session.send("\t");
    session.resize(80, 24);
    session.wait_until("a folded panel", |s| {
        s.contents().contains("64 devices · 8 GiB") && !s.contents().contains("Options")
    });
    session.resize(20, 3);
    session.wait_for("plantui needs");
    session.resize(140, 40);
    session.wait_for("Options");
    session.send("q");
    assert!(session.wait().success());
}

#[test]
fn a_key_is_not_lost_while_the_window_changes() {
    let mut session = Session::plantui(&[]);
    session.wait_for("Options");
    session.wait_for("≈ within");
    for turn in 0..60 {
        // The panel folds where the layout or the view has the keys, and opens where it has them itself.
        let (folded, columns) = (turn % 3 != 2, 80 + turn % 2);
        session.resize(columns, 24);
        session.send("\t");
        session.wait_until("the panel as the key has it", |s| s.contents().contains("Options") != folded);
    }
    session.send("q");
    assert!(session.wait().success());
}

#[test]
fn a_workload_comes_through_standard_input() {
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", "cat inputs/tiny-branch.json | \"$0\" -", env!("CARGO_BIN_EXE_plantui")]);
    let mut session = Session::start(command);
    session.wait_for("6 layers");
    session.send("q");
    assert!(session.wait().success());
    session.assert_given_back();
}

#[test]
fn without_colour_there_is_none() {
    let mut command = command(&[]);
    command.env("NO_COLOR", "1");
    let mut session = Session::start(command);
    session.wait_for("≈ within");
    session.send("q");
    assert!(session.wait().success());
    let raw = String::from_utf8_lossy(&session.received.lock().unwrap().raw).into_owned();
    for sequence in ["\x1b[38;", "\x1b[48;", ";38;", ";48;"] {
        assert!(!raw.contains(sequence), "{sequence:?}");
    }
}

#[test]
fn a_pasted_text_is_typed_and_never_taken_for_keys() {
    let mut session = Session::plantui(&["inputs/tiny-branch.json"]);
    session.wait_for("of 4 devices");
    session.wait_until("bracketed paste", vt100::Screen::bracketed_paste);
    let paste = |text: &str| format!("\x1b[200~{text}\x1b[201~");
    // As keys it would quit, or change a limit.
    session.send(&paste(&"quit lll\n".repeat(2000)));
    session.wait_for("the pasted text is ignored");
    session.send("\r");
    session.send(&paste("\x0512\n"));
    session.send("\r");
    session.wait_for("of 12 devices");
    session.send("?");
    session.wait_for("type to search");
    session.send(&paste("fold\nall"));
    session.wait_for("> fold all");
    session.send("\x1b");
    // Escape and a letter in one go would be the letter with Alt.
    session.wait_until("the keys are closed", |screen| !screen.contents().contains("> fold all"));
    session.send("q");
    assert!(session.wait().success());
    session.assert_given_back();
}

#[test]
fn a_watched_file_that_is_moved_into_place_is_planned_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, new] = ["model.json", "new.json"].map(|name| folder.path().join(name));
    let text = std::fs::read_to_string("inputs/tiny-branch.json").expect("it is there");
    std::fs::write(&file, &text).expect("the temporary folder takes files");
    let mut session = Session::plantui(&[file.to_str().expect("it is UTF-8"), "--watch"]);
    session.wait_for("of 4 devices");
    // The first look must have been taken before there is a change to see.
    std::thread::sleep(Duration::from_millis(700));
    std::fs::write(&new, text.replacen("\"maxDevices\": 4", "\"maxDevices\": 3", 1)).unwrap();
    std::fs::rename(&new, &file).unwrap();
    session.wait_for("of 3 devices");
    session.send("q");
    assert!(session.wait().success());
}

#[test]
fn the_last_session_comes_back_unless_asked_otherwise() {
    let state = tempfile::tempdir().expect("a temporary folder");
    let start = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("XDG_STATE_HOME", state.path());
        Session::start(command)
    };
    let mut session = start(&["inputs/tiny-branch.json"]);
    session.wait_for("of 4 devices");
    session.send("\x1b[C");
    session.wait_for("of 5 devices");
    session.send("q");
    assert!(session.wait().success());
    for (arguments, devices) in [(&[][..], "of 5 devices"), (&["--fresh"], "of 4 devices")] {
        let mut session = start(&[&["inputs/tiny-branch.json"], arguments].concat());
        session.wait_for(devices);
        // Left by a signal, nothing is lost either.
        session.signal("KILL");
        session.wait();
    }
}
