//! Ensemble: runs the planners that the user names, maps and simulates each plan, keeps the fastest
//! (`opt_method="ensemble"`).
//!
//! Members run one after the other; each gets an equal part of the remaining deadline. A member that fails or finds no
//! plan is reported and left out. Plans are compared by simulated iteration time, on the topology's routes if one is
//! given; ties go to the member named first. Time is the sum over all members, memory the maximum.

use super::wiring;
use crate::{
    self as planner, CannotPlan, Declaration, OptionError, OptionKind, OptionSpec, Options, Others, Outcome, Planner,
    PlannerInfo, Problem, Status, Uses,
};
use plantui_core::{
    cluster::LimitKind,
    family,
    mapping::{self, CommunicationKinds, MappingChoice},
    plan::{Measure, Plan, document::MappingPart},
    search::Search,
    simulate::{Schedule, SimulatorSettings, length_unless},
    units,
    workload::{Workload, formats::PlanTopology},
};

static OPTIONS: [OptionSpec; 2] = [
    OptionSpec {
        name: "members",
        label: "members",
        help: "planners, each with its settings after semicolons; empty: all planners that plan the workload \
            unconverted",
        kind: OptionKind::Text { example: "parmesan;search_k=true,dapple" },
    },
    OptionSpec {
        name: "topology",
        label: "topology",
        help: "topology of the devices: a name listed by `plantui topologies`, or a file; plans are mapped to it",
        kind: OptionKind::File { example: "topology.json" },
    },
];

static LIMITS: [LimitKind; 5] =
    [LimitKind::Devices, LimitKind::Memory, LimitKind::Microbatches, LimitKind::Bandwidth, LimitKind::Batch];

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "ensemble",
        name: "Ensemble",
        paper: "Liu et al.: Parmesan: Efficient Partitioning and Mapping Flow for DNN Training on General Device \
            Topology, TCAD 2024 (the method `ensemble` of its optimizer)",
        summary: "runs several planners, maps and simulates each plan, and keeps the fastest",
        objective: "iteration_time",
        unit: "s",
    },
    options: &OPTIONS,
    limits: &LIMITS,
    can_plan,
    check_options,
    uses: Uses::Only,
    ..Declaration::NEW
};

/// The ensemble planner.
#[derive(Debug, Clone, Copy)]
pub struct Ensemble;

fn can_plan(workload: &Workload) -> Result<(), CannotPlan> {
    if workload.piper().is_none() && workload.layers().is_none() {
        return Err("it compares simulated iteration times and needs the profile of a pipeline (Piper's, or \
            PipeDream's graph.txt)"
            .into());
    }
    Ok(())
}

fn check_options(problem: &Problem) -> Result<(), OptionError> {
    wiring(&problem.options).map_err(OptionError::File)?;
    for member in members(problem, &planner::independent())? {
        member.planner.check_options(&member.problem(problem))?;
    }
    Ok(())
}

impl Planner for Ensemble {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        self.plan_from(problem, &Others::NONE, search)
    }

    fn plan_from(&self, problem: &Problem, others: &Others<'_>, search: &Search) -> Outcome {
        let wired = match wiring(&problem.options) {
            Ok(wired) => wired,
            Err(error) => return Outcome::refused(error.to_string()),
        };
        let members = match members(problem, others.planners()) {
            Ok(members) => members,
            Err(error) => return Outcome::refused(error.to_string()),
        };
        let (mut best, mut told): (Option<MemberPlan>, Vec<String>) = (None, vec![]);
        for (at, member) in members.iter().enumerate() {
            let share = search.remaining().map(|left| left / (members.len() - at) as u32);
            match member.candidate(problem, others, wired.as_ref(), &search.part(share)) {
                Ok(found) => {
                    told.push(format!("{}: {} an iteration", member.name, units::seconds(found.seconds)));
                    if best.as_ref().is_none_or(|best| found.seconds < best.seconds) {
                        search.improve(found.value, &found.plan);
                        best = Some(found);
                    }
                }
                Err(why) => told.push(format!("{}: {why}", member.name)),
            }
            search.report_fraction((at + 1) as f64 / members.len() as f64);
        }
        let Some(best) = best else {
            let none = Outcome::refused(format!("No member has a plan. {}", told.join("; ")));
            return if search.cancelled() {
                Outcome { status: Status::Cancelled, infeasible: None, ..none }
            } else {
                none
            };
        };
        let cancelled = search.cancelled() && !search.deadline_passed();
        let mut outcome = Outcome::new(if cancelled { Status::Cancelled } else { Status::Feasible });
        outcome.notes = vec![format!("the plan is that of {}", best.member)];
        outcome.notes.extend(told.into_iter().map(|told| format!("member {told}")));
        outcome.notes.extend(best.mapping.as_ref().map(|mapping| format!("mapping: {}", mapping.summary())));
        outcome.notes.extend(best.notes);
        outcome.statistics.counts = vec![("members", members.len() as f64), ("simulated_s", best.seconds)];
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome.mapping = best.mapping;
        outcome.objective = Some(best.value);
        outcome.plan = Some(best.plan);
        outcome
    }
}

