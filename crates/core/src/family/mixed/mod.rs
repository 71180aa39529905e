//! Layers on several kinds of devices.

pub mod iteration;
