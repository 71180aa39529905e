//! What a bug leaves behind: the screen as it was, or a terminal given back and a report.

use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use plantui::{
    planner::{Declaration, Outcome, Planner, PlannerInfo, Problem, Search, Status},
    tui::ScreenRequest,
};
use portable_pty::CommandBuilder;

use super::session::Session;

/// Panics on the planning thread.
struct FallsOver;
/// Once it was asked to plan, everything that draws its name panics.
struct BreaksTheScreen;

static BROKEN: AtomicBool = AtomicBool::new(false);

impl Planner for FallsOver {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = declared("falls-over", "Falls over");
        &DECLARATION
    }

    fn plan(&self, _: &Problem, _: &Search) -> Outcome {
        panic!("a planner fell over on purpose")
    }
}

impl Planner for BreaksTheScreen {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = declared("breaks", "Breaks the screen");
        assert!(!BROKEN.load(Ordering::Relaxed), "the screen broke on purpose");
        &DECLARATION
    }

    fn plan(&self, _: &Problem, _: &Search) -> Outcome {
        BROKEN.store(true, Ordering::Relaxed);
        Outcome::new(Status::Cancelled)
    }
}

const fn declared(id: &'static str, name: &'static str) -> Declaration {
    let info = PlannerInfo { id, name, paper: "none", summary: "breaks", objective: "time_per_sample", unit: "s" };
    Declaration { info, ..Declaration::NEW }
}

static PLANNERS: [&dyn Planner; 2] = [&FallsOver, &BreaksTheScreen];

/// Not a test of its own: the program that the two tests below start in a terminal, this very file's executable.
#[test]
#[ignore = "a screen with broken planners, started by other tests in a terminal"]
fn screen_with_broken_planners() {
    let workload = Arc::new(plantui::workload::builtin());
    let mut request = ScreenRequest::new(workload);
    request.planners = &PLANNERS;
    request.planner = PLANNERS[0].info().id.into();
    // The session of the test sets it.
    request.state_directory =
        std::env::var_os("XDG_STATE_HOME").map(|folder| std::path::Path::new(&folder).join("plantui"));
    plantui::tui::run(request).expect("there is a terminal");
}

fn broken_session() -> Session {
    let mut command = CommandBuilder::new(std::env::current_exe().expect("this test has a file"));
    command.args(["bugs::screen_with_broken_planners", "--exact", "--ignored", "--nocapture"]);
    Session::start(command)
}

#[test]
fn a_panic_in_a_planner_leaves_the_screen_whole() {
    let mut session = broken_session();
    session.wait_for("a planner fell over on purpose");
    assert!(session.received.lock().unwrap().parser.screen().alternate_screen());
    session.send("7");
    session.wait_for("37 layers     67 edges");
    session.send("q");
    assert!(session.wait().success());
    session.assert_given_back();
    assert!(!session.text().contains("panicked at"), "{}", session.text());
}

#[test]
fn a_panic_in_the_screen_gives_the_terminal_back_and_is_told() {
    let mut session = broken_session();
    session.wait_for("a planner fell over on purpose");
    // From the first limit up to the second planner.
    session.send("\x1b[A");
    session.send("\r");
    // The code of a test that failed.
    assert_eq!((session.wait().exit_code(), session.wait().signal()), (101, None));
    session.assert_given_back();
    assert!(session.text().contains("the screen broke on purpose"), "{}", session.text());
    // What broke it would break it again.
    assert_eq!(session.kept(), "");
}

/// Not a test of its own: the program that the tests below start.
#[test]
#[ignore = "a bug, started by other tests"]
fn a_bug() {
    super::program::report_bugs();
    panic!("this bug is on purpose{}", std::env::var(QUOTED).unwrap_or_default());
}

/// What the bug quotes of a stranger's.
const QUOTED: &str = "PLANTUI_TEST_QUOTED";

fn bug(command: &mut Command) -> &mut Command {
    command.args(["--exact", "bugs::a_bug", "--ignored", "--nocapture", "--color=never"]).env("RUST_BACKTRACE", "0")
}

#[test]
fn a_report_of_a_bug_has_colours_on_a_terminal_alone() {
    let program = std::env::current_exe().expect("this test has a file");
    let piped = bug(&mut Command::new(&program)).output().expect("it starts");
    let told = String::from_utf8_lossy(&piped.stderr);
    assert!(told.contains("this bug is on purpose") && !told.contains('\x1b'), "{told:?}");
    for (no_color, coloured) in [("", true), ("1", false)] {
        let mut command = CommandBuilder::new(&program);
        command.args(["--exact", "bugs::a_bug", "--ignored", "--nocapture", "--color=never"]);
        command.env("NO_COLOR", no_color);
        let mut session = Session::start(command);
        session.wait_for("this bug is on purpose");
        session.wait();
        let raw = String::from_utf8_lossy(&session.received.lock().unwrap().raw).into_owned();
        assert_eq!(raw.contains("\x1b["), coloured, "{raw:?}");
    }
}

#[test]
fn a_report_of_a_bug_shows_what_a_terminal_would_obey() {
    let mut command = CommandBuilder::new(std::env::current_exe().expect("this test has a file"));
    command.args(["--exact", "bugs::a_bug", "--ignored", "--nocapture", "--color=never"]);
    command.env(QUOTED, "\u{1b}]0;owned\u{7}");
    let mut session = Session::start(command);
    session.wait_for("this bug is on purpose\\u001b]0;owned\\u0007");
    session.wait();
    let raw = String::from_utf8_lossy(&session.received.lock().unwrap().raw).into_owned();
    assert!(!raw.contains("\u{1b}]0;owned"), "{raw:?}");
}

#[test]
fn a_bug_that_nobody_can_be_told_of_is_no_abort() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("there is such a device");
    let program = std::env::current_exe().expect("this test has a file");
    let status = bug(&mut Command::new(program)).stderr(full).stdout(Stdio::null()).status().expect("it starts");
    assert_eq!(status.code(), Some(101), "{status:?}");
}
