//! Validates any plan and recomputes its objective from the workload alone.
//!
//! Shares no code with a planner's search: what a planner, a file or a hand edit claims is measured here. The formulas
//! are those of Piper's evaluator (section 4 of the paper's cost model): for a stage `C` with degrees `(t, d)`
//!
//! ```text
//! edges    = sum over edges (u, v) that cross C's border of 2 · (bytes(u, v) + sync bytes of the end inside C)
//! resync   = 4 (d − 1) / d / N · sum of parameters
//! load     = (edges / d + resync) / W + compute / d          seconds per sample
//! memory   = sum of a · y + b,   y = ceil(s / d),   s = replicas of this stage and all later ones
//! ```
//!
//! The objective is the largest load. `O(nodes + edges)` time, `O(nodes)` memory. The surprising decision: every rule
//! that is broken is reported, not only the first, and the loads are still computed where they can be, so that the
//! screen can show an infeasible edit.

use std::cell::OnceCell;

use rustc_hash::FxHashSet;

use super::{Measure, Plan, check_dapple, check_pase, check_placement, violation::Violation};
use crate::{
    cluster::Limits,
    workload::{Mode, Node, PiperProfile, Profile, Workload},
};

/// What one node costs within its stage; seconds per sample and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NodeScore {
    /// Compute, divided by the stage's replicas.
    pub compute_s: f64,
    /// Tensors that cross the stage's border at this node.
    pub communication_s: f64,
    /// This node's share of the gradient all-reduce.
    pub sync_s: f64,
    /// `a · y + b`.
    pub memory_bytes: f64,
}

/// What one stage costs; seconds per sample and bytes per device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageScore {
    /// Compute.
    pub compute_s: f64,
    /// Tensors across its borders, both ways.
    pub communication_s: f64,
    /// Gradient all-reduce over its replicas, spread over the batch.
    pub sync_s: f64,
    /// The sum of the three, as the planner's objective counts it.
    pub load_s: f64,
    /// The part of it that is of the backward pass, where the profile tells the passes apart; else 0.
    pub backward_s: f64,
    /// The part of the compute that is of the backward pass, where the profile tells the passes apart; else 0.
    pub backward_compute_s: f64,
    /// The part of the communication that comes in, where the profile tells both directions apart; else 0.
    pub received_s: f64,
    /// Memory on each of its devices.
    pub memory_bytes: f64,
    /// The part of it that grows with microbatches in flight.
    pub activation_bytes: f64,
    /// Microbatches in flight, y.
    pub in_flight: u32,
    /// When it runs, if the plan is measured by latency.
    pub sample: Option<SampleTimes>,
    /// By position in the stage's node list.
    pub nodes: Vec<NodeScore>,
}

/// When a stage runs for a single sample, seconds after the sample's arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleTimes {
    /// When it first starts.
    pub start_s: f64,
    /// When it is finished.
    pub finish_s: f64,
    /// The part of the latency during which everything waits for it; over all stages these add up to the latency.
    pub critical_s: f64,
}

/// What [`check`] found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    /// By stage; loads of stages with unknown modes leave those nodes out.
    pub stages: Vec<StageScore>,
    /// What the value measures: the plan's own measure.
    pub measure: Measure,
    /// The objective in the measure's unit; meaningful only if `violations` is empty.
    pub value: f64,
    /// The largest load of a stage, seconds per sample; meaningful only if `violations` is empty.
    pub slowest_s: f64,
    /// Everything that is wrong with the plan.
    pub violations: Vec<Violation>,
}

impl Score {
    /// Whether the plan keeps every rule.
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// Index of the stage that limits the rest: the one with the largest load, or, where the plan is measured by latency,
    /// the one for which everything waits longest.
    pub fn bottleneck(&self) -> Option<usize> {
        let weight = |i: usize| {
            let stage: &StageScore = &self.stages[i];
            stage.sample.map_or(stage.load_s, |times| times.critical_s)
        };
        (0..self.stages.len()).reduce(|best, i| if weight(i) > weight(best) { i } else { best })
    }

    /// The most memory any device needs, bytes.
    pub fn peak_memory_bytes(&self) -> f64 {
        self.stages.iter().map(|s| s.memory_bytes).fold(0.0, f64::max)
    }
}

