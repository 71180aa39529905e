//! `plantui seek`: finds the least value of a limit that reaches a goal.

use std::{path::PathBuf, time::Duration};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs, PlannerArgs},
    failure::print_bug,
    interrupt::Interrupt,
    output::{self, Destination},
    planning::{self, PlanningTask},
    seek_cost::{self, LeastFigure},
    seek_report,
    watch::watched,
};
use crate::{
    cluster::LimitKind,
    family::kinds::KindCount,
    planner::Search,
    simulate::Setup,
    study::{
        compare::TIME_FOR_EACH,
        explain::limits_of,
        seek::{self, Goal, SeekQuery, SeekResult},
        sweep::LimitValues,
    },
};

const EXAMPLES: &str = "\
Examples:
  plantui seek model.json --least devices --until 'iteration_time<=40s'
  plantui seek model.json --least memory --until 'time_per_sample<=25ms' --planner piper
  plantui seek model.json --least bandwidth --until 'throughput>=40/s' --json
  plantui seek model.json --least microbatches --until 'idle<=10%' --among 64..1024:x2
  plantui seek model.json --least devices --until 'speedup>=12' --planner dapple --each 30s
  plantui seek llama-3-8b --hardware h100 --least devices --until 'tokens_per_s>=200000' --among 8..128:x2
  plantui seek llama-3-8b --devices 16xh100:2.50,32xa100-80:1.20 --least cost --until 'iteration_time<=6s'
  plantui seek llama-3-8b --devices 16xh100:2.50,32xa100-80:1.20 --least iteration_time --until 'cost<=0.08'

A goal is FIGURE<=VALUE or FIGURE>=VALUE. Figures are the planner's own objective by its name (iteration_time, \
time_per_sample, max_load, latency, speedup, cost), those of the simulated iteration (simulated_iteration_time, \
simulated_time_per_sample, throughput, idle, peak_memory), and for a model to be trained its predicted mfu and \
tokens_per_s. Each value tried is a re-plan. If more of the limit can never worsen the planner's proven optimum, the \
search bisects and its answer is the least value. Otherwise it tries values from the least upwards and lists those \
that it did not try. The search begins at the limit in force. On devices with prices, --least cost takes a limit on \
the planned iteration_time, and --least iteration_time one on the cost of an iteration; one plan answers both.
Exit codes: 0 found, 1 no tried value reaches the goal, 2 wrong use or input, 3 stopped before any value did, 70 a \
bug of plantui.";

/// Find the least devices, memory, cost or time that reach a goal
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SeekArgs {
    /// Workload to plan: a file, or `-` for standard input
    workload: PathBuf,
    /// Limit to minimise; on devices with prices also `cost` (or `usd`) and `iteration_time`
    #[arg(long, value_name = "LIMIT", value_parser = kinds())]
    least: String,
    /// Goal, such as 'iteration_time<=40s' or 'throughput>=40/s'
    #[arg(long, value_name = "GOAL")]
    until: String,
    /// Allowed values of the limit: a list A,B,C or a range A..B, A..B:x2, A..B:+8 [default: all]
    #[arg(long, value_name = "VALUES")]
    among: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    planning: PlannerArgs,
    /// Time for each re-plan [default: 10s]; --deadline limits all of them together
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = arguments::deadline)]
    each: Option<Duration>,
    /// Prints one JSON document (schema plantui.seek/1) in place of the text
    #[arg(long)]
    json: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

fn kinds() -> PossibleValuesParser {
    let limits = LimitKind::ALL.map(|kind| PossibleValue::new(kind.flag().trim_start_matches('-')));
    let figures = LeastFigure::WORDS.map(|(_, words)| PossibleValue::new(words[0]).aliases(words[1..].iter().copied()));
    PossibleValuesParser::new(limits.into_iter().chain(figures))
}

impl SeekArgs {
    /// Searches and prints.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if the result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        if let Some(least) = LeastFigure::find(&self.least) {
            let flags = [("--among", self.among.is_some()), ("--each", self.each.is_some())];
            if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
                let problem =
                    format!("{flag} is for a limit of several values, and --least {} is one plan", self.least);
                return Err(Failure::refused(problem, "leave it out"));
            }
            let workload = self.limits.load(&self.workload)?;
            let output = (self.json, &destination);
            return seek_cost::run(least, &self.until, workload, (&self.limits, &self.planning), output);
        }
        let task = PlanningTask::new(self.limits.load(&self.workload)?, &self.limits, &self.planning)?;
        let question = self.question(&task)?;
        let sought = match self.planning.threads {
            None => self.seek(&task, &question)?,
            Some(threads) => planning::pool(threads)?.install(|| self.seek(&task, &question))?,
        };
        let text = match self.json {
            true => output::json(&seek_report::document(&task.problem, &sought)),
            false => seek_report::text(&task.problem, &sought),
        };
        destination.write(&text)?;
        let faults = sought.curve.iter().filter_map(|step| step.fault.as_ref());
        faults.clone().for_each(print_bug);
        Ok(match sought.answer {
            Some(_) => CommandEnd::Done,
            None if faults.count() > 0 => CommandEnd::Bug,
            None if sought.stopped => CommandEnd::Stopped,
            None => CommandEnd::NoPlan,
        })
    }

    fn question(&self, task: &PlanningTask) -> Result<SeekQuery, Failure> {
        let least = LimitKind::ALL.into_iter().find(|kind| kind.flag().trim_start_matches('-') == self.least);
        let least = least.ok_or_else(|| Failure::refused(format!("there is no limit `{}`", self.least), ""))?;
        let heeded = limits_of(task.planner, &task.problem.workload);
        if !heeded.contains(&least) {
            let kinds = KindCount::text(&KindCount::of(&task.problem.workload));
            let message = match (least, kinds.is_empty()) {
                (LimitKind::Memory, false) => format!("memory is that of each kind: {kinds}"),
                _ => format!("{} ignores {}, so there is no least value", task.planner.info().name, least.label()),
            };
            let flags: Vec<&str> = heeded.iter().map(|kind| kind.flag().trim_start_matches('-')).collect();
            return Err(Failure::refused(message, format!("--least accepts here: {}", flags.join(", "))));
        }
        let measure = task.planner.measure(&task.problem.workload, &task.problem.options);
        let goal = Goal::of_workload(&self.until, measure, &task.problem.workload)
            .map_err(|error| Failure::refused(error.message, error.repair))?;
        let among = self.among.as_deref().map(|text| LimitValues::parse(least, text)).transpose();
        let among = among.map_err(|error| Failure::refused(format!("--among: {error}"), ""))?;
        Ok(SeekQuery { least, goal, among: among.map(|values| values.values) })
    }

    fn seek(&self, task: &PlanningTask, question: &SeekQuery) -> Result<SeekResult, Failure> {
        let whole = Search::new(None, self.planning.seed);
        let interrupt = Interrupt::cancels(&whole)?;
        let search = whole.part(self.planning.deadline);
        let measure = question.goal.measure;
        let each = Some(self.each.unwrap_or(TIME_FOR_EACH));
        let base = seek::SeekProblem { planner: task.planner, problem: &task.problem, setup: Setup::default(), each };
        Ok(watched(("seeking", measure), &search, &interrupt, || seek::seek(&base, question, &search, &mut |_| ())))
    }
}
