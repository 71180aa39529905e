//! Dials: properties of a workload that can be changed during planning. A model to be trained has its hardware,
//! sequence length and precision; a layer profile has its measured batch. The other families have none.

use std::borrow::Cow;

use thiserror::Error;

use super::of;
use crate::workload::Workload;

/// Property of a workload that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dial {
    /// Name of its flag without dashes, such as `sequence-length`.
    pub id: &'static str,
    /// Label beside its value.
    pub label: Cow<'static, str>,
    /// Explanation.
    pub help: &'static str,
    /// Current value, as text that parses to the same value.
    pub value: String,
    /// Next values below and above, for a small step and for a large step.
    pub steps: [[String; 2]; 2],
}

impl Dial {
    /// Value after a step.
    pub fn step(&self, up: bool, large: bool) -> &str {
        &self.steps[usize::from(large)][usize::from(up)]
    }
}

/// Reason why a dial cannot take a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DialError(pub(crate) String);

/// All dials of a workload, in display order.
pub fn dials(workload: &Workload) -> Vec<Dial> {
    of(workload).dials()
}

/// Sets the dial of this name to a value.
///
/// # Errors
/// [`DialError`] with the allowed values.
pub fn turned(workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
    of(workload).turned(workload, id, value)
}
