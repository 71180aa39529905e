//! `plantui compare`: all planners that support the workload, and plans from files, in one table and one simulator.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs},
    cost::{Cost, CostArgs, PlanRate, TrainingCost},
    failure::print_bug,
    input,
    interrupt::Interrupt,
    job_input,
    output::{self, Destination},
    planning,
    report::{self, line},
    schedule_table::{self, PlanSchedules, SchedulesDocument},
    setup::SetupArgs,
    training_input,
    watch::watched,
};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::{GivenLimits, Limits},
    family, notice,
    plan::{
        Plan,
        document::{ObjectivePart, WorkloadPart, limits_part},
    },
    planner::{self, Options, Planner, Problem, Search, Status},
    simulate::{LEAST_TIME, Pipeline, Schedule, Setup},
    study::{
        columns::{self, Column},
        compare::{self, ComparedPlan, TIME_FOR_EACH},
        schedules,
    },
    workload::Workload,
};

const EXAMPLES: &str = "\
Examples:
  plantui compare model.json
  plantui compare model.json --devices 64 --sort throughput
  plantui compare model.json --planner piper --planner equal-partition --plan mine.json
  plantui compare model.json --schedule gpipe --no-overlap --json
  plantui compare llama-3.1-405b --hardware h100 --devices 1024 --batch 2048 --schedule all

Every planner plans with its default options under the same limits; every plan is simulated in the same simulator \
under the same schedule. `model error` compares a planner's own time per sample with the simulated one; a negative \
error means that the planner's model is too optimistic. Plans from files are scored under the same limits.
Exit codes: 0 there is a plan, 1 no planner found one, 2 wrong use or input, 3 stopped before any plan, 70 a bug of \
plantui.";

/// Plan with all suitable planners and compare the plans in one simulator
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Workload to plan: a file, or `-` for standard input
    workload: PathBuf,
    /// Only this planner; may be repeated [default: every planner that can plan the workload]
    #[arg(long, value_name = "ID", value_parser = arguments::planner_ids())]
    planner: Vec<String>,
    /// Adds a plan from a file; may be repeated
    #[arg(long, value_name = "FILE")]
    plan: Vec<PathBuf>,
    /// A setting of the training, such as fsdp=true or between_places=1GB/s; planners keep their defaults. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Time for each planner, such as 10s or 2min [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = arguments::deadline)]
    deadline: Option<Duration>,
    /// Seed of planners with random choices
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Column that sorts the table
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t = SortKey::Iteration)]
    sort: SortKey,
    /// Prints one JSON document (schema plantui.compare/1) in place of the table
    #[arg(long)]
    json: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    cost: CostArgs,
    #[command(flatten)]
    setup: SetupArgs,
}

/// Planner and its problem.
struct ComparedProblem {
    planner: &'static dyn Planner,
    problem: Problem,
}

/// Sort key within each objective; entries without a figure come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortKey {
    /// Simulated samples per second, most first
    Throughput,
    /// Simulated iteration time, or the time of one sample if latency is the objective, least first
    Iteration,
    /// Simulated idle share, least first
    #[value(alias = "bubble")]
    Idle,
    /// Simulated peak memory, least first
    Memory,
    /// Devices used, fewest first
    Devices,
    /// Time spent planning, least first
    Planning,
    /// In the order of the planners
    Listed,
}

