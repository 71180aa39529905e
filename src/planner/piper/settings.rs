//! The options of the planner, read once from what the user set.

use crate::{
    plan::runner::Runner,
    planner::{Lever, OptionKind, OptionSpec, Options},
};

/// When activations are recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recompute {
    /// Node by node, where it pays.
    Auto,
    /// Nowhere.
    Never,
    /// Everywhere.
    Always,
    /// Every stage either keeps its fastest modes or takes its smallest.
    AllOrNone,
}

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
    OptionSpec {
        name: "data_parallel",
        label: "data parallel",
        help: "let a stage have several replicas",
        kind: OptionKind::Flag { default: true },
    },
    OptionSpec {
        name: "tensor_parallel",
        label: "tensor parallel",
        help: "let a stage split its tensors over several devices",
        kind: OptionKind::Flag { default: true },
    },
    OptionSpec {
        name: "recompute",
        label: "recompute",
        help: "when activations are recomputed in the backward pass to save memory",
        kind: OptionKind::Choice {
            choices: &[
                ("auto", "node by node, where it pays"),
                ("never", "keep every activation"),
                ("always", "recompute every node"),
                ("all-or-none", "all nodes of a stage or none"),
            ],
            default: "auto",
        },
    },
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
    OptionSpec {
        name: "engine",
        label: "engine",
        help: "whose rules such a plan keeps; any: those of all of them",
        kind: OptionKind::Choice {
            choices: &[
                ("any", "all of them"),
                ("megatron", "Megatron-LM: as many recomputed layers on every stage"),
                ("deepspeed", "DeepSpeed: layers recompute one by one"),
                ("torch", "torch.distributed.pipelining: layers recompute one by one"),
                ("torchtitan", "torchtitan: all layers recompute or none"),
                ("galvatron", "Galvatron: layers recompute one by one, ends with the outer layers"),
            ],
            default: "any",
        },
    },
    OptionSpec {
        name: "stages",
        label: "stages",
        help: "exactly so many stages; any: as many as are best",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_STAGES, whole: true, zero: Some("any") },
    },
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

/// More stages than this cannot be asked for: every one costs a table over all sets.
const MOST_STAGES: f64 = 1000.0;
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
            recompute: match options.choice("recompute") {
                "never" => Recompute::Never,
                "always" => Recompute::Always,
                "all-or-none" => Recompute::AllOrNone,
                _ => Recompute::Auto,
            },
            knapsack: if options.choice("knapsack") == "greedy" { Knapsack::Greedy } else { Knapsack::Exact },
            engine: Runner::find(options.choice("engine"))
                .filter(|runner| options.flag("engine_feasible") || *runner != Runner::Any),
            stages: Some(options.number("stages") as usize).filter(|&stages| stages > 0),
            most_replicas: match options.number("most_replicas") as u32 {
                0 => u32::MAX,
                most => most,
            },
        }
    }
}