/// Checks and scores a plan under the limits.
pub fn check(workload: &Workload, limits: &Limits, plan: &Plan) -> Score {
    let mut score = Score { measure: plan.measure, ..Score::default() };
    if plan.stages.is_empty() {
        score.violations.push(Violation::Empty);
        return score;
    }
    let labels = Labels { nodes: &workload.nodes, repeated: OnceCell::new() };
    let stage_of = assignment(&labels, plan, &mut score.violations);
    let profile = match &workload.profile {
        Profile::Piper(profile) => profile,
        Profile::Layers(profile) => {
            check_dapple::check(workload, profile, limits, plan, &stage_of, &mut score);
            return score;
        }
        Profile::Operators(profile) => {
            degrees(limits, plan, &mut score.violations);
            check_pase::check(workload, profile, limits, plan, &mut score);
            return score;
        }
        Profile::Placement(profile) => {
            check_placement::check(workload, profile, limits, plan, &stage_of, &mut score);
            return score;
        }
    };
    degrees(limits, plan, &mut score.violations);
    for &(u, v) in workload.dag.edges() {
        if let (Some(from), Some(to)) = (stage_of[u as usize], stage_of[v as usize])
            && from > to
        {
            score.violations.push(Violation::Backwards {
                from: labels.of(u as usize),
                to: labels.of(v as usize),
                from_stage: from + 1,
                to_stage: to + 1,
            });
        }
    }
    loads(workload, profile, limits, plan, &stage_of, &labels, &mut score);
    score.slowest_s = score.stages.iter().map(|s| s.load_s).fold(0.0, f64::max);
    score.value = score.slowest_s;
    if plan.measure != Measure::TimePerSample {
        score.violations.push(Violation::UnknownMeasure { name: plan.measure.name() });
    }
    score
}

/// What violations call the nodes: by name, and by id as well where others have the name too.
struct Labels<'a> {
    nodes: &'a [Node],
    /// Names that several nodes have; collected only once something is wrong, since planners check every plan.
    repeated: OnceCell<FxHashSet<&'a str>>,
}

impl Labels<'_> {
    fn of(&self, node: usize) -> String {
        let repeated = self.repeated.get_or_init(|| {
            let mut seen = FxHashSet::default();
            self.nodes.iter().filter_map(|node| node.name.as_deref()).filter(|name| !seen.insert(*name)).collect()
        });
        let Node { id, name } = &self.nodes[node];
        match name {
            Some(name) if repeated.contains(name.as_str()) => format!("{name} (node {id})"),
            _ => self.nodes[node].label(),
        }
    }
}

/// The stage of every node; reports nodes that are missing, unknown or twice.
fn assignment(labels: &Labels<'_>, plan: &Plan, violations: &mut Vec<Violation>) -> Vec<Option<usize>> {
    let mut stage_of = vec![None; labels.nodes.len()];
    for (i, stage) in plan.stages.iter().enumerate() {
        if stage.choices.len() != stage.nodes.len() {
            violations.push(Violation::ChoiceCount {
                stage: i + 1,
                nodes: stage.nodes.len(),
                choices: stage.choices.len(),
            });
        }
        for &node in &stage.nodes {
            match stage_of.get_mut(node) {
                None => violations.push(Violation::UnknownNode { node, stage: i + 1 }),
                Some(Some(_)) => {
                    violations.push(Violation::Repeated { node: labels.of(node), stage: i + 1 });
                }
                Some(slot) => *slot = Some(i),
            }
        }
    }
    for (node, stage) in stage_of.iter().enumerate() {
        if stage.is_none() {
            violations.push(Violation::Unassigned { node: labels.of(node) });
        }
    }
    stage_of
}

