//! Options of the planner, parsed from the user's settings.

use super::kind::ScheduleRequest;
use crate::{
    Bearing, OptionKind, OptionSpec, Options, Tunable,
    pipeline_options::{self, Recompute},
};
use plantui_core::plan::{Schedule, runner::Runner};
use plantui_core::units;

/// Values of all options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JointSettings {
    pub(super) data_parallel: bool,
    pub(super) tensor_parallel: bool,
    /// Tensor degree of all stages; `None` leaves it free.
    pub(super) degree: Option<u32>,
    /// Context-parallel degree of a trained model; `None` leaves it free.
    pub(super) context: Option<u32>,
    /// Expert-parallel degree of a trained model; `None` leaves it free.
    pub(super) expert: Option<u32>,
    /// Data-parallel degree of a trained model; `None` leaves it free.
    pub(super) data: Option<u32>,
    /// Sequences in a microbatch of a trained model; `None` leaves them free.
    pub(super) micro_batch: Option<u32>,
    /// Virtual stages per device of a trained model; `None` leaves them free.
    pub(super) virtual_stages: Option<u32>,
    pub(super) recompute: Recompute,
    /// True if the plan may be one that engines cannot run.
    pub(super) anywhere: bool,
    /// Engine that must run the plan unchanged, if any.
    pub(super) engine: Option<Runner>,
    /// Schedule and parts of the model on each device.
    pub(super) wanted: ScheduleRequest,
    /// Exact number of stages; `None` leaves it free.
    pub(super) stages: Option<usize>,
    /// Gap within which a plan is good enough, as a fraction of its time.
    pub(super) gap: f64,
    /// Fraction of the memory that stays free.
    pub(super) headroom: f64,
    /// True if the cheapest iteration is wanted, on several kinds of devices.
    pub(super) cheapest: bool,
    /// True if plans that are cheaper than the fastest are wanted beside it.
    pub(super) lists_cheaper: bool,
    /// Iteration time, at most, on several kinds of devices, seconds; 0 for any.
    pub(super) most_s: f64,
    /// Price of all devices for an hour, at most, on several kinds of devices; 0 for any.
    pub(super) most_per_hour: f64,
    /// Cost of an iteration, at most, on several kinds of devices; 0 for any.
    pub(super) most_cost: f64,
}

