//! The rows of the view: devices of a stage folded into one, or each by itself.

use crate::tui::model::Model;

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// The selected row.
    pub cursor: usize,
    /// Stages that show every device.
    pub unfolded: Vec<usize>,
}

/// A row of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceRow {
    /// All devices of a stage.
    Stage(usize),
    /// One device of a stage.
    Device(usize, u32),
    /// Those that no stage uses; how many.
    Unused,
}

impl DeviceRow {
    /// The stage it belongs to; for unused devices none that there is.
    pub(crate) fn stage(self) -> usize {
        match self {
            DeviceRow::Stage(stage) | DeviceRow::Device(stage, _) => stage,
            DeviceRow::Unused => usize::MAX,
        }
    }
}

impl Model {
    /// The rows of the view, from the top.
    pub(crate) fn device_rows(&self) -> Vec<DeviceRow> {
        let Some(shown) = &self.shown else { return vec![] };
        let Some((plan, _)) = shown.plan() else { return vec![] };
        let mut rows = vec![];
        for (i, stage) in plan.stages.iter().enumerate() {
            rows.push(DeviceRow::Stage(i));
            if self.views.devices.unfolded.contains(&i) {
                rows.extend(stage.devices.iter().map(|&device| DeviceRow::Device(i, device)));
            }
        }
        if !shown.names.unused.is_empty() {
            rows.push(DeviceRow::Unused);
        }
        rows
    }
}
