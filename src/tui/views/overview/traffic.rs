//! Traffic of a stage, for its block of figures.

use crate::{
    family::describe::{Amount, StageTraffic},
    tui::shown::ShownRun,
};

/// Row for each direction with traffic: `to`, `stage 2, 94.0 MiB`.
pub(super) fn rows(shown: &ShownRun, stage: usize) -> Vec<(&'static str, String)> {
    let told = |name, ends: fn(&StageTraffic) -> (usize, usize)| {
        let flows: Vec<(usize, Amount)> = shown
            .traffic
            .iter()
            .filter(|flow| ends(flow).0 == stage && flow.amount.value() > 0.0)
            .map(|flow| (ends(flow).1, flow.amount))
            .collect();
        let whom = match flows.as_slice() {
            [] => return None,
            [(other, _)] => shown.names.caption(*other).to_string(),
            many => format!("{} {}s", many.len(), shown.names.noun),
        };
        let sum = flows.iter().map(|(_, amount)| amount.value()).sum();
        Some((name, format!("{whom}, {}", flows[0].1.with(sum).text_beside(shown.limits.memory_limit()))))
    };
    let rows = [
        told("to", |flow: &StageTraffic| (flow.from, flow.to)),
        told("from", |flow: &StageTraffic| (flow.to, flow.from)),
    ];
    rows.into_iter().flatten().collect()
}
