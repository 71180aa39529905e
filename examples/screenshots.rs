//! Draws the README's pictures from the real views: `cargo run --release --example screenshots [FOLDER]`.

use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "screenshots".into());
    match plantui::tui::screenshots(Path::new(&folder)) {
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
