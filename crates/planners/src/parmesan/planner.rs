//! The planner: generates partitions at every point of the search, maps and simulates them, and keeps the fastest.
//!
//! All scores are simulated iteration times on the topology's routes. Each partition is tried with a quick mapping
//! (construction and exchanges) and with devices in order, and the faster one counts. The best partitions are then
//! mapped by the chosen method. Points run in parallel and are compared in their order, so that threads change nothing.
//! The reported objective is DAPPLE's speed-up, the measure of plans over layers, because the check can recompute it.
//!
//! `O(points · (coarsening + chain + refinement) + partitions · (mapping + simulation))`.

use std::{
    cmp::Ordering,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::{
    candidates::{SearchPoint, VertexPartition, candidates},
    coarsen::CostGraph,
    model::{WEIGHED, fine, inner, machine, pairs, widths},
    options::OPTIONS,
    stages::MachineModel,
    wiring,
};
use crate::{CannotPlan, Declaration, OptionError, Outcome, Planner, PlannerInfo, Problem, Status, Tunable};
use plantui_core::{
    cluster::{
        LimitKind, Limits,
        topology::{self, LinkRule, Topology},
    },
    family::{self, layers::costs},
    mapping::{CommunicationKinds, Demands, MappingInstance, MappingMethod, Parallel},
    plan::{Measure, Plan, SpeedupModel, Stage},
    search::Search,
    simulate::{Schedule, SimulatorSettings, length_unless},
    units,
    workload::{Choice, LayerProfile, LoadError, NodeIndex, Workload, formats::PlanTopology, states},
};

/// Multiples of the number of devices that `search_k` tries, besides all vertices. They bound its points to eight for
/// each coefficient and flow.
const CLUSTERS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
/// Most clusters by default: four per device for 64 devices. It bounds the time of the chain, which is quadratic.
const MOST_CLUSTERS: usize = 256;
/// Values that `search_comm_coef` tries. They bound its points to eight for each number of clusters and flow.
const COEFFICIENTS: [f64; 8] = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// Number of partitions that are mapped by the chosen method. It bounds the time of the final mappings.
const MAPPED: usize = 3;
/// Largest number of devices for which every partition's mapping is improved by exchanges. It bounds their time, since
/// a pass tries all pairs.
const POLISHED: usize = 64;

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "parmesan",
        name: "Parmesan (after TCAD 2024)",
        paper: "Liu et al.: Parmesan: Efficient Partitioning and Mapping Flow for DNN Training on General Device \
            Topology, TCAD 2024 (design reconstructed)",
        summary: "coarsening, a chain of stages, refinement; then a search for devices of any topology, scored by \
            simulated time",
        objective: "speedup",
        unit: "x",
    },
    options: &OPTIONS,
    tunables: &[Tunable::Freedom("replicas"), Tunable::Stages("stages")],
    limits: &LimitKind::LAYERS,
    can_plan,
    check_options: |problem| wired(problem).map(drop).map_err(OptionError::File),
    ..Declaration::NEW
};

/// The Parmesan planner.
#[derive(Debug, Clone, Copy)]
pub struct Parmesan;

impl Planner for Parmesan {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        self.planned(problem, search, false)
    }
}

fn can_plan(workload: &Workload) -> Result<(), CannotPlan> {
    workload.layers().ok_or("it needs forward and backward times of layers (PipeDream's graph.txt)")?;
    if states::planned_nodes(workload).contains(&true) { Ok(()) } else { Err("it has no node that computes".into()) }
}

impl Parmesan {
    /// Plans a converted workload. The plan is not mapped, and if nothing fits, the least sufficient memory is not
    /// sought: both would belong to another workload.
    pub(super) fn plan_of_converted(problem: &Problem, search: &Search) -> Outcome {
        Parmesan.planned(problem, search, true)
    }

