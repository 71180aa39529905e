//! `plantui convert`: a workload in another format.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Ending, Failure, input, output::Destination};
use crate::workload::{convert, formats::torch_graph};

const EXAMPLES: &str = "\
Examples:
  plantui convert model.json --to pipedream --output graph.txt
  plantui convert graph.txt --to pipedream --plan plan.json      the same with the plan's stages
  plantui generate bert-32 | plantui convert - --to pipedream

What had to be assumed is said on standard error.";

/// Write a workload in another format
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ConvertArgs {
    /// Workload: a file, or `-` for standard input
    workload: PathBuf,
    /// Format to write
    #[arg(long, value_enum)]
    to: Target,
    /// Plan whose stages are written as stage ids
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// Writes to this file; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

/// Formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// PipeDream's graph.txt, as DAPPLE reads it
    #[value(name = "pipedream")]
    PipeDream,
}

impl ConvertArgs {
    /// Converts.
    ///
    /// # Errors
    /// [`Failure`] if the workload or the plan cannot be read, or the format cannot hold it.
    pub fn run(self) -> Result<Ending, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let workload = input::workload(&self.workload)?;
        let plan = self.plan.as_deref().map(|path| input::plan(path, &workload)).transpose()?;
        let Target::PipeDream = self.to;
        let (layers, notes) = convert::to_layers(&workload).map_err(|reason| {
            let hint = "a layer profile or a Piper workload can be written as PipeDream's text";
            Failure::refused(format!("{} has no layers to write: {reason}", workload.source), hint)
        })?;
        for note in notes {
            eprintln!("note: {note}");
        }
        let stages: Option<Vec<u32>> = plan.map(|loaded| {
            (0..workload.nodes.len()).map(|v| loaded.plan.stage_of(v).map_or(0, |stage| stage as u32)).collect()
        });
        let Some(profile) = layers.layers() else { return Ok(Ending::Done) };
        destination.write(&torch_graph::write(&layers, profile, stages.as_deref()))?;
        Ok(Ending::Done)
    }
}
