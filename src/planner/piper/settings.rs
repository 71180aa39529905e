//! The options of the planner, read once from what the user set.

use crate::{
    plan::{Execution, WarmUp, runner::Runner},
    planner::{
        Bearing, OptionKind, OptionSpec, Options, Tunable,
        pipeline_options::{self, Recompute},
    },
    units,
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
pub(super) struct PiperSettings {
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
    /// How many microbatches are in flight where stages have different replicas.
    pub(super) warm_up: WarmUp,
}

/// What the planner declares.
pub(super) static OPTIONS: [OptionSpec; 9] = [
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
        help: "a plan that the training engine named by `engine` runs unchanged; naming one other than `any` asks for it too",
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
    OptionSpec {
        name: "warmup",
        label: "warm-up",
        help: "microbatches that a replica starts before its first backward: what memory must hold",
        kind: OptionKind::Choice {
            choices: &[
                ("published", "rounded at every stage anew, as in the paper"),
                ("cumulative", "rounded on from the last stage: a few more, which keep uneven replicas busy"),
            ],
            default: WarmUp::Published.id(),
        },
    },
];

/// What each leaves of the plans that a proof speaks of.
pub(super) static BEARINGS: [(&str, Bearing); 9] = [
    pipeline_options::OF_DATA_PARALLEL,
    pipeline_options::OF_TENSOR_PARALLEL,
    pipeline_options::OF_RECOMPUTE,
    // The published rule finds some ways to recompute and not others: of those it does not find nothing is known.
    (
        "knapsack",
        Bearing::Narrows(|options| {
            let greedy = options.choice("knapsack") == "greedy";
            greedy.then(|| "with recomputation as the published greedy rule picks it".into())
        }),
    ),
    ("engine_feasible", Bearing::Told),
    pipeline_options::OF_ENGINE,
    pipeline_options::OF_STAGES,
    (
        "most_replicas",
        Bearing::Narrows(|options| {
            let most = PiperSettings::new(options).asked_replicas();
            most.map(|most| format!("with at most {}", units::counted(most as usize, "replica")))
        }),
    ),
    (
        "warmup",
        Bearing::Narrows(|options| {
            let cumulative = options.choice("warmup") == WarmUp::Cumulative.id();
            cumulative.then(|| "with cumulative warm-up".into())
        }),
    ),
];

/// Those that decide which plans there are.
pub(super) static TUNABLES: [Tunable; 5] = [
    Tunable::Freedom("data_parallel"),
    Tunable::Freedom("tensor_parallel"),
    Tunable::Freedom("recompute"),
    Tunable::Freedom("engine_feasible"),
    Tunable::Stages("stages"),
];

/// No plan has more replicas than devices.
const MOST_REPLICAS: f64 = 10_000.0;

impl PiperSettings {
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
        PiperSettings {
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
            warm_up: WarmUp::find(options.choice("warmup")).unwrap_or_default(),
        }
    }

    /// By stage, the microbatches in flight on each of its replicas.
    pub(super) fn in_flight(&self, replicas: impl DoubleEndedIterator<Item = u32>, microbatches: u32) -> Vec<u32> {
        let mut behind: u32 = 0;
        let from_the_end = replicas.rev().map(|d| match self.warm_up {
            WarmUp::Published => {
                behind += d;
                behind.div_ceil(d)
            }
            WarmUp::Cumulative => {
                let own = in_flight(behind, d, microbatches);
                behind = own * d;
                own
            }
        });
        let mut in_flight: Vec<u32> = from_the_end.collect();
        in_flight.reverse();
        in_flight
    }

    /// What a plan says of how it runs; nothing where that is the paper's.
    pub(super) fn execution(&self) -> Option<Execution> {
        (self.warm_up != WarmUp::Published).then(|| Execution { warm_up: self.warm_up, ..Execution::default() })
    }
}

/// Microbatches in flight on each of `d` replicas where warm-ups are rounded on and what is behind holds so many.
pub(super) fn in_flight(behind: u32, d: u32, microbatches: u32) -> u32 {
    (behind.div_ceil(d) + 1).min(microbatches.div_ceil(d))
}
