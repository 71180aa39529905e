//! `plantui sweep`: plans over one or two limits, for one or more planners or settings.

use std::{
    collections::BTreeSet,
    panic,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{
    CommandEnd, Failure, arguments,
    cost::{CostArgs, TrainingCost},
    failure::print_bug,
    input,
    interrupt::Interrupt,
    output::{self, Destination},
    planning, profile_input,
    progress::CountBar,
    sweep_limits::SweepLimits,
    sweep_report,
    sweep_shard::Shard,
    sweep_store::Store,
    sweep_topologies, training_input,
};
use crate::{
    cluster::LimitKind,
    export::{sweep_csv, sweep_svg},
    family::{self, kinds::KindCount, training::kinds::joins_some},
    notice,
    planner::{OptionError, Problem, Search, Status},
    study::sweep::{
        ChartFigure, MOST_POINTS, PointResult, Series, Sweep,
        chart::Chart,
        papers::{self, Paper},
        run,
    },
    workload::Workload,
};

const EXAMPLES: &str = "\
Examples:
  plantui sweep model.json --devices 8..2048:x2
  plantui sweep model.json --devices 8..64:+8 --memory 8GiB,16GiB --planner piper --planner equal-partition
  plantui sweep model.json --devices 8..512 --series piper --series \"keeps all:piper,recompute=never\" --svg chart.svg
  plantui sweep model.json --memory 1GiB..80GiB --resume sweep.csv
  plantui sweep graph.txt --planner parmesan --topology dgx-1,dgx-2,2xdgx-a100
  plantui sweep llama-3.1-8b --devices 64 --sequence-length 4096,8192,32768
  plantui sweep llama-3-8b --devices 16xh100,32xa100-80 --devices 24xh100,32xa100-80 --batch 64..512
  plantui sweep --study piper-figure-1 FOLDER --resume figure-1.csv
  plantui sweep model.json --devices 8..2048:x2 --shard 3/16 --resume part-3.csv
  plantui sweep model.json --devices 8..2048:x2 --resume part-1.csv --resume part-2.csv --output whole.csv

A limit is a value, a list, or a range FIRST..LAST. A range doubles by default; :xFACTOR and :+STEP set other steps, \
and LAST always belongs to it. One or two limits may have several values. A series is a planner with settings, with \
an optional name: NAME:PLANNER,SETTING=VALUE,.. The ends and the middle are computed first; Ctrl-C keeps the \
finished points. --resume continues a table: points with the same seed, deadline and workload are not computed \
again, and new points are added to it. Several --resume tables are joined, and --output writes the whole. --shard \
3/16 computes the third of sixteen shares of the points; docs/src/how-to/sweep.md shows how to run all of them on a \
cluster.
Exit codes: 0 some point has a plan, or the share is complete, 1 none has, 2 wrong use or input, 3 stopped before \
any plan, 70 a bug of plantui.";

/// Interval between two drawings of the bar.
const FRAME: Duration = Duration::from_millis(50);

/// Plan over ranges of one or two limits: table, CSV, JSON, chart
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Workloads to plan: files, or `-` for standard input; with --study the folder of the published inputs
    #[arg(required = true)]
    workload: Vec<PathBuf>,
    #[command(flatten)]
    limits: SweepLimits,
    #[command(flatten)]
    lines: SweepSeriesArgs,
    #[command(flatten)]
    cost: CostArgs,
    #[command(flatten)]
    output: SweepOutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
struct SweepSeriesArgs {
    /// A planner, with the settings of --set; may be repeated [default: the first that can plan the workload]
    #[arg(long, value_name = "ID", value_parser = arguments::planner_ids())]
    planner: Vec<String>,
    /// A planner with its own settings, such as "slow:piper,recompute=never"; may be repeated
    #[arg(long, value_name = "SERIES")]
    series: Vec<String>,
    /// Sets an option of every planner that has it, or a setting of the training. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// An experiment of a paper over its published inputs
    #[arg(long, value_name = "ID", value_parser = studies(), conflicts_with_all = ["planner", "series", "settings"])]
    study: Option<String>,
    /// Time for each point, such as 10s or 2min
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = arguments::deadline)]
    deadline: Option<Duration>,
    /// Threads to plan with; the points are the same for any number [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = arguments::threads)]
    threads: Option<u16>,
    /// Seed of planners with random choices
    #[arg(long, value_name = "S", allow_hyphen_values = true, default_value_t = 0, value_parser = arguments::seed)]
    seed: u64,
    /// Plans every point separately, so that its planning time is that of a single plan
    #[arg(long)]
    alone: bool,
    /// Computes one share of the points, such as 3/16: the third, the nineteenth, and so on
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct SweepOutputArgs {
    /// Figure of the table and the chart
    #[arg(long, value_name = "FIGURE", value_parser = figures())]
    figure: Option<String>,
    /// Prints one JSON document (schema plantui.sweep/1) in place of the table
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Prints the points as CSV in place of the table
    #[arg(long)]
    csv: bool,
    /// Writes the points as CSV to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Continues the sweep of this CSV file, or starts it, and keeps the file up to date. Several files are joined
    #[arg(long, value_name = "FILE")]
    resume: Vec<PathBuf>,
    /// Leaves out planning times, so that the tables of two runs are identical
    #[arg(long)]
    no_seconds: bool,
    /// Draws a chart into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Lets --output and --svg replace files
    #[arg(long)]
    force: bool,
}

