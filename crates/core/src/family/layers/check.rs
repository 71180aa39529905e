//! Scores a pipeline over machines by its speed-up over one device.
//!
//! The synchronous length follows Fan et al., PPoPP 2021, section 4.1. Stages and the links between them alternate. A
//! pivot `Q` computes without a pause, the steps before it are filled once and drained once, and every stage's
//! gradients are all-reduced after its last backward:
//!
//! ```text
//! length = max over Q of  sum of F up to Q  +  (M − 1)(F_Q + B_Q)
//!          + max over s of  AR_s + (sum of B from s to Q, if s <= Q, else − sum of B from Q to s)
//! ```
//!
//! The paper picks one `Q`, the one with the longest time without all-reduces. Here every stage is tried, since the
//! all-reduce of another may end last. `O(stages²)`, after costs in `O(nodes + edges)`.
//!
//! The published planner's own length is recomputed from the states that the plan names.

use crate::{
    cluster::Limits,
    family::layers::costs::{self, LayerStage},
    plan::{Length, Measure, NodeScore, Plan, Score, SpeedupModel, StageScore, Violation},
    workload::{Choice, LayerProfile, Workload, states::States},
};

/// Scores the plan and reports violations.
pub(crate) fn check(
    workload: &Workload,
    profile: &LayerProfile,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
    score: &mut Score,
) {
    let Measure::Speedup(model) = plan.measure else {
        score.violations.push(Violation::UnknownMeasure { name: plan.measure.name() });
        return;
    };
    devices(limits, plan, &mut score.violations);
    direction(workload, stage_of, &mut score.violations);
    choices(workload, plan, &mut score.violations);
    let costs = costs::stages(workload, profile, limits, plan, &model);
    let microbatches = costs::microbatches(&model, limits, plan);
    let memory_unchecked = matches!(model.length, Length::Published { memory_unchecked: true, .. });
    for (i, cost) in costs.iter().enumerate() {
        let scored = stage_score(cost, plan.stages[i].device_count(), microbatches, limits.samples());
        if scored.memory_bytes > limits.memory_limit() && !memory_unchecked {
            let needed_bytes = scored.memory_bytes;
            score.violations.push(Violation::OutOfMemory {
                stage: i + 1,
                needed_bytes,
                limit_bytes: limits.memory_limit(),
            });
        }
        score.stages.push(scored);
    }
    score.slowest_s = score.stages.iter().map(|s| s.load_s).fold(0.0, f64::max);
    score.value = match model.length {
        Length::Synchronous { .. } => {
            if plan.last_states().is_some() && last_states(plan).is_none() {
                let problem = "`last_state` of the stages must grow from stage to stage, or be given for none".into();
                score.violations.push(Violation::DeviceList { stage: 1, problem });
            }
            let total_s: f64 = costs.iter().flat_map(|cost| &cost.node_s).sum();
            total_s / synchronous_s(&costs, microbatches)
        }
        Length::Published { .. } => published(workload, profile, limits, plan, &model, &mut score.violations),
    };
}

/// Checks the devices: all exist, each is on one stage, and all replicas of a stage are listed.
fn devices(limits: &Limits, plan: &Plan, violations: &mut Vec<Violation>) {
    let mut taken = std::collections::BTreeMap::new();
    for (i, stage) in plan.stages.iter().enumerate() {
        let mut refuse = |problem: String| violations.push(Violation::DeviceList { stage: i + 1, problem });
        if stage.data_parallel == 0 || stage.tensor_parallel != 1 {
            refuse("needs at least one replica and a tensor degree of 1".into());
        }
        if stage.devices.len() != stage.device_count() as usize {
            refuse(format!("lists {} devices for {} replicas", stage.devices.len(), stage.data_parallel));
        }
        for &device in &stage.devices {
            if limits.machines.machine_of(device).is_none() {
                refuse(format!(
                    "device {device} does not exist: there are {}, counted from 0",
                    limits.machines.devices()
                ));
            }
            if let Some(first) = taken.insert(device, i) {
                refuse(format!("device {device} is used by stage {} already", first + 1));
            }
        }
    }
}

/// Checks that data flows only from earlier stages to later ones.
fn direction(workload: &Workload, stage_of: &[Option<usize>], violations: &mut Vec<Violation>) {
    for (u, v) in workload.edges() {
        if let (Some(from), Some(to)) = (stage_of[u.index()], stage_of[v.index()])
            && from > to
        {
            violations.push(Violation::Backwards {
                from: workload.nodes[u].label(),
                to: workload.nodes[v].label(),
                from_stage: from + 1,
                to_stage: to + 1,
            });
        }
    }
}

/// Checks that a stage recomputes all its nodes or none.
fn choices(workload: &Workload, plan: &Plan, violations: &mut Vec<Violation>) {
    for (i, stage) in plan.stages.iter().enumerate() {
        let Some(first) = stage.choices.first() else { continue };
        for (&v, choice) in stage.nodes.iter().zip(&stage.choices) {
            if choice != first || !matches!(choice, Choice::Keep | Choice::Recompute) {
                violations.push(Violation::UnknownChoice {
                    stage: i + 1,
                    node: workload.node(v).map_or_else(|| v.to_string(), crate::workload::Node::label),
                    choice: choice.to_string(),
                    tensor_parallel: 1,
                });
            }
        }
    }
}

