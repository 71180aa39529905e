//! Fuzz target for topologies of every format (JSON, CSV, `nvidia-smi topo -m`, outputs of bandwidth tests).
#![no_main]

use libfuzzer_sys::fuzz_target;
use plantui::cluster::topology::{self, AssumedBandwidths};

fuzz_target!(|text: &str| {
    if let Err(error) = topology::read(text, "fuzz.json", "fuzz", &AssumedBandwidths::default()) {
        assert!(!error.to_string().chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
    }
});
