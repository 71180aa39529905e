//! Splits of a plan's operators for the plan document.

use crate::{
    plan::{Plan, document::OperatorPart},
    workload::{Choice, NodeIndex, Workload},
};

/// Split of every operator, as in the plan document; empty for workloads without iteration spaces.
pub fn operator_parts(workload: &Workload, plan: &Plan) -> Vec<OperatorPart> {
    let Some(profile) = workload.operators() else { return vec![] };
    let chosen = plan.stages.iter().flat_map(|stage| stage.nodes.iter().zip(&stage.choices));
    let part = |(&node, choice): (&NodeIndex, &Choice)| {
        let operator = profile.operators.get(node.index())?;
        let splits = operator.degrees(choice.split()?).ok()?;
        let named = operator.dims.iter().zip(splits).map(|(dim, split)| (dim.name.clone(), split.into()));
        Some(OperatorPart { node: workload.nodes[node].id, splits: named.collect() })
    };
    chosen.filter_map(part).collect()
}
