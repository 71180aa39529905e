//! The options of the planner, read once from what the user set.

use crate::{
    plan::runner::Runner,
    planner::{
        Lever, OptionKind, OptionSpec, Options,
        pipeline_options::{self, Recompute},
    },
};

/// How modes are chosen when the fastest do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knapsack {
    /// The published heuristic: swap by ratio until it fits.
    Greedy,
    /// The best choice.
    Exact,
}

/// All options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) data_parallel: bool,
    pub(super) tensor_parallel: bool,
    pub(super) recompute: Recompute,
    pub(super) knapsack: Knapsack,
    /// The engine that must be able to run the plan unchanged, if one must.
    pub(super) engine: Option<Runner>,
    /// Exactly so many stages, if that is asked.
    pub(super) stages: Option<usize>,
    /// Replicas of all stages together, at most; `u32::MAX` where only devices and microbatches bound them.
    pub(super) most_replicas: u32,
}

/// What the planner declares.
pub(super) static OPTIONS: [OptionSpec; 8] = [
    pipeline_options::DATA_PARALLEL,
    pipeline_options::TENSOR_PARALLEL,
    pipeline_options::RECOMPUTE,
    OptionSpec {
        name: "knapsack",
        label: "knapsack",
        help: "how a stage picks the nodes that recompute",
        kind: OptionKind::Choice {
            choices: &[("exact", "the best choice, proven"), ("greedy", "by ratio, as the published program does")],
            default: "exact",
        },
    },
    OptionSpec {
        name: "engine_feasible",
        label: "for engines",
        help: "a plan that the training engine named by `engine` runs unchanged; naming one asks for it too",
        kind: OptionKind::Flag { default: false },
    },
    pipeline_options::ENGINE,
    pipeline_options::STAGES,
    OptionSpec {
        name: "most_replicas",
        label: "most replicas",
        help: "replicas of all stages together, at most; any: as many as there are devices and microbatches",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_REPLICAS, whole: true, zero: Some("any") },
    },
];

/// Those that decide which plans there are.
pub(super) static LEVERS: [Lever; 5] = [
    Lever::Freedom("data_parallel"),
    Lever::Freedom("tensor_parallel"),
    Lever::Freedom("recompute"),
    Lever::Freedom("engine_feasible"),
    Lever::Stages("stages"),
];

/// No plan has more replicas than devices.
const MOST_REPLICAS: f64 = 10_000.0;

impl Settings {
    /// Whether modes are chosen by a rule that may need less with more microbatches in flight.
    pub(super) fn is_heuristic(&self) -> bool {
        self.knapsack == Knapsack::Greedy || self.recompute == Recompute::AllOrNone
    }

    /// Replicas that all stages together may have, where devices and microbatches leave room for so many.
    pub(super) fn replicas(&self, room: u32) -> u32 {
        self.most_replicas.min(room)
    }

    /// The bound on replicas that was asked for.
    pub(super) fn asked_replicas(&self) -> Option<u32> {
        Some(self.most_replicas).filter(|&most| most < u32::MAX)
    }

    /// Reads the declared options.
    pub(super) fn new(options: &Options) -> Self {
        Settings {
            data_parallel: options.flag("data_parallel"),
            tensor_parallel: options.flag("tensor_parallel"),
            recompute: pipeline_options::recompute(options),
            knapsack: if options.choice("knapsack") == "greedy" { Knapsack::Greedy } else { Knapsack::Exact },
            engine: pipeline_options::engine(options, options.flag("engine_feasible")),
            stages: pipeline_options::stages(options),
            most_replicas: match options.number("most_replicas") as u32 {
                0 => u32::MAX,
                most => most,
            },
        }
    }
}
