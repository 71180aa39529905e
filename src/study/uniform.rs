//! The best plan that today's training engines can run.
//!
//! Megatron-LM, DeepSpeed, torchtitan and their kin give every pipeline stage the same data-parallel degree `d` and the
//! same tensor-parallel degree `t`, recompute on all stages alike, and cut a network between layers only. Under those
//! rules the cost model of Piper (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021) becomes a chain: for every `(d, t)` and
//! "recompute everywhere or nowhere", with `r` stages from layer `i` on, the first of which holds `r` microbatches in
//! flight,
//!
//! ```text
//! best[r][i] = min over j of max(load of layers i .. j, best[r - 1][j])
//! ```
//!
//! The optimum under these rules, proven. `O(D · T · S · L²)` time for `L` layers, `D · T` degrees and `S` stages, cut short
//! where a stage's compute or memory alone is too much, which both only grow with `j`; `O(L²)` memory for the
//! transfers over every stretch's ends. The surprising decision: layers are [`Layering`]'s, so that inputs and masks,
//! which no engine counts, never make a stage.

use crate::{
    cluster::{LimitKind, Limits},
    plan::{Plan, Stage},
    planner::{Infeasible, Outcome, Search, Status},
    units,
    workload::{Mode, PiperProfile, Workload, layering::Layering, piper::RECOMPUTE},
};

/// More layers than this are no layers: the table of stretches would not fit.
pub const MOST_LAYERS: usize = 3000;

/// What may be tried.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Whether everything is recomputed; the ways to try.
    pub recompute: &'static [bool],
    /// Whether tensors may be split.
    pub tensor_parallel: bool,
}

/// A way to run all stages, and where they end.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    value: f64,
    data_parallel: u32,
    tensor_parallel: u32,
    recompute: bool,
    /// First layers of the stages after the first.
    cuts: Vec<usize>,
}

/// The best plan over the given layers; infeasible also where the profile is none of Piper's.
pub fn best(
    workload: &Workload,
    limits: &Limits,
    layering: &Layering,
    settings: &Settings,
    search: &Search,
) -> Outcome {
    let Some(profile) = workload.piper().filter(|_| layering.layers.len() <= MOST_LAYERS) else {
        return Outcome::refused(format!(
            "Only profiles with times and memory by tensor degree (Piper's JSON) and at most {MOST_LAYERS} layers can be planned this way."
        ));
    };
    let degrees: Vec<u32> = profile
        .degrees()
        .into_iter()
        .filter(|&t| t <= limits.devices && (t == 1 || settings.tensor_parallel))
        .collect();
    let mut best: Option<Found> = None;
    let mut least_memory = f64::INFINITY;
    for (step, &t) in degrees.iter().enumerate() {
        search.report_fraction(step as f64 / degrees.len() as f64);
        for &recompute in settings.recompute {
            let Some(chain) = Chain::new(workload, profile, layering, t, recompute) else { continue };
            let most = (limits.devices / t).min(limits.microbatches);
            for d in (1..=most).filter(|&d| limits.microbatches.is_multiple_of(d)) {
                let Some(found) = chain.best(limits, d, t, best.as_ref().map(|b| b.value), search) else { continue };
                best = Some(Found { recompute, ..found });
                let known = best.as_ref().expect("it was just found");
                search.improve(known.value, &plan(profile, layering, known));
            }
            if best.is_none() {
                least_memory = least_memory.min(chain.least_memory(limits, t));
            }
        }
    }
    let seconds = search.elapsed().as_secs_f64();
    let Some(found) = best else {
        let status = if search.cancelled() { Status::Cancelled } else { Status::Infeasible };
        let mut outcome = Outcome::new(status);
        outcome.statistics.seconds = seconds;
        if status == Status::Infeasible {
            outcome.infeasible = Some(infeasible(limits, least_memory));
        }
        return outcome;
    };
    let mut outcome = Outcome::new(if search.cancelled() { Status::Cancelled } else { Status::Optimal });
    if outcome.status == Status::Optimal {
        outcome.lower_bound = Some(found.value);
        outcome.proven_among = Some("plans with the same degrees on every stage");
        search.report_bound(found.value);
    }
    outcome.objective = Some(found.value);
    outcome.plan = Some(plan(profile, layering, &found));
    outcome.notes.push("proven among plans with whole layers and the same degrees on every stage".into());
    outcome.statistics.seconds = seconds;
    outcome
}

