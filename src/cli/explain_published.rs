//! What `plantui explain` says of published planners' plans: rows of its report, entries of its document.

use std::collections::BTreeMap;

use serde::Serialize;

use super::report::{self, line};
use crate::{study::rivals::Rival, units};

/// What published planners would do, and what of their batches takes longer.
pub(super) fn published(text: &mut String, rivals: &[Rival]) {
    if rivals.is_empty() {
        return;
    }
    line(text, format_args!("plans of published planners, simulated; the parts of the batch that differ"));
    let row = |rival: &Rival| {
        let sign = if rival.difference < 0.0 { "" } else { "+" };
        let difference = format!("{sign}{}", units::percent(rival.difference));
        vec![format!("  {}/batch", units::seconds(rival.batch_s)), difference, rival.planner.name.into(), rival.told()]
    };
    report::table(text, &rivals.iter().map(row).collect::<Vec<_>>());
    line(text, format_args!(""));
}

/// A published planner's plan in the same simulator.
#[derive(Debug, Serialize)]
pub(super) struct PublishedPart {
    planner: &'static str,
    schedule: &'static str,
    iteration_s: f64,
    /// Above the plan's own batch, relative.
    difference: f64,
    /// Seconds by which parts of its batch take longer; they add up to the difference but for trifles.
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
