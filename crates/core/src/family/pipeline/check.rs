//! Validates a pipeline of stages with replicas and recomputes its objective from the workload alone.
//!
//! The formulas are those of Piper's evaluator (section 4 of the paper's cost model): for a stage `C` with degrees
//! `(t, d)`
//!
//! ```text
//! edges    = sum over edges (u, v) that cross C's border of 2 · (bytes(u, v) + sync bytes of the end inside C)
//! resync   = 4 (d − 1) / d / N · sum of parameters
//! load     = (edges / d + resync) / W + compute / d          seconds per sample
//! memory   = sum of a · y + b,   y = ceil(s / d),   s = replicas of this stage and all later ones
//! ```
//!
//! `y` is the number of microbatches in flight under 1F1B. A plan with another schedule or warm-up rule uses that of
//! its own (`orders.rs`).
//!
//! The objective is the largest load; for plans measured by the iteration time it is that time (`batch.rs`).
//! `O(nodes + edges)` time, `O(nodes)` memory. All violations are reported, not only the first, and loads are still
//! computed if possible, so that the screen can show an infeasible edit.

use super::{batch, orders::Orders};
use crate::{
    cluster::Limits,
    family::{
        CheckContext,
        check::{Labels, degrees},
    },
    plan::{Measure, NodeScore, Plan, Schedule, Score, StageScore, Violation},
    workload::{Mode, NodeIndex, PiperProfile, Workload},
};

/// Checks and scores a plan whose nodes have modes.
pub(super) fn check(checked: &CheckContext<'_>, profile: &PiperProfile, score: &mut Score) {
    let CheckContext { workload, limits, plan, stage_of, labels } = *checked;
    degrees(limits, plan, &mut score.violations);
    for (u, v) in workload.edges() {
        if let (Some(from), Some(to)) = (stage_of[u.index()], stage_of[v.index()])
            && from > to
        {
            score.violations.push(Violation::Backwards {
                from: labels.of(u),
                to: labels.of(v),
                from_stage: from + 1,
                to_stage: to + 1,
            });
        }
    }
    let runs = plan.execution.and_then(|execution| runnable(workload, limits, plan, stage_of, execution.schedule));
    let is_runnable = runs.is_none();
    score.violations.extend(runs);
    loads(workload, profile, limits, plan, stage_of, labels, score);
    if plan.measure == Measure::IterationTime
        && let Some(stages) = batch::on_routes(workload, profile, limits, plan, stage_of)
    {
        route(limits, plan, &stages, score);
    }
    score.slowest_s = score.stages.iter().map(|s| s.load_s).fold(0.0, f64::max);
    score.value = score.slowest_s;
    match plan.measure {
        Measure::TimePerSample | Measure::IterationTime if !is_runnable => {}
        Measure::TimePerSample => {}
        Measure::IterationTime if is_runnable && !plan.stages.is_empty() => {
            score.value = batch::seconds(workload, profile, limits, plan, stage_of);
        }
        _ => score.violations.push(Violation::UnknownMeasure { name: plan.measure.name() }),
    }
}

/// Reason why the plan cannot run a schedule, if it cannot.
fn runnable(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
    schedule: Schedule,
) -> Option<Violation> {
    let needs = |needs: String| Some(Violation::Schedule { schedule: schedule.id(), needs });
    match schedule {
        Schedule::Inference | Schedule::SingleSample => return needs("a plan for inference".into()),
        Schedule::Interleaved | Schedule::InterleavedZeroBubble | Schedule::ZeroBubbleV => {}
        _ => return None,
    }
    let count = plan.stages.len();
    if count < 2 {
        return needs("at least two stages".into());
    }
    let replicas = plan.stages[0].data_parallel;
    if let Some(other) = plan.stages.iter().position(|stage| stage.data_parallel != replicas) {
        return needs(format!("the same number of replicas in all stages; stage {} differs from stage 1", other + 1));
    }
    for (u, v) in workload.edges() {
        if let (Some(from), Some(to)) = (stage_of[u.index()], stage_of[v.index()])
            && from + 1 < to
        {
            return needs(format!("a chain of stages; stage {} also sends to stage {}", from + 1, to + 1));
        }
    }
    let (all, replicas) = (limits.microbatches as usize, replicas.max(1) as usize);
    // Equal rounds of as many microbatches as stages, or a few more.
    let rounds = (all / replicas / count).max(1);
    if schedule.has_free_parts() && !(all.is_multiple_of(replicas) && (all / replicas).is_multiple_of(rounds)) {
        return needs(format!(
            "equal rounds of at least {count} microbatches on each of {replicas} replicas; there are {all} \
            microbatches"
        ));
    }
    None
}

