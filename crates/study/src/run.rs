//! The only way to plan: takes problem, planner and search, returns a [`Run`].
//!
//! Commands, studies and the screen all plan here. A planner's panic is caught, and the best published plan of a
//! stopped search is kept. Every plan passes its family's check before it is returned, and one iteration of it is
//! simulated under the requested settings. No time or memory beyond the planner's, the check's and the simulator's.

use plantui_core::{
    cluster::Limits,
    family,
    plan::{Plan, Score},
    search::Search,
    simulate::{LinkModel, Pipeline, Schedule, Setup, SimulatorSettings, Timeline, simulate_unless},
    units,
    workload::Workload,
};
use plantui_planners::{
    self as planner, Fault, ManyRuns, Others, Outcome, Planner, PlannerInfo, Problem, Status, Uses, guarded,
};

mod onto;

/// Result of a planner, with all data of reports and documents.
///
/// ```
/// use std::sync::Arc;
/// use plantui_core::{cluster::GivenLimits, family, workload};
/// use plantui_planners::{self as planner, Options, Problem, Search};
/// use plantui_study::run::Run;
///
/// let workload = Arc::new(workload::builtin());
/// let limits = family::resolve(&workload, &GivenLimits::default())?;
/// let joint = planner::find("joint").ok_or("no such planner")?;
/// let options = Options::defaults(joint.options());
/// let run = Run::new(joint, Problem { workload, limits, options }, &Search::default())?;
/// assert!(run.score.is_some_and(|score| score.is_valid()), "every plan is checked");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Run {
    /// Planner that ran.
    pub planner: &'static dyn Planner,
    /// Problem of the planner.
    pub problem: Problem,
    /// Outcome of the planner.
    pub outcome: Outcome,
    /// Independent score of its plan.
    pub score: Option<Score>,
    /// Wall-clock seconds of planning.
    pub seconds: f64,
    /// Simulation of the plan. `None` if it was given up; the outcome's notes say why.
    pub simulation: Option<Simulation>,
}

/// Simulated iteration of a plan.
///
/// ```
/// use std::sync::Arc;
/// use plantui_core::{cluster::GivenLimits, family, simulate::Schedule, workload};
/// use plantui_planners::{self as planner, Options, Problem, Search};
/// use plantui_study::{losses::Losses, run::{Run, Simulation}};
///
/// let workload = Arc::new(workload::builtin());
/// let limits = family::resolve(&workload, &GivenLimits::default())?;
/// let piper = planner::find("piper").ok_or("no such planner")?;
/// let options = Options::defaults(piper.options());
/// let search = Search::default();
/// let run = Run::new(piper, Problem { workload: workload.clone(), limits: limits.clone(), options }, &search)?;
/// let plan = run.outcome.plan.ok_or("no plan")?;
/// let simulation = Simulation::within(&workload, &limits, &plan, Schedule::GPipe, &search)?;
/// let idle = simulation.timeline.idle;
/// let causes = Losses::of_simulation(&simulation).ok_or("too long")?.causes_of_idle(idle);
/// assert!((causes.iter().map(|(_, share)| share).sum::<f64>() - idle).abs() < 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Simulation {
    /// Schedule: the requested one, else the plan's own, unless the plan fixes it.
    pub schedule: Schedule,
    /// Simulated pipeline.
    pub pipeline: Pipeline,
    /// Resulting timeline.
    pub timeline: Timeline,
}

/// Simulation that starts when it receives its search.
pub type Simulate<'a> = &'a (dyn Fn(&Search) -> Result<Simulation, String> + Sync);

impl Run {
    /// Plans without simulating.
    ///
    /// # Errors
    /// [`Fault`] as for [`plan`].
    pub fn new(planner: &'static dyn Planner, problem: Problem, search: &Search) -> Result<Self, Fault> {
        let (outcome, score) = plan(planner, &problem, search)?;
        let seconds = search.elapsed().as_secs_f64();
        Ok(Run { planner, problem, outcome, score, seconds, simulation: None })
    }

    /// Simulates one iteration of the plan, if there is one. If the search ends first, the notes say so.
    pub fn simulate(&mut self, setup: impl Into<Setup>, search: &Search) {
        self.simulate_when(setup, |simulate| simulate(search));
    }

