//! Draws the README's pictures from the real views: `cargo run --release --example screenshots [FOLDER]`. `tour.svg` is
//! animated: it is the tour that `plantui --demo` plays.

use std::{error::Error, fs, path::Path, process::ExitCode, sync::Arc};

use plantui::{
    family::kinds::{self, KindCount},
    tui,
    workload::{self, Workload},
};

/// Device placement among the pictures.
const PLACEMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/branching-cnn-training.json");

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "screenshots".into());
    match draw(Path::new(&folder)) {
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

/// llama-3-8b on the devices of the how-to about two kinds.
fn kinds() -> Result<Workload, Box<dyn Error>> {
    let model = workload::load(Path::new("llama-3-8b"))?;
    let asked = KindCount::parse("16xh100,32xa100-80").ok_or("names no kinds")??;
    Ok(kinds::over(&model, &asked)?)
}

fn draw(folder: &Path) -> Result<Vec<String>, String> {
    let placement = workload::load(Path::new(PLACEMENT)).map_err(|error| error.to_string())?;
    let model = workload::load(Path::new("llama-3-70b")).map_err(|error| error.to_string())?;
    let kinds = kinds().map_err(|error| error.to_string())?;
    let mut names = tui::screenshots(folder, &Arc::new(placement), &Arc::new(model), &Arc::new(kinds))
        .map_err(|error| error.to_string())?;
    let film = tui::film().map_err(|error| error.to_string())?;
    fs::write(folder.join("tour.svg"), film).map_err(|error| format!("tour.svg cannot be written: {error}"))?;
    names.push("tour.svg".into());
    Ok(names)
}
