//! Stages that set the pace of a pipelined iteration whose transfers run beside the passes.
//!
//! In the steady state a microbatch takes as long as the passes of the slowest stage, if passes hide the transfers. The
//! sum of compute and transfers of a stage, which a planner may count, then names the wrong stage. `O(stages)` for a
//! timeline whose steady state is known.

use plantui_core::{
    plan::Measure,
    simulate::{Pipeline, Timeline},
};

use crate::steady::Steady;

/// Least part of the steady state's pace that passes must fill to set it.
const SETS_PACE: f64 = 0.9;

/// Part of the longest passes from which a stage limits as well: a tie in three digits.
pub const ALIKE: f64 = 0.999;

/// Passes that set the pace of the steady state.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// Stage with the longest passes, from 0.
    pub stage: usize,
    /// Stages whose passes are as long within 0.1 %, ascending; at least one.
    pub alike: Vec<usize>,
    /// Time of a microbatch in the passes of each stage, shared out over its replicas, seconds.
    pub passes_s: Vec<f64>,
}

impl Pace {
    /// Pace of a pipeline with a steady state. `None` if nothing hides transfers, if transfers set the pace, or if there
    /// is no pipeline.
    pub fn of(measure: Measure, pipeline: &Pipeline, steady: Option<&Steady>) -> Option<Pace> {
        let steady = steady.filter(|_| pipeline.settings.overlap && !matches!(measure, Measure::OperatorCost(_)))?;
        pipeline.transfers.iter().find(|transfer| transfer.seconds > 0.0)?;
        let shared = |seconds: f64, replicas: u32| seconds / f64::from(replicas.max(1));
        let passes_s: Vec<f64> =
            pipeline.stages.iter().map(|own| shared(own.forward_s + own.backward_s, own.replicas)).collect();
        let longer = |best: usize, next: usize| if passes_s[next] > passes_s[best] { next } else { best };
        let stage = (0..passes_s.len()).reduce(longer)?;
        let longest = passes_s[stage];
        let alike = (0..passes_s.len()).filter(|&other| passes_s[other] >= ALIKE * longest).collect();
        (longest >= SETS_PACE * steady.microbatch_s).then_some(Pace { stage, alike, passes_s })
    }

    /// Pace of a simulated iteration.
    pub fn of_timeline(measure: Measure, pipeline: &Pipeline, timeline: &Timeline) -> Option<Pace> {
        let steady = Some(timeline).filter(|_| pipeline.single_sample.is_none()).and_then(Steady::of);
        Self::of(measure, pipeline, steady.as_ref())
    }

    /// Time of a microbatch in the longest passes, seconds.
    pub fn longest_s(&self) -> f64 {
        self.passes_s[self.stage]
    }

    /// Time of a microbatch by which the passes of a stage are shorter than the longest, seconds.
    pub fn slack_s(&self, stage: usize) -> Option<f64> {
        self.passes_s.get(stage).map(|own| self.longest_s() - own)
    }
}

#[cfg(test)]
mod tests {
    use plantui_core::simulate::{PipelineStage, Schedule, SimulatorSettings, Transfer, simulate};

    use super::*;

    /// Pace of a 1F1B pipeline with a transfer of `sent_s` behind the first stage.
    fn pace(stages: &[(f64, u32)], sent_s: f64, overlap: bool) -> Option<Pace> {
        let stage = |&(passes_s, replicas): &(f64, u32)| PipelineStage {
            forward_s: passes_s / 3.0,
            backward_s: passes_s * 2.0 / 3.0,
            replicas,
            ..PipelineStage::default()
        };
        let transfer = Transfer { from: 0, to: 1, seconds: sent_s, bytes: 1.0 };
        let pipeline = Pipeline {
            stages: stages.iter().map(stage).collect(),
            transfers: vec![transfer],
            microbatches: 32,
            settings: SimulatorSettings { overlap, ..SimulatorSettings::default() },
            ..Pipeline::default()
        };
        let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
        Pace::of_timeline(Measure::IterationTime, &pipeline, &timeline)
    }

    #[test]
    fn the_longest_passes_limit_and_equal_ones_limit_alike() {
        let found = pace(&[(3.0, 1), (2.0, 1), (6.0, 2)], 0.1, true).unwrap();
        assert_eq!((found.stage, found.alike), (0, vec![0, 2]), "two replicas halve the time");
        assert_eq!(pace(&[(1.0, 1), (2.0, 1)], 0.1, true).unwrap().slack_s(0), Some(1.0));
    }

    #[test]
    fn exposed_or_long_transfers_set_the_pace_themselves() {
        assert_eq!(pace(&[(1.0, 1), (1.0, 1)], 0.1, false), None);
        assert_eq!(pace(&[(1.0, 1), (1.0, 1)], 4.0, true), None);
        assert_eq!(pace(&[(1.0, 1), (1.0, 1)], 0.0, true), None, "there is nothing to hide");
    }
}
