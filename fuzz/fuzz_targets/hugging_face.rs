//! Fuzz target for a model's `config.json`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plantui::generate;

fuzz_target!(|text: &str| drop(generate::from_hugging_face(text, "config.json")));
