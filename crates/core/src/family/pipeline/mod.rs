//! Pipelines of stages with replicas and tensor degrees, whose nodes have modes: Piper's profile.

mod any_schedule;
mod batch;
pub(crate) mod check;
mod describe;
mod offers;
mod orders;
mod program;
pub mod result_file;
mod routed;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{CheckContext, Family, platform::Platform};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score},
    simulate::{Pipeline, SimulatorSettings},
    workload::{NodeIndex, PiperProfile, Workload, piper::VANILLA},
};

impl Platform for PiperProfile {}

impl Family for PiperProfile {
    fn id(&self) -> &'static str {
        "pipelines"
    }

    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::PIPELINE
    }

    fn field(&self, kind: LimitKind) -> Option<&'static str> {
        match kind {
            LimitKind::Devices => Some("maxDevices"),
            LimitKind::Memory => Some("maxMemoryPerDevice"),
            LimitKind::Microbatches => Some("mbsInBatch"),
            LimitKind::Bandwidth => Some("bandwidth"),
            _ => None,
        }
    }

    fn measures(&self, _options: &BTreeMap<String, Value>) -> Vec<Measure> {
        vec![Measure::TimePerSample, Measure::IterationTime]
    }

    fn check(&self, checked: &CheckContext<'_>, score: &mut Score) {
        check::check(checked, self, score);
    }

    fn simulates(&self, measure: Measure) -> bool {
        measure == Measure::IterationTime
    }

    fn pipeline(&self, workload: &Workload, limits: &Limits, plan: &Plan, settings: &SimulatorSettings) -> Pipeline {
        program::pipeline(workload, self, limits, plan, settings)
    }

    fn example_choice(&self, node: NodeIndex) -> &str {
        let modes = self.nodes.get(node.index()).and_then(|node| node.degrees.first()).map(|degree| &degree.modes);
        modes.and_then(|modes| modes.first()).map_or(VANILLA, |mode| &mode.id)
    }
}
