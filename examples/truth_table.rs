//! Prints the truth table: predictions for published training runs beside the measurements.
//!
//! ```text
//! PLANTUI_REFERENCE=path/to/published/inputs cargo run --release --example truth_table [-- --rows]
//! ```
//!
//! `--rows` adds a table of every run.

use std::{error::Error, path::PathBuf};

use plantui::family::training::truth::{refit, rows, summary};

fn main() -> Result<(), Box<dyn Error>> {
    let root =
        std::env::var_os("PLANTUI_REFERENCE").ok_or("PLANTUI_REFERENCE names the folder of the published inputs")?;
    let (runs, left) = rows::read(&PathBuf::from(root).join("truth"))?;
    let predicted = summary::predict(&runs).map_err(|(name, refusal)| format!("{name}: {refusal}"))?;
    let fits = refit::all(&runs).map_err(|(name, refusal)| format!("{name}: {refusal}"))?;
    print!("{}", summary::markdown(&predicted, &fits, &left));
    if std::env::args().any(|argument| argument == "--rows") {
        print!("\n{}", summary::every_row(&predicted));
    }
    Ok(())
}
