//! Anytime search: rounds of annealing from above and of proofs from below, until they meet or the rounds are used up.

use std::sync::Mutex;

use super::{
    anneal::{AnnealingInput, AssignmentWalk, anneal},
    bounds::{IpBounds, SAFETY},
    convex::Convexity,
    exact::{AssignmentSearchResult, exhaust},
    model::{IpModel, Objective},
    slack,
};
use crate::{
    Status,
    placement::{
        PlacementLimits, Split,
        classes::Partition,
        dp::{self, DpOptions},
        first_plan, multilevel,
    },
};
use plantui_core::{graph::Dag, search::Search, workload::placement::PlacementProfile};

/// Set of splits that are considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contiguity {
    /// All splits.
    Free,
    /// Splits with convex forward nodes on every device; dependencies between devices may be cyclic.
    Contiguous,
}

/// Problem of a search.
#[derive(Debug, Clone, Copy)]
pub struct ThroughputProblem<'a> {
    /// Graph.
    pub dag: &'a Dag,
    /// Costs.
    pub profile: &'a PlacementProfile,
    /// Devices and memory.
    pub limits: PlacementLimits,
    /// Set of splits that are considered.
    pub contiguity: Contiguity,
    /// Objective to minimise.
    pub objective: Objective,
}

/// Amount of work. The defaults take some seconds to a minute on two cores for the published graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpSettings {
    /// Rounds of walks and proofs.
    pub rounds: usize,
    /// Independent walks per round.
    pub walks: usize,
    /// Candidates of a walk.
    pub steps: u64,
    /// Branches of each run of branch and bound.
    pub branches: u64,
}

impl Default for IpSettings {
    fn default() -> Self {
        IpSettings { rounds: 12, walks: 4, steps: 1_000_000, branches: 1_000_000 }
    }
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct ThroughputResult {
    /// Optimal, feasible, infeasible, or cancelled.
    pub status: Status,
    /// Best split so far and its value, if there is one.
    pub split: Option<(f64, Split)>,
    /// Proven lower bound on the value of every considered split; infinite if there is none.
    pub lower_bound: f64,
    /// Number of rounds started.
    pub rounds: usize,
}

/// Relative difference below which value and bound count as equal.
const CLOSED: f64 = 3.0 * SAFETY;
/// Models with more classes skip branch and bound, which would not finish. Without it, contiguous bert24 inference
/// takes 4.8 times the CPU time.
const MOST_BRANCHED: usize = 4_000;
/// Maximum memory of the sets of the contiguous variant, bytes.
const MOST_BYTES: usize = 1 << 28;
/// Graphs with at least this many nodes publish only improvements of a thousandth: writing a plan takes longer than
/// finding it.
const MANY_NODES: usize = 10_000;
/// Maximum number of counters of a walk, one per net and accelerator (128 MiB).
const MOST_COUNTERS: usize = 1 << 25;
/// Runs of the multilevel partitioner at the start. Without them, bert_l-3 training on 4 devices takes 2.05 times the CPU
/// time.
const PARTITIONS: u32 = 4;

/// Publishes improvements.
struct SplitPublisher<'p> {
    best: Mutex<f64>,
    /// Relative improvement below which a split is not published.
    share: f64,
    tell: &'p (dyn Fn(f64, &[u32]) + Sync),
}

impl SplitPublisher<'_> {
    fn offer(&self, value: f64, device: &[u32]) {
        let mut best = self.best.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if value < *best * (1.0 - self.share) {
            *best = value;
            (self.tell)(value, device);
        }
    }
}

