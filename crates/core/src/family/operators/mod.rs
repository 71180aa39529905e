//! Operators whose iteration spaces are split over all devices: PaSE's graphs.

pub(crate) mod check;
mod describe;
mod offers;
mod program;
mod splits;
pub mod usage;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{CheckContext, Family, check::degrees, platform::Platform};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score},
    simulate::{Pipeline, SimulatorSettings},
    workload::{
        NodeIndex, OperatorProfile, Workload,
        operators::{BatchNorm, CostRules, WHOLE},
    },
};

pub use splits::operator_parts;

/// Default operations per second and bytes per second, those of the published PaSE program.
const PASE_FLOPS: f64 = 10e12;
const PASE_BANDWIDTH: f64 = 16e9;

impl Platform for OperatorProfile {}

impl Family for OperatorProfile {
    fn id(&self) -> &'static str {
        "operators"
    }

    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::OPERATORS
    }

    fn field(&self, kind: LimitKind) -> Option<&'static str> {
        match kind {
            LimitKind::Devices => Some("devices"),
            LimitKind::Memory => Some("memory"),
            LimitKind::Flops => Some("flops"),
            LimitKind::Bandwidth => Some("bandwidth"),
            _ => None,
        }
    }

    fn assumed_limits(&self) -> &'static [(LimitKind, f64)] {
        const ASSUMED: [(LimitKind, f64); 3] = [
            (LimitKind::Flops, PASE_FLOPS),
            (LimitKind::Bandwidth, PASE_BANDWIDTH),
            (LimitKind::Memory, f64::INFINITY),
        ];
        &ASSUMED
    }

    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure> {
        vec![Measure::OperatorCost(rules(options))]
    }

    fn check(&self, checked: &CheckContext<'_>, score: &mut Score) {
        degrees(checked.limits, checked.plan, &mut score.violations);
        check::check(checked.workload, self, checked.limits, checked.plan, score);
    }

    fn pipeline(&self, workload: &Workload, limits: &Limits, plan: &Plan, _settings: &SimulatorSettings) -> Pipeline {
        program::pipeline(workload, limits, plan)
    }

    fn example_choice(&self, _node: NodeIndex) -> &str {
        WHOLE
    }
}

/// Rules of a planner's options; as published if not given.
fn rules(options: &BTreeMap<String, Value>) -> CostRules {
    let says = |name: &str, word: &str| options.get(name).and_then(Value::as_str) == Some(word);
    CostRules {
        parallel_edges: says("parallel_edges", "all"),
        batch_norm: if says("batch_norm", "per-channel") { BatchNorm::PerChannel } else { BatchNorm::Published },
    }
}
