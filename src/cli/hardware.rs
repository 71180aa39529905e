//! `plantui hardware`: lists the presets of `generate`, each figure with its source.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CommandEnd, Failure, output,
    report::{line, table},
};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::hardware::{self, Hardware, SourcedFigure},
    units,
};

const EXAMPLES: &str = "\
Examples:
  plantui hardware
  plantui hardware --json
  plantui generate llama-3-8b --hardware h100 > model.json";

/// List the hardware presets
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct HardwareArgs {
    /// Prints a JSON array in place of the table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct HardwareEntry {
    id: &'static str,
    name: &'static str,
    peak_flops: FigureEntry,
    mfu: FigureEntry,
    memory_bytes: FigureEntry,
    memory_bandwidth_bytes_per_s: FigureEntry,
    intra_node_link_bytes_per_s: FigureEntry,
    inter_node_link_bytes_per_s: FigureEntry,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FigureEntry {
    value: f64,
    source: &'static str,
}

impl From<SourcedFigure> for FigureEntry {
    fn from(figure: SourcedFigure) -> Self {
        FigureEntry { value: figure.value, source: figure.source }
    }
}

impl From<&Hardware> for HardwareEntry {
    fn from(hardware: &Hardware) -> Self {
        HardwareEntry {
            id: hardware.id,
            name: hardware.name,
            peak_flops: hardware.peak_flops.into(),
            mfu: hardware.mfu.into(),
            memory_bytes: hardware.memory_bytes.into(),
            memory_bandwidth_bytes_per_s: hardware.memory_bandwidth.into(),
            intra_node_link_bytes_per_s: hardware.intra_node_link.into(),
            inter_node_link_bytes_per_s: hardware.inter_node_link.into(),
        }
    }
}

impl HardwareArgs {
    /// Prints the list.
    ///
    /// # Errors
    /// [`Failure`] if standard output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let entries: Vec<HardwareEntry> = hardware::all().iter().map(HardwareEntry::from).collect();
        output::print(&if self.json { output::json(&entries) } else { text(hardware::all()) })?;
        Ok(CommandEnd::Done)
    }
}

fn text(presets: &[Hardware]) -> String {
    let head = ["id", "peak FLOP/s", "attained", "memory", "memory bandwidth", "in a node", "across nodes", "name"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(presets.iter().map(|hardware| {
        vec![
            hardware.id.into(),
            units::count_short(hardware.peak_flops.value),
            units::percent(hardware.mfu.value),
            units::bytes_exact(hardware.memory_bytes.value),
            units::bandwidth_exact(hardware.memory_bandwidth.value),
            units::bandwidth_exact(hardware.intra_node_link.value),
            units::bandwidth_exact(hardware.inter_node_link.value),
            hardware.name.into(),
        ]
    }));
    let mut text = String::new();
    table(&mut text, &rows);
    line(&mut text, format_args!(""));
    line(&mut text, format_args!("links are per direction and device; --json names the source of each figure"));
    text
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<Vec<HardwareEntry>>("hardware")
}