fn studies() -> PossibleValuesParser {
    PossibleValuesParser::new(papers::ALL.iter().map(|paper| paper.id))
}

fn figures() -> PossibleValuesParser {
    let value = |figure: ChartFigure| match figure {
        ChartFigure::Idle => PossibleValue::new(figure.id()).alias("bubble"),
        figure => PossibleValue::new(figure.id()),
    };
    PossibleValuesParser::new(ChartFigure::ALL.map(value))
}

impl SweepArgs {
    /// Price and length of the training of each workload.
    fn costs(&self, sweep: &Sweep) -> Result<Vec<Option<TrainingCost>>, Failure> {
        let given = self.cost != CostArgs::default();
        let several = sweep.series.len() > 1 || sweep.axes.len() + usize::from(sweep.workloads.len() > 1) > 1;
        if given && !self.output.json && (self.output.csv || several) {
            let problem = "tokens, prices and failures add columns to a table of one line, which is not printed here";
            let repair = "use --json, or name one planner, vary one thing and leave out --csv";
            return Err(Failure::refused(problem, repair));
        }
        sweep.workloads.iter().map(|workload| TrainingCost::of(&self.cost, workload)).collect()
    }

    /// Sweeps, prints and writes the requested output.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if a result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let svg = self.output.svg.as_deref().map(|path| Destination::new(Some(path), self.output.force));
        svg.as_ref().map_or(Ok(()), Destination::check)?;
        let standard = |path: &PathBuf| path.as_os_str() == "-";
        let SweepOutputArgs { json, csv, output, resume, svg: chart, .. } = &self.output;
        if resume.iter().any(standard) {
            return Err(Failure::refused("--resume needs a file, not standard output", "give a path"));
        }
        let printed = usize::from(*json || *csv)
            + usize::from(output.as_ref().is_some_and(standard))
            + usize::from(chart.as_ref().is_some_and(standard));
        if printed > 1 {
            let hint = "write one of them to a file";
            return Err(Failure::refused("several results cannot share standard output", hint));
        }
        let mut store = Store::open(output.as_deref(), self.output.force, resume)?;
        let paper = self.lines.study.as_deref().and_then(papers::find);
        let sweep = match paper {
            Some(paper) => self.study(paper)?,
            None => self.grid()?,
        };
        let priced = |workload: &Arc<Workload>| KindCount::have_prices(&KindCount::of(workload));
        if self.output.figure.as_deref() == Some(ChartFigure::Cost.id()) && !sweep.workloads.iter().any(priced) {
            let repair = "write them in --devices, such as 16xh100:2.50,32xa100-80:1.20";
            return Err(Failure::refused("--figure cost is for devices with prices", repair));
        }
        let mut sweep = Sweep { alone: sweep.alone || self.lines.alone, ..sweep };
        if sweep.points.len() > MOST_POINTS {
            let message = format!("these are {} points, more than {MOST_POINTS}", sweep.points.len());
            return Err(Failure::refused(message, "take larger steps"));
        }
        if let Some(shard) = self.lines.shard {
            shard.keep(&mut sweep.points);
        }
        let costs = self.costs(&sweep)?;
        let run = sweep_csv::SweepContext::new(&sweep, self.lines.seed, self.lines.deadline);
        let run = if self.output.no_seconds { run.without_seconds() } else { run };
        let mut answers = store.before.answers(&sweep, &run);
        let taken = answers.iter().flatten().count();
        let stopped = self.answer(&sweep, &run, &mut answers, &mut store)?;
        store.write(&sweep, &run, &answers)?;
        let figure = self.output.figure.as_deref().map(|id| if id == "bubble" { ChartFigure::Idle.id() } else { id });
        let figure = figure.and_then(|id| ChartFigure::ALL.into_iter().find(|figure| figure.id() == id));
        let figure = figure.or(paper.map(|paper| paper.figure)).unwrap_or_default();
        if let Some(destination) = svg {
            let chart = Chart::new(&sweep, &answers, figure);
            let title = paper.map_or_else(|| sweep_report::title(&sweep), |paper| paper.title.into());
            destination.write(&sweep_svg::to_svg(&chart, &title))?;
        }
        let text = if self.output.json {
            output::json(&sweep_report::document(&sweep, &answers, &costs))
        } else if self.output.csv {
            sweep_csv::to_csv(&sweep, &run, &answers, &sweep_csv::SweepTable::default())
        } else {
            sweep_report::table(&sweep, &answers, figure, (taken, self.again().as_deref()), &costs)
                + &sweep_topologies::report(&sweep, &answers)
        };
        if *json || *csv || printed == 0 {
            output::print(&text)?;
        }
        let faults: BTreeSet<String> =
            answers.iter().flatten().filter_map(|answer| answer.fault.as_ref()).map(ToString::to_string).collect();
        faults.iter().for_each(print_bug);
        let stopped = stopped || answers.iter().flatten().any(|answer| answer.status == Status::Cancelled);
        let found = answers.iter().flatten().any(PointResult::has_plan);
        Ok(match (found, stopped) {
            (true, _) => CommandEnd::Done,
            (false, _) if !faults.is_empty() => CommandEnd::Bug,
            (false, true) => CommandEnd::Stopped,
            // Only the whole sweep shows if any point has a plan; a shard is done once it is answered.
            (false, false) if self.lines.shard.is_some() => CommandEnd::Done,
            (false, false) => CommandEnd::NoPlan,
        })
    }

    /// File from which a stopped sweep resumes.
    fn again(&self) -> Option<String> {
        let SweepOutputArgs { output, resume, .. } = &self.output;
        let file = output.as_ref().or(if let [file] = &resume[..] { Some(file) } else { None });
        file.map(|path| input::shown(path))
    }

    fn study(&self, paper: &Paper) -> Result<Sweep, Failure> {
        if let Some(flag) = self.limits.given() {
            return Err(Failure::refused(format!("--study {} sets its own limits", paper.id), format!("drop {flag}")));
        }
        let [folder] = &self.workload[..] else {
            let hint = "give the folder with the clones of the published repositories";
            return Err(Failure::refused(format!("--study {} takes one folder", paper.id), hint));
        };
        Ok(paper.sweep(folder)?)
    }

    fn grid(&self) -> Result<Sweep, Failure> {
        if self.workload.iter().filter(|path| input::is_standard_input(path)).count() > 1 {
            return Err(Failure::refused("standard input can be read once", "name files for the other workloads"));
        }
        let loaded = self.workload.iter().map(|path| self.limits.load(path)).collect::<Result<Vec<_>, _>>()?;
        let mut workloads: Vec<Workload> = loaded.into_iter().flatten().collect();
        // Settings that no workload has are options of planners.
        let mut settings = self.lines.settings.clone();
        let mut lacking: Vec<String> = vec![];
        let clusters: Vec<Vec<KindCount>> = workloads.iter().map(KindCount::of).collect();
        for (place, workload) in workloads.iter_mut().enumerate() {
            // A rate between places says nothing of a cluster in one place, if others are in several.
            let joins =
                |setting: &str, kinds: &[KindCount]| joins_some(setting.split('=').next().unwrap_or_default(), kinds);
            let (own, others): (Vec<String>, Vec<String>) = self.lines.settings.iter().cloned().partition(|setting| {
                joins(setting, &clusters[place]) || !clusters.iter().any(|kinds| joins(setting, kinds))
            });
            let given = training_input::software(workload, &own)?;
            let rest = profile_input::batch_of(workload, given, &self.limits.profile)?;
            settings.retain(|setting| rest.contains(setting));
            lacking.extend(
                rest.into_iter()
                    .chain(others)
                    .map(|setting| format!("--set {setting} changes nothing of {}", workload.name)),
            );
        }
        let of_planners = |told: &String| settings.iter().any(|setting| told.starts_with(&format!("--set {setting} ")));
        lacking.iter().filter(|told| !of_planners(told)).for_each(|told| notice::note(told));
        let workloads: Vec<Arc<_>> = workloads.into_iter().map(Arc::new).collect();
        let values = self.limits.values();
        let of_kinds = workloads.iter().map(|workload| KindCount::of(workload)).find(|kinds| !kinds.is_empty());
        if let Some(kinds) = of_kinds.filter(|_| values.iter().any(|values| values.kind == LimitKind::Memory)) {
            return Err(arguments::for_one_kind("--memory", &kinds));
        }
        let axes: Vec<&str> =
            values.iter().filter(|values| values.is_axis()).map(|values| values.kind.flag()).collect();
        if axes.len() > 2 {
            let message = format!("{} have several values each; a sweep has one or two such limits", axes.join(", "));
            return Err(Failure::refused(message, "give the others one value"));
        }
        let series = self.series(&workloads, &settings)?;
        if axes.is_empty() && workloads.len() == 1 && series.len() == 1 {
            let hint = "give a limit several, for example --devices 8..64";
            return Err(Failure::refused("no limit has several values, so there is nothing to sweep", hint));
        }
        let count = values.iter().map(|values| values.values.len()).product::<usize>();
        if count.saturating_mul(series.len() * workloads.len()) > MOST_POINTS {
            return Err(Failure::refused(format!("these are more than {MOST_POINTS} points"), "take larger steps"));
        }
        let sweep = Sweep::grid(workloads, series, &values, &self.limits.rest())
            .map_err(|(source, missing)| Failure::lacks(&source, &missing))?;
        check(&sweep)?;
        for ignored_limit in sweep.ignored_limits(&values.iter().map(|values| values.kind).collect::<Vec<_>>()) {
            notice::note(&ignored_limit.sentence(ignored_limit.kind.flag()));
        }
        Ok(sweep)
    }

    /// Requested planners and settings.
    fn series(&self, workloads: &[Arc<Workload>], settings: &[String]) -> Result<Vec<Series>, Failure> {
        let SweepSeriesArgs { planner, series, .. } = &self.lines;
        let mut lines: Vec<String> = planner.iter().chain(series).cloned().collect();
        if lines.is_empty() {
            lines.push(planning::choose(None, &workloads[0])?.info().id.into());
        }
        let refused = |error: crate::study::sweep::SeriesError| {
            Failure::refused(error.to_string(), "`plantui planners` lists every planner with its options")
        };
        let trained = workloads.iter().all(|workload| family::of(workload).has_platform());
        let series = sweep_topologies::series(&lines, settings, &self.limits, trained).map_err(refused)?;
        for setting in settings {
            let name = setting.split_once('=').map(|(name, _)| name.trim());
            let declared = |series: &Series| series.planner.options().iter().any(|spec| Some(spec.name) == name);
            if !series.iter().any(declared) {
                let message = match name {
                    Some(name) => format!("no planner of this sweep has the option `{name}`"),
                    None => format!("`{setting}` is not a setting; write name=value, for example recompute=never"),
                };
                return Err(Failure::refused(message, "`plantui planners` lists every planner with its options"));
            }
        }
        if let Some(one) =
            series.iter().find(|one| one.options.get("minimise").is_some_and(|value| value.text() == "both"))
        {
            let problem = format!("{} lists cheaper plans with minimise=both, and a sweep shows one plan", one.label);
            return Err(Failure::refused(problem, "write minimise=time or minimise=cost"));
        }
        for (place, one) in series.iter().enumerate() {
            if series[..place].iter().any(|other| other.label == one.label) {
                let message = format!("two series are named `{}`", one.label);
                return Err(Failure::refused(message, "remove one, or name it: NAME:PLANNER,.."));
            }
        }
        Ok(series)
    }

    /// Answers the open points; returns true if it was stopped.
    fn answer(
        &self,
        sweep: &Sweep,
        rests_on: &sweep_csv::SweepContext,
        answers: &mut [Option<PointResult>],
        store: &mut Store,
    ) -> Result<bool, Failure> {
        let wanted: Vec<usize> = (0..answers.len()).filter(|&place| answers[place].is_none()).collect();
        if wanted.is_empty() {
            return Ok(false);
        }
        let search = Search::new(None, self.lines.seed);
        let interrupt = Interrupt::cancels(&search)?;
        let threads = self.lines.threads.unwrap_or(0);
        let pool = planning::pool(threads)?;
        let (sender, receiver) = mpsc::channel::<(usize, PointResult)>();
        thread::scope(|scope| {
            let (wanted, search) = (&wanted, &search);
            let work = scope.spawn(move || {
                // A send fails only after this command has failed; the rest is not needed then.
                let found = |place, answer| drop(sender.send((place, answer)));
                pool.install(|| run::run(sweep, wanted, self.lines.deadline, search, &found));
            });
            let mut bar = CountBar::new("sweep", wanted.len());
            let written = loop {
                match receiver.recv_timeout(FRAME) {
                    Ok((place, answer)) => {
                        answers[place] = Some(answer);
                        bar.step();
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
                }
                bar.update(interrupt.pressed());
                // A table without rows is useless.
                if store.is_due()
                    && answers.iter().any(Option::is_some)
                    && let Err(failure) = store.write(sweep, rests_on, answers)
                {
                    search.cancel();
                    break Err(failure);
                }
            };
            drop(bar);
            work.join().unwrap_or_else(|bug| panic::resume_unwind(bug));
            written
        })?;
        Ok(interrupt.pressed())
    }
}

/// Checks that some series can plan some workload, and that those have the options they need.
fn check(sweep: &Sweep) -> Result<(), Failure> {
    let mut reasons = vec![];
    for (place, series) in sweep.series.iter().enumerate() {
        for (at, workload) in sweep.workloads.iter().enumerate() {
            if let Some(reason) = sweep.refusal(place, at) {
                reasons.push(reason);
                continue;
            }
            if let Some(point) = sweep.points.iter().find(|point| point.workload == at && point.series == place) {
                let options = series.options.clone();
                let problem = Problem { workload: Arc::clone(workload), limits: point.limits.clone(), options };
                match series.planner.check_options(&problem) {
                    // Another workload may suit it.
                    Err(unsuited @ OptionError::Unsuited { .. }) => reasons.push(unsuited.to_string()),
                    checked => checked?,
                }
            }
        }
    }
    if reasons.len() == sweep.workloads.len() * sweep.series.len() {
        return Err(Failure::refused(reasons.join("; "), "`plantui planners` lists every planner"));
    }
    for reason in reasons {
        notice::note(&reason);
    }
    Ok(())
}
