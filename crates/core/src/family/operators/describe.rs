//! Words and columns of operators with iteration spaces.

use crate::{
    cluster::Limits,
    family::describe::{Amount, Describe, Detail, StageTraffic},
    plan::Plan,
    units,
    workload::{NodeIndex, Operator, OperatorProfile, Workload},
};

impl Describe for OperatorProfile {
    fn columns(&self) -> &'static [(&'static str, usize)] {
        &[("kind", 12), ("operations", 11), ("weights", 10), ("iterates over", 26)]
    }

    fn cells(&self, members: &[NodeIndex]) -> Vec<String> {
        let operator = &self.operators[members[0]];
        vec![
            operator.kind_name().to_string(),
            units::count_short(operator.operations()),
            units::count_short(operator.parameters()),
            space(operator),
        ]
    }

    // Operators of one kind differ in their iteration spaces, so each has a row.
    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>> {
        workload.indices().map(|node| vec![node]).collect()
    }

    fn nouns(&self) -> &'static str {
        "operators"
    }

    fn weight(&self, node: NodeIndex) -> f64 {
        self.operators[node].operations()
    }

    fn weight_format(&self) -> (&'static str, fn(f64) -> String) {
        ("operations", units::operations)
    }

    fn one_stage(&self) -> bool {
        true
    }

    fn details(&self, node: NodeIndex) -> Vec<Detail> {
        let operator = &self.operators[node];
        let work = units::count_short(operator.operations());
        let bytes = units::bytes(operator.whole_bytes());
        vec![
            Detail::Line(format!("{} over {}", operator.kind_name(), space(operator))),
            Detail::Line(format!("{work} operations in an iteration; {bytes} of weights, gradients and outputs")),
        ]
    }

    fn edge(&self, workload: &Workload, edge: usize) -> Amount {
        let (from, to) = workload.edge(edge);
        Amount::Bytes(self.link_bytes(from, to))
    }

    // All operators share their devices. Their transfers are in their own costs.
    fn flows(&self, _workload: &Workload, _plan: &Plan) -> Vec<StageTraffic> {
        vec![]
    }

    fn times_of(&self) -> &'static str {
        "step"
    }

    fn batch(&self, _limits: &Limits) -> String {
        "one iteration".into()
    }
}

/// Iteration space of an operator: `b 128 × n 512`.
fn space(operator: &Operator) -> String {
    operator.dims.iter().map(|dim| format!("{} {}", dim.name, dim.extent)).collect::<Vec<_>>().join(" × ")
}
