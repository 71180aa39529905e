//! The algorithms for single-sample latency as registered planners.
//!
//! The greedy heuristic and the split of the max-load DP are scored as in the paper: a stage is a device. The search
//! solves the problem of the latency integer program: a stage is one of the subgraphs that an accelerator runs in turn.
//! In all of them, the last stage holds all CPUs together, numbered after the accelerators.
//!
//! Memory and time are those of the algorithms; see [`latency`](super::latency) and [`dp`].

use super::{
    DeviceKind, PlacementProblem, Split,
    dp::{self, DpOptions},
    latency::{
        Instance, LatencyProblem, LatencySettings, SlotSchedule,
        bound::critical_path,
        evaluate, greedy,
        search::{LatencyResult, search as anytime_search},
    },
    linearise,
    planners::{PAPER, alike_profile},
};
use crate::{
    Bearing, CannotPlan, Declaration, Infeasible, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem,
    Proves, Statistics, Status, Tunable,
};
use plantui_core::{
    cluster::LimitKind,
    graph::Dag,
    plan::{Measure, Plan, Stage},
    search::Search,
    units,
    workload::{Choice, Node, NodeIndex, PlacementProfile, Workload},
};

/// Algorithm of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatencyAlgorithm {
    Greedy,
    MaxLoadDp,
    Search,
}

/// One of the algorithms as a planner.
#[derive(Debug)]
pub(crate) struct LatencyPlanner {
    declaration: &'static Declaration,
    algorithm: LatencyAlgorithm,
}

const SUBGRAPHS: OptionSpec = OptionSpec {
    name: "subgraphs",
    label: "subgraphs",
    help: "most subgraphs per accelerator, run one after another",
    kind: OptionKind::Number { default: 1.0, least: 1.0, most: 64.0, whole: true, zero: None },
};

const ROUNDS: OptionSpec = OptionSpec {
    name: "rounds",
    label: "rounds",
    help: "rounds of annealing; more rounds may find better plans",
    kind: OptionKind::Number { default: 6.0, least: 0.0, most: 10_000.0, whole: true, zero: None },
};

static SEARCH_OPTIONS: [OptionSpec; 2] = [SUBGRAPHS, ROUNDS];

/// Effect of each option on the set of plans that a proof covers.
static SEARCH_BEARINGS: [(&str, Bearing); SEARCH_OPTIONS.len()] = [
    // One subgraph, the default, is also a restriction.
    (
        SUBGRAPHS.name,
        Bearing::Narrows(|options| {
            let most = units::counted(options.number(SUBGRAPHS.name) as usize, "subgraph");
            Some(format!("with at most {most} on an accelerator"))
        }),
    ),
    (ROUNDS.name, Bearing::Search),
];

const fn declared(id: &'static str, name: &'static str, summary: &'static str) -> Declaration {
    Declaration {
        info: PlannerInfo { id, name, paper: PAPER, summary, objective: "latency", unit: "ms" },
        limits: &LimitKind::PLACEMENT,
        can_plan: |workload| alike_profile(workload).map(drop),
        ..Declaration::NEW
    }
}

/// Accelerators filled along a topological order.
pub(crate) static GREEDY: LatencyPlanner = LatencyPlanner {
    declaration: &declared(
        "placement-latency-greedy",
        "Latency: greedy",
        "fills accelerators one after another along a topological order, up to their memory",
    ),
    algorithm: LatencyAlgorithm::Greedy,
};
/// Split of the max-load DP.
pub(crate) static MAX_LOAD_DP: LatencyPlanner = LatencyPlanner {
    declaration: &declared(
        "placement-latency-dp",
        "Latency: max-load DP",
        "the contiguous split with the least load of the busiest device, scored by the time of one sample",
    ),
    algorithm: LatencyAlgorithm::MaxLoadDp,
};
/// Anytime search.
pub(crate) static SEARCH: LatencyPlanner = LatencyPlanner {
    declaration: &Declaration {
        options: &SEARCH_OPTIONS,
        proves: Proves::Among(&SEARCH_BEARINGS),
        tunables: &[Tunable::Resource("subgraphs")],
        can_plan: can_schedule,
        ..declared(
            "placement-latency-ip",
            "Latency: search",
            "least time of one sample with a given number of subgraphs per accelerator: annealing, branch and bound, \
            a lower bound",
        )
    },
    algorithm: LatencyAlgorithm::Search,
};

