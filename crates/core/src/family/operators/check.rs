//! Scores operators split over one set of devices: the total cost of all operators and transfers.
//!
//! Elango, *PaSE*, IPDPS 2021, with the published program's operators. The plan is one stage with all operators. An
//! operator's choice is its split, such as `b=4 n=8`. A split must divide the extent, keep unsplittable dimensions
//! whole, and use at most the stage's devices. Minimum sizes of pieces concern only the search.
//!
//! ```text
//! cost = Σ operators (operations + r · words all-reduced or moved inside) + Σ tensors r · words moved
//! r    = flops / (bandwidth / 8 bytes): operations a device could do while it sends a word
//! ```
//!
//! Implemented from the formulas, tensor by tensor and without tables, so that it can verify the search.
//! `O(operators · dimensions)` time.

use crate::{
    cluster::Limits,
    plan::{Measure, NodeScore, Plan, Score, Stage, StageScore, Violation},
    workload::{
        Choice, NodeIndex, Operator, OperatorProfile, Workload,
        operators::{BatchNorm, CostRules, OperatorKind, Tensor, WORD_BYTES},
    },
};

/// Costs of an operator on each device.
#[derive(Debug, Clone, Copy, Default)]
struct OperatorCosts {
    /// Operations.
    operations: f64,
    /// Words sent in all-reduces.
    reduced: f64,
    /// Words received at the borders of pieces or between them.
    moved: f64,
}

/// Scores the splits and reports violations.
pub(crate) fn check(workload: &Workload, profile: &OperatorProfile, limits: &Limits, plan: &Plan, score: &mut Score) {
    let Measure::OperatorCost(rules) = plan.measure else {
        score.violations.push(Violation::UnknownMeasure { name: plan.measure.name() });
        return;
    };
    let [stage] = plan.stages.as_slice() else {
        score.violations.push(Violation::SeveralStages { stages: plan.stages.len() });
        return;
    };
    let splits = read_splits(workload, profile, stage, &mut score.violations);
    let word = word_operations(limits);
    let mut scored = StageScore { in_flight: 1, ..StageScore::default() };
    let mut cost = 0.0;
    for &node in &stage.nodes {
        let (Some(operator), Some(Some(split))) = (profile.operators.get(node.index()), splits.get(node.index()))
        else {
            scored.nodes.push(NodeScore::default());
            continue;
        };
        let mut parts = operator_cost(operator, split, rules.batch_norm);
        parts.moved += received(profile, node, &splits, rules).iter().map(|(_, words)| words).sum::<f64>();
        cost += parts.operations + word * (parts.reduced + parts.moved);
        let bytes = memory_bytes(operator, split);
        let second = 1.0 / limits.flops();
        scored.compute_s += parts.operations * second;
        scored.sync_s += word * parts.reduced * second;
        scored.communication_s += word * parts.moved * second;
        scored.memory_bytes += bytes;
        scored.nodes.push(NodeScore {
            compute_s: parts.operations * second,
            communication_s: word * parts.moved * second,
            sync_s: word * parts.reduced * second,
            memory_bytes: bytes,
        });
    }
    scored.load_s = cost / limits.flops();
    if scored.memory_bytes > limits.memory_limit() {
        let (needed_bytes, limit_bytes) = (scored.memory_bytes, limits.memory_limit());
        score.violations.push(Violation::OutOfMemory { stage: 1, needed_bytes, limit_bytes });
    }
    score.slowest_s = scored.load_s;
    score.value = cost;
    score.stages.push(scored);
}

/// Splits by node, if they can be read.
fn read_splits(
    workload: &Workload,
    profile: &OperatorProfile,
    stage: &Stage,
    violations: &mut Vec<Violation>,
) -> Vec<Option<Vec<f64>>> {
    let mut splits = vec![None; profile.operators.len()];
    for (&node, choice) in stage.nodes.iter().zip(&stage.choices) {
        let Some(operator) = profile.operators.get(node.index()) else { continue };
        let read = match choice {
            Choice::Split(split) => operator.degrees(split),
            // Other choices are parsed as a split to get the reason for the error.
            other => other.to_string().parse().and_then(|split| operator.degrees(&split)),
        };
        let problem = match &read {
            Ok(split) => wrong_with(operator, split, stage.device_count()),
            Err(problem) => Some(problem.to_string()),
        };
        if let Some(problem) = problem {
            let node = workload.nodes[node].label();
            violations.push(Violation::BadSplit { node, split: choice.to_string(), problem });
        }
        splits[node.index()] = read.ok().map(|split| split.into_iter().map(f64::from).collect());
    }
    splits
}