    fn planned(&self, problem: &Problem, search: &Search, converted: bool) -> Outcome {
        let wired = match wired(problem) {
            Ok(wired) => wired,
            Err(error) => return Outcome::refused(error.to_string()),
        };
        let topology = &wired.topology;
        if topology.machines() != problem.limits.machines {
            return Outcome::refused(format!(
                "{} has {} devices in machines of {}, and the limits state {}: leave --devices and --machines out.",
                topology.name,
                topology.devices(),
                topology.machines(),
                problem.limits.machines
            ));
        }
        if let Err(error) = parallel(problem).checked() {
            return Outcome::refused(format!("{error}."));
        }
        ParmesanSearch { converted, ..ParmesanSearch::new(problem, &wired, search) }.run()
    }
}

pub(super) fn parallel(problem: &Problem) -> Parallel {
    let count = |name: &str| problem.options.number(name) as u32;
    Parallel { same_target: count("parallel_same_t"), degree: count("parallel_degree") }
}

/// Topology of the option `topology`; else machines joined by the links of the options.
fn wired(problem: &Problem) -> Result<PlanTopology, LoadError> {
    if let Some(wired) = wiring(&problem.options)? {
        return Ok(wired);
    }
    let number = |name: &str| problem.options.number(name);
    let machines = topology::of_machines(
        &problem.limits.machines,
        number("nvlink_bandwidth"),
        number("ethernet_bandwidth").max(number("all_reduce_bandwidth")),
    );
    Ok(PlanTopology { topology: Arc::new(machines), file: None })
}

/// Plan with its scores: seconds of an iteration, peak memory in bytes, speed-up.
#[derive(Debug, Clone)]
pub(super) struct SimulatedPlan {
    pub(super) plan: Plan,
    pub(super) seconds: f64,
    pub(super) memory: f64,
    pub(super) speedup: f64,
}

impl SimulatedPlan {
    /// Orders by time, then by memory, then by number of stages.
    fn compare(&self, other: &SimulatedPlan) -> Ordering {
        let stages = || self.plan.stages.len().cmp(&other.plan.stages.len());
        self.seconds.total_cmp(&other.seconds).then(self.memory.total_cmp(&other.memory)).then_with(stages)
    }

    /// True if it precedes `than` in that order.
    pub(super) fn is_better(&self, than: &SimulatedPlan) -> bool {
        self.compare(than) == Ordering::Less
    }
}

/// One run of the planner on a problem.
pub(super) struct ParmesanSearch<'a> {
    pub(super) problem: &'a Problem,
    pub(super) topology: &'a Arc<Topology>,
    /// File that the topology was read from, if any.
    pub(super) file: Option<&'a String>,
    pub(super) search: &'a Search,
    model: SpeedupModel,
    microbatches: f64,
    fine: CostGraph,
    /// Numbers of devices that a stage may have, ascending.
    widths: Vec<usize>,
    pub(super) method: MappingMethod,
    pub(super) consider: CommunicationKinds,
    /// True if the workload was converted from another one. Then nothing is mapped, and the least sufficient memory is
    /// not sought.
    pub(super) converted: bool,
}

impl<'a> ParmesanSearch<'a> {
    fn new(problem: &'a Problem, wired: &'a PlanTopology, search: &'a Search) -> Self {
        let PlanTopology { topology, file } = wired;
        let options = problem.options.iter().map(|(name, value)| (name.to_string(), value.json())).collect();
        let samples = problem.workload.layers().map_or(1, LayerProfile::samples);
        let model = SpeedupModel::from_options(&options, samples);
        let probe = Plan { measure: Measure::Speedup(model), ..Plan::default() };
        let microbatches = f64::from(costs::microbatches(&model, &problem.limits, &probe));
        let fine = fine(&problem.workload, &problem.limits, &model, microbatches);
        let method = MappingMethod::find(problem.options.choice("mapping")).unwrap_or_default();
        let consider = CommunicationKinds {
            transfers: problem.options.flag("incl_p2p"),
            all_reduces: problem.options.flag("incl_allr"),
            shared_links: false,
        };
        ParmesanSearch {
            problem,
            topology,
            file: file.as_ref(),
            search,
            model,
            microbatches,
            fine,
            widths: widths(problem, topology.devices()),
            method,
            consider,
            converted: false,
        }
    }

