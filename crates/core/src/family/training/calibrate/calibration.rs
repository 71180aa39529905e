//! Calibration of a software stack by measured runs: factors on the shipped constants.

use serde::{Deserialize, Serialize};

use crate::workload::training::constants::Constants;

/// Schema of a calibration file.
pub(super) const SCHEMA: &str = "plantui.calibration/1";

/// Factors fitted on measured runs. As a file it is a JSON object with these fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// `plantui.calibration/1`.
    pub schema: String,
    /// Model of the runs.
    pub model: String,
    /// Hardware of the runs.
    pub hardware: String,
    /// Software stack of the runs.
    pub stack: String,
    /// Number of runs.
    pub runs: u32,
    /// Factor on the rate of products, attention and elementwise kernels.
    pub compute: f64,
    /// Factor on the rate of all links.
    pub links: f64,
    /// Factor on the exposed part of data-parallel transfers.
    pub data_exposed: f64,
    /// Factor on a stage's memory, if runs state their memory.
    pub memory: f64,
    /// Mean error of the runs, each predicted from the others. With a single run, its error before the fit.
    pub left_out_error: f64,
}

impl Calibration {
    /// Constants with the factors applied.
    pub fn apply(&self, constants: &Constants) -> Constants {
        Constants {
            gemm_16: constants.gemm_16 * self.compute,
            gemm_8: constants.gemm_8 * self.compute,
            attention: constants.attention * self.compute,
            memory: constants.memory * self.compute,
            links: constants.links * self.links,
            data_exposed: (constants.data_exposed * self.data_exposed).min(1.0),
            fsdp_exposed: (constants.fsdp_exposed * self.data_exposed).min(1.0),
            ..*constants
        }
    }

    /// Reason why a file's content cannot be used, if it cannot.
    pub fn problem(&self) -> Option<String> {
        if self.schema != SCHEMA {
            return Some(format!("schema is `{}`, must be {SCHEMA}", crate::text::printable(&self.schema)));
        }
        let factors = [
            ("compute", self.compute),
            ("links", self.links),
            ("data_exposed", self.data_exposed),
            ("memory", self.memory),
        ];
        let odd = factors.into_iter().find(|(_, factor)| !(*factor > 0.01 && *factor < 100.0))?;
        Some(format!("{} is {}, must be a factor between 0.01 and 100", odd.0, odd.1))
    }
}