/// Plans of several planners in one simulator.
#[derive(Debug, Serialize, JsonSchema)]
struct CompareDocument<'a> {
    schema: &'static str,
    workload: WorkloadPart,
    limits: GivenLimits,
    /// Settings of the simulator, except the schedule.
    played_with: Vec<String>,
    entries: Vec<EntryPart<'a>>,
    left_out: Vec<SkippedPlanner>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EntryPart<'a> {
    id: &'a str,
    name: &'a str,
    status: Option<Status>,
    objective: Option<ObjectivePart>,
    lower_bound: Option<f64>,
    gap: Option<f64>,
    /// Plans that bound and gap cover, if not all.
    proven_among: Option<&'a str>,
    stages: Option<usize>,
    devices: Option<u32>,
    /// Layout of a model to be trained, in the notation of `--parallel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<String>,
    schedule: Option<&'static str>,
    iteration_s: Option<f64>,
    samples_per_s: Option<f64>,
    bubble: Option<f64>,
    peak_memory_bytes: Option<f64>,
    prediction_error: Option<f64>,
    /// Relative excess of the simulated iteration time over that of Joint's plan.
    against_joint: Option<f64>,
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    remarks: &'a [String],
    /// Bug of the planner.
    #[serde(skip_serializing_if = "Option::is_none")]
    bug: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SkippedPlanner {
    id: &'static str,
    reason: String,
}

impl SortKey {
    fn column(self) -> Option<Column> {
        match self {
            SortKey::Throughput => Some(Column::Throughput),
            SortKey::Iteration => Some(Column::Time),
            SortKey::Idle => Some(Column::Idle),
            SortKey::Memory => Some(Column::Memory),
            SortKey::Devices => Some(Column::Devices),
            SortKey::Planning => Some(Column::Planning),
            SortKey::Listed => None,
        }
    }
}

