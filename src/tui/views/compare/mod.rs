//! Compare: every planner's plan, and those that were pinned, on one table.

mod beside;
mod cells;
mod columns;
pub(in crate::tui) mod compared;
mod draw;
mod pictures;
pub(in crate::tui) mod pins;
pub(in crate::tui) mod preview;
pub(in crate::tui) mod side;
mod stages;
pub(in crate::tui) mod state;
mod update;

pub(in crate::tui) use draw::draw;
