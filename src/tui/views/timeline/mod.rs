//! Timeline: the batch, event by event.

mod cursor;
mod draw;
mod head;
mod memory;
mod rows;
mod state;
mod whole;

pub(in crate::tui) use draw::draw;
pub(in crate::tui) use state::TimelineState;
