//! The options of the planner, read once from what the user set.

use crate::plan::runner::Runner;
use crate::planner::{
    Lever, OptionKind, OptionSpec, Options,
    pipeline_options::{self, Recompute},
};

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
    pipeline_options::DATA_PARALLEL,
    pipeline_options::TENSOR_PARALLEL,
    pipeline_options::RECOMPUTE,
    pipeline_options::STAGES,
    pipeline_options::ENGINE,
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
            recompute: pipeline_options::recompute(options),
            engine: pipeline_options::engine(options, options.choice("space") == "engine"),
            stages: pipeline_options::stages(options),
            gap: options.number("gap") / 100.0,
            headroom: options.number("headroom") / 100.0,
        }
    }
}
