//! Runs a planner for a command: chooses it, sets it, watches Ctrl-C and the deadline, simulates what it found.

use std::sync::Arc;

use rayon::prelude::*;

use super::{
    Ending, Failure,
    arguments::{LimitArgs, PlannerArgs},
    interrupt::Interrupt,
    watch::{simulating, watched},
};
use crate::{
    cluster::{LimitKind, Limits},
    family,
    plan::{Plan, Score},
    planner::{self, Fault, Options, Outcome, Planner, Problem, Search, Status},
    simulate::{LEAST_TIME, Pipeline, Schedule, Settings, Timeline, simulate_unless},
    study::{compare, losses::Losses, promise::Promise},
    workload::Workload,
};

/// A problem and the planner that is to solve it.
pub struct Task {
    /// The planner.
    pub planner: &'static dyn Planner,
    /// What it is asked.
    pub problem: Problem,
    /// Limits that were asked for and that the planner does not heed.
    pub(super) unheeded: Vec<LimitKind>,
    /// Limits that nobody stated, a sentence each.
    pub(super) assumed: Vec<String>,
}

/// What a planner found, with everything that reports and documents are made of.
pub struct Planned {
    /// The planner.
    pub planner: &'static dyn Planner,
    /// What it was asked.
    pub problem: Problem,
    /// How it ended.
    pub outcome: Outcome,
    /// The independent score of its plan.
    pub score: Option<Score>,
    /// The plan in the simulator, unless that was given up; then the outcome's notes say why.
    pub simulation: Option<Simulation>,
}

/// One batch of a plan, simulated.
pub struct Simulation {
    /// The schedule.
    pub schedule: Schedule,
    /// What was simulated.
    pub pipeline: Pipeline,
    /// What came of it.
    pub timeline: Timeline,
}

impl Task {
    /// Puts a workload and what the user asked for together.
    ///
    /// # Errors
    /// [`Failure`] if a limit is missing, the planner cannot plan this workload, or does not take an option.
    pub fn new(workload: Workload, limits: &LimitArgs, args: &PlannerArgs) -> Result<Self, Failure> {
        let overrides = limits.overrides();
        let settings_of = |planner| settings(planner, limits, args);
        let assumed = family::assumed(&workload, &overrides);
        let limits = resolve(&workload, limits)?;
        let planner = choose(args.planner.as_deref(), &workload)?;
        let id = planner.info().id;
        let settings = settings_of(planner);
        let options = Options::parse(id, planner.options(), settings.iter().map(String::as_str))?;
        let problem = Problem { workload: Arc::new(workload), limits, options };
        planner.check_options(&problem)?;
        let unheeded = overrides.given().filter(|kind| !planner.limits().contains(kind)).collect();
        Ok(Task { planner, problem, unheeded, assumed })
    }

    /// Plans and simulates. The deadline and Ctrl-C end the plan and then the simulation, and what is there is kept.
    ///
    /// # Errors
    /// [`Failure`] if the system refuses threads or signal handlers, or the planner's claim is not confirmed.
    pub fn run(self, args: &PlannerArgs) -> Result<Planned, Failure> {
        let search = Search::new(args.deadline, args.seed);
        let interrupt = Interrupt::cancels(&search)?;
        let shown = (self.planner.info().name, self.planner.measure(&self.problem.workload, &self.problem.options));
        let work = || {
            let mut planned = watched(shown, &search, &interrupt, || self.plan(&search))?;
            planned.simulate(|simulate| simulating(&search, &interrupt, simulate));
            Ok(planned)
        };
        match args.threads {
            None => work(),
            Some(threads) => pool(threads)?.install(work),
        }
    }

    /// Plans on the current thread, which may belong to a pool of the size asked for.
    ///
    /// # Errors
    /// [`Fault`] if the planner's claim is not confirmed.
    pub(super) fn plan(self, search: &Search) -> Result<Planned, Fault> {
        let Task { planner, problem, unheeded, assumed } = self;
        let (mut outcome, score) = planner::run(planner, &problem, search)?;
        outcome.notes.extend(unheeded.iter().map(|kind| ignored(planner, *kind)).chain(assumed));
        Ok(Planned { planner, problem, outcome, score, simulation: None })
    }
}