fn infeasible(limits: &Limits, least_memory: f64) -> Infeasible {
    let smallest = Some(least_memory).filter(|bytes| bytes.is_finite());
    let explanation = match smallest {
        Some(bytes) => format!(
            "No plan with the same degrees on every stage fits in {}; the least that one of them needs is {}.",
            units::bytes_exact(limits.memory_bytes),
            units::bytes_exact(bytes)
        ),
        None => "No tensor degree is offered by every node.".into(),
    };
    Infeasible { limits: vec![LimitKind::Memory], smallest_memory_bytes: smallest, fewest_devices: None, explanation }
}

/// The layers' costs at one tensor degree, in one mode.
struct Chain {
    time: Vec<f64>,
    parameters: Vec<f64>,
    activation: Vec<f64>,
    fixed: Vec<f64>,
    /// Bytes over both ends of the stretch `i ..= j` at `i * layers + j`.
    border: Vec<f64>,
}

impl Chain {
    /// `None` if a node does not offer the degree.
    fn new(workload: &Workload, profile: &PiperProfile, layering: &Layering, t: u32, recompute: bool) -> Option<Self> {
        let (dag, count) = (&workload.dag, layering.layers.len());
        let modes: Vec<&Mode> = profile
            .nodes
            .iter()
            .map(|node| node.modes(t).map(|modes| pick(modes, recompute)))
            .collect::<Option<_>>()?;
        let sum = |of: fn(&Mode) -> f64| -> Vec<f64> {
            layering.layers.iter().map(|layer| layer.nodes.iter().map(|&v| of(modes[v])).sum()).collect()
        };
        // By layer: the layers its tensors come from and go to, with the bytes that this end pays where they are apart.
        let mut from: Vec<Vec<(usize, f64)>> = vec![vec![]; count];
        let mut to = from.clone();
        for (v, mode) in modes.iter().enumerate() {
            let own = layering.layer_of[v];
            for (slot, &edge) in dag.in_edges(v).iter().enumerate() {
                let other = layering.layer_of[dag.edges()[edge as usize].0 as usize];
                from[own].push((other, 2.0 * (profile.edge_bytes[edge as usize] + mode.sync_in[slot])));
            }
            for (slot, &edge) in dag.out_edges(v).iter().enumerate() {
                let other = layering.layer_of[dag.edges()[edge as usize].1 as usize];
                to[own].push((other, 2.0 * (profile.edge_bytes[edge as usize] + mode.sync_out[slot])));
            }
        }
        // Summed from what crosses each end, never by taking away what has become internal: no rounding stays behind.
        let mut border = vec![0.0; count * count];
        let crossing = |edges: &[(usize, f64)], crosses: &dyn Fn(usize) -> bool| -> f64 {
            edges.iter().filter(|(other, _)| crosses(*other)).map(|(_, bytes)| bytes).sum()
        };
        for end in 0..count {
            let mut received = 0.0;
            for last in end..count {
                received += crossing(&from[last], &|other| other < end);
                border[end * count + last] += received;
            }
            let mut sent = 0.0;
            for first in (0..=end).rev() {
                sent += crossing(&to[first], &|other| other > end);
                border[first * count + end] += sent;
            }
        }
        Some(Chain {
            time: sum(|mode| mode.time_s),
            parameters: sum(|mode| mode.parameters),
            activation: sum(|mode| mode.memory_a),
            fixed: sum(|mode| mode.memory_b),
            border,
        })
    }

    fn len(&self) -> usize {
        self.time.len()
    }