/// Bytes that a node moves over its stage's border, both directions: incoming edges first, in file order.
fn border_bytes(
    workload: &Workload,
    profile: &PiperProfile,
    mode: &Mode,
    node: NodeIndex,
    outside: impl Fn(NodeIndex) -> bool,
) -> f64 {
    let mut bytes = 0.0;
    for (slot, &edge) in workload.dag.in_edges(node.index()).iter().enumerate() {
        if outside(workload.edge(edge as usize).0) {
            bytes += 2.0 * (profile.edge_bytes[edge as usize] + mode.sync_in[slot]);
        }
    }
    for (slot, &edge) in workload.dag.out_edges(node.index()).iter().enumerate() {
        if outside(workload.edge(edge as usize).1) {
            bytes += 2.0 * (profile.edge_bytes[edge as usize] + mode.sync_out[slot]);
        }
    }
    bytes
}

/// Replaces transfers and all-reduces over one bandwidth by those over a topology's routes.
fn route(limits: &Limits, plan: &Plan, stages: &[[f64; 2]], score: &mut Score) {
    let microbatches = f64::from(limits.microbatches);
    for ((scored, stage), [sends, reduce]) in score.stages.iter_mut().zip(&plan.stages).zip(stages) {
        let own = [sends / f64::from(stage.data_parallel.max(1)), reduce / microbatches];
        let share = |own: f64, told: f64| if told > 0.0 { own / told } else { 0.0 };
        let [sent, reduced] = [share(own[0], scored.communication_s), share(own[1], scored.sync_s)];
        for node in &mut scored.nodes {
            node.communication_s *= sent;
            node.sync_s *= reduced;
        }
        [scored.communication_s, scored.sync_s] = own;
        scored.load_s = scored.compute_s + own[0] + own[1];
    }
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
    let bandwidth = limits.bandwidth();
    let microbatches = f64::from(limits.microbatches);
    let orders = plan.execution.map(|execution| {
        let replicas: Vec<u32> = plan.stages.iter().map(|stage| stage.data_parallel).collect();
        Orders::new(execution, &replicas)
    });
    let mut suffix: u32 = plan.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.data_parallel));
    for (i, stage) in plan.stages.iter().enumerate() {
        let (d, t) = (f64::from(stage.data_parallel.max(1)), stage.tensor_parallel);
        let (held, parts) = match &orders {
            Some(orders) => {
                orders.parts_in_flight(i, u64::from(limits.microbatches.div_ceil(stage.data_parallel.max(1))))
            }
            None => (u64::from(suffix.div_ceil(stage.data_parallel.max(1))), 1),
        };
        let flying = held as f64 / parts as f64;
        let in_flight = u32::try_from(held.div_ceil(parts)).unwrap_or(u32::MAX);
        // Saturates like the sum: a file may claim degrees that no machine has.
        suffix = suffix.saturating_sub(stage.data_parallel);
        let mut result = StageScore { in_flight, ..StageScore::default() };
        let (mut compute, mut edges, mut resync) = (0.0, 0.0, 0.0);
        for (&node, choice) in stage.nodes.iter().zip(&stage.choices) {
            let Some(modes) = profile.nodes.get(node.index()).map(|n| n.modes(t).unwrap_or_default()) else { continue };
            let Some(mode) = modes.iter().find(|m| choice.is_mode(&m.id)) else {
                score.violations.push(Violation::UnknownChoice {
                    stage: i + 1,
                    node: labels.of(node),
                    choice: choice.to_string(),
                    tensor_parallel: t,
                });
                result.nodes.push(NodeScore::default());
                continue;
            };
            let node_edges = border_bytes(workload, profile, mode, node, |other| stage_of[other.index()] != Some(i));
            let node_resync = 4.0 * (d - 1.0) * mode.parameters / d / microbatches;
            let activation = mode.memory_a * flying;
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
        if result.memory_bytes > limits.memory_limit() {
            let needed_bytes = result.memory_bytes;
            score.violations.push(Violation::OutOfMemory {
                stage: i + 1,
                needed_bytes,
                limit_bytes: limits.memory_limit(),
            });
        }
        score.stages.push(result);
    }
}