    /// The same under a search that `watched` provides when it begins.
    pub fn simulate_when(
        &mut self,
        setup: impl Into<Setup>,
        watched: impl FnOnce(Simulate<'_>) -> Result<Simulation, String>,
    ) {
        let Some(plan) = &self.outcome.plan else { return };
        let (Problem { workload, limits, .. }, setup) = (&self.problem, setup.into());
        match watched(&|search| Simulation::within(workload, limits, plan, setup, search)) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(given_up) => self.outcome.notes.push(given_up),
        }
    }

    /// All assumptions of the result: the planner's and the simulator's.
    pub fn notes(&self) -> Vec<String> {
        let simulated = self.simulation.iter().flat_map(|s| s.pipeline.notes.iter());
        self.outcome.notes.iter().chain(simulated).cloned().collect()
    }
}

impl Simulation {
    /// Simulates one iteration of a valid plan, unless the search ends first.
    ///
    /// # Errors
    /// Reason why it was given up, as a sentence.
    pub fn within(
        workload: &Workload,
        limits: &Limits,
        plan: &Plan,
        setup: impl Into<Setup>,
        search: &Search,
    ) -> Result<Self, String> {
        let Setup { schedule, settings, .. } = setup.into().of(plan);
        let pipeline = family::pipeline_unless(workload, limits, plan, &settings, &|| search.cancelled());
        pipeline.map_or_else(|| Err(no_routes(search)), |pipeline| Self::of(pipeline, schedule, search))
    }

    /// Simulates a pipeline, unless the search ends first.
    ///
    /// # Errors
    /// Reason why it was given up, as a sentence.
    pub fn of(mut pipeline: Pipeline, schedule: Schedule, search: &Search) -> Result<Self, String> {
        let schedule = pipeline.schedule(schedule);
        let Some(timeline) = simulate_unless(&pipeline, schedule, &|| search.cancelled()) else {
            return Err(given_up(search));
        };
        pipeline.notes.extend(relays(&pipeline, schedule, search));
        Ok(Simulation { schedule, pipeline, timeline })
    }
}

/// Names the stages that only forward data, with the iteration time under shared links. DAPPLE's model gives every
/// transfer its own link, and so plans such stages.
fn relays(pipeline: &Pipeline, schedule: Schedule, search: &Search) -> Option<String> {
    let stages = (1..).zip(&pipeline.stages);
    let relays = stages.filter(|(_, stage)| pipeline.stages.len() > 1 && stage.forward_s + stage.backward_s == 0.0);
    let (names, devices): (Vec<String>, Vec<u32>) =
        relays.map(|(name, stage)| (name.to_string(), stage.replicas * stage.devices.max(1))).unzip();
    let (last, before) = names.split_last()?;
    let (devices, one) = (devices.iter().sum::<u32>(), before.is_empty());
    let stages = if one { format!("stage {last}") } else { format!("stages {} and {last}", before.join(", ")) };
    let (computes, forwards) = if one { ("computes", "forwards") } else { ("compute", "forward") };
    let told = format!("{stages} {computes} nothing and only {forwards} data; {devices} of the devices do no work");
    if pipeline.settings.links == LinkModel::Shared {
        return Some(told);
    }
    let settings = SimulatorSettings { links: LinkModel::Shared, ..pipeline.settings };
    let shared = Pipeline { settings, ..pipeline.clone() };
    let batch_s = simulate_unless(&shared, schedule, &|| search.cancelled())?.iteration_s;
    let batch = units::seconds(batch_s);
    Some(format!("{told}; with shared links (simulate --links shared) an iteration takes {batch}"))
}

/// Reason why a simulation was given up after the end of its search.
pub fn given_up(search: &Search) -> String {
    not_simulated(search, "one iteration takes the simulator", " or fewer --microbatches")
}

/// The same if the routes between devices were not found in time.
pub fn no_routes(search: &Search) -> String {
    not_simulated(search, "to find the routes takes", "")
}

fn not_simulated(search: &Search, what: &str, or: &str) -> String {
    let after = units::seconds(search.elapsed().as_secs_f64());
    if search.deadline_passed() {
        format!("not simulated: {what} longer than the {after} left of the deadline; use a longer --deadline{or}")
    } else {
        format!("not simulated: stopped after {after}")
    }
}

