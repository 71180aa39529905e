//! Fuzz target for the CSV of a schedule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plantui::schedule::csv;

fuzz_target!(|text: &str| {
    if let Err(error) = csv::read(text, "fuzz.csv") {
        assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
    }
});
