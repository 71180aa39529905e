//! Joint: finds the plan with the least simulated iteration time, with a proven gap.
//!
//! Published planners minimise the load of the slowest stage in the steady state. This one minimises the simulated
//! iteration: warm-up and drain, transfers, all-reduce, and memory by position in the pipeline. It searches plans that
//! engines run unchanged: one tensor degree and one number of replicas for all stages, contiguous stages of one order
//! of the network ([`line`]), and recomputation by node (`recompute`). Own work. The schedule is by Narayanan et al.
//! (PipeDream-Flush, ICML 2021), the costs are Piper's (NeurIPS 2021). `README.md` describes the method and lists the
//! files.
//!
//! The search times splits with its own fast evaluation. The reported time comes from [`plantui_core::simulate`], and
//! [`plantui_core::family::check()`] confirms the plan; it shares code with neither.
//!
//! With `n` units, `t` tensor degrees, up to `S` stages and `w` units that fit a stage: `O(t · S · n · w)` time for the
//! tables, `O(S · n · w)` for each decision, and `O(t · S · n + S · n · w)` memory.

mod anywhere;
mod bounds;
mod build;
mod chain;
mod climb;
mod decide;
mod elsewhere;
mod engine;
mod evaluate;
mod interleave;
mod kind;
mod line;
pub mod mixed;
mod none;
#[cfg(test)]
mod path_tests;
mod paths;
mod ranks;
mod recompute;
mod routes;
mod search;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod training;
mod unsearched;
mod weighing;
mod whole;

use std::cell::Cell;

use crate::{
    CannotPlan, Declaration, OptionError, OptionSpec, Others, Outcome, Planner, PlannerInfo, Problem, Proves, Status,
    Uses,
};
use plantui_core::{
    cluster::{LimitKind, Limits},
    family::{self, training::Stack},
    plan::{Measure, Plan, Schedule, runner::Runner},
    search::Search,
    workload::{PiperProfile, Profile, Workload},
};

use crate::{
    engine_layers::{self, Rule},
    pipeline_options::Recompute,
};
use engine::EngineDemands;
use kind::{Plans, ScheduleKind};
use line::{DegreeCosts, UnitLine};
use none::SufficientLimits;
use routes::{Rates, RoutePlans};
use search::{ClassSearch, FoundPlan, LineSplit, RouteTime, SearchScope};
use settings::JointSettings;
use table::DegreeTable;
use whole::AlongWhole;

/// Maximum number of units. Longer lines are thinned.
const MOST_UNITS: usize = 256;
/// Number of nodes from which a network gets a plan before the full search.
const LONG: usize = 1000;
/// Reason to refuse a workload whose nodes share no tensor degree.
const NO_COMMON_DEGREE: &str = "No tensor degree is common to all nodes, and all stages share one degree.";
/// Relative rounding error of sums of bytes that are not integers.
const MEMORY_TOLERANCE: f64 = 1e-12;
/// Relative gap below which a plan counts as optimal.
const CLOSED: f64 = 1e-9;

/// Engine that runs the configurations of a training stack.
pub(crate) fn engine_of(stack: Stack) -> Runner {
    match stack {
        Stack::Megatron2025 | Stack::Nemo24 | Stack::Plain => Runner::Megatron,
        Stack::Torchtitan => Runner::TorchTitan,
    }
}

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "joint",
        name: "Joint",
        paper: "plantui's own; schedule after Narayanan et al.: Memory-Efficient Pipeline-Parallel DNN Training, \
            ICML 2021",
        summary: "stages, replicas, tensor degree and recomputation with the least simulated iteration time",
        objective: "iteration_time",
        unit: "s",
    },
    options: &settings::OPTIONS,
    proves: Proves::Among(&settings::BEARINGS),
    tunables: &settings::TUNABLES,
    can_plan,
    ignores,
    other_limits: |workload| match &workload.profile {
        Profile::Training(_) => Some(&LimitKind::LAYERS[..]),
        Profile::Mixed(_) => Some(&[LimitKind::Devices, LimitKind::Batch]),
        _ => None,
    },
    check_options,
    searches_routes: true,
    uses: Uses::Optional,
    ..Declaration::NEW
};

