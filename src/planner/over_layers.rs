//! Parmesan on workloads that are no layer profiles: convert, plan, carry the split back, score and map it on the original.
//!
//! Piper's profiles are taken at tensor degree 1 without recomputation, operator graphs of device placement through Piper's
//! terms, one accelerator a stage. What the split is worth is what [`family::check()`] finds by the original's own measure, and
//! the devices are found anew for what the original's stages send: nothing of the converted workload's figures is kept. Where
//! the original's rules refuse replicas that layers allow (Piper's must divide the microbatches), the search is made again
//! without replicas; where stages need more memory on the original than
//! the conversion knows of, with less of it. As long as Parmesan takes, at most eight times, and the mapping.

use std::sync::Arc;

use super::{
    CannotPlan, OptionError, OptionSpec, Options, Outcome, Planner, PlannerInfo, Problem, Search, Statistics, Status,
    Tunable,
    converted::{INDIVISIBLE, NOMINAL_BANDWIDTH},
    even,
    parmesan::{
        self,
        mapping::{self, Consider, Keep, Parallel},
    },
};
use crate::{
    cluster::{LimitKind, Limits, Machines},
    family,
    plan::{Plan, Score, Stage, Violation},
    workload::{
        NodeIndex, Workload,
        convert::{self, Conversion, NotConverted, Way},
        formats::Wired,
    },
};

/// Parmesan on layer profiles as they are, on Piper's profiles and operator graphs by conversion.
pub(super) struct OverLayers;

impl Planner for OverLayers {
    fn info(&self) -> &'static PlannerInfo {
        parmesan::Parmesan.info()
    }

    fn options(&self) -> &'static [OptionSpec] {
        parmesan::Parmesan.options()
    }

    fn tunables(&self) -> &'static [Tunable] {
        parmesan::Parmesan.tunables()
    }

    fn limits(&self) -> &'static [LimitKind] {
        parmesan::Parmesan.limits()
    }

    fn is_native(&self, workload: &Workload) -> bool {
        parmesan::Parmesan.is_native(workload)
    }

    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan> {
        let Err(reason) = parmesan::Parmesan.can_plan(workload) else { return Ok(()) };
        if Way::of(workload).is_none() {
            return Err(reason);
        }
        converted(workload).map(drop).map_err(|why| format!("{reason}; {why}").into())
    }

    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        if self.is_native(&problem.workload) {
            return parmesan::Parmesan.check_options(problem);
        }
        parmesan::wiring(&problem.options).map(drop).map_err(OptionError::File)
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let outcome = OverLayers::outcome(problem, search);
        // Told where there is no plan as well.
        let seconds = search.elapsed().as_secs_f64();
        Outcome { statistics: Statistics { seconds, ..outcome.statistics }, ..outcome }
    }
}

impl OverLayers {
    fn outcome(problem: &Problem, search: &Search) -> Outcome {
        if OverLayers.is_native(&problem.workload) {
            return parmesan::Parmesan.plan(problem, search);
        }
        let wired = match parmesan::wiring(&problem.options) {
            Ok(wired) => wired,
            Err(error) => return Outcome::refused(error.to_string()),
        };
        let conversion = match converted(&problem.workload) {
            Ok(conversion) => conversion,
            Err(reason) => return Outcome::refused(reason.to_string()),
        };
        let even = even::best(problem, &conversion, search);
        let asked = Asked { problem, wired, conversion, even };
        let replicas = problem.options.flag("replicas") && !family::of(&problem.workload).stages_are_devices();
        let found = match asked.fitting(replicas, search) {
            // Without replicas there are fewer splits: what had none with them has none.
            Err(refused)
                if replicas
                    && refused.outcome.status != Status::Cancelled
                    && !refused.outcome.lacks_memory()
                    && refused.enough.is_none() =>
            {
                asked.fitting(false, search)
            }
            found => found,
        };
        found.unwrap_or_else(|refused| asked.instead(refused.outcome, search))
    }
}

/// The workload as layers, each with the original nodes it stands for.
fn converted(workload: &Workload) -> Result<Conversion, NotConverted> {
    // Here a microbatch is what a batch is counted in, however many samples it has.
    let to_layers = |workload: &Workload| convert::to_layers(&Workload { recipe: None, ..workload.clone() });
    if Way::of(workload) != Some(Way::ToPipeline) {
        return to_layers(workload);
    }
    let pipeline = convert::to_piper(workload, INDIVISIBLE, NOMINAL_BANDWIDTH)?;
    let layers = to_layers(&pipeline.workload)?;
    let members =
        layers.members.iter().map(|own| own.iter().flat_map(|v| pipeline.members[v.index()].clone()).collect());
    let assumptions = pipeline.assumptions.into_iter().chain(layers.assumptions).collect();
    Ok(Conversion { workload: layers.workload, members: members.collect(), choices: pipeline.choices, assumptions })
}

/// How often a split is asked for that needs less memory.
const TRIES: usize = 4;
/// How much less memory is asked for than would be enough if both counts of it fell alike.
const MARGIN: f64 = 1.02;