    /// Machine models that stages run on: all devices, then the variants of `inner`. Empty if the search was
    /// cancelled.
    fn machines(&self) -> Vec<MachineModel> {
        let matrix = pairs(self.topology);
        let wired = (&**self.topology, matrix.as_ref());
        let all = machine(self.problem, wired, &self.model, self.microbatches, self.search);
        let inner = all.as_ref().map(|all| inner(all, wired)).unwrap_or_default();
        all.into_iter().chain(inner).collect()
    }

    /// Points to try, and notes on the given values that they ignore.
    fn points(&self) -> (Vec<SearchPoint>, Vec<String>) {
        let options = &self.problem.options;
        let (n, devices) = (self.fine.len(), self.topology.devices());
        let mut ignored = vec![];
        let given = options.number("k") as usize;
        let ks: Vec<usize> = if options.flag("search_k") {
            if given > 0 {
                ignored.push(format!("k={given} is ignored: search_k tries its own"));
            }
            let mut ks: Vec<usize> =
                CLUSTERS.iter().map(|times| ((times * devices as f64) as usize).clamp(1, n)).collect();
            ks.dedup();
            ks
        } else if given > 0 {
            vec![given.clamp(1, n)]
        } else {
            vec![(4 * devices).min(MOST_CLUSTERS).clamp(1, n)]
        };
        let coefficient = options.number("comm_coef");
        let coefficients = if options.flag("search_comm_coef") {
            if coefficient != 1.0 {
                ignored.push(format!("comm_coef={coefficient} is ignored: search_comm_coef tries its own"));
            }
            COEFFICIENTS.to_vec()
        } else {
            vec![coefficient]
        };
        let flows: &[bool] = match options.choice("new_flow") {
            "both" => &[true, false],
            "false" => &[false],
            _ => &[true],
        };
        let dag = options.flag("dag");
        let mut points = vec![];
        for &k in &ks {
            for &comm_coef in &coefficients {
                points.extend(flows.iter().map(|&new_flow| SearchPoint { k, comm_coef, new_flow, dag }));
            }
        }
        // The chain of all vertices: finds what merging hides, mostly when memory is tight.
        if options.flag("search_k") && !ks.contains(&n) {
            points.push(SearchPoint { k: n, comm_coef: coefficients[0], new_flow: flows[0], dag });
        }
        (points, ignored)
    }

    fn run(&self) -> Outcome {
        let (points, notes) = self.points();
        let wanted = self.problem.options.number("stages") as usize;
        let at_once = self.at_once(wanted);
        if let Some(first) = &at_once {
            self.search.improve(first.speedup, &first.plan);
        }
        let done = AtomicUsize::new(0);
        let step = |share: f64, of: usize, from: f64| {
            let now = done.fetch_add(1, Relaxed) + 1;
            self.search.report_fraction(from + share * (now as f64 / of as f64).min(1.0));
        };
        let machines = self.machines();
        let tasks: Vec<(&MachineModel, SearchPoint)> =
            machines.iter().flat_map(|machine| points.iter().map(move |&point| (machine, point))).collect();
        let found: Vec<Vec<VertexPartition>> = self.search.map(&tasks, |&(machine, point)| {
            let found = candidates(&self.fine, machine, point, self.search);
            step(0.6, tasks.len(), 0.0);
            found
        });
        let mut partitions: Vec<VertexPartition> = found.into_iter().flatten().collect();
        partitions.retain(|partition| wanted == 0 || partition.widths.len() == wanted);
        partitions.sort();
        partitions.dedup();
        done.store(0, Relaxed);
        let scored: Vec<Option<SimulatedPlan>> = self.search.map(&partitions, |partition| {
            let scored = self.quickly(partition);
            step(0.4, partitions.len(), 0.6);
            scored
        });
        let tried = scored.len();
        let mut best: Vec<SimulatedPlan> = scored.into_iter().chain([at_once]).flatten().collect();
        // The sort is stable: of equal plans, the first found stays first.
        best.sort_by(SimulatedPlan::compare);
        let alike = |a: &Stage, b: &Stage| a.nodes == b.nodes && a.data_parallel == b.data_parallel;
        best.dedup_by(|a, b| {
            a.plan.stages.len() == b.plan.stages.len()
                && a.plan.stages.iter().zip(&b.plan.stages).all(|(a, b)| alike(a, b))
        });
        if best.is_empty() {
            return if self.search.cancelled() { Outcome::new(Status::Cancelled) } else { self.infeasible() };
        }
        best.truncate(MAPPED);
        self.finished(best, (points.len(), tried), notes)
    }

