//! Prices of a plan on several kinds of devices: of its devices for an hour, and of its traffic.

use super::{iteration::HOUR, layout};
use crate::{cluster::Limits, plan::Plan, workload::Workload};

/// Prices of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanPrices {
    /// Price of its devices for an hour.
    pub per_hour: f64,
    /// Price of the traffic of a sequence.
    pub traffic: f64,
}

impl PlanPrices {
    /// Prices of a plan; `None` on one kind of device, and without the price of one that it uses.
    pub fn of(workload: &Workload, limits: &Limits, plan: &Plan) -> Option<Self> {
        let profile = workload.mixed()?;
        let pipeline = layout::pipeline(profile, limits, plan).ok()?;
        let traffic = pipeline.traffic_cost(profile) / f64::from(pipeline.batch.max(1));
        Some(PlanPrices { per_hour: pipeline.price_per_hour(profile)?, traffic })
    }

    /// Cost of an iteration of `seconds` with so many sequences.
    pub fn of_iteration(&self, seconds: f64, sequences: f64) -> f64 {
        self.per_hour * seconds / HOUR + self.traffic * sequences
    }
}