/// The memory that makes the converted workload's count refuse what the original's does, where that is all that is wrong:
/// of each stage as much as it counts, in the ratio of the limit to what the original needs.
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

/// A question with what it takes to ask it of layers.
struct Asked<'a> {
    problem: &'a Problem,
    wired: Option<Wired>,
    conversion: Conversion,
    /// The best plan that was there before the search, with what it is worth.
    even: Option<(f64, Plan)>,
}

/// What came of a search instead of a plan.
struct Refused {
    outcome: Outcome,
    /// The memory with which the stages that need too much on the original would have been refused, where that is all that is
    /// wrong.
    enough: Option<f64>,
}

impl Asked<'_> {
    /// The split that Parmesan finds with as much of the memory as the original's stages leave it: a stage may need more
    /// there than the conversion knows of.
    fn fitting(&self, replicas: bool, search: &Search) -> Result<Outcome, Box<Refused>> {
        let mut memory = self.problem.limits.memory();
        let mut first: Option<Box<Refused>> = None;
        for _ in 0..TRIES {
            match self.split(replicas, memory, search) {
                Ok(outcome) => return Ok(outcome),
                Err(refused) => {
                    let enough = refused.enough.filter(|less| *less < memory && !search.cancelled());
                    first.get_or_insert(refused);
                    let Some(less) = enough else { break };
                    memory = less;
                }
            }
        }
        Err(first.expect("it was tried"))
    }

    /// The split that Parmesan finds, on the original; else what came of it instead.
    fn split(&self, replicas: bool, memory_bytes: f64, search: &Search) -> Result<Outcome, Box<Refused>> {
        let Problem { workload, limits, options } = self.problem;
        let machines = match &self.wired {
            Some(wired) => wired.topology.machines(),
            None => Machines::of_eight().with_devices(limits.devices.max(1)),
        };
        let mut options: Options = options.clone();
        if !replicas {
            options.set("replicas", super::OptionValue::Flag(false));
        }
        let asked = Problem {
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
        // Values and plans of the converted workload are nobody's business.
        let mut outcome = parmesan::Parmesan::plan_of_converted(&asked, &search.quiet());
        outcome.notes = self.conversion.assumptions.clone();
        outcome
            .notes
            .push("Nothing is proven: the planner saw the converted workload. The value is the original's.".into());
        (outcome.objective, outcome.lower_bound, outcome.mapping) = (None, None, None);
        if let Some(infeasible) = &mut outcome.infeasible {
            // What would do for the converted workload need not do for the original.
            (infeasible.smallest_memory_bytes, infeasible.fewest_devices) = (None, None);
        }
        let Some(found) = outcome.plan.take() else { return Err(Box::new(Refused { outcome, enough: None })) };
        let plan = self.carried_back(&found);
        let score = family::check(workload, limits, &plan);
        if let Some(violation) = score.violations.first() {
            let why = format!("The split of the converted workload does not hold for the original: {violation}.");
            let outcome = Outcome { notes: outcome.notes, ..Outcome::refused(why) };
            let counted = family::check(&asked.workload, &asked.limits, &found);
            return Err(Box::new(Refused { outcome, enough: enough(&score.violations, &counted) }));
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

    /// The plan that was there before the search, where that found none.
    fn instead(&self, refused: Outcome, search: &Search) -> Outcome {
        let Some((value, plan)) = self.even.clone() else {
            // Of what was not searched to its end nothing is known.
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
            .push("The search found no split that holds: this one has stages of about equal work or memory.".into());
        self.map(&mut outcome, search);
        outcome
    }

    /// The stages with the original's nodes, each with as many replicas.
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

    /// Puts the plan on the topology, by what its own stages send.
    fn map(&self, outcome: &mut Outcome, search: &Search) {
        let Problem { workload, limits, options } = self.problem;
        let (Some(wired), Some(plan)) = (&self.wired, &outcome.plan) else { return };
        let name = &wired.topology.name;
        let count = |name: &str| options.number(name) as u32;
        let settings = mapping::MappingSettings {
            method: mapping::Method::find(options.choice("mapping")).unwrap_or_default(),
            parallel: Parallel { same_target: count("parallel_same_t"), degree: count("parallel_degree") },
            seed: search.seed(),
            ..mapping::MappingSettings::default()
        };
        let keep = if settings.method == mapping::Method::Search { Keep::Faster } else { Keep::Found };
        let consider = Consider {
            transfers: options.flag("incl_p2p"),
            all_reduces: options.flag("incl_allr"),
            ..Consider::default()
        };
        let mapped = match mapping::map_plan(workload, limits, plan, wired, (consider, &settings, keep), search) {
            Ok(mapped) => mapped,
            Err(why) => return outcome.notes.push(format!("not mapped to {name}: {why}")),
        };
        let score = family::check(workload, limits, &mapped.plan);
        if let Some(violation) = score.violations.first() {
            return outcome.notes.push(format!("not mapped to {name}: {violation}"));
        }
        outcome.notes.push(format!("mapping: {}", mapped.part.told()));
        outcome.objective = Some(score.value);
        outcome.plan = Some(mapped.plan);
        outcome.mapping = Some(mapped.part);
    }
}