    /// Best plan before any search, with devices in order: the whole network on as many replicas as allowed, or stages
    /// of about equal work along one order of the network.
    fn at_once(&self, wanted: usize) -> Option<SimulatedPlan> {
        let (fine, n) = (&self.fine, self.fine.len());
        let whole = [self.widths.last(), self.widths.first()].into_iter().flatten();
        let whole = whole.map(|&width| VertexPartition { stage: vec![0; n], widths: vec![width] });
        let total: f64 = fine.seconds.iter().sum();
        let even = |stages: usize| {
            let (mut stage, mut before) = (vec![0; n], 0.0);
            for &vertex in &fine.order {
                let middle = before + fine.seconds[vertex] / 2.0;
                let share = if total > 0.0 { middle / total } else { 0.0 };
                stage[vertex] = ((share * stages as f64) as usize).min(stages - 1);
                before += fine.seconds[vertex];
            }
            VertexPartition { stage, widths: vec![1; stages] }
        };
        let most = self.topology.devices().min(n);
        let counts = if wanted > 0 { vec![wanted] } else { vec![most, most.div_ceil(2)] };
        let chains = counts.into_iter().filter(|stages| (1..=most).contains(stages)).map(even);
        // If one vertex has most of the work, a stage may be empty.
        let full = |partition: &VertexPartition| {
            let mut has = vec![false; partition.widths.len()];
            partition.stage.iter().for_each(|&stage| has[stage] = true);
            has.into_iter().all(|has| has) && (wanted == 0 || partition.widths.len() == wanted)
        };
        let plans = whole.chain(chains).filter(full).map(|partition| self.plan_of(&partition));
        let scored = plans.filter_map(|plan| self.scored(&plan, &in_order(&plan)));
        scored.reduce(|a, b| if b.is_better(&a) { b } else { a })
    }

    fn plan_of(&self, partition: &VertexPartition) -> Plan {
        let kept = states::planned_nodes(&self.problem.workload);
        let dag = &self.problem.workload.dag;
        let own = (0..dag.len()).map(|v| kept[v].then_some(partition.stage[v])).collect();
        let stage_of = states::settled(dag, own, partition.widths.len() - 1);
        // A stage that holds only nodes outside the plan ends up empty and is dropped.
        let mut members = vec![vec![]; partition.widths.len()];
        stage_of.iter().enumerate().for_each(|(v, &stage)| members[stage].push(NodeIndex::new(v)));
        let stages = partition.widths.iter().zip(members).filter_map(|(&width, nodes)| {
            let choices = vec![Choice::Keep; nodes.len()];
            let stage = Stage { choices, nodes, data_parallel: width as u32, tensor_parallel: 1, devices: vec![] };
            (!stage.nodes.is_empty()).then_some(stage)
        });
        let plan = Plan { measure: Measure::Speedup(self.model), stages: stages.collect(), ..Plan::default() };
        plan.with_consecutive_devices()
    }

