//! Plans that engines may be unable to run: stages with different degrees and replicas (`space=any`).
//!
//! The search over plans that engines run comes first. Its best plan competes with plans of other planners for the same
//! workload. These are Piper's plans for every number of stages up to `MOST_STAGES`, with both warm-up rules, and one
//! plan from every further planner. Each is simulated under the requested schedules, with both warm-up rules if its
//! stages have different replicas. The answer is the fastest plan that fits into memory. It is not a search over all
//! plans. If none fits, Piper's answer decides whether a plan exists: Piper counts the memory of 1F1B, which is the
//! least of all schedules.
//!
//! The bound holds for all plans of this space under schedules without virtual stages. A replica of a stage computes
//! its `N / d` microbatches in sequence. So an iteration takes at least `N` times the largest compute per replica of a
//! stage. That load is at least the optimum of Piper with free transfers. Piper counts `⌈replicas from here on / d⌉`
//! microbatches in flight. This is a lower bound for every schedule: 1F1B with cumulative warm-up holds exactly that
//! number, GPipe and ZB-H1 as many or more. An iteration also takes at least the slowest path of one microbatch through
//! the network. Warm-up and drain are not part of the bound and make up most of the reported gap.
//!
//! Cost: two Piper runs for each number of stages, one more without transfers, and a simulation for each plan.

use super::{CLOSED, JointSettings, build, kind::Plans, line::UnitLine};
use crate::{Infeasible, Options, Others, Outcome, Planner, Problem, Status, pipeline_options::Recompute};
use plantui_core::{
    cluster::{LimitKind, Limits},
    family,
    plan::{Execution, Measure, Plan, Schedule, WarmUp},
    search::Search,
    simulate::LEAST_TIME,
    units,
    workload::{Choice, Mode, PiperProfile, Workload},
};

/// Maximum number of stages for which Piper runs, each time with a table over all downsets.
const MOST_STAGES: usize = 24;
/// Factor on lower bounds that covers rounding errors in sums.
const SURE: f64 = 1.0 - 1e-9;

/// Search over the plans of other planners: its problem, limits and schedules.
struct AnySpaceSearch<'a> {
    problem: &'a Problem,
    settings: JointSettings,
    /// Limits of the problem, with the memory reduced by the headroom.
    limits: Limits,
    schedules: Vec<Schedule>,
    others: &'a Others<'a>,
    search: &'a Search,
}

