//! PaSE and its baseline as planners of the registry.
//!
//! Each converts limits and options to [`PaseSettings`], and a labelling to a plan. The plan has one stage with all
//! operators on all devices, and the text of its split as every operator's choice. Every result includes the cost of
//! data parallelism under the same rules.

use std::sync::Arc;

use super::{
    PaseSettings, data_parallel, memory,
    memory::Budget,
    model::{PaseModel, Unpriced},
    order::Order,
    solve::{Method, Solution, Work, solve},
    space::Space,
};
use crate::{
    Bearing, CannotPlan, Declaration, Infeasible, OptionKind, OptionSpec, Options, Outcome, Planner, PlannerInfo,
    Problem, Proves, Statistics, Status,
};
use plantui_core::{
    cluster::LimitKind,
    plan::{Measure, Plan, Stage},
    search::Search,
    units,
    workload::{
        Choice, NodeIndex, OperatorProfile, Workload,
        operators::{BatchNorm, CostRules},
    },
};

const PAPER: &str = "Elango: PaSE: Parallelization Strategies for Efficient DNN Training, IPDPS 2021";

/// Declaration of the planner.
static PASE: Declaration = Declaration {
    info: PlannerInfo {
        id: "pase",
        name: "PaSE",
        paper: PAPER,
        summary: "the split of every dimension of every operator: least cost of an iteration, proven",
        objective: "cost",
        unit: "operations",
    },
    options: &PASE_OPTIONS,
    proves: Proves::Among(&PASE_BEARINGS),
    limits: &LimitKind::OPERATORS,
    can_plan,
    ..Declaration::NEW
};

/// Planner for the exact minimum.
#[derive(Debug)]
pub(crate) struct Pase;

/// Declaration of the planner.
static DATA_PARALLEL: Declaration = Declaration {
    info: PlannerInfo {
        id: "pase-data-parallel",
        name: "PaSE: data parallel",
        paper: PAPER,
        summary: "splits only the batch of every operator over the devices: the paper's baseline",
        objective: "cost",
        unit: "operations",
    },
    options: &DATA_PARALLEL_OPTIONS,
    proves: Proves::Among(&DATA_PARALLEL_BEARINGS),
    limits: &LimitKind::OPERATORS,
    can_plan,
    ..Declaration::NEW
};

/// Planner that splits only the batch, over all devices.
#[derive(Debug)]
pub(crate) struct DataParallel;

const PARALLEL_EDGES: OptionSpec = OptionSpec {
    name: "parallel_edges",
    label: "parallel edges",
    help: "tensors between the same two operators that have a cost",
    kind: OptionKind::Choice {
        choices: &[("last", "the last one only, as the published program does"), ("all", "every one")],
        default: "last",
    },
};

const BATCH_NORM: OptionSpec = OptionSpec {
    name: "batch_norm",
    label: "batch norm",
    help: "sums that a normalisation along the batch exchanges when it is split",
    kind: OptionKind::Choice {
        choices: &[
            ("published", "the batch, for every channel and position, as the published program does"),
            ("per-channel", "batch and positions, for every channel, as frameworks do"),
        ],
        default: "published",
    },
};

static PASE_OPTIONS: [OptionSpec; 5] = [
    OptionSpec {
        name: "order",
        label: "order",
        help: "the order in which operators are eliminated",
        kind: OptionKind::Choice {
            choices: &[
                ("min-degree", "fewest neighbours first, as in the paper"),
                ("breadth-first", "breadth first from the first operator, the paper's baseline"),
            ],
            default: "min-degree",
        },
    },
    OptionSpec {
        name: "bounds",
        label: "bounds first",
        help: "prune configurations by message-passing bounds before the elimination; same result, less time",
        kind: OptionKind::Flag { default: true },
    },
    OptionSpec {
        name: "cutoff",
        label: "cutoff",
        help: "least elements of a dimension per piece; workload: as the workload states",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 1e6, whole: true, zero: Some("workload") },
    },
    PARALLEL_EDGES,
    BATCH_NORM,
];

/// Role of each option in a proof.
static PASE_BEARINGS: [(&str, Bearing); 5] = [
    ("order", Bearing::Search),
    ("bounds", Bearing::Search),
    (
        "cutoff",
        Bearing::Narrows(|options| {
            let fewest = options.number("cutoff") as usize;
            (fewest > 0).then(|| format!("with at least {} elements per piece", units::counted(fewest, "element")))
        }),
    ),
    (PARALLEL_EDGES.name, Bearing::Question),
    (BATCH_NORM.name, Bearing::Question),
];