/// Rule that a split breaks.
fn wrong_with(operator: &Operator, split: &[u32], devices: u32) -> Option<String> {
    let mut open = true;
    for (dim, &ways) in operator.dims.iter().zip(split) {
        let name = &dim.name;
        if ways > 1 && !dim.splittable {
            return Some(format!("splits {name}, which cannot be split"));
        }
        if !dim.extent.is_multiple_of(u64::from(ways)) {
            return Some(format!("splits {name} {ways} ways, which does not divide its {} elements", dim.extent));
        }
        if operator.contiguous() {
            if ways > 1 && !open {
                return Some(format!(
                    "splits {name} after a dimension that is not fully split: pieces must be contiguous"
                ));
            }
            open &= u64::from(ways) == dim.extent;
        }
    }
    let pieces: f64 = split.iter().map(|&ways| f64::from(ways)).product();
    (pieces > f64::from(devices)).then(|| format!("makes {pieces} pieces, but the stage has {devices} devices"))
}

/// Words that each of `devices` devices sends in a ring all-reduce of `words` words: two rounds.
fn ring(words: f64, devices: f64) -> f64 {
    2.0 * (devices - 1.0) * (words / devices)
}

fn operator_cost(operator: &Operator, split: &[f64], batch_norm: BatchNorm) -> OperatorCosts {
    let whole: Vec<f64> = operator.dims.iter().map(|dim| dim.extent as f64).collect();
    let piece: Vec<f64> = whole.iter().zip(split).map(|(extent, ways)| extent / ways).collect();
    let elements: f64 = piece.iter().product();
    match &operator.kind {
        OperatorKind::Convolution { pointwise, .. } => {
            // b c h w r s n
            let role = [
                DimensionRole::Row,
                DimensionRole::Sum,
                DimensionRole::Row,
                DimensionRole::Row,
                DimensionRole::Sum,
                DimensionRole::Sum,
                DimensionRole::Column,
            ];
            product(&piece, split, &role, *pointwise)
        }
        OperatorKind::Dense { pointwise, .. } => {
            let mut role = vec![DimensionRole::Row; piece.len()];
            let last = role.len() - 1;
            role[last] = DimensionRole::Sum;
            role[last - 1] = DimensionRole::Column;
            product(&piece, split, &role, *pointwise)
        }
        OperatorKind::Einsum { equation, pointwise } => product(&piece, split, &roles(operator, equation), *pointwise),
        OperatorKind::Lstm { .. } => {
            // l s b n k: four gates, of the input and of the state.
            let mut tall = piece.clone();
            tall[3] *= 4.0;
            tall[4] *= 2.0;
            let mut parts = product(
                &tall,
                split,
                &[
                    DimensionRole::Batch,
                    DimensionRole::Row,
                    DimensionRole::Row,
                    DimensionRole::Column,
                    DimensionRole::Sum,
                ],
                3,
            );
            let wanted = piece[2] * piece[4];
            let there = if split[4] > split[3] { 0.0 } else { piece[2] * piece[3].min(piece[4]) };
            parts.moved = whole[0] * whole[1] * (wanted - there).max(0.0);
            parts
        }
        OperatorKind::Pooling { window, .. } => {
            let image = &operator.inputs[0].tensor.shape;
            let side = |axis: usize| image[axis] as f64 / split[axis];
            let seen = |axis: usize| side(axis) + if split[axis] > 1.0 { window[axis - 2] as f64 } else { 0.0 };
            let border = seen(2) * seen(3) - side(2) * side(3);
            OperatorCosts { operations: elements, moved: border * piece[0] * piece[1], ..OperatorCosts::default() }
        }
        OperatorKind::Normalisation { axis } => {
            let others = |axis: usize| split.iter().product::<f64>() / split[axis];
            let reduced = match batch_norm {
                BatchNorm::PerChannel if *axis == 0 && piece.len() > 1 => 8.0 * ring(piece[1], others(1)),
                _ => 4.0 * (ring(elements / piece[*axis], split[*axis]) + ring(piece[*axis], others(*axis))),
            };
            OperatorCosts { operations: 16.0 * elements, reduced, ..OperatorCosts::default() }
        }
        OperatorKind::Elementwise { pointwise } => {
            OperatorCosts { operations: elements * f64::from(pointwise + 1), ..OperatorCosts::default() }
        }
        OperatorKind::Mean { axes } => {
            let devices: f64 = axes.iter().map(|&axis| split[axis]).product();
            OperatorCosts { reduced: ring(elements, devices), ..OperatorCosts::default() }
        }
        OperatorKind::Softmax { axis } => {
            let rows = elements / piece[*axis];
            let reduced = ring(rows, split[*axis]) * 2.0 + ring(rows * whole[*axis], split[*axis]);
            OperatorCosts { operations: elements * (4.0 + whole[*axis]), reduced, ..OperatorCosts::default() }
        }
        OperatorKind::CrossEntropy => {
            let last = piece.len() - 1;
            let rows = elements / piece[last];
            let reduced = if split[last] > 1.0 { 2.0 * rows } else { 0.0 };
            OperatorCosts { operations: 4.0 * elements + 2.0 * rows, reduced, ..OperatorCosts::default() }
        }
        OperatorKind::Concatenation { .. }
        | OperatorKind::Ravel
        | OperatorKind::Unravel { .. }
        | OperatorKind::Stack
        | OperatorKind::Unstack => OperatorCosts::default(),
    }
}

