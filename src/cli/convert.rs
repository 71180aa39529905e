//! `plantui convert`: writes a workload in another format.
//!
//! Each output format is a `Target` in one list, which provides the words and help of `--to`.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{CommandEnd, Failure, arguments::LimitArgs, input, output::Destination};
use crate::{
    cluster::GivenLimits,
    notice,
    workload::{
        Provenance, Workload,
        convert::{self, Conversion, ModeRule},
    },
};

const EXAMPLES: &str = "\
Examples:
  plantui convert model.json --to placement > operators.json
  plantui convert operators.json --to piper --bandwidth 25GB/s --output model.json
  plantui generate bert-32 | plantui convert - --to placement | plantui plan -
  plantui convert model.json --to pipedream --output graph.txt
  plantui convert graph.txt --to pipedream --plan plan.json      the same with the plan's stages

The file lists what the conversion assumes (`assumptions`); PipeDream's text format has no such field, so the list \
goes to standard error. Planners convert on their own where they can: `plantui plan model.json --planner placement-dp`.";

/// Default bandwidth to convert times into bytes.
const BANDWIDTH: f64 = 16e9;
/// Default number of microbatches per iteration.
const MICROBATCHES: u32 = 32;

/// Write a workload in another format
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// Workload to convert: a file, or `-` for standard input
    workload: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = targets())]
    to: String,
    /// Plan whose stages are written as stage ids (PipeDream)
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Writes to this file in place of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

/// Output format.
struct Target {
    id: &'static str,
    help: &'static str,
    /// Converts the workload with the given limits; the error is the reason why not.
    convert: fn(&Workload, &GivenLimits) -> Result<Conversion, String>,
    /// True if its files can hold assumptions; else these are printed.
    keeps_assumptions: bool,
}

static TARGETS: [Target; 3] = [
    Target {
        id: "placement",
        help: "times on accelerators, sizes and transfers (device placement)",
        convert: placement,
        keeps_assumptions: true,
    },
    Target {
        id: "piper",
        help: "times and memory by tensor degree and mode (Piper)",
        convert: piper,
        keeps_assumptions: true,
    },
    Target {
        id: "pipedream",
        help: "PipeDream's graph.txt, the layers that DAPPLE plans",
        convert: pipedream,
        keeps_assumptions: false,
    },
];

fn targets() -> PossibleValuesParser {
    PossibleValuesParser::new(TARGETS.iter().map(|target| PossibleValue::new(target.id).help(target.help)))
}

fn placement(workload: &Workload, limits: &GivenLimits) -> Result<Conversion, String> {
    let bandwidth = limits.bandwidth_bytes_per_s().ok_or("it states no bandwidth; give it with --bandwidth")?;
    convert::to_placement(workload, ModeRule::Keeping, 1, bandwidth).map_err(|error| error.to_string())
}

fn piper(workload: &Workload, limits: &GivenLimits) -> Result<Conversion, String> {
    let (microbatches, bandwidth) = (limits.microbatches(), limits.bandwidth_bytes_per_s());
    convert::to_piper(workload, microbatches.unwrap_or(MICROBATCHES), bandwidth.unwrap_or(BANDWIDTH))
        .map_err(|error| error.to_string())
}

fn pipedream(workload: &Workload, _: &GivenLimits) -> Result<Conversion, String> {
    convert::to_layers(workload).map_err(|error| error.to_string())
}

impl ConvertArgs {
    /// Converts and writes to the output.
    ///
    /// # Errors
    /// [`Failure`] if the workload cannot be read or converted, or the output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let mut workload = self.limits.load(&self.workload)?;
        if let Some(plan) = &self.plan {
            workload = self.limits.profile.over_for(workload, plan)?;
        }
        workload.limits = self.limits.overrides().or(&workload.limits).on(None);
        let target = TARGETS.iter().find(|target| target.id == self.to).expect("clap takes no other word");
        let plan = self.plan.as_deref().map(|path| input::plan(path, &workload)).transpose()?;
        let mut converted = (target.convert)(&workload, &workload.limits).map_err(|reason| {
            let problem = format!("{} cannot be written as {}: {reason}", workload.source, target.id);
            Failure::refused(problem, "")
        })?;
        let staged = plan.and_then(|plan| {
            let stage_of = |node| plan.plan.stage_of(node).map(|stage| stage as u32);
            convert::with_stages(&converted.workload, stage_of)
        });
        if let Some(staged) = staged {
            converted.workload = staged;
        }
        if !target.keeps_assumptions {
            for assumption in &converted.assumptions {
                notice::note(assumption);
            }
        }
        destination.write(&convert::text(&recorded(&workload, converted, target.id)))?;
        Ok(CommandEnd::Done)
    }
}

/// Converted workload with the original's assumptions, then those of the conversion.
fn recorded(original: &Workload, converted: Conversion, target: &str) -> Workload {
    let mut assumptions = vec![];
    if let Some(provenance) = &original.provenance {
        assumptions.push(format!("The original was made by `{}`.", provenance.made_by));
        assumptions.extend(provenance.assumptions.iter().cloned());
    }
    assumptions.extend(converted.assumptions);
    let made_by = format!("plantui convert {} --to {target}", original.name);
    Workload { provenance: Some(Provenance { made_by, assumptions }), ..converted.workload }
}
