//! The program as scripts use it: arguments, standard streams, files and exit codes. Needs nothing but this repository.

mod bad_input;
mod check;
mod compare;
mod config;
#[path = "../common/engine_demands.rs"]
mod engine_demands;
#[expect(dead_code, reason = "what is read beyond the rules themselves is asked by the integration tests")]
#[path = "../common/engine_rules.rs"]
mod engine_rules;
mod estimate;
mod explain;
mod export;
mod export_families;
mod field;
mod hostile;
mod hostile_files;
mod import;
// Where the system tells which signals a program listens for.
#[cfg(target_os = "linux")]
mod interrupted;
mod kind_prices;
mod kinds;
mod layers;
mod lists;
mod map;
#[cfg(target_os = "linux")]
mod memory;
mod output;
mod packages;
mod parmesan;
mod placement;
mod plan;
mod readme;
#[path = "../common/reference.rs"]
mod reference;
mod schedules;
mod schemas;
mod seek;
mod serve;
mod simulate;
mod snapshots;
mod sweep;
mod sweep_shards;
mod sweep_studies;
mod terms;
mod topologies;
#[expect(dead_code, reason = "what is read beyond the rules themselves is asked by the integration tests")]
#[path = "../common/trace_rules.rs"]
mod trace_rules;
mod training;

use std::path::{Path, PathBuf};

use assert_cmd::{Command, cargo::cargo_bin_cmd};
use serde_json::Value;

/// The program, run in this repository's folder.
fn plantui() -> Command {
    let mut command = cargo_bin_cmd!("plantui");
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Six nodes with a branch; four devices.
const TINY: &str = "inputs/tiny-branch.json";
const BERT: &str = "inputs/bert32a100.json";

/// The planners that every command is tried with.
const PLANNERS: [&str; 2] = ["piper", "equal-partition"];

/// Runs with these arguments, expects the exit code, and gives standard output.
fn stdout(arguments: &[&str], code: i32) -> String {
    let assert = plantui().args(arguments).assert().code(code);
    String::from_utf8(assert.get_output().stdout.clone()).expect("output is UTF-8")
}

/// Runs with these arguments, expects the exit code, and reads standard output as one JSON document.
fn json(arguments: &[&str], code: i32) -> Value {
    serde_json::from_str(&stdout(arguments, code)).expect("standard output is one JSON document")
}

/// Runs with these arguments, expects exit code 2 and nothing on standard output, and gives standard error.
fn refusal(arguments: &[&str]) -> String {
    let assert = plantui().args(arguments).assert().code(2).stdout("");
    let error = String::from_utf8(assert.get_output().stderr.clone()).expect("errors are UTF-8");
    assert!(error.starts_with("error: "), "{error}");
    error
}

/// A folder with a plan of [`TINY`] in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and gives its path as an argument.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).expect("the temporary folder takes files");
        argument(&self.path(name))
    }
}

fn argument(path: &Path) -> String {
    path.to_str().expect("temporary paths are UTF-8").into()
}
