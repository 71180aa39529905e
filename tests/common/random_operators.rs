//! Small random operator graphs, written as files and read back.

use super::random_placement::numbers;
use plantui::{
    cluster::{GivenLimits, LimitKind},
    workload::{
        self, NodeIndex, Workload,
        formats::operators::{OperatorFile, text},
        operators::{InputSpec, Operator, OperatorKind, OperatorProfile, Source},
    },
};

/// Extents, each with few divisors.
const EXTENTS: [u64; 6] = [1, 2, 3, 4, 6, 8];

/// A graph of two to `most` operators of every kind; most of them read what others write.
pub(crate) fn random_operators(seed: u64, most: usize) -> OperatorProfile {
    let mut draw = numbers(seed.wrapping_mul(31).wrapping_add(5));
    let wanted = 2 + draw(most - 1);
    let mut operators: Vec<Operator> = vec![];
    while operators.len() < wanted {
        // Rarely from outside, so that graphs hang together.
        let input = |draw: &mut dyn FnMut(usize) -> usize, operators: &[Operator]| {
            let written: Vec<Source> = (0..operators.len())
                .flat_map(|node| {
                    (0..operators[node].outputs.len()).map(move |output| Source { node: NodeIndex::new(node), output })
                })
                .filter(|source| !operators[source.node.index()].outputs[source.output].shape.is_empty())
                .collect();
            if written.is_empty() || draw(6) == 0 {
                let rank = 2 + draw(3);
                return InputSpec::outside((0..rank).map(|_| EXTENTS[draw(EXTENTS.len())]).collect());
            }
            InputSpec::output(operators, written[draw(written.len())]).unwrap()
        };
        let first = input(&mut draw, &operators);
        let rank = first.shape.len();
        let (kind, given) = match draw(15) {
            0 => {
                let kind = OperatorKind::Convolution {
                    filters: EXTENTS[draw(6)],
                    window: [1, 1],
                    stride: 1,
                    padding: [draw(2) as u64, 0],
                    pointwise: draw(2) as u32,
                };
                (kind, vec![first])
            }
            1 => {
                let kind = OperatorKind::Pooling { window: [1 + draw(2) as u64, 1], stride: 1, padding: [1, 0] };
                (kind, vec![first])
            }
            2 => (OperatorKind::Normalisation { axis: draw(rank) }, vec![first]),
            3 | 4 => {
                let same = |source: &InputSpec| source.shape == first.shape;
                let other = Some(input(&mut draw, &operators)).filter(same).unwrap_or_else(|| first.clone());
                (OperatorKind::Elementwise { pointwise: draw(3) as u32 }, vec![other, first])
            }
            5 => (OperatorKind::Concatenation { axis: draw(rank) }, vec![first.clone(), first]),
            6 => (OperatorKind::Ravel, vec![first]),
            7 => {
                let size: u64 = first.shape.iter().product();
                let front = EXTENTS.into_iter().rfind(|extent| size.is_multiple_of(*extent)).unwrap_or(1);
                (OperatorKind::Unravel { shape: vec![front, size / front] }, vec![first])
            }
            8 => (OperatorKind::Stack, vec![first.clone(), first]),
            9 => (OperatorKind::Unstack, vec![first]),
            10 => (OperatorKind::Dense { units: EXTENTS[draw(6)], pointwise: draw(2) as u32 }, vec![first]),
            11 => {
                let letters = &"abcd"[..rank.min(4)];
                let (equation, shape) = match draw(2) {
                    0 => (format!("{letters},az->z{letters}"), vec![first.shape[0], EXTENTS[draw(6)]]),
                    _ => (format!("{letters},az->{}z", &letters[1..]), vec![first.shape[0], EXTENTS[draw(6)]]),
                };
                (OperatorKind::Einsum { equation, pointwise: draw(2) as u32 }, vec![first, InputSpec::outside(shape)])
            }
            12 => (OperatorKind::Mean { axes: vec![draw(rank)] }, vec![first]),
            13 => (OperatorKind::Softmax { axis: draw(rank) }, vec![first]),
            _ if draw(2) == 0 => {
                let units = *first.shape.last().unwrap();
                (OperatorKind::Lstm { layers: 1 + draw(2) as u64, units }, vec![first])
            }
            _ => (OperatorKind::CrossEntropy, vec![first]),
        };
        // What does not fit is drawn again.
        operators.extend(Operator::new(kind, &given).ok().filter(|operator| operator.dims.len() <= 5));
    }
    OperatorProfile { operators, cutoff: 1 + u32::from(seed.is_multiple_of(3)) }
}

/// The graph as a file's text.
pub(crate) fn written(profile: &OperatorProfile) -> String {
    let names = (0..profile.operators.len()).map(|node| format!("operator {node}")).collect();
    text(&OperatorFile {
        names,
        profile: profile.clone(),
        limits: GivenLimits::default().with(LimitKind::Devices, 4).with(LimitKind::Flops, 1e12),
        provenance: "plantui generate alexnet".into(),
        assumptions: vec!["none".into()],
    })
}

/// The graph as a workload, through its text.
pub(crate) fn loaded(profile: &OperatorProfile) -> Workload {
    workload::load_bytes(written(profile).as_bytes(), "random.json", "random").unwrap_or_else(|error| panic!("{error}"))
}
