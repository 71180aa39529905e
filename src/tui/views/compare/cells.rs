//! Cells of a stage in Compare, both below the table and side by side.

use crate::{family, tui::shown::ShownRun, units};

/// Cells of a stage, as text.
pub(super) struct StageCells {
    pub name: String,
    /// Replicas × shards: `4 × 2`.
    pub degrees: String,
    pub nodes: String,
    pub time: String,
    /// Memory in the unit of the limit.
    pub memory: String,
}

impl StageCells {
    /// Cells of a stage of the shown plan; `None` if there is no such stage.
    pub(super) fn of(shown: &ShownRun, stage: usize) -> Option<StageCells> {
        let (plan, score) = shown.plan()?;
        let (part, scored) = (plan.stages.get(stage)?, score.stages.get(stage));
        Some(StageCells {
            name: shown.names.short(stage).to_string(),
            degrees: shown.names.degrees_of(part),
            nodes: family::of(&shown.workload).layers(&part.nodes).to_string(),
            time: scored.map_or("-".into(), |scored| units::seconds(scored.load_s)),
            memory: scored
                .map_or("-".into(), |scored| units::bytes_beside(scored.memory_bytes, shown.limits.memory_limit())),
        })
    }
}