    pub(super) fn demands(&self, plan: &Plan) -> Demands {
        let plan = Plan { topology: None, ..plan.clone() };
        let pipeline =
            family::pipeline(&self.problem.workload, &self.problem.limits, &plan, &SimulatorSettings::default());
        Demands::of(&pipeline, &[], LinkRule::of(self.topology).any)
    }

    /// Scores a partition with the better of two quick mappings.
    fn quickly(&self, partition: &VertexPartition) -> Option<SimulatedPlan> {
        if self.search.cancelled() {
            return None;
        }
        let plan = self.plan_of(partition);
        let identity = self.scored(&plan, &in_order(&plan));
        // With that many devices, measuring all pairs for every partition is too slow.
        if self.method == MappingMethod::Identity || self.topology.devices() > WEIGHED {
            return identity;
        }
        let instance = MappingInstance::new(self.topology, &self.demands(&plan), self.consider);
        let mapping = instance.quick(self.topology.devices() <= POLISHED, self.search);
        let mapped = self.scored(&plan, &mapping);
        let both = identity.into_iter().chain(mapped);
        both.reduce(|a, b| if b.is_better(&a) { b } else { a })
    }

    /// Validates, simulates and measures a plan on given devices; `None` if it breaks a rule or the search was
    /// cancelled.
    pub(super) fn scored(&self, plan: &Plan, devices: &[usize]) -> Option<SimulatedPlan> {
        let plan = plan.clone().on(self.topology, devices);
        let Problem { workload, limits, options } = self.problem;
        let score = family::check(workload, limits, &plan);
        if !score.violations.is_empty() {
            return None;
        }
        let settings =
            SimulatorSettings { overlap: options.flag("concurrent_copy_comp"), ..SimulatorSettings::default() };
        let pipeline = family::pipeline(workload, limits, &plan, &settings);
        let seconds = length_unless(&pipeline, Schedule::OneForwardOneBackward, &|| self.search.cancelled())?;
        let memory = score.stages.iter().map(|stage| stage.memory_bytes).fold(0.0, f64::max);
        self.search.improve(score.value, &plan);
        Some(SimulatedPlan { plan, seconds, memory, speedup: score.value })
    }

    /// Reason why there is no plan, and the least memory that would suffice.
    fn infeasible(&self) -> Outcome {
        let free = if self.converted { None } else { self.machines().into_iter().next() };
        let free = free.map(|machine| MachineModel { memory: f64::INFINITY, ..machine });
        let mut least = f64::INFINITY;
        let limits = Limits { memory_bytes: None, ..self.problem.limits.clone() };
        if let Some(free) = &free {
            let points = self.points().0.into_iter();
            for partition in points.flat_map(|point| candidates(&self.fine, free, point, self.search)) {
                let score = family::check(&self.problem.workload, &limits, &self.plan_of(&partition));
                least = least.min(score.stages.iter().map(|stage| stage.memory_bytes).fold(0.0, f64::max));
            }
        }
        let limit = self.problem.limits.memory_limit();
        let memory = units::bytes_exact(limit);
        let would = match least.is_finite() {
            true => format!(" {} each would be enough.", units::bytes_enough(least, limit)),
            false => String::new(),
        };
        let mut outcome = Outcome::refused(format!(
            "No pipeline found fits on {} devices with {memory} each.{would}",
            self.topology.devices()
        ));
        if let Some(infeasible) = &mut outcome.infeasible {
            infeasible.limits = vec![LimitKind::Memory, LimitKind::Devices];
            infeasible.smallest_memory_bytes = Some(least).filter(|least| least.is_finite());
        }
        outcome
    }
}

pub(super) fn in_order(plan: &Plan) -> Vec<usize> {
    (0..plan.devices_used() as usize).collect()
}
