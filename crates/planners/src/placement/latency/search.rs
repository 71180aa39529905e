//! Anytime search for the least latency with at most `q` subgraphs per accelerator (the problem of the published
//! latency integer program).
//!
//! 1. Starts: everything on CPUs, the published greedy, the caller's splits, and the best segmentations of many
//!    depth-first and random orders.
//! 2. A lower bound over paths ([`bound`](super::bound)), and for small graphs branch and bound within a budget.
//! 3. Rounds of simulated annealing with several independent walks. A round starts from the best result of the last
//!    one.
//!
//! The result depends only on the settings and the seed, not on threads or time, unless the search is cancelled or its
//! deadline passes. Walks share nothing within a round, and their number does not depend on the number of threads.
//! Memory is `O(walks (n + m) + n^2 / 8)`; the second term is the bound's reachability sets, which are skipped if too
//! large.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::{
    anneal::{SlotWalk, anneal},
    bound::{critical_path, lower_bound},
    evaluate::{LatencyError, PieceSchedule, evaluate},
    exact::{SlotSearchResult, exhaust},
    greedy::greedy,
    segment::{depth_first_order, order_by_key, segment},
    slots::{Instance, Scorer, SlotSchedule},
};
use crate::Status;
use plantui_core::{graph::Dag, random::SplitMix, search::Search, workload::placement::PlacementProfile};

/// Problem of a search.
#[derive(Debug, Clone, Copy)]
pub struct LatencyProblem<'a> {
    /// Graph.
    pub dag: &'a Dag,
    /// Costs.
    pub profile: &'a PlacementProfile,
    /// Number of accelerators.
    pub accelerators: usize,
    /// Subgraphs per accelerator, at least 1.
    pub subgraphs: usize,
    /// Memory of an accelerator, bytes.
    pub memory_bytes: f64,
}

/// Amount of work. The defaults take some ten seconds on two cores for a graph of 800 nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencySettings {
    /// Number of orders that are segmented at the start.
    pub orders: usize,
    /// Rounds of annealing.
    pub rounds: usize,
    /// Independent walks per round.
    pub walks: usize,
    /// Candidates of a walk.
    pub steps: u64,
    /// Maximum number of branches of branch and bound.
    pub branches: u64,
}

impl Default for LatencySettings {
    fn default() -> Self {
        LatencySettings { orders: 256, rounds: 6, walks: 4, steps: 150_000, branches: 50_000 }
    }
}

/// Best assignment found.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyResult {
    /// Schedule over slots; its latency is the objective.
    pub schedule: SlotSchedule,
    /// Slot of each node, by node index.
    pub slots: Vec<u32>,
    /// Node indices by accelerator, slots joined.
    pub split: Vec<Vec<u32>>,
    /// Score of `split` by the published evaluator: the same latency for one subgraph per accelerator.
    pub as_pieces: Result<PieceSchedule, LatencyError>,
    /// Proven lower bound on the latency of admissible assignments. This search always has one; others may not.
    pub lower_bound: Option<f64>,
    /// Optimal, feasible, or cancelled.
    pub status: Status,
}

/// Relative difference below which value and bound count as equal.
const CLOSED: f64 = 1e-9;
/// Maximum number of nodes and edges over all initial orders: large graphs are cut along fewer orders. One order instead
/// of 256 gives the same plans on six inputs with a full round of annealing, in at most 1.01 times the CPU time.
const MOST_ORDERED: usize = 2_000_000;
/// Minimum number of initial orders.
const FEWEST_ORDERS: usize = 4;
/// Largest number of nodes for branch and bound. It proves plans of graphs with 20 nodes that the bound over paths leaves
/// open.
const SMALL: usize = 64;

/// Best latency so far, shared between walks only for publishing.
struct SchedulePublisher<'p, 'a> {
    instance: &'p Instance<'a>,
    best: Mutex<f64>,
    improved: &'p (dyn Fn(&SlotSchedule) + Sync),
}

impl SchedulePublisher<'_, '_> {
    fn offer(&self, latency: f64, slots: &[u32]) {
        let mut best = self.best.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if latency < *best {
            *best = latency;
            if let Some(schedule) = self.instance.schedule(slots) {
                (self.improved)(&schedule);
            }
        }
    }
}

