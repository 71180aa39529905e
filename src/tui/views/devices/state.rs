//! Rows of the view: devices of a stage folded into one row, or one row each.

use super::{fails::Failed, groups::Groups};

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// Index of the selected row.
    pub cursor: usize,
    /// Stages shown with one row per device.
    pub unfolded: Vec<usize>,
    /// Machine that fails, while its ways on are shown.
    pub failed: Option<Box<Failed>>,
    /// Groups of devices, while they are shown.
    pub groups: Option<Box<Groups>>,
    /// Device whose groups are bright, by its place in the plan.
    pub rank: usize,
}

/// Row of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceRow {
    /// All devices of a stage.
    Stage(usize),
    /// One device of a stage.
    Device(usize, u32),
    /// Devices that no stage uses.
    Unused,
}

impl DeviceRow {
    /// Stage it belongs to; `usize::MAX` for unused devices.
    pub(crate) fn stage(self) -> usize {
        match self {
            DeviceRow::Stage(stage) | DeviceRow::Device(stage, _) => stage,
            DeviceRow::Unused => usize::MAX,
        }
    }
}
