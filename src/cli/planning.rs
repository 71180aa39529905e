//! Planning for a command: chooses and configures a planner, handles Ctrl-C and the deadline, simulates the result.

use std::sync::Arc;

use rayon::prelude::*;

use super::{
    CommandEnd, Failure,
    arguments::{LimitArgs, PlannerArgs},
    interrupt::Interrupt,
    profile_input, training_input,
    watch::{simulating, watched},
};
use crate::{
    cluster::{LimitKind, Limits},
    family,
    planner::{self, Fault, Options, Planner, Problem, Search, Status},
    run::Run,
    simulate::{LEAST_TIME, Setup},
    workload::Workload,
};

/// Problem and its planner.
pub(crate) struct PlanningTask {
    /// Planner of the task.
    pub planner: &'static dyn Planner,
    /// Problem to solve.
    pub problem: Problem,
    /// Given limits that the planner ignores.
    pub(super) ignored_limits: Vec<LimitKind>,
    /// Assumed limits, a sentence each.
    pub(super) assumed: Vec<String>,
}

impl PlanningTask {
    /// Combines a workload with the user's flags.
    ///
    /// # Errors
    /// [`Failure`] if a limit is missing, or the planner does not support the workload or an option.
    pub(crate) fn new(mut workload: Workload, limits: &LimitArgs, args: &PlannerArgs) -> Result<Self, Failure> {
        let given = training_input::software(&mut workload, &args.settings)?;
        let args =
            &PlannerArgs { settings: profile_input::batch_of(&mut workload, given, &limits.profile)?, ..args.clone() };
        let (overrides, given, limit_args) = (limits.overrides(), limits.flags(), limits);
        let mut assumed = family::assumed(&workload, &overrides);
        let limits = resolve(&workload, limits)?;
        let planner = choose(args.planner.as_deref(), &workload)?;
        let id = planner.info().id;
        training_input::without_model(&workload, planner, &args.settings)?;
        // Planners that search on routes, or have an option for them, do not need a bandwidth instead.
        let own = planner.declaration().searches_routes || planner.options().iter().any(|spec| spec.name == "topology");
        let told = limit_args.topology.iter().filter(|_| !own && !family::of(&workload).has_platform());
        assumed.extend(told.map(|topology| topology.rule(family::of(&workload).on_machines())));
        let settings = settings(planner, limit_args, &args.settings);
        let options = Options::parse(id, planner.options(), settings.iter().map(String::as_str))?;
        let problem = Problem { workload: Arc::new(workload), limits, options };
        planner.check_options(&problem)?;
        let ignored_limits =
            given.given().filter(|kind| !planner.limits_for(&problem.workload).contains(kind)).collect();
        Ok(PlanningTask { planner, problem, ignored_limits, assumed })
    }

    /// Plans and simulates. The deadline and Ctrl-C end the plan and then the simulation, and the results so far are
    /// kept. The caller must keep the [`Interrupt`] until they are written.
    ///
    /// # Errors
    /// [`Failure`] if the system refuses threads or signal handlers, or the planner's claim is not confirmed.
    pub(crate) fn run(self, args: &PlannerArgs) -> Result<(Run, Interrupt), Failure> {
        let search = Search::new(args.deadline, args.seed);
        let interrupt = Interrupt::cancels(&search)?;
        let shown = (self.planner.info().name, self.planner.measure(&self.problem.workload, &self.problem.options));
        let work = || {
            let mut planned = watched(shown, &search, &interrupt, || self.plan(&search))?;
            planned.simulate_when(Setup::default(), |simulate| simulating(&search, &interrupt, simulate));
            Ok(planned)
        };
        let planned: Result<Run, Failure> = match args.threads {
            None => work(),
            Some(threads) => pool(threads)?.install(work),
        };
        interrupt.follows();
        Ok((planned?, interrupt))
    }

    /// Plans on the current thread, which may belong to a pool of the requested size.
    ///
    /// # Errors
    /// [`Fault`] if the planner's claim is not confirmed.
    pub(super) fn plan(self, search: &Search) -> Result<Run, Fault> {
        let PlanningTask { planner, problem, ignored_limits, assumed } = self;
        let mut run = Run::new(planner, problem, search)?;
        run.outcome.notes.extend(ignored_limits.iter().map(|kind| ignored(planner, *kind)).chain(assumed));
        Ok(run)
    }
}

/// Plans and simulates tasks in parallel, without a progress bar. Ctrl-C ends all plans and then all simulations, and
/// the results so far are kept, as in [`PlanningTask::run`].
///
/// # Errors
/// [`Failure`] if the system refuses threads or signal handlers, or a planner's claim is not confirmed.
pub(crate) fn all(tasks: Vec<PlanningTask>, args: &PlannerArgs) -> Result<(Vec<Run>, Interrupt), Failure> {
    let whole = Search::new(None, args.seed);
    let interrupt = Interrupt::cancels(&whole)?;
    let one = |task: PlanningTask| {
        let search = whole.part(args.deadline);
        let mut planned = task.plan(&search)?;
        planned.simulate_when(Setup::default(), |simulate| {
            let after = search.follow(LEAST_TIME);
            interrupt.follows();
            simulate(&after)
        });
        Ok(planned)
    };
    let all = || tasks.into_par_iter().map(one).collect();
    let planned: Result<Vec<Run>, Failure> = match args.threads {
        None => all(),
        Some(threads) => pool(threads)?.install(all),
    };
    interrupt.follows();
    Ok((planned?, interrupt))
}