static DATA_PARALLEL_BEARINGS: [(&str, Bearing); 2] =
    [(PARALLEL_EDGES.name, Bearing::Question), (BATCH_NORM.name, Bearing::Question)];

static DATA_PARALLEL_OPTIONS: [OptionSpec; 2] = [PARALLEL_EDGES, BATCH_NORM];

fn can_plan(workload: &Workload) -> Result<(), CannotPlan> {
    match workload.operators() {
        Some(_) => Ok(()),
        None => {
            Err("it needs operators with iteration spaces (an operator graph, as `plantui generate alexnet`)".into())
        }
    }
}

fn rules(options: &Options) -> CostRules {
    CostRules {
        parallel_edges: options.choice("parallel_edges") == "all",
        batch_norm: match options.choice("batch_norm") {
            "per-channel" => BatchNorm::PerChannel,
            _ => BatchNorm::Published,
        },
    }
}

/// A problem with everything needed to plan it.
struct Task<'a> {
    profile: &'a OperatorProfile,
    settings: PaseSettings,
    /// Memory of a device in bytes; the largest number if memory is not limited.
    memory_bytes: f64,
    memory_limited: bool,
}

impl<'a> Task<'a> {
    fn new(problem: &'a Problem, cutoff: u32) -> Option<Self> {
        let (profile, limits) = (problem.workload.operators()?, &problem.limits);
        let settings = PaseSettings {
            devices: limits.devices,
            cutoff: if cutoff == 0 { profile.cutoff } else { cutoff },
            flops_per_s: limits.flops(),
            bandwidth_bytes_per_s: limits.bandwidth(),
            rules: rules(&problem.options),
        };
        Some(Task { profile, settings, memory_bytes: limits.memory(), memory_limited: limits.memory_bytes.is_some() })
    }

    /// Builds the plan from the split of each operator.
    fn plan<'b>(&self, splits: impl Iterator<Item = &'b [u32]>) -> Plan {
        let split =
            |(operator, splits): (&plantui_core::workload::Operator, &[u32])| Choice::Split(operator.split(splits));
        let choices: Vec<Choice> = self.profile.operators.iter().zip(splits).map(split).collect();
        let stage = Stage {
            nodes: NodeIndex::first(choices.len()).collect(),
            choices,
            data_parallel: 1,
            tensor_parallel: self.settings.devices,
            devices: (0..self.settings.devices).collect(),
        };
        Plan { stages: vec![stage], measure: Measure::OperatorCost(self.settings.rules), ..Plan::default() }
    }

    /// Builds the model with a single configuration for every operator.
    fn fixed(&self, splits: impl Fn(&plantui_core::workload::Operator) -> Vec<u32>) -> Option<PaseModel> {
        let single = |_: usize, operator: &plantui_core::workload::Operator| Some(Space::single(splits(operator)));
        PaseModel::with_spaces(self.profile, &self.settings, single, &|| false).ok()
    }

    /// Plan before the search, if it fits: data parallelism with as many ways as the cutoff allows.
    fn first(&self) -> Option<(f64, Plan)> {
        let ways = data_parallel::ways(self.profile, self.settings.devices, self.settings.cutoff);
        let split = |operator: &plantui_core::workload::Operator| data_parallel::split(operator, ways);
        let model = self.fixed(split)?;
        let pairs = self.profile.operators.iter().zip(&model.spaces);
        let needed: f64 = pairs.map(|(operator, space)| memory::bytes(operator, space.get(0))).sum();
        let cost = model.pairwise.cost(&vec![0; model.spaces.len()]);
        (needed <= self.memory_bytes).then(|| (cost, self.plan(model.spaces.iter().map(|space| space.get(0)))))
    }

    /// Lower bound on the cost: the work of one device divided evenly, without communication.
    fn floor(&self) -> f64 {
        let whole = self.fixed(|operator| vec![1; operator.dims.len()]);
        let cost = whole.map_or(0.0, |model| model.pairwise.cost(&vec![0; model.spaces.len()]));
        cost / f64::from(self.settings.devices.max(1)) * (1.0 - 1e-9)
    }

    /// Costs of data parallelism and of one device.
    fn baselines(&self) -> Baselines {
        let ways = data_parallel::ways(self.profile, self.settings.devices, 1);
        let cost = |ways| {
            let model = self.fixed(|operator| data_parallel::split(operator, ways));
            model.map_or(f64::NAN, |model| model.pairwise.cost(&vec![0; model.spaces.len()]))
        };
        Baselines { ways, data_parallel: cost(ways), serial: cost(1) }
    }

    /// Reports that nothing fits into memory.
    fn too_large(&self, least: f64, what: &str) -> Infeasible {
        let (needed, limit) = (units::bytes(least), units::bytes_exact(self.memory_bytes));
        Infeasible {
            limits: vec![LimitKind::Memory],
            smallest_memory_bytes: Some(least),
            fewest_devices: None,
            explanation: format!("{what} needs {needed} on each device, the limit is {limit}."),
        }
    }
}