/// Runs a planner and checks its plan with its family's check, so every plan is measured independently. If the search
/// was stopped before the planner returned its plan, the best published one is kept.
///
/// # Errors
/// [`Fault`] if the planner panics, its plan breaks a rule, or its claimed objective is not the recomputed one within
/// 1e-9 relative. This is always a bug in the planner, never a property of the input.
pub fn plan(planner: &dyn Planner, problem: &Problem, search: &Search) -> Result<(Outcome, Option<Score>), Fault> {
    if let Some(why) = onto::too_many_devices(problem) {
        return Ok((Outcome::refused(why), None));
    }
    let mut outcome = guarded(planner, || match planner.declaration().uses {
        Uses::None => planner.plan(problem, search),
        // Planners do not call one another: their plans are made here and handed in.
        Uses::Optional | Uses::Only => {
            let independent = planner::independent();
            let plan = |other: &'static dyn Planner, problem: &Problem, search: &Search| {
                guarded(other, || other.plan(problem, search))
            };
            planner.plan_from(problem, &Others::new(&independent, &plan), search)
        }
    })?;
    // A planner that was stopped early may not have recorded its time.
    if outcome.statistics.seconds == 0.0 {
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
    }
    let rescued = keep_incumbent(problem, search, &mut outcome);
    planner::tell(planner, problem, &mut outcome);
    let idle = outcome.plan.as_ref().and_then(|plan| family::devices::idle(&problem.workload, &problem.limits, plan));
    outcome.notes.extend(idle);
    let Some(score) = rescued else { return finished(planner, problem, outcome, search) };
    let mut score = Some(score);
    onto::map(planner, problem, &mut outcome, &mut score, search);
    note_assumptions(problem, &mut outcome);
    Ok((outcome, score))
}

/// Notes the assumptions about the workload that nothing states.
fn note_assumptions(problem: &Problem, outcome: &mut Outcome) {
    let measure = outcome.plan.as_ref().map(|plan| plan.measure);
    outcome.notes.extend(family::of(&problem.workload).assumptions(measure));
}

/// Outcome of a planner with the score of its plan, mapped to the devices of the topology if there is one.
///
/// # Errors
/// [`Fault`] as for [`plan`].
pub fn finished(
    planner: &dyn Planner,
    problem: &Problem,
    mut outcome: Outcome,
    search: &Search,
) -> Result<(Outcome, Option<Score>), Fault> {
    let verified = |plan| verified(planner, problem, plan, outcome.objective);
    let mut score = outcome.plan.as_ref().map(verified).transpose()?;
    if let Some(score) = &score {
        // A planner may sum in another order: the final value is the check's, to the last digit.
        let claimed = outcome.objective.replace(score.value);
        if outcome.lower_bound == claimed {
            outcome.lower_bound = outcome.objective;
        }
    }
    onto::map(planner, problem, &mut outcome, &mut score, search);
    note_assumptions(problem, &mut outcome);
    Ok((outcome, score))
}

/// Stores the best published plan of a cancelled search in an outcome without one, if the plan is valid.
fn keep_incumbent(problem: &Problem, search: &Search, outcome: &mut Outcome) -> Option<Score> {
    if outcome.status != Status::Cancelled || outcome.plan.is_some() {
        return None;
    }
    let incumbent = search.incumbent()?;
    let score = family::check(&problem.workload, &problem.limits, &incumbent.plan);
    if !score.is_valid() {
        return None;
    }
    outcome.objective = Some(score.value);
    outcome.lower_bound = outcome.lower_bound.or(search.progress().bound);
    outcome.plan = Some(incumbent.plan.clone());
    Some(score)
}

/// Runs a planner for several numbers of devices, as [`Planner::plan_many`]. Results before a fault stay valid.
///
/// # Errors
/// [`Fault::Panic`].
pub fn plan_many(
    planner: &dyn Planner,
    problem: &Problem,
    devices: &[u32],
    runs: &mut dyn ManyRuns,
) -> Result<(), Fault> {
    guarded(planner, || planner.plan_many(problem, devices, runs))
}