/// Role of a dimension in a matrix multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DimensionRole {
    Batch,
    Row,
    Column,
    Sum,
}

/// Roles of an equation's letters, by dimension.
fn roles(operator: &Operator, equation: &str) -> Vec<DimensionRole> {
    let (operands, result) = equation.split_once("->").unwrap_or((equation, ""));
    let (left, right) = operands.split_once(',').unwrap_or((operands, ""));
    let role = |name: &str| match (left.contains(name), right.contains(name), result.contains(name)) {
        (true, true, true) => DimensionRole::Batch,
        (true, false, _) => DimensionRole::Row,
        (false, true, _) => DimensionRole::Column,
        _ => DimensionRole::Sum,
    };
    operator.dims.iter().map(|dim| role(&dim.name)).collect()
}

/// Matrix multiplication with its two gradients. Each result is all-reduced over the devices that split its summed
/// dimensions.
fn product(piece: &[f64], split: &[f64], role: &[DimensionRole], pointwise: u32) -> OperatorCosts {
    let over = |values: &[f64], wanted: DimensionRole| -> f64 {
        values.iter().zip(role).filter(|(_, role)| **role == wanted).map(|(value, _)| value).product()
    };
    let [batch, rows, columns, sums] =
        [DimensionRole::Batch, DimensionRole::Row, DimensionRole::Column, DimensionRole::Sum]
            .map(|role| over(piece, role));
    let forward = rows * columns * (sums + f64::from(pointwise));
    let reduced = ring(rows * columns, over(split, DimensionRole::Sum))
        + ring(rows * sums, over(split, DimensionRole::Column))
        + ring(columns * sums, over(split, DimensionRole::Row));
    OperatorCosts { operations: 3.0 * forward * batch, reduced: reduced * batch, moved: 0.0 }
}

/// Number of ways that each axis of a tensor is split.
fn ways(tensor: &Tensor, split: &[f64]) -> Vec<f64> {
    tensor.axes.iter().map(|dims| dims.iter().map(|&dim| split[usize::from(dim)]).product()).collect()
}

/// Operations that a device could do while it sends a word, r.
pub(crate) fn word_operations(limits: &Limits) -> f64 {
    limits.flops() / (limits.bandwidth() / WORD_BYTES)
}

/// By operator that writes one of its inputs: words that a device receives for it, and sends back as gradients.
pub(crate) fn received(
    profile: &OperatorProfile,
    node: NodeIndex,
    splits: &[Option<Vec<f64>>],
    rules: CostRules,
) -> Vec<(NodeIndex, f64)> {
    let inputs = &profile.operators[node].inputs;
    let Some(own) = &splits[node.index()] else { return vec![] };
    let mut words = vec![];
    for (slot, input) in inputs.iter().enumerate() {
        let Some(source) = input.source else { continue };
        // As published, only the last tensor from an operator is counted.
        let again = inputs[slot + 1..].iter().any(|later| later.source.is_some_and(|other| other.node == source.node));
        let Some(theirs) = splits[source.node.index()].as_ref().filter(|_| rules.parallel_edges || !again) else {
            continue;
        };
        let have = ways(&profile.operators[source.node].outputs[source.output], theirs);
        let want = ways(&input.tensor, own);
        let (mut needed, mut there, mut more) = (1.0, 1.0, 1.0);
        for ((&extent, have), want) in input.tensor.shape.iter().zip(&have).zip(&want) {
            let extent = extent as f64;
            needed *= extent / want;
            there *= (extent / want).min(extent / have);
            more *= want / have;
        }
        // Pieces of a tensor that is split more finely than before are on other devices.
        let there = if more > 1.0 + 1e-12 { 0.0 } else { there };
        words.push((source.node, 2.0 * f64::max(needed - there, 0.0)));
    }
    words
}

/// Bytes on each device: weights with their gradients, and the operator's outputs until its backward pass.
fn memory_bytes(operator: &Operator, split: &[f64]) -> f64 {
    let weights = operator.weights.as_ref().map_or(0.0, |weights| {
        let each =
            weights.dims.iter().map(|&dim| operator.dims[usize::from(dim)].extent as f64 / split[usize::from(dim)]);
        f64::from(weights.factor) * each.product::<f64>()
    });
    let size = |tensor: &Tensor| -> f64 {
        tensor.shape.iter().zip(ways(tensor, split)).map(|(&extent, ways)| extent as f64 / ways).product()
    };
    let written: f64 = if operator.is_view() { 0.0 } else { operator.outputs.iter().map(size).sum() };
    WORD_BYTES * (2.0 * weights + written)
}
