//! Measures of plans: name and unit of each objective, and the model it belongs to.
//!
//! A plan carries its measure, because one split can be scored by the load of its busiest device or by the time of one
//! sample.

use std::collections::BTreeMap;

use serde_json::Value;

use super::speedup::SpeedupModel;
use crate::{
    units,
    workload::operators::{BatchNorm, CostRules},
};

/// Measures of device placement are in milliseconds, as in its files. Times for users have one format everywhere.
const MILLISECOND: f64 = 1e-3;

/// Objective that scores a plan.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Measure {
    /// Largest load of a stage, seconds per sample (Piper).
    #[default]
    TimePerSample,
    /// Time of an iteration under the plan's schedule (1F1B if it has none), seconds. Includes warm-up, drain,
    /// transfers and all-reduces (Piper's profiles).
    IterationTime,
    /// Time of an iteration in closed form, seconds: the slowest stage's compute and transfers for all microbatches but
    /// one, those of all stages for one, and the slowest stage's reduction and update (Sailor).
    PipelineTime,
    /// Price of an iteration, whose time is that in closed form, on devices of several kinds.
    IterationCost,
    /// Largest load of a device, milliseconds (device placement, throughput).
    MaxLoad,
    /// Largest forward load plus the largest backward load, milliseconds (device placement, separate maxima).
    SeparateMaxima,
    /// Time from a sample's arrival to its result, milliseconds (device placement, latency).
    Latency {
        /// `Some(q)`: a stage is a slot, and an accelerator runs up to q of them one after the other, as in the latency
        /// integer program. `None`: a stage is a device. Its nodes are cut into contiguous pieces that wait only for
        /// their inputs, as in the published evaluation of a split.
        subgraphs: Option<u32>,
    },
    /// Speed-up over one device that computes the whole batch alone (DAPPLE).
    Speedup(SpeedupModel),
    /// Operations on each device. Transfers count as the operations that a device could do meanwhile (PaSE).
    OperatorCost(CostRules),
}

impl Measure {
    /// Name in the plan JSON.
    pub fn name(self) -> &'static str {
        match self {
            Measure::TimePerSample => "time_per_sample",
            Measure::IterationTime => "iteration_time",
            Measure::PipelineTime => "pipeline_time",
            Measure::IterationCost => "iteration_cost",
            Measure::MaxLoad => "max_load",
            Measure::SeparateMaxima => "separate_maxima",
            Measure::Latency { .. } => "latency",
            Measure::Speedup(_) => "speedup",
            Measure::OperatorCost(_) => "cost",
        }
    }

    /// Goal that a planner proves its best plan for. It names the model.
    pub fn goal(self) -> &'static str {
        match self {
            Measure::TimePerSample => "least time per microbatch in Piper's model",
            Measure::IterationTime => "fastest simulated iteration",
            Measure::PipelineTime => "fastest iteration in closed form",
            Measure::IterationCost => "cheapest iteration in closed form",
            Measure::MaxLoad => "least load of the busiest device in the placement model",
            Measure::SeparateMaxima => "least largest forward plus largest backward load in the placement model",
            Measure::Latency { .. } => "least time for one sample in the latency model",
            Measure::Speedup(_) => "highest speed-up over one device in DAPPLE's model",
            Measure::OperatorCost(_) => "least cost in PaSE's model",
        }
    }

    /// Model in which the measure is defined.
    pub fn model(self) -> &'static str {
        match self {
            Measure::TimePerSample => "Piper's model",
            Measure::IterationTime => "the simulator",
            Measure::PipelineTime | Measure::IterationCost => "the closed form",
            Measure::MaxLoad | Measure::SeparateMaxima => "the placement model",
            Measure::Latency { .. } => "the latency model",
            Measure::Speedup(_) => "DAPPLE's model",
            Measure::OperatorCost(_) => "PaSE's model",
        }
    }

    /// Goal of the measure with this name.
    pub fn goal_of(name: &str) -> Option<&'static str> {
        let all = [
            Measure::TimePerSample,
            Measure::IterationTime,
            Measure::PipelineTime,
            Measure::IterationCost,
            Measure::MaxLoad,
            Measure::SeparateMaxima,
            Measure::Latency { subgraphs: None },
            Measure::Speedup(SpeedupModel::default()),
            Measure::OperatorCost(CostRules::default()),
        ];
        all.into_iter().find(|measure| measure.name() == name).map(Measure::goal)
    }

    /// Parameters of the measure in addition to limits and the planner's options, as in the plan JSON.
    pub fn parameters(self) -> BTreeMap<String, Value> {
        match self {
            Measure::Speedup(model) => model.parameters(),
            Measure::OperatorCost(rules) => BTreeMap::from([
                ("parallel_edges".into(), if rules.parallel_edges { "all" } else { "last" }.into()),
                (
                    "batch_norm".into(),
                    if rules.batch_norm == BatchNorm::PerChannel { "per-channel" } else { "published" }.into(),
                ),
            ]),
            _ => BTreeMap::new(),
        }
    }

    /// Unit in the plan JSON.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::TimePerSample | Measure::IterationTime | Measure::PipelineTime => "s",
            Measure::MaxLoad | Measure::SeparateMaxima | Measure::Latency { .. } => "ms",
            Measure::Speedup(_) => "x",
            Measure::OperatorCost(_) => "operations",
            Measure::IterationCost => "currency",
        }
    }

    /// True if larger values are better, as for a speed-up.
    pub fn larger_is_better(self) -> bool {
        match self {
            Measure::TimePerSample
            | Measure::IterationTime
            | Measure::PipelineTime
            | Measure::IterationCost
            | Measure::MaxLoad
            | Measure::SeparateMaxima
            | Measure::Latency { .. }
            | Measure::OperatorCost(_) => false,
            Measure::Speedup(_) => true,
        }
    }

    /// True if the first value is better than the second.
    pub fn is_better(self, value: f64, than: f64) -> bool {
        if self.larger_is_better() { value > than } else { value < than }
    }

    /// Value with its unit, for users.
    pub fn show(self, value: f64) -> String {
        match self {
            Measure::TimePerSample => format!("{}/sample", units::seconds(value)),
            Measure::IterationTime | Measure::PipelineTime => format!("{}/iteration", units::seconds(value)),
            Measure::Speedup(_) => format!("{}x one device", units::number(value)),
            Measure::OperatorCost(_) => units::operations(value),
            Measure::IterationCost => format!("a cost of {}/iteration", units::number(value)),
            Measure::MaxLoad | Measure::SeparateMaxima | Measure::Latency { .. } => units::seconds(value * MILLISECOND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_measures_are_told_in_one_way() {
        assert_eq!(Measure::MaxLoad.show(1392.0), "1.392 s");
        assert_eq!(Measure::Latency { subgraphs: None }.show(158.4), "158.4 ms");
        assert_eq!(Measure::IterationTime.show(1.392), "1.392 s/iteration");
    }
}