/// Adds the plans of other planners to the outcome of the search over plans that engines run.
pub(super) fn plan(
    problem: &Problem,
    settings: JointSettings,
    own: Outcome,
    others: &Others<'_>,
    search: &Search,
) -> Outcome {
    let headroom = problem.limits.memory() * (1.0 - settings.headroom);
    let asked = AnySpaceSearch {
        problem,
        settings,
        limits: problem.limits.with(LimitKind::Memory, headroom),
        schedules: settings.wanted.of_any_stages(),
        others,
        search,
    };
    let (own_plan, own_s) = (own.plan.clone(), own.objective.unwrap_or(f64::INFINITY));
    let mut best: Option<(f64, Plan, &'static dyn Planner)> = None;
    // Piper's proof that no plan of this space fits.
    let (mut asked_piper, mut refuted) = (false, None);
    asked.candidates(&mut |planner, outcome| {
        if planner.info().id == PIPER && !std::mem::replace(&mut asked_piper, true) {
            refuted = outcome.infeasible.clone();
        }
        let Some(plan) = &outcome.plan else { return };
        for plan in asked.runs_of(plan) {
            let known = best.as_ref().map_or(own_s, |best| best.0);
            // While there is no plan at all, finishing a simulation takes priority over the deadline.
            let over = if known.is_finite() { search.clone() } else { search.follow(LEAST_TIME) };
            let stopped = || over.cancelled();
            let Some(seconds) = build::simulated(&problem.workload, &asked.limits, &plan, &stopped) else { return };
            if seconds < known * (1.0 - CLOSED) {
                search.improve(seconds, &plan);
                best = Some((seconds, plan, planner));
            }
        }
    });
    let own_bound = own.lower_bound.filter(|_| own_plan.is_some());
    let own_refused = own_plan.is_none() && own.status == Status::Infeasible;
    let lower = match asked.bound() {
        _ if own_plan.is_none() && !own_refused => 0.0,
        // Plans that engines run are part of the space, also under virtual stages.
        bound if asked.settings.wanted.has_parts() => own_bound.map_or(bound, |own| own.min(bound)),
        bound => bound,
    };
    let stopped = search.cancelled();
    let note =
        best.as_ref().map(|(seconds, plan, planner)| told(&problem.workload, plan, *planner, *seconds, own.objective));
    let (plan, objective) = match best {
        Some((seconds, plan, _)) => (Some(plan), Some(seconds)),
        None => (own_plan, own.objective),
    };
    let Some(objective) = objective else {
        let infeasible = own.infeasible.as_ref().map(|own| asked.infeasible(own, refuted));
        return if stopped { Outcome::new(Status::Cancelled) } else { Outcome { infeasible, ..own } };
    };
    let lower = lower.min(objective);
    let closed = objective - lower <= CLOSED * objective;
    let status = match (stopped, closed) {
        (_, true) => Status::Optimal,
        (true, _) if !search.deadline_passed() => Status::Cancelled,
        _ => Status::Feasible,
    };
    let notes = note.into_iter().chain(own.notes.clone()).collect();
    Outcome {
        status,
        plan,
        objective: Some(objective),
        lower_bound: Some(lower).filter(|&lower| lower > 0.0),
        proven_among: Some(settings.wanted.among(Plans::Anywhere, &|_| true)),
        infeasible: None,
        notes,
        ..own
    }
}

/// Note that names the planner of the plan and says if engines can run it.
fn told(workload: &Workload, plan: &Plan, planner: &dyn Planner, seconds: f64, own: Option<f64>) -> String {
    let name = planner.info().name;
    let instead = match own {
        Some(own) => format!("the fastest plan for engines takes {}", units::seconds(own)),
        None => "no plan for engines fits".into(),
    };
    let uneven = |of: &dyn Fn(usize) -> u32| (1..plan.stages.len()).any(|s| of(s) != of(0));
    let degrees = uneven(&|s| plan.stages[s].tensor_parallel);
    let replicas = uneven(&|s| plan.stages[s].data_parallel);
    let why = match (degrees, replicas) {
        (true, true) => "its stages have different tensor degrees and replicas",
        (true, false) => "its stages have different tensor degrees",
        (false, true) => "its stages have different numbers of replicas",
        (false, false) => "its stages do not form a linear pipeline",
    };
    let runs = !degrees && !replicas && is_in_a_row(workload, plan);
    let runs = if runs {
        "Training engines run this plan".into()
    } else {
        format!("Training engines cannot run this plan: {why}")
    };
    format!("{runs}. It is the plan of {name}, {} simulated; {instead}.", units::seconds(seconds))
}

/// True if the stages are consecutive parts of the line of units from which plans for engines are cut.
fn is_in_a_row(workload: &Workload, plan: &Plan) -> bool {
    let mut stage_of = vec![0; workload.nodes.len()];
    for (s, stage) in plan.stages.iter().enumerate() {
        stage.nodes.iter().for_each(|node| stage_of[node.index()] = s);
    }
    let units = UnitLine::of(&workload.dag).units;
    let whole = units.iter().all(|unit| unit.iter().all(|&node| stage_of[node] == stage_of[unit[0]]));
    whole && units.iter().flatten().is_sorted_by_key(|&node| stage_of[node])
}

const PIPER: &str = "piper";

impl AnySpaceSearch<'_> {
    /// Passes every plan of another planner to `found`, as soon as it exists.
    fn candidates(&self, found: &mut dyn FnMut(&'static dyn Planner, &Outcome)) {
        let Some(piper) = self.piper_planner() else { return };
        let most = self.problem.workload.nodes.len().min(self.limits.devices as usize).min(MOST_STAGES);
        let counts: Vec<usize> = match self.settings.stages {
            Some(stages) => vec![stages],
            None => (0..=most).collect(),
        };
        let rounds = (2 * counts.len()) as f64;
        for (i, &stages) in counts.iter().enumerate() {
            let mut before: Option<Plan> = None;
            for (j, warm_up) in WarmUp::ALL.into_iter().enumerate() {
                // With equal replicas both rules agree.
                let alike = before.as_ref().is_some_and(Plan::has_even_replicas);
                if self.search.cancelled() || alike {
                    continue;
                }
                self.search.report_fraction((2 * i + j) as f64 / rounds);
                let Some(outcome) = self.piper(piper, stages, warm_up, self.limits.clone()) else { continue };
                found(piper, &outcome);
                before = outcome.plan;
            }
        }
        for planner in self.others() {
            if self.search.cancelled() {
                return;
            }
            let options = Options::defaults(planner.options());
            let problem = Problem { limits: self.limits.clone(), options, ..self.problem.clone() };
            if let Ok(outcome) = self.others.plan(planner, &problem, &self.search.quiet()) {
                found(planner, &outcome);
            }
        }
    }

    /// Planners whose plans satisfy the settings without options of their own.
    fn others(&self) -> Vec<&'static dyn Planner> {
        let JointSettings { data_parallel, tensor_parallel, recompute, stages, .. } = self.settings;
        if !(data_parallel && tensor_parallel && recompute == Recompute::Auto && stages.is_none()) {
            return vec![];
        }
        let workload = &self.problem.workload;
        let other = |planner: &&dyn Planner| {
            let measure = planner.measure(workload, &Options::defaults(planner.options()));
            planner.is_native(workload) && planner.info().id != PIPER && measure != Measure::IterationTime
        };
        self.others.planners().iter().copied().filter(other).collect()
    }

    fn piper_planner(&self) -> Option<&'static dyn Planner> {
        self.others.planners().iter().copied().find(|planner| planner.info().id == PIPER)
    }

    /// Piper's outcome for a number of stages (0 for any) and a warm-up rule; `None` if Piper failed.
    fn piper(&self, piper: &'static dyn Planner, stages: usize, warm_up: WarmUp, limits: Limits) -> Option<Outcome> {
        let settings = [
            format!("data_parallel={}", self.settings.data_parallel),
            format!("tensor_parallel={}", self.settings.tensor_parallel),
            format!("recompute={}", self.settings.recompute.id()),
            format!("stages={stages}"),
            format!("warmup={}", warm_up.id()),
        ];
        let options = Options::parse(PIPER, piper.options(), settings.iter().map(String::as_str));
        let options = options.expect("Piper takes these options");
        self.others.plan(piper, &Problem { limits, options, ..self.problem.clone() }, &self.search.quiet()).ok()
    }

    /// Explanation without a plan: plans that engines run, then what is known about others.
    fn infeasible(&self, own: &Infeasible, refuted: Option<Infeasible>) -> Infeasible {
        let others = match refuted {
            // 1F1B holds as many microbatches in flight as Piper counts, so Piper's suggested limits are enough.
            Some(refuted) if self.schedules.contains(&Schedule::OneForwardOneBackward) => return refuted,
            Some(_) => "No plan with different degrees per stage is feasible either.",
            None => {
                "Searched for plans with different degrees per stage: those of other planners. None fits under this \
                schedule; plans of other shapes may fit."
            }
        };
        Infeasible { explanation: format!("{} {others}", own.explanation), ..own.clone() }
    }

    /// The plan under every requested schedule and both warm-up rules, if it fits into memory. If it does not, every
    /// node takes its smallest mode.
    fn runs_of(&self, plan: &Plan) -> Vec<Plan> {
        let rules: &[WarmUp] = if plan.has_even_replicas() { &[WarmUp::Published] } else { &WarmUp::ALL };
        let runs = self.schedules.iter().flat_map(|&schedule| {
            rules.iter().map(move |&warm_up| {
                let execution = Some(Execution { warm_up, ..schedule.into() });
                Plan { execution, measure: Measure::IterationTime, ..plan.clone() }
            })
        });
        let wanted = |plan: &Plan| {
            plan.stages.iter().all(|stage| self.settings.degree.is_none_or(|asked| asked == stage.tensor_parallel))
        };
        // Validity does not depend on the measure, and time per sample is the cheapest measure.
        let valid = |plan: &Plan| {
            let plan = Plan { measure: Measure::TimePerSample, ..plan.clone() };
            family::check(&self.problem.workload, &self.limits, &plan).is_valid()
        };
        let smallest = |plan: Plan| if valid(&plan) { plan } else { self.in_smallest_modes(plan) };
        runs.filter(wanted).map(smallest).filter(valid).collect()
    }

    /// Plan with every node in the mode that takes least memory with all microbatches in flight, if modes are free.
    fn in_smallest_modes(&self, mut plan: Plan) -> Plan {
        let profile = self.problem.workload.piper().filter(|_| self.settings.recompute == Recompute::Auto);
        for stage in &mut plan.stages {
            let in_flight = f64::from(self.limits.microbatches / stage.data_parallel.max(1));
            let bytes = |mode: &Mode| mode.memory_a * in_flight + mode.memory_b;
            for (&node, choice) in stage.nodes.iter().zip(&mut stage.choices) {
                let modes = profile.and_then(|profile| profile.nodes[node].modes(stage.tensor_parallel));
                let smallest = modes.into_iter().flatten().reduce(|a, b| if bytes(b) < bytes(a) { b } else { a });
                if let Some(mode) = smallest {
                    *choice = Choice::Mode(mode.id.clone());
                }
            }
        }
        plan
    }

    /// Lower bound on the iteration time of any plan in the space, seconds.
    fn bound(&self) -> f64 {
        let (Some(piper), Some(profile)) = (self.piper_planner(), self.problem.workload.piper()) else { return 0.0 };
        // If the weights' part of the backward is delayed, the path contains only a part of the backward.
        let whole = !self.settings.wanted.splits_backward();
        let path = if whole { slowest_path(&self.problem.workload, profile) * SURE } else { 0.0 };
        if self.search.cancelled() {
            return path;
        }
        let limits = self.limits.with(LimitKind::Bandwidth, f64::INFINITY);
        let stages = self.settings.stages.unwrap_or(0);
        let outcome = self.piper(piper, stages, WarmUp::Published, limits);
        let load = outcome.and_then(|outcome| outcome.lower_bound).unwrap_or(0.0);
        path.max(f64::from(self.limits.microbatches) * load * SURE)
    }
}

