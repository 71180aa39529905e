//! What of a workload itself can be turned while it is planned: of a model to be trained its hardware, the length of its
//! sequences, its precision; of a layer profile the batch that was measured. The other families have none.

use thiserror::Error;

use super::of;
use crate::workload::Workload;

/// One thing that can be turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dial {
    /// The name of its flag without dashes, such as `sequence-length`.
    pub id: &'static str,
    /// What it is called beside its value.
    pub label: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Where it stands, as text that is read back as the same.
    pub value: String,
    /// The next value below and above, and the ones that a large step leads to.
    pub steps: [[String; 2]; 2],
}

impl Dial {
    /// The value that a step leads to.
    pub fn step(&self, up: bool, large: bool) -> &str {
        &self.steps[usize::from(large)][usize::from(up)]
    }
}

/// Why a dial cannot be turned so.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NotTurned(pub(crate) String);

/// Everything of a workload that can be turned, in the order to show it.
pub fn dials(workload: &Workload) -> Vec<Dial> {
    of(workload).dials()
}

/// The workload with a dial of this name turned to a value.
///
/// # Errors
/// [`NotTurned`] with what would do.
pub fn turned(workload: &Workload, id: &str, value: &str) -> Result<Workload, NotTurned> {
    of(workload).turned(workload, id, value)
}
