//! Where results go: files that appear whole, nothing replaced unasked, and pipes that close early.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
    time::Duration,
};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use crate::{Folder, TINY, argument, json, plantui, refusal, stdout};

fn parsed(path: &std::path::Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn output_writes_the_plan_and_prints_the_table() {
    let folder = Folder::new();
    let path = argument(&folder.path("plan.json"));
    let table = stdout(&["plan", TINY, "--output", &path], 0);
    assert!(table.contains("limited by stage"), "{table}");
    assert_eq!(parsed(&folder.path("plan.json"))["schema"], "plantui.plan/1");
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_file_that_is_there_stays_unless_forced() {
    let folder = Folder::new();
    let path = folder.file("plan.json", "precious");
    let error = refusal(&["plan", TINY, "--output", &path]);
    assert!(error.contains("exists already") && error.contains("--force"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    stdout(&["plan", TINY, "--output", &path, "--force"], 0);
    assert_eq!(parsed(&folder.path("plan.json"))["schema"], "plantui.plan/1");
    assert!(refusal(&["plan", TINY, "--force"]).contains("--output"));
    let missing = argument(&folder.path("no/plan.json"));
    assert!(refusal(&["plan", TINY, "--output", &missing]).contains("directory does not exist"));
    assert!(refusal(&["plan", TINY, "--output", &argument(&folder.path(""))]).contains("is a directory"));
}

#[test]
fn formats_go_to_standard_output_or_to_a_file() {
    let piper = json(&["plan", TINY, "--format", "piper-result"], 0);
    assert!(piper["stages"][0]["TMPCids"].is_object(), "{piper}");
    let trace = json(&["plan", TINY, "--output", "-", "--format", "chrome-trace"], 0);
    assert!(trace["traceEvents"].as_array().is_some_and(|events| !events.is_empty()));
    let folder = Folder::new();
    let path = argument(&folder.path("trace.json"));
    let plan = json(&["plan", TINY, "--json", "--format", "chrome-trace", "--output", &path], 0);
    assert_eq!(plan["schema"], "plantui.plan/1");
    assert!(parsed(&folder.path("trace.json"))["traceEvents"].is_array());
    let error = refusal(&["plan", TINY, "--json", "--format", "piper-result"]);
    assert!(error.contains("both write to standard output"), "{error}");
}

#[test]
fn without_a_plan_only_the_plan_json_is_written() {
    let folder = Folder::new();
    for (format, written) in [("plan-json", true), ("piper-result", false), ("chrome-trace", false)] {
        let path = folder.path(format);
        stdout(&["plan", TINY, "--devices=1", "--format", format, "--output", &argument(&path)], 1);
        assert_eq!(path.exists(), written, "{format}");
    }
    plantui().args(["plan", TINY, "--devices=1", "--format=piper-result"]).assert().code(1).stdout("");
}

#[test]
fn a_reader_that_leaves_is_success() {
    for arguments in [&["plan", TINY][..], &["man"], &["completions", "bash"], &["planners", "--json"], &["--help"]] {
        let mut child = Command::new(cargo_bin("plantui"))
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {error}");
        assert_eq!(error, "", "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_standard_output_that_is_closed_is_refused() {
    for arguments in [&["plan", TINY][..], &["plan", TINY, "--json"], &["--help"], &["planners"]] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(cargo_bin("plantui")).args(arguments);
        let done = shell.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        let told = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.starts_with("error: standard output is closed"), "{arguments:?}: {told}");
    }
}

#[test]
fn a_document_that_goes_to_a_file_is_not_printed_as_well() {
    let folder = Folder::new();
    let (file, other) = (argument(&folder.path("plan.json")), argument(&folder.path("trace.json")));
    let told = stdout(&["plan", TINY, "--json", "--output", &file], 0);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with(&file) && told.contains("/iteration, 2 stages on 4 of 4 devices"), "{told}");
    let written: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["schema"], "plantui.plan/1");
    // Two results in two places.
    let both = ["plan", TINY, "--json", "--format", "chrome-trace", "--output", &other];
    assert!(crate::json(&both, 0)["stages"].is_array());
    let told = stdout(&["plan", TINY, "--devices", "1", "--json", "--output", &file, "--force"], 1);
    assert!(told.contains("no feasible plan: No feasible plan on 1 device"), "{told}");
}

#[test]
fn examples_of_help_are_lines_to_copy() {
    let narrow = plantui().env("COLUMNS", "60").args(["simulate", "--help"]).assert().code(0);
    let help = String::from_utf8(narrow.get_output().stdout.clone()).unwrap();
    let call = "  plantui simulate model.json plan.json --no-overlap --links shared --buckets 8 --optimizer-step 20ms";
    assert!(help.lines().any(|line| line == call), "{help}");
    assert!(!help.contains('\u{a0}'), "{help}");
}

/// A command with its streams as given: how it ended.
#[cfg(unix)]
fn ended(arguments: &[&str], stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> std::process::ExitStatus {
    let mut command = Command::new(cargo_bin("plantui"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command.stdout(stdout).stderr(stderr).status().unwrap()
}

/// Neither a full disk nor a reader that has gone makes a program panic, whichever stream it is.
#[cfg(unix)]
#[test]
fn streams_that_take_nothing_change_no_exit_code_but_that_of_the_result() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let closed = || std::io::pipe().unwrap().1;
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    for (arguments, code) in [
        (&["plan", TINY][..], 0),
        (&["plan", TINY, "--devices", "1"], 1),
        (&["plan", TINY, "--devices", "1", "--format", "piper-result"], 1),
        (&["plan", "missing.json"], 2),
        (&["plan", TINY, "--deadline", "soon"], 2),
        (&["plna"], 2),
        (&[TINY], 0),
        (&["check", TINY, &plan], 0),
        (&["simulate", TINY, &plan, "--virtual-stages", "4"], 0),
        (&["compare", TINY, "--planner", "piper"], 0),
        (&["explain", TINY], 0),
        (&["sweep", TINY, "--devices", "3,4"], 0),
        (&["export", &plan, "--workload", TINY, "--to", "csv"], 0),
        (&["generate", "tiny-branch"], 0),
        (&["lint", TINY], 0),
        (&["--help"], 0),
        (&["--version"], 0),
        (&["man"], 0),
        (&["completions", "bash"], 0),
    ] {
        let say = |what: &str, status: std::process::ExitStatus, codes: &[i32]| {
            assert!(status.code().is_some_and(|code| codes.contains(&code)), "{arguments:?} with {what}: {status:?}");
        };
        let lost = if code == 0 { vec![2] } else { vec![code, 2] };
        say("standard error full", ended(arguments, Stdio::null(), full()), &[code]);
        say("standard error closed", ended(arguments, Stdio::null(), closed()), &[code]);
        // Whoever reads no more wants no more; a result that is lost is an error, unless there was none to write.
        say("standard output closed", ended(arguments, closed(), Stdio::null()), &[code, 0]);
        say("standard output full", ended(arguments, full(), Stdio::null()), &lost);
        say("both full", ended(arguments, full(), full()), &lost);
    }
}

#[test]
fn json_leaves_standard_error_alone() {
    plantui().args(["plan", TINY, "--json"]).assert().success().stderr("");
    plantui().args(["plan", TINY, "--json", "--devices=1"]).assert().code(1).stderr("");
}

/// Who may read a file is its owner's decision, not ours.
#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_keeps_its_mode_and_links_stay_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new();
    let path = folder.file("plan.json", "secret");
    let link = argument(&folder.path("link.json"));
    symlink("plan.json", &link).unwrap();
    for (mode, to) in [(0o600, &path), (0o640, &link), (0o664, &path)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        stdout(&["plan", TINY, "--output", to, "--force"], 0);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
        assert_eq!(parsed(&folder.path("plan.json"))["schema"], "plantui.plan/1");
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let names = fs::read_dir(folder.path("")).unwrap().count();
    assert_eq!(names, 2, "nothing is left beside them");
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let folder = Folder::new();
    folder.file(".plantui-kIlLeD.tmp", "half a pl");
    folder.file(".plantui-notes.md", "mine");
    stdout(&["plan", TINY, "--output", &argument(&folder.path("plan.json"))], 0);
    let mut left: Vec<_> = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".plantui-notes.md", "plan.json"]);
}

/// The trace is 200 MB, and the run is killed as soon as its first are written.
#[cfg(unix)]
#[test]
fn a_run_that_is_killed_while_it_writes_costs_the_next_nothing() {
    let folder = Folder::new();
    let path = argument(&folder.path("trace.json"));
    let started = |microbatches| {
        let mut command = Command::new(cargo_bin("plantui"));
        command.current_dir(env!("CARGO_MANIFEST_DIR")).stdout(Stdio::null()).stderr(Stdio::null());
        let trace = ["--format", "chrome-trace", "--output", &path, "--microbatches", microbatches];
        command.args(["plan", TINY]).args(trace).spawn().unwrap()
    };
    let files = || fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut killed = started("100000");
    while !files().iter().any(|file| fs::metadata(file).is_ok_and(|data| data.len() > 0)) {
        assert_eq!(killed.try_wait().unwrap(), None, "it ended before it wrote");
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = files();
    let name = left[0].file_name().unwrap().to_str().unwrap();
    assert!(left.len() == 1 && name.starts_with(".plantui-") && name.ends_with(".tmp"), "{left:?}");
    assert!(started("4").wait().unwrap().success());
    assert_eq!(files(), [folder.path("trace.json")]);
    assert!(parsed(&folder.path("trace.json"))["traceEvents"].is_array());
}

/// Root may write anywhere, so this says nothing there.
#[cfg(unix)]
#[test]
fn messages_name_the_file_that_was_asked_for() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    fs::create_dir(folder.path("closed")).unwrap();
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    let path = argument(&folder.path("closed/plan.json"));
    let output = plantui().args(["plan", TINY, "--output", &path]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.contains(".plantui-"), "{error}");
    assert!(output.status.success() || error.contains(&path), "{error}");
}

/// A simulation that takes too long is given up, and nothing is written then.
#[test]
fn simulations_heed_their_deadline() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", TINY, "--json"], 0));
    let long = ["--microbatches", "720720", "--deadline", "0.001ms"];
    for command in [
        &["simulate", TINY, &plan][..],
        &["simulate", TINY, &plan, "--links", "shared"],
        &["simulate", TINY, &plan, "--json", "--no-overlap"],
        &["export", &plan, "--to", "chrome-trace", "--workload", TINY],
    ] {
        let path = argument(&folder.path("never"));
        let arguments = [command, &long, &["--output", &path]].concat();
        let output = plantui().args(&arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty() && error.starts_with("error: not simulated: "), "{arguments:?}: {error}");
        assert!(!folder.path("never").exists());
    }
    // A check has its verdict all the same, and says what it rests on.
    let checked = stdout(&[&["check", TINY, &plan][..], &long].concat(), 0);
    assert!(checked.starts_with("valid: ") && checked.contains("warning: not simulated"), "{checked}");
    stdout(&[&["check", TINY, &plan, "--strict"][..], &long].concat(), 1);
}
