//! Sweep: the objective over a limit.

mod curves;
mod draw;
mod heat;
mod side;
pub(in crate::tui) mod state;

pub(in crate::tui) use draw::draw;
