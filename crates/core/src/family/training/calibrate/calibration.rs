//! Calibration of a software stack by measured runs: factors on the shipped constants.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kernels::ByConstant;
use crate::{
    family::training::fit::Factor,
    workload::training::{constants::Constants, hardware::Generation, run::Stack},
};

/// Schema of a calibration file.
pub(crate) const SCHEMA: &str = "plantui.calibration/1";

/// Factors that are fitted on runs.
pub(super) const FACTORS: [Factor; 3] = [
    Factor {
        name: "compute rate",
        constants: &["gemm_16", "gemm_8", "gemm_4", "attention", "attention_long", "memory"],
        prior: 0.2,
    },
    Factor { name: "link rate", constants: &["links"], prior: 0.4 },
    Factor {
        name: "exposed data-parallel share",
        constants: &["data_exposed", "fsdp_exposed", "fsdp_exposed_across"],
        prior: 0.6,
    },
];

/// Factors fitted on measured runs. As a file it is a JSON object with these fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Factors on single constants from measured kernels, by name of the constant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernels: ByConstant,
    /// Mean error of the runs, each predicted from the others. With a single run, its error before the fit.
    pub left_out_error: f64,
}

impl Calibration {
    /// Calibration with these logarithms of the [`FACTORS`], without its source.
    pub(super) fn of_logs(logs: &[f64]) -> Self {
        let value = |index: usize| logs.get(index).map_or(1.0, |log| log.exp());
        Calibration {
            schema: SCHEMA.into(),
            model: String::new(),
            hardware: String::new(),
            stack: String::new(),
            runs: 0,
            compute: value(0),
            links: value(1),
            data_exposed: value(2),
            memory: 1.0,
            kernels: BTreeMap::new(),
            left_out_error: 0.0,
        }
    }

    /// Constants with the factors applied.
    pub fn apply(&self, constants: &Constants) -> Constants {
        let mut measured = *constants;
        for (name, factor) in &self.kernels {
            if let Some(value) = measured.by_name(name) {
                *value *= factor;
            }
        }
        let logs = [self.compute, self.links, self.data_exposed].map(f64::ln);
        Factor::apply(&FACTORS, &logs, &measured)
    }

    /// The measurements behind it in a sentence, with the error of runs predicted from the others.
    pub fn summary(&self) -> String {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let runs = crate::units::counted(self.runs as usize, "run");
        let [model, stack] = [&self.model, &self.stack].map(|name| crate::text::printable(name));
        let on_runs = format!("{runs} of {model} with {stack}");
        let error = match self.runs {
            0 => "no measured run tests it".into(),
            1 => format!("error before the fit {}", percent(self.left_out_error)),
            _ => format!("leave-one-out error {}", percent(self.left_out_error)),
        };
        match (self.kernels.is_empty(), self.runs) {
            (true, _) => format!("calibrated on {on_runs}; {error}"),
            (false, 0) => format!("calibrated on measured kernels for {stack}; {error}"),
            (false, _) => format!("calibrated on measured kernels and {on_runs}; {error}"),
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
        let mut any = Constants::shipped(Generation::Hopper, Stack::Plain);
        if let Some(name) = self.kernels.keys().find(|name| any.by_name(name).is_none()) {
            let known = any.named().map(|(name, _)| name).join(", ");
            return Some(format!("kernels has `{}`, must name a constant: {known}", crate::text::printable(name)));
        }
        let kernels = self.kernels.iter().map(|(name, factor)| (name.as_str(), *factor));
        let odd = factors.into_iter().chain(kernels).find(|(_, factor)| !(*factor > 0.01 && *factor < 100.0))?;
        Some(format!("{} is {}, must be a factor between 0.01 and 100", odd.0, odd.1))
    }
}
