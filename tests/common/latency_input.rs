//! The published latency inputs and splits.

use plantui::{
    planner::placement::{DeviceKind, Split},
    workload::formats::placement::{PlacementFile, read},
};
use std::path::Path;

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An input with its limits: number of accelerators and memory of each.
pub(crate) fn read_input(path: &Path) -> (PlacementFile, usize, f64) {
    let source = path.display().to_string();
    let file = read(&text(path), &source, "input").unwrap_or_else(|error| panic!("{error}"));
    let (accelerators, memory_bytes) = (file.accelerators.unwrap() as usize, file.memory_bytes.unwrap());
    (file, accelerators, memory_bytes)
}

/// Node indices by accelerator of a split in the published output format.
pub(crate) fn read_split(file: &PlacementFile, path: &Path) -> Vec<Vec<u32>> {
    let split = Split::read(&text(path), &path.display().to_string(), &file.nodes).unwrap();
    let accelerators = split.devices.iter().filter(|device| device.kind == DeviceKind::Accelerator);
    accelerators.map(|device| device.nodes.iter().map(|&v| v as u32).collect()).collect()
}