/// Costs that plans are compared with.
#[derive(Debug, Clone, Copy)]
struct Baselines {
    ways: u32,
    data_parallel: f64,
    serial: f64,
}

impl Baselines {
    fn counts(&self, cost: Option<f64>) -> Vec<(&'static str, f64)> {
        let mut counts = vec![
            ("data_parallel_cost", self.data_parallel),
            ("data_parallel_ways", f64::from(self.ways)),
            ("serial_cost", self.serial),
        ];
        counts.extend(cost.map(|cost| ("speedup_over_data_parallel", self.data_parallel / cost)));
        counts.extend(cost.map(|cost| ("speedup_over_one_device", self.serial / cost)));
        counts
    }

    fn note(&self, cost: f64) -> String {
        let (faster, serial) = (units::number(self.data_parallel / cost), units::number(self.serial / cost));
        format!(
            "{faster}x as fast as data parallelism {} ways and {serial}x as fast as one device, by these costs",
            self.ways
        )
    }
}

/// Note on the contents of a plan's memory, for plans under a limit.
fn memory_note() -> String {
    "memory: weights and gradients, and every operator's output kept for the backward pass, in words of 8 bytes".into()
}

impl Planner for Pase {
    fn declaration(&self) -> &'static Declaration {
        &PASE
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let cutoff = problem.options.number("cutoff") as u32;
        let Some(task) = Task::new(problem, cutoff) else { return Outcome::new(Status::Infeasible) };
        let order = match problem.options.choice("order") {
            "breadth-first" => Order::BreadthFirst,
            _ => Order::MinDegree,
        };
        let method = Method { order, bounds: problem.options.flag("bounds") };
        let mut outcome = search_splits(&task, method, search);
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }
}

fn search_splits(task: &Task<'_>, method: Method, search: &Search) -> Outcome {
    let (first, floor) = (task.first(), task.floor());
    first.iter().for_each(|(cost, plan)| search.improve(*cost, plan));
    search.report_bound(floor);
    let model = match PaseModel::unless_stopped(task.profile, &task.settings, &|| search.cancelled()) {
        Ok(model) => model,
        Err(unpriced) => return unsearched(first, floor, unpriced),
    };
    let baselines = task.baselines();
    let plan = |labels: &[usize]| task.plan(model.spaces.iter().zip(labels).map(|(space, &label)| space.get(label)));
    let budget = budget(task, &model);
    if budget.least() > task.memory_bytes {
        let infeasible = Some(task.too_large(budget.least(), "Even the split with the least memory"));
        let statistics = Statistics { counts: baselines.counts(None), ..Statistics::default() };
        return Outcome { infeasible, statistics, ..Outcome::new(Status::Infeasible) };
    }
    let improved = |cost: f64, labels: &[usize]| {
        if budget.fits(labels) {
            search.improve(cost, &plan(labels));
        }
    };
    let start = vec![0; model.spaces.len()];
    let mut solution = solve(&model.pairwise, start, method, search, improved);
    if !budget.fits(&solution.labels) {
        solution = memory::within(&model.pairwise, &budget, &solution, method, search, improved);
    }
    outcome(task, &solution, method, baselines, plan(&solution.labels))
}

