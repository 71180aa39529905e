//! The README's calls give the README's output.
//!
//! Every `console` block is replayed: a line that starts with `$ plantui` is run, the lines below it must be the start
//! of its output (`...` stands for the rest), with times of planning left out of the comparison.

use std::{fs, path::Path};

use assert_cmd::Command;

/// A call and what the README shows of its output.
struct Call {
    command: String,
    shown: Vec<String>,
}

fn calls() -> Vec<Call> {
    let text = include_str!("../../README.md");
    let mut calls: Vec<Call> = vec![];
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && line.starts_with("$ plantui ") {
            calls.push(Call { command: line[2..].into(), shown: vec![] });
        } else if inside {
            calls.last_mut().expect("a block starts with a call").shown.push(line.into());
        }
    }
    calls
}

/// The line without the time that planning took.
fn timeless(line: &str) -> String {
    match line.rsplit_once(", in ") {
        Some((before, time)) if time.ends_with('s') => before.into(),
        _ => line.trim_end().into(),
    }
}

#[test]
fn the_calls_of_the_readme_give_the_output_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    fs::create_dir(&inputs).unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), inputs.join(entry.file_name())).unwrap();
    }
    let calls = calls();
    assert!(calls.len() >= 10, "only {} calls found", calls.len());
    for call in calls {
        let arguments = call.command.split_whitespace().skip(1);
        let output =
            Command::cargo_bin("plantui").unwrap().current_dir(folder.path()).args(arguments).output().unwrap();
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{}: {code:?} {}", call.command, String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let got: Vec<String> = text.lines().map(timeless).collect();
        let cut = call.shown.iter().position(|line| line == "...");
        let wanted: Vec<String> =
            call.shown[..cut.unwrap_or(call.shown.len())].iter().map(|line| timeless(line)).collect();
        assert!(got.len() >= wanted.len(), "{}: the README shows more than\n{text}", call.command);
        assert_eq!(got[..wanted.len()], wanted, "{}", call.command);
        if cut.is_none() && !wanted.is_empty() {
            assert_eq!(got.len(), wanted.len(), "{} prints more than the README shows", call.command);
        }
    }
}