/// Options that the planner declares.
pub(super) static OPTIONS: [OptionSpec; 19] = [
    OptionSpec {
        name: "space",
        label: "space",
        help: "which plans are searched",
        kind: OptionKind::Choice {
            choices: &[
                ("runnable", "plans that engines run: one tensor degree, one number of replicas, a chain of stages"),
                (
                    "any",
                    "also stages of different degrees and replicas, as planned by other planners; its bound is weaker",
                ),
                (
                    "engine",
                    "plans that the engine named by `engine` runs unchanged; an engine other than `any` implies this \
                    space",
                ),
            ],
            default: "runnable",
        },
    },
    OptionSpec {
        name: "schedule",
        label: "schedule",
        help: "the schedule of the plan",
        kind: OptionKind::Choice {
            choices: &[
                ("auto", "the fastest; the proof covers all schedules and is weaker"),
                ("1f1b", "one forward, one backward in turn; the tightest proof"),
                ("gpipe", "all forwards, then all backwards"),
                ("interleaved", "1F1B over several virtual stages per device"),
                ("zb-h1", "zero bubble H1: weight gradients fill the bubble"),
                ("zb-v", "zero bubble V: two virtual stages per device, in the shape of a V"),
                ("interleaved-zb", "zero bubble over several virtual stages per device"),
            ],
            default: "1f1b",
        },
    },
    OptionSpec {
        name: "virtual_stages",
        label: "virtual stages",
        help: "virtual stages per device where the schedule interleaves them; auto: the best of 2 to 8",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 64.0, whole: true, zero: Some("auto") },
    },
    pipeline_options::DATA_PARALLEL,
    pipeline_options::TENSOR_PARALLEL,
    OptionSpec {
        name: "tensor_degree",
        label: "tensor degree",
        help: "tensor degree of every stage; any: the fastest",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_DEGREE, whole: true, zero: Some("any") },
    },
    OptionSpec {
        name: "context_degree",
        label: "context degree",
        help: "context-parallel degree of a model to be trained; any: the fastest",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_DEGREE, whole: true, zero: Some("any") },
    },
    OptionSpec {
        name: "expert_degree",
        label: "expert degree",
        help: "expert-parallel degree of a model to be trained; any: the fastest",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_DEGREE, whole: true, zero: Some("any") },
    },
    OptionSpec {
        name: "data_degree",
        label: "data degree",
        help: "data-parallel degree of a model to be trained; any: the fastest",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_DEGREE, whole: true, zero: Some("any") },
    },
    OptionSpec {
        name: "micro_batch",
        label: "microbatch",
        help: "sequences in a microbatch of a model to be trained; any: the fastest",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_DEGREE, whole: true, zero: Some("any") },
    },
    pipeline_options::RECOMPUTE,
    pipeline_options::STAGES,
    pipeline_options::ENGINE,
    OptionSpec {
        name: "gap",
        label: "gap",
        help: "stop at a plan proven to be within this percentage of the fastest",
        kind: OptionKind::Number { default: 0.1, least: 0.01, most: 50.0, whole: false, zero: None },
    },
    OptionSpec {
        name: "headroom",
        label: "headroom",
        help: "percentage of every device's memory to keep free",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 90.0, whole: false, zero: None },
    },
    OptionSpec {
        name: "minimise",
        label: "minimise",
        help: "what is minimised on several kinds of devices, whose prices --devices gives",
        kind: OptionKind::Choice {
            choices: &[
                ("time", "the time of an iteration"),
                ("cost", "the price of the devices and the traffic of an iteration"),
                ("both", "the time; plans that are cheaper if it may take longer are listed"),
            ],
            default: "time",
        },
    },
    OptionSpec {
        name: "most_seconds",
        label: "most seconds",
        help: "iteration time on several kinds of devices, at most",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 1e9, whole: false, zero: Some("any") },
    },
    OptionSpec {
        name: "most_per_hour",
        label: "most per hour",
        help: "price of the devices of a plan for an hour, at most, on several kinds of devices",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 1e12, whole: false, zero: Some("any") },
    },
    OptionSpec {
        name: "most_cost",
        label: "most cost",
        help: "cost of an iteration, at most, on several kinds of devices",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: 1e12, whole: false, zero: Some("any") },
    },
];

/// Options of models to be trained, and of several kinds of devices, alone.
pub(super) const OF_TRAINED_MODELS: [&str; 8] = [
    "context_degree",
    "expert_degree",
    "data_degree",
    "micro_batch",
    "minimise",
    "most_seconds",
    "most_per_hour",
    "most_cost",
];

/// Options that change nothing on several kinds of devices.
pub(super) const NOT_OF_KINDS: [&str; 5] = ["schedule", "virtual_stages", "context_degree", "expert_degree", "gap"];

