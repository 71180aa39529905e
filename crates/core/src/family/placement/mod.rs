//! Operator graphs placed on accelerators and CPUs, for throughput or for the latency of one sample.

pub mod accelerator_memory;
pub(crate) mod check;
mod check_latency;
mod describe;
mod kinds;
mod offers;
mod program;
mod sample_program;
pub mod single_sample;
pub mod split_file;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    CheckContext, Family,
    dial::{Dial, DialError},
    kinds::KindCount,
    platform::Platform,
};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score, Stage},
    simulate::{Pipeline, SimulatorSettings},
    text::printable,
    workload::{NodeIndex, PlacementProfile, Workload, placement::ACCELERATOR},
};

impl Platform for PlacementProfile {
    fn kind_counts(&self) -> Vec<KindCount> {
        kinds::counts(self)
    }

    fn on_kinds(&self, workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
        kinds::on_kinds(workload, self, kinds)
    }
}

impl Family for PlacementProfile {
    fn id(&self) -> &'static str {
        "placements"
    }

    fn limits(&self) -> &'static [LimitKind] {
        if self.kinds.is_empty() { &LimitKind::PLACEMENT } else { &LimitKind::OF_KINDS }
    }

    fn field(&self, kind: LimitKind) -> Option<&'static str> {
        match kind {
            LimitKind::Devices => Some("maxFPGAs"),
            LimitKind::Cpus => Some("maxCPUs"),
            LimitKind::Memory => Some("maxSizePerFPGA"),
            _ => None,
        }
    }

    fn dials(&self) -> Vec<Dial> {
        super::kinds::dials(&self.kind_counts(), self.kinds.iter().map(|_| 1))
    }

    fn turned(&self, workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
        let asked = super::kinds::turned(self.kind_counts(), id, value);
        let unknown = || Err(DialError(format!("{} has no setting `{}`", workload.name, printable(id))));
        asked.map_or_else(unknown, |kinds| self.on_kinds(workload, &kinds?))
    }

    fn first_cpu(&self, limits: &Limits) -> u32 {
        self.accelerators(limits)
    }

    fn memory_limit(&self, limits: &Limits, stage: &Stage) -> f64 {
        self.memory_on(limits, stage)
    }

    fn devices_like(&self, plan: &Plan, stage: &Stage) -> Vec<u32> {
        kinds::free_devices(self, plan, stage)
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
        // A number tells the kind of an accelerator, which no order does.
        if self.kinds.is_empty() { plan.with_devices_by_kind(accelerators.unwrap_or(0)) } else { plan }
    }

    fn example_choice(&self, _node: NodeIndex) -> &str {
        ACCELERATOR
    }
}