/// Score of a planner's plan, after its claims are confirmed.
///
/// # Errors
/// [`Fault`] if they are not confirmed.
pub fn verified(planner: &dyn Planner, problem: &Problem, plan: &Plan, claimed: Option<f64>) -> Result<Score, Fault> {
    let score = guarded(planner, || family::check(&problem.workload, &problem.limits, plan))?;
    let PlannerInfo { id, .. } = *planner.info();
    if let Some(violation) = score.violations.first() {
        return Err(Fault::Rule { planner: id, violation: violation.to_string() });
    }
    let (value, claimed) = (score.value, claimed.unwrap_or(f64::NAN));
    if (value - claimed).abs() <= 1e-9 * value.abs() {
        return Ok(score);
    }
    Err(Fault::Claim { planner: id, claimed, value, unit: score.measure.unit() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::{
        cluster::{GivenLimits, LimitKind},
        plan::Stage,
        simulate::{PipelineStage, Transfer},
        workload::{self, Choice, NodeIndex},
    };
    use plantui_planners::{Declaration, Options, liar::Liar};

    fn fault(liar: Liar) -> Fault {
        let workload = std::sync::Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(liar.options()) };
        plan(&liar, &problem, &Search::default()).unwrap_err()
    }

    #[test]
    fn a_claim_that_is_not_confirmed_is_an_error_with_both_values() {
        let found = fault(Liar::Claims);
        let Fault::Claim { planner: "liar", claimed, value, unit: "s" } = found else { panic!("{found:?}") };
        assert!(value > 0.0 && claimed == value / 2.0);
        assert_eq!(found.to_string(), format!("planner liar claims {claimed} s, but the check finds {value} s"));
    }

    #[test]
    fn so_is_a_plan_that_breaks_a_rule_and_a_planner_that_panics() {
        assert!(
            matches!(fault(Liar::Breaks), Fault::Rule { planner: "liar", violation } if violation.contains("stage"))
        );
        assert_eq!(fault(Liar::Panics), Fault::Panic { planner: "liar", message: "no such table".into() });
    }

    /// Planner that publishes a plan and is stopped before it returns it.
    struct Stopped;

    impl Planner for Stopped {
        fn declaration(&self) -> &'static Declaration {
            static DECLARATION: Declaration =
                Declaration { info: PlannerInfo { id: "stopped", ..Declaration::NEW.info }, ..Declaration::NEW };
            &DECLARATION
        }

        fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
            let nodes: Vec<NodeIndex> = problem.workload.indices().collect();
            let choices = vec![Choice::Mode("vanilla".into()); nodes.len()];
            let stage = Stage { nodes, choices, data_parallel: 1, tensor_parallel: 1, devices: vec![0] };
            let plan = Plan { stages: vec![stage], ..Plan::default() };
            let value = family::check(&problem.workload, &problem.limits, &plan).value;
            search.improve(value, &plan);
            search.cancel();
            Outcome::new(Status::Cancelled)
        }
    }

    #[test]
    fn a_stage_that_only_passes_on_is_named_with_the_batch_under_shared_links() {
        let stage = |seconds: f64, replicas| PipelineStage {
            forward_s: seconds,
            backward_s: 2.0 * seconds,
            replicas,
            devices: 1,
            ..PipelineStage::default()
        };
        let transfer = |from| Transfer { from, to: from + 1, seconds: 2.0, bytes: 0.0 };
        let mut pipeline = Pipeline {
            stages: vec![stage(1.0, 2), stage(0.0, 2), stage(1.0, 2)],
            transfers: vec![transfer(0), transfer(1)],
            microbatches: 8,
            ..Pipeline::default()
        };
        let notes = |pipeline: &Pipeline| {
            let search = Search::default();
            let simulated = |links| {
                let settings = SimulatorSettings { links, ..pipeline.settings };
                let pipeline = Pipeline { settings, ..pipeline.clone() };
                Simulation::of(pipeline, Schedule::OneForwardOneBackward, &search).unwrap()
            };
            let shared = simulated(LinkModel::Shared);
            (simulated(LinkModel::Private), units::seconds(shared.timeline.iteration_s))
        };
        let (private, shared_s) = notes(&pipeline);
        assert_ne!(units::seconds(private.timeline.iteration_s), shared_s);
        let [note] = private.pipeline.notes.as_slice() else { panic!("{:?}", private.pipeline.notes) };
        assert!(
            note.starts_with("stage 2 computes nothing and only forwards data") && note.contains("2 of the devices"),
            "{note}"
        );
        assert!(note.ends_with(&format!("an iteration takes {shared_s}")), "{note}");
        pipeline.stages[1] = stage(0.1, 2);
        assert!(notes(&pipeline).0.pipeline.notes.is_empty());
    }

    #[test]
    fn the_best_of_a_stopped_search_is_kept() {
        let workload = std::sync::Arc::new(workload::builtin());
        let asked = GivenLimits::default().with(LimitKind::Memory, 1e15);
        let limits = family::resolve(&workload, &asked).unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(&[]) };
        let (outcome, score) = plan(&Stopped, &problem, &Search::default()).unwrap();
        assert_eq!(outcome.status, Status::Cancelled);
        assert_eq!(outcome.plan.unwrap().stages.len(), 1);
        assert_eq!(outcome.objective, Some(score.unwrap().value));
    }
}