    /// The best stages with `d` replicas each, if they are better than what is known.
    fn best(&self, limits: &Limits, d: u32, t: u32, known: Option<f64>, search: &Search) -> Option<Found> {
        let count = self.len();
        let most_stages = (limits.devices / (d * t)).min(limits.microbatches / d) as usize;
        let mut limit = known.unwrap_or(f64::INFINITY);
        // By first layer, of the plans with `stages` stages from there on: the largest load, and where the first ends.
        let mut value = vec![f64::INFINITY; count + 1];
        value[count] = f64::NEG_INFINITY;
        let mut ends: Vec<Vec<u32>> = vec![];
        let mut found = None;
        for stages in 1..=most_stages.min(count) {
            if search.cancelled() {
                break;
            }
            let mut next = vec![f64::INFINITY; count + 1];
            let mut end = vec![0; count];
            for first in 0..count {
                (next[first], end[first]) = self.first_stage(limits, d, stages, first, &value, limit);
            }
            value = next;
            ends.push(end);
            if value[0] < limit {
                limit = value[0];
                let mut cuts = vec![];
                let mut at = 0;
                for row in ends.iter().rev() {
                    at = row[at] as usize;
                    cuts.push(at);
                }
                cuts.pop();
                found = Some(Found { value: limit, data_parallel: d, tensor_parallel: t, recompute: false, cuts });
            }
        }
        found
    }

    /// The best end of a stage that begins at `first` and has `stages - 1` stages behind it, whose largest loads by first
    /// layer are `rest`; only what is below `limit` counts.
    fn first_stage(
        &self,
        limits: &Limits,
        d: u32,
        stages: usize,
        first: usize,
        rest: &[f64],
        limit: f64,
    ) -> (f64, u32) {
        let (count, replicas, in_flight) = (self.len(), f64::from(d), stages as f64);
        let (mut compute, mut parameters, mut memory) = (0.0, 0.0, 0.0);
        let mut best = (f64::INFINITY, 0);
        for last in first..count {
            compute += self.time[last];
            parameters += self.parameters[last];
            memory += self.activation[last] * in_flight + self.fixed[last];
            if memory > limits.memory_bytes || compute / replicas >= limit.min(best.0) {
                break;
            }
            let resync = 4.0 * (replicas - 1.0) * parameters / replicas / f64::from(limits.microbatches);
            let edges = self.border[first * count + last];
            let load = (edges / replicas + resync) / limits.bandwidth_bytes_per_s + compute / replicas;
            let whole = load.max(rest[last + 1]);
            if whole < best.0 {
                best = (whole, last as u32 + 1);
            }
        }
        best
    }

    /// The least memory per device that some number of stages would do with: the stages as even in memory as they can be.
    fn least_memory(&self, limits: &Limits, t: u32) -> f64 {
        let count = self.len();
        let mut least = vec![f64::INFINITY; count + 1];
        least[count] = 0.0;
        let mut best = f64::INFINITY;
        for stages in 1..=((limits.devices / t).min(limits.microbatches) as usize).min(count) {
            let from = |first: usize| {
                let mut own = 0.0;
                let stretches = (first..count).map(|last| {
                    own += self.activation[last] * stages as f64 + self.fixed[last];
                    f64::max(own, least[last + 1])
                });
                stretches.fold(f64::INFINITY, f64::min)
            };
            let next: Vec<f64> = (0..count).map(from).chain([f64::INFINITY]).collect();
            least = next;
            best = best.min(least[0]);
        }
        best
    }
}

/// The mode a node runs in: the one that recomputes if that is wanted and offered, else its first other one.
fn pick(modes: &[Mode], recompute: bool) -> &Mode {
    modes.iter().find(|mode| (mode.id == RECOMPUTE) == recompute).unwrap_or(&modes[0])
}

fn plan(profile: &PiperProfile, layering: &Layering, found: &Found) -> Plan {
    let count = layering.layers.len();
    let starts = std::iter::once(0).chain(found.cuts.iter().copied());
    let ends = found.cuts.iter().copied().chain([count]);
    let stage = |(start, end): (usize, usize)| {
        let mut nodes: Vec<usize> =
            layering.layers[start..end].iter().flat_map(|layer| layer.nodes.iter().copied()).collect();
        nodes.sort_unstable();
        let choice = |&v: &usize| {
            let modes = profile.nodes[v].modes(found.tensor_parallel).expect("the chain was built with this degree");
            pick(modes, found.recompute).id.clone()
        };
        Stage {
            choices: nodes.iter().map(choice).collect(),
            nodes,
            data_parallel: found.data_parallel,
            tensor_parallel: found.tensor_parallel,
            devices: vec![],
        }
    };
    Plan { stages: starts.zip(ends).map(stage).collect(), ..Plan::default() }.with_consecutive_devices()
}