/// Seconds of a microbatch along the slowest path, with each node in its fastest mode.
fn slowest_path(workload: &Workload, profile: &PiperProfile) -> f64 {
    let fastest = |node: usize| {
        let modes = profile.nodes[node].degrees.iter().flat_map(|degree| &degree.modes);
        modes.map(|mode| mode.time_s).reduce(f64::min).unwrap_or(0.0)
    };
    let mut until = vec![0.0_f64; workload.nodes.len()];
    for &node in &workload.dag.stack_order() {
        let node = node as usize;
        let before = workload.dag.predecessors(node).map(|from| until[from]).fold(0.0, f64::max);
        until[node] = before + fastest(node);
    }
    until.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use plantui_core::{cluster::GivenLimits, plan::Stage};

    #[test]
    fn whether_a_plan_holds_does_not_take_a_batch() {
        // A batch of so many microbatches over uneven replicas cannot be walked through while anybody waits.
        let workload = Arc::new(plantui_core::workload::builtin());
        let given =
            GivenLimits::default().with(LimitKind::Microbatches, 4_000_000_000u32).with(LimitKind::Memory, 1e30);
        let limits = family::resolve(&workload, &given).unwrap();
        let joint = crate::find("joint").unwrap();
        let options = Options::parse("joint", joint.options(), ["space=any"]).unwrap();
        let settings = JointSettings::new(&options);
        let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
        let order = workload.dag.stack_order();
        let (first, rest) = order.split_at(order.len() / 2);
        let stage = |nodes: &[u32], data_parallel: u32, device: u32| {
            let mut nodes: Vec<_> = nodes.iter().map(|&v| plantui_core::workload::NodeIndex::new(v as usize)).collect();
            nodes.sort_unstable();
            let choices = vec![Choice::Mode("vanilla".into()); nodes.len()];
            let devices = (device..device + data_parallel).collect();
            Stage { nodes, choices, data_parallel, tensor_parallel: 1, devices }
        };
        let stages = vec![stage(first, 1, 0), stage(rest, 2, 1)];
        let plan = Plan { stages, ..Plan::default() };
        let search = Search::default();
        let schedules = vec![Schedule::OneForwardOneBackward, Schedule::GPipe];
        let asked =
            AnySpaceSearch { problem: &problem, settings, limits, schedules, others: &Others::NONE, search: &search };
        assert_eq!(asked.runs_of(&plan).len(), 4, "two schedules, two rules of the warm-up");
    }
}
