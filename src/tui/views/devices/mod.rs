//! Devices: how busy and how full each device is, and who sends how much to whom.

mod draw;
mod operators;

pub(in crate::tui) use draw::draw;
