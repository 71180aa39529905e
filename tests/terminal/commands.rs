//! What becomes of a command other than the screen when the window of its terminal is closed while it works.

use portable_pty::CommandBuilder;

use super::{
    endings::{after, assert_ended_by},
    session::{Session, command},
};

/// A search of minutes.
const LONG: [&str; 5] = ["inputs/bert96a100.json", "--planner", "joint", "--set", "space=any"];

/// The window is closed once the command shows that it works.
fn closed(command: CommandBuilder, working: &str) -> Session {
    let mut session = Session::start(command);
    session.wait_for(working);
    session.close_window();
    session
}

#[test]
fn a_closed_window_ends_commands_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = folder.path().join("plan.json");
    let plan = plan.to_str().expect("it is UTF-8");
    // Two stages of 64 replicas, between which every exchange takes a ring of 64 apart.
    let replicas =
        ["--planner", "piper", "--devices", "128", "--microbatches", "128", "--memory", "1TB", "--set", "stages=2"];
    let mut made = Session::plantui(&[&["plan", "inputs/tiny-branch.json", "--output", plan], &replicas[..]].concat());
    assert!(made.wait().success());
    for (arguments, working) in [
        ([&["plan"], &LONG[..]].concat(), "Joint ["),
        ([&["sweep", "--devices", "60..64"], &LONG[..]].concat(), "sweep ["),
        ([&["explain", "--each", "1h"], &LONG[..]].concat(), "Joint ["),
        (vec!["map", "inputs/tiny-branch.json", plan, "--topology", "16xdgx-h100"], "mapping "),
    ] {
        let arguments = [&arguments[..], &["--deadline", "1h"]].concat();
        assert_ended_by(&closed(command(&arguments), working).wait(), "Hangup");
    }
}

/// As `nohup` and schedulers start it.
#[test]
fn a_command_that_is_not_told_of_it_writes_its_plan_all_the_same() {
    let mut elsewhere = command(&[]);
    elsewhere.set_controlling_tty(false);
    for mut command in [after("trap '' HUP"), elsewhere] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = folder.path().join("plan.json");
        let output = plan.to_str().expect("it is UTF-8");
        command.args(["plan", "--deadline", "1s", "--output", output]);
        command.args(LONG);
        let status = closed(command, "Joint [").wait();
        // 2 where the report found no terminal, 0 where it came before that was closed.
        assert!(status.signal().is_none() && matches!(status.exit_code(), 0 | 2), "{status:?}");
        let text = std::fs::read_to_string(plan).expect("it was written");
        let document: serde_json::Value = serde_json::from_str(&text).expect("it is whole");
        assert!(document["stages"].as_array().is_some_and(|stages| !stages.is_empty()));
    }
}