/// Searches from greedy, segmentations and the given `starts` (node indices by accelerator; inadmissible ones are
/// skipped). `improved` is called with each new best schedule, from any thread, one at a time. There is always a
/// result: everything on CPUs is admissible.
///
/// # Panics
/// If `subgraphs` is 0 or the profile has fewer nodes than the graph.
pub fn search(
    question: &LatencyProblem<'_>,
    settings: &LatencySettings,
    starts: &[Vec<Vec<u32>>],
    search: &Search,
    improved: &(dyn Fn(&SlotSchedule) + Sync),
) -> LatencyResult {
    let LatencyProblem { dag, profile, accelerators, subgraphs, memory_bytes } = *question;
    let instance = Instance::new(dag, profile, accelerators, subgraphs, memory_bytes);
    let published = SchedulePublisher { instance: &instance, best: Mutex::new(f64::INFINITY), improved };
    let mut bound = critical_path(&instance);
    search.report_bound(bound);
    let mut pool = begin(&instance, settings, starts, search);
    published.offer(pool[0].0, &pool[0].1);
    bound = lower_bound(&instance, search).map_or(bound, |better| better.max(bound));
    search.report_bound(bound);
    let mut tried_below = f64::INFINITY;
    for round in 0..=settings.rounds {
        if search.cancelled() || closed(pool[0].0, bound) {
            break;
        }
        // With an unchanged incumbent, branch and bound would only repeat itself.
        if dag.len() <= SMALL && (round == 0 || round == settings.rounds) && pool[0].0 < tried_below {
            tried_below = pool[0].0;
            let (better, proven) = match exhaust(&instance, pool[0].0, settings.branches, search) {
                SlotSearchResult::NothingBetter => (None, true),
                SlotSearchResult::Better(latency, slots) => (Some((latency, slots)), true),
                SlotSearchResult::GaveUp(better) => (better, false),
            };
            if let Some(better) = better {
                published.offer(better.0, &better.1);
                pool.insert(0, better);
            }
            if proven {
                bound = pool[0].0;
            }
        }
        if round == settings.rounds || closed(pool[0].0, bound) {
            break;
        }
        pool = anneal_round(&instance, settings, &pool, round, bound, search, &published);
    }
    let (latency, slots) = pool.swap_remove(0);
    let status = match (closed(latency, bound), search.cancelled()) {
        (true, _) => Status::Optimal,
        (false, true) => Status::Cancelled,
        (false, false) => Status::Feasible,
    };
    let lower_bound = if status == Status::Optimal { latency } else { bound };
    search.report_bound(lower_bound);
    let split = instance.split(&slots);
    let as_pieces = evaluate(dag, profile, memory_bytes, &split);
    let schedule = instance.schedule(&slots).expect("only admissible assignments enter the pool");
    LatencyResult { schedule, slots, split, as_pieces, lower_bound: Some(lower_bound), status }
}

fn closed(latency: f64, bound: f64) -> bool {
    latency <= bound * (1.0 + CLOSED) + f64::MIN_POSITIVE
}

/// Admissible starts, best first, without duplicates.
fn begin(
    instance: &Instance<'_>,
    settings: &LatencySettings,
    starts: &[Vec<Vec<u32>>],
    search: &Search,
) -> Vec<(f64, Vec<u32>)> {
    let mut scorer = Scorer::new(instance);
    let mut pool: Vec<(f64, Vec<u32>)> = vec![];
    let published = greedy(instance.dag, instance.profile, instance.accelerators, instance.memory_bytes);
    let given = starts.iter().chain([&published]).map(|split| instance.first_slots(split));
    for slots in given.chain([vec![0; instance.dag.len()]]) {
        pool.extend(scorer.score(instance, &slots).map(|latency| (latency, slots)));
    }
    let mut random = SplitMix::new(search.seed());
    let blocks = instance.blocks.blocks.len();
    let size = instance.dag.len() + instance.dag.edges().len();
    for i in 0..settings.orders.min((MOST_ORDERED / size.max(1)).max(FEWEST_ORDERS)) {
        if search.cancelled() {
            break;
        }
        let key: Vec<f64> = (0..blocks).map(|block| if i < 2 { block as f64 } else { random.unit() }).collect();
        let order = if i % 4 == 1 { order_by_key(instance, &key) } else { depth_first_order(instance, &key) };
        let Some((slots, _)) = segment(instance, &order, search) else { break };
        pool.extend(scorer.score(instance, &slots).map(|latency| (latency, slots)));
    }
    // The sort is stable: ties keep the order of the starts.
    pool.sort_by(|a, b| a.0.total_cmp(&b.0));
    pool.dedup_by(|a, b| a.1 == b.1);
    pool.truncate(settings.walks.max(1));
    pool
}

/// One round of walks; returns the new pool, best first. Even walks start from the best, odd ones from their own
/// assignment.
fn anneal_round(
    instance: &Instance<'_>,
    settings: &LatencySettings,
    pool: &[(f64, Vec<u32>)],
    round: usize,
    bound: f64,
    search: &Search,
    published: &SchedulePublisher<'_, '_>,
) -> Vec<(f64, Vec<u32>)> {
    // Progress counts finished walks, because one round may take minutes.
    let ended = AtomicUsize::new(0);
    let walk = |index: usize| {
        let from = if round > 0 && index.is_multiple_of(2) { &pool[0] } else { &pool[index % pool.len()] };
        let number = (round * settings.walks + index) as u64;
        let walk = SlotWalk {
            seed: search.seed().wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number + 1),
            steps: settings.steps,
            hot: [0.02, 0.005, 0.05, 0.001][index % 4],
            cold: 1e-5,
            enough: bound * (1.0 + CLOSED),
        };
        let found = anneal(instance, &from.1, &walk, search, |latency, slots| published.offer(latency, slots));
        let ended = (round * settings.walks + ended.fetch_add(1, Ordering::Relaxed) + 1) as f64;
        search.report_fraction(ended / (settings.rounds * settings.walks) as f64);
        found
    };
    let mut next: Vec<(f64, Vec<u32>)> = search.map(0..settings.walks, walk);
    next.push(pool[0].clone());
    next.sort_by(|a, b| a.0.total_cmp(&b.0));
    next.dedup_by(|a, b| a.1 == b.1);
    next
}
