//! PaSE against the published program: every vertex of its networks, and every minimum of `tests/figures/pase.tsv`.

use crate::common::pase_figures::pase_cases;
use plantui::{
    generate::networks::PaseNetwork,
    planner::{
        Search,
        pase::{
            data_parallel,
            model::PaseModel,
            order::Order,
            solve::{Method, solve},
            space::Space,
        },
    },
    workload::operators::{Operator, OperatorKind},
};

fn joined(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join("x")
}

/// The published order of summed letters is that of a hash set, so they are compared sorted.
fn with_sorted_sums(column: &str, outputs: &str) -> String {
    let mut dims: Vec<u64> = column.split('x').map(|extent| extent.parse().unwrap()).collect();
    let result = outputs.split('x').count();
    dims[result..].sort_unstable();
    joined(dims)
}

/// The columns of `pase-graphs.tsv` after the vertex.
fn described(operator: &Operator) -> [String; 5] {
    let inputs = operator.inputs.iter().map(|input| {
        let shape = joined(input.tensor.shape.iter().copied());
        input.source.map_or(shape.clone(), |source| format!("{shape}<{}.{}", source.node, source.output))
    });
    let detail = match &operator.kind {
        OperatorKind::Convolution { pointwise, .. }
        | OperatorKind::Elementwise { pointwise }
        | OperatorKind::Dense { pointwise, .. }
        | OperatorKind::Einsum { pointwise, .. } => format!("pointwise={pointwise}"),
        OperatorKind::Normalisation { axis } | OperatorKind::Softmax { axis } => format!("axis={axis}"),
        OperatorKind::Stack | OperatorKind::Unstack => "axis=0".into(),
        OperatorKind::Mean { axes } => {
            format!("axis={}", axes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        }
        OperatorKind::Pooling { window, .. } => format!("window={}", joined(*window)),
        OperatorKind::Lstm { layers, .. } => format!("layers={layers}"),
        _ => "-".into(),
    };
    [
        operator.kind_name().into(),
        joined(operator.dims.iter().map(|dim| dim.extent)),
        // An LSTM's and a convolution's weights are not listed.
        inputs.collect::<Vec<_>>().join(" "),
        operator.outputs.iter().map(|t| joined(t.shape.iter().copied())).collect::<Vec<_>>().join(" "),
        detail,
    ]
}

#[test]
fn every_vertex_is_that_of_the_published_networks() {
    let mut seen = 0;
    for network in PaseNetwork::ALL {
        let (names, profile) = network.build(&network.defaults()).unwrap();
        let rows: Vec<Vec<&str>> = include_str!("../figures/pase-graphs.tsv")
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .filter(|fields| fields[0] == network.id())
            .collect();
        assert_eq!(profile.operators.len(), rows.len(), "{}", network.id());
        for (operator, (name, row)) in profile.operators.iter().zip(names.iter().zip(&rows)) {
            let mut ours = described(operator);
            let mut theirs: Vec<String> = row[2..].iter().map(ToString::to_string).collect();
            if theirs[0] == "einsum" {
                ours[1] = with_sorted_sums(&ours[1], &ours[3]);
                theirs[1] = with_sorted_sums(&theirs[1], &theirs[3]);
            }
            assert_eq!(ours.as_slice(), theirs, "{} {name}", network.id());
            seen += 1;
        }
        let links = profile.links();
        let edges = [13, 277, 253, 3, 256][PaseNetwork::ALL.iter().position(|&n| n == network).unwrap()];
        assert_eq!(links.len(), edges, "{}", network.id());
        let parallel: usize = links.iter().map(|link| link.slots.len() - 1).sum();
        assert_eq!(parallel, if network == PaseNetwork::Transformer { 24 } else { 0 }, "{}", network.id());
    }
    assert_eq!(seen, 686);
}

#[test]
fn every_minimum_is_that_of_the_published_program() {
    let mut published = 0;
    for case in pase_cases() {
        let profile = case.profile();
        let model = PaseModel::new(&profile, &case.settings).unwrap();
        let most = model.spaces.iter().map(|space| space.len()).max();
        assert_eq!(most, Some(case.max_configurations), "{}", case.name());
        let start = vec![0; model.spaces.len()];
        let serial = model.pairwise.cost(&start);
        assert!((serial - case.serial_cost).abs() <= 1e-12 * case.serial_cost, "{}: {serial}", case.name());
        let ways = data_parallel::ways(&profile, case.settings.devices, 1);
        assert_eq!(ways, case.data_parallel_ways, "{}", case.name());
        let single = |_: usize, operator: &Operator| Some(Space::single(data_parallel::split(operator, ways)));
        let parallel =
            PaseModel::with_spaces(&profile, &case.settings, single, &|| false).unwrap().pairwise.cost(&start);
        let relative = (parallel - case.data_parallel_cost).abs() / case.data_parallel_cost;
        assert!(relative <= 1e-12, "{}: data parallelism {parallel}", case.name());
        let method = Method { order: Order::MinDegree, bounds: true };
        let found = solve(&model.pairwise, start, method, &Search::default(), |_, _| {});
        let relative = (found.cost - case.min_cost).abs() / case.min_cost;
        assert!(relative <= 1e-12, "{}: {} instead of {}", case.name(), found.cost, case.min_cost);
        assert!(found.proven && found.lower == found.cost, "{}", case.name());
        published += usize::from(case.published);
    }
    assert_eq!(published, 63);
}