/// Note on a limit that a planner ignores.
pub(super) fn ignored(planner: &dyn Planner, kind: LimitKind) -> String {
    format!("{} changes nothing about the plan: {} ignores it", kind.flag(), planner.info().name)
}

/// End of the command for a run.
pub(crate) fn ending(run: &Run) -> CommandEnd {
    match run.outcome.status {
        _ if run.outcome.plan.is_some() => CommandEnd::Done,
        Status::Infeasible => CommandEnd::NoPlan,
        Status::Optimal | Status::Feasible | Status::Cancelled => CommandEnd::Stopped,
    }
}

/// Limits of the workload, overridden by those of the command line.
///
/// # Errors
/// [`Failure`] that names the file, the field it lacks and the flag that gives it.
pub(crate) fn resolve(workload: &Workload, limits: &LimitArgs) -> Result<Limits, Failure> {
    family::resolve(workload, &limits.overrides()).map_err(|missing| Failure::lacks(&workload.source, &missing))
}

/// Failure if the system refuses threads.
pub(super) fn no_threads(threads: u16, error: &rayon::ThreadPoolBuildError) -> Failure {
    Failure::refused(format!("cannot start {threads} threads: {error}"), "ask for fewer")
}

/// Thread pool with stacks for deep planners; 0 for one thread per core.
///
/// # Errors
/// [`Failure`] if the system refuses threads.
pub(super) fn pool(threads: u16) -> Result<rayon::ThreadPool, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).stack_size(planner::STACK_BYTES).build();
    pool.map_err(|error| no_threads(threads, &error))
}

/// Settings of a planner: those of a cluster preset come first, so explicit settings override them.
pub(super) fn settings(planner: &dyn Planner, limits: &LimitArgs, given: &[String]) -> Vec<String> {
    let links = limits.link_settings();
    let declared = |name: &str| planner.options().iter().any(|spec| spec.name == name);
    let preset = links.iter().filter(|(name, _)| declared(name)).map(|(name, value)| format!("{name}={value}"));
    preset.chain(given.iter().cloned()).collect()
}

/// Requested planner, or the first that can plan the workload, preferably without conversion.
///
/// # Errors
/// [`Failure`] with the reason if the planner cannot plan it.
pub(super) fn choose(id: Option<&str>, workload: &Workload) -> Result<&'static dyn Planner, Failure> {
    if id.is_none()
        && let Some(native) = planner::first_native(workload)
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
    use crate::{cluster::GivenLimits, planner::liar::Liar, workload};

    #[test]
    fn a_planner_that_fails_is_a_bug_of_its_own_code() {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(Liar::Claims.options()) };
        let task = PlanningTask { planner: &Liar::Claims, problem, ignored_limits: vec![], assumed: vec![] };
        let args = PlannerArgs { planner: None, settings: vec![], deadline: None, threads: None, seed: 0 };
        let failure = all(vec![task], &args).err().unwrap();
        let Failure::Bug(what) = &failure else { panic!("{failure:?}") };
        assert!(what.starts_with("planner liar claims") && what.contains("but the check finds"), "{what}");
        assert_eq!(failure.report(), 70);
    }

    #[test]
    fn a_plan_is_kept_where_its_simulation_is_given_up() {
        let workload = Arc::new(workload::builtin());
        let asked = GivenLimits::default().with(LimitKind::Microbatches, 720_720);
        let limits = family::resolve(&workload, &asked).unwrap();
        let planner = planner::find("equal-partition").unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(planner.options()) };
        let task = PlanningTask { planner, problem, ignored_limits: vec![], assumed: vec![] };
        let mut planned = task.plan(&Search::default()).unwrap();
        let over = Search::new(Some(std::time::Duration::ZERO), 0);
        planned.simulate_when(Setup::default(), |simulate| simulate(&over));
        assert!(planned.simulation.is_none());
        let note = planned.notes().pop().unwrap();
        assert!(note.starts_with("not simulated") && note.contains("--deadline"), "{note}");
        let report = crate::cli::report::planned(&planned);
        assert!(report.contains("limited by stage") && report.contains(&note), "{report}");
        assert_eq!(ending(&planned), CommandEnd::Done);
        // An ended search does not affect the one that follows it.
        planned.simulate_when(Setup::default(), |simulate| {
            simulate(&over.follow(LEAST_TIME.max(std::time::Duration::from_secs(3600))))
        });
        assert!(planned.simulation.is_some());
    }
}
