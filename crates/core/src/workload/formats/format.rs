//! Names of the formats of workloads.

use std::fmt;

/// Formats of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WorkloadFormat {
    /// Piper's JSON.
    Piper,
    /// The JSON of device placement.
    Placement,
    /// PipeDream's layer profile, the text that DAPPLE reads.
    #[serde(rename = "pipedream")]
    PipeDream,
    /// plantui's own JSON of operator graphs.
    Operators,
    /// Hugging Face model configuration, for training.
    HuggingFace,
    /// plantui's own JSON of a model and its training settings.
    Training,
    /// plantui's own JSON of layers with costs on several kinds of devices.
    Mixed,
    /// Training configuration of Sailor, with its tables beside it.
    Sailor,
}

impl fmt::Display for WorkloadFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WorkloadFormat::Piper => "piper",
            WorkloadFormat::Placement => "placement",
            WorkloadFormat::PipeDream => "pipedream",
            WorkloadFormat::Operators => "operators",
            WorkloadFormat::HuggingFace => "hugging-face",
            WorkloadFormat::Training => "training",
            WorkloadFormat::Mixed => "mixed",
            WorkloadFormat::Sailor => "sailor",
        })
    }
}
