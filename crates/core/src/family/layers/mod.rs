//! Layers with forward and backward times, planned over machines for a whole batch: PipeDream's profiles.

mod check;
pub mod costs;
mod describe;
mod offers;
mod program;
pub(in crate::family) mod staged_graph;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    CheckContext, Family, ProfileBatch,
    dial::{Dial, DialError},
    platform::Platform,
};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score, SpeedupModel},
    simulate::{Pipeline, SimulatorSettings},
    units,
    workload::{Batch, LayerProfile, NodeIndex, Profile, Workload, formats::torch_graph::MOST_SAMPLES, piper::VANILLA},
};

/// Default bytes of memory of a device: that of the V100, for which DAPPLE's published programs plan.
const V100_MEMORY: f64 = 16e9;
/// Default samples in a batch: a profile of layers has no batch of its own.
const ASSUMED_BATCH: f64 = 128.0;

/// Dial of the profile's batch size.
pub const PROFILE_BATCH: &str = "profile-batch";

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

    fn dials(&self) -> Vec<Dial> {
        let samples = self.samples();
        let step = |factor: u32| [samples / factor, samples.saturating_mul(factor)];
        let steps = [2, 4].map(|factor| step(factor).map(|next| next.clamp(1, MOST_SAMPLES).to_string()));
        let help = "samples in the profiled batch";
        vec![Dial { id: PROFILE_BATCH, label: "profile batch".into(), help, value: samples.to_string(), steps }]
    }

    fn turned(&self, workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
        if id != PROFILE_BATCH {
            return Err(DialError(format!("{} is a measured profile: it has no `{id}` to change", workload.name)));
        }
        let samples = units::parse_count(value.trim()).map_err(|error| DialError(error.to_string()))?;
        if !(1..=MOST_SAMPLES).contains(&samples) {
            return Err(DialError(format!("{samples} samples are not from 1 to {MOST_SAMPLES}")));
        }
        Ok(Workload { profile: Profile::Layers(self.clone().of_batch(samples)), ..workload.clone() })
    }

    fn assumptions(&self, measure: Option<Measure>) -> Vec<String> {
        let mut taken = vec![];
        let untold = "the profile does not state the samples of the profiled batch";
        match self.batch {
            Batch::Stated(_) => {}
            Batch::BySizes(images) => taken.push(format!(
                "{untold}: the sizes of its input and of its linear layers' outputs mean {images} images, which are \
                assumed; --profile-batch N sets another number"
            )),
            Batch::Unknown(rows) => {
                let rows = rows.map_or_else(String::new, |rows| {
                    format!(
                        "; its linear layers have {rows} rows, \
                    samples or their tokens"
                    )
                });
                taken.push(format!("{untold}: 1 is assumed; --profile-batch N sets another number{rows}"));
            }
        }
        if let Some(Measure::Speedup(model)) = measure
            && model.optimizer_memory_scaling <= 1.0
        {
            taken.push(
                "memory counts parameters alone, without gradients and optimizer state; optimizer_memory_scaling=4 \
                adds both for Adam in the parameters' precision"
                    .into(),
            );
        }
        taken
    }

    fn profile_batch(&self) -> Option<ProfileBatch> {
        Some(ProfileBatch { samples: self.samples(), stated: matches!(self.batch, Batch::Stated(_)) })
    }

    fn on_machines(&self) -> bool {
        true
    }

    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure> {
        vec![Measure::Speedup(SpeedupModel::from_options(options, self.samples()))]
    }

    fn check(&self, checked: &CheckContext<'_>, score: &mut Score) {
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