/// Joint planner.
#[derive(Debug, Clone, Copy)]
pub struct Joint;

impl Planner for Joint {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        self.plan_from(problem, &Others::NONE, search)
    }

    fn plan_from(&self, problem: &Problem, others: &Others<'_>, search: &Search) -> Outcome {
        if let Some(profile) = problem.workload.training() {
            let settings = JointSettings::new(&problem.options);
            let mut outcome = training::plan(profile, &problem.limits, &settings, search);
            tell_unsearched(problem, engine_of(profile.stack), &settings, &mut outcome, search);
            outcome.statistics.seconds = search.elapsed().as_secs_f64();
            return outcome;
        }
        if let Some(profile) = problem.workload.mixed() {
            let settings = JointSettings::new(&problem.options);
            let mut outcome = mixed::outcome(profile, &problem.limits, &settings, search);
            outcome.statistics.seconds = search.elapsed().as_secs_f64();
            return outcome;
        }
        let Some(profile) = problem.workload.piper() else { return Outcome::new(Status::Infeasible) };
        let settings = JointSettings::new(&problem.options);
        // Bounds on plans that engines run do not hold for other plans.
        let narrow = if settings.anywhere { search.without_bounds() } else { search.clone() };
        let mut outcome = ProfileSearch::plan_within(problem, profile, settings, &narrow);
        if settings.wanted.kinds(&|_| true).iter().any(|&kind| kind != ScheduleKind::ONE) {
            let quiet = search.quiet();
            let plan = |problem: &Problem| ProfileSearch::plan_within(problem, profile, settings, &quiet);
            outcome = none::confirmed(problem, outcome, search, &plan);
        }
        if settings.anywhere {
            outcome = anywhere::plan(problem, settings, outcome, others, search);
        }
        outcome.notes.extend(settings.wanted.ignored_parts());
        if let Some(runner) = settings.engine {
            tell_unsearched(problem, runner, &settings, &mut outcome, search);
        }
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }
}

/// Adds a note on schedules that an engine runs and that were not searched, if the schedule is free.
fn tell_unsearched(
    problem: &Problem,
    runner: Runner,
    settings: &JointSettings,
    outcome: &mut Outcome,
    search: &Search,
) {
    let found = outcome.plan.as_ref().zip(outcome.objective).filter(|_| settings.wanted.schedule.is_none());
    let Some((plan, seconds)) = found.filter(|(plan, _)| plan.stages.len() > 1) else { return };
    let note = unsearched::note((&problem.workload, &problem.limits), runner, (plan, seconds), search);
    outcome.notes.extend(note);
}

/// Options that change nothing about plans of a workload.
fn ignores(workload: &Workload) -> &'static [&'static str] {
    match &workload.profile {
        Profile::Training(profile) => training::ignored(profile),
        Profile::Mixed(_) => &settings::NOT_OF_KINDS,
        _ => &settings::OF_TRAINED_MODELS,
    }
}

fn can_plan(workload: &Workload) -> Result<(), CannotPlan> {
    match workload.piper() {
        Some(profile) if profile.has_common_degree() => Ok(()),
        Some(_) => Err(NO_COMMON_DEGREE.into()),
        None if workload.training().is_some() || workload.mixed().is_some() => Ok(()),
        None => Err("Joint needs a profile with times and memory by tensor degree (Piper's JSON), or a model to be \
                     trained (config.json)"
            .into()),
    }
}