fn can_schedule(workload: &Workload) -> Result<(), CannotPlan> {
    if alike_profile(workload)?.nodes.iter().any(|node| node.backward) {
        return Err("it schedules one inference, and the graph has backward nodes: use the inference graph".into());
    }
    Ok(())
}

impl Planner for LatencyPlanner {
    fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(asked) = PlacementProblem::of(problem) else { return Outcome::new(Status::Infeasible) };
        let (dag, profile) = (&problem.workload.dag, &asked.profile);
        let mut outcome = match self.algorithm {
            LatencyAlgorithm::Greedy => {
                let split = greedy(dag, profile, problem.limits.devices as usize, asked.memory());
                scored(problem, &asked, &split)
            }
            LatencyAlgorithm::MaxLoadDp => of_max_load(problem, &asked, search),
            LatencyAlgorithm::Search => of_search(problem, &asked, search),
        };
        outcome = without_absent_cpus(problem, outcome);
        if outcome.plan.is_some() && outcome.lower_bound.is_none() {
            let instance = Instance::new(dag, profile, problem.limits.devices as usize, 1, asked.memory());
            outcome.lower_bound = Some(critical_path(&instance));
        }
        if let (Some(plan), Some(value)) = (&outcome.plan, outcome.objective) {
            search.improve(value, plan);
            if problem.limits.cpus > 0 {
                let note = "CPUs run any number of nodes at once: their number does not matter, as long as there is \
                    one";
                outcome.notes.push(note.into());
            }
        }
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }
}

/// Split of the max-load DP as a plan for latency.
fn of_max_load(problem: &Problem, asked: &PlacementProblem<'_>, search: &Search) -> Outcome {
    let limits = asked.limits;
    let placed = dp::plan(&problem.workload.dag, &asked.profile, &limits, &DpOptions::default(), &search.quiet());
    let Some(split) = placed.split else {
        if placed.status == Status::Cancelled {
            return Outcome::new(Status::Cancelled);
        }
        let (devices, cpus) = (limits.accelerators, limits.cpus);
        let memory = units::bytes_exact(problem.limits.memory_limit());
        let explanation =
            format!("No contiguous split fits on {devices} accelerators with {memory} each and {cpus} CPUs.");
        return infeasible(vec![LimitKind::Memory], None, explanation);
    };
    let mut outcome = scored(problem, asked, &accelerators(&split));
    outcome.statistics.counts = placed.counts;
    if let Some(max_load) = placed.max_load {
        outcome.notes.push(format!(
            "the split has the least max-load, {} ms; others with that max-load may have a lower latency",
            units::number(max_load)
        ));
    }
    outcome
}

/// CPU time that no plan accepts if it can avoid it, in the profile's unit: more than all accelerators need for
/// everything in sequence.
fn prohibitive(profile: &PlacementProfile) -> f64 {
    let nodes = profile.nodes.iter();
    nodes.map(|node| 4.0 * (node.accelerator_time + node.transfer * 2.0)).sum::<f64>().max(1e12)
}

