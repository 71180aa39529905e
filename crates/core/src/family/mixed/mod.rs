//! Layers on several kinds of devices: each stage on one kind with one tensor degree, all with the same number of
//! replicas.
//!
//! Plans are measured by their iteration time in closed form ([`iteration`], after Sailor, SOSP 2025); the simulator plays
//! the same stages. Costs are measured, or derived from a model's sizes and each kind's data sheet.

mod check;
mod describe;
mod dials;
pub mod iteration;
pub mod layout;
pub mod prices;
mod program;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    CheckContext, Family,
    dial::{Dial, DialError},
    kinds::KindCount,
    offers::NodeOffers,
    platform::Platform,
};
use crate::{
    cluster::{LimitKind, Limits, MOST_DEVICES},
    plan::{Measure, Plan, Score, Stage, document::TrainingPart},
    simulate::{Pipeline, SimulatorSettings},
    workload::{
        NodeIndex, Workload,
        mixed::{DeviceKind, MixedProfile},
    },
};

/// Default number of sequences of an iteration.
const ASSUMED_BATCH: f64 = 128.0;

impl Platform for MixedProfile {
    fn has_setting(&self, name: &str) -> bool {
        self.model().is_some_and(|model| model.has_setting(name))
    }

    fn with_setting(&self, workload: &Workload, name: &str, value: &str) -> Result<Workload, DialError> {
        dials::with_model(workload, self, &|model| super::of(model).with_setting(model, name, value))
    }

    fn training_part(&self) -> Option<TrainingPart> {
        self.model().map(Into::into)
    }

    fn on_kinds(&self, workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
        dials::on_kinds(workload, self, kinds)
    }

    fn kind_counts(&self) -> Vec<KindCount> {
        let own = |kind: &DeviceKind| KindCount {
            id: kind.id.clone(),
            count: kind.count,
            price_per_hour: kind.price_per_hour,
        };
        self.kinds.iter().map(own).collect()
    }

    fn machine_size(&self, kind: usize) -> u32 {
        self.kinds[kind].machine.max(1)
    }
}

impl NodeOffers for MixedProfile {}

impl Family for MixedProfile {
    fn id(&self) -> &'static str {
        "mixed"
    }

    fn limits(&self) -> &'static [LimitKind] {
        &[LimitKind::Devices, LimitKind::Batch]
    }

    fn field(&self, kind: LimitKind) -> Option<&'static str> {
        (kind == LimitKind::Batch).then_some("batch")
    }

    fn most_devices(&self) -> u32 {
        MOST_DEVICES
    }

    fn assumed_limits(&self) -> &'static [(LimitKind, f64)] {
        &[(LimitKind::Batch, ASSUMED_BATCH)]
    }

    fn dials(&self) -> Vec<Dial> {
        dials::dials(self)
    }

    fn turned(&self, workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
        dials::turned(workload, self, id, value)
    }

    fn example(&self, kind: LimitKind) -> &'static str {
        if kind == LimitKind::Devices { "32xa100-40,96xv100-16" } else { kind.example() }
    }

    fn assumptions(&self, _measure: Option<Measure>) -> Vec<String> {
        self.remarks.clone()
    }

    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure> {
        match options.get("minimise").and_then(Value::as_str) {
            Some("cost") => vec![Measure::IterationCost, Measure::PipelineTime],
            _ => vec![Measure::PipelineTime, Measure::IterationCost],
        }
    }

    fn check(&self, checked: &CheckContext<'_>, score: &mut Score) {
        check::check(self, checked.limits, checked.plan, score);
    }

    fn memory_limit(&self, _limits: &Limits, stage: &Stage) -> f64 {
        layout::kind_of(self, stage).map_or(f64::INFINITY, |kind| self.kinds[kind].memory_bytes)
    }

    fn devices_like(&self, plan: &Plan, stage: &Stage) -> Vec<u32> {
        layout::free_devices(self, plan, stage)
    }

    fn pipeline(&self, _workload: &Workload, limits: &Limits, plan: &Plan, _settings: &SimulatorSettings) -> Pipeline {
        program::pipeline(self, limits, plan)
    }

    fn settings(&self, pipeline: &Pipeline, asked: &SimulatorSettings) -> SimulatorSettings {
        SimulatorSettings { optimizer_step_s: pipeline.settings.optimizer_step_s, ..*asked }
    }

    fn example_choice(&self, _node: NodeIndex) -> &str {
        "micro-batch 1"
    }
}