fn check_options(problem: &Problem) -> Result<(), OptionError> {
    let options = &problem.options;
    let set = |spec: &&OptionSpec| options.get(spec.name).is_some_and(|value| value != spec.default_value());
    let ignored = (DECLARATION.ignores)(&problem.workload);
    let settings = JointSettings::new(options);
    let stack = problem.workload.training().map(|profile| profile.stack);
    let asked_for = |spec: &&OptionSpec| match stack {
        Some(stack) if spec.name == "engine" => settings.engine.is_some_and(|engine| engine != engine_of(stack)),
        _ => set(spec),
    };
    let found = settings::OPTIONS.iter().filter(|spec| ignored.contains(&spec.name)).find(asked_for);
    if let Some(spec) = found.filter(|_| stack.is_none()) {
        let workload = match &problem.workload.profile {
            Profile::Mixed(_) => "several kinds of devices: all plans run 1F1B on one chain of stages".into(),
            _ => "a profile: its nodes have tensor degrees alone".into(),
        };
        return Err(OptionError::Ignored { planner: DECLARATION.info.id.into(), name: spec.name.into(), workload });
    }
    if let Some((spec, stack)) = found.zip(stack) {
        let (engine, id) = (engine_of(stack).title(), stack.id());
        let why = match spec.name {
            "engine" => {
                format!("--stack {id} means {engine} (--stack torchtitan is torchtitan, all others are Megatron-LM)")
            }
            _ => "its layouts are those of the engine named by --stack".into(),
        };
        let workload = match spec.name {
            "minimise" | "most_per_hour" | "most_cost" => {
                "a model on devices without a price (one is given by --devices 16xh100:2.50)".into()
            }
            _ => format!("a model to be trained: {why}"),
        };
        return Err(OptionError::Ignored { planner: DECLARATION.info.id.into(), name: spec.name.into(), workload });
    }
    if let Some(profile) = problem.workload.mixed() {
        return mixed::check_prices(problem, profile);
    }
    match settings.engine.filter(|_| problem.workload.piper().is_some()) {
        Some(runner) => engine::check(problem, runner, settings),
        None => Ok(()),
    }
}

/// Workload to plan, with limits and settings.
struct ProfileSearch<'a> {
    workload: &'a Workload,
    profile: &'a PiperProfile,
    limits: &'a Limits,
    settings: JointSettings,
    search: &'a Search,
    /// Relative tolerance of the memory limit for rounding errors in sums.
    rounding: f64,
    /// Assumed bandwidths of transfers and all-reduces.
    rates: Rates,
    /// Plans simulated on the routes of a topology, if there is one.
    judged: Option<&'a RoutePlans<'a>>,
    /// Warm start, with its seconds.
    first: Option<(f64, Plan)>,
}

/// Best plan over all rules, and their joint bound.
struct RuleResults {
    plan: Option<(f64, Plan)>,
    lower: f64,
    stopped: bool,
    leaves_out: bool,
    counts: [usize; 3],
    enough: SufficientLimits,
    along_whole: AlongWhole,
}