/// Refuses a plan with nodes on CPUs if there are none.
pub(super) fn without_absent_cpus(problem: &Problem, outcome: Outcome) -> Outcome {
    let on_cpus = |stage: &Stage| stage.on_cpus();
    let nodes = |plan: &Plan| plan.stages.iter().filter(|stage| on_cpus(stage)).map(|stage| stage.nodes.len()).sum();
    let count: usize = outcome.plan.as_ref().map_or(0, nodes);
    if problem.limits.cpus > 0 || count == 0 {
        return outcome;
    }
    let explanation =
        format!("Its best split has {count} nodes on CPUs, and there are none; one is enough (--cpus 1).");
    infeasible(vec![LimitKind::Cpus], None, explanation)
}

/// Node indices by accelerator; all others are on CPUs.
pub(super) fn accelerators(split: &Split) -> Vec<Vec<u32>> {
    let devices = split.devices.iter().filter(|device| device.kind == DeviceKind::Accelerator);
    devices.map(|device| device.nodes.iter().map(|&v| v as u32).collect()).collect()
}

/// Anytime search, starting from the splits of the max-load algorithms.
fn of_search(problem: &Problem, asked: &PlacementProblem<'_>, search: &Search) -> Outcome {
    /// Graphs with more closed sets start from the linearised split alone, so that the search begins quickly.
    const MOST_IDEALS: usize = 5_000;
    let (dag, limits) = (&problem.workload.dag, asked.limits);
    let subgraphs = problem.options.number("subgraphs") as u32;
    // Without CPUs, the search accepts starts that use CPUs, but leaves them as soon as it can.
    let prohibitive = prohibitive(&asked.profile);
    let mut priced = asked.profile.clone().into_owned();
    if problem.limits.cpus == 0 {
        priced.nodes.iter_mut().for_each(|node| node.cpu_time += prohibitive);
    }
    let profile = &priced;
    // More accelerators or subgraphs than nodes are useless, but cost memory.
    let most = dag.len().max(1);
    let question = LatencyProblem {
        dag,
        profile,
        accelerators: (problem.limits.devices as usize).min(most),
        subgraphs: (subgraphs as usize).min(most),
        memory_bytes: asked.memory(),
    };
    let plan = |schedule: &SlotSchedule| slot_plan(schedule, dag.len(), subgraphs, problem.limits.devices);
    let improved = |schedule: &SlotSchedule| {
        if schedule.latency < prohibitive {
            search.improve(schedule.latency, &plan(schedule));
        }
    };
    let quiet = search.quiet();
    let options = DpOptions { most_ideals: MOST_IDEALS, ..DpOptions::default() };
    let starts: Vec<Vec<Vec<u32>>> =
        [linearise::plan(dag, profile, &limits, &options, &quiet), dp::plan(dag, profile, &limits, &options, &quiet)]
            .iter()
            .filter_map(|placed| placed.split.as_ref().map(accelerators))
            .collect();
    let settings = LatencySettings { rounds: problem.options.number("rounds") as usize, ..LatencySettings::default() };
    let found = anytime_search(&question, &settings, &starts, search, &improved);
    let LatencyResult { schedule, as_pieces, lower_bound, status, .. } = found;
    let mut notes = vec![];
    if let Some(pieces) = as_pieces.ok().filter(|_| subgraphs > 1) {
        notes.push(format!(
            "with each accelerator's nodes cut by the published rule, whose parts do not wait for one another: {} ms",
            units::number(pieces.latency)
        ));
    }
    Outcome {
        plan: Some(plan(&schedule)),
        objective: Some(schedule.latency),
        lower_bound,
        notes,
        ..Outcome::new(status)
    }
}

