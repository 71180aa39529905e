//! Pipeline of measured stage times.

use super::{
    pipeline::{Pipeline, PipelineStage, Transfer},
    settings::SimulatorSettings,
};
use crate::workload::formats::stage_times::StageTimes;

impl Pipeline {
    /// Pipeline of stages with these times, each on one device.
    pub fn of_times(times: &StageTimes, settings: SimulatorSettings) -> Pipeline {
        let stages: Vec<PipelineStage> = times
            .each()
            .map(|time| {
                let (backward_s, weight_gradient_s) = time.backward();
                PipelineStage {
                    forward_s: time.forward_s,
                    backward_s,
                    weight_gradient_s,
                    activation_bytes: time.activation_bytes,
                    fixed_bytes: time.fixed_bytes,
                    replicas: 1,
                    devices: 1,
                    ..PipelineStage::default()
                }
            })
            .collect();
        let transfer = |from| Transfer { from, to: from + 1, seconds: times.transfer_s, bytes: 0.0 };
        let transfers = (0..stages.len() - 1).map(transfer).collect();
        Pipeline { stages, transfers, microbatches: times.microbatches, settings, ..Pipeline::default() }
    }
}
