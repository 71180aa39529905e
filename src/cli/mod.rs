//! Command line: a clap tree with one file per subcommand.
//!
//! A subcommand is a struct of arguments with a `run` that returns how it [ended](CommandEnd) or why it
//! [failed](Failure). Shared parts: flags of limits and planners, input of workloads and plans, planner runs with a
//! progress bar and Ctrl-C, the table of a plan, and `output`.
//!
//! Results go to standard output, everything else to standard error. A reader that exits early
//! (`plantui plan F | head -1`) is a success, since it got its lines. A standard output that was closed from the start
//! is refused.

pub(crate) mod arguments;
pub(crate) mod calibrate;
mod calibrate_document;
pub(crate) mod check;
mod check_engine;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod convert;
mod cost;
mod device_table;
pub(crate) mod estimate;
pub(crate) mod explain;
mod explain_job;
mod explain_links;
mod explain_published;
pub(crate) mod export;
pub(crate) mod failure;
mod front;
pub mod generate;
pub(crate) mod hardware;
mod hardware_file;
mod help;
pub(crate) mod import;
pub(crate) mod input;
mod interrupt;
mod job_input;
mod kind_table;
pub(crate) mod lint;
pub(crate) mod man;
pub(crate) mod map;
mod mistyped;
mod misuse;
mod operator_table;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod planners;
pub(crate) mod planning;
mod profile_input;
mod progress;
pub(crate) mod report;
pub(crate) mod schedule_argument;
mod schedule_table;
mod schema;
#[cfg(feature = "screen")]
mod screen;
#[cfg(not(feature = "screen"))]
#[path = "without_screen.rs"]
mod screen;
pub(crate) mod seek;
mod seek_cost;
mod seek_report;
mod serve;
mod setup;
pub(crate) mod simulate;
pub(crate) mod sweep;
mod sweep_limits;
mod sweep_report;
mod sweep_shard;
mod sweep_store;
mod sweep_topologies;
pub(crate) mod terms;
#[cfg(feature = "screen")]
pub(crate) mod themes;
pub(crate) mod topologies;
mod topology_input;
mod training_input;
mod training_table;
mod watch;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};

pub use failure::{CommandEnd, Failure};
pub use output::{standard_output_is_closed, takes_colours};

const EXAMPLES: &str = concat!(
    "\
Examples:
  plantui                                       the screen, with a built-in example
  plantui model.json --devices 64               the screen, with a limit changed
  plantui model.json | cat                      the report, since a pipe is not a terminal
  plantui plan model.json --memory 16GiB        plan and print a table
  plantui plan model.json --json > plan.json    the same as JSON
  plantui check model.json plan.json            validate and score a plan
  plantui export plan.json --to megatron        the flags of a training engine
  plantui compare model.json                    all planners in one simulator
  plantui explain model.json                    what limits the plan, and what would help
  plantui seek model.json --least devices --until 'time_per_sample<=25ms'
                                                the least value of a limit that reaches a goal
  plantui map model.json plan.json --topology dgx-1   which device runs which part
  plantui sweep model.json --devices 8..512     a range of a limit
  plantui generate bert-32 > model.json         make a workload
  plantui import train.sh --plan today.json     read the job of an engine
  plantui estimate llama-3.1-8b --devices 8 --global-batch 128
                                                a training run's time and memory
  plantui help terms bubble                     the meaning of a word, with a picture

Exit codes: 0 done, 1 no feasible plan (or a plan that is not valid), 2 wrong use or input, 3 stopped before any plan, \
70 a bug of plantui.

Documentation and reports of bugs: ",
    env!("CARGO_PKG_REPOSITORY")
);

/// Plan how a neural network is split over many devices.
///
/// Loads a model or a profile, finds the pipeline stages, replicas, tensor-parallel degrees and recomputation with the
/// least time within the limits, and explains the result. Without a subcommand it opens the screen; without a terminal
/// it prints the report of `plantui plan`.
#[derive(Debug, Parser)]
#[command(name = "plantui", bin_name = "plantui", version, after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    screen: screen::ScreenArgs,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
enum Command {
    Plan(plan::PlanArgs),
    Check(check::CheckArgs),
    Compare(compare::CompareArgs),
    Estimate(estimate::EstimateArgs),
    Calibrate(calibrate::CalibrateArgs),
    Explain(explain::ExplainArgs),
    Map(map::MapArgs),
    Seek(seek::SeekArgs),
    Sweep(sweep::SweepArgs),
    Simulate(simulate::SimulateArgs),
    Export(export::ExportArgs),
    Lint(lint::LintArgs),
    Convert(convert::ConvertArgs),
    Import(import::ImportArgs),
    /// Make a workload from a model and a hardware preset
    Generate(generate::GenerateArgs),
    Planners(planners::PlannersArgs),
    Hardware(hardware::HardwareArgs),
    Topologies(topologies::TopologiesArgs),
    #[cfg(feature = "screen")]
    Themes(themes::ThemesArgs),
    Terms(terms::TermsArgs),
    Schema(schema::SchemaArgs),
    Serve(serve::ServeArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Cli {
    /// Runs the requested subcommand.
    ///
    /// # Errors
    /// [`Failure`] for wrong use, wrong input, or a reader that exited.
    pub fn run(self) -> Result<CommandEnd, Failure> {
        match self.command {
            None => self.screen.run(),
            Some(Command::Plan(args)) => args.run(),
            Some(Command::Check(args)) => args.run(),
            Some(Command::Compare(args)) => args.run(),
            Some(Command::Estimate(args)) => args.run(),
            Some(Command::Calibrate(args)) => args.run(),
            Some(Command::Explain(args)) => args.run(),
            Some(Command::Map(args)) => args.run(),
            Some(Command::Seek(args)) => args.run(),
            Some(Command::Sweep(args)) => args.run(),
            Some(Command::Simulate(args)) => args.run(),
            Some(Command::Export(args)) => args.run(),
            Some(Command::Lint(args)) => args.run(),
            Some(Command::Convert(args)) => args.run(),
            Some(Command::Import(args)) => args.run(),
            Some(Command::Generate(args)) => args.write(),
            Some(Command::Planners(args)) => args.run(),
            Some(Command::Hardware(args)) => args.run(),
            Some(Command::Topologies(args)) => args.run(),
            #[cfg(feature = "screen")]
            Some(Command::Themes(args)) => args.run(),
            Some(Command::Terms(args)) => args.run(),
            Some(Command::Schema(args)) => args.run(),
            Some(Command::Serve(args)) => args.run(),
            Some(Command::Completions(args)) => args.run(),
            Some(Command::Man(args)) => args.run(),
        }
    }
}

/// Parses the arguments of the process, runs the command, and returns its exit code.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().collect()))
}

/// Runs the command of a command line, whose first word is the program, and returns its exit code.
fn run(arguments: Vec<OsString>) -> u8 {
    if let Some(failure) = mistyped::failure(arguments.get(1).and_then(|word| word.to_str())) {
        return failure.report();
    }
    match help::parse(terms::from_help(arguments)).map(Cli::run) {
        Ok(Ok(ending)) => ending.exit_code(),
        Ok(Err(failure)) => failure.report(),
        Err(error) => misuse::report(error),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_tree_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help =
                command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
            let call = format!("plantui {}", command.get_name());
            assert!(help.contains("Example") && help.contains(&call), "{call} shows no example");
        }
    }
}