/// Runs the search. `improved` is called with every better split, from any thread, one at a time; bounds and progress
/// go to `handle`.
pub fn search(
    question: &ThroughputProblem<'_>,
    settings: &IpSettings,
    handle: &Search,
    improved: &(dyn Fn(f64, &Split) + Sync),
) -> ThroughputResult {
    let ThroughputProblem { dag, profile, limits, contiguity, objective } = *question;
    let partition = Partition::by_colour(profile);
    let model = IpModel::new(dag, profile, &partition, &limits, objective);
    let average = slack::average_bound(&model);
    if model.homeless().is_some() || average.is_infinite() {
        return ThroughputResult { status: Status::Infeasible, split: None, lower_bound: f64::INFINITY, rounds: 0 };
    }
    handle.report_bound(average * (1.0 - SAFETY));
    let as_split = |device: &[u32]| along_the_graph(dag, model.split(&partition, device));
    let tell = |value: f64, device: &[u32]| improved(value, &as_split(device));
    let share = if dag.len() < MANY_NODES { 0.0 } else { 1e-3 };
    let published = SplitPublisher { best: Mutex::new(f64::INFINITY), share, tell: &tell };
    // Publish a plan before anything that takes time.
    let first =
        first_plan::plan(dag, profile, &limits).split.and_then(|(_, split)| model.assignment(&partition, &split));
    let mut best = first.and_then(|device| valued(&model, device)).or_else(|| valued(&model, together(&model)));
    best.iter().for_each(|(value, device)| published.offer(*value, device));
    if handle.cancelled() || model.net_count().saturating_mul(model.accelerators) > MOST_COUNTERS {
        let split = best.map(|(value, device)| (value, as_split(&device)));
        let status = if handle.cancelled() { Status::Cancelled } else { Status::Feasible };
        return ThroughputResult { status, split, lower_bound: average * (1.0 - SAFETY), rounds: 0 };
    }

    let bounds = IpBounds::new(&model, handle);
    if bounds.proven.is_infinite() {
        return ThroughputResult { status: Status::Infeasible, split: None, lower_bound: f64::INFINITY, rounds: 0 };
    }
    handle.report_bound(bounds.proven);
    let (fallback, found) = begin(question, &model, &partition, handle);
    if let Some(found) = found.filter(|found| best.as_ref().is_none_or(|known| found.0 <= known.0)) {
        published.offer(found.0, &found.1);
        best = Some(found);
    }
    // Costs that no better split can pay are cut off, because small costs would be lost beside them.
    let known = best.as_ref().filter(|_| !handle.cancelled());
    let bounded = known.and_then(|(value, _)| model.bounded(*value));
    let (model, mut bounds) = match &bounded {
        Some(bounded) => {
            let known = bounds.proven;
            let mut bounds = IpBounds::new(bounded, handle);
            bounds.proven = bounds.proven.max(known);
            (bounded, bounds)
        }
        None => (&model, bounds),
    };
    // Bit sets of the nodes before and after every node and every class.
    let too_large = 5 * dag.len().saturating_mul(dag.len()) / 8 > MOST_BYTES;
    let contiguous = contiguity == Contiguity::Contiguous;
    let convexity = (contiguous && !too_large).then(|| Convexity::new(dag, profile, &partition));
    let rounds_asked = if contiguous && too_large { 0 } else { settings.rounds };
    let order = order(dag, profile, &partition);
    let ground = AnnealingInput { model, convexity: convexity.as_ref(), order: &order };
    let mut pool: Vec<Vec<u32>> = vec![best.as_ref().map_or(fallback, |(_, device)| device.clone())];
    let improving = RoundSearch { ground: &ground, settings, handle, published: &published };
    let (rounds, exhausted) = improving.rounds(rounds_asked, &mut bounds, &mut best, &mut pool);
    let value = best.as_ref().map(|(value, _)| *value);
    let proven = exhausted || value.is_some_and(|value| closed(value, bounds.proven));
    let lower_bound = if proven { value.unwrap_or(f64::INFINITY) } else { bounds.proven };
    let status = match (proven, value) {
        (true, Some(_)) => Status::Optimal,
        (true, None) => Status::Infeasible,
        (false, _) if handle.cancelled() => Status::Cancelled,
        (false, _) => Status::Feasible,
    };
    if lower_bound.is_finite() {
        handle.report_bound(lower_bound);
    }
    let split = best.map(|(value, device)| (value, as_split(&device)));
    ThroughputResult { status, split, lower_bound, rounds }
}

/// Data shared by the rounds of a search.
struct RoundSearch<'a> {
    ground: &'a AnnealingInput<'a>,
    settings: &'a IpSettings,
    handle: &'a Search,
    published: &'a SplitPublisher<'a>,
}

impl RoundSearch<'_> {
    /// At most `asked` rounds, each of walks and proofs; branch and bound runs before the first. Returns the number of
    /// rounds started, and true if the search space was exhausted.
    fn rounds(
        &self,
        asked: usize,
        bounds: &mut IpBounds<'_>,
        best: &mut Option<(f64, Vec<u32>)>,
        pool: &mut Vec<Vec<u32>>,
    ) -> (usize, bool) {
        let RoundSearch { ground, settings, handle, published } = *self;
        for round in 0..asked {
            let value = best.as_ref().map_or(f64::INFINITY, |(value, _)| *value);
            if handle.cancelled() || closed(value, bounds.proven) {
                return (round, false);
            }
            if round == 0 && self.branched(value, best) {
                return (1, true);
            }
            let proven = bounds.proven;
            let walked = walk_round(ground, settings, pool, best, round, proven, handle, published);
            if let Some((value, _)) = &*best {
                bounds.tighten(*value, handle);
                handle.report_bound(bounds.proven);
            }
            for (value, device) in walked.iter().flatten() {
                if best.as_ref().is_none_or(|(known, _)| value < known) {
                    *best = Some((*value, device.clone()));
                }
            }
            let ended: Vec<Vec<u32>> = walked.into_iter().flatten().map(|(_, device)| device).collect();
            if !ended.is_empty() {
                *pool = ended;
            }
            handle.report_fraction((round + 1) as f64 / settings.rounds as f64);
        }
        (asked, false)
    }

    /// Branch and bound below a value, if the model is small enough; true if it finished.
    fn branched(&self, value: f64, best: &mut Option<(f64, Vec<u32>)>) -> bool {
        let RoundSearch { ground, settings, handle, published } = *self;
        if ground.model.len() > MOST_BRANCHED {
            return false;
        }
        let (found, exhausted) = match exhaust(ground.model, ground.convexity, value, settings.branches, handle) {
            AssignmentSearchResult::NothingBetter => (None, true),
            AssignmentSearchResult::Better(value, device) => (Some((value, device)), true),
            AssignmentSearchResult::GaveUp(found) => (found, false),
        };
        if let Some((value, device)) = found {
            published.offer(value, &device);
            *best = Some((value, device));
        }
        exhausted
    }
}

