//! What a plan is scored by: the objective's name and unit, and which workloads it can be measured on.
//!
//! A plan carries its measure, so that the same split can be scored by the load of its busiest device or by the time one
//! sample takes, and a file says which it means.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SpeedupModel;
use crate::{
    units,
    workload::operators::{BatchNorm, CostRules},
};

/// Measures of device placement are in milliseconds, as in its files; people are told times in one way everywhere.
const MILLISECOND: f64 = 1e-3;

/// What a plan is scored by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Measure {
    /// The largest load of a stage, seconds per sample (Piper).
    #[default]
    TimePerSample,
    /// The time of a batch under the plan's schedule, 1F1B where it says none, seconds: filling, draining, transfers and all-reduces included (Piper's profiles).
    IterationTime,
    /// The largest load of a device, milliseconds (device placement, throughput).
    MaxLoad,
    /// The largest forward load plus the largest backward load, milliseconds (device placement, separate maxima).
    SeparateMaxima,
    /// The time from a sample's arrival to its result, milliseconds (device placement, latency).
    Latency {
        /// `Some(q)`: a stage is a slot, an accelerator runs up to q of them one after the other, as in the latency
        /// integer program. `None`: a stage is a device, whose nodes are cut into contiguous pieces that wait for
        /// nothing but their inputs, as in the published evaluation of a split.
        subgraphs: Option<u32>,
    },
    /// How many times faster than one device that does the whole batch alone (DAPPLE).
    Speedup(SpeedupModel),
    /// Operations on each device, transfers counted as the operations a device could do meanwhile (PaSE).
    OperatorCost(CostRules),
}

impl Measure {
    /// Its name in the plan JSON.
    pub fn name(self) -> &'static str {
        match self {
            Measure::TimePerSample => "time_per_sample",
            Measure::IterationTime => "iteration_time",
            Measure::MaxLoad => "max_load",
            Measure::SeparateMaxima => "separate_maxima",
            Measure::Latency { .. } => "latency",
            Measure::Speedup(_) => "speedup",
            Measure::OperatorCost(_) => "cost",
        }
    }

    /// What a planner that minimises it proves of its best plan: of a model, whose name is part of it.
    pub fn goal(self) -> &'static str {
        match self {
            Measure::TimePerSample => "least time per microbatch in Piper's model",
            Measure::IterationTime => "fastest simulated batch",
            Measure::MaxLoad => "least load of the busiest device in the placement model",
            Measure::SeparateMaxima => "least largest forward plus largest backward load in the placement model",
            Measure::Latency { .. } => "least time for one sample in the latency model",
            Measure::Speedup(_) => "highest speed-up over one device in DAPPLE's model",
            Measure::OperatorCost(_) => "least cost of a step in PaSE's model",
        }
    }

    /// The model in which plans are measured so.
    pub fn model(self) -> &'static str {
        match self {
            Measure::TimePerSample => "Piper's model",
            Measure::IterationTime => "the simulator",
            Measure::MaxLoad | Measure::SeparateMaxima => "the placement model",
            Measure::Latency { .. } => "the latency model",
            Measure::Speedup(_) => "DAPPLE's model",
            Measure::OperatorCost(_) => "PaSE's model",
        }
    }

    /// The goal of the measure of this name.
    pub fn goal_of(name: &str) -> Option<&'static str> {
        let all = [
            Measure::TimePerSample,
            Measure::IterationTime,
            Measure::MaxLoad,
            Measure::SeparateMaxima,
            Measure::Latency { subgraphs: None },
            Measure::Speedup(SpeedupModel::default()),
            Measure::OperatorCost(CostRules::default()),
        ];
        all.into_iter().find(|measure| measure.name() == name).map(Measure::goal)
    }

    /// What it depends on beside limits and the planner's options, as the plan JSON carries it.
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

    /// Its unit in the plan JSON.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::TimePerSample | Measure::IterationTime => "s",
            Measure::MaxLoad | Measure::SeparateMaxima | Measure::Latency { .. } => "ms",
            Measure::Speedup(_) => "x",
            Measure::OperatorCost(_) => "operations",
        }
    }

    /// Whether more is better, as with a speed-up.
    pub fn larger_is_better(self) -> bool {
        match self {
            Measure::TimePerSample
            | Measure::IterationTime
            | Measure::MaxLoad
            | Measure::SeparateMaxima
            | Measure::Latency { .. }
            | Measure::OperatorCost(_) => false,
            Measure::Speedup(_) => true,
        }
    }

    /// Whether the first value is better than the second.
    pub fn is_better(self, value: f64, than: f64) -> bool {
        if self.larger_is_better() { value > than } else { value < than }
    }

    /// A value with its unit, for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Measure::TimePerSample => format!("{}/sample", units::seconds(value)),
            Measure::IterationTime => format!("{}/batch", units::seconds(value)),
            Measure::Speedup(_) => format!("{}x one device", units::number(value)),
            Measure::OperatorCost(_) => units::operations(value),
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
        assert_eq!(Measure::IterationTime.show(1.392), "1.392 s/batch");
    }
}
