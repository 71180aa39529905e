//! The real program in a real (pseudo-)terminal: how it starts, ends, stops and comes back.
#![cfg(unix)]

mod bugs;
mod commands;
mod endings;
mod everyday;
#[allow(dead_code, reason = "the tests take its reports of bugs alone")]
#[path = "../../src/main.rs"]
mod program;
mod session;
