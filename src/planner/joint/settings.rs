//! The options of the planner, read once from what the user set.

use crate::plan::runner::Runner;
use crate::planner::{Lever, OptionKind, OptionSpec, Options};

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

/// All options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    pub(super) data_parallel: bool,
    pub(super) tensor_parallel: bool,
    pub(super) recompute: Recompute,
    /// The engine that must be able to run the plan unchanged, if one must.
    pub(super) engine: Option<Runner>,
    /// Exactly so many stages, if that is asked.
    pub(super) stages: Option<usize>,
    /// A plan proven to be as near to the best is enough, as a share of its time.
    pub(super) gap: f64,
    /// Share of the memory that is left free.
    pub(super) headroom: f64,
}

/// More stages than this cannot be asked for.
const MOST_STAGES: f64 = 1000.0;

/// What the planner declares.
pub(super) static OPTIONS: [OptionSpec; 9] = [
    OptionSpec {
        name: "space",
        label: "space",
        help: "which plans are searched",
        kind: OptionKind::Choice {
            choices: &[
                ("runnable", "what engines run: one tensor degree, one number of replicas, stages in a row"),
                ("engine", "what the engine named by `engine` runs unchanged; naming one asks for it too"),
            ],
            default: "runnable",
        },
    },
    OptionSpec {
        name: "schedule",
        label: "schedule",
        help: "the schedule whose simulated time is least",
        kind: OptionKind::Choice { choices: &[("1f1b", "one forward, one backward in turn")], default: "1f1b" },
    },
    OptionSpec {
        name: "data_parallel",
        label: "data parallel",
        help: "let stages have several replicas",
        kind: OptionKind::Flag { default: true },
    },
    OptionSpec {
        name: "tensor_parallel",
        label: "tensor parallel",
        help: "let stages split their tensors over several devices",
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
        name: "stages",
        label: "stages",
        help: "exactly so many stages; any: as many as are best",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_STAGES, whole: true, zero: Some("any") },
    },
    OptionSpec {
        name: "engine",
        label: "engine",
        help: "whose rules a plan for an engine keeps; any: those of all of them",
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
        name: "gap",
        label: "gap",
        help: "stop at a plan proven to be within so many percent of the fastest",
        kind: OptionKind::Number { default: 0.1, least: 0.01, most: 50.0, whole: false, zero: None },
    },
    OptionSpec {
        name: "headroom",
        label: "headroom",
        help: "percent of every device's memory that stays free",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 90.0, whole: false, zero: None },
    },
];

/// Those that decide which plans there are.
pub(super) static LEVERS: [Lever; 4] = [
    Lever::Freedom("data_parallel"),
    Lever::Freedom("tensor_parallel"),
    Lever::Freedom("recompute"),
    Lever::Stages("stages"),
];

impl Settings {
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
            engine: Runner::find(options.choice("engine"))
                .filter(|runner| options.choice("space") == "engine" || *runner != Runner::Any),
            stages: Some(options.number("stages") as usize).filter(|&stages| stages > 0),
            gap: options.number("gap") / 100.0,
            headroom: options.number("headroom") / 100.0,
        }
    }
}