/// A split as a plan, scored by the published evaluation; infeasible if it cannot run.
pub(super) fn scored(problem: &Problem, asked: &PlacementProblem<'_>, split: &[Vec<u32>]) -> Outcome {
    let (dag, profile, limits) = (&problem.workload.dag, &asked.profile, &problem.limits);
    let unsupported = split.iter().flatten().map(|&v| v as usize).find(|&v| !profile.nodes[v].supported);
    let schedule = match evaluate(dag, profile, asked.memory(), split) {
        Ok(schedule) => schedule,
        Err(error) => return infeasible(vec![], None, format!("Its split cannot run: {error}.")),
    };
    let worth = format!("Its split takes {} ms", units::number(schedule.latency));
    if let Some(node) = unsupported {
        let node: &Node = &problem.workload.nodes[node];
        let explanation = format!("{worth}, but has {} on an accelerator, which cannot run it.", node.label());
        return infeasible(vec![], None, explanation);
    }
    let heaviest = schedule.memory_excess.iter().map(|excess| excess.bytes).reduce(f64::max);
    if let Some(bytes) = heaviest {
        let explanation = format!(
            "{worth}, but needs {} on one accelerator, the limit is {}; another planner may find one that fits.",
            units::bytes(bytes),
            units::bytes_exact(limits.memory_limit())
        );
        return infeasible(vec![LimitKind::Memory], Some(bytes), explanation);
    }
    Outcome {
        plan: Some(device_plan(dag, split, limits.devices)),
        objective: Some(schedule.latency),
        ..Outcome::new(Status::Feasible)
    }
}

fn infeasible(limits: Vec<LimitKind>, smallest_memory_bytes: Option<f64>, explanation: String) -> Outcome {
    let story = Infeasible { limits, smallest_memory_bytes, fewest_devices: None, explanation };
    Outcome { infeasible: Some(story), statistics: Statistics::default(), ..Outcome::new(Status::Infeasible) }
}

fn stage(nodes: Vec<usize>, choice: Choice, device: u32) -> Stage {
    let choices = vec![choice; nodes.len()];
    Stage { nodes: NodeIndex::list(nodes), choices, data_parallel: 1, tensor_parallel: 1, devices: vec![device] }
}

/// A stage for each non-empty accelerator, then one for the CPUs.
fn device_plan(dag: &Dag, split: &[Vec<u32>], devices: u32) -> Plan {
    let mut on_cpus = vec![true; dag.len()];
    let mut plan = Plan { measure: Measure::Latency { subgraphs: None }, ..Plan::default() };
    for (number, nodes) in split.iter().filter(|nodes| !nodes.is_empty()).enumerate() {
        let mut nodes: Vec<usize> = nodes.iter().map(|&v| v as usize).collect();
        nodes.sort_unstable();
        nodes.iter().for_each(|&node| on_cpus[node] = false);
        plan.stages.push(stage(nodes, Choice::Accelerator, number as u32));
    }
    push_cpus(&mut plan, &on_cpus, devices);
    plan
}

/// A stage for each non-empty slot, in order of start, then one for the CPUs.
fn slot_plan(schedule: &SlotSchedule, n: usize, subgraphs: u32, devices: u32) -> Plan {
    let mut on_cpus = vec![true; n];
    let mut plan = Plan { measure: Measure::Latency { subgraphs: Some(subgraphs) }, ..Plan::default() };
    let mut runs: Vec<_> = schedule.slots.iter().collect();
    // The sort is stable: the slots of an accelerator stay in order.
    runs.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut numbers: Vec<usize> = vec![];
    for run in runs {
        let nodes: Vec<usize> = run.nodes.iter().map(|&v| v as usize).collect();
        nodes.iter().for_each(|&node| on_cpus[node] = false);
        let number = numbers.iter().position(|&a| a == run.accelerator).unwrap_or_else(|| {
            numbers.push(run.accelerator);
            numbers.len() - 1
        });
        plan.stages.push(stage(nodes, Choice::Accelerator, number as u32));
    }
    push_cpus(&mut plan, &on_cpus, devices);
    plan
}

fn push_cpus(plan: &mut Plan, on_cpus: &[bool], devices: u32) {
    let nodes: Vec<usize> = (0..on_cpus.len()).filter(|&v| on_cpus[v]).collect();
    if !nodes.is_empty() {
        plan.stages.push(stage(nodes, Choice::Cpu, devices));
    }
}
