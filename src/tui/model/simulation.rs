//! Simulation of the shown plan, its settings and its playback.

use std::sync::Arc;

use super::super::{playing::Playing, simulated::Simulated};
use crate::simulate::{Setup, SimulatorSettings};

/// Simulation of the shown plan, its settings and its playback.
pub(in crate::tui) struct Simulation {
    /// Schedule and settings of the simulator.
    pub(in crate::tui) setup: Setup,
    /// Initial settings of the simulator.
    pub(in crate::tui) first_settings: SimulatorSettings,
    /// Timeline of its plan.
    pub(in crate::tui) simulated: Option<Arc<Simulated>>,
    /// Playback of the simulated iteration.
    pub(in crate::tui) playing: Playing,
}