impl CompareArgs {
    /// Plans, simulates and prints.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if the result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        for plan in &self.plan {
            input::one_standard_input(&self.workload, plan)?;
        }
        let mut workload = self.limits.load(&self.workload)?;
        if let Some(plan) = self.plan.first() {
            workload = self.limits.profile.over_for(workload, plan)?;
        }
        let others = training_input::software(&mut workload, &self.settings)?;
        if let Some(setting) = others.first() {
            let problem = format!("--set {setting} is no setting of the training of {}", workload.name);
            return Err(Failure::refused(problem, "compare a planner's options with `plantui sweep --series`"));
        }
        let workload = Arc::new(workload);
        let limits = planning::resolve(&workload, &self.limits)?;
        let cost = TrainingCost::of(&self.cost, &workload)?;
        if self.setup.all_schedules() && (cost.is_some() || self.sort != SortKey::Iteration) {
            let flag = if cost.is_some() { "--tokens and --price say nothing" } else { "--sort changes nothing" };
            let problem = format!("{flag} with --schedule all, which sorts each plan's schedules by time");
            return Err(Failure::refused(problem, "leave it out, or choose one schedule"));
        }
        let setup = self.setup.simulate();
        let (able, left_out) = self.planners(&workload, &limits)?;
        let mut entries = vec![];
        for path in &self.plan {
            let mut loaded = input::plan(path, &workload)?;
            if let Some((name, [made, now])) = loaded.trained_otherwise(&workload) {
                let problem = format!("{} has {name} {made}, and the other plans have {now}", input::shown(path));
                return Err(Failure::refused(problem, "compare with the same flags, or plan again"));
            }
            loaded.under(&limits);
            self.limits.wire(&mut loaded.plan);
            let search = Search::new(self.deadline, self.seed);
            entries.push(compare::existing_plan(&input::shown(path), &workload, &limits, loaded.plan, setup, &search));
        }
        if let Some(job) = job_input::read(&self.workload, &self.limits.job_facts()?)? {
            let mut plan = job.plan()?;
            self.limits.wire(&mut plan);
            let search = Search::new(self.deadline, self.seed);
            entries.push(compare::existing_plan("as it runs", &workload, &limits, plan, setup, &search));
        }
        let stopped = self.ask(able, setup, &mut entries)?;
        compare::share_bounds(&mut entries.iter_mut().collect::<Vec<_>>());
        if self.setup.all_schedules() {
            return self.schedules(&workload, &limits, &entries, (&left_out, &destination));
        }
        self.print_unused_flags(&workload, &limits, setup, &entries);
        columns::sort(&mut entries, |entry| entry, self.sort.column(), false);
        let reference_s = compare::reference_s(&entries);
        let text = if self.json {
            output::json(&CompareDocument {
                schema: "plantui.compare/1",
                workload: workload.as_ref().into(),
                limits: limits_part(&limits, family::of(&workload).limits()),
                played_with: setup.changes(),
                entries: entries
                    .iter()
                    .map(|entry| EntryPart::new((&workload, &limits), entry, reference_s, cost.as_ref()))
                    .collect(),
                left_out,
            })
        } else {
            report(&workload, &limits, setup, &entries, (&left_out, cost.as_ref()))
        };
        destination.write(&text)?;
        let found = entries.iter().any(|entry| entry.value().is_some());
        let failed = entries.iter().any(|entry| entry.fault.is_some());
        Ok(match (found, stopped) {
            (true, _) => CommandEnd::Done,
            (false, _) if failed => CommandEnd::Bug,
            (false, true) => CommandEnd::Stopped,
            (false, false) => CommandEnd::NoPlan,
        })
    }

    /// Writes a table of all schedules for every plan.
    fn schedules(
        &self,
        workload: &Workload,
        limits: &Limits,
        entries: &[ComparedPlan],
        (left_out, destination): (&[SkippedPlanner], &Destination),
    ) -> Result<CommandEnd, Failure> {
        let search = Search::new(self.deadline, self.seed);
        let mut plans = vec![];
        for entry in entries.iter().filter(|entry| entry.value().is_some()) {
            let Some(plan) = &entry.plan else { continue };
            match schedules::all(workload, limits, plan, self.setup.simulate(), &search) {
                Ok(schedules) => {
                    let layout = plan.configuration().map_or(String::new(), |layout| format!(": {layout}"));
                    let name = format!("{}{layout}", entry.name);
                    plans.push(PlanSchedules { id: entry.id.clone(), name, schedules });
                }
                Err(given_up) => notice::error(&format!("{}: {given_up}", entry.name)),
            }
        }
        let found = !plans.is_empty();
        let limit = limits.memory_limit();
        let text = if self.json {
            output::json(&SchedulesDocument::new(&workload.name, limit, plans))
        } else {
            let mut text = String::new();
            line(&mut text, format_args!("{}", report::about(workload)));
            line(&mut text, format_args!("limits: {}", report::limits(workload, limits)));
            schedule_table::tables(&mut text, &plans, limit);
            for entry in entries.iter().filter(|entry| entry.value().is_none()) {
                line(&mut text, format_args!("no plan: {}: {}", entry.name, entry.remarks.join("; ")));
            }
            skipped(&mut text, left_out);
            text
        };
        destination.write(&text)?;
        Ok(if found { CommandEnd::Done } else { CommandEnd::NoPlan })
    }

    /// Prints which flags affect none of the plans.
    fn print_unused_flags(&self, workload: &Workload, limits: &Limits, setup: Setup, entries: &[ComparedPlan]) {
        let pipelines: Vec<(Schedule, Pipeline)> = entries
            .iter()
            .filter_map(|entry| entry.plan.as_ref().zip(entry.simulated.as_ref()))
            .map(|(plan, simulated)| {
                // Routes do not change which settings are supported.
                let plain = Plan { topology: None, ..plan.clone() };
                (simulated.schedule, family::pipeline(workload, limits, &plain, &setup.of(plan).settings))
            })
            .collect();
        for told in self.setup.unused_settings(pipelines.iter().map(|(schedule, pipeline)| (*schedule, pipeline))) {
            notice::note(&told);
        }
    }

    /// Planners to run, and the reasons why others are left out.
    fn planners(
        &self,
        workload: &Arc<Workload>,
        limits: &Limits,
    ) -> Result<(Vec<ComparedProblem>, Vec<SkippedPlanner>), Failure> {
        let (mut able, mut left_out) = (vec![], vec![]);
        for &planner in planner::all() {
            let id = planner.info().id;
            let named = self.planner.iter().any(|wanted| wanted == id);
            if !named && (!self.planner.is_empty() || !planner.stands_alone()) {
                continue;
            }
            let settings = planning::settings(planner, &self.limits, &[]);
            let options = Options::parse(id, planner.options(), settings.iter().map(String::as_str))?;
            let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options };
            let asked = planner
                .can_plan(workload)
                .map_err(|reason| reason.to_string())
                .and_then(|()| planner.check_options(&problem).map_err(|error| error.to_string()));
            match asked {
                Ok(()) => able.push(ComparedProblem { planner, problem }),
                Err(reason) => left_out.push(SkippedPlanner { id, reason }),
            }
        }
        if able.is_empty() && self.plan.is_empty() {
            let reasons: Vec<String> = left_out.iter().map(|out| format!("{}: {}", out.id, out.reason)).collect();
            return Err(Failure::refused(
                format!("no planner can plan {}: {}", workload.name, reasons.join("; ")),
                "`plantui planners` lists every planner",
            ));
        }
        Ok((able, left_out))
    }

    /// Runs the planners one after the other. Ctrl-C stops the current one and skips the rest. Returns true if it was
    /// pressed.
    fn ask(
        &self,
        planners: Vec<ComparedProblem>,
        setup: Setup,
        entries: &mut Vec<ComparedPlan>,
    ) -> Result<bool, Failure> {
        let all = Search::new(None, self.seed);
        let interrupt = Interrupt::cancels(&all)?;
        for ComparedProblem { planner, problem } in planners {
            if interrupt.pressed() {
                break;
            }
            let search = all.part(Some(self.deadline.unwrap_or(TIME_FOR_EACH)));
            // A plan stopped by Ctrl-C is still simulated, until Ctrl-C is pressed again.
            let then = |search: &Search| {
                let after = search.follow(LEAST_TIME);
                interrupt.follows();
                after
            };
            let shown = (planner.info().name, planner.measure(&problem.workload, &problem.options));
            let work = || compare::planned(planner, problem, setup, &search, then);
            let entry = watched(shown, &search, &interrupt, work);
            entry.fault.iter().for_each(print_bug);
            entries.push(entry);
        }
        Ok(interrupt.pressed())
    }
}