impl Planned {
    /// Plans and simulates tasks in parallel, without a progress bar. Ctrl-C ends all plans and then all simulations, and
    /// what is there is kept.
    ///
    /// # Errors
    /// [`Failure`] if the system refuses threads or signal handlers, or a planner's claim is not confirmed.
    pub fn all(tasks: Vec<Task>, args: &PlannerArgs) -> Result<Vec<Planned>, Failure> {
        let whole = Search::new(None, args.seed);
        let interrupt = Interrupt::cancels(&whole)?;
        let one = |task: Task| {
            let search = whole.part(args.deadline);
            let mut planned = task.plan(&search)?;
            planned.simulate(|simulate| {
                let after = search.follow(LEAST_TIME);
                interrupt.follows();
                simulate(&after)
            });
            Ok(planned)
        };
        let all = || tasks.into_par_iter().map(one).collect();
        match args.threads {
            None => all(),
            Some(threads) => pool(threads)?.install(all),
        }
    }

    /// Simulates the plan, if there is one, under the search that `watched` hands over.
    pub(super) fn simulate(&mut self, watched: impl FnOnce(Simulate<'_>) -> Result<Simulation, String>) {
        let Some(plan) = &self.outcome.plan else { return };
        let Problem { workload, limits, .. } = &self.problem;
        let schedule = Schedule::OneForwardOneBackward;
        match watched(&|search| Simulation::within(workload, limits, plan, schedule, search)) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(given_up) => self.outcome.notes.push(given_up),
        }
    }
}

/// A simulation that waits to be told for how long.
pub(super) type Simulate<'a> = &'a (dyn Fn(&Search) -> Result<Simulation, String> + Sync);

/// The note on a limit that a planner does not heed.
pub(super) fn ignored(planner: &dyn Planner, kind: LimitKind) -> String {
    format!("{} changes nothing here: {} does not heed it", kind.flag(), planner.info().name)
}

impl Simulation {
    /// Simulates one batch of a valid plan, unless the search ends meanwhile.
    ///
    /// # Errors
    /// A sentence on why it was given up.
    pub fn within(
        workload: &Workload,
        limits: &Limits,
        plan: &Plan,
        schedule: Schedule,
        search: &Search,
    ) -> Result<Self, String> {
        let pipeline = family::pipeline(workload, limits, plan, &Settings::default());
        Self::playing(pipeline, schedule, search)
    }

    /// Plays a pipeline, unless the search ends meanwhile.
    ///
    /// # Errors
    /// A sentence on why it was given up.
    pub fn playing(pipeline: Pipeline, schedule: Schedule, search: &Search) -> Result<Self, String> {
        let schedule = pipeline.schedule(schedule);
        match simulate_unless(&pipeline, schedule, &|| search.cancelled()) {
            Some(timeline) => Ok(Simulation { schedule, pipeline, timeline }),
            None => Err(compare::given_up(search)),
        }
    }
}

impl Simulation {
    /// Where the batch loses time.
    pub fn losses(&self) -> Option<Losses> {
        Losses::of(&self.pipeline, self.schedule, &self.timeline, &|| false)
    }
}

impl Planned {
    /// What the planner promises, and what the simulator makes of it.
    pub fn promise(&self) -> Option<Promise> {
        let Problem { workload, limits, .. } = &self.problem;
        let (plan, score) = (self.outcome.plan.as_ref()?, self.score.as_ref()?);
        Promise::of(workload, limits, plan, score, &self.simulation.as_ref()?.timeline)
    }

    /// What the run means for the exit code.
    pub fn ending(&self) -> Ending {
        match self.outcome.status {
            _ if self.outcome.plan.is_some() => Ending::Done,
            Status::Infeasible => Ending::NoPlan,
            Status::Optimal | Status::Feasible | Status::Cancelled => Ending::Stopped,
        }
    }

    /// Every assumption the result rests on: the planner's and the simulator's.
    pub fn notes(&self) -> Vec<String> {
        let simulated = self.simulation.iter().flat_map(|s| s.pipeline.notes.iter());
        self.outcome.notes.iter().chain(simulated).cloned().collect()
    }
}

