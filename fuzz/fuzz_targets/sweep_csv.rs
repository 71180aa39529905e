//! Fuzz target for the CSV of a resumed sweep.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plantui::export::sweep_csv;

fuzz_target!(|text: &str| drop(sweep_csv::read(text)));
