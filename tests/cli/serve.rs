//! `plantui serve --stdio`: calls of another program get the answers of the command line.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{Folder, TINY, plantui};

/// A server, and the lines that it writes.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new(plantui().get_program());
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["serve", "--stdio"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Server { process, input, output: BufReader::new(output) }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn line(&mut self) -> Value {
        let mut text = String::new();
        self.output.read_line(&mut text).unwrap();
        serde_json::from_str(&text).expect("a line is a document")
    }

    /// Answer to a call, and the reports of progress before it.
    fn answer(&mut self, call: &Value) -> (Value, Vec<Value>) {
        self.send(call);
        self.rest()
    }

    fn rest(&mut self) -> (Value, Vec<Value>) {
        let mut progress = vec![];
        loop {
            let line = self.line();
            match line.get("progress") {
                Some(report) => progress.push(report.clone()),
                None => return (line, progress),
            }
        }
    }

    /// Exit code after the end of the input.
    fn end(mut self) -> Option<i32> {
        self.input = None;
        self.process.wait().unwrap().code()
    }
}

fn document(answer: &Value) -> Value {
    serde_json::from_str(answer["output"].as_str().unwrap()).expect("the output is a document")
}

#[test]
fn a_call_has_the_answer_of_the_command() {
    let mut server = Server::start();
    for (id, arguments) in [
        (1, vec!["check", TINY, "-", "--json"]),
        (2, vec!["plan", TINY, "--devices", "1", "--json"]),
        (3, vec!["plan", "nowhere.json"]),
        (4, vec!["plan", TINY, "--planner", "best"]),
        (5, vec!["terms", "bubble"]),
        (6, vec![]),
        (7, vec!["--version"]),
    ] {
        let input = if id == 1 { crate::stdout(&["plan", TINY, "--json"], 0) } else { String::new() };
        let command = plantui().args(&arguments).write_stdin(input.clone()).output().unwrap();
        let (answer, _) = server.answer(&json!({"id": id, "arguments": arguments, "input": input}));
        let without_times = |text: &str| {
            let timed = ["\"seconds\"", "\"peak_rss_bytes\"", " ms", " in "];
            text.lines().filter(|line| !timed.iter().any(|timed| line.contains(timed))).collect::<Vec<_>>().join("\n")
        };
        assert_eq!((&answer["id"], &answer["exit_code"]), (&id.into(), &command.status.code().into()), "{arguments:?}");
        let (output, messages) =
            (String::from_utf8(command.stdout).unwrap(), String::from_utf8(command.stderr).unwrap());
        assert_eq!(without_times(answer["output"].as_str().unwrap()), without_times(&output), "{arguments:?}");
        assert_eq!(answer["messages"], messages, "{arguments:?}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn calls_do_not_depend_on_one_another() {
    let folder = Folder::new();
    let own = folder.file(
        "mine.toml",
        "peak_16 = 1e14\nmemory_gib = 40\nmemory_bandwidth = 1e12\ninner_link = 1e11\nouter_link = 1e10\n",
    );
    let mut server = Server::start();
    let call = |hardware: &str| json!({"id": 1, "arguments": ["estimate", "llama-3-8b", "--devices", "8", "--hardware", hardware]});
    assert_eq!(server.answer(&call("mine")).0["exit_code"], 2);
    assert_eq!(server.answer(&call(&own)).0["exit_code"], 0);
    // The file made its name known to its own call alone.
    assert_eq!(server.answer(&call("mine")).0["exit_code"], 2);
    // Each call has a standard input of its own, and writes what an earlier one read.
    for plan in ["{}", "[]"] {
        let (answer, _) = server.answer(&json!({"id": 2, "arguments": ["check", TINY, "-"], "input": plan}));
        assert_eq!(answer["exit_code"], 2);
        let about = if plan == "{}" { "`stages` is missing" } else { "empty array" };
        assert!(answer["messages"].as_str().unwrap().contains(about), "{answer}");
    }
}

#[test]
fn a_directory_is_that_of_relative_paths() {
    let folder = Folder::new();
    let mut server = Server::start();
    folder.file("here.json", std::fs::read(TINY).unwrap());
    let call = |directory: &str| json!({"id": 1, "arguments": ["plan", "here.json", "--json"], "directory": directory});
    let (answer, _) = server.answer(&call(folder.path("").to_str().unwrap()));
    assert_eq!(document(&answer)["workload"]["name"], "here");
    let (answer, _) = server.answer(&call("/nowhere"));
    assert_eq!(answer["exit_code"], 2);
    assert!(answer["messages"].as_str().unwrap().contains("cannot be entered"), "{answer}");
}

#[test]
fn a_search_is_stopped_with_its_best_plan_and_reports_until_then() {
    let mut server = Server::start();
    let long = ["plan", "inputs/bert96a100.json", "--planner", "joint", "--set", "space=any", "--json"];
    server.send(&json!({"id": 1, "arguments": long}));
    // The one that waits is stopped before it begins, and the last is not concerned.
    server.send(&json!({"id": 2, "arguments": long}));
    server.send(&json!({"id": 3, "arguments": ["plan", TINY, "--json"]}));
    server.send(&json!({"id": 2, "cancel": true}));
    // The search itself takes minutes; a report shows that it is under way.
    let report = server.line();
    assert!(report["progress"]["fraction"].is_number() && report["id"] == 1, "{report}");
    server.send(&json!({"id": 1, "cancel": true}));
    let (answer, _) = server.rest();
    assert_eq!((&answer["id"], &answer["exit_code"]), (&1.into(), &0.into()));
    assert_eq!(document(&answer)["status"], "cancelled");
    let (answer, progress) = server.rest();
    assert_eq!((&answer["id"], progress.len()), (&2.into(), 0));
    assert!(answer["exit_code"] == 0 || answer["exit_code"] == 3, "{answer}");
    let (answer, _) = server.rest();
    assert_eq!((&answer["id"], &document(&answer)["status"]), (&3.into(), &"feasible".into()));
}

#[test]
fn what_is_no_call_is_refused_and_the_server_goes_on() {
    let mut server = Server::start();
    for line in ["no document", "[]", "{\"id\": -1}", "{\"id\": 1, \"argument\": []}", "{}"] {
        writeln!(server.input.as_mut().unwrap(), "{line}").unwrap();
        let answer = server.line();
        assert_eq!((&answer["id"], &answer["exit_code"]), (&Value::Null, &2.into()), "{line}");
        assert!(answer["messages"].as_str().unwrap().starts_with("error: this line is not a call"), "{answer}");
    }
    let (answer, _) = server.answer(&json!({"id": 1, "arguments": ["serve", "--stdio"]}));
    assert_eq!(answer["exit_code"], 2);
    server.send(&json!({"id": 9, "cancel": true}));
    let (answer, _) = server.answer(&json!({"id": 2, "arguments": ["terms", "bubble", "--json"]}));
    assert_eq!(document(&answer)[0]["name"], "bubble");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_server_ends_with_its_caller() {
    let mut server = Server::start();
    let long = ["plan", "inputs/bert96a100.json", "--planner", "joint", "--set", "space=any", "--json"];
    server.send(&json!({"id": 1, "arguments": long}));
    // The search takes minutes. Without a reader the next report of its progress cannot be written.
    let Server { mut process, input, output } = server;
    drop((input, output));
    assert_eq!(process.wait().unwrap().code(), Some(1));
}
