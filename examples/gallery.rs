//! Draws every view in three sizes and three looks: `cargo run --release --example gallery FOLDER [WORKLOAD ..]`.
//!
//! Without workloads it draws the most different ones in `inputs/`: 4, 22 and 60 stages, a placement, a latency,
//! layers, operators.

use std::{path::Path, sync::Arc};

use plantui::{tui::gallery, workload};

const USUAL: [&str; 6] = [
    "tiny-branch.json",
    "bert32a100.json",
    "bert96a100.json",
    "branching-cnn-training.json",
    "mistral-7b-latency.json",
    "alexnet-operators.json",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("give a folder for the pictures")?;
    let mut files: Vec<String> = arguments.collect();
    if files.is_empty() {
        files = USUAL.iter().map(|name| format!("inputs/{name}")).collect();
    }
    let mut workloads = vec![];
    for file in &files {
        let path = Path::new(file);
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("workload").to_string();
        workloads.push((name, Arc::new(workload::load(path)?)));
    }
    let names = gallery::draw(Path::new(&folder), &workloads)?;
    println!("{} pictures in {folder}", names.len());
    Ok(())
}