/// The rules about degrees, microbatches and devices.
fn degrees(limits: &Limits, plan: &Plan, violations: &mut Vec<Violation>) {
    let mut replicas: u32 = 0;
    let mut taken = std::collections::BTreeMap::new();
    for (i, stage) in plan.stages.iter().enumerate() {
        let (d, t) = (stage.data_parallel, stage.tensor_parallel);
        if d == 0 || t == 0 {
            violations.push(Violation::ZeroDegree { stage: i + 1 });
            continue;
        }
        if !limits.microbatches.is_multiple_of(d) {
            violations.push(Violation::Indivisible {
                stage: i + 1,
                data_parallel: d,
                microbatches: limits.microbatches,
            });
        }
        replicas = replicas.saturating_add(d);
        if !stage.devices.is_empty() && stage.devices.len() != stage.device_count() as usize {
            let problem = format!("lists {} devices for {d} x {t}", stage.devices.len());
            violations.push(Violation::DeviceList { stage: i + 1, problem });
        }
        // Where the plan needs more devices than there are, that says it already.
        if plan.devices_used() <= limits.devices
            && let Some(missing) = stage.devices.iter().find(|&&device| device >= limits.devices)
        {
            let problem = format!("device {missing} does not exist: there are {}, counted from 0", limits.devices);
            violations.push(Violation::DeviceList { stage: i + 1, problem });
        }
        for &device in &stage.devices {
            if let Some(first) = taken.insert(device, i) {
                let problem = format!("device {device} is used by stage {} already", first + 1);
                violations.push(Violation::DeviceList { stage: i + 1, problem });
            }
        }
    }
    if replicas > limits.microbatches {
        violations.push(Violation::TooManyReplicas { replicas, microbatches: limits.microbatches });
    }
    if plan.devices_used() > limits.devices {
        violations.push(Violation::TooManyDevices { used: plan.devices_used(), devices: limits.devices });
    }
}

/// Bytes that a node moves over its stage's border, both directions: incoming edges first, in file order.
fn border_bytes(
    workload: &Workload,
    profile: &PiperProfile,
    mode: &Mode,
    node: usize,
    outside: impl Fn(usize) -> bool,
) -> f64 {
    let mut bytes = 0.0;
    for (slot, &edge) in workload.dag.in_edges(node).iter().enumerate() {
        if outside(workload.dag.edges()[edge as usize].0 as usize) {
            bytes += 2.0 * (profile.edge_bytes[edge as usize] + mode.sync_in[slot]);
        }
    }
    for (slot, &edge) in workload.dag.out_edges(node).iter().enumerate() {
        if outside(workload.dag.edges()[edge as usize].1 as usize) {
            bytes += 2.0 * (profile.edge_bytes[edge as usize] + mode.sync_out[slot]);
        }
    }
    bytes
}

fn loads(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
    labels: &Labels<'_>,
    score: &mut Score,
) {
    let bandwidth = limits.bandwidth_bytes_per_s;
    let microbatches = f64::from(limits.microbatches);
    let mut suffix: u32 = plan.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.data_parallel));
    for (i, stage) in plan.stages.iter().enumerate() {
        let (d, t) = (f64::from(stage.data_parallel.max(1)), stage.tensor_parallel);
        let in_flight = suffix.div_ceil(stage.data_parallel.max(1));
        // Saturating like the sum: a file may claim degrees that no machine has.
        suffix = suffix.saturating_sub(stage.data_parallel);
        let mut result = StageScore { in_flight, ..StageScore::default() };
        let (mut compute, mut edges, mut resync) = (0.0, 0.0, 0.0);
        for (&node, choice) in stage.nodes.iter().zip(&stage.choices) {
            let Some(modes) = profile.nodes.get(node).map(|n| n.modes(t).unwrap_or_default()) else { continue };
            let Some(mode) = modes.iter().find(|m| m.id == *choice) else {
                score.violations.push(Violation::UnknownChoice {
                    stage: i + 1,
                    node: labels.of(node),
                    choice: choice.clone(),
                    tensor_parallel: t,
                });
                result.nodes.push(NodeScore::default());
                continue;
            };
            let node_edges = border_bytes(workload, profile, mode, node, |other| stage_of[other] != Some(i));
            let node_resync = 4.0 * (d - 1.0) * mode.parameters / d / microbatches;
            let activation = mode.memory_a * f64::from(in_flight);
            compute += mode.time_s;
            edges += node_edges;
            resync += node_resync;
            result.memory_bytes += activation + mode.memory_b;
            result.activation_bytes += activation;
            result.nodes.push(NodeScore {
                compute_s: mode.time_s / d,
                communication_s: node_edges / d / bandwidth,
                sync_s: node_resync / bandwidth,
                memory_bytes: activation + mode.memory_b,
            });
        }
        result.compute_s = compute / d;
        result.communication_s = edges / d / bandwidth;
        result.sync_s = resync / bandwidth;
        result.load_s = (edges / d + resync) / bandwidth + compute / d;
        if result.memory_bytes > limits.memory_bytes {
            let needed_bytes = result.memory_bytes;
            score.violations.push(Violation::OutOfMemory {
                stage: i + 1,
                needed_bytes,
                limit_bytes: limits.memory_bytes,
            });
        }
        score.stages.push(result);
    }
}