/// Effect of each option on the plans that a proof covers.
pub(super) static BEARINGS: [(&str, Bearing); 19] = [
    ("space", Bearing::Told),
    ("schedule", Bearing::Told),
    ("virtual_stages", Bearing::Narrows(parts_of_a_device)),
    pipeline_options::OF_DATA_PARALLEL,
    pipeline_options::OF_TENSOR_PARALLEL,
    (
        "tensor_degree",
        Bearing::Narrows(|options| JointSettings::new(options).degree.map(|t| format!("with tensor degree {t}"))),
    ),
    (
        "context_degree",
        Bearing::Narrows(|options| JointSettings::new(options).context.map(|c| format!("with context degree {c}"))),
    ),
    (
        "expert_degree",
        Bearing::Narrows(|options| JointSettings::new(options).expert.map(|e| format!("with expert degree {e}"))),
    ),
    (
        "data_degree",
        Bearing::Narrows(|options| JointSettings::new(options).data.map(|d| format!("with data degree {d}"))),
    ),
    (
        "micro_batch",
        Bearing::Narrows(|options| {
            JointSettings::new(options).micro_batch.map(|b| format!("with microbatches of {b}"))
        }),
    ),
    pipeline_options::OF_RECOMPUTE,
    pipeline_options::OF_STAGES,
    pipeline_options::OF_ENGINE,
    // The gap says how near to the best a plan is.
    ("gap", Bearing::Search),
    (
        "headroom",
        Bearing::Narrows(|options| {
            let free = options.number("headroom");
            (free > 0.0).then(|| format!("with {}% of memory kept free", units::number(free)))
        }),
    ),
    // The measure names what is minimised.
    ("minimise", Bearing::Told),
    (
        "most_seconds",
        Bearing::Narrows(|options| {
            let most = options.number("most_seconds");
            (most > 0.0).then(|| format!("within {} an iteration", units::seconds(most)))
        }),
    ),
    (
        "most_per_hour",
        Bearing::Narrows(|options| {
            let most = options.number("most_per_hour");
            (most > 0.0).then(|| format!("on devices for at most {} an hour", units::money(most)))
        }),
    ),
    (
        "most_cost",
        Bearing::Narrows(|options| {
            let most = options.number("most_cost");
            (most > 0.0).then(|| format!("for at most {} an iteration", units::number(most)))
        }),
    ),
];

/// Pinned number of virtual stages.
fn parts_of_a_device(options: &Options) -> Option<String> {
    JointSettings::new(options).virtual_stages.map(|parts| format!("with {parts} virtual stages"))
}

/// Upper limit on the degree; no node offers a higher one.
const MOST_DEGREE: f64 = 10_000.0;

/// Options that determine which plans exist.
pub(super) static TUNABLES: [Tunable; 6] = [
    Tunable::Freedom("schedule"),
    Tunable::Freedom("data_parallel"),
    Tunable::Freedom("tensor_parallel"),
    Tunable::Freedom("recompute"),
    Tunable::Stages("stages"),
    Tunable::Degree("tensor_degree"),
];

impl JointSettings {
    /// Axes of a layout that the options pin, for people.
    pub(super) fn pins(&self) -> Vec<String> {
        let pins = [
            ("tensor degree", self.degree),
            ("context degree", self.context),
            ("expert degree", self.expert),
            ("data degree", self.data),
            ("microbatch", self.micro_batch),
            ("virtual stages", self.virtual_stages),
            ("stages", self.stages.map(|stages| stages as u32)),
        ];
        pins.iter().filter_map(|(name, value)| value.map(|value| format!("{name} {value}"))).collect()
    }

    /// Reads the declared options.
    pub(super) fn new(options: &Options) -> Self {
        let degree = |name: &str| Some(options.number(name) as u32).filter(|&degree| degree > 0);
        let engine = pipeline_options::engine(options, options.choice("space") == "engine");
        JointSettings {
            data_parallel: options.flag("data_parallel"),
            tensor_parallel: options.flag("tensor_parallel"),
            degree: degree("tensor_degree"),
            context: degree("context_degree"),
            expert: degree("expert_degree"),
            data: degree("data_degree"),
            micro_batch: degree("micro_batch"),
            virtual_stages: degree("virtual_stages"),
            recompute: pipeline_options::recompute(options),
            anywhere: engine.is_none() && options.choice("space") == "any",
            engine,
            wanted: ScheduleRequest {
                schedule: Schedule::find(options.choice("schedule")),
                parts: Some(options.number("virtual_stages") as u32)
                    .filter(|&parts| parts > 0)
                    .map(|parts| parts.max(2)),
            },
            stages: pipeline_options::stages(options),
            gap: options.number("gap") / 100.0,
            headroom: options.number("headroom") / 100.0,
            cheapest: options.choice("minimise") == "cost",
            lists_cheaper: options.choice("minimise") == "both",
            most_s: options.number("most_seconds"),
            most_per_hour: options.number("most_per_hour"),
            most_cost: options.number("most_cost"),
        }
    }
}
