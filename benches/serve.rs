//! Time of a call by a new process, and by a server that runs (`plantui serve --stdio`), for a small plan.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_plantui");
const CALL: [&str; 3] = ["plan", "inputs/tiny-branch.json", "--json"];

fn main() {
    divan::main();
}

#[divan::bench]
fn a_process(bencher: divan::Bencher<'_, '_>) {
    bencher.bench_local(|| Command::new(PROGRAM).args(CALL).output().expect("it runs"));
}

#[divan::bench]
fn a_server(bencher: divan::Bencher<'_, '_>) {
    let mut command = Command::new(PROGRAM);
    let mut server =
        command.args(["serve", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = server.stdin.take().expect("a pipe");
    let mut output = BufReader::new(server.stdout.take().expect("a pipe"));
    bencher.bench_local(|| {
        writeln!(input, "{}", serde_json::json!({"id": 1, "arguments": CALL})).expect("it reads");
        let mut line = String::new();
        output.read_line(&mut line).expect("it answers");
        line
    });
    drop(input);
    server.wait().expect("it ends");
}