/// Planner with its settings.
struct Member {
    /// Name and settings as the user wrote them.
    name: String,
    planner: &'static dyn Planner,
    options: Options,
}

/// Simulated plan of a member.
struct MemberPlan {
    member: String,
    plan: Plan,
    /// Value of the plan by its own measure.
    value: f64,
    /// Seconds of an iteration.
    seconds: f64,
    mapping: Option<MappingPart>,
    notes: Vec<String>,
}

/// Members named by the option `members`; if it is empty, all planners that plan the workload without conversion.
fn members(problem: &Problem, planners: &[&'static dyn Planner]) -> Result<Vec<Member>, OptionError> {
    let text = problem.options.text("members");
    let able = |planner: &&'static dyn Planner| planner.is_native(&problem.workload);
    let wrong = |value: &str| OptionError::Value {
        name: "members".into(),
        value: value.into(),
        known: planners
            .iter()
            .filter(|planner| able(planner))
            .map(|planner| planner.info().id)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut members = vec![];
    if text.trim().is_empty() {
        for planner in planners.iter().copied().filter(able) {
            members.push(Member::new(problem, planner.info().id, planner, &[])?);
        }
    }
    for name in text.split([',', '+']).map(str::trim).filter(|name| !name.is_empty()) {
        let mut words = name.split(';').map(str::trim);
        let id = words.next().unwrap_or_default();
        let found = planners.iter().copied().find(|planner| planner.info().id == id);
        let planner = found.filter(|planner| planner.can_plan(&problem.workload).is_ok()).ok_or_else(|| wrong(id))?;
        members.push(Member::new(problem, name, planner, &words.collect::<Vec<_>>())?);
    }
    if members.is_empty() { Err(wrong(text)) } else { Ok(members) }
}

impl Member {
    /// Member with these settings, on the ensemble's topology if the planner has the option `topology`.
    fn new(
        problem: &Problem,
        name: &str,
        planner: &'static dyn Planner,
        settings: &[&str],
    ) -> Result<Self, OptionError> {
        let knows = planner.options().iter().any(|spec| spec.name == "topology");
        let asked = problem.options.file("topology").filter(|_| knows);
        let topology = asked.map(|path| format!("topology={}", path.display()));
        let all = topology.iter().map(String::as_str).chain(settings.iter().copied());
        let options = Options::parse(planner.info().id, planner.options(), all)?;
        Ok(Member { name: name.into(), planner, options })
    }

    fn problem(&self, problem: &Problem) -> Problem {
        Problem { options: self.options.clone(), ..problem.clone() }
    }

    /// Runs the member and simulates its plan on the topology; else returns the reason why there is no plan.
    fn candidate(
        &self,
        problem: &Problem,
        others: &Others<'_>,
        wired: Option<&PlanTopology>,
        search: &Search,
    ) -> Result<MemberPlan, String> {
        let asked = self.problem(problem);
        let outcome = others.plan(self.planner, &asked, search).map_err(|fault| fault.to_string())?;
        let why = outcome.infeasible.as_ref().map_or("no plan before its deadline", |story| story.explanation.as_str());
        let mut plan = outcome.plan.ok_or_else(|| format!("no plan: {why}"))?;
        let (workload, limits) = (&problem.workload, &problem.limits);
        let (mut mapping, mut notes) = (outcome.mapping, outcome.notes);
        if let (Some(wired), None) = (wired, &mapping) {
            let settings = mapping::MappingSettings::by_the_way(search.seed());
            let how = (CommunicationKinds::default(), &settings, MappingChoice::Faster);
            match mapping::map_plan(workload, limits, &plan, wired, how, search) {
                Ok(mapped) => (plan, mapping) = (mapped.plan, Some(mapped.part)),
                Err(why) => notes.push(format!("not mapped to {}: {why}", wired.topology.name)),
            }
        }
        // Plans of one family are reported by one measure: iteration time, if the family has it.
        if family::of(workload).measures(&std::collections::BTreeMap::new()).contains(&Measure::IterationTime) {
            plan.measure = Measure::IterationTime;
        }
        let score = family::check(workload, limits, &plan);
        if let Some(violation) = score.violations.first() {
            return Err(format!("its plan is not valid: {violation}"));
        }
        let pipeline = family::pipeline(workload, limits, &plan, &SimulatorSettings::default());
        let schedule = pipeline.schedule(Schedule::OneForwardOneBackward);
        let seconds = length_unless(&pipeline, schedule, &|| search.cancelled() && !search.deadline_passed());
        let seconds = seconds.ok_or("its plan was not simulated in time")?;
        Ok(MemberPlan { member: self.name.clone(), plan, value: score.value, seconds, mapping, notes })
    }
}
