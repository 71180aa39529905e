//! Parmesan on workloads of other families: convert to layers, plan, carry the split back, score and map it on the
//! original.
//!
//! Piper's profiles are taken at tensor degree 1 without recomputation. Operator graphs of device placement are
//! converted through Piper's terms, one accelerator per stage. The value is what [`family::check()`] finds for the
//! split by the original's own measure. Mapping uses what the original's stages send. No figure of the converted
//! workload is kept.
//!
//! The search is repeated in two cases. If the original's rules refuse replicas (Piper's must divide the microbatches),
//! the search runs again without replicas. If stages need more memory on the original than on the conversion, it runs
//! again with less memory. Cost: at most eight runs of Parmesan, plus the mapping.

use std::sync::Arc;

use super::{Parmesan, wiring};
use crate::{
    CannotPlan, Declaration, OptionError, OptionValue, Options, Outcome, Planner, Problem, Search, Statistics, Status,
    converted::{INDIVISIBLE, NOMINAL_BANDWIDTH},
    even,
};
use plantui_core::{
    cluster::{Limits, Machines},
    family,
    mapping::{self, CommunicationKinds, MappingChoice, Parallel},
    plan::{Plan, Score, Stage, Violation},
    workload::{
        NodeIndex, Workload,
        convert::{self, Conversion, ConversionDirection, ConversionError},
        formats::PlanTopology,
    },
};

/// Parmesan on layer profiles, and by conversion on Piper's profiles and operator graphs.
pub(crate) struct OverLayers;

impl Planner for OverLayers {
    fn declaration(&self) -> &'static Declaration {
        Parmesan.declaration()
    }

    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan> {
        let Err(reason) = Parmesan.can_plan(workload) else { return Ok(()) };
        if ConversionDirection::of(workload).is_none() {
            return Err(reason);
        }
        converted(workload).map(drop).map_err(|why| format!("{reason}; {why}").into())
    }

    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        if self.is_native(&problem.workload) {
            return Parmesan.check_options(problem);
        }
        wiring(&problem.options).map(drop).map_err(OptionError::File)
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let outcome = OverLayers::outcome(problem, search);
        // Reported even if there is no plan.
        let seconds = search.elapsed().as_secs_f64();
        Outcome { statistics: Statistics { seconds, ..outcome.statistics }, ..outcome }
    }
}

impl OverLayers {
    fn outcome(problem: &Problem, search: &Search) -> Outcome {
        if OverLayers.is_native(&problem.workload) {
            return Parmesan.plan(problem, search);
        }
        let wired = match wiring(&problem.options) {
            Ok(wired) => wired,
            Err(error) => return Outcome::refused(error.to_string()),
        };
        let conversion = match converted(&problem.workload) {
            Ok(conversion) => conversion,
            Err(reason) => return Outcome::refused(reason.to_string()),
        };
        let even = even::best(problem, &conversion, search);
        let layers = ConvertedProblem { problem, wired, conversion, even };
        let replicas = problem.options.flag("replicas") && !family::of(&problem.workload).stages_are_devices();
        let found = match layers.fitting(replicas, search) {
            // Splits without replicas are a subset: if memory allows none with replicas, it allows none without.
            Err(rejected)
                if replicas
                    && rejected.outcome.status != Status::Cancelled
                    && !rejected.outcome.lacks_memory()
                    && rejected.enough.is_none() =>
            {
                layers.fitting(false, search)
            }
            found => found,
        };
        found.unwrap_or_else(|rejected| layers.instead(rejected.outcome, search))
    }
}

/// Converts the workload to layers, each with the original nodes that it represents.
fn converted(workload: &Workload) -> Result<Conversion, ConversionError> {
    // A batch counts microbatches here, whatever their number of samples.
    let to_layers = |workload: &Workload| convert::to_layers(&Workload { recipe: None, ..workload.clone() });
    if ConversionDirection::of(workload) != Some(ConversionDirection::ToPipeline) {
        return to_layers(workload);
    }
    let pipeline = convert::to_piper(workload, INDIVISIBLE, NOMINAL_BANDWIDTH)?;
    let layers = to_layers(&pipeline.workload)?;
    let members =
        layers.members.iter().map(|own| own.iter().flat_map(|v| pipeline.members[v.index()].clone()).collect());
    let assumptions = pipeline.assumptions.into_iter().chain(layers.assumptions).collect();
    Ok(Conversion { workload: layers.workload, members: members.collect(), choices: pipeline.choices, assumptions })
}

