//! Fuzz target for jobs: launch scripts, logs and configurations of training engines, in any of the formats.
//!
//! Start from the tests' jobs: `cargo fuzz run job corpus tests/field/jobs`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plantui::jobs::{self, ReadOptions};

fuzz_target!(|text: &str| {
    if let Err(error) = jobs::read(text, "fuzz.sh", None, &ReadOptions::default()) {
        assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
    }
});