impl<'a> EntryPart<'a> {
    fn new(
        problem: (&Workload, &Limits),
        entry: &'a ComparedPlan,
        reference_s: Option<f64>,
        cost: Option<&TrainingCost>,
    ) -> Self {
        let simulated = entry.simulated.as_ref();
        let score = entry.score.as_ref().filter(|score| score.is_valid());
        EntryPart {
            id: &entry.id,
            name: &entry.name,
            status: entry.status,
            objective: score.map(|score| ObjectivePart {
                name: score.measure.name().into(),
                value: score.value,
                unit: score.measure.unit().into(),
                parameters: score.measure.parameters(),
            }),
            lower_bound: entry.bound,
            gap: entry.gap(),
            proven_among: entry.proven_among.as_deref(),
            stages: entry.plan.as_ref().map(|plan| plan.stages.len()),
            devices: entry.plan.as_ref().map(Plan::devices_used),
            layout: entry.plan.as_ref().and_then(Plan::configuration).map(ToString::to_string),
            schedule: simulated.map(|simulated| simulated.schedule.id()),
            iteration_s: simulated.map(|simulated| simulated.iteration_s),
            samples_per_s: simulated.map(|simulated| simulated.samples_per_s),
            bubble: simulated.map(|simulated| simulated.idle),
            peak_memory_bytes: simulated.map(|simulated| simulated.peak_memory_bytes),
            prediction_error: entry.prediction_error(),
            against_joint: entry.against(reference_s),
            seconds: entry.seconds,
            cost: cost.zip(rate(problem, entry)).and_then(|(cost, rate)| cost.figures(&rate)),
            remarks: &entry.remarks,
            bug: entry.fault.as_ref().map(ToString::to_string),
        }
    }
}