fn closed(value: f64, bound: f64) -> bool {
    value <= bound * (1.0 + CLOSED)
}

/// Sorts the devices of a split by the average position of their nodes: the order of a pipeline, as far as there is
/// one.
pub fn along_the_graph(dag: &Dag, mut split: Split) -> Split {
    let mut position = vec![0; dag.len()];
    for (at, &node) in dag.topological_order().iter().enumerate() {
        position[node as usize] = at;
    }
    split.devices.sort_by_cached_key(|device| {
        let sum: usize = device.nodes.iter().map(|&node| position[node]).sum();
        1000 * sum / device.nodes.len().max(1)
    });
    split
}

/// Convex start, and the contiguous optimum or the best that its search found.
fn begin(
    question: &ThroughputProblem<'_>,
    model: &IpModel,
    partition: &Partition,
    handle: &Search,
) -> (Vec<u32>, Option<(f64, Vec<u32>)>) {
    let ThroughputProblem { dag, profile, limits, .. } = *question;
    let together = together(model);
    let quiet = handle.quiet();
    // Each of them orders the graph before it can be cancelled, which takes long for a dense graph.
    let mut splits = vec![];
    if !handle.cancelled() {
        splits.push(dp::plan(dag, profile, &limits, &DpOptions::default(), &quiet).split);
    }
    if question.contiguity == Contiguity::Free && !handle.cancelled() {
        splits.push(multilevel::plan(dag, profile, &limits, PARTITIONS, &quiet, &|_, _| ()).split);
    }
    let candidates = splits.into_iter().flatten().filter_map(|split| model.assignment(partition, &split));
    let best = candidates
        .chain([together.clone()])
        .filter_map(|device| valued(model, device))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    (together, best)
}

/// Everything on one device: convex, and admissible on a CPU.
fn together(model: &IpModel) -> Vec<u32> {
    let home = if model.cpus > 0 { model.accelerators } else { 0 };
    vec![home as u32; model.len()]
}

/// An assignment with its value, if it is admissible.
fn valued(model: &IpModel, device: Vec<u32>) -> Option<(f64, Vec<u32>)> {
    Some((model.value(&device)?, device))
}

/// Classes along the forward pass: by the position of their first node in a depth-first topological order.
fn order(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> Vec<u32> {
    let mut key = vec![(usize::MAX, 0); partition.len()];
    for (position, &node) in dag.stack_order().iter().enumerate() {
        let (node, n) = (node as usize, dag.len());
        let class = partition.class(node);
        // Backward nodes run in the opposite direction.
        let position = if profile.nodes[node].backward { 2 * n - position } else { position };
        key[class] = key[class].min((position, class));
    }
    let mut order: Vec<u32> = (0..partition.len() as u32).collect();
    order.sort_by_key(|&class| key[class as usize]);
    order
}

/// One round of walks. Even walks start from the best, odd ones from where they ended.
#[expect(clippy::too_many_arguments, reason = "the parts of the search meet here")]
fn walk_round(
    ground: &AnnealingInput<'_>,
    settings: &IpSettings,
    pool: &[Vec<u32>],
    best: &Option<(f64, Vec<u32>)>,
    round: usize,
    bound: f64,
    handle: &Search,
    published: &SplitPublisher<'_>,
) -> Vec<Option<(f64, Vec<u32>)>> {
    let walk = |index: usize| {
        let number = round * settings.walks + index;
        let known = best.as_ref().map_or(f64::INFINITY, |(value, _)| *value);
        let start = match best {
            Some((_, device)) if index.is_multiple_of(2) => device,
            _ => &pool[index % pool.len()],
        };
        let walk = AssignmentWalk {
            seed: handle.seed().wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number as u64 + 1),
            steps: settings.steps,
            hot: [0.02, 0.1, 0.005, 0.05][index % 4],
            cold: [1e-4, 1e-3, 1e-5, 1e-4][(index + round) % 4],
            ahead: [1e-4, 0.01, 1e-3, 0.03][(index + round / 2) % 4],
            enough: bound * (1.0 + CLOSED),
        };
        let known = if index.is_multiple_of(2) { known } else { f64::INFINITY };
        anneal(ground, start, known, &walk, handle, |value, device| published.offer(value, device))
    };
    handle.map(0..settings.walks, walk)
}