/// Number of attempts with decreasing memory. It bounds the runs of Parmesan to eight, with and without replicas.
const TRIES: usize = 4;
/// Extra reduction of memory per attempt, beyond the ratio of the two memory counts.
const MARGIN: f64 = 1.02;

/// Memory limit at which the converted workload's count also refuses the stages that exceed memory on the original. Per
/// stage: its converted count times limit / need on the original. `None` if any violation is of another kind.
fn enough(violations: &[Violation], counted: &Score) -> Option<f64> {
    let of = |violation: &Violation| match violation {
        Violation::OutOfMemory { stage, needed_bytes, limit_bytes } => {
            let own = counted.stages.get(stage - 1)?.memory_bytes;
            Some(own * limit_bytes / needed_bytes / MARGIN)
        }
        _ => None,
    };
    let all: Option<Vec<f64>> = violations.iter().map(of).collect();
    all.map(|all| all.into_iter().fold(f64::INFINITY, f64::min))
}

/// A problem with what is needed to solve it as layers.
struct ConvertedProblem<'a> {
    problem: &'a Problem,
    wired: Option<PlanTopology>,
    conversion: Conversion,
    /// Best plan from before the search, with its value.
    even: Option<(f64, Plan)>,
}

/// Result of a search that gave no valid plan.
struct RejectedSplit {
    outcome: Outcome,
    /// Memory limit at which the conversion would have refused the stages that need too much memory on the original.
    /// `None` if anything else is violated.
    enough: Option<f64>,
}

