//! Family of training workloads: limits, measure and program.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{configured, dials, iteration::IterationCosts, memory, program, score, split::StageSplit, wiring};
use crate::{
    cluster::{LimitKind, Limits, MOST_DEVICES},
    family::{
        CheckContext, Family,
        dial::{Dial, DialError},
    },
    plan::{Measure, Plan, Score},
    simulate::{Demands, Pipeline, SimulatorSettings},
    workload::{
        NodeIndex, TrainingProfile, Workload,
        piper::VANILLA,
        training::{ExpertOverlap, run::TrainingRun},
    },
};

/// Default number of sequences per iteration.
pub const USUAL_BATCH: u32 = 128;
/// Default number of devices and sequences.
const USUAL: [(LimitKind, f64); 2] = [(LimitKind::Devices, 64.0), (LimitKind::Batch, USUAL_BATCH as f64)];

/// Sets what passes of different microbatches save on each stage if a schedule lists them as pairs: the exchange of
/// tokens between experts behind the other pass, as under the overlap of batches.
fn pair(profile: &TrainingProfile, run: &TrainingRun, split: &StageSplit, pipeline: &mut Pipeline) {
    if run.layout.expert == 1 || run.settings.ep_overlap == ExpertOverlap::Batch {
        return;
    }
    let mut paired = run.clone();
    paired.settings.ep_overlap = ExpertOverlap::Batch;
    let costs = IterationCosts::of(&profile.model, &paired, &profile.accelerator, &profile.constants, split);
    for (stage, time) in pipeline.stages.iter_mut().zip(&costs.stages) {
        stage.listed_saving_s = time.saved * costs.growth;
    }
}

impl Family for TrainingProfile {
    fn id(&self) -> &'static str {
        "training"
    }

    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::LAYERS
    }

    fn field(&self, kind: LimitKind) -> Option<&'static str> {
        match kind {
            LimitKind::Devices => Some("devices"),
            LimitKind::Memory => Some("memory"),
            LimitKind::Batch => Some("global_batch"),
            _ => None,
        }
    }

    fn most_devices(&self) -> u32 {
        MOST_DEVICES
    }

    fn assumed_limits(&self) -> &'static [(LimitKind, f64)] {
        &USUAL
    }

    fn dials(&self) -> Vec<Dial> {
        dials::dials(self)
    }

    fn turned(&self, workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
        dials::turned(workload, id, value)
    }

    fn measures(&self, _options: &BTreeMap<String, Value>) -> Vec<Measure> {
        vec![Measure::IterationTime]
    }

    fn check(&self, checked: &CheckContext<'_>, score: &mut Score) {
        score::check(self, checked.limits, checked.plan, score);
    }

    fn pipeline(&self, _workload: &Workload, limits: &Limits, plan: &Plan, _settings: &SimulatorSettings) -> Pipeline {
        let (configuration, run) = wiring::run_of(self, plan, limits.samples());
        let Some(split) = configured::split(self, &configuration) else { return Pipeline::default() };
        if run.microbatches() == 0 {
            return Pipeline::default();
        }
        let costs = IterationCosts::of(&self.model, &run, &self.accelerator, &self.constants, &split);
        let held = memory::stages(&self.model, &run, &split);
        let mut pipeline = program::whole(&self.model, &run, &costs, &held);
        pair(self, &run, &split, &mut pipeline);
        if let (Some(topology), Some(_)) = (&plan.topology, &run.links) {
            let name = &topology.name;
            pipeline.notes.push(format!(
                "transfers and reductions run at the speed of their rings on the routes of \
                {name}"
            ));
        }
        pipeline
    }

    fn demands(&self, limits: &Limits, plan: &Plan) -> Option<Demands> {
        wiring::demands(self, limits, plan)
    }

    fn settings(&self, pipeline: &Pipeline, asked: &SimulatorSettings) -> SimulatorSettings {
        let own = &pipeline.settings;
        SimulatorSettings {
            virtual_stages: if pipeline.interleaved { own.virtual_stages } else { asked.virtual_stages },
            // The optimizer step is part of the configuration's own time, and a plan's file contains it.
            optimizer_step_s: own.optimizer_step_s,
            ..*asked
        }
    }

    fn example_choice(&self, _node: NodeIndex) -> &str {
        VANILLA
    }
}