impl ProfileSearch<'_> {
    /// Plans with slightly more memory than the limit, so that the bound holds despite rounding. The plan nearly always
    /// keeps the limit. Otherwise a second search uses slightly less memory, and the first bound is kept.
    fn plan_within(problem: &Problem, profile: &PiperProfile, settings: JointSettings, search: &Search) -> Outcome {
        let profile_search = ProfileSearch {
            workload: &problem.workload,
            profile,
            limits: &problem.limits,
            settings,
            search,
            rounding: MEMORY_TOLERANCE,
            rates: Rates::uniform(problem.limits.bandwidth()),
            judged: None,
            first: None,
        };
        let bound = profile_search.plan();
        if bound.plan.as_ref().is_none_or(|plan| profile_search.fits(plan)) {
            return bound;
        }
        let search = search.without_bounds();
        let outcome =
            ProfileSearch { search: &search, rounding: -MEMORY_TOLERANCE, first: None, ..profile_search }.plan();
        let Some(seconds) = outcome.objective else { return outcome };
        let lower_bound = bound.lower_bound.map(|lower| lower.min(seconds));
        let open = lower_bound.is_none_or(|lower| seconds - lower > CLOSED * seconds);
        let status = if open && outcome.status == Status::Optimal { Status::Feasible } else { outcome.status };
        Outcome { status, lower_bound, ..outcome }
    }

    fn plan(&self) -> Outcome {
        match &self.limits.topology {
            Some(wired) => self.plan_on(&wired.topology),
            None => self.search(),
        }
    }

    // Long: each search passes its best plan and bound to the next.
    fn search(&self) -> Outcome {
        let dag = &self.workload.dag;
        let engine = match self.settings.engine {
            Some(runner) => match EngineDemands::new(runner, self.workload, self.limits.machines.whole()) {
                Ok(engine) => Some(engine),
                Err(why) => return engine_layers::refused(self.workload, &why),
            },
            None => None,
        };
        let whole =
            engine.as_ref().map_or_else(|| UnitLine::of(dag), |engine| UnitLine::layered(&engine.layering, dag));
        let places = whole.len();
        // An engine that counts layers limits their number itself.
        let fine = (engine.is_none() && places > MOST_UNITS).then(|| whole.clone());
        let line = if engine.is_some() { whole } else { whole.thinned(MOST_UNITS) };
        if let Some(stages) = self.settings.stages.filter(|&stages| stages > line.len()) {
            return Outcome::refused(format!(
                "{stages} stages are required, but the network can be cut into {} at most.",
                line.len()
            ));
        }
        let rules = match (&engine, self.settings.recompute) {
            (Some(engine), _) => engine.rules(&self.settings),
            (None, Recompute::AllOrNone) => vec![Rule::StageByStage],
            (None, _) => vec![Rule::Free],
        };
        let runner = self.settings.engine;
        let wanted = self.settings.wanted;
        let runs = |schedule: Schedule| runner.is_none_or(|runner| runner.schedules().contains(&schedule));
        let kinds = wanted.kinds(&runs);
        if let (Some(engine), true) = (&engine, kinds.is_empty()) {
            let known: Vec<&str> = engine.runner.schedules().iter().map(|schedule| schedule.id()).collect();
            let title = engine.runner.title();
            return Outcome::refused(format!("{title} does not run that schedule; it runs {}.", known.join(", ")));
        }
        let scope = SearchScope {
            devices: self.limits.devices,
            microbatches: self.limits.microbatches,
            bandwidth: self.rates.reduce,
            data_parallel: self.settings.data_parallel,
            stages: self.settings.stages,
            machine: engine.as_ref().map(|_| self.limits.machines.whole()),
            runner,
            gap: self.settings.gap,
        };
        let mut best = RuleResults {
            plan: self.first.clone(),
            lower: f64::INFINITY,
            stopped: false,
            leaves_out: false,
            counts: [0; 3],
            enough: SufficientLimits::default(),
            along_whole: AlongWhole {
                line: fine.filter(|_| kinds.contains(&ScheduleKind::ONE)),
                ..AlongWhole::default()
            },
        };
        for (number, &rule) in rules.iter().enumerate() {
            let costs = self.costs(&line, engine.as_ref(), rule);
            if costs.is_empty() {
                return self.no_degree(engine.as_ref());
            }
            let kinds: Vec<ScheduleKind> =
                kinds.iter().copied().filter(|&kind| engine.as_ref().is_none_or(|own| own.runs(kind, rule))).collect();
            self.search_rule(&line, &costs, (scope, &kinds, rule), rules.len() == 1, &mut best);
            if best.stopped {
                // Nothing is proven about rules that were not searched.
                if number + 1 < rules.len() {
                    best.lower = 0.0;
                }
                break;
            }
        }
        if best.plan.is_none() {
            self.search_whole(&mut best.along_whole, rules[0], scope, self.search);
        }
        if let Some(whole) = best.along_whole.plan.take()
            && best.plan.as_ref().is_none_or(|(seconds, _)| whole.0 < *seconds)
        {
            // The bound holds only for plans along the thinned line.
            (best.plan, best.lower) = (Some(whole), 0.0);
        }
        let plans = match (best.leaves_out, self.workload.dag.has_one_order()) {
            _ if engine.as_ref().is_some_and(|own| engine_layers::one_row_of_several(&own.layering, self.workload)) => {
                Plans::OneRowOfEngine
            }
            _ if engine.is_some() => Plans::OfEngine,
            _ if line.len() < places => Plans::Thinned,
            (true, true) => Plans::TwoModes,
            (true, false) => Plans::OneRowTwoModes,
            (false, false) => Plans::OneRow,
            (false, true) => Plans::All,
        };
        let mut outcome = self.outcome(best, wanted.among(plans, &runs));
        if line.len() < places {
            outcome
                .notes
                .push(format!("The network can be cut at {places} places; the search used {} of them.", line.len()));
        }
        outcome.notes.extend(engine.map(|engine| engine.note()));
        outcome
    }

    /// Costs at every tensor degree allowed by the settings and the engine.
    fn costs(&self, line: &UnitLine, engine: Option<&EngineDemands>, rule: Rule) -> Vec<DegreeCosts> {
        let degrees = self.profile.degrees();
        let within = degrees.into_iter().filter(|&t| t <= self.limits.devices);
        let allowed = within.filter(|&t| t == 1 || self.settings.tensor_parallel);
        let allowed = allowed.filter(|&t| self.settings.degree.is_none_or(|asked| asked == t));
        let allowed =
            allowed.filter(|&t| engine.is_none_or(|engine| engine.obeys(self.workload, self.settings, t).is_ok()));
        let how = (self.settings.recompute, rule);
        let of = |t: u32| DegreeCosts::new(&self.workload.dag, self.profile, line, t, how, self.rates.transfers(t));
        allowed.filter_map(of).collect()
    }

    /// Searches plans under one recomputation rule and updates `best`.
    fn search_rule(
        &self,
        line: &UnitLine,
        costs: &[DegreeCosts],
        (scope, kinds, rule): (SearchScope, &[ScheduleKind], Rule),
        only: bool,
        best: &mut RuleResults,
    ) {
        best.leaves_out |= costs.iter().any(|costs| costs.leaves_out);
        let mut publish = |split: &LineSplit, tables: &[DegreeTable<'_>]| {
            self.publish(split.seconds, build::plan(self.profile, line, scope.microbatches, split, tables));
        };
        // The bound of one rule among several does not hold for all, and one of the thinned line does not hold for the
        // whole.
        let thinned_only = Cell::new(true);
        let bounded = |bound: f64| {
            if only && thinned_only.get() {
                self.search.report_bound(bound);
            }
        };
        let judge = |split: &LineSplit, tables: &[DegreeTable<'_>]| self.judge(line, scope, split, tables);
        let mut class_search = ClassSearch {
            scope,
            tables: costs.iter().map(|costs| DegreeTable::bare(costs, self.memory())).collect(),
            search: self.search,
            known: best.plan.as_ref().map_or(f64::INFINITY, |known| known.0),
            publish: &mut publish,
            bounded: &bounded,
            found: FoundPlan::default(),
            judge: self.judged.map(|_| &judge as &RouteTime<'_>),
            candidate: None,
        };
        // Long searches publish a plan first.
        if self.workload.nodes.len() >= LONG && kinds.contains(&ScheduleKind::ONE) {
            class_search.straight();
            class_search.settle_candidate();
            if class_search.found.best.is_none() {
                // Usually no plan of the thinned line fits. The whole line, where one may fit, gets half the time.
                let half = self.search.part(self.search.remaining().map(|left| left / 2));
                self.search_whole(&mut best.along_whole, rule, scope, &half);
                thinned_only.set(best.along_whole.plan.is_none());
            }
        }
        class_search.fill();
        // Faster plans of other schedules cut the 1F1B search short.
        let plain = kinds.contains(&ScheduleKind::ONE);
        let others: Vec<ScheduleKind> = kinds.iter().copied().filter(|&kind| kind != ScheduleKind::ONE).collect();
        let open = !class_search.found.stopped;
        let beside = if others.is_empty() || !open { f64::INFINITY } else { class_search.elsewhere(&others) };
        if plain && !class_search.found.stopped {
            class_search.run();
        } else {
            class_search.found.lower = f64::INFINITY;
        }
        let ClassSearch { tables, found, .. } = class_search;
        best.lower = best.lower.min(found.lower).min(beside);
        if !open || (found.stopped && !others.is_empty()) {
            best.lower = 0.0;
        }
        best.stopped |= found.stopped;
        best.counts.iter_mut().zip(found.counts).for_each(|(sum, count)| *sum += count);
        let plan = found.best.as_ref().and_then(|split| self.built(line, scope, split, &tables));
        if let Some(plan) = plan.filter(|plan| best.plan.as_ref().is_none_or(|known| plan.0 < known.0)) {
            best.plan = Some(plan);
        }
        if best.plan.is_none() {
            let enough = self.enough(&tables, scope, kinds);
            best.enough = std::mem::take(&mut best.enough).or(enough);
        }
    }

    /// Plan of a split with its simulated time, on the devices in order if there is a topology.
    fn built(
        &self,
        line: &UnitLine,
        scope: SearchScope,
        split: &LineSplit,
        tables: &[DegreeTable<'_>],
    ) -> Option<(f64, Plan)> {
        let plan = build::plan(self.profile, line, scope.microbatches, split, tables)?;
        let plan = self.judged.map_or_else(|| plan.clone(), |judged| judged.placed(plan.clone()));
        let seconds = build::simulated(self.workload, self.limits, &plan, &|| false)?;
        Some((seconds, plan))
    }

    /// Seconds of a split on the routes; `None` if it exceeds the memory or there is no topology.
    fn judge(&self, line: &UnitLine, scope: SearchScope, split: &LineSplit, tables: &[DegreeTable<'_>]) -> Option<f64> {
        let judged = self.judged?;
        let (seconds, plan) = self.built(line, scope, split, tables)?;
        judged.keep(seconds, &plan);
        Some(seconds)
    }

    /// Memory for stages in bytes, and its rounding tolerance.
    fn memory(&self) -> (f64, f64) {
        (self.limits.memory() * (1.0 - self.settings.headroom), self.rounding)
    }

    /// Publishes a plan if it keeps the memory limit.
    fn publish(&self, seconds: f64, plan: Option<Plan>) {
        if let Some(plan) = plan.filter(|plan| self.fits(plan)) {
            let plan = self.judged.map_or_else(|| plan.clone(), |judged| judged.placed(plan.clone()));
            self.search.improve(seconds, &plan);
        }
    }

    /// True if a plan keeps the memory limit exactly, without the rounding tolerance. The check skips the iteration
    /// time, which takes long to compute and does not affect memory.
    fn fits(&self, plan: &Plan) -> bool {
        let limits = self.limits.with(LimitKind::Memory, self.memory().0);
        let plan = Plan { measure: Measure::TimePerSample, ..plan.clone() };
        family::check(self.workload, &limits, &plan).is_valid()
    }

    fn outcome(&self, best: RuleResults, among: String) -> Outcome {
        let Some((seconds, plan)) = best.plan else {
            return if best.stopped { Outcome::new(Status::Cancelled) } else { self.infeasible(best.enough) };
        };
        // After a stop, the part that was not searched has no bound.
        let lower = best.lower.min(seconds);
        let closed = seconds - lower <= CLOSED * seconds;
        let status = match (best.stopped, closed) {
            (_, true) => Status::Optimal,
            (true, _) if !self.search.deadline_passed() => Status::Cancelled,
            _ => Status::Feasible,
        };
        let mut outcome = Outcome {
            plan: Some(plan),
            objective: Some(seconds),
            lower_bound: Some(lower).filter(|&lower| lower > 0.0),
            proven_among: Some(among),
            ..Outcome::new(status)
        };
        let [classes, searched, evaluated] = best.counts.map(|count| count as f64);
        outcome.statistics.counts =
            vec![("classes", classes), ("classes_searched", searched), ("splits_evaluated", evaluated)];
        let execution = outcome.plan.as_ref().and_then(|plan| plan.execution).unwrap_or_default();
        let parts = execution.virtual_stages as usize;
        let short = outcome.plan.iter().flat_map(|plan| &plan.stages).position(|stage| stage.nodes.len() < parts);
        outcome.notes.extend(short.map(|stage| {
            let stage = stage + 1;
            format!(
                "Stage {stage} has fewer nodes than its {parts} virtual stages: space=engine keeps to whole layers."
            )
        }));
        outcome.notes.push(format!(
            "The time is that of one simulated iteration under {}, default simulator settings, with warm-up, drain, \
            transfers and all-reduces.",
            execution.name()
        ));
        outcome
    }
}