impl ConvertedProblem<'_> {
    /// Returns a valid split by Parmesan, lowering the memory limit between attempts: a stage may need more memory on
    /// the original than on the conversion.
    fn fitting(&self, replicas: bool, search: &Search) -> Result<Outcome, Box<RejectedSplit>> {
        let mut memory = self.problem.limits.memory();
        let mut first: Option<Box<RejectedSplit>> = None;
        for _ in 0..TRIES {
            match self.split(replicas, memory, search) {
                Ok(outcome) => return Ok(outcome),
                Err(rejected) => {
                    let enough = rejected.enough.filter(|less| *less < memory && !search.cancelled());
                    first.get_or_insert(rejected);
                    let Some(less) = enough else { break };
                    memory = less;
                }
            }
        }
        Err(first.expect("it was tried"))
    }

    /// Plans once with Parmesan and carries the split back to the original.
    fn split(&self, replicas: bool, memory_bytes: f64, search: &Search) -> Result<Outcome, Box<RejectedSplit>> {
        let Problem { workload, limits, options } = self.problem;
        let machines = match &self.wired {
            Some(wired) => wired.topology.machines(),
            None => Machines::of_eight().with_devices(limits.devices.max(1)),
        };
        let mut options: Options = options.clone();
        if !replicas {
            options.set("replicas", OptionValue::Flag(false));
        }
        let layers = Problem {
            workload: Arc::new(self.conversion.workload.clone()),
            limits: Limits {
                devices: machines.devices(),
                machines,
                batch: Some(limits.microbatches),
                cpus: 0,
                memory_bytes: Some(memory_bytes),
                ..limits.clone()
            },
            options,
        };
        // Values and plans of the converted workload are not published.
        let mut outcome = Parmesan::plan_of_converted(&layers, &search.quiet());
        outcome.notes = self.conversion.assumptions.clone();
        outcome
            .notes
            .push("No proof: the planner saw the converted workload. The value is that of the original.".into());
        (outcome.objective, outcome.lower_bound, outcome.mapping) = (None, None, None);
        if let Some(infeasible) = &mut outcome.infeasible {
            // Limits that suffice for the converted workload may not suffice for the original.
            (infeasible.smallest_memory_bytes, infeasible.fewest_devices) = (None, None);
        }
        let Some(found) = outcome.plan.take() else { return Err(Box::new(RejectedSplit { outcome, enough: None })) };
        let plan = self.carried_back(&found);
        let score = family::check(workload, limits, &plan);
        if let Some(violation) = score.violations.first() {
            let why = format!("The split of the converted workload is not valid for the original: {violation}.");
            let outcome = Outcome { notes: outcome.notes, ..Outcome::refused(why) };
            let counted = family::check(&layers.workload, &layers.limits, &found);
            return Err(Box::new(RejectedSplit { outcome, enough: enough(&score.violations, &counted) }));
        }
        search.improve(score.value, &plan);
        if outcome.status == Status::Optimal {
            outcome.status = Status::Feasible;
        }
        let (value, plan) = match &self.even {
            Some((value, even)) if plan.measure.is_better(*value, score.value) => (*value, even.clone()),
            _ => (score.value, plan),
        };
        outcome.objective = Some(value);
        outcome.plan = Some(plan);
        self.map(&mut outcome, search);
        Ok(outcome)
    }

    /// Returns the plan from before the search, if the search found none.
    fn instead(&self, refused: Outcome, search: &Search) -> Outcome {
        let Some((value, plan)) = self.even.clone() else {
            // An interrupted search proves nothing, so the reason is dropped.
            let ended = if search.cancelled() { Status::Cancelled } else { refused.status };
            return Outcome {
                status: ended,
                infeasible: refused.infeasible.filter(|_| ended != Status::Cancelled),
                ..refused
            };
        };
        let stopped = search.cancelled() && !search.deadline_passed();
        let mut outcome = Outcome::new(if stopped { Status::Cancelled } else { Status::Feasible });
        (outcome.plan, outcome.objective, outcome.notes) = (Some(plan), Some(value), refused.notes);
        outcome
            .notes
            .push("The search found no valid split: this one has stages of about equal work or memory.".into());
        self.map(&mut outcome, search);
        outcome
    }

    /// Builds the plan of the original: the same stages and replicas, with the original's nodes.
    fn carried_back(&self, found: &Plan) -> Plan {
        let Conversion { members, choices, .. } = &self.conversion;
        let stage = |stage: &Stage| {
            let members = |node: &NodeIndex| members[node.index()].iter().copied();
            let mut nodes: Vec<NodeIndex> = stage.nodes.iter().flat_map(members).collect();
            nodes.sort_unstable();
            Stage {
                choices: nodes.iter().map(|node| choices[node.index()].clone()).collect(),
                nodes,
                data_parallel: stage.data_parallel,
                tensor_parallel: 1,
                devices: vec![],
            }
        };
        let stages = found.stages.iter().filter(|stage| !stage.nodes.is_empty()).map(stage).collect();
        let measure = family::measure(&self.problem.workload);
        Plan { stages, measure, ..Plan::default() }.with_consecutive_devices()
    }

    /// Maps the plan onto the topology by what its own stages send.
    fn map(&self, outcome: &mut Outcome, search: &Search) {
        let Problem { workload, limits, options } = self.problem;
        let (Some(wired), Some(plan)) = (&self.wired, &outcome.plan) else { return };
        let name = &wired.topology.name;
        let count = |name: &str| options.number(name) as u32;
        let settings = mapping::MappingSettings {
            method: mapping::MappingMethod::find(options.choice("mapping")).unwrap_or_default(),
            parallel: Parallel { same_target: count("parallel_same_t"), degree: count("parallel_degree") },
            seed: search.seed(),
            ..mapping::MappingSettings::default()
        };
        let keep = if settings.method == mapping::MappingMethod::Search {
            MappingChoice::Faster
        } else {
            MappingChoice::Found
        };
        let consider = CommunicationKinds {
            transfers: options.flag("incl_p2p"),
            all_reduces: options.flag("incl_allr"),
            ..CommunicationKinds::default()
        };
        let mapped = match mapping::map_plan(workload, limits, plan, wired, (consider, &settings, keep), search) {
            Ok(mapped) => mapped,
            Err(why) => return outcome.notes.push(format!("not mapped to {name}: {why}")),
        };
        let score = family::check(workload, limits, &mapped.plan);
        if let Some(violation) = score.violations.first() {
            return outcome.notes.push(format!("not mapped to {name}: {violation}"));
        }
        outcome.notes.push(format!("mapping: {}", mapped.part.summary()));
        outcome.objective = Some(score.value);
        outcome.plan = Some(mapped.plan);
        outcome.mapping = Some(mapped.part);
    }
}
