//! Operator graphs placed on accelerators and CPUs, for throughput or for the latency of one sample.

pub mod accelerator_memory;
pub(crate) mod check;
mod check_latency;
mod describe;
mod offers;
mod program;
mod sample_program;
pub mod single_sample;
pub mod split_file;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{CheckContext, Family, platform::Platform};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score},
    simulate::{Pipeline, SimulatorSettings},
    workload::{NodeIndex, PlacementProfile, Workload, placement::ACCELERATOR},
};

impl Platform for PlacementProfile {}

impl Family for PlacementProfile {
    fn id(&self) -> &'static str {
        "placements"
    }

    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::PLACEMENT
    }

    fn field(&self, kind: LimitKind) -> Option<&'static str> {
        match kind {
            LimitKind::Devices => Some("maxFPGAs"),
            LimitKind::Cpus => Some("maxCPUs"),
            LimitKind::Memory => Some("maxSizePerFPGA"),
            _ => None,
        }
    }

    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure> {
        let subgraphs = options.get("subgraphs").and_then(Value::as_u64).and_then(|q| u32::try_from(q).ok());
        let latency = Measure::Latency { subgraphs: subgraphs.filter(|&q| q > 0) };
        vec![Measure::MaxLoad, Measure::SeparateMaxima, latency]
    }

    fn check(&self, checked: &CheckContext<'_>, score: &mut Score) {
        check::check(checked.workload, self, checked.limits, checked.plan, checked.stage_of, score);
    }

    fn pipeline(&self, workload: &Workload, limits: &Limits, plan: &Plan, _settings: &SimulatorSettings) -> Pipeline {
        match plan.measure {
            Measure::Latency { .. } => sample_program::pipeline(workload, self, plan),
            _ => program::pipeline(workload, self, limits, plan),
        }
    }

    // The published files of placements have no limits: they are in the workload's.
    fn plans_name_limits(&self) -> bool {
        false
    }

    fn numbered(&self, plan: Plan, accelerators: Option<u32>) -> Plan {
        plan.with_devices_by_kind(accelerators.unwrap_or(0))
    }

    fn example_choice(&self, _node: NodeIndex) -> &str {
        ACCELERATOR
    }
}