fn stage_score(cost: &LayerStage, devices: u32, microbatches: u32, batch: u32) -> StageScore {
    let share = f64::from(microbatches) / f64::from(batch.max(1));
    let d = f64::from(devices.max(1));
    let compute_s = (cost.forward_s + cost.backward_s) * share;
    let communication_s = 2.0 * cost.send_s * share;
    let sync_s = cost.all_reduce_s / f64::from(batch.max(1));
    let activation_bytes = cost.activation_bytes * f64::from(cost.in_flight);
    let node = |&seconds: &f64| NodeScore { compute_s: seconds / d / f64::from(batch.max(1)), ..NodeScore::default() };
    StageScore {
        compute_s,
        communication_s,
        sync_s,
        backward_s: cost.backward_s * share,
        load_s: compute_s + communication_s + sync_s,
        memory_bytes: cost.weight_bytes + cost.working_bytes + activation_bytes,
        activation_bytes,
        in_flight: cost.in_flight,
        nodes: cost.node_s.iter().map(node).collect(),
        ..StageScore::default()
    }
}

/// Seconds of a batch through the synchronous pipeline.
fn synchronous_s(costs: &[LayerStage], microbatches: u32) -> f64 {
    // (F, B, AR) of stages and links alternately.
    let mut steps: Vec<(f64, f64, f64)> = vec![];
    for (i, cost) in costs.iter().enumerate() {
        steps.push((cost.forward_s, cost.backward_s, cost.all_reduce_s));
        if i + 1 < costs.len() {
            steps.push((cost.send_s, cost.send_s, 0.0));
        }
    }
    let repeated = f64::from(microbatches) - 1.0;
    let (mut longest, mut filled) = (0.0f64, 0.0);
    for (q, &(forward, backward, _)) in steps.iter().enumerate() {
        filled += forward;
        let (mut end, mut between) = (0.0f64, 0.0);
        for &(_, backward, all_reduce) in steps[..=q].iter().rev() {
            between += backward;
            end = end.max(all_reduce + between);
        }
        between = backward;
        for &(_, backward, all_reduce) in &steps[q + 1..] {
            between += backward;
            end = end.max(all_reduce - between);
        }
        longest = longest.max(filled + repeated * (forward + backward) + end);
    }
    longest
}

/// Last state of every stage, if all are given and increasing.
fn last_states(plan: &Plan) -> Option<Vec<usize>> {
    let ends: Vec<usize> = plan.last_states()?.iter().map(|&state| state as usize).collect();
    (ends.len() == plan.stages.len() && ends.is_sorted_by(|a, b| a < b)).then_some(ends)
}

/// Speed-up of the published planner, from the last states of the plan's stages.
fn published(
    workload: &Workload,
    profile: &LayerProfile,
    limits: &Limits,
    plan: &Plan,
    model: &SpeedupModel,
    violations: &mut Vec<Violation>,
) -> f64 {
    let Length::Published { pipelines, two_way, boundary_parameters, undivided_fill, .. } = model.length else {
        return 0.0;
    };
    let mut refuse = |stage: usize, problem: String| {
        violations.push(Violation::DeviceList { stage, problem });
        0.0
    };
    let states = match States::cached(workload, profile, model.linear, &|| false) {
        Ok(states) => states,
        Err(error) => return refuse(1, error.to_string()),
    };
    let scale = model.scale(limits.samples());
    let Some(ends) = last_states(plan).filter(|ends| ends.last() == Some(&(states.len() - 1))) else {
        return refuse(1, format!("`last_state` of the stages must grow to {}, the last state", states.len() - 1));
    };
    let m = model.microbatches(limits.samples(), pipelines);
    if m == 0 {
        return 0.0;
    }
    let m = f64::from(m);
    let side_by_side = f64::from(pipelines);
    let total_s = states.compute_s[states.len() - 1] * scale;
    let mut from = 0;
    let (mut block_s, mut fill_s, mut cuts_s) = (0.0f64, 0.0, 0.0);
    let mut reduces: Vec<f64> = vec![];
    for (i, (stage, &to)) in plan.stages.iter().zip(&ends).enumerate() {
        if stage.nodes != states.nodes(from, to) {
            return refuse(i + 1, format!("its nodes are not those of the states {from} to {to}"));
        }
        if stage.device_count() == 0 || !stage.device_count().is_multiple_of(pipelines) {
            return refuse(i + 1, format!("{} devices do not divide over {pipelines} pipelines", stage.device_count()));
        }
        let compute_s = states.compute_between(from, to) * scale / f64::from(stage.device_count());
        block_s = block_s.max(compute_s);
        fill_s += compute_s / m;
        let counted_to = if boundary_parameters && to + 1 < states.len() { to + 1 } else { to };
        let parameters = states.parameters_between(from, counted_to);
        reduces.push(model.links.all_reduce_s(&limits.machines, &stage.devices, parameters));
        if let Some(next) = plan.stages.get(i + 1) {
            let bytes = states.output_bytes[to] * scale;
            let seconds = model.links.transfer_s(&limits.machines, &stage.devices, &next.devices, bytes);
            block_s = block_s.max(seconds * if two_way { 2.0 } else { 1.0 });
            cuts_s += seconds / side_by_side / m;
        }
        from = to + 1;
    }
    if undivided_fill {
        fill_s = total_s / side_by_side / m;
    }
    let step_s = block_s / m;
    let exposed_s = reduces.iter().enumerate().map(|(i, reduce)| reduce - i as f64 * step_s).fold(0.0, f64::max);
    total_s / (step_s * (m - 1.0) + fill_s + cuts_s + exposed_s)
}
