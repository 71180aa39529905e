//! Draws the README's pictures from the real views: `cargo run --release --example screenshots [FOLDER]`.

use std::{path::Path, process::ExitCode, sync::Arc};

use plantui::workload;

/// The device placement among the pictures.
const PLACEMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/branching-cnn-training.json");

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "screenshots".into());
    let drawn = workload::load(Path::new(PLACEMENT)).map_err(|error| error.to_string()).and_then(|placement| {
        plantui::tui::screenshots(Path::new(&folder), &Arc::new(placement)).map_err(|error| error.to_string())
    });
    match drawn {
        Ok(names) => {
            for name in names {
                println!("{folder}/{name}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