/// The limits of the workload under those of the command line.
///
/// # Errors
/// [`Failure`] that names the file, the field it lacks and the flag that gives it.
pub fn resolve(workload: &Workload, limits: &LimitArgs) -> Result<Limits, Failure> {
    if limits.by_batch().len() > 1 {
        return Err(Failure::refused("--batch lists several batches", "give one; only `plan` takes a list"));
    }
    family::resolve(workload, &limits.overrides()).map_err(|missing| missing.of(&workload.source))
}

/// The failure of a system that refuses threads.
pub(super) fn no_threads(threads: u16, error: &rayon::ThreadPoolBuildError) -> Failure {
    Failure::refused(format!("cannot start {threads} threads: {error}"), "ask for fewer")
}

/// Threads that planners can go deep on; 0 for as many as there are cores.
///
/// # Errors
/// [`Failure`] if the system refuses threads.
pub(super) fn pool(threads: u16) -> Result<rayon::ThreadPool, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).stack_size(planner::STACK_BYTES).build();
    pool.map_err(|error| no_threads(threads, &error))
}

/// The settings of a planner: what a cluster preset says comes first, so that settings given by name win.
pub(super) fn settings(planner: &dyn Planner, limits: &LimitArgs, args: &PlannerArgs) -> Vec<String> {
    let links = limits.link_settings();
    let declared = |name: &str| planner.options().iter().any(|spec| spec.name == name);
    let preset = links.iter().filter(|(name, _)| declared(name)).map(|(name, value)| format!("{name}={value}"));
    preset.chain(args.settings.iter().cloned()).collect()
}

/// The planner asked for, or the first that can plan the workload, best without converting it.
///
/// # Errors
/// [`Failure`] if it cannot, with its reason.
pub(super) fn choose(id: Option<&str>, workload: &Workload) -> Result<&'static dyn Planner, Failure> {
    if id.is_none()
        && let Some(native) = planner::all().iter().copied().find(|p| p.is_native(workload))
    {
        return Ok(native);
    }
    let candidates = planner::all().iter().copied().filter(|p| id.is_none_or(|id| p.info().id == id));
    let mut reasons = vec![];
    for candidate in candidates {
        match candidate.can_plan(workload) {
            Ok(()) => return Ok(candidate),
            Err(reason) => reasons.push(format!("{} cannot plan {}: {reason}", candidate.info().name, workload.name)),
        }
    }
    Err(Failure::refused(reasons.join("; "), "`plantui planners` lists every planner"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cluster::Overrides, planner::liar::Liar, workload};

    #[test]
    fn a_planner_that_fails_is_a_bug_of_its_own_code() {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &Overrides::default()).unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(Liar::Claims.options()) };
        let task = Task { planner: &Liar::Claims, problem, unheeded: vec![], assumed: vec![] };
        let args = PlannerArgs { planner: None, settings: vec![], deadline: None, threads: None, seed: 0 };
        let failure = Planned::all(vec![task], &args).err().unwrap();
        let Failure::Bug(what) = &failure else { panic!("{failure:?}") };
        assert!(what.starts_with("planner liar claims") && what.contains("its plan is worth"), "{what}");
        assert_eq!(failure.report(), std::process::ExitCode::from(70));
    }

    #[test]
    fn a_plan_is_kept_where_its_simulation_is_given_up() {
        let workload = Arc::new(workload::builtin());
        let asked = Overrides { microbatches: Some(720_720), ..Overrides::default() };
        let limits = family::resolve(&workload, &asked).unwrap();
        let planner = planner::find("equal-partition").unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(planner.options()) };
        let task = Task { planner, problem, unheeded: vec![], assumed: vec![] };
        let mut planned = task.plan(&Search::default()).unwrap();
        let over = Search::new(Some(std::time::Duration::ZERO), 0);
        planned.simulate(|simulate| simulate(&over));
        assert!(planned.simulation.is_none());
        let note = planned.notes().pop().unwrap();
        assert!(note.starts_with("not simulated") && note.contains("--deadline"), "{note}");
        let report = crate::cli::report::planned(&planned);
        assert!(report.contains("limited by stage") && report.contains(&note), "{report}");
        assert_eq!(planned.ending(), Ending::Done);
        // A search that has ended says nothing about what follows it.
        planned.simulate(|simulate| simulate(&over.follow(LEAST_TIME.max(std::time::Duration::from_secs(3600)))));
        assert!(planned.simulation.is_some());
    }
}