/// Assumptions of the rows, each sentence once, with the names of the rows concerned.
fn remarks(entries: &[ComparedPlan]) -> Vec<String> {
    let mut told: Vec<(&str, Vec<&str>)> = vec![];
    for (remark, name) in entries.iter().flat_map(|entry| entry.remarks.iter().map(|remark| (remark, &entry.name))) {
        match told.iter_mut().find(|(known, _)| known == remark) {
            Some((_, names)) => names.push(name),
            None => told.push((remark, vec![name])),
        }
    }
    let whom = |names: &[&str]| match names.len() {
        1..=3 => names.join(", "),
        count if count == entries.len() => format!("all {count}"),
        count => format!("{} and {} others", names[..2].join(", "), count - 2),
    };
    told.iter().map(|(remark, names)| format!("{}: {remark}", whom(names))).collect()
}

/// Rate of a plan.
fn rate((workload, limits): (&Workload, &Limits), entry: &ComparedPlan) -> Option<PlanRate> {
    let simulated = entry.simulated.as_ref()?;
    let times = (simulated.samples_per_s, simulated.iteration_s);
    Some(PlanRate::of(workload, limits, entry.plan.as_ref()?, times))
}

/// Rows of one objective below their head.
fn table(
    problem: (&Workload, &Limits),
    entries: &[ComparedPlan],
    reference_s: Option<f64>,
    cost: Option<&TrainingCost>,
) -> Vec<Vec<String>> {
    let titles = Column::ALL.map(|column| column.title().to_string());
    let against = reference_s.map(|_| "against joint".to_string());
    let costs = cost.map(TrainingCost::heads).unwrap_or_default();
    let mut rows: Vec<Vec<String>> =
        vec![titles.into_iter().chain(against).chain(costs).chain(["planner".into()]).collect()];
    for entry in entries {
        let status = match entry.status {
            Some(Status::Infeasible) => " (no plan)",
            Some(Status::Cancelled) => " (stopped)",
            None if entry.fault.is_some() => " (bug)",
            None if entry.value().is_none() => " (not valid)",
            _ => "",
        };
        let cells = Column::ALL.map(|column| column.cell(entry));
        let against = reference_s
            .map(|_| entry.against(reference_s).map_or("-".into(), |share| format!("{:+.1}%", 100.0 * share)));
        let costs = cost.map(|cost| cost.cells(rate(problem, entry))).unwrap_or_default();
        rows.push(cells.into_iter().chain(against).chain(costs).chain([format!("{}{status}", entry.name)]).collect());
    }
    rows
}

fn report(
    workload: &Workload,
    limits: &Limits,
    setup: Setup,
    entries: &[ComparedPlan],
    (left_out, cost): (&[SkippedPlanner], Option<&TrainingCost>),
) -> String {
    let reference_s = compare::reference_s(entries);
    let mut text = String::new();
    line(&mut text, format_args!("{}", report::about(workload)));
    line(&mut text, format_args!("limits: {}", report::limits(workload, limits)));
    let simulated: Vec<String> = [setup.schedule.name().to_string()].into_iter().chain(setup.changes()).collect();
    line(&mut text, format_args!("simulated as {}", simulated.join(", ")));
    line(&mut text, format_args!(""));
    for (place, group) in entries.chunk_by(|a, b| columns::group(a) == columns::group(b)).enumerate() {
        if place > 0 {
            line(&mut text, format_args!(""));
        }
        let valid = columns::group(&group[0]).and_then(|_| columns::group_title(group));
        let title = valid.unwrap_or_else(|| "no plan".into());
        line(&mut text, format_args!("{title}"));
        report::table(&mut text, &table((workload, limits), group, reference_s, cost));
    }
    report::notes(&mut text, &remarks(entries));
    skipped(&mut text, left_out);
    text
}

/// Planners that are left out. Those of a family share their reason.
fn skipped(text: &mut String, left_out: &[SkippedPlanner]) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for SkippedPlanner { id, reason } in left_out {
        reasons.entry(reason).or_default().push(id);
    }
    for (reason, ids) in reasons {
        line(text, format_args!("left out: {}: {reason}", ids.join(", ")));
    }
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<CompareDocument<'_>>("plantui.compare/1")
}
