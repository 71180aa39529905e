//! Fuzz target for plan files (plantui's, Piper's results, placement splits) against the built-in workload.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plantui::{
    family,
    workload::{self, Workload},
};

static WORKLOAD: LazyLock<Workload> = LazyLock::new(workload::builtin);

fuzz_target!(|text: &str| {
    if let Err(error) = family::read::read(&WORKLOAD, text, "fuzz.json") {
        assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
    }
});