/// Outcome if not all splits have a cost: data parallelism, if it fits.
fn unsearched(first: Option<(f64, Plan)>, floor: f64, unpriced: Unpriced) -> Outcome {
    let status = if unpriced == Unpriced::Stopped || first.is_none() { Status::Cancelled } else { Status::Feasible };
    let mut notes = vec![unpriced.to_string()];
    if first.is_some() {
        notes.push("the plan is data parallelism; no other plan was searched".into());
    }
    let (objective, plan) = first.unzip();
    Outcome { notes, objective, plan, lower_bound: Some(floor), ..Outcome::new(status) }
}

/// Bytes of every configuration; operators of one kind share a list.
fn budget(task: &Task<'_>, model: &PaseModel) -> Budget {
    let mut distinct: Vec<Option<Arc<Vec<f64>>>> = vec![None; model.kinds.iter().max().map_or(0, |&kind| kind + 1)];
    let of = |((operator, space), &kind): ((&plantui_core::workload::Operator, &Arc<Space>), &usize)| {
        let bytes = || Arc::new(space.iter().map(|splits| memory::bytes(operator, splits)).collect());
        Arc::clone(distinct[kind].get_or_insert_with(bytes))
    };
    let bytes = task.profile.operators.iter().zip(&model.spaces).zip(&model.kinds).map(of).collect();
    Budget { bytes, limit: task.memory_bytes }
}

fn outcome(task: &Task<'_>, solution: &Solution, method: Method, baselines: Baselines, plan: Plan) -> Outcome {
    let status = match (solution.proven, solution.stopped) {
        (true, _) => Status::Optimal,
        (false, true) => Status::Cancelled,
        (false, false) => Status::Feasible,
    };
    let mut outcome = Outcome::new(status);
    outcome.plan = Some(plan);
    outcome.objective = Some(solution.cost);
    outcome.lower_bound = Some(solution.lower).filter(|&lower| lower > 0.0 || solution.proven);
    outcome.notes.push(baselines.note(solution.cost));
    let Work { labels, labels_left, sweeps, whole, rest } = solution.work;
    if task.memory_limited {
        outcome.notes.push(memory_note());
    }
    if status == Status::Feasible && solution.work.refused(method) {
        let order = if method.order == Order::BreadthFirst { "breadth-first" } else { "min-degree" };
        outcome.notes.push(format!(
            "not searched: in {order} order the tables would have {} entries in total, and at most {} fit; {}",
            units::number(rest.entries),
            units::number(super::eliminate::MOST_ENTRIES),
            if method.bounds { "use order=min-degree" } else { "use bounds=true or order=min-degree" }
        ));
    }
    let mut counts = baselines.counts(Some(solution.cost));
    counts.extend([
        ("configurations", labels as f64),
        ("configurations_left", labels_left as f64),
        ("sweeps", sweeps as f64),
        ("largest_table", rest.largest_table),
        ("table_entries", rest.entries),
        ("combinations", rest.combinations),
        ("largest_dependent_set", whole.most_dependent as f64),
        ("unreduced_largest_table", whole.largest_table),
        ("unreduced_combinations", whole.combinations),
    ]);
    outcome.statistics.counts = counts;
    outcome
}

impl Planner for DataParallel {
    fn declaration(&self) -> &'static Declaration {
        &DATA_PARALLEL
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(task) = Task::new(problem, 1) else { return Outcome::new(Status::Infeasible) };
        let baselines = task.baselines();
        let splits: Vec<Vec<u32>> =
            task.profile.operators.iter().map(|operator| data_parallel::split(operator, baselines.ways)).collect();
        let pairs = task.profile.operators.iter().zip(&splits);
        let needed: f64 = pairs.map(|(operator, splits)| memory::bytes(operator, splits)).sum();
        let mut outcome = Outcome::new(Status::Feasible);
        if needed > task.memory_bytes {
            outcome.status = Status::Infeasible;
            outcome.infeasible = Some(task.too_large(needed, "Data parallelism"));
        } else {
            let plan = task.plan(splits.iter().map(Vec::as_slice));
            search.improve(baselines.data_parallel, &plan);
            outcome.objective = Some(baselines.data_parallel);
            outcome.plan = Some(plan);
            outcome.notes.push(baselines.note(baselines.data_parallel));
        }
        outcome.statistics =
            Statistics { seconds: search.elapsed().as_secs_f64(), counts: baselines.counts(outcome.objective) };
        outcome
    }
}
