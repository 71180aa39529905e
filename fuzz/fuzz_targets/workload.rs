//! Fuzz target for workloads of every format (Piper, device placement, `graph.txt`, operator graphs): read, and linted
//! if valid.
//!
//! Start from the examples: `cargo fuzz run workload -- -seed_inputs=inputs/tiny-branch.json,inputs/bert32-layers.txt`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plantui::workload::{formats, lint};

fuzz_target!(|bytes: &[u8]| {
    match formats::load_bytes(bytes, "fuzz.json", "fuzz") {
        Ok(workload) => drop(lint::lint(&workload)),
        Err(error) => assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'), "{error:?}"),
    }
});
