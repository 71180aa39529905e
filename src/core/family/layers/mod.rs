//! Layers with forward and backward times, planned over machines for a whole batch: PipeDream's profiles.

mod check;
pub mod costs;
mod describe;
mod offers;
mod program;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Checked, Family, platform::Platform};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score, SpeedupModel},
    simulate::{Pipeline, SimulatorSettings},
    workload::{LayerProfile, NodeIndex, Workload, piper::VANILLA},
};

/// Bytes of memory of the devices that DAPPLE's published programs plan for (V100), where nothing else is said.
const V100_MEMORY: f64 = 16e9;
/// Samples in a batch where nothing else is said: a profile of layers has no batch of its own.
const ASSUMED_BATCH: f64 = 128.0;

impl Platform for LayerProfile {}

impl Family for LayerProfile {
    fn id(&self) -> &'static str {
        "layers"
    }

    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::LAYERS
    }

    fn field(&self, _kind: LimitKind) -> Option<&'static str> {
        None
    }

    fn assumed_limits(&self) -> &'static [(LimitKind, f64)] {
        &[(LimitKind::Memory, V100_MEMORY), (LimitKind::Batch, ASSUMED_BATCH)]
    }

    fn on_machines(&self) -> bool {
        true
    }

    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure> {
        vec![Measure::Speedup(SpeedupModel::from_options(options))]
    }

    fn check(&self, checked: &Checked<'_>, score: &mut Score) {
        check::check(checked.workload, self, checked.limits, checked.plan, checked.stage_of, score);
    }

    fn alone_s(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Option<f64> {
        let Measure::Speedup(model) = plan.measure else { return None };
        Some(costs::stages(workload, self, limits, plan, &model).iter().flat_map(|stage| &stage.node_s).sum())
    }

    fn pipeline(&self, workload: &Workload, limits: &Limits, plan: &Plan, settings: &SimulatorSettings) -> Pipeline {
        program::pipeline(workload, self, limits, plan, settings)
    }

    fn example_choice(&self, _node: NodeIndex) -> &str {
        VANILLA
    }
}
