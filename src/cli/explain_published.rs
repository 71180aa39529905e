//! Published planners' plans in `plantui explain`: rows of its report, entries of its document.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::report::{self, line};
use crate::{study::rivals::Rival, units};

/// Appends the published planners' plans and the differing parts of their iterations.
pub(super) fn published(text: &mut String, rivals: &[Rival]) {
    if rivals.is_empty() {
        return;
    }
    line(text, format_args!("published planners, simulated, and where their iteration differs"));
    let row = |rival: &Rival| {
        let sign = if rival.difference < 0.0 { "" } else { "+" };
        let difference = format!("{sign}{}", units::percent(rival.difference));
        vec![
            format!("  {}/iteration", units::seconds(rival.batch_s)),
            difference,
            rival.planner.name.into(),
            rival.summary(),
        ]
    };
    report::table(text, &rivals.iter().map(row).collect::<Vec<_>>());
    line(text, format_args!(""));
}

/// Published planner's plan in the same simulator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PublishedPart {
    planner: &'static str,
    schedule: &'static str,
    iteration_s: f64,
    /// Relative excess over the explained plan's iteration.
    difference: f64,
    /// Excess of each part of its iteration, seconds; they add up to the difference except for negligible parts.
    parts: BTreeMap<&'static str, f64>,
    stages: usize,
    devices: u32,
}

impl From<&Rival> for PublishedPart {
    fn from(rival: &Rival) -> Self {
        PublishedPart {
            planner: rival.planner.id,
            schedule: rival.schedule.id(),
            iteration_s: rival.batch_s,
            difference: rival.difference,
            parts: rival.parts.iter().copied().collect(),
            stages: rival.stages,
            devices: rival.devices,
        }
    }
}
